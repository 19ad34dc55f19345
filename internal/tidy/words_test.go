//go:build !race

package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

// selfNamed are fields that say the same wherever they are: the ID of a job, Tag and By as
// joblife.Input explains them, and Extra as jobstate.Context does.
const selfNamed = "ID Job Tag By Extra"

// cited finds the ids of invariants and requirements. Their lists are in doc.go of the root and
// in REQUIREMENTS.md, so what a user reads elsewhere has to say the same in words.
var cited = regexp.MustCompile(`\bI([1-9]|1[0-2])\b|` + requirement.String())

// words finds what is exported without a word: no comment of its own, none around it, or
// beside it in a struct, that has its name, and no type that has it. A text says what it is.
func (f file) words(fset *token.FileSet, syntax *ast.File) {
	check := func(id *ast.Ident, own, around string) {
		if id.IsExported() && own == "" && !strings.Contains(strings.ToLower(around), strings.ToLower(id.Name)) {
			f.report(fset.Position(id.Pos()).Line, "comment", "%s is exported and has none", id.Name)
		}
	}
	cite := func(id *ast.Ident, text string) {
		if id.IsExported() && cited.MatchString(text) {
			f.report(fset.Position(id.Pos()).Line, "id", "%s: say it in words", id.Name)
		}
	}
	if cited.MatchString(syntax.Doc.Text()) && f.name != "doc.go" {
		f.report(fset.Position(syntax.Name.Pos()).Line, "id", "package %s: say it in words", f.dir)
	}
	for _, d := range syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if (&surface{}).receiver(d.Recv) {
				check(d.Name, d.Doc.Text(), "")
				cite(d.Name, d.Doc.Text())
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for i, id := range s.Names {
						if d.Doc != nil && i < len(s.Values) && strings.HasPrefix(types.ExprString(s.Values[i]), `"`) {
							continue
						}
						check(id, s.Doc.Text()+s.Comment.Text(), d.Doc.Text())
						cite(id, s.Doc.Text()+s.Comment.Text()+d.Doc.Text())
					}
				case *ast.TypeSpec:
					around := s.Doc.Text() + d.Doc.Text()
					check(s.Name, "", around)
					cite(s.Name, around)
					if t, ok := s.Type.(*ast.StructType); ok && s.Name.IsExported() {
						for _, field := range t.Fields.List {
							own := field.Doc.Text() + field.Comment.Text()
							for _, id := range field.Names {
								cite(id, own)
								if around += own; !has(selfNamed, id.Name) {
									check(id, own, around+types.ExprString(field.Type))
								}
							}
						}
					}
				}
			}
		}
	}
}
