package archive_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
)

func TestAJobCostsAFixedNumberOfAllocations(t *testing.T) {
	race.Skip(t)
	var all []entry
	const n = 100
	for id := range jobid.ID(n) {
		all = append(all, job(id)...)
	}
	b := pack(t, all...)
	allocs := testing.AllocsPerRun(5, func() {
		if a, err := archive.Read(bytes.NewReader(b), archive.Limits{}); err != nil || len(a.Jobs) != n {
			t.Fatal(err)
		}
	})
	// Most are package archive/tar's, some ten for each of six headers; the
	// eventlog's first lines cost some more, and each value one.
	require.Less(t, allocs/n, 120.0)
}
