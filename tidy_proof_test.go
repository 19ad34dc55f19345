package joblife_test

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// goodTree is a small tree that no rule objects to.
var goodTree = map[string]string{
	".gitignore":                        "# what the go command leaves [a-\n*.out\n/coverage.*\n\n**/testdata/rapid/\n",
	"README.md":                         "# joblife\n",
	"go.mod":                            "module " + modulePath + "\n\nrequire github.com/RoaringBitmap/roaring/v2 v2.30.0\n",
	"cpu.out":                           "ignored: " + "TO" + "DO\n",
	"coverage.txt":                      "ignored\n",
	"idset/testdata/rapid/TestX/x.fail": "/wo" + "rk/ignored\n",
	"doc.go":                            "// Package joblife is the map.\npackage joblife\n",
	"idset/doc.go":                      "// Package idset is sets.\npackage idset\n",
	"idset/idset.go": `package idset

import (
	"errors"
	"io"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
)

// ErrSyntax is returned for what is no set.
var ErrSyntax = errors.New("idset: syntax")

var (
	_          io.Reader = nil
	powers               = [...]int{1, 10, 100}
	lowerHex             = [16]byte([]byte("0123456789abcdef"))
	names                = map[string]int{"a": 1}
	prefix               = []byte("ids ")
	errPrivate           = errors.New("idset: private")
)

// Formats of a set.
const (
	Ranges = iota
	List
)

// Set is a set.
type Set struct{ bits roaring.Bitmap }

// Namer is an interface.
type Namer interface {
	// Name returns a name.
	Name() string
}

type (
	visitor     func(uint32)
	one[A any]  struct{ a A }
	pair[A, B any] struct{ a A; b B }
)

func (visitor) Visit()        {}
func (*(one[A])) Visit()      {}
func (p *pair[A, B]) Visit()  {}

const kind roaring.Kind = 1

// Each calls v for each id.
func (s *Set) Each(v visitor) {}

// Len returns the size.
func (s *Set) Len() int { return int(s.bits.GetCardinality()) + powers[0] + names["a"] }

func (s *Set) bitmap() *roaring.Bitmap { return &s.bits }

// AppendText appends the text, or fails.
func (s *Set) AppendText(dst []byte) ([]byte, error) {
	row := &powers[0]
	io.Sort(powers[:])
	slices.Contains(powers[:], 1)
	sort.IntsAreSorted(powers[:])
	sort.SliceIsSorted(powers[:], nil)
	s.bits, err := io.Sleep()
	n, err := io.Sleep()
	dst = append(dst, byte(*row))
	powers := []int{1}
	powers[0] = 2
	return append(append(dst, prefix...), lowerHex[1]), errPrivate
}
`,
	"idset/idset_test.go": `package idset

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
)

var scratch []byte

func TestX(t *testing.T) {
	start := time.Unix(0, 0)
	scratch = nil
	go func() {}()
	println(os.Args, sync.Mutex{}, require.True, rapid.Check, refdata.Env, jobstate.Now, start)
	Help(nil).Skip()
	cursor := Help(nil)
	cursor.Skip()
	t.Skip("no reason to run")
}

func Help(*rapid.T) visitor { return nil }
`,
	"examples/go.mod": "module " + modulePath + "/examples\n",
	"examples/replay/main.go": `// Command replay reads logs.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"time"

	"example.org/plot"

	"github.com/joblife/joblife/idset"
)

var verbose bool

func main() {
	verbose = len(os.Args) > 1
	os.Args = nil
	go fmt.Println(time.Now(), rand.Int(), idset.ErrSyntax, plot.New)
}
`,
	"idset/long.go":      "package idset\n" + strings.Repeat("\n", 599),
	"idset/long_test.go": "package idset\n" + strings.Repeat("\n", 899),
	"go.sum":             "sum/wo" + "rk/ /ro" + "ot/\n",
	"idset/testdata/bin": "\x00 /ro" + "ot/\n",
	"testdata/tidy.txt":  "data may say " + "TO" + "DO\n",
}

// changedTree returns goodTree with some files put in or, where empty, taken out.
func changedTree(files map[string]string) fstest.MapFS {
	out := make(fstest.MapFS)
	all := maps.Clone(goodTree)
	maps.Copy(all, files)
	for name, text := range all {
		if text != "" {
			out[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return out
}

func TestAGoodTreeIsTidy(t *testing.T) {
	found, err := check(changedTree(nil))
	if err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
}

func TestATreeThatDoesNotParseIsAnError(t *testing.T) {
	if _, err := check(changedTree(map[string]string{"idset/x.go": "package"})); err == nil {
		t.Fatal("no error")
	}
	if _, err := check(changedTree(map[string]string{".gitignore": "["})); err == nil {
		t.Fatal("no error")
	}
}

// broken is a tree of which one name cannot be read.
type broken struct {
	tree fs.FS
	name string
}

func (b broken) Open(name string) (fs.File, error) {
	if name == b.name {
		return nil, fs.ErrPermission
	}
	return b.tree.Open(name)
}

func TestATreeThatCannotBeReadIsAnError(t *testing.T) {
	for _, name := range []string{".", ".gitignore", "README.md", "idset", "idset/idset.go"} {
		if _, err := check(broken{changedTree(nil), name}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIgnorePatternsMeanWhatGitMeans(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.out", "cpu.out", true},
		{"*.out", "idset/cpu.out", true},
		{"*.out", "cpu.out.go", false},
		{"/coverage.*", "coverage.txt", true},
		{"/coverage.*", "idset/coverage.txt", false},
		{"a/b", "a/b", true},
		{"a/b", "c/a/b", false},
		{"**/testdata/rapid", "testdata/rapid", true},
		{"**/testdata/rapid", "idset/testdata/rapid", true},
		{"**/testdata/rapid", "idset/rapid", false},
		{"**/testdata/rapid", "rapid", false},
	} {
		if got := ignores(c.pattern, c.name); got != c.want {
			t.Errorf("ignores(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

// A flaw is put into goodTree. In its files, a line that ends in "// BAD" is
// where a finding is due; find lists what is due elsewhere.
type flaw struct {
	rule  string
	name  string
	files map[string]string
	find  []string
}

// lib is a file of package idset.
func lib(text string) map[string]string {
	return map[string]string{"idset/bad.go": "package idset\n\n" + text}
}

// libTest is a test file of package idset.
func libTest(text string) map[string]string {
	return map[string]string{"idset/bad_test.go": "package idset\n\n" + text}
}

// pkg is a package with a comment and a body.
func pkg(dir, text string) map[string]string {
	name := dir[strings.LastIndex(dir, "/")+1:]
	return map[string]string{
		dir + "/doc.go": "// Package " + name + " is bad.\npackage " + name + "\n",
		dir + "/bad.go": "package " + name + "\n\n" + text + "\nfunc f() {}\n",
	}
}

// oneImport is a package that imports one other.
func oneImport(dir, what string) map[string]string {
	return pkg(dir, "import _ \""+what+"\" // BAD\n")
}

var flaws = []flaw{
	{"layout", "a name in the root", map[string]string{"notes.txt": "x"}, []string{"notes.txt"}},
	{"layout", "Go code in the root", map[string]string{"job.go": "package joblife\n"}, []string{"job.go"}},
	{"layout", "a package that is not planned", pkg("idset/util", ""), []string{"idset/util/bad.go"}},
	{"layout", "a folder in the root", pkg("util", ""), []string{"util", "util/bad.go"}},
	{"layout", "an example that is not planned", pkg("examples/demo", ""), []string{"examples/demo/bad.go"}},
	{"layout", "code beside the examples", map[string]string{"examples/x.go": "// Package x.\npackage x\n\nconst c = 1\n"}, []string{"examples/x.go"}},

	{"import", "an arrow that is not listed", oneImport("eventlog", modulePath+"/idset"), nil},
	{"import", "an arrow to the root", oneImport("eventlog", modulePath), nil},
	{"import", "an arrow backwards", oneImport("jobstate/jobid", modulePath+"/jobstate"), nil},
	{"import", "the bitmap outside idset", oneImport("rset", thirdParty["roaring"]), nil},
	{"import", "the tree outside purge, alloc and pool", oneImport("jobstate", thirdParty["btree"]), nil},
	{"import", "testify outside tests", oneImport("rset", thirdParty["testify"]+"/require"), nil},
	{"import", "rapid outside tests", oneImport("jobstate/manager", thirdParty["rapid"]), nil},
	{"import", "a module nobody listed", oneImport("rset", "example.org/plot"), nil},
	{"import", "a module nobody listed, in a test", libTest("import _ \"example.org/plot\" // BAD\n"), nil},
	{"import", "reference data outside tests", oneImport("idset", modulePath+"/internal/refdata"), nil},
	{"import", "an example", oneImport("jobstate", modulePath+"/examples/replay"), nil},
	{"import", "internals in an example", oneImport("examples/purge", modulePath+"/internal/jsonscan"), nil},
	{"import", "a dot import", libTest("import . \"strings\" // BAD\n"), nil},

	{"module", "a requirement in a block", map[string]string{"go.mod": "module x\n\nrequire (\n\texample.org/plot v1.0.0\n\texample.org/deep v1.0.0 // indirect\n)\n"}, []string{"go.mod:4"}},
	{"module", "a requirement of its own", map[string]string{"go.mod": "module x\n\nrequire example.org/plot v1.0.0\n"}, []string{"go.mod:3"}},

	{"banned", "files", oneImport("idset", "os"), nil},
	{"banned", "processes where files are allowed", oneImport("eventlog/logfile", "os/exec"), nil},
	{"banned", "sockets", oneImport("idset", "net/http"), nil},
	{"banned", "randomness", oneImport("idset", "math/rand/v2"), nil},
	{"banned", "randomness of the machine", oneImport("idset", "crypto/rand"), nil},
	{"banned", "logging", oneImport("idset", "log/slog"), nil},
	{"banned", "locks", oneImport("idset", "sync/atomic"), nil},
	{"banned", "unsafe", oneImport("idset", "unsafe"), nil},
	{"banned", "testing", oneImport("idset", "testing"), nil},
	{"banned", "the clock", lib("import \"time\"\n\nfunc f() { _ = time.Now() } // BAD\n"), nil},
	{"banned", "the clock by another name", lib("import clock \"time\"\n\nvar _ = clock.Now // BAD\n"), nil},
	{"banned", "a timer", lib("import \"time\"\n\nfunc f() { <-time.After(1) } // BAD\n"), nil},
	{"banned", "the clock in a test", libTest("import \"time\"\n\nvar start = time.Now() // BAD\n"), nil},
	{"banned", "sleep in a test", libTest("import \"time\"\n\nfunc f() { time.Sleep(1) } // BAD\n"), nil},

	{"goroutine", "a go statement", lib("func f() {\n\tgo f() // BAD\n}\n"), nil},
	{"init", "func init", lib("func init() {} // BAD\n"), nil},

	{"print", "fmt.Println", lib("import \"fmt\"\n\nfunc f() { fmt.Println() } // BAD\n"), nil},
	{"print", "fmt.Printf as a value", lib("import \"fmt\"\n\nfunc f() { g := fmt.Printf; _ = g } // BAD\n"), nil},
	{"print", "builtin println", lib("func f() { println() } // BAD\n"), nil},

	{"doc", "no doc.go", map[string]string{"idset/doc.go": ""}, []string{"idset/doc.go"}},
	{"doc", "a doc.go without words", map[string]string{"idset/doc.go": "package idset\n"}, []string{"idset/doc.go"}},
	{"doc", "words in another file", map[string]string{"idset/doc.go": "package idset\n", "idset/x.go": "// Package idset.\npackage idset\n"}, []string{"idset/doc.go"}},
	{"doc", "an example without words", map[string]string{"examples/purge/main.go": "package main\n\nfunc main() {}\n"}, []string{"examples/purge/doc.go"}},
	{"doc", "no map", map[string]string{"doc.go": ""}, []string{"doc.go"}},
	{"doc", "a symbol in the root", map[string]string{"doc.go": "// Package joblife.\npackage joblife\n\nconst c = 1\n"}, []string{"doc.go:4"}},

	{"shell", "doc.go alone", map[string]string{"rset/doc.go": "// Package rset will be.\npackage rset\n\nconst c = 1\n"}, []string{"rset/doc.go"}},
	{"shell", "files without declarations", map[string]string{"rset/doc.go": "// Package rset will be.\npackage rset\n", "rset/r.go": "package rset\n\nimport _ \"io\"\n", "rset/r_test.go": "package rset\n\nfunc f() {}\n"}, []string{"rset/r.go"}},

	{"comment", "a function", lib("func F() {} // BAD\n"), nil},
	{"comment", "a method", lib("func (s *Set) M() {} // BAD\n"), nil},
	{"comment", "a method of a generic type", lib("// G is.\ntype G[T any] struct{}\n\nfunc (G[T]) M() {} // BAD\n"), nil},
	{"comment", "a type", lib("type T int\n"), []string{"idset/bad.go:3"}},
	{"comment", "a type in a block", lib("// Types.\ntype (\n\tT int\n\t// U is.\n\tU int\n)\n"), []string{"idset/bad.go:5"}},
	{"comment", "a constant", lib("const C = 1\n"), []string{"idset/bad.go:3"}},
	{"comment", "a constant in a block", lib("const (\n\tC = 1\n\tD = 1 // D is.\n)\n"), []string{"idset/bad.go:4"}},
	{"comment", "a variable", lib("import \"errors\"\n\nvar ErrX = errors.New(\"x\")\n"), []string{"idset/bad.go:5"}},
	{"comment", "a method of an interface", lib("// I is.\ntype I interface {\n\tM()\n}\n"), []string{"idset/bad.go:5"}},
	{"comment", "a directive is no comment", lib("//go:noinline\nfunc F() {} // BAD\n"), nil},

	{"length", "a long file", lib(strings.Repeat("\n", 599)), []string{"idset/bad.go:601"}},
	{"length", "a long test", libTest(strings.Repeat("\n", 899)), []string{"idset/bad_test.go:901"}},
	{"length", "a long example", map[string]string{"examples/replay/x.go": "package main\n" + strings.Repeat("\n", 600)}, []string{"examples/replay/x.go:601"}},

	{"marker", "in a comment", lib("// TO" + "DO: think\n"), []string{"idset/bad.go:3"}},
	{"marker", "in an example", map[string]string{"examples/replay/x.go": "package main\n\n// FIX" + "ME\n"}, []string{"examples/replay/x.go:3"}},
	{"marker", "in a script", map[string]string{".ci/run": "# X" + "XX\n"}, []string{".ci/run:1"}},

	{"path", "in a script", map[string]string{"Makefile": "all:\n\tls /wo" + "rk/main\n"}, []string{"Makefile:2"}},
	{"path", "in a test", libTest("const dir = \"/ro" + "ot/data\" // BAD\n"), nil},
	{"path", "in data", map[string]string{"testdata/x": "file:/wo" + "rk/x\n"}, []string{"testdata/x:1"}},

	{"skip", "SkipNow", libTest("import \"testing\"\n\nfunc TestY(t *testing.T) { t.SkipNow() } // BAD\n"), nil},
	{"skip", "Skip of nothing", libTest("import \"testing\"\n\nfunc BenchmarkY(x *testing.B) { x.Skip() } // BAD\n"), nil},
	{"skip", "Skipf of nothing", libTest("import \"testing\"\n\nfunc help(tb testing.TB) { tb.Skipf(\"\") } // BAD\n"), nil},

	{"api", "a parameter", api("// F is.\nfunc F(b *roaring.Bitmap) {} // BAD\n"), nil},
	{"api", "a result of a method", api("// B is.\nfunc (s *Set) B() (b []roaring.Bitmap, err error) { return nil, nil } // BAD\n"), nil},
	{"api", "a constraint", api("// F is.\nfunc F[T roaring.ParHeapIterator]() {} // BAD\n"), nil},
	{"api", "a field", api("// T is.\ntype T struct {\n\tBits roaring.Bitmap // BAD\n\tbits roaring.Bitmap\n}\n"), nil},
	{"api", "an embedded field", api("// T is.\ntype T struct {\n\t*roaring.Bitmap // BAD\n}\n"), nil},
	{"api", "a typed constant", api("// C is.\nconst C roaring.Kind = 1 // BAD\n"), nil},
	{"api", "an alias", api("// T is.\ntype T = roaring.Bitmap // BAD\n"), nil},
	{"api", "a method of an interface", api("// I is.\ntype I interface {\n\t// M is.\n\tM(b roaring.Bitmap) // BAD\n}\n"), nil},
	{"api", "an unexported alias", api("type bits = roaring.Bitmap\n\n// F is.\nfunc F(b *bits) {} // BAD\n"), nil},
	{"api", "an unexported alias of an alias", api("type more = bits\n\ntype bits = roaring.Bitmap\n\n// F is.\nfunc F(b *more) {} // BAD\n"), nil},
	{"api", "an unexported type that embeds", api("type bits struct{ roaring.Bitmap }\n\n// F is.\nfunc F(b bits) {} // BAD\n"), nil},
	{"api", "a type parameter", api("// T is.\ntype T[B roaring.Bitmap] struct{} // BAD\n"), nil},

	{"global", "an exported variable", lib("// Limit is.\nvar Limit = [1]int{} // BAD\n"), nil},
	{"global", "a variable without a value", lib("var cache []byte // BAD\n"), nil},
	{"global", "a number", lib("var limit = 5 // BAD\n"), nil},
	{"global", "a pointer", lib("var set = &Set{} // BAD\n"), nil},
	{"global", "a map that is made", lib("var cache = make(map[string]int) // BAD\n"), nil},
	{"global", "a value of another package", lib("import \"strings\"\n\nvar r = strings.NewReplacer() // BAD\n"), nil},
	{"global", "an error by another name", lib("import \"errors\"\n\nvar bad = errors.New(\"x\") // BAD\n"), nil},
	{"global", "two from one call", lib("var _, b = f() // BAD\n\nfunc f() (c, d [1]int) { return c, d }\n"), nil},
	{"global", "an assignment", lib("func f() { errPrivate = nil } // BAD\n"), nil},
	{"global", "an assignment to an element", lib("func f() { (powers[1]) = 2 } // BAD\n"), nil},
	{"global", "an assignment to a field", lib("var t = struct{ a [1]int }{} // a table\n\nfunc f() { t.a[0]++ } // BAD\n"), nil},
	{"global", "an assignment in a test of the package", libTest("func f() { powers[1] = 2 } // BAD\n"), nil},
	{"global", "an assignment from outside", map[string]string{"idset/x_test.go": "package idset_test\n\nimport \"github.com/joblife/joblife/idset\"\n\nfunc f() { idset.ErrSyntax = nil } // BAD\n"}, nil},
	{"global", "an assignment to a part from outside", libTest("import \"net/http\"\n\nfunc f() { http.DefaultClient.Timeout = 1 } // BAD\n"), nil},
	{"global", "a range that assigns", lib("func f() {\n\tfor powers[0] = range 3 { // BAD\n\t}\n}\n"), nil},
	{"global", "a range that assigns values", lib("func f() {\n\tfor _, powers[0] = range []int{1} { // BAD\n\t}\n}\n"), nil},
	{"global", "an address", lib("func f() *int { return &powers[1] } // BAD\n"), nil},
	{"global", "an address that is kept", lib("func f() { var p = &powers[1]; _ = p } // BAD\n"), nil},
	{"global", "a row that is written to", lib("func f() {\n\trow := &powers[1]\n\t*row = 2 // BAD\n}\n"), nil},
	{"global", "a row that is returned", lib("func f() *int {\n\trow := &powers[1]\n\treturn row // BAD\n}\n"), nil},
	{"global", "a row that is passed on", lib("func f(*int) {\n\trow := &powers[1]\n\tf(row) // BAD\n}\n"), nil},
	{"global", "a field of a row that is written to", lib("var rows = [1]struct{ a []int }{}\n\nfunc f() {\n\trow := &rows[0]\n\trow.a[1]++ // BAD\n}\n"), nil},
	{"global", "a method with a pointer to a row", lib("type row int\n\nfunc (r *row) set() { *r = 1 }\n\nvar rows = [1]row{}\n\nfunc f() {\n\tr := &rows[0]\n\tr.set() // BAD\n}\n"), nil},
	{"global", "a method with a pointer", lib("type table [1]int\n\nfunc (t *table) set() { t[0] = 1 }\n\nvar tab = table{}\n\nfunc f() { tab.set() } // BAD\n"), nil},
	{"global", "delete", lib("func f() { delete(names, \"a\") } // BAD\n"), nil},
	{"global", "copy into an array", lib("func f() { copy(powers[:], []int{1}) } // BAD\n"), nil},
	{"global", "append", lib("func f() []byte { return append(prefix, 1) } // BAD\n"), nil},
	{"global", "a sort", lib("import \"slices\"\n\nfunc f() { slices.Sort(prefix) } // BAD\n"), nil},
	{"global", "a map that is returned", lib("func f() map[string]int { return names } // BAD\n"), nil},
	{"global", "a map in parentheses", lib("func f() map[string]int { return (names) } // BAD\n"), nil},
	{"global", "a map in a variable", lib("func f() {\n\tvar n = names // BAD\n\t_ = n\n}\n"), nil},
	{"global", "a slice in a slice", lib("func f() [][]byte { return [][]byte{prefix} } // BAD\n"), nil},
	{"global", "a slice that is kept", lib("func f() { p := prefix; _ = p } // BAD\n"), nil},
	{"global", "an array that is handed out", lib("func f() []int { return powers[1:] } // BAD\n"), nil},
	{"global", "a slice in a field", lib("func f() any { return struct{ p []byte }{p: prefix} } // BAD\n"), nil},
}

// api is a file of package idset that imports the bitmap.
func api(text string) map[string]string {
	return lib("import \"github.com/RoaringBitmap/roaring/v2\"\n\n" + text)
}

// due returns what must be found in a flawed tree.
func (f flaw) due() []string {
	var out []string
	for _, place := range f.find {
		out = append(out, place+": "+f.rule)
	}
	for name, text := range f.files {
		for i, line := range strings.Split(text, "\n") {
			if strings.HasSuffix(line, "// BAD") {
				out = append(out, finding{rule: f.rule, file: name, line: i + 1}.String())
			}
		}
	}
	for i := range out {
		out[i] = strings.TrimSuffix(out[i], ": ")
	}
	slices.Sort(out)
	return out
}

func TestEveryRuleFindsItsFlawAndNothingElse(t *testing.T) {
	proven := make(map[string]bool)
	for _, f := range flaws {
		proven[f.rule] = true
		t.Run(f.rule+"/"+f.name, func(t *testing.T) {
			found, err := check(changedTree(f.files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, strings.TrimSuffix(f.String(), ": "+f.text))
			}
			slices.Sort(got)
			if want := f.due(); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("found %q, want %q\n%v", got, want, found)
			}
		})
	}
	for name := range rules {
		if !proven[name] {
			t.Errorf("no flaw shows that rule %q can fail", name)
		}
	}
}

// Each import that is banned is found, and so is what lies below it.
func TestEveryBannedImportIsFound(t *testing.T) {
	for name := range bannedImports {
		for _, p := range []string{name, name + "/x"} {
			found, err := check(changedTree(oneImport("jobstate", p)))
			if err != nil || len(found) != 1 || found[0].rule != "banned" {
				t.Errorf("import of %s: %v %v", p, found, err)
			}
		}
	}
}

// What the table allows is allowed: each arrow of it passes where it stands.
func TestEveryArrowOfTheTablePasses(t *testing.T) {
	for dir, arrows := range layout {
		for _, arrow := range strings.Fields(arrows) {
			what, ok := thirdParty[arrow]
			if !ok {
				what = modulePath + "/" + arrow
				if _, planned := layout[arrow]; !planned {
					t.Errorf("%s: %s is in no row", dir, arrow)
				}
			}
			found, err := check(changedTree(oneImport(dir, what)))
			if err != nil || len(found) > 0 {
				t.Errorf("%s imports %s: %v %v", dir, arrow, found, err)
			}
		}
	}
}

// A table with a cycle could not be built, and would say nothing.
func TestTheTableHasNoCycle(t *testing.T) {
	var visit func(dir string, seen []string)
	visit = func(dir string, seen []string) {
		if slices.Contains(seen, dir) {
			t.Fatalf("cycle: %q", append(seen, dir))
		}
		for _, arrow := range strings.Fields(layout[dir]) {
			visit(arrow, append(slices.Clone(seen), dir))
		}
	}
	for dir := range layout {
		visit(dir, nil)
	}
}
