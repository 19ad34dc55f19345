package hostlist_test

import (
	"regexp"
	"slices"
	"strconv"
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
		"a[99999999999999999999-1]", "a1000000000000000000", "a[0000000000000000001-3]p2", "a9,a10,a010,,", "n00[0-9999999]", "00000[0-9999999]",
		"a[-1]b", "a[1,0a]", "a,[1-2]\x00", "a0[" + strings.Repeat("9,", 1<<15) + "9]", strings.Repeat("a,b1,", 1<<12), strings.Repeat("a0[9-11],b,", 1<<10),
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
		if l.Len() > 1000 {
			name, ok := l.Nth(l.Len() / 2)
			require.True(t, ok)
			_, ok = l.Find(name)
			require.True(t, ok)
			return
		}
		all := slices.Collect(l.All())
		requireHosts(t, all, l)
		for _, name := range all[:min(len(all), 5)] {
			requireFound(t, all, l, name)
		}
		slices.SortStableFunc(all, compareNaively)
		l.Uniq()
		requireHosts(t, slices.Compact(all), l)
	})
}

var (
	syntaxText = regexp.MustCompile(`^hostlist: syntax error: offset (\d+): [a-z ]+ in (".*")$`)
	limitText  = regexp.MustCompile(`^hostlist: limit exceeded: offset (\d+): (\d+) [a-z ]+, at most (\d+) are allowed$`)
)

// checkParseError fails the test unless an error tells a place in the text.
func checkParseError(t require.TestingT, text string, err error) {
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	var offset int
	if m := syntaxText.FindStringSubmatch(err.Error()); m != nil {
		require.ErrorContains(t, err, syntaxError)
		offset = number(m[1])
		token, err := strconv.Unquote(m[2])
		require.NoError(t, err)
		require.LessOrEqual(t, len(token), 64)
		require.Contains(t, text, token)
	} else {
		require.ErrorIs(t, err, hostlist.ErrLimit)
		m := limitText.FindStringSubmatch(err.Error())
		require.NotNil(t, m, "%v", err)
		offset = number(m[1])
		require.Greater(t, number(m[2]), number(m[3]))
	}
	require.LessOrEqual(t, offset, len(text))
	require.Less(t, len(err.Error()), 400)
}
