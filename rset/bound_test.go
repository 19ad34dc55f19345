package rset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// Keys and properties of both sides are joined in one pass over both, by key.
func TestUnionJoinsKeysAndProperties(t *testing.T) {
	half := func(from int) *rset.R {
		var keys, properties strings.Builder
		for i := from; i < from+40; i += 2 {
			fmt.Fprintf(&keys, `,"k%02d":%d`, i, from)
			fmt.Fprintf(&properties, `,"p%02d":"%d"`, i, from%2)
		}
		return parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],"properties":{`+
			properties.String()[1:]+`}`+keys.String()+`}`+keys.String()+`}`)
	}
	a, b := half(0), half(31)
	both, err := rset.Union(a, b)
	require.NoError(t, err)
	names := 0
	for name, ranks := range both.Properties() {
		want := idset.Union(a.Property(name), b.Property(name))
		require.True(t, want.Equal(ranks), name)
		names++
	}
	require.Equal(t, 40, names)
	text := string(both.AppendJSON(nil))
	require.Equal(t, 2, strings.Count(text, `"k38":0`), "a's key")
	require.Equal(t, 2, strings.Count(text, `"k69":31`), "b's key, since a has none")
	require.Equal(t, text, string(parse(t, text).AppendJSON(nil)))
}

// What goes over hosts one by one has a limit, and what does not goes over ranges.
func TestManyHostsOnFewRanges(t *testing.T) {
	const text = `{"version":1,"execution":{"R_lite":[{"rank":"0-16777215","children":{"core":"0-1"}}],"nodelist":["h[0-16777215]"],"properties":{"p":"0,5-16777215"}}}`
	r := parse(t, text)
	_, err := r.Rerank(r.Nodelist())
	require.ErrorIs(t, err, rset.ErrLimit)
	_, err = r.RanksOf(hostlist.Of("h7"))
	require.ErrorIs(t, err, rset.ErrLimit)

	part, err := r.Restrict(idset.Range(3, 16777214))
	require.NoError(t, err)
	require.Equal(t, "h[3-16777214]", part.Nodelist().String())
	require.Equal(t, "5-16777214", part.Property("p").String())
	require.NoError(t, part.Check())

	properties := strings.Repeat(`,"#":"0-99999"`, 50)
	for i := range 50 {
		properties = strings.Replace(properties, "#", fmt.Sprint("p", i), 1)
	}
	r = parse(t, `{"version":1,"execution":{"R_lite":[{"rank":"0-99999","children":{"core":"0-1"}}],"nodelist":["h[0-99999]"],"properties":{`+properties[1:]+`}}}`)
	_, err = r.Rerank(r.Nodelist())
	require.EqualError(t, err, "rset: limit exceeded: 4194305 ranks of properties, at most 4194304 are allowed")
}
