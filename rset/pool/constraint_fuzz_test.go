package pool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/pool"
)

// requireInputError requires that an error is one of this package that stays
// short, and of a known category.
func requireInputError(t require.TestingT, err error, category string) {
	var fault *jsonobj.Fault
	require.ErrorAs(t, err, &fault)
	require.True(t, strings.Contains(err.Error(), category) != strings.Contains(err.Error(), tooMuch), err)
	require.Less(t, len(err.Error()), 1024)
	require.LessOrEqual(t, len(fault.Path), 128)
}

// FuzzConstraint: no panic; what is accepted is an object that matches as it
// does rank by rank; what is refused is refused with an error of this package.
func FuzzConstraint(f *testing.F) {
	for _, text := range []string{
		`{"properties":["foo","^bar","host3"]}`,
		`{"hostlist":["host[0-3]","host8"],"ranks":["0-2","8"]}`,
		`{"and":[{"or":[{"ranks":["1"]},{"properties":["ssd"]}]},{"not":[{"ranks":["2"]},{}]}]}`,
		`{"or":[]}`, `{"and":[]}`, `{"not":[]}`, ` {} `,
		`{"ranks":["0-2147483647"]}`, `{"hostlist":["host[0-999999]"]}`,
		`{"and":[{"and":[],"and":[]}]}`, `{"xor":[]}`, `{"properties":["\u0000"]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := cluster(t)
		if _, err := c.Match(text); err != nil {
			requireInputError(t, err, badRequest)
			return
		}
		if len(text) == 0 {
			return // no constraints
		}
		require.True(t, json.Valid(text))
		requireNaive(t, c, text)
	})
}

// FuzzRequest: a jobspec becomes a request that agrees with what a listing
// tells of it, or is refused with an error of this package.
func FuzzRequest(f *testing.F) {
	slot := vertex("slot", "2-8:2:*", vertex("core", "3"), vertex("gpu", "1"))
	for _, resources := range []string{
		"[" + slot + "]", shape("node", "4", slot), "[" + whole(vertex("node", "1,4", slot)) + "]",
		shape("slot", "4+", vertex("node", "3", vertex("core", "2"))), shape("slot", "4", vertex("node", "1")),
		shape("slot", "1", vertex("core", "1"), vertex("memory", "4")), shape("rack", "1", slot),
		shape("node", "2147483647+", vertex("slot", "2147483647+", vertex("core", "2147483647+"))),
	} {
		f.Add([]byte(specText(resources, `{"properties":["ssd"]}`)))
		f.Add([]byte(specText(resources, "")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := jobspec.Parse(text)
		if err != nil {
			return
		}
		q, err := pool.NewRequest(s)
		if err != nil {
			require.Nil(t, q)
			requireInputError(t, err, badRequest)
			return
		}
		requireCounts(t, s, q)
		asked := q.Asked()
		require.False(t, asked.Slots.IsZero())
		require.Positive(t, asked.Span)
		require.NotEmpty(t, q.String())
		require.NotContains(t, q.String(), "\n")
		c := cluster(t)
		if ranks := c.Eligible(q); ranks != nil {
			require.True(t, c.All.ContainsAll(ranks))
			requireNaive(t, c, s.Constraints())
		}
	})
}
