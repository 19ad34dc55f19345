package hostlist_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/rset/hostlist"
)

// proportionate is the number of bytes of memory that a byte of text may take,
// beside the hosts that are spelled.
const proportionate = 400

// FuzzParse: no panic; what is read is canonical, reads back, finds its hosts
// and takes memory in proportion; what is refused is refused at a place in the
// text.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "foo[1-5],bar", "[00-2]", "foo[0-4]-eth2", "a0[8-11],a[1,1]", "n[0-16777216]", "a[005,4,11-13]", "x[1]y[2]",
		"a[99999999999999999999-1]", "a1000000000000000000", "a[0000000000000000001-3]p2", "a9,a10,a010,,",
	} {
		f.Add(text)
	}
	parser := hostlist.Parser{MaxSpelled: 1000}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parser.Parse(text)
		if err != nil {
			require.Nil(t, l)
			checkParseError(t, text, err)
			return
		}
		require.NoError(t, l.Check())
		require.LessOrEqual(t, l.Memory(), proportionate*len(text)+1000*(2*hostlist.MaxName+100))

		canonical := l.String()
		back, err := hostlist.Parse(canonical)
		require.NoError(t, err)
		require.True(t, back.Equal(l))
		require.Equal(t, canonical, back.String())
		twice, err := hostlist.Parser{MaxHosts: 1 << 26}.Parse(canonical + "," + canonical)
		require.NoError(t, err)
		require.Equal(t, 2*l.Len(), twice.Len())
		require.Equal(t, l.Len(), twice.Delete(l))
		require.True(t, twice.Equal(l))

		if l.Len() > 1000 {
			name, ok := l.Nth(l.Len() / 2)
			require.True(t, ok)
			require.True(t, l.Contains(name))
			return
		}
		all := slices.Collect(l.All())
		requireHosts(t, all, l)
		for _, name := range all[:min(len(all), 5)] {
			requireFound(t, all, l, name)
		}
		require.NoError(t, l.Sort())
		slices.SortStableFunc(all, compareNaively)
		requireHosts(t, all, l)
		all = slices.Compact(all)
		l.Uniq()
		requireHosts(t, all, l)
	})
}

func checkParseError(t *testing.T, text string, err error) {
	var (
		syntax *hostlist.SyntaxError
		limit  *hostlist.LimitError
		offset int
	)
	if errors.As(err, &syntax) {
		offset = syntax.Offset
		require.ErrorIs(t, err, hostlist.ErrSyntax)
		require.LessOrEqual(t, len(syntax.Token), 64)
		require.Contains(t, text, syntax.Token)
	} else {
		require.ErrorAs(t, err, &limit)
		offset = limit.Offset
		require.Greater(t, limit.Got, limit.Limit)
	}
	require.True(t, 0 <= offset && offset <= len(text))
	require.True(t, strings.HasPrefix(err.Error(), "hostlist: "))
	require.NotContains(t, err.Error(), "\n")
	require.Less(t, len(err.Error()), 400)
}
