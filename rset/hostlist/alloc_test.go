package hostlist_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/rset/hostlist"
)

// shuffled returns the text of n hosts of one prefix, none beside its
// neighbour's id.
func shuffled(n int) string {
	text := make([]string, n)
	for i := range text {
		text[i] = fmt.Sprintf("foo%d", (i*(2*n/3+1))%n)
	}
	return strings.Join(text, ",")
}

// What the documentation promises. A million hosts cost what one costs.
func TestAllocationBudget(t *testing.T) {
	race.Skip(t)
	for _, s := range []struct {
		name, text string
		parse      float64
	}{
		{"one host", "foo7", 3},
		{"a million in one range", "n[0-999999]", 4},
		{"a million behind digits", "n00[0-999999]", 7},
		{"1024 shuffled", shuffled(1024), 10},
		{"16384 shuffled", shuffled(16384), 12},
		{"1024 with a suffix", "n[0-1023]-ib", 6},
	} {
		l := parse(t, s.text)
		other := l.Clone()
		last, ok := l.Nth(l.Len() - 1)
		require.True(t, ok)
		dst := make([]byte, 0, len(l.String()))
		sink := uint64(0)
		budget := func(want float64, name string, f func()) {
			t.Helper()
			require.LessOrEqual(t, testing.AllocsPerRun(20, f), want, "%s of %s", name, s.name)
		}
		budget(s.parse, "Parse", func() { _, _ = hostlist.Parse(s.text) })
		budget(0, "Len", func() { l.Len() })
		budget(1, "Nth", func() { l.Nth(l.Len() - 1) })
		budget(0, "RangeAt", func() { l.RangeAt(l.Len() - 1) })
		budget(0, "Find", func() { l.Find(last) })
		budget(0, "Find of an absent host", func() { l.Find("foo12345678") })
		budget(0, "Equal", func() { l.Equal(other) })
		budget(0, "AppendText", func() { dst, _ = l.AppendText(dst[:0]) })
		budget(0, "Ranges", func() {
			for r := range l.Ranges() {
				sink += r.First
			}
		})
		budget(2, "Clone", func() { l.Clone() })
	}
}

// The part of a list that is in one range, as most jobs need, has its room in the list.
func TestAPartOfOneRangeTakesTheListAlone(t *testing.T) {
	race.Skip(t)
	odd, even := parse(t, "a,b,c"), parse(t, "n[0-9],m[0-9]")
	for _, of := range []func(part *hostlist.List){
		func(part *hostlist.List) { part.AppendPart(odd, 1, 2) },
		func(part *hostlist.List) { part.AppendPart(even, 5, 10) },
		func(part *hostlist.List) { part.AppendPart(even, 2, 3); part.AppendPart(even, 3, 4) },
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(20, func() { of(new(hostlist.List)) }), 1.0)
	}
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() { new(hostlist.List).AppendPart(odd, 0, 3) }), 2.0)
}

// Room is made for as many hosts as the beginning of a text suggests, and given back.
func TestAListKeepsNoRoomForHostsThatDidNotCome(t *testing.T) {
	ids := make([]string, 10_000)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	l := parse(t, strings.Repeat("a,b,", 50)+"n["+strings.Join(ids, ",")+"]")
	require.Equal(t, 101, l.Items())
	require.LessOrEqual(t, l.Memory(), 2*101*64)
}
