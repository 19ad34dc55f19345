//go:build !race

package tidy

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
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
	".":                    "btree " + belowRoot,
	"loop":                 ". perilog perilog/exec rset/alloc idset jobstate jobstate/jobid eventlog",
	"joblifetest":          ". " + belowRoot + " eventlog/logfile rset/pool rset/sched jobstate/archive purge/dirstore rapid",
	"perilog":              belowPerilog,
	"perilog/exec":         "perilog rset jobstate jobstate/jobid idset eventlog btree",
	"purge":                "btree jobstate jobstate/jobid eventlog",
	"purge/dirstore":       "eventlog eventlog/logfile jobstate/jobid",
	"purge/boltstore":      ". purge jobstate jobstate/jobid eventlog/logfile bbolt",
	"rset":                 "idset rset/hostlist rset/children eventlog",
	"rset/hostlist":        "",
	"rset/children":        "idset",
	"rset/alloc":           "rset idset jobstate/jobid eventlog btree",
	"rset/pool":            "rset idset rset/hostlist rset/children jobstate/jobid jobstate/jobspec eventlog btree",
	"rset/sched":           "rset rset/alloc rset/pool rset/children idset jobstate/jobid jobstate/jobspec eventlog btree",
	"jobstate":             "eventlog idset jobstate/jobid jobstate/fsd",
	"jobstate/jobid":       "",
	"jobstate/fsd":         "",
	"jobstate/jobspec":     "",
	"jobstate/archive":     "jobstate/jobid",
	"eventlog":             "",
	"eventlog/logfile":     "eventlog sys",
	"idset":                "roaring",
	"internal/attack":      "",
	"internal/bomb":        "internal/race",
	"internal/conformance": "",
	"internal/disk":        "eventlog/logfile internal/attack internal/race",
	"internal/guard":       "",
	"internal/jsonobj":     "internal/guard",
	"internal/logline":     "internal/jsonobj",
	"internal/mutants":     "",
	"internal/race":        "",
	"internal/refdata":     "",
	"internal/syncdir":     "",
	"internal/tidy":        "",
}

const (
	belowPerilog = "rset rset/hostlist jobstate jobstate/jobid jobstate/fsd idset eventlog"
	belowRoot    = "perilog perilog/exec purge rset/alloc rset/children jobstate/jobspec " + belowPerilog

	// forAll is what every package outside internal may import.
	forAll = "internal/guard internal/jsonobj internal/logline internal/syncdir"

	// forTests is what only tests import.
	forTests = "internal/attack internal/bomb internal/disk internal/mutants internal/race internal/refdata"

	// topLevel is what the root may hold beside packages and Go files, and the page that
	// "go run ./examples/simulate" writes.
	topLevel = ".ci .git .github .gitignore CHANGELOG.md CONFORMANCE.md CONTRIBUTING.md LICENSE MEASURED.md Makefile README.md REQUIREMENTS.md SECURITY.md" +
		" docs examples go.mod go.sum go.work go.work.sum internal simulate.html"

	exampleNames = "cluster embed httpd internal manager partialrelease peers purge replay sched simulate tutorial"
)

var thirdParty = map[string]string{
	"roaring": "github.com/RoaringBitmap/roaring/v2", "btree": "github.com/google/btree", "sys": "golang.org/x/sys",
	"bbolt":   "go.etcd.io/bbolt",
	"testify": "github.com/stretchr/testify", "rapid": "pgregory.net/rapid",
}

// banned maps imports that the library does without, and all below them, to the
// folders that may have them.
var banned = map[string]string{
	"os": "eventlog/logfile purge/dirstore purge/boltstore internal/syncdir", "testing": "", "syscall": "eventlog/logfile", "net": "", "log": "", "flag": "",
	"expvar": "", "sync": "loop", "sync/atomic": "purge/boltstore", "unsafe": "", "math/rand": "", "crypto/rand": "", "C": "",
}

// The kinds of files that a rule is for.
const (
	library = 1 << iota // what a user links
	test
	soak  // tests that run for a time, and those of examples
	other // text, examples, and what only tests import
)

// lineRules finds lines that files of some kinds do not have. It leaves out
// comments, unless a rule is for all kinds. Package loop has goroutines and reads the clock.
var lineRules = []struct {
	name  string
	kinds int
	line  *regexp.Regexp
}{
	{"clock", library, regexp.MustCompile(`\btime\.(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTimer|NewTicker)\b`)},
	{"clock", test, regexp.MustCompile(`\btime\.(Now|Sleep)\b`)},
	{"goroutine", library, regexp.MustCompile(`^\s+go [a-z]`)},
	{"init", library, regexp.MustCompile(`^func init\(`)},
	{"print", library, regexp.MustCompile(`\bfmt\.Print|^\s+print(ln)?\(`)},
	{"global", library, regexp.MustCompile(`^var \w+ ([^=]+$|[^=]*= *(make\(|new\(|true|false|nil|[0-9"&]))`)},
	{"skip", test | soak, regexp.MustCompile(`\.(Skip|SkipNow|Skipf)\((""|)\)`)},
	// A type of another module in a signature, an exported field or an alias, or embedded.
	{"api", library, regexp.MustCompile(`^(func (\((\w+ )?\*?[A-Z].*?\) )?[A-Z][^{]*|(type|var|const) [A-Z].*|\t[A-Z]\w*[ (].*|type \w+ = \*?|\t\*?)\b(roaring|btree|unix|windows)\.[A-Z]`)},
	{"marker", library | test | soak | other, regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)},
}

var (
	requirement = regexp.MustCompile(`\b(PR|HK|PL|SM|EL|PU|ID|HL|RS|MG)-[0-9]+\b`)
)

// A file is one text file of the tree.
type file struct {
	name, dir string
	kind      int
	found     *[]string // what the rules found in all files
}

func (f file) report(line int, rule, format string, args ...any) {
	*f.found = append(*f.found, fmt.Sprintf("%s:%d: %s: ", f.name, line, rule)+fmt.Sprintf(format, args...))
}

// isTest reports whether only tests build a file.
func (f file) isTest() bool { return f.kind == test || f.kind == soak }

// has reports whether a list of words has a word.
func has(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// within reports whether a folder is dir or lies below it.
func within(folder, dir string) bool { return folder == dir || strings.HasPrefix(folder, dir+"/") }

// check runs all rules over a file tree and returns what they find.
func check(fsys fs.FS) (found []string, err error) {
	b, err := fs.ReadFile(fsys, "REQUIREMENTS.md")
	if err != nil {
		return nil, err
	}
	defined := ""
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "- **") {
			defined += " " + requirement.FindString(line)
		}
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		f := file{name, path.Dir(name), kindOf(name), &found}
		switch ext := path.Ext(name); {
		case err != nil || name == ".":
			return err
		case f.dir == "." && !atTop(name):
			f.report(0, "layout", "no such name belongs in the root")
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case !d.IsDir() && f.dir != "." && binary(fsys, name, d):
			f.report(0, "binary", "it is a program, or larger than 1 MiB: remove it")
		case !d.IsDir() && (has(".go .md .yml", ext) || within(name, ".ci") || name == "Makefile"):
			if b, err = fs.ReadFile(fsys, name); err == nil && f.dir != "internal/tidy" {
				f.text(strings.Split(string(b), "\n"), defined)
			}
			if err == nil && ext == ".go" {
				err = f.place(b)
			}
		}
		return err
	})
	slices.Sort(found)
	return found, err
}

// binary reports whether a file is what the go command builds, or as large: git would keep it
// for ever.
func binary(fsys fs.FS, name string, d fs.DirEntry) bool {
	info, err := d.Info()
	if err != nil || ignored(name) || info.Size() > 1<<20 {
		return err == nil && !ignored(name)
	}
	b, err := fs.ReadFile(fsys, name)
	return err == nil && slices.ContainsFunc(programs, func(head string) bool { return strings.HasPrefix(string(b), head) })
}

// programs are how files begin that systems run: of Linux, Windows and macOS.
var programs = []string{"\x7fELF", "MZ\x90\x00", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"}

// ignored reports whether a file is what git ignores of the go command's.
func ignored(name string) bool {
	return has(".test .out .prof", path.Ext(name)) || strings.HasPrefix(name, "coverage.")
}

func kindOf(name string) int {
	switch example := within(name, "examples"); {
	case strings.HasSuffix(name, "_test.go") && (example || strings.Contains(name, "soak") || strings.Contains(name, "attack")):
		return soak
	case strings.HasSuffix(name, "_test.go"):
		return test
	case path.Ext(name) == ".go" && !example && !has(forTests, path.Dir(name)):
		return library
	}
	return other
}

// atTop reports whether a name belongs in the root, which shows packages and the
// usual files. What the go command leaves there is ignored, as git does.
func atTop(name string) bool {
	for dir := range layout {
		if within(dir, name) {
			return true
		}
	}
	return has(topLevel, name) || path.Ext(name) == ".go" || ignored(name)
}

// text judges a file line by line.
func (f file) text(lines []string, defined string) {
	for i, text := range lines {
		for _, id := range requirement.FindAllString(text, -1) {
			if !has(defined, id) {
				f.report(i+1, "requirement", "%s is not in REQUIREMENTS.md", id)
			}
		}
		code, _, _ := strings.Cut(text, "//")
		for _, rule := range lineRules {
			if f.dir == "loop" && (rule.name == "clock" || rule.name == "goroutine") {
				continue
			}
			if rule.kinds&other != 0 && rule.line.MatchString(text) || rule.kinds&f.kind != 0 && rule.line.MatchString(code) {
				f.report(i+1, rule.name, "%s", strings.TrimSpace(text))
			}
		}
	}
}

// place judges where a Go file is, how long it is, and what it imports.
func (f file) place(b []byte) error {
	parts := strings.Split(f.dir, "/")
	if _, ok := layout[f.dir]; !ok && !(len(parts) > 1 && parts[0] == "examples" && has(exampleNames, parts[1])) {
		f.report(1, "layout", "no package is planned here")
	}
	if n := bytes.Count(b, []byte("\n")); n > 900 || n > 600 && !f.isTest() {
		f.report(n, "length", "more than 600 lines, or 900 of tests")
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, f.name, b, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	if f.kind == library && !within(f.dir, "internal") && !strings.Contains(f.dir, "/internal/") {
		f.api(fset, syntax)
		f.words(fset, syntax)
	}
	for _, spec := range syntax.Imports {
		if p := strings.Trim(spec.Path.Value, "\"`"); !f.mayImport(p) {
			f.report(fset.Position(spec.Pos()).Line, "import", "%s: the table has no such arrow", p)
		}
	}
	return nil
}

// mayImport reports whether the table lets a file import a package.
func (f file) mayImport(p string) bool {
	for name := range banned {
		if f.kind == library && within(p, name) && !has(banned[p], f.dir) {
			return false
		}
	}
	allowed := layout[f.dir]
	if f.isTest() {
		allowed += " testify rapid"
	}
	for _, name := range strings.Fields(allowed) {
		if p == path.Join(module, name) || thirdParty[name] != "" && within(p, thirdParty[name]) {
			return true
		}
	}
	host, _, _ := strings.Cut(p, "/")
	dir := strings.TrimPrefix(p, module+"/")
	switch {
	case !strings.Contains(host, "."):
		return true // the standard library
	case within(f.dir, "examples"):
		return f.isTest() || !within(dir, "internal") // an example is what a user could write
	case f.isTest() && within(p, module):
		return !within(dir, "examples")
	}
	return has(forAll, dir) && !within(f.dir, "internal")
}

// cycle returns two folders, neither inside the other, each of which imports the
// other by way of a folder inside it; "" if there are none.
func cycle(table map[string]string) string {
	arrows := make(map[string]bool)
	for from, row := range table {
		for _, to := range strings.Fields(row) {
			for f := from; f != "."; f = path.Dir(f) {
				for g := to; g != "."; g = path.Dir(g) {
					arrows[f+" "+g] = !within(f, g) && !within(g, f)
					if arrows[f+" "+g] && arrows[g+" "+f] {
						return f + " " + g
					}
				}
			}
		}
	}
	return ""
}

func TestTheRepositoryIsTidy(t *testing.T) {
	found, err := check(os.DirFS("../.."))
	if err != nil || len(found) > 0 || cycle(layout) != "" {
		t.Error(strings.Join(found, "\n"), cycle(layout), err)
	}
}
