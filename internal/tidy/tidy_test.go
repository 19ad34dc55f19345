//go:build !race

package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/joblife/joblife"

// layout lists every package and what it may import beside the standard library
// and forAll: packages of this module by their folder, and modules by the names
// of thirdParty. Tests may import every package, testify and rapid.
var layout = map[string]string{
	"":                       "",
	"perilog":                "perilog/internal/run " + belowPerilog,
	"perilog/housekeeping":   "perilog perilog/internal/run " + belowPerilog,
	"perilog/exec":           "idset rset jobstate/jobid eventlog",
	"perilog/internal/run":   "idset eventlog jobstate",
	"purge":                  "btree jobstate jobstate/jobid jobstate/fsd eventlog",
	"purge/dirstore":         "purge eventlog eventlog/logfile jobstate jobstate/jobid",
	"purge/storetest":        "purge eventlog jobstate jobstate/jobid",
	"rset":                   "idset rset/hostlist rset/internal/children eventlog",
	"rset/hostlist":          "",
	"rset/alloc":             "rset idset jobstate/jobid eventlog btree",
	"rset/pool":              "rset idset rset/hostlist rset/internal/children jobstate/jobid jobstate/jobspec eventlog btree",
	"rset/internal/children": "idset",
	"jobstate":               "eventlog idset jobstate/jobid jobstate/fsd",
	"jobstate/jobid":         "",
	"jobstate/fsd":           "",
	"jobstate/jobspec":       "",
	"jobstate/archive":       "jobstate/jobid",
	"eventlog":               "",
	"eventlog/logfile":       "eventlog sys",
	"idset":                  "roaring",
	"internal/guard":         "",
	"internal/jsonscan":      "",
	"internal/jsonobj":       "",
	"internal/refdata":       "",
	"internal/tidy":          "",
}

// belowPerilog is rset, jobstate and what is below them.
const belowPerilog = "rset rset/hostlist jobstate jobstate/jobid jobstate/fsd idset eventlog"

// forAll may be imported by every package, and by those that come later here.
var forAll = []string{"internal/guard", "internal/jsonscan", "internal/jsonobj"}

var thirdParty = map[string]string{
	"roaring": "github.com/RoaringBitmap/roaring/v2", "btree": "github.com/google/btree", "sys": "golang.org/x/sys",
	"testify": "github.com/stretchr/testify", "rapid": "pgregory.net/rapid",
}

// topLevel is what the root may hold beside packages.
const topLevel = " .ci .git .github .gitignore CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md REQUIREMENTS.md" +
	" doc.go examples go.mod go.sum go.work go.work.sum internal "

const exampleNames = " boltstore cluster embed manager partialrelease peers purge replay sched simulate "

// banned maps imports that the library does without, with all below them, to
// the folders that may have them.
var banned = map[string]string{
	"os": "eventlog/logfile purge/dirstore", "syscall": "eventlog/logfile", "testing": "", "net": "", "log": "", "flag": "",
	"expvar": "", "sync": "", "unsafe": "", "io/ioutil": "", "math/rand": "", "crypto/rand": "", "C": "",
}

// Lines that library files, test files and all files do not have.
var (
	libraryLines = map[string]*regexp.Regexp{
		"clock":     regexp.MustCompile(`\btime\.(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTimer|NewTicker)\b`),
		"goroutine": regexp.MustCompile(`^\s+go [a-z]`),
		"init":      regexp.MustCompile(`^func init\(`),
		"print":     regexp.MustCompile(`\bfmt\.Print|^\s+print(ln)?\(`),
		// What users see of another module: in a signature, in an exported field
		// or name, as an alias, and embedded.
		"api": regexp.MustCompile(`^(func (\((\w+ )?\*?[A-Z].*?\) )?[A-Z][^{]*|(type|var|const) [A-Z].*|\t[A-Z]\w*[ (].*|type \w+ = \*?|\t\*?)\b(roaring|btree|unix|windows)\.[A-Z]`),
	}
	testLines = map[string]*regexp.Regexp{
		"clock": regexp.MustCompile(`\btime\.(Now|Sleep)\b`),
		"skip":  regexp.MustCompile(`\.(Skip|SkipNow|Skipf)\((""|)\)`),
	}
	allLines = map[string]*regexp.Regexp{"marker": regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)}
)

var requirement = regexp.MustCompile(`\b(PR|HK|PL|SM|EL|PU|ID|HL|RS|MG)-[0-9]+\b`)

// A file is one text file of the tree.
type file struct {
	name, dir     string // dir is "" in the root
	lines         []string
	syntax        *ast.File // nil unless it is Go
	test, library bool      // library: a user links it
}

// A tree is what the rules judge, and what they found.
type tree struct {
	fset  *token.FileSet
	files []*file
	found []string
}

func (t *tree) report(f *file, line int, rule, format string, args ...any) {
	t.found = append(t.found, fmt.Sprintf("%s:%d: %s: %s", f.name, line, rule, fmt.Sprintf(format, args...)))
}

func (t *tree) line(n ast.Node) int { return t.fset.Position(n.Pos()).Line }

// within reports whether a folder is dir or lies below it.
func within(folder, dir string) bool { return folder == dir || strings.HasPrefix(folder, dir+"/") }

// check runs all rules over a file tree and returns what they find.
func check(fsys fs.FS) ([]string, error) {
	t := &tree{fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && name != "." && !strings.Contains(name, "/") {
			t.topLevelName(name)
		}
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case !d.IsDir() && (slices.Contains([]string{".go", ".md", ".yml"}, path.Ext(name)) || within(name, ".ci") || name == "Makefile"):
			return t.add(fsys, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.requirements()
	for _, f := range t.files {
		t.text(f)
		if f.syntax != nil {
			t.place(f)
			t.imports(f)
		}
		if f.library {
			t.declarations(f)
		}
	}
	slices.Sort(t.found)
	return t.found, nil
}

func (t *tree) add(fsys fs.FS, name string) error {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	f := &file{name: name, dir: strings.TrimPrefix(path.Dir(name), "."), lines: strings.Split(string(b), "\n")}
	t.files = append(t.files, f)
	if path.Ext(name) == ".go" {
		f.test = strings.HasSuffix(name, "_test.go")
		f.library = !f.test && !within(f.dir, "examples") && f.dir != "internal/refdata"
		f.syntax, err = parser.ParseFile(t.fset, name, b, parser.ParseComments|parser.SkipObjectResolution)
	}
	return err
}

// topLevelName: the root shows packages and the usual files. What the go
// command leaves there is ignored, as git does.
func (t *tree) topLevelName(name string) {
	isPackage := slices.ContainsFunc(slices.Collect(maps.Keys(layout)), func(dir string) bool { return within(dir, name) })
	left := slices.Contains([]string{".test", ".out", ".prof"}, path.Ext(name)) || strings.HasPrefix(name, "coverage.")
	if !isPackage && !left && !strings.Contains(topLevel, " "+name+" ") {
		t.report(&file{name: name}, 0, "layout", "no such name belongs in the root")
	}
}

// requirements: REQUIREMENTS.md defines each requirement that the tree cites.
func (t *tree) requirements() {
	defined := make(map[string]bool)
	for _, f := range t.files {
		for _, text := range f.lines {
			if f.name == "REQUIREMENTS.md" && strings.HasPrefix(text, "- **") {
				defined[requirement.FindString(text)] = true
			}
		}
	}
	for _, f := range t.files {
		for i, text := range f.lines {
			if !strings.Contains(text, "-") || f.dir == "internal/tidy" {
				continue // so that most lines cost little
			}
			for _, id := range requirement.FindAllString(text, -1) {
				if !defined[id] {
					t.report(f, i+1, "requirement", "%s is not in REQUIREMENTS.md", id)
				}
			}
		}
	}
}

// text: a Go file keeps its limit of lines, and no line is one that its kind of
// file does not have. Tests that soak may read the clock, and those of examples.
func (t *tree) text(f *file) {
	limit := 600
	if f.test {
		limit = 900
	}
	if n := len(f.lines) - 1; f.syntax != nil && n > limit {
		t.report(f, n, "length", "more than %d lines", limit)
	}
	timed := f.test && (strings.Contains(f.name, "soak") || strings.Contains(f.name, "attack") || within(f.dir, "examples"))
	for i, text := range f.lines {
		if text == "" {
			continue
		}
		code, _, _ := strings.Cut(text, "//")
		find := func(lines map[string]*regexp.Regexp, in string) {
			for rule, re := range lines {
				if found := re.FindString(in); found != "" && !(rule == "clock" && timed) {
					t.report(f, i+1, rule, "%s", strings.TrimSpace(found))
				}
			}
		}
		find(allLines, text)
		if f.test && f.dir != "internal/tidy" {
			find(testLines, code)
		}
		if f.library {
			find(libraryLines, code)
		}
	}
}

// place: a package is where the table has it, and is told in its doc.go, unless
// only this module imports it.
func (t *tree) place(f *file) {
	example, isExample := strings.CutPrefix(f.dir, "examples/")
	example, _, _ = strings.Cut(example, "/")
	if _, ok := layout[f.dir]; !ok && !(isExample && strings.Contains(exampleNames, " "+example+" ")) {
		t.report(f, 1, "layout", "no package is planned here")
	}
	if !isExample && !slices.Contains(strings.Split(f.dir, "/"), "internal") && !slices.ContainsFunc(t.files, func(doc *file) bool {
		return doc.name == path.Join(f.dir, "doc.go") && doc.syntax.Doc.Text() != ""
	}) {
		t.report(f, 1, "doc", "the package is not told in doc.go")
	}
}

func (t *tree) imports(f *file) {
	for _, spec := range f.syntax.Imports {
		p := strings.Trim(spec.Path.Value, "\"`")
		for name, but := range banned {
			if f.library && within(p, name) && !(p == name && slices.Contains(strings.Fields(but), f.dir)) {
				t.report(f, t.line(spec), "import", "%s is not for the library", p)
			}
		}
		if why := refuse(f, p); why != "" {
			t.report(f, t.line(spec), "import", "%s: %s", p, why)
		}
	}
}

// refuse says why a file may not import a package; "" if it may.
func refuse(f *file, p string) string {
	dir, inModule := strings.CutPrefix(p, module+"/")
	first, _, _ := strings.Cut(p, "/")
	allowed := strings.Fields(layout[f.dir])
	if f.test {
		allowed = append(allowed, "testify", "rapid")
	}
	isAllowed := slices.ContainsFunc(allowed, func(name string) bool {
		return p == module+"/"+name || thirdParty[name] != "" && within(p, thirdParty[name])
	})
	switch {
	case isAllowed, !strings.Contains(first, "."):
		return ""
	case within(f.dir, "examples"):
		if within(dir, "internal") && !f.test {
			return "an example is what a user could write"
		}
		return ""
	case inModule && f.test && !within(dir, "examples"):
		return ""
	case slices.Contains(forAll, dir) && !slices.Contains(forAll[:slices.Index(forAll, dir)+1], f.dir):
		return ""
	}
	return "the table has no such arrow"
}

// declarations: what is exported has a comment. A package-level variable is an
// error value or an unexported table that is written out where it is declared,
// and no line of its package writes to it.
func (t *tree) declarations(f *file) {
	told := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(docs, func(c *ast.CommentGroup) bool { return c.Text() != "" }) {
			t.report(f, t.line(name), "comment", "%s has none", name.Name)
		}
	}
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && exportedMethod.MatchString(f.lines[t.line(fn)-1]) {
			told(fn.Name, fn.Doc)
		}
		gen, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if gen.Lparen.IsValid() {
					gen.Doc = nil // one comment is not enough for several types
				}
				told(spec.Name, gen.Doc, spec.Doc, spec.Comment)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					told(name, gen.Doc, spec.Doc, spec.Comment)
				}
				if gen.Tok == token.VAR && spec.Names[0].Name != "_" {
					t.global(f, spec)
				}
			}
		}
	}
}

// What is no method of an unexported type, and the values of errors and tables.
var (
	exportedMethod = regexp.MustCompile(`^func (\((\w+ )?\*?[A-Z].*?\) )?[A-Z]`)
	errorValue     = regexp.MustCompile(`^\s*(var )?[eE]rr\w* += (errors\.New\(|fmt\.Errorf\(|guard\.Cause\(|\w+\.Err[A-Z])`)
	tableValue     = regexp.MustCompile(`^\s*(var )?[a-z]\w* += ((map)?\[.*[{(]|[\w.]+\{)`)
)

// global judges a package-level variable.
func (t *tree) global(f *file, spec *ast.ValueSpec) {
	line := t.line(spec)
	if text := f.lines[line-1]; !errorValue.MatchString(text) && !tableValue.MatchString(text) {
		t.report(f, line, "global", "%s is neither an error value nor a table", spec.Names[0].Name)
	}
	for _, name := range spec.Names {
		written := regexp.MustCompile(`^\s+` + name.Name + `(\[.*\]|\.\w+)* ?([-+*/|&^]?=|\+\+|--)|\b(append|clear|copy|delete)\(` + name.Name + `\b`)
		for _, other := range t.files {
			for i, text := range other.lines {
				if other.dir == f.dir && strings.Contains(text, name.Name) && written.MatchString(text) && !(other == f && i+1 == line) {
					t.report(other, i+1, "global", "%s is written to", name.Name)
				}
			}
		}
	}
}

// folderCycle returns two folders, neither inside the other, each of which
// imports the other by way of a folder inside it; "" if there are none.
func folderCycle(table map[string]string) string {
	arrows := make(map[[2]string]bool)
	for from, row := range table {
		for _, to := range strings.Fields(row) {
			for f := from; f != "" && f != "."; f = path.Dir(f) {
				for g := to; g != "."; g = path.Dir(g) {
					arrows[[2]string{f, g}] = !within(f, g) && !within(g, f)
				}
			}
		}
	}
	first := ""
	for a, apart := range arrows {
		if text := a[0] + " and " + a[1]; apart && arrows[[2]string{a[1], a[0]}] && (first == "" || text < first) {
			first = text
		}
	}
	return first
}

func TestTheTableNamesWhatItHas(t *testing.T) {
	for dir, row := range layout {
		for _, name := range strings.Fields(row) {
			if _, ok := layout[name]; !ok && thirdParty[name] == "" {
				t.Errorf("%s: %s is in no row", dir, name)
			}
		}
	}
}

func TestNoFolderImportsOneThatImportsIt(t *testing.T) {
	if cycle := folderCycle(layout); cycle != "" {
		t.Error(cycle)
	}
}

func TestTheRepositoryIsTidy(t *testing.T) {
	root := os.DirFS("../..")
	if _, err := fs.Stat(root, "internal/tidy/tidy_test.go"); err != nil {
		t.Fatalf("this is not the root of the repository: %v", err)
	}
	found, err := check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}
