//go:build !race

package tidy

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// keptUnused has what the library exports although no other package and no Example uses it, with
// the reason. Before you add a name, look for its caller.
var keptUnused = map[string]string{
	"eventlog/logfile: ErrFailed":        "says that the log has to be opened again; only a disk that fails shows it",
	"eventlog/logfile: ReaderOptions.FS": "as Options.FS, for tests with a disk that fails",
	"loop: Stats.Storing":                "the first figure to look at when a manager is slow",
	"perilog/exec: Executor.KillTimeout": "a site with slow jobs needs more than the default",
	"perilog/exec: Refused.Note":         "a Refused converts to joblife.ExecRefused as a whole",
}

// required are methods that the standard library calls.
const required = "AppendText Error GoString MarshalJSON MarshalText String UnmarshalJSON UnmarshalText Unwrap"

// known are packages of others whose functions return our types.
const known = "cmp errors iter maps slices sync/atomic pgregory.net/rapid"

var (
	testFunc = regexp.MustCompile(`^(Test|Benchmark|Fuzz)`)
	rfc      = regexp.MustCompile(`\bRFC [0-9]+`)
)

// users are the packages that can use the library: what is built of a tree, and its examples. They
// are checked without most packages of others, so expressions of their types have none.
type users struct {
	fset  *token.FileSet
	files map[string][]*ast.File // by folder
	ours  map[string]*types.Package
	used  map[types.Object]bool
}

// unused returns what the packages of a tree export, and what of that has no user.
func unused(fsys fs.FS) (all, without []string, err error) {
	u := users{token.NewFileSet(), make(map[string][]*ast.File), make(map[string]*types.Package), make(map[types.Object]bool)}
	if err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return fs.SkipDir
		case path.Ext(name) != ".go" || has(forTests, path.Dir(name)):
			return nil
		}
		return u.parse(fsys, name)
	}); err != nil {
		return nil, nil, err
	}
	for dir := range u.files {
		_, _ = u.Import(path.Join(module, dir))
		u.check(path.Join(module, dir)+"_test", dir)
	}
	u.implementations()
	for dir := range layout {
		u.constants(dir)
		p := u.ours[path.Join(module, dir)]
		if p == nil || within(dir, "internal") {
			continue
		}
		for name, obj := range exported(p) {
			if name = dir + ": " + name; !u.used[obj] && !needsNone(obj) {
				without = append(without, name)
			}
			all = append(all, name)
		}
	}
	slices.Sort(without)
	return all, without, nil
}

// parse parses a file if this system builds it and it may use the library: of tests, only those
// with Examples, and those that import joblifetest, which is for them.
func (u *users) parse(fsys fs.FS, name string) error {
	ctxt := build.Default
	ctxt.OpenFile = func(name string) (io.ReadCloser, error) { return fsys.Open(name) }
	if ok, err := ctxt.MatchFile(path.Split(name)); err != nil || !ok {
		return err
	}
	b, err := fs.ReadFile(fsys, name)
	if err != nil || isTest(name) && !isExample(name) && !strings.Contains(string(b), module+"/joblifetest\"\n") {
		return err
	}
	syntax, err := parser.ParseFile(u.fset, name, b, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	if isExample(name) {
		syntax.Decls = slices.DeleteFunc(syntax.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Recv == nil && testFunc.MatchString(f.Name.Name)
		})
	}
	u.files[path.Dir(name)] = append(u.files[path.Dir(name)], syntax)
	return nil
}

func isTest(name string) bool    { return strings.HasSuffix(name, "_test.go") }
func isExample(name string) bool { return isTest(name) && strings.Contains(path.Base(name), "example") }

// Import returns a package of ours or one that is known.
func (u *users) Import(name string) (*types.Package, error) {
	if p, ok := u.ours[name]; ok {
		return p, nil
	}
	dir := strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
	switch {
	case has(known, name):
		return u.know(name)
	case !within(name, module) || u.files[path.Clean(dir)] == nil:
		return nil, errors.New("not ours")
	}
	u.ours[name] = u.check(name, path.Clean(dir))
	return u.ours[name], nil
}

// know checks what a package of others declares.
func (u *users) know(name string) (*types.Package, error) {
	found, err := build.Import(name, ".", 0)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, file := range found.GoFiles {
		syntax, err := parser.ParseFile(u.fset, filepath.Join(found.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, syntax)
	}
	config := types.Config{Importer: u, Error: func(error) {}, IgnoreFuncBodies: true}
	u.ours[name], _ = config.Check(name, u.fset, files, nil)
	return u.ours[name], nil
}

// check checks a package, or its tests, and notes what it uses of others.
func (u *users) check(name, dir string) *types.Package {
	var files []*ast.File
	for _, f := range u.files[dir] {
		if tests := strings.HasSuffix(name, "_test"); tests == strings.HasSuffix(f.Name.Name, "_test") && tests == isTest(u.fset.Position(f.Pos()).Filename) {
			files = append(files, f)
		}
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection)}
	config := types.Config{Importer: u, Error: func(error) {}} // with packages that are not known, there are many
	p, _ := config.Check(name, u.fset, files, info)
	for id, obj := range info.Uses {
		u.use(p, id, obj)
	}
	for sel, s := range info.Selections {
		t := s.Recv()
		for _, i := range s.Index()[:len(s.Index())-1] { // embedded fields
			f := elem(t).Underlying().(*types.Struct).Field(i)
			u.use(p, sel.Sel, f)
			t = f.Type()
		}
	}
	return p
}

// elem returns what a pointer points to.
func elem(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// use notes that a package uses an object at an identifier, and with it the types that its own has.
func (u *users) use(by *types.Package, at *ast.Ident, obj types.Object) {
	switch o := obj.(type) {
	case *types.Func:
		obj = o.Origin()
	case *types.Var:
		obj = o.Origin()
	}
	file := u.fset.Position(at.Pos()).Filename
	switch p := obj.Pkg(); {
	case p == nil || p == by || u.used[obj] || isTest(file) && !isExample(file) && p.Name() != "joblifetest":
		return
	}
	u.used[obj] = true
	for t := range named(obj.Type()) {
		u.use(by, at, t)
	}
}

// named yields the names in a type, but not those in what they stand for.
func named(t types.Type) iter.Seq[*types.TypeName] {
	return func(yield func(*types.TypeName) bool) {
		var walk func(types.Type)
		walk = func(t types.Type) {
			switch t := t.(type) {
			case *types.Named:
				_ = yield(t.Obj())
				for a := range t.TypeArgs().Types() {
					walk(a)
				}
			case *types.Signature:
				walk(t.Params())
				walk(t.Results())
			case *types.Tuple:
				for v := range t.Variables() {
					walk(v.Type())
				}
			case interface{ Elem() types.Type }: // a pointer, slice, map or the like
				walk(t.Elem())
			}
		}
		walk(t)
	}
}

// constants takes constants that are declared together as one name: if they are of one type, or
// are the words of an RFC that their comment names.
func (u *users) constants(dir string) {
	for _, f := range u.files[dir] {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			var group []types.Object
			for _, s := range g.Specs {
				for _, id := range s.(*ast.ValueSpec).Names {
					if obj := u.ours[path.Join(module, dir)].Scope().Lookup(id.Name); obj != nil {
						group = append(group, obj)
					}
				}
			}
			untyped := slices.ContainsFunc(group, func(o types.Object) bool { _, ok := o.Type().(*types.Named); return !ok })
			if slices.ContainsFunc(group, func(o types.Object) bool { return u.used[o] }) && (!untyped || rfc.MatchString(g.Doc.Text())) {
				for _, obj := range group {
					u.used[obj] = true
				}
			}
		}
	}
}

// exported returns what a package exports, by name. Methods of interfaces go with them.
func exported(p *types.Package) map[string]types.Object {
	names := make(map[string]types.Object)
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		names[name] = obj
		if t, ok := obj.(*types.TypeName); ok && !t.IsAlias() {
			members(names, name, t.Type())
		}
	}
	return names
}

// members adds the methods and fields of a type, and those of embedded types that are not exported.
func members(names map[string]types.Object, name string, t types.Type) {
	if n, ok := t.(*types.Named); ok {
		for m := range n.Methods() {
			if m.Exported() {
				names[name+"."+m.Name()] = m
			}
		}
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if f.Exported() {
				names[name+"."+f.Name()] = f
			} else if f.Embedded() {
				members(names, name, elem(f.Type()))
			}
		}
	}
}

// implementations takes as used what types of ours need for an interface of ours.
func (u *users) implementations() {
	var interfaces []*types.Interface
	var pointers []types.Type
	for _, p := range u.ours {
		for _, name := range p.Scope().Names() {
			t, ok := p.Scope().Lookup(name).(*types.TypeName)
			if !ok {
				continue
			} else if i, ok := t.Type().Underlying().(*types.Interface); ok {
				interfaces = append(interfaces, i)
			} else {
				pointers = append(pointers, types.NewPointer(t.Type()))
			}
		}
	}
	for _, i := range interfaces {
		for _, t := range pointers {
			for m := range i.Methods() {
				if types.Implements(t, i) {
					f, _, _ := types.LookupFieldOrMethod(t, true, m.Pkg(), m.Name())
					u.used[f] = true
				}
			}
		}
	}
}

// needsNone reports whether an object needs no user: a method that the standard library calls, or
// a field that says the same wherever it is.
func needsNone(obj types.Object) bool {
	switch o := obj.(type) {
	case *types.Func:
		return o.Signature().Recv() != nil && has(required, o.Name())
	case *types.Var:
		return o.IsField() && has(selfNamed, o.Name())
	}
	return false
}

// TestANameWithoutAUserIsFound has a use of each kind, and what is none.
func TestANameWithoutAUserIsFound(t *testing.T) {
	_, without, err := unused(fstest.MapFS{
		"idset/x.go": {Data: []byte(`package idset

type Result struct {
	Read, Unread, ID int
	Inner
}

type Inner struct{ Deep, Unseen int }

type Way uint8

const (
	There Way = iota
	Back
)

// The words of RFC 22.
const (
	Open  = "["
	Close = "]"
)

// Other words.
const (
	Dash  = "-"
	Comma = ","
)

type Set struct{ part }

type part struct{}

func (part) Promoted() {}
func (part) Forgotten() {}
func (Set) Do() {}
func (Set) Redo() {}
func (Set) String() string { return "" }

type Plain int

func Called() (*Result, []Plain) { return nil, nil }
func Shown() {}
func Tested() { Alone() }
func Alone() {}
`)},
		"idset/example_test.go": {Data: []byte("package idset_test\n\nimport \"" + module + "/idset\"\n\nfunc Example() { idset.Shown() }\n\nfunc TestX() { idset.Tested() }\n")},
		"idset/x_test.go":       {Data: []byte("package idset_test\n\nimport \"" + module + "/idset\"\n\nfunc ExampleX() { idset.Tested() }\n")},
		"examples/purge/main.go": {Data: []byte("package main\n\nimport (\n\t\"net/http\"\n\n\t\"" + module + `/idset"
)

type doer interface{ Do() }

func main() {
	r, _ := idset.Called()
	http.Error(nil, idset.Open+idset.Dash, r.Read+r.Deep+int(idset.Back))
	var s idset.Set
	s.Promoted()
}
`)},
	})
	want := "Alone Comma Inner.Unseen Result.Unread Set.Forgotten Set.Redo Tested"
	if got := strings.ReplaceAll(strings.Join(without, " "), "idset: ", ""); err != nil || got != want {
		t.Errorf("%v, want %s, %v", got, want, err)
	}
}

func TestEveryExportedNameHasAUser(t *testing.T) {
	all, without, err := unused(os.DirFS("../.."))
	if err != nil || len(all) < 1000 {
		t.Fatal(len(all), err)
	}
	for _, name := range without {
		if keptUnused[name] == "" {
			t.Errorf("%s: no other package and no Example uses it: unexport or delete it, or show it in an Example", name)
		}
	}
	for name := range keptUnused {
		if !slices.Contains(without, name) {
			t.Errorf("%s: it has a user, or is gone: take it out of keptUnused", name)
		}
	}
	t.Log(len(all), "exported names,", len(without), "without a user")
}
