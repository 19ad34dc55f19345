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

// A tree is the repository, with what was read of it.
type tree struct {
	fsys  fs.FS
	tests map[string]map[string]string // by folder and name, the file of a test
	texts map[string]string            // by name, what a page says, or the comments of a Go file
}

func newTree(fsys fs.FS) *tree {
	return &tree{fsys, make(map[string]map[string]string), make(map[string]string)}
}

// parse reads a Go file.
func (t *tree) parse(file string) (syntax *ast.File, text []byte, err error) {
	if text, err = fs.ReadFile(t.fsys, file); err != nil {
		return nil, nil, err
	}
	syntax, err = parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution|parser.ParseComments)
	return syntax, text, err
}

// testsOf returns the tests, fuzz targets and examples of a folder.
func (t *tree) testsOf(dir string) (map[string]string, error) {
	if found, ok := t.tests[dir]; ok {
		return found, nil
	}
	files, err := fs.Glob(t.fsys, path.Join(dir, "*_test.go"))
	found := make(map[string]string)
	for _, file := range files {
		syntax, _, perr := t.parse(file)
		if err = errors.Join(err, perr); perr != nil {
			continue
		}
		for _, d := range syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				found[f.Name.Name] = file
			}
		}
	}
	t.tests[dir] = found
	return found, err
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

// prove says which tests and quotations of a table there are not.
func (t *tree) prove(of table) error {
	var errs []error
	for _, r := range of.rows {
		for i, n := range r.tests {
			found, err := t.testsOf(n.dir)
			if err == nil && found[n.test] == "" {
				err = fmt.Errorf("package %s has no %s", n.dir, n.test)
			} else if slices.Contains(r.tests[:i], n) {
				err = fmt.Errorf("%s is there twice", n.test)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s:%d: %w", of.file, r.line, err))
			}
		}
		if r.quote == "" {
			continue
		}
		text, err := t.text(r.file)
		if err == nil && !strings.Contains(text, r.quote) {
			err = fmt.Errorf("%s does not say %q", r.file, r.quote)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", of.file, r.line, err))
		}
	}
	return errors.Join(errs...)
}

// A requirement is a rule of REQUIREMENTS.md, and where tests cite it.
type requirement struct {
	id, title string
	cited     []citation
}

// A citation is a function of a test file.
type citation struct{ file, function string }

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
	err = fs.WalkDir(t.fsys, ".", func(file string, d fs.DirEntry, err error) error {
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
			from, who := f.Pos(), f.Name.Name
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			ids := idInText.FindAllString(string(text[from-syntax.FileStart:f.End()-syntax.FileStart]), -1)
			for _, m := range idInName.FindAllStringSubmatch(who, -1) {
				ids = append(ids, m[1]+"-"+m[2])
			}
			slices.Sort(ids)
			for _, id := range slices.Compact(ids) {
				if r := known[id]; r != nil {
					r.cited = append(r.cited, citation{file, who})
				} else if prefixes[id[:2]] {
					errs = append(errs, fmt.Errorf("%s: %s cites %s, which is not in REQUIREMENTS.md", file, who, id))
				}
			}
		}
		return nil
	})
	for _, r := range all {
		if len(r.cited) == 0 {
			errs = append(errs, fmt.Errorf("REQUIREMENTS.md: no test cites %s %s", r.id, r.title))
		}
	}
	return all, errors.Join(append(errs, err)...)
}
