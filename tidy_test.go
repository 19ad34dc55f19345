package joblife_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// This file says how the repository is laid out, and reads a file tree so that
// the rules in tidy_rules_test.go can judge it. tidy_proof_test.go shows of
// each rule that it can fail.

// modulePath is the path of the root module.
const modulePath = "github.com/joblife/joblife"

// layout lists every package and what it may import beside the standard
// library: packages of this module by their folder, and modules by the short
// names of thirdParty. A package that is not here fails, and so does an arrow.
//
// internal/jsonscan depends on nothing, and is for those that read JSON.
var layout = map[string]string{
	"":                 "",
	"idset":            "roaring internal/guard",
	"eventlog":         "internal/jsonscan internal/guard",
	"eventlog/logfile": "eventlog internal/guard",
	"rset":             "idset rset/hostlist rset/internal/children eventlog internal/jsonscan internal/jsonobj internal/guard",
	"rset/hostlist":    "internal/guard",
	"rset/alloc":       "rset idset jobstate/jobid eventlog btree internal/jsonscan internal/jsonobj internal/guard",
	"rset/pool": "rset idset rset/hostlist rset/internal/children jobstate/jobid jobstate/jobspec eventlog btree" +
		" internal/jsonscan internal/jsonobj internal/guard",
	"rset/internal/children": "idset",
	"jobstate":               "eventlog idset jobstate/jobid internal/jsonscan internal/jsonobj internal/guard",
	"jobstate/jobid":         "internal/guard",
	"jobstate/fsd":           "internal/guard",
	"jobstate/jobspec":       "internal/jsonscan internal/jsonobj internal/guard",
	"jobstate/exec":          "idset rset jobstate/jobid internal/jsonscan internal/jsonobj internal/guard",
	"jobstate/archive":       "jobstate/jobid internal/guard",
	"jobstate/manager":       managerImports,
	"jobstate/manager/managertest": managerImports + " jobstate/manager eventlog/logfile rset/pool" +
		" jobstate/archive purge/dirstore rapid",
	"perilog":           "idset rset eventlog jobstate jobstate/jobid jobstate/fsd internal/jsonscan internal/jsonobj internal/guard",
	"purge":             "btree jobstate/jobid eventlog jobstate/fsd internal/guard",
	"purge/dirstore":    "purge eventlog eventlog/logfile jobstate/jobid internal/guard",
	"purge/storetest":   "purge eventlog jobstate/jobid",
	"internal/guard":    "",
	"internal/jsonscan": "",
	"internal/jsonobj":  "internal/jsonscan",
	"internal/refdata":  "",
}

// managerImports is everything but logfile, pool, archive and dirstore.
const managerImports = "idset eventlog rset rset/hostlist rset/alloc jobstate jobstate/jobid jobstate/fsd" +
	" jobstate/jobspec jobstate/exec perilog purge internal/jsonscan internal/jsonobj internal/guard"

// thirdParty lists the modules that the root module may require.
var thirdParty = map[string]string{
	"roaring": "github.com/RoaringBitmap/roaring/v2",
	"btree":   "github.com/google/btree",
	"testify": "github.com/stretchr/testify",
	"rapid":   "pgregory.net/rapid",
}

// testThirdParty may be imported by every test file.
var testThirdParty = []string{"testify", "rapid"}

// exampleNames lists the folders of examples/.
var exampleNames = []string{"simulate", "replay", "sched", "partialrelease", "purge", "cluster", "peers"}

// topLevel lists the names that may stand in the root beside the packages. All
// other Go files in the root are tests.
var topLevel = []string{
	".ci", ".git", ".github", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
	"doc.go", "examples", "go.mod", "go.sum", "go.work", "go.work.sum", "internal", "testdata",
}

// doesIO lists the packages that may read and write files.
var doesIO = []string{"eventlog/logfile", "purge/dirstore"}

// A finding is one place where the repository breaks a rule.
type finding struct {
	rule, file string
	line       int
	text       string
}

func (f finding) String() string {
	at := f.file
	if f.line > 0 {
		at = fmt.Sprintf("%s:%d", f.file, f.line)
	}
	return fmt.Sprintf("%s: %s: %s", at, f.rule, f.text)
}

// A source is one file of the tree.
type source struct {
	path string // from the root, with slashes
	dir  string // "" for the root
	src  []byte
	text bool      // valid UTF-8 without NUL
	data bool      // under a testdata folder, which the go command ignores
	ast  *ast.File // nil unless it is Go and no data
	test bool      // its name ends in _test.go
	unit *unit     // what it is checked with; nil unless it is Go
}

// example reports whether the file belongs to the examples, which are programs:
// they read clocks and files, print, and start goroutines.
func (s *source) example() bool { return within(s.dir, "examples") }

// library reports whether the file is Go code that a user of the library links.
func (s *source) library() bool {
	return s.ast != nil && !s.test && !s.example() && s.dir != "internal/refdata"
}

// A unit is what the compiler would see as one package, tests included.
type unit struct {
	dir   string
	files []*source
	info  types.Info
}

// A tree is a file tree, parsed and with its identifiers resolved.
type tree struct {
	fset  *token.FileSet
	files []*source
	units []*unit
	top   []string // the names in the root
}

// within reports whether a folder is dir or lies below it.
func within(folder, dir string) bool { return folder == dir || strings.HasPrefix(folder, dir+"/") }

// load reads and parses every file of the tree, but for what git ignores.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	ignored, err := ignoreRules(fsys)
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case ignored(name), d.IsDir() && d.Name() == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.Contains(name, "/") {
			t.top = append(t.top, name)
		}
		if d.IsDir() {
			return nil
		}
		return t.add(fsys, name)
	})
	if err != nil {
		return nil, err
	}
	t.resolve()
	return t, nil
}

// add reads one file and parses it where it is Go.
func (t *tree) add(fsys fs.FS, name string) error {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	s := &source{path: name, dir: strings.TrimPrefix(path.Dir(name), "."), src: b}
	s.text = utf8.Valid(b) && !bytes.Contains(b, []byte{0})
	s.data = slices.Contains(strings.Split(name, "/"), "testdata")
	s.test = strings.HasSuffix(name, "_test.go")
	t.files = append(t.files, s)
	if path.Ext(name) != ".go" || s.data {
		return nil
	}
	s.ast, err = parser.ParseFile(t.fset, name, b, parser.ParseComments|parser.SkipObjectResolution)
	return err
}

// ignoreRules reads .gitignore: comments, names for every folder, paths from the
// root, and paths after "**/". It does not know exceptions.
func ignoreRules(fsys fs.FS) (func(name string) bool, error) {
	b, err := fs.ReadFile(fsys, ".gitignore")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var patterns []string
	for _, p := range strings.Split(string(b), "\n") {
		if p = strings.TrimSpace(p); p == "" || p[0] == '#' {
			continue
		}
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf(".gitignore: %q: %w", p, err)
		}
		patterns = append(patterns, strings.TrimSuffix(p, "/"))
	}
	return func(name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return ignores(p, name) })
	}, nil
}

// ignores reports whether a pattern of .gitignore matches a path.
func ignores(pattern, name string) bool {
	tail, anywhere := strings.CutPrefix(pattern, "**/")
	if anywhere || !strings.Contains(pattern, "/") {
		elems := strings.Split(name, "/")
		depth := min(len(elems), 1+strings.Count(tail, "/"))
		name = strings.Join(elems[len(elems)-depth:], "/")
	}
	match, _ := path.Match(strings.TrimPrefix(tail, "/"), name)
	return match
}

// resolve groups the files into units and finds what each identifier denotes.
// Imported packages stay opaque, so that this needs no build and no network;
// what follows from their types is unknown, and the rules do without.
func (t *tree) resolve() {
	units := make(map[string]*unit)
	for _, s := range t.files {
		if s.ast == nil {
			continue
		}
		key := s.dir + ":" + s.ast.Name.Name
		if units[key] == nil {
			units[key] = &unit{dir: s.dir}
			t.units = append(t.units, units[key])
		}
		s.unit = units[key]
		s.unit.files = append(s.unit.files, s)
	}
	for _, u := range t.units {
		u.info = types.Info{
			Defs:       make(map[*ast.Ident]types.Object),
			Uses:       make(map[*ast.Ident]types.Object),
			Selections: make(map[*ast.SelectorExpr]*types.Selection),
		}
		files := make([]*ast.File, len(u.files))
		for i, s := range u.files {
			files[i] = s.ast
		}
		conf := types.Config{Importer: opaque{}, Error: func(error) {}}
		// The error says that the imports are opaque, which is known.
		_, _ = conf.Check(u.dir, t.fset, files, &u.info)
	}
}

// opaque is an importer of packages that have a name and nothing in them.
type opaque struct{}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

func (opaque) Import(importPath string) (*types.Package, error) {
	elems := strings.Split(importPath, "/")
	if last := len(elems) - 1; last > 0 && majorVersion.MatchString(elems[last]) {
		elems = elems[:last]
	}
	return types.NewPackage(importPath, elems[len(elems)-1]), errors.New("opaque")
}

// line returns the line of a node.
func (t *tree) line(n ast.Node) int { return t.fset.Position(n.Pos()).Line }

// check runs all rules over a file tree and returns what they find, in the
// order of files and lines.
func check(fsys fs.FS) ([]finding, error) {
	t, err := load(fsys)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		rules[name](t, func(file string, line int, format string, args ...any) {
			out = append(out, finding{name, file, line, fmt.Sprintf(format, args...)})
		})
	}
	slices.SortFunc(out, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line),
			cmp.Compare(a.rule, b.rule), cmp.Compare(a.text, b.text))
	})
	return out, nil
}

// TestTheRepositoryIsTidy judges this repository by all rules.
func TestTheRepositoryIsTidy(t *testing.T) {
	root := os.DirFS(".")
	for _, name := range []string{"go.mod", "tidy_test.go", "examples/go.mod"} {
		if _, err := fs.Stat(root, name); err != nil {
			t.Fatalf("this is not the root of the repository: %v", err)
		}
	}
	found, err := check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}
