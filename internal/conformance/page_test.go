package conformance

import (
	"fmt"
	"path"
	"strings"
)

const introduction = `# Conformance

Which clauses of the [Flux RFCs](https://flux-framework.readthedocs.io/projects/flux-rfc/) joblife keeps, and what shows it. Each
MUST, MUST NOT, SHALL, SHALL NOT and REQUIRED has a row, in our words. A test shows the clause, or it is for the embedder to keep, and
the named comment says so, or joblife does not do it, for the reason given. The last table has the tests of [REQUIREMENTS.md](REQUIREMENTS.md).

Made of the files in [internal/conformance](internal/conformance) by the tests there, which check that each test and comment exists.
Do not edit it: change the files and run ` + "`go test ./internal/conformance -update`" + `.

| RFC | clauses | shown by tests | the embedder's | not done |
|---|---|---|---|---|
`

// render writes CONFORMANCE.md.
func (t *tree) render(tables []table, rules []*requirement) string {
	var page, sections strings.Builder
	page.WriteString(introduction)
	var all [4]int
	for _, of := range tables {
		var n [4]int
		fmt.Fprintf(&sections, "\n## RFC %s\n\n", of.title)
		body := "\n| section | clause | shown by |\n|---|---|---|\n"
		for _, r := range of.rows {
			kind, proof := t.proof(r)
			n[0]++
			n[kind]++
			body += fmt.Sprintf("| %s | %s | %s |\n", cell(r.section), cell(r.words), proof)
		}
		for i := range n {
			all[i] += n[i]
		}
		fmt.Fprintf(&sections, "[Its text](https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_%d.html). "+
			"Clauses: %d; shown by tests %d, the embedder's %d, not done %d.\n%s", of.number, n[0], n[1], n[2], n[3], body)
		fmt.Fprintf(&page, "| [%s](#%s) | %d | %d | %d | %d |\n", cell(of.title), anchor("RFC "+of.title), n[0], n[1], n[2], n[3])
	}
	fmt.Fprintf(&page, "| all | %d | %d | %d | %d |\n", all[0], all[1], all[2], all[3])
	page.WriteString(sections.String())
	page.WriteString("\n## Requirements\n\n| rule | cited by |\n|---|---|\n")
	for _, r := range rules {
		var cited []string
		for _, c := range r.cited {
			cited = append(cited, link(path.Dir(c.file), c.name, c.file))
		}
		fmt.Fprintf(&page, "| %s %s | %s |\n", r.id, cell(r.title), strings.Join(cited, ", "))
	}
	return page.String()
}

// proof returns 1, 2 or 3 with what shows a clause: a test, the embedder, nothing.
func (t *tree) proof(r row) (kind int, text string) {
	var links []string
	for _, n := range r.tests {
		links = append(links, link(n.dir, n.test, t.tests[n]))
	}
	switch {
	case r.quote != "":
		return 2, fmt.Sprintf("embedder, [%s](%s): “%s”", r.file, r.file, cell(r.quote))
	case r.reason != "":
		return 3, "not done: " + cell(r.reason)
	}
	return 1, strings.Join(links, ", ")
}

// link names a function of a package, the root's by its name alone.
func link(dir, name, file string) string {
	return fmt.Sprintf("[%s](%s)", strings.TrimPrefix(dir+"."+name, ".."), file)
}

// cell escapes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// anchor returns the name that GitHub gives a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, strings.ToLower(heading))
}
