package rset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
)

// Nodes are equal however their children are spelled, and whatever the node before
// was.
// RS-3.
func TestNodesAreEqualHoweverTheyAreSpelled(t *testing.T) {
	want := rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(0, 1), Children: map[string]*idset.Set{"core": ids(t, "0-3,7"), "gpu": ids(t, "0")}}}}
	r, err := rset.New(want)
	require.NoError(t, err)
	for _, children := range []string{
		`{"core":"0-3,7","gpu":"0"}`, `{"gpu":"0","core":"0-3,7"}`, ` { "core" : "0-3,7" , "gpu":"0" } `,
		`{"core":"[0-3,7]","gpu":"0"}`, `{"core":"0,1,2,3,7","gpu":"[0]"}`, `{"core":"0-1,2-3,7","gpu":"0"}`,
		`{"core":"0-3,\u0037","gpu":"0"}`, `{"cor\u0065":"0-3,7","gpu":"\u0030"}`, `{"a":"","core":"0-3,7","b":"[]","gpu":"0","":""}`,
	} {
		for _, before := range []string{`{"core":"0-3,7"}`, `{"core":"0-3,7","gpu":"0"}`, `{"gpu":"0"}`, `{"core":"[0-3,7]","gpu":"1"}`, `{"core":"0-3,\u0037","gpu":"2"}`} {
			text := fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":"9","children":%s},{"rank":"1","children":{"gpu":"0","core":"0-3,7"}},{"rank":"0","children":%s}]}}`, before, children)
			got := parse(t, text)
			require.NoError(t, got.Check())
			got, err = got.Restrict(idset.Of(0, 1))
			require.NoError(t, err)
			require.Equal(t, string(r.AppendJSON(nil)), string(got.AppendJSON(nil)), text)
		}
	}
}

// Parse and New, which does not know what a node before had, make the same R.
func TestParseMakesWhatNewMakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c rset.Config
		var lite []string
		texts := rapid.SampledFrom([]string{"0", "0-3", "0,1", "0-1,2-3", "[0-3]", "", "[]", "1-2,5", `\u0031`, "0,2,4,6,8,10,12,14,16,18,20"})
		for rank := range rapid.Uint32Range(1, 40).Draw(t, "ranks") {
			e := rset.Entry{Ranks: idset.Of(rank), Children: map[string]*idset.Set{}}
			var members []string
			for _, kind := range rapid.Permutation([]string{"core", "gpu", "nic", "é"}[:rapid.IntRange(1, 4).Draw(t, "kinds")]).Draw(t, "order") {
				text := texts.Draw(t, "ids")
				set, err := idset.Parse(strings.ReplaceAll(text, `\u0031`, "1"))
				require.NoError(t, err)
				e.Children[kind] = set
				members = append(members, fmt.Sprintf(`"%s":"%s"`, kind, text))
			}
			c.Entries = append(c.Entries, e)
			lite = append(lite, fmt.Sprintf(`{"rank":"%d","children":{%s}}`, rank, strings.Join(members, rapid.SampledFrom([]string{",", " , "}).Draw(t, "comma"))))
		}
		want, wantErr := rset.New(c)
		got, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[` + strings.Join(lite, ",") + `]}}`))
		require.Equal(t, wantErr == nil, err == nil)
		if err == nil {
			require.NoError(t, got.Check())
			require.Equal(t, string(want.AppendJSON(nil)), string(got.AppendJSON(nil)))
		}
	})
}
