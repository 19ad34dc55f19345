package rset_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// A naive is a set of resources as one would write it first: every id of every
// kind of every rank.
type naive map[uint32]map[string]map[uint32]bool

func (n naive) add(rank uint32, kind string, id uint32) {
	if n[rank] == nil {
		n[rank] = map[string]map[uint32]bool{}
	}
	if n[rank][kind] == nil {
		n[rank][kind] = map[uint32]bool{}
	}
	n[rank][kind][id] = true
}

func (n naive) has(rank uint32, kind string, id uint32) bool { return n[rank][kind][id] }

// each calls f with every resource.
func (n naive) each(f func(rank uint32, kind string, id uint32)) {
	for rank, kinds := range n {
		for kind, ids := range kinds {
			for id := range ids {
				f(rank, kind, id)
			}
		}
	}
}

// where returns the resources for which keep is true.
func (n naive) where(keep func(rank uint32, kind string, id uint32) bool) naive {
	out := naive{}
	n.each(func(rank uint32, kind string, id uint32) {
		if keep(rank, kind, id) {
			out.add(rank, kind, id)
		}
	})
	return out
}

func (n naive) union(m naive) naive {
	out := n.where(func(uint32, string, uint32) bool { return true })
	m.each(out.add)
	return out
}

// String lists every resource, in order.
func (n naive) String() string {
	var out []string
	n.each(func(rank uint32, kind string, id uint32) {
		out = append(out, fmt.Sprintf("%05d %s %05d", rank, kind, id))
	})
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// naiveOf returns what an R has, by its entries.
func naiveOf(r *rset.R) naive {
	out := naive{}
	for e := range r.Entries() {
		for rank := range e.Ranks.All() {
			for kind, ids := range e.Children {
				for id := range ids.All() {
					out.add(rank, kind, id)
				}
			}
		}
	}
	return out
}

// build returns the R of a naive set, each rank in an entry of its own, in the order of
// a map, with hosts and properties that follow from the ranks.
func (n naive) build(t require.TestingT) *rset.R {
	c := rset.Config{Start: 1000.5, Expiration: 2000.25, Slots: 3, Properties: map[string]*idset.Set{}}
	entries := make(map[uint32]rset.Entry)
	n.each(func(rank uint32, kind string, id uint32) {
		e, ok := entries[rank]
		if !ok {
			e = rset.Entry{Ranks: idset.Of(rank), Children: make(map[string]*idset.Set)}
			entries[rank] = e
		}
		e.Children[kind] = idset.Union(e.Children[kind], idset.Of(id))
	})
	c.Entries = slices.Collect(maps.Values(entries))
	ranks := slices.Sorted(maps.Keys(n))
	c.Hosts = new(hostlist.List)
	odd := new(idset.Set)
	for _, rank := range ranks {
		require.NoError(t, c.Hosts.Append(fmt.Sprintf("n%d", rank)))
		if rank%2 == 1 {
			odd.Insert(rank)
		}
	}
	c.Properties["odd"] = odd
	r, err := rset.New(c)
	require.NoError(t, err)
	return r
}

// drawNaive draws a small set of resources: equal and uneven nodes, gpus on
// some, a kind that nobody knows.
func drawNaive(t *rapid.T, label string) naive {
	out := naive{}
	for range rapid.IntRange(0, 4).Draw(t, label+" groups") {
		first := rapid.Uint32Range(0, 9).Draw(t, label+" first")
		step := rapid.Uint32Range(1, 3).Draw(t, label+" step")
		kind := rapid.SampledFrom([]string{"core", "core", "gpu", "nic"}).Draw(t, label+" kind")
		from := rapid.Uint32Range(0, 3).Draw(t, label+" from")
		n := rapid.Uint32Range(1, 4).Draw(t, label+" n")
		for k := range rapid.Uint32Range(1, 5).Draw(t, label+" ranks") {
			for id := range n {
				out.add(first+k*step, kind, from+id)
			}
		}
	}
	return out
}

func parse(t testing.TB, text string) *rset.R {
	t.Helper()
	r, err := rset.Parse([]byte(text))
	require.NoError(t, err)
	return r
}

func ids(t testing.TB, text string) *idset.Set {
	t.Helper()
	s, err := idset.Parse(text)
	require.NoError(t, err)
	return s
}

func list(t testing.TB, text string) *hostlist.List {
	t.Helper()
	l, err := hostlist.Parse(text)
	require.NoError(t, err)
	return l
}

func rsetTime(f float64) eventlog.Timestamp { return eventlog.Timestamp(f) }
