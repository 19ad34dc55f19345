package joblife_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// report notes a place where a rule is broken; line 0 is the file as a whole.
type report func(file string, line int, format string, args ...any)

// rules maps each rule's name to what looks for its violations.
var rules = map[string]func(*tree, report){
	"api":       checkAPI,
	"banned":    checkBanned,
	"comment":   checkComments,
	"doc":       checkDoc,
	"global":    checkGlobals,
	"goroutine": checkGoroutines,
	"import":    checkImports,
	"init":      checkInit,
	"layout":    checkLayout,
	"length":    checkLength,
	"marker":    checkMarkers,
	"module":    checkModules,
	"path":      checkPaths,
	"print":     checkPrints,
	"shell":     checkShells,
	"skip":      checkSkips,
}

// each calls f for every node of the files that match, and nil after each.
func (t *tree) each(match func(*source) bool, f func(*source, ast.Node)) {
	for _, s := range t.files {
		if s.ast == nil || !match(s) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			f(s, n)
			return true
		})
	}
}

// imported splits an expression pkg.Name into the import path and the name.
func (u *unit) imported(e ast.Node) (importPath, name string, ok bool) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	id, _ := sel.X.(*ast.Ident)
	pkg, ok := u.info.Uses[id].(*types.PkgName)
	if !ok {
		return "", "", false
	}
	return pkg.Imported().Path(), sel.Sel.Name, true
}

// importPath returns what an import declaration names.
func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value) // the parser has done so too
	return p
}

// isThirdParty reports whether an import path is neither of the standard
// library nor of this repository.
func isThirdParty(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".") && !within(importPath, modulePath)
}

// checkLayout: the names in the root and the folders of packages are those of
// the table.
func checkLayout(t *tree, report report) {
	for _, name := range t.top {
		_, isPackage := layout[name]
		if !isPackage && !slices.Contains(topLevel, name) && name != "rset" && !strings.HasSuffix(name, "_test.go") {
			report(name, 0, "no such name belongs in the root")
		}
	}
	for _, u := range t.units {
		first := u.files[0].path
		below, isExample := strings.CutPrefix(u.dir, "examples/")
		example, _, _ := strings.Cut(below, "/")
		if _, ok := layout[u.dir]; !ok && !(isExample && slices.Contains(exampleNames, example)) {
			report(first, 0, "no package is planned at %q", u.dir)
		}
	}
}

// checkImports: the import column of the table is law. Tests may import every
// package of the module, because nobody links them.
func checkImports(t *tree, report report) {
	t.each(func(*source) bool { return true }, func(s *source, n ast.Node) {
		spec, ok := n.(*ast.ImportSpec)
		if !ok {
			return
		}
		p := importPath(spec)
		if spec.Name != nil && spec.Name.Name == "." {
			report(s.path, t.line(spec), "dot import of %s", p)
		}
		if why := refuseImport(s, p); why != "" {
			report(s.path, t.line(spec), "import of %s: %s", p, why)
		}
	})
}

// refuseImport says why a file may not import a package; "" if it may.
func refuseImport(s *source, p string) string {
	dir, inModule := strings.CutPrefix(p, modulePath)
	dir = strings.TrimPrefix(dir, "/")
	allowed := strings.Fields(layout[s.dir])
	switch {
	case p == modulePath+"/internal/refdata":
		if !s.test {
			return "only tests may"
		}
	case s.example():
		if inModule && within(dir, "internal") && !s.test {
			return "an example is what a user could write"
		}
	case isThirdParty(p):
		if s.test {
			allowed = append(allowed, testThirdParty...)
		}
		if !slices.ContainsFunc(allowed, func(name string) bool {
			module, ok := thirdParty[name]
			return ok && within(p, module)
		}) {
			return "this module is not listed for this package"
		}
	case inModule && within(dir, "examples"):
		return "nothing builds on an example"
	case inModule && !s.test:
		if !slices.Contains(allowed, dir) {
			return "the table has no such arrow"
		}
	}
	return ""
}

// checkModules: the root module requires only what the table knows. What else
// an example needs goes into the example's own module.
func checkModules(t *tree, report report) {
	for _, s := range t.files {
		if s.path != "go.mod" {
			continue
		}
		for i, line := range strings.Split(string(s.src), "\n") {
			line = strings.TrimPrefix(strings.TrimSpace(line), "require ")
			fields := strings.Fields(line)
			if len(fields) < 2 || !isThirdParty(fields[0]) || strings.HasSuffix(line, "// indirect") {
				continue
			}
			known := false
			for _, module := range thirdParty {
				known = known || module == fields[0]
			}
			if !known {
				report(s.path, i+1, "module %s is not listed", fields[0])
			}
		}
	}
}

// bannedImports maps packages, with all below them, to the reason why the
// library does not import them.
var bannedImports = map[string]string{
	"math/rand":   "the same input gives the same output",
	"crypto/rand": "the same input gives the same output",
	"os":          "the library does no I/O",
	"io/ioutil":   "the library does no I/O",
	"net":         "the library does no I/O",
	"syscall":     "the library does no I/O",
	"log":         "the caller logs",
	"flag":        "the caller configures",
	"expvar":      "the library has no globals",
	"sync":        "one goroutine at a time owns a value",
	"unsafe":      "no profile has asked for it",
	"testing":     "only tests may",
	"C":           "pure Go",
}

// clockNames are the functions of package time that read the clock or wait.
var clockNames = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// checkBanned: the library reads no clock, no randomness, no files and no
// environment, and has no locks. Tests neither wait nor read the clock.
func checkBanned(t *tree, report report) {
	t.each((*source).library, func(s *source, n ast.Node) {
		spec, ok := n.(*ast.ImportSpec)
		if !ok {
			return
		}
		p := importPath(spec)
		for banned, why := range bannedImports {
			excused := banned == "os" && p == "os" && slices.Contains(doesIO, s.dir) ||
				banned == "syscall" && s.dir == "eventlog/logfile" || // locks of files
				banned == "testing" && s.dir == "jobstate/manager/managertest"
			if within(p, banned) && !excused {
				report(s.path, t.line(spec), "import of %s: %s", p, why)
			}
		}
	})
	t.each(func(s *source) bool { return !s.example() }, func(s *source, n ast.Node) {
		p, name, ok := s.unit.imported(n)
		if !ok || p != "time" {
			return
		}
		if s.library() && slices.Contains(clockNames, name) {
			report(s.path, t.line(n), "time.%s: the time is an input", name)
		}
		if s.test && (name == "Now" || name == "Sleep") {
			report(s.path, t.line(n), "time.%s: time in tests is a fixed start plus offsets", name)
		}
	})
}

// checkGoroutines: one goroutine at a time owns a value, the caller's.
func checkGoroutines(t *tree, report report) {
	t.each((*source).library, func(s *source, n ast.Node) {
		if stmt, ok := n.(*ast.GoStmt); ok {
			report(s.path, t.line(stmt), "go statement")
		}
	})
}

// checkInit: importing a package does nothing.
func checkInit(t *tree, report report) {
	t.each((*source).library, func(s *source, n ast.Node) {
		if f, ok := n.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			report(s.path, t.line(f), "func init")
		}
	})
}

// checkPrints: the library writes to no terminal.
func checkPrints(t *tree, report report) {
	t.each((*source).library, func(s *source, n ast.Node) {
		if p, name, ok := s.unit.imported(n); ok && p == "fmt" && strings.HasPrefix(name, "Print") {
			report(s.path, t.line(n), "fmt.%s", name)
		}
		if id, ok := n.(*ast.Ident); ok {
			if b, ok := s.unit.info.Uses[id].(*types.Builtin); ok && strings.HasPrefix(b.Name(), "print") {
				report(s.path, t.line(n), "builtin %s", b.Name())
			}
		}
	})
}

// checkDoc: a public package is told in doc.go, any other in some file. The
// root package has no symbols: it is documentation alone.
func checkDoc(t *tree, report report) {
	if !slices.Contains(t.top, "doc.go") {
		report("doc.go", 0, "the root package has no such file")
	}
	for _, u := range t.units {
		var last string
		documented := false
		for _, s := range u.files {
			if s.test {
				continue
			}
			last = s.path
			public := !s.example() && !within(s.dir, "internal")
			if s.ast.Doc.Text() != "" && (!public || path.Base(s.path) == "doc.go") {
				documented = true
			}
			if s.path == "doc.go" && len(s.ast.Decls) > 0 {
				report(s.path, t.line(s.ast.Decls[0]), "the root package has no declarations")
			}
		}
		if last != "" && !documented {
			report(path.Join(u.dir, "doc.go"), 0, "the package has no such file, or it says nothing")
		}
	}
}

// checkShells: a package that only says what it will be is no package.
func checkShells(t *tree, report report) {
	for _, u := range t.units {
		var shell string
		declares := false
		for _, s := range u.files {
			if s.test {
				continue
			}
			shell = s.path
			declares = declares || path.Base(s.path) != "doc.go" && slices.ContainsFunc(s.ast.Decls, func(d ast.Decl) bool {
				gen, ok := d.(*ast.GenDecl)
				return !ok || gen.Tok != token.IMPORT
			})
		}
		if shell != "" && !declares && u.dir != "" {
			report(shell, 0, "the package declares nothing beside doc.go")
		}
	}
}

// checkLength: a file is read in one sitting.
func checkLength(t *tree, report report) {
	for _, s := range t.files {
		limit := 600
		if s.test {
			limit = 900
		}
		if n := bytes.Count(s.src, []byte("\n")); s.ast != nil && n > limit {
			report(s.path, n, "%d lines, the limit is %d", n, limit)
		}
	}
}

// marker is written in parts, so that it does not find itself.
var marker = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)

// checkMarkers: what is left to do is done, or told in an issue.
func checkMarkers(t *tree, report report) {
	eachLine(t, func(s *source, line int, text []byte) {
		if m := marker.Find(text); m != nil && !s.data {
			report(s.path, line, "%s", m)
		}
	})
}

// ownPath matches absolute paths of the machines that the code was written on.
var ownPath = regexp.MustCompile(`(^|[^\w.~-])/(wo` + `rk|ro` + `ot)/`)

// checkPaths: the repository works wherever it is cloned.
func checkPaths(t *tree, report report) {
	eachLine(t, func(s *source, line int, text []byte) {
		if m := ownPath.Find(text); m != nil {
			report(s.path, line, "absolute path %s", bytes.TrimSpace(m))
		}
	})
}

// eachLine calls f for each line of each text file, but for the checksums.
func eachLine(t *tree, f func(s *source, line int, text []byte)) {
	for _, s := range t.files {
		if !s.text || path.Ext(s.path) == ".sum" {
			continue
		}
		for i, text := range bytes.Split(s.src, []byte("\n")) {
			f(s, i+1, text)
		}
	}
}

// checkSkips: a test that does not run says why.
func checkSkips(t *tree, report report) {
	tests := make(map[types.Object]bool) // variables of package testing's types
	all := func(*source) bool { return true }
	t.each(all, func(s *source, n ast.Node) {
		field, ok := n.(*ast.Field)
		if !ok {
			return
		}
		typ := field.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if p, _, ok := s.unit.imported(typ); ok && p == "testing" {
			for _, name := range field.Names {
				tests[s.unit.info.Defs[name]] = true
			}
		}
	})
	t.each(all, func(s *source, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return
		}
		id, _ := sel.X.(*ast.Ident)
		if !tests[s.unit.info.Uses[id]] {
			return
		}
		switch sel.Sel.Name {
		case "SkipNow":
			report(s.path, t.line(call), "%s.SkipNow gives no reason", id.Name)
		case "Skip", "Skipf":
			if len(call.Args) == 0 || emptyString(call.Args[0]) {
				report(s.path, t.line(call), "%s.%s gives no reason", id.Name, sel.Sel.Name)
			}
		}
	})
}

// emptyString reports whether e is "".
func emptyString(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && len(lit.Value) == 2
}
