package conformance

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A tree is the repository.
type tree struct {
	fsys      fs.FS
	functions []function      // of all test files, in their order
	tests     map[name]string // the file of a test, fuzz target or example
	texts     map[string]string
}

// A function is one of a test file, with the comment before it.
type function struct{ file, name, text string }

// newTree reads all test files but those of this package and of internal/tidy, which are
// full of examples.
func newTree(fsys fs.FS) (*tree, error) {
	t := &tree{fsys: fsys, tests: make(map[name]string), texts: make(map[string]string)}
	err := fs.WalkDir(fsys, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || file == "internal/conformance" || file == "internal/tidy"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		syntax, text, err := t.parse(file)
		if err != nil {
			return err
		}
		for _, d := range syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			t.functions = append(t.functions, function{file, f.Name.Name, string(text[from-syntax.FileStart : f.End()-syntax.FileStart])})
			if f.Recv == nil {
				t.tests[name{path.Dir(file), f.Name.Name}] = file
			}
		}
		return nil
	})
	return t, err
}

// parse reads a Go file.
func (t *tree) parse(file string) (syntax *ast.File, text []byte, err error) {
	if text, err = fs.ReadFile(t.fsys, file); err != nil {
		return nil, nil, err
	}
	syntax, err = parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution|parser.ParseComments)
	return syntax, text, err
}

// text returns a Markdown page, or the comments of a Go file, with single spaces.
func (t *tree) text(file string) (string, error) {
	if text, ok := t.texts[file]; ok {
		return text, nil
	}
	var text strings.Builder
	switch path.Ext(file) {
	case ".md":
		b, err := fs.ReadFile(t.fsys, file)
		if err != nil {
			return "", err
		}
		text.Write(b)
	case ".go":
		syntax, _, err := t.parse(file)
		if err != nil {
			return "", err
		}
		for _, group := range syntax.Comments {
			text.WriteString(group.Text() + "\n")
		}
	default:
		return "", fmt.Errorf("%s is neither Go nor Markdown", file)
	}
	t.texts[file] = strings.Join(strings.Fields(text.String()), " ")
	return t.texts[file], nil
}

var testInText = regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w*`)

// prove says which tests and quotations of a table there are not.
func (t *tree) prove(of table) error {
	var errs []error
	for _, r := range of.rows {
		fail := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s:%d: "+format, append([]any{of.file, r.line}, args...)...))
		}
		for i, n := range r.tests {
			if t.tests[n] == "" {
				fail("package %s has no %s", n.dir, n.test)
			} else if slices.Contains(r.tests[:i], n) {
				fail("%s is there twice", n.test)
			}
		}
		for _, test := range testInText.FindAllString(r.reason, -1) {
			if !slices.ContainsFunc(t.functions, func(f function) bool { return f.name == test }) {
				fail("there is no %s", test)
			}
		}
		if r.quote == "" {
			continue
		}
		if text, err := t.text(r.file); err != nil {
			fail("%w", err)
		} else if !strings.Contains(text, r.quote) {
			fail("%s does not say %q", r.file, r.quote)
		}
	}
	return errors.Join(errs...)
}

// A requirement is a rule of REQUIREMENTS.md, and where tests cite it.
type requirement struct {
	id, title string
	cited     []function
}

var (
	ruleLine = regexp.MustCompile(`^- \*\*([A-Z]{2}-[1-9]\d*) (.+?)\.\*\*`)
	idInText = regexp.MustCompile(`\b[A-Z]{2}-[1-9]\d*\b`)
	idInName = regexp.MustCompile(`(?:^Test|^Fuzz|And)([A-Z]{2})([1-9]\d*)`)
)

// requirements reads REQUIREMENTS.md and finds the functions of tests that cite its rules: in the
// comment before them, in their name or in their body. A rule without a test is an error, and a name that cites no rule.
func (t *tree) requirements() (all []*requirement, err error) {
	b, err := fs.ReadFile(t.fsys, "REQUIREMENTS.md")
	if err != nil {
		return nil, err
	}
	known := make(map[string]*requirement)
	prefixes := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		if m := ruleLine.FindStringSubmatch(line); m != nil {
			all = append(all, &requirement{id: m[1], title: m[2]})
			known[m[1]], prefixes[m[1][:2]] = all[len(all)-1], true
		}
	}
	var errs []error
	for _, f := range t.functions {
		ids := idInText.FindAllString(f.text, -1)
		for _, m := range idInName.FindAllStringSubmatch(f.name, -1) {
			ids = append(ids, m[1]+"-"+m[2])
		}
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			if r := known[id]; r != nil {
				r.cited = append(r.cited, f)
			} else if prefixes[id[:2]] {
				errs = append(errs, fmt.Errorf("%s: %s cites %s, which is not in REQUIREMENTS.md", f.file, f.name, id))
			}
		}
	}
	for _, r := range all {
		if len(r.cited) == 0 {
			errs = append(errs, fmt.Errorf("REQUIREMENTS.md: no test cites %s %s", r.id, r.title))
		}
	}
	return all, errors.Join(errs...)
}
