package archive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
)

// jobs returns an archive of n jobs.
func jobs(t testing.TB, n int) []byte {
	var all []entry
	for id := range jobid.ID(n) {
		all = append(all, job(id)...)
	}
	return pack(t, all...)
}

func TestAJobCostsAFixedNumberOfAllocations(t *testing.T) {
	race.Skip(t)
	const n = 100
	b := jobs(t, n)
	allocs := testing.AllocsPerRun(5, func() {
		if a := read(t, b); len(a.Jobs) != n {
			t.Fatal(len(a.Jobs))
		}
	})
	// Most are package archive/tar's, some ten for each of six headers; the
	// eventlog's first lines cost some more, and each value one.
	require.Less(t, allocs/n, 120.0)
}
