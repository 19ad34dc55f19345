package conformance

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestEveryRuleFindsItsFlaw: a text without a flaw passes, and each flaw is found where it is.
func TestEveryRuleFindsItsFlaw(t *testing.T) {
	const head, rowOf = "# RFC 7/Sets\n# more\n", "Ids | 0123abcd#1 | Ids are small. | "
	for text, want := range map[string]string{
		head + rowOf + "test x.TestA, x.FuzzB, ..ExampleC_d\n\n": "",
		head + rowOf + "none: why | not\n":                       "",
		head + rowOf + `embedder x/doc.go: "it is yours"`:        "",
		"":                                               "rfc7.txt:1: the file is empty",
		"\n":                                             `rfc7.txt:1: want "# RFC 7/Title"`,
		"# RFC 8/Sets":                                   "rfc7.txt:1: the file of RFC 8 is rfc8.txt",
		head + "Ids | 0123abcd#1":                        "rfc7.txt:3: 2 fields, want 4",
		head + "  | a | b | none: c":                     "rfc7.txt:3: field 1 is empty",
		head + rowOf + " none: a":                        "rfc7.txt:3: field 4 is empty or has spaces",
		head + "a | 123#1 | b | none":                    "rfc7.txt:3: \"123#1\" is no digest",
		head + rowOf + "none:":                           "rfc7.txt:3: there is no reason",
		head + rowOf + "maybe":                           "rfc7.txt:3: the proof \"maybe\" begins with none",
		head + rowOf + "test TestA":                      "rfc7.txt:3: \"TestA\" is no test",
		head + rowOf + "test .TestA":                     "rfc7.txt:3: \".TestA\" is no test",
		head + rowOf + "test x.testA":                    "rfc7.txt:3: \"x.testA\" is no test",
		head + rowOf + "test x.TestA,y.TestB":            "rfc7.txt:3: \"x.TestA,y.TestB\" is no test",
		head + rowOf + "test x/../y.TestA":               "rfc7.txt:3: \"x/../y.TestA\" is no test",
		head + rowOf + `embedder x/doc.go: "two words"`:  "is no quotation of three words",
		head + rowOf + `embedder x/doc.go "it is yours"`: "is no quotation of three words",
	} {
		_, err := readTable("rfc7.txt", text)
		finds(t, want, err, text)
	}

	_, err := newTree(fstest.MapFS{"x/bad_test.go": {Data: []byte("package")}})
	finds(t, "x/bad_test.go:1:", err, "what is no Go")
	tree := treeOf(t, fstest.MapFS{
		"c_test.go":      {Data: []byte("package c\n\nfunc TestC() {}\n")},
		"x/doc.go":       {Data: []byte("/*\nPackage x. It\nis */\n// yours.\npackage x\n\nconst c = \"code is silent\"\n")},
		"x/page.md":      {Data: []byte("It is\n  yours.\n")},
		"x/y/a_test.go":  {Data: []byte("package y\n\nfunc TestA() {}\nfunc FuzzB() {}\n")},
		"x/y/b_test.go":  {Data: []byte("package y\n\n// TestC is no function.\nfunc (x) TestM() {}\n")},
		"x/y/TestD.text": {},
	})
	for proof, want := range map[string]string{
		"test x/y.TestA, x/y.FuzzB, ..TestC": "", "test x/y.TestC": "rfc7.txt:1: package x/y has no TestC", "test x/y.TestM": "has no TestM",
		"test x/z.TestA": "has no TestA", "none: TestC and FuzzB show it, not a Test": "", "none: TestD shows it": "rfc7.txt:1: there is no TestD", "test x/y.TestA, x/y.TestA": "TestA is there twice",
		`embedder x/doc.go: "It is yours."`: "", `embedder x/page.md: "It is yours."`: "",
		`embedder x/doc.go: "code is silent"`: `rfc7.txt:1: x/doc.go does not say "code is silent"`, `embedder x/page.md: "It is mine"`: "does not say",
		`embedder x/gone.go: "It is yours"`: "x/gone.go: file does not exist", `embedder x/gone.md: "It is yours"`: "x/gone.md: file does not exist",
		`embedder x/y/TestD.text: "It is yours"`: "neither Go nor Markdown",
	} {
		r, err := readRow(rowOf + proof)
		require.NoError(t, err, proof)
		r.line = 1
		finds(t, want, tree.prove(table{file: "rfc7.txt", rows: []row{r}}), proof)
	}
}

func treeOf(t *testing.T, fsys fstest.MapFS) *tree {
	t.Helper()
	tree, err := newTree(fsys)
	require.NoError(t, err)
	return tree
}

// finds asserts that there is no error if want is empty, and else one that has it.
func finds(t *testing.T, want string, err error, of string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err, of)
		return
	}
	require.ErrorContains(t, err, want, of)
}

// An RFC's clauses are found wherever its lines break, and each difference of the rows is found.
func TestRowsAreThoseOfTheText(t *testing.T) {
	const text = "7/Sets\n######\n\nThe key words \"MUST\" and so\non.\n\nIds\n===\n\nIds MUST\n  NOT be large; they\nSHALL be small.\n" +
		"- One is REQUIRED.\n-  MUSTARD, must and SHOULD.\n  SHALL it?\n\nMore\n----\nIds SHALL be.\n"
	found := clauses(text)
	var short []string
	for _, c := range found {
		short = append(short, c.section+" "+c.digest[8:]+" "+c.keyword)
	}
	require.Equal(t, []string{"Ids #1 MUST NOT", "Ids #2 SHALL", "Ids #1 REQUIRED", "Ids #1 SHALL", "More #1 SHALL"}, short)
	require.Equal(t, "Ids MUST NOT be large; they SHALL be small.", found[0].paragraph)
	require.Equal(t, "6848885a#1", found[4].digest)

	all := table{file: "rfc7.txt"}
	for i, c := range found {
		all.rows = append(all.rows, row{line: i + 2, section: c.section, digest: c.digest, words: "They have a limit."})
	}
	require.NoError(t, compare(all, text))
	for want, change := range map[string]func(rows []row) []row{
		"rfc7.txt: a row is missing: Ids | " + found[1].digest:      func(rows []row) []row { return slices.Delete(rows, 1, 2) },
		"rfc7.txt: a row is missing: More | " + found[4].digest:     func(rows []row) []row { return rows[:4] },
		"rfc7.txt:6: " + found[4].digest + " is no clause here":     func(rows []row) []row { return append(rows, rows[4]) },
		"rfc7.txt:2: 00000000#1 is no clause here: They":            func(rows []row) []row { rows[0].digest = "00000000#1"; return rows },
		"rfc7.txt: a row is missing: Ids | " + found[0].digest:      func(rows []row) []row { rows[0], rows[1] = rows[1], rows[0]; return rows },
		`rfc7.txt:3: section "Id", want "Ids"`:                      func(rows []row) []row { rows[1].section = "Id"; return rows },
		"rfc7.txt:4: these are the words of the RFC: one is Requir": func(rows []row) []row { rows[2].words = "one is Required."; return rows },
	} {
		other := all
		other.rows = change(slices.Clone(all.rows))
		finds(t, want, compare(other, text), want)
	}
}

// A rule is cited in the comment before a function of a test file, in its body, or in its name.
func TestRulesAndCitationsAgree(t *testing.T) {
	rules := "- **PR-1 One.** Text of PR-4.\n- **PR-2 Two.**\n- **HK-3 Three.**\n"
	of := func(tests string) error {
		_, err := treeOf(t, fstest.MapFS{
			"REQUIREMENTS.md": {Data: []byte(rules)}, "x/a_test.go": {Data: []byte("package x\n\n" + tests)}, "x/a.go": {Data: []byte("package x\n\n// PR-1, HK-3\n")},
		}).requirements()
		return err
	}
	const good = "// PR-1: it does.\nfunc TestA() {\n\t_ = \"PR-2\"\n}\n\n"
	require.NoError(t, of(good+"func TestPR2AndHK3Work() {}\n"))
	require.ErrorContains(t, of(good), "REQUIREMENTS.md: no test cites HK-3 Three")
	require.ErrorContains(t, of(good+"// HK-3\n\nfunc TestB() {}\n"), "no test cites HK-3", "a comment of no declaration")
	require.ErrorContains(t, of(good+"func TestHK3AndPR4() {}\n"), "x/a_test.go: TestHK3AndPR4 cites PR-4, which is not in REQUIREMENTS.md")
	require.ErrorContains(t, of(good+"// HK-3\nvar x = 1\n"), "no test cites HK-3", "no function")
	require.NoError(t, of(good+"// HK-3, UTF-8 and PG-13.\nfunc help() {}\n"))
}

// The page counts each kind of proof, and a text cannot break its tables.
func TestThePageCountsAndEscapes(t *testing.T) {
	tree := treeOf(t, fstest.MapFS{"c_test.go": {Data: []byte("package c\n\nfunc TestC() {}\n")}})
	of, err := readTable("rfc7.txt", "# RFC 7/Sets\nIds | 0123abcd#1 | Ids are small. | test ..TestC\nIds | 0123abcd#2 | Ids are a|b. | none: a|b\nIds | 0123abcd#3 | Yours. | embedder x.md: \"it is yours\"\n")
	require.NoError(t, err)
	page := tree.render([]table{of, of}, []*requirement{{"PR-1", "One", []function{{"x/a_test.go", "TestA", ""}}}})
	for _, want := range []string{
		"| [7/Sets](#rfc-7sets) | 3 | 1 | 1 | 1 |\n", "| all | 6 | 2 | 2 | 2 |\n", "\n## RFC 7/Sets\n", "spec_7.html", "Clauses: 3; shown by tests 1, the embedder's 1, not done 1.\n",
		"| Ids | Ids are small. | [TestC](c_test.go) |\n", `| Ids | Ids are a\|b. | not done: a\|b |` + "\n",
		"| Ids | Yours. | embedder, [x.md](x.md): “it is yours” |\n", "| PR-1 One | [x.TestA](x/a_test.go) |\n",
	} {
		require.Contains(t, page, want)
	}
}
