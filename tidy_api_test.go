package joblife_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// This file has the rules about a package's declarations: what is exported is
// told and names no other module's types, and what is global does not change.

// receiver returns the name of a method's type, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	typ := f.Recv.List[0].Type
	for {
		switch e := typ.(type) {
		case *ast.StarExpr:
			typ = e.X
		case *ast.ParenExpr:
			typ = e.X
		case *ast.IndexExpr:
			typ = e.X
		case *ast.IndexListExpr:
			typ = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// exportedFunc reports whether a caller outside the package sees f.
func exportedFunc(f *ast.FuncDecl) bool {
	recv := receiver(f)
	return f.Name.IsExported() && (recv == "" || ast.IsExported(recv))
}

// checkComments: every exported type, function, method, constant and variable
// has a comment. One for a whole block of constants or variables is enough.
func checkComments(t *tree, report report) {
	missing := func(s *source, n *ast.Ident, docs ...*ast.CommentGroup) {
		told := slices.ContainsFunc(docs, func(c *ast.CommentGroup) bool { return c.Text() != "" })
		if n.IsExported() && !told {
			report(s.path, t.line(n), "%s has no comment", n.Name)
		}
	}
	for _, s := range t.files {
		if s.ast == nil || s.test || s.example() {
			continue
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if exportedFunc(d) {
					missing(s, d.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							missing(s, name, d.Doc, spec.Doc, spec.Comment)
						}
					case *ast.TypeSpec:
						group := d.Doc
						if d.Lparen.IsValid() {
							group = nil
						}
						missing(s, spec.Name, group, spec.Doc, spec.Comment)
						commentsOfMethods(spec, func(name *ast.Ident, docs ...*ast.CommentGroup) {
							missing(s, name, docs...)
						})
					}
				}
			}
		}
	}
}

// commentsOfMethods shows the methods of an exported interface.
func commentsOfMethods(spec *ast.TypeSpec, show func(*ast.Ident, ...*ast.CommentGroup)) {
	face, ok := spec.Type.(*ast.InterfaceType)
	if !ok || !spec.Name.IsExported() {
		return
	}
	for _, m := range face.Methods.List {
		for _, name := range m.Names {
			show(name, m.Doc, m.Comment)
		}
	}
}

// checkAPI: no exported declaration names a type of another module, so that
// this library may change what it builds on.
func checkAPI(t *tree, report report) {
	for _, u := range t.units {
		leaks := leakyTypes(u)
		show := func(s *source, e ast.Expr) {
			if e == nil {
				return
			}
			for n := range foreign(u, leaks, e) {
				report(s.path, t.line(n), "the exported API names %s", types.ExprString(n))
			}
		}
		for _, s := range u.files {
			if !s.library() {
				continue
			}
			for _, d := range s.ast.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if exportedFunc(d) {
						show(s, d.Type)
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						showSpec(spec, func(e ast.Expr) { show(s, e) })
					}
				}
			}
		}
	}
}

// showSpec shows the types in an exported declaration.
func showSpec(spec ast.Spec, show func(ast.Expr)) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		if spec.TypeParams != nil {
			for _, p := range spec.TypeParams.List {
				show(p.Type)
			}
		}
		show(spec.Type)
	case *ast.ValueSpec:
		if slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
			show(spec.Type)
		}
	}
}

// leakyTypes returns the unexported names of a package that stand for another
// module's type or have its methods: aliases, and what embeds it.
func leakyTypes(u *unit) map[types.Object]bool {
	leaks := make(map[types.Object]bool)
	for grown := true; grown; {
		grown = false
		for _, s := range u.files {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok || spec.Name.IsExported() || leaks[u.info.Defs[spec.Name]] {
					return true
				}
				leaky := spec.Assign.IsValid() && len(foreign(u, leaks, spec.Type)) > 0
				if st, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range st.Fields.List {
						leaky = leaky || len(f.Names) == 0 && len(foreign(u, leaks, f.Type)) > 0
					}
				}
				if leaky {
					leaks[u.info.Defs[spec.Name]] = true
					grown = true
				}
				return true
			})
		}
	}
	return leaks
}

// foreign returns the places in a type that name another module's type and
// that a user of the type sees. Unexported fields of a struct are not seen.
func foreign(u *unit, leaks map[types.Object]bool, e ast.Expr) map[ast.Expr]bool {
	out := make(map[ast.Expr]bool)
	ast.Inspect(e, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && isStructField(e, field) && len(field.Names) > 0 &&
			!slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
			return false
		}
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if p, _, ok := u.imported(n); ok && isThirdParty(p) {
				out[n] = true
			}
		case *ast.Ident:
			if obj := u.info.Uses[n]; obj != nil && leaks[obj] {
				out[n] = true
			}
		}
		return true
	})
	return out
}

// isStructField reports whether a field belongs to a struct within e, rather
// than to a list of parameters or methods.
func isStructField(e ast.Expr, field *ast.Field) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if st, ok := n.(*ast.StructType); ok {
			found = found || slices.Contains(st.Fields.List, field)
		}
		return !found
	})
	return found
}

// checkGlobals: a package-level variable is an error value or an unexported
// table, and nothing writes to it after its declaration. A table is an array,
// or a slice, map or struct that is written out where it is declared; nothing
// hands out the slice or map itself, or takes an address in it, but for
// row := &table[i] where the function only reads row's fields.
func checkGlobals(t *tree, report report) {
	for _, u := range t.units {
		globals := make(map[types.Object]bool)
		for _, s := range u.files {
			if !s.library() {
				continue
			}
			for _, d := range s.ast.Decls {
				gen, ok := d.(*ast.GenDecl)
				if !ok || gen.Tok != token.VAR {
					continue
				}
				for _, spec := range gen.Specs {
					spec := spec.(*ast.ValueSpec)
					for i, name := range spec.Names {
						globals[u.info.Defs[name]] = true
						if why := refuseGlobal(u, spec, i); why != "" {
							report(s.path, t.line(name), "var %s: %s", name.Name, why)
						}
					}
				}
			}
		}
		w := writes{unit: u, globals: globals, views: make(map[types.Object]bool), reads: make(map[ast.Expr]bool)}
		for _, s := range u.files {
			if s.example() {
				continue
			}
			ast.Inspect(s.ast, func(n ast.Node) bool {
				w.note(n)
				return true
			})
			ast.Inspect(s.ast, func(n ast.Node) bool {
				for e, what := range w.in(n, s.library()) {
					report(s.path, t.line(e), "%s %s", types.ExprString(e), what)
				}
				return true
			})
		}
	}
}

// refuseGlobal says why the i-th name of a declaration may not be a
// package-level variable; "" if it may.
func refuseGlobal(u *unit, spec *ast.ValueSpec, i int) string {
	name := spec.Names[i]
	if name.Name == "_" {
		return ""
	}
	if len(spec.Values) != len(spec.Names) {
		return "has no value of its own"
	}
	value := spec.Values[i]
	if call, ok := value.(*ast.CallExpr); ok {
		p, f, _ := u.imported(call.Fun)
		isError := p == "errors" && f == "New" || p == "fmt" && f == "Errorf"
		if isError && strings.HasPrefix(strings.ToLower(name.Name), "err") {
			return ""
		}
	}
	if name.IsExported() {
		return "an exported variable is an error value"
	}
	_, literal := value.(*ast.CompositeLit)
	if call, ok := value.(*ast.CallExpr); ok { // a conversion: []byte("text")
		_, literal = call.Fun.(*ast.ArrayType)
	}
	if obj := u.info.Defs[name]; obj != nil {
		switch obj.Type().Underlying().(type) {
		case *types.Array:
			return ""
		case *types.Slice, *types.Map, *types.Struct:
			if literal {
				return ""
			}
		}
	}
	return "is neither an error value nor a table"
}

// writes finds what changes package-level variables.
type writes struct {
	unit    *unit
	globals map[types.Object]bool
	views   map[types.Object]bool // local names of a row: row := &table[i]
	reads   map[ast.Expr]bool     // their definitions, and where one stands before a dot or after a star
}

// note remembers the views that a node defines, and where a view may stand.
func (w writes) note(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, e := range n.Lhs {
			id, ok := e.(*ast.Ident)
			if !ok || len(n.Lhs) != len(n.Rhs) {
				continue
			}
			obj := w.unit.info.Defs[id]
			if addr, ok := n.Rhs[i].(*ast.UnaryExpr); ok && obj != nil && addr.Op == token.AND && w.global(addr.X) {
				w.views[obj] = true
				w.reads[addr] = true
			}
		}
	case *ast.SelectorExpr:
		w.reads[n.X] = true
	case *ast.StarExpr:
		w.reads[n.X] = true
	}
}

// root tells what e is a part of: a package-level variable of this package, or
// one that another package exports.
func (w writes) root(e ast.Expr) (own, imported bool) {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			if _, _, ok := w.unit.imported(x); ok {
				return false, true
			}
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.Ident:
			obj := w.unit.info.Uses[x]
			return w.globals[obj] || w.views[obj], false
		default:
			return false, false
		}
	}
}

// global reports whether e is a part of a global of this package.
func (w writes) global(e ast.Expr) bool {
	own, _ := w.root(e)
	return own
}

// target reports whether assigning to e changes a global of any package.
func (w writes) target(e ast.Expr) bool {
	own, imported := w.root(e)
	return own || imported
}

// handle reports whether e is a whole slice or map that is global, or a slice
// of a global array: whoever has it can write to the global.
func (w writes) handle(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return w.handle(x.X)
	case *ast.SliceExpr:
		return w.global(x.X)
	case *ast.Ident:
		obj := w.unit.info.Uses[x]
		if !w.globals[obj] {
			return false
		}
		switch obj.Type().Underlying().(type) {
		case *types.Slice, *types.Map:
			return true
		}
	}
	return false
}

// in returns the writes of one node, and in the library also the places that
// hand out the means to write.
func (w writes) in(n ast.Node, library bool) map[ast.Expr]string {
	out := make(map[ast.Expr]string)
	target := func(e ast.Expr) {
		if e != nil && w.target(e) {
			out[e] = "is assigned to"
		}
	}
	kept := func(values ...ast.Expr) {
		for _, v := range values {
			if library && w.handle(v) {
				out[v] = "is handed out, so that others can write to it"
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			target(e)
		}
		kept(n.Rhs...)
	case *ast.IncDecStmt:
		target(n.X)
	case *ast.RangeStmt:
		target(n.Key)
		target(n.Value)
	case *ast.UnaryExpr:
		if n.Op == token.AND && w.target(n.X) && !w.reads[n] {
			out[n.X] = "has its address taken"
		}
	case *ast.CallExpr:
		if len(n.Args) > 0 && w.global(n.Args[0]) && w.writesFirst(n.Fun) {
			out[n.Args[0]] = "is written to by " + types.ExprString(n.Fun)
		}
	case *ast.SelectorExpr:
		if sel := w.unit.info.Selections[n]; sel != nil && sel.Kind() == types.MethodVal && w.global(n.X) &&
			w.pointerMethod(n, sel) {
			out[n.X] = "has its address taken by method " + n.Sel.Name
		}
	case *ast.Ident:
		if library && w.views[w.unit.info.Uses[n]] && !w.reads[n] {
			out[n] = "is handed out, so that others can write to it"
		}
	case *ast.ReturnStmt:
		kept(n.Results...)
	case *ast.ValueSpec:
		kept(n.Values...)
	case *ast.CompositeLit:
		kept(n.Elts...)
	case *ast.KeyValueExpr:
		kept(n.Value)
	}
	return out
}

// pointerMethod reports whether a call of the method hands it the address of a
// global, be it as a view.
func (w writes) pointerMethod(n *ast.SelectorExpr, sel *types.Selection) bool {
	id, _ := n.X.(*ast.Ident)
	view := w.views[w.unit.info.Uses[id]]
	_, onPointer := sel.Obj().Type().(*types.Signature).Recv().Type().(*types.Pointer)
	_, isPointer := sel.Recv().(*types.Pointer)
	return onPointer && (view || !isPointer)
}

// writesFirst reports whether a function writes to its first argument: the
// builtins that do, and the functions of the standard library that sort or
// rearrange a slice or change a map.
func (w writes) writesFirst(fun ast.Expr) bool {
	if id, ok := fun.(*ast.Ident); ok {
		b, ok := w.unit.info.Uses[id].(*types.Builtin)
		return ok && slices.Contains([]string{"append", "clear", "copy", "delete"}, b.Name())
	}
	p, name, _ := w.unit.imported(fun)
	if p != "slices" && p != "sort" && p != "maps" {
		return false
	}
	for _, verb := range []string{
		"Compact", "Copy", "Delete", "Float64s", "Insert", "Ints", "Replace", "Reverse", "Slice", "Sort", "Stable", "Strings",
	} {
		if strings.HasPrefix(name, verb) && !strings.HasSuffix(name, "AreSorted") && name != "SliceIsSorted" {
			return true
		}
	}
	return false
}
