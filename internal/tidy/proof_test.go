//go:build !race

package tidy

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestEveryRuleFindsItsFlaw adds one file to a small tree and wants one finding,
// or none.
func TestEveryRuleFindsItsFlaw(t *testing.T) {
	const code = "package x\n\n"
	const api = code + "import \"" + module + "/internal/jsonobj\"\n\n"
	imports := func(p string) string { return code + "import _ \"" + p + "\"\n" }
	for _, c := range []struct{ want, name, text string }{
		{"", "idset/x.go", "package idset\n\nimport _ \"" + thirdParty["roaring"] + "\"\n\n// ErrX is.\nvar ErrX = errors.New(``)\n\nvar powers = [...]int{1}\n\n" +
			"// F is. go f\nfunc F() { powers[0].run() }\n\nfunc (s *set) bits() *roaring.Bitmap { return nil } // fmt.Print\n"},
		{"", "idset/x_test.go", imports(module+"/purge") + imports("os")[len(code):] + "\nvar now = 1\n\nfunc init() { go f(); fmt.Println(time.Since(now)); t.Skip(`why`) }" + strings.Repeat("\n", 890)},
		{"", "idset/x_soak_test.go", code + "var now = time.Now()\n"}, {"", "idset/testdata/x.go", "FIX" + "ME"}, {"", "cpu.prof", "PR-9"},
		{"", "examples/purge/main.go", imports("example.org/plot") + "\nfunc init() { go println(time.Now()) }\n"},
		{"", "manager.go", imports(module + "/perilog/exec")}, {"", "joblifetest/x.go", imports(module) + imports(thirdParty["rapid"])[len(code):]},
		{"", "perilog/exec/x.go", imports(module + "/rset")}, {"", "eventlog/logfile/x.go", imports("golang.org/x/sys/unix") + imports("os")[len(code):]},
		{"", "loop/x.go", imports(module) + imports("sync")[len(code):] + "\nfunc f() {\n\tgo f(time.Now())\n}\n"},
		{"layout", "notes.txt", ""}, {"layout", "util/x", ""}, {"layout", "idset/util/x.go", "package x\n"}, {"layout", "examples/demo/x.go", "package x\n"}, {"layout", "docs/x.go", "package x\n"},
		{"import", "manager.go", imports(module + "/rset/pool")}, {"import", "manager.go", imports(module + "/eventlog/logfile")},
		{"import", "manager.go", imports(module + "/purge/dirstore")}, {"import", "manager.go", imports(module + "/jobstate/archive")},
		{"import", "perilog/exec/x.go", imports(module + "/purge")}, {"import", "eventlog/x.go", imports(module)},
		{"import", "rset/x.go", imports(module + "/rset/alloc")}, {"import", "rset/x.go", imports(thirdParty["roaring"])},
		{"import", "rset/x.go", imports(thirdParty["testify"] + "/require")}, {"import", "rset/x.go", imports(module + "/internal/refdata")},
		{"import", "rset/x.go", imports("os")}, {"import", "rset/x.go", imports("math/rand/v2")}, {"import", "purge/dirstore/x.go", imports("os/exec")},
		{"import", "loop/x.go", imports(module + "/rset")}, {"import", "manager.go", imports(module + "/loop")}, {"import", "idset/x.go", imports("sync")},
		{"import", "internal/jsonobj/x.go", imports(module + "/internal/logline")}, {"import", "internal/guard/x.go", imports(module + "/internal/jsonobj")},
		{"import", "examples/purge/x.go", imports(module + "/internal/jsonobj")}, {"import", "idset/x_test.go", imports(module + "/examples/replay")},
		{"import", "idset/x_test.go", imports("example.org/plot")},
		{"clock", "idset/x.go", code + "func f() { time.After(1) }\n"}, {"clock", "idset/x_test.go", code + "var now = time.Now()\n"},
		{"goroutine", "idset/x.go", code + "func f() {\n\tgo f()\n}\n"}, {"init", "idset/x.go", code + "func init() {}\n"},
		{"print", "idset/x.go", code + "func f() { fmt.Printf(``) }\n"}, {"print", "idset/x.go", code + "func f() {\n\tprintln()\n}\n"},
		{"global", "idset/x.go", code + "var cache []byte\n"}, {"global", "idset/x.go", code + "var cache = make(map[string]int)\n"},
		{"skip", "idset/x_test.go", code + "func f() { t.SkipNow() }\n"}, {"marker", ".ci/run", "# TO" + "DO"}, {"requirement", "README.md", "PR-2"},
		{"id", "idset/x.go", code + "// F is (I4).\nfunc F() {}\n"}, {"id", "idset/x.go", "// Package idset keeps I7.\npackage idset\n"}, {"id", "idset/x.go", code + "// X is.\ntype X struct {\n\tN int // I12\n}\n"},
		{"api", "idset/x.go", code + "// F is.\nfunc F(b *roaring.Bitmap) {}\n"}, {"api", "idset/x.go", code + "type x struct {\n\tBits []roaring.Bitmap\n}\n"},
		{"", "perilog/x.go", api + "// S is.\ntype S[T ~int | any] struct {\n\tpart\n\tx jsonobj.Kind\n}\n\n// F is.\nfunc (s *S[T]) F(what *T, x func(y int) error) { _ = jsonobj.Kind(0) }\n\n// M is.\ntype M interface {\n\tx(part)\n}\n\nfunc f() jsonobj.Kind\n"},
		{"api", "perilog/x.go", api + "// C is.\ntype C = jsonobj.Kind\n"}, {"api", "perilog/x.go", api + "// C is.\nconst C = jsonobj.KindBool\n"},
		{"api", "perilog/x.go", api + "// C is.\ntype C struct {\n\tX []jsonobj.Kind // x\n}\n"}, {"api", "perilog/x.go", api + "// C is.\ntype C struct {\n\tjsonobj.Kind\n}\n"},
		{"api", "perilog/x.go", api + "// F is.\nfunc F() iter.Seq[jsonobj.Kind] { return nil }\n"}, {"api", "perilog/x.go", api + "// F is.\nfunc (s *S) F(map[string]*jsonobj.Kind) {}\n"},
		{"api", "perilog/x.go", api + "// F is.\nfunc F[M any, P reader[M]]() {}\n"}, {"api", "perilog/x.go", api + "// F is.\nfunc F() part { return part{} }\n"},
		{"api", "perilog/x.go", api + "// M is.\ntype M interface {\n\tX(part)\n}\n"}, {"api", "perilog/x.go", api + "// C is.\ntype C func(jsonobj.Kind)\n"},
		{"comment", "idset/x.go", code + "func (s *Set) M() {}\n"}, {"comment", "idset/x.go", code + "type T int\n"},
		{"comment", "idset/x.go", code + "// A few.\ntype (\n\tThe int\n\t// Us is.\n\tUs int\n)\n"}, {"comment", "idset/x.go", code + "// T is.\ntype T struct {\n\tA int\n}\n"},
		{"", "idset/x.go", code + "// T is an a.\ntype T struct {\n\tA, b int\n\tC C\n\tD int // d\n\tID int\n}\n\n// Names.\nconst (\n\tE = \"e\"\n)\n"},
		{"binary", "examples/sched/sched", "\x7fELF\x02\x01"}, {"binary", "examples/sched/sched.exe", "MZ\x90\x00\x03"},
		{"binary", "examples/purge/jobs.db", strings.Repeat("x", 1<<20+1)}, {"", "examples/purge/jobs.db", strings.Repeat("x", 1<<20)},
		{"", "examples/sched/sched.test", "\x7fELF\x02\x01"}, {"", "examples/replay/testdata/large.tar", strings.Repeat("x", 1<<20+1)},
		{"length", "idset/x.go", "package x\n" + strings.Repeat("\n", 600)}, {"length", "idset/x_test.go", "package x\n" + strings.Repeat("\n", 900)},
	} {
		found, err := check(fstest.MapFS{"REQUIREMENTS.md": {Data: []byte("- **PR-1 Conservation.**\n")}, c.name: {Data: []byte(c.text)}})
		ok := len(found) == 0
		if c.want != "" {
			ok = len(found) == 1 && strings.HasPrefix(found[0], c.name+":") && strings.Contains(found[0], ": "+c.want+": ") || c.name == "util/x" && len(found) == 1
		}
		if err != nil || !ok {
			t.Errorf("%s %q: want %q, found %q, %v", c.name, c.text, c.want, found, err)
		}
	}
	if got := cycle(map[string]string{"a": "b", "a/x": "a b/y", "b": "b/y", "b/y": "c"}); got != "" {
		t.Errorf("%s: these have no cycle", got)
	}
	if cycle(map[string]string{"h/a/x": "h/b", "h/b/y": "h/a/x/z"}) == "" {
		t.Error("a cycle is not found")
	}
}
