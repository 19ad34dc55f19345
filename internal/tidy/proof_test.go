//go:build !race

package tidy

import (
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// good is a small tree that no rule objects to.
var good = map[string]string{
	"README.md":        "# joblife, PR-1\n",
	"REQUIREMENTS.md":  "- **PR-1 Conservation.** Nothing is lost.\n",
	"cpu.prof":         "ignored",
	"doc.go":           "// Package joblife is the map.\npackage joblife\n",
	"idset/doc.go":     "// Package idset is sets.\npackage idset\n",
	"idset/long.go":    "package idset\n" + strings.Repeat("\n", 599),
	"idset/testdata/x": "TO" + "DO",
	"idset/idset.go": `package idset

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/joblife/joblife/internal/jsonobj"
)

// The errors.
var (
	ErrSyntax  = errors.New("idset: syntax")
	errPrivate = errors.New("private")
	errRange   = jsonobj.ErrRange
)

var powers = [...]int{1, 10}

var limits = jsonobj.Limits{Depth: 1}

var names = map[string]int{"a": 1}

// Set is a set.
type Set struct {
	bits roaring.Bitmap
}

type visitor struct{}

func (visitor) Visit() {}

// Len returns the size of a set, which does not go up by itself.
func (s *Set) Len() int { return powers[0] + jsonobj.Len(s.bits) }

func (s *Set) bitmap() *roaring.Bitmap { return &s.bits }
`,
	"idset/idset_test.go": `package idset

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
)

func TestX(t *testing.T) {
	go func() {}()
	require.True(t, jobstate.X, os.Args)
	t.Skip("a reason")
}
`,
	"internal/jsonobj/x.go": "package jsonobj\n\nimport (\n\t_ \"github.com/joblife/joblife/internal/guard\"\n\t_ \"github.com/joblife/joblife/internal/jsonscan\"\n)\n",
	"idset/soak_test.go":    "package idset\n\nvar now = time.Now()\n",
	"examples/replay/main.go": `package main

import (
	"fmt"
	"os"

	"example.org/plot"

	"github.com/joblife/joblife/idset"
)

var verbose bool

func main() { fmt.Println(os.Args, plot.New, idset.ErrSyntax, time.Now()) }
`,
}

// with returns the good tree with one more file, or with another in its place.
func with(name, text string) fs.FS {
	out := make(fstest.MapFS)
	all := maps.Clone(good)
	all[name] = text
	for name, text := range all {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestAGoodTreeIsTidy(t *testing.T) {
	if found, err := check(with("LICENSE", "")); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	if _, err := check(with("idset/x.go", "package")); err == nil {
		t.Fatal("what does not parse is no error")
	}
}

func TestEveryRuleFindsItsFlawAndNothingElse(t *testing.T) {
	lib := func(text string) fs.FS { return with("idset/bad.go", "package idset\n\n"+text+"\n") }
	test := func(text string) fs.FS { return with("idset/bad_test.go", "package idset\n\n"+text+"\n") }
	arrow := func(dir, to string) fs.FS {
		return with(dir+"/doc.go", "// Package x.\npackage x\n\nimport _ \""+to+"\"\n")
	}
	for _, c := range []struct {
		want string // file, line and rule
		tree fs.FS
	}{
		{"notes.txt:0: layout", with("notes.txt", "x")},
		{"util:0: layout", with("util/x", "x")},
		{"idset/util/doc.go:1: layout", with("idset/util/doc.go", "// Package util.\npackage util\n")},
		{"examples/demo/main.go:1: layout", with("examples/demo/main.go", "package main\n")},
		{"rset/r.go:1: doc", with("rset/r.go", "package rset\n")},
		{"rset/doc.go:1: doc", with("rset/doc.go", "package rset\n")},
		{"eventlog/doc.go:4: import", arrow("eventlog", module+"/idset")},
		{"eventlog/doc.go:4: import", arrow("eventlog", module)},
		{"rset/doc.go:4: import", arrow("rset", module+"/rset/alloc")},
		{"rset/doc.go:4: import", arrow("rset", thirdParty["roaring"])},
		{"rset/doc.go:4: import", arrow("rset", thirdParty["testify"]+"/require")},
		{"rset/doc.go:4: import", arrow("rset", module+"/internal/refdata")},
		{"rset/doc.go:4: import", arrow("rset", "example.org/plot")},
		{"purge/dirstore/doc.go:4: import", arrow("purge/dirstore", "golang.org/x/sys/unix")},
		{"purge/dirstore/doc.go:4: import", arrow("purge/dirstore", "os/exec")},
		{"rset/doc.go:4: import", arrow("rset", "os")},
		{"rset/doc.go:4: import", arrow("rset", "math/rand/v2")},
		{"rset/doc.go:4: import", arrow("rset", "syscall")},
		{"internal/jsonscan/doc.go:4: import", arrow("internal/jsonscan", module+"/internal/jsonobj")},
		{"internal/jsonscan/doc.go:4: import", arrow("internal/jsonscan", module+"/internal/jsonscan")},
		{"internal/guard/doc.go:4: import", arrow("internal/guard", module+"/internal/jsonscan")},
		{"examples/purge/doc.go:4: import", arrow("examples/purge", module+"/internal/jsonscan")},
		{"idset/bad_test.go:3: import", test(`import "` + module + `/examples/replay"`)},
		{"idset/bad_test.go:3: import", test(`import "example.org/plot"`)},
		{"idset/bad.go:4: clock", lib("func f() {\n\t_ = time.Now()\n}")},
		{"idset/bad_test.go:3: clock", test("func f() { time.Sleep(1) }")},
		{"idset/soak.go:3: clock", with("idset/soak.go", "package idset\n\nfunc f() { time.Sleep(1) }\n")},
		{"idset/bad.go:4: goroutine", lib("func f() {\n\tgo f()\n}")},
		{"idset/bad.go:3: init", lib("func init() {}")},
		{"idset/bad.go:3: print", lib("func f() { fmt.Printf(``) }")},
		{"idset/bad.go:4: print", lib("func f() {\n\tprintln()\n}")},
		{"idset/bad_test.go:3: skip", test("func TestY(t *testing.T) { t.SkipNow() }")},
		{"idset/bad.go:3: comment", lib("func F() {}")},
		{"idset/bad.go:3: comment", lib("func (s *Set) M() {}")},
		{"idset/bad.go:3: comment", lib("type T int")},
		{"idset/bad.go:5: comment", lib("// Types.\ntype (\n\tT int\n)")},
		{"idset/bad.go:3: comment", lib("const C = 1")},
		{"idset/bad.go:601: length", lib(strings.Repeat("\n", 598))},
		{"idset/bad_test.go:901: length", test(strings.Repeat("\n", 898))},
		{"idset/bad.go:3: marker", lib("// FIX" + "ME")},
		{".ci/run:1: marker", with(".ci/run", "# TO"+"DO")},
		{"idset/bad.go:4: api", lib("// F is.\nfunc F(b *roaring.Bitmap) {}")},
		{"idset/bad.go:4: api", lib("// M is.\nfunc (s *Set) M() (roaring.Bitmap, error) { return x, nil }")},
		{"idset/bad.go:5: api", lib("// T is.\ntype T struct {\n\tBits []roaring.Bitmap\n}")},
		{"idset/bad.go:4: api", lib("type t struct {\n\t*roaring.Bitmap\n}")},
		{"idset/bad.go:3: api", lib("type t = roaring.Bitmap")},
		{"idset/bad.go:3: global", lib("var limit = 5")},
		{"idset/bad.go:3: global", lib("var cache []byte")},
		{"idset/bad.go:3: global", lib("var cache = make(map[string]int)")},
		{"idset/bad.go:4: global", lib("// Table is.\nvar Table = [1]int{}")},
		{"idset/bad.go:4: global", lib("func f() {\n\tpowers[1] = 2\n}")},
		{"idset/bad_test.go:4: global", test("func f() {\n\terrPrivate = nil\n}")},
		{"idset/bad.go:3: global", lib("func f() { delete(names, `a`) }")},
		{"README.md:1: requirement", with("README.md", "PR-2\n")},
		{"idset/bad.go:3: requirement", lib("// SM-1 holds.")},
	} {
		found, err := check(c.tree)
		if err != nil || len(found) != 1 || !strings.HasPrefix(found[0], c.want+": ") {
			t.Errorf("want %s, found %q, %v", c.want, found, err)
		}
	}
}

func TestAFolderCycleIsFound(t *testing.T) {
	for want, table := range map[string]map[string]string{
		"":            {"a": "b", "a/x": "a b/y", "b": "b/y", "b/y": "c"},
		"a and b":     {"a/x": "b", "b/y": "a"},
		"h/a and h/b": {"h/a/x": "h/b", "h/b/y": "h/a/x/z"},
	} {
		if got := folderCycle(table); got != want {
			t.Errorf("%v: %q, want %q", table, got, want)
		}
	}
}
