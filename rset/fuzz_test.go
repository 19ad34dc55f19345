package rset_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset"
)

// FuzzParse: no panic; what is read is canonical and reads back, and half of it
// and the other half are the whole; what is refused is refused with an error of
// this package and nothing else.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		one, mixed, holes,
		`{"version":1,"execution":{"R_lite":[]}}`,
		`{"version":1,"execution":{"R_lite":[{"rank":"0-5","children":{"a":"0"}},{"rank":"2-7","children":{"b":"0","a":""}}]}}`,
		`{"version":1,"execution":{"R_lite":[{"rank":"0-5","children":{"a":"0"}},{"rank":"5","children":{"a":"0"}}]}}`,
	} {
		f.Add([]byte(text))
	}
	small := rset.Limits{Rank: 1 << 12, Child: 1 << 12, Hosts: 1 << 12}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := rset.ParseWithin(text, small)
		if err != nil {
			require.Nil(t, r)
			require.True(t, strings.Contains(err.Error(), invalidR) || errors.Is(err, rset.ErrLimit) || strings.Contains(err.Error(), badHosts), err)
			return
		}
		require.NoError(t, r.Check())
		canonical := r.AppendJSON(nil)
		back, err := rset.Parse(canonical)
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(back.AppendJSON(nil)))
		require.Equal(t, r.String(), back.String())

		half := new(idset.Set)
		for rank := range r.Ranks().All() {
			if rank%2 == 0 {
				half.Insert(rank)
			}
		}
		l := rset.NewLedger(r)
		a, err := l.Free(half)
		require.NoError(t, err)
		b, err := l.Free(l.Held())
		if a.Final {
			require.ErrorContains(t, err, wasFinal)
			return
		}
		require.NoError(t, err)
		require.True(t, b.Final)
		whole, err := rset.UnionDisjoint(a.R, b.R)
		require.NoError(t, err)
		require.True(t, rset.SameResources(r, whole))
	})
}
