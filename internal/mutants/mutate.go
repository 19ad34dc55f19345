package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// A mutant is one change of one file.
type mutant struct {
	pkg, fn      string // the package's folder, and the function, or - outside one
	change, line string // what is done, and the text of the line
	file, text   string // text replaces what is between two offsets
	row, from    int
	to           int
}

// key names a mutant, whatever the number of its line is.
func (m mutant) key() string { return fmt.Sprintf("%s %s %s\t%s", m.pkg, m.fn, m.change, m.line) }

func (m mutant) apply(src string) string { return src[:m.from] + m.text + src[m.to:] }

// turned has the operators and words that take another one's place.
var turned = map[string]string{
	"&&": "||", "||": "&&", "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
	"+": "-", "-": "+", "++": "--", "--": "++", "+=": "-=", "-=": "+=",
	"0": "1", "1": "0", "true": "false", "false": "true",
}

// A finder collects the mutants of a file.
type finder struct {
	file  *token.File
	src   string
	base  mutant
	fails bool // the function's last result is an error
	found []mutant
}

// mutants returns the mutants of a file, in its order.
func mutants(pkg, name, src string) []mutant {
	fset := token.NewFileSet()
	syntax := must(parser.ParseFile(fset, name, src, parser.SkipObjectResolution))
	f := finder{file: fset.File(syntax.Pos()), src: src, base: mutant{pkg: pkg, file: name}}
	for _, decl := range syntax.Decls {
		f.base.fn, f.fails = "-", false
		if d, ok := decl.(*ast.FuncDecl); ok {
			f.base.fn = d.Name.Name
			if d.Recv != nil {
				of, _, _ := strings.Cut(strings.TrimLeft(f.textOf(d.Recv.List[0].Type), "*"), "[")
				f.base.fn = of + "." + d.Name.Name
			}
			f.fails = d.Type.Results != nil && strings.HasSuffix(strings.TrimRight(f.textOf(d.Type.Results), ")"), "error")
		}
		ast.Inspect(decl, f.visit)
	}
	return f.found
}

func (f *finder) textOf(n ast.Node) string {
	return f.src[f.file.Offset(n.Pos()):f.file.Offset(n.End())]
}

// add adds the mutant that has text from a position on, in place of old.
func (f *finder) add(from token.Pos, old, change, text string) {
	m := f.base
	m.from, m.row = f.file.Offset(from), f.file.Line(from)
	m.to, m.line, m.text = m.from+len(old), lineAt(f.src, m.from), text
	m.change = strings.Join(strings.Fields(change), " ")
	f.found = append(f.found, m)
}

// lineAt returns the line of a text that has an offset, without space around it.
func lineAt(src string, offset int) string {
	line, _, _ := strings.Cut(src[offset:], "\n")
	return strings.TrimSpace(src[strings.LastIndexByte(src[:offset], '\n')+1:offset] + line)
}

// negate adds the negation of a condition, if turning its operator does not do the same.
func (f *finder) negate(cond ast.Expr) {
	b, ok := cond.(*ast.BinaryExpr)
	u, not := cond.(*ast.UnaryExpr)
	if cond == nil || ok && (b.Op == token.EQL || b.Op == token.NEQ) || not && u.Op == token.NOT || turned[f.textOf(cond)] != "" {
		return
	}
	text := f.textOf(cond)
	f.add(cond.Pos(), text, "negate "+text, "!("+text+")")
}

// turn adds the mutant that has another operator or word.
func (f *finder) turn(at token.Pos, old string) {
	if to, ok := turned[old]; ok {
		f.add(at, old, old+" → "+to, to)
	}
}

// drop adds a mutant for each statement that can be left out.
func (f *finder) drop(list []ast.Stmt) {
	for _, s := range list {
		drops := false
		switch s := s.(type) {
		case *ast.AssignStmt:
			drops = s.Tok != token.DEFINE
		case *ast.BranchStmt:
			drops = s.Tok == token.CONTINUE || s.Tok == token.BREAK
		case *ast.ExprStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.IncDecStmt, *ast.ReturnStmt:
			drops = true
		}
		if text := f.textOf(s); drops {
			f.add(s.Pos(), text, "drop "+text, "if false { "+text+" }")
		}
	}
}

// visit adds the mutants of a node, and reports whether those inside it count too.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		f.negate(n.Cond)
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, e := range clause.(*ast.CaseClause).List {
				if n.Tag == nil {
					f.negate(e)
				}
			}
		}
	case *ast.BlockStmt:
		f.drop(n.List)
	case *ast.CaseClause:
		f.drop(n.Body)
	case *ast.CommClause:
		f.drop(n.Body)
	case *ast.BinaryExpr:
		if x, y := f.textOf(n.X), f.textOf(n.Y); x[0] != '"' && y[0] != '"' && x[len(x)-1] != '"' { // no text
			f.turn(n.OpPos, n.Op.String())
		}
		for _, side := range []ast.Expr{n.X, n.Y} {
			b, ok := side.(*ast.BinaryExpr)
			if (n.Op == token.LAND || n.Op == token.LOR) && !(ok && (b.Op == token.LAND || b.Op == token.LOR)) {
				f.negate(side)
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n.Pos(), f.textOf(n), "negate "+f.textOf(n), "("+f.textOf(n.X)+")")
		}
	case *ast.IncDecStmt:
		f.turn(n.TokPos, n.Tok.String())
	case *ast.AssignStmt:
		f.turn(n.TokPos, n.Tok.String())
	case *ast.BasicLit:
		f.turn(n.Pos(), n.Value)
	case *ast.Ident:
		f.turn(n.Pos(), n.Name)
	case *ast.ReturnStmt:
		if last := len(n.Results) - 1; last > 0 {
			if text := f.textOf(n.Results[last]); text == "false" || f.fails && text != "nil" {
				ast.Inspect(n.Results[last], f.visit)
				return false
			}
		}
	case *ast.CallExpr:
		name := f.textOf(n.Fun)
		if name == "make" && len(n.Args) == 3 {
			ast.Inspect(n.Args[1], f.visit)
		}
		return name != "panic" && !(name == "make" && len(n.Args) == 3)
	}
	return true
}
