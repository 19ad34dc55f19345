package dirstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
)

// BenchmarkUnlink is a batch of 100, on the disk of the machine. The jobs are added while the
// clock stands still. BenchmarkLongStores of examples/boltstore compares stores.
func BenchmarkUnlink(b *testing.B) {
	s, _ := create(b)
	first := jobid.ID(1)
	for b.Loop() {
		b.StopTimer()
		add(b, s, first, first+99)
		b.StartTimer()
		if err := unlink(s, jobids(first, 100)); err != nil {
			b.Fatal(err)
		}
		first += 100
	}
}

// BenchmarkAdd is one job.
func BenchmarkAdd(b *testing.B) {
	s, _ := create(b)
	id := jobid.ID(0)
	for b.Loop() {
		id++
		require.NoError(b, s.Add(job(id)))
	}
}
