//go:build !race

package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// api judges what a file exports: users can name and read about nothing of an internal
// package, and nothing of this one that is not exported.
func (f file) api(fset *token.FileSet, syntax *ast.File) {
	a := surface{file: f, fset: fset, inner: make(map[string]bool)}
	for _, spec := range syntax.Imports {
		if p := strings.Trim(spec.Path.Value, "\"`"); has(strings.ReplaceAll(p, "/", " "), "internal") {
			a.inner[path.Base(p)] = true
		}
	}
	for _, d := range syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && a.receiver(d.Recv) {
				a.typ(d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				a.spec(spec)
			}
		}
		a.params = nil
	}
}

// A surface is what a file exports.
type surface struct {
	file
	fset   *token.FileSet
	inner  map[string]bool // the internal packages that the file imports
	params []string        // the type parameters of the declaration at hand
}

// receiver takes the type parameters of a receiver, and reports whether its type is exported.
func (a *surface) receiver(list *ast.FieldList) bool {
	if list == nil {
		return true
	}
	exported := false
	ast.Inspect(list.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported || len(a.params) == 0 && id.IsExported()
			a.params = append(a.params, id.Name)
		}
		return true
	})
	return exported
}

func (a *surface) spec(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if a.params = nil; s.Name.IsExported() {
			a.fields(s.TypeParams, true)
			a.typ(s.Type)
		}
	case *ast.ValueSpec:
		if slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
			a.typ(s.Type)
			for _, v := range s.Values {
				if sel, ok := v.(*ast.SelectorExpr); ok {
					a.typ(sel)
				}
			}
		}
	}
}

// fields judges parameters, results, exported fields, embedded types and type parameters.
func (a *surface) fields(list *ast.FieldList, all bool) {
	if list == nil {
		return
	}
	for _, f := range list.List {
		for _, name := range f.Names {
			if all {
				a.params = append(a.params, name.Name)
			}
		}
		if all || len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
			a.typ(f.Type)
		}
	}
}

// typ judges a type.
func (a *surface) typ(t ast.Expr) {
	if t == nil {
		return
	}
	ast.Inspect(t, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			n.Fields.List = slices.DeleteFunc(n.Fields.List, func(f *ast.Field) bool { return len(f.Names) == 0 && hidden(f.Type) })
			a.fields(n.Fields, false)
		case *ast.InterfaceType:
			a.fields(n.Methods, false)
		case *ast.FuncType:
			a.fields(n.TypeParams, true)
			a.fields(n.Params, true)
			a.fields(n.Results, true)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && a.inner[x.Name] {
				a.report(a.fset.Position(n.Pos()).Line, "api", "%s.%s is of an internal package", x.Name, n.Sel.Name)
			}
		case *ast.Ident:
			if !n.IsExported() && types.Universe.Lookup(n.Name) == nil && !slices.Contains(a.params, n.Name) {
				a.report(a.fset.Position(n.Pos()).Line, "api", "%s is not exported", n.Name)
			}
		default:
			return true
		}
		return false
	})
}

// hidden reports whether what is embedded is a type of this package that is not exported:
// nobody sees its name.
func hidden(t ast.Expr) bool {
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	id, ok := t.(*ast.Ident)
	return ok && !id.IsExported()
}
