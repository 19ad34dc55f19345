package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite CONFORMANCE.md")

const root = "../.."

func repository(t *testing.T) *tree {
	tree, err := newTree(os.DirFS(root))
	require.NoError(t, err)
	return tree
}

// tables reads the data files, in the order of their RFCs.
func tables(t *testing.T) (all []table) {
	files, err := filepath.Glob("testdata/rfc*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		of, err := readTable(filepath.ToSlash(file), string(b))
		require.NoError(t, err)
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b table) int { return a.number - b.number })
	return all
}

func TestEveryTestAndQuotationExists(t *testing.T) {
	tree := repository(t)
	for _, of := range tables(t) {
		if err := tree.prove(of); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryRequirementHasATest(t *testing.T) {
	_, err := repository(t).requirements()
	require.NoError(t, err)
}

func TestEveryClauseHasItsRow(t *testing.T) {
	dir := os.Getenv("JOBLIFE_RFC")
	if dir == "" {
		t.Skip("JOBLIFE_RFC does not name a folder with the texts of the RFCs, spec_14.rst and so on")
	}
	for _, of := range tables(t) {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("spec_%d.rst", of.number)))
		require.NoError(t, err)
		if err := compare(of, string(b)); err != nil {
			t.Error(err)
		}
	}
}

func TestThePageIsMadeOfTheRows(t *testing.T) {
	tree, all := repository(t), tables(t)
	rules, err := tree.requirements()
	require.NoError(t, err)
	const file = root + "/CONFORMANCE.md"
	text := tree.render(all, rules)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	got, want := strings.Split(string(b), "\n"), strings.Split(text, "\n")
	for i := range max(len(got), len(want)) {
		if i == len(got) || i == len(want) || got[i] != want[i] {
			t.Fatalf("%s:%d: not what the rows make: read the difference, then run with -update", file, i+1)
		}
	}
}
