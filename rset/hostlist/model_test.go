package hostlist_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/rset/hostlist"
)

// names draws host names that meet in few prefixes, lengths and ids, so that
// ranges join, overlap and repeat.
var names = rapid.Custom(func(t *rapid.T) string {
	prefix := rapid.SampledFrom([]string{"", "a", "b", "a-", "a0-", "x9", "x0000000000000000"}).Draw(t, "prefix")
	id := rapid.SampledFrom([]string{"%", "%", "0%", "00%", "9%", "10%", "99%"}).Draw(t, "id")
	id = strings.Replace(id, "%", rapid.SampledFrom(strings.Split("0123456789", "")).Draw(t, "digit"), 1)
	suffix := rapid.SampledFrom([]string{"", "", "", "", "-ib", "x"}).Draw(t, "suffix")
	if rapid.IntRange(0, 7).Draw(t, "plain") == 0 && prefix != "" {
		id = ""
	}
	return prefix + id + suffix
})

// expressions draws a hostlist string and the hosts it names, written out with
// nothing of the package.
var expressions = rapid.Custom(func(t *rapid.T) expression {
	prefix := rapid.SampledFrom([]string{"a", "", "a0", "a9", "b-", "x12345678901234567"}).Draw(t, "prefix")
	suffix := rapid.SampledFrom([]string{"", "", "-ib", "-eth0", "p2"}).Draw(t, "suffix")
	var elements []string
	e := expression{}
	for range rapid.IntRange(1, 4).Draw(t, "elements") {
		first := rapid.IntRange(0, 120).Draw(t, "first")
		last := first + rapid.IntRange(0, 12).Draw(t, "more")
		zeros := strings.Repeat("0", rapid.IntRange(0, 3).Draw(t, "zeros"))
		text := zeros + strconv.Itoa(first)
		width := len(text)
		for id := first; id <= last; id++ {
			name := strconv.Itoa(id)
			e.hosts = append(e.hosts, prefix+strings.Repeat("0", max(width-len(name), 0))+name+suffix)
		}
		if last > first {
			text += "-" + strconv.Itoa(last)
		}
		elements = append(elements, text)
	}
	e.text = prefix + "[" + strings.Join(elements, ",") + "]" + suffix
	return e
})

type expression struct {
	text  string
	hosts []string
}

// compareNaively orders two names as Uniq does.
func compareNaively(a, b string) int {
	cut := func(name string) (string, string) {
		prefix := strings.TrimRight(name, "0123456789")
		if i := len(name) - 18; i > len(prefix) {
			prefix = name[:i]
		}
		return prefix, name[len(prefix):]
	}
	aPrefix, aID := cut(a)
	bPrefix, bID := cut(b)
	return cmp.Or(cmp.Compare(aPrefix, bPrefix), cmp.Compare(len(aID), len(bID)), cmp.Compare(aID, bID))
}

// requireHosts fails the test unless the list has these hosts, by every way to
// ask it.
func requireHosts(t require.TestingT, want []string, l *hostlist.List) {
	require.NoError(t, l.Check())
	require.Equal(t, len(want), l.Len())
	require.Equal(t, len(want) == 0, l.IsEmpty())
	all := slices.Collect(l.All())
	require.True(t, slices.Equal(want, all), "%q is not %q", all, want)
	i := 0
	for whole := range l.Ranges() {
		for r := whole; r.First <= r.Last; r.First++ {
			got, ok := l.Nth(i)
			require.True(t, ok)
			require.Equal(t, want[i], got)
			rest, ok := l.RangeAt(i)
			require.True(t, ok)
			require.Equal(t, r, rest)
			i++
		}
	}
	for _, i := range []int{-1, len(want), len(want) + 1} {
		_, ok := l.Nth(i)
		require.False(t, ok)
		_, ok = l.RangeAt(i)
		require.False(t, ok)
	}
	// Whatever made the list, it is the one that its names make.
	plain := hostlist.Of(want...)
	require.True(t, plain.Equal(l) && l.Equal(plain))
	require.Equal(t, plain.String(), l.String())
	back, err := hostlist.Parse(l.String())
	require.NoError(t, err)
	require.True(t, back.Equal(l))
	require.Equal(t, l.String(), back.String())
}

func requireFound(t require.TestingT, want []string, l *hostlist.List, name string) {
	index := slices.Index(want, name)
	i, ok := l.Find(name)
	require.Equal(t, index >= 0, ok)
	require.Equal(t, max(index, 0), i)
}

func TestAListIsWhatASliceOfNamesIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := new(hostlist.List)
		var want []string
		bounded := func() {
			if len(want) > 300 {
				t.Skip("long enough")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"Append": func(t *rapid.T) {
				bounded()
				add := rapid.SliceOfN(names, 0, 8).Draw(t, "names")
				require.NoError(t, l.Append(add...))
				want = append(want, add...)
			},
			"AppendRefused": func(t *rapid.T) {
				before := l.Snapshot()
				require.Error(t, l.Append("a1", "b", rapid.SampledFrom([]string{"", "a b", "a[1]", strings.Repeat("x", 256)}).Draw(t, "bad")))
				require.Equal(t, before, l.Snapshot())
			},
			"AppendList": func(t *rapid.T) {
				bounded()
				e := expressions.Draw(t, "expression")
				l.AppendList(parse(t, e.text))
				want = append(want, e.hosts...)
			},
			"AppendItself": func(*rapid.T) {
				bounded()
				l.AppendList(l)
				want = append(want, want...)
			},
			"Uniq": func(*rapid.T) {
				before := len(want)
				slices.SortStableFunc(want, compareNaively)
				want = slices.Compact(want)
				require.Equal(t, before-len(want), l.Uniq())
			},
			"Clone": func(*rapid.T) {
				old := l
				l = l.Clone()
				require.False(t, l.SharesItems(old))
				require.NoError(t, old.Append("more"))
				old.Uniq()
			},
			"Find": func(t *rapid.T) {
				requireFound(t, want, l, names.Draw(t, "name"))
				if len(want) > 0 {
					requireFound(t, want, l, rapid.SampledFrom(want).Draw(t, "there"))
				}
			},
			"": func(t *rapid.T) { requireHosts(t, want, l) },
		})
	})
}

func TestATextIsWhatItsExpressionsAreWrittenOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var texts, want []string
		for _, e := range rapid.SliceOfN(expressions, 0, 4).Draw(t, "expressions") {
			texts, want = append(texts, e.text), append(want, e.hosts...)
		}
		requireHosts(t, want, parse(t, strings.Join(texts, ",")))
	})
}

func TestRangesAreMaximalAndTellEachHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := parse(t, expressions.Draw(t, "expression").text)
		l.AppendList(hostlist.Of(rapid.SliceOfN(names, 0, 9).Draw(t, "names")...))
		var all []string
		ranges := 0
		for r := range l.Ranges() {
			for id := r.First; id <= r.Last; id++ {
				name := r.Prefix
				if digits := strconv.FormatUint(id, 10); r.Width > 0 {
					name += strings.Repeat("0", max(r.Width-len(digits), 0)) + digits
				}
				all = append(all, name)
			}
			ranges++
		}
		requireHosts(t, all, l)
		require.Equal(t, l.Items(), ranges)
	})
}
