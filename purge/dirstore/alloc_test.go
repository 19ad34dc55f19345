package dirstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

func TestAWatermarkThatIsKeptCostsNothing(t *testing.T) {
	race.Skip(t)
	d := newDisk()
	s := d.create(t)
	require.NoError(t, s.PutWatermark(ctx, 9))
	d.calls = nil
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if s.PutWatermark(ctx, 9) != nil || s.Watermark() != 9 {
			t.Fatal("it is not kept")
		}
	}))
	require.Empty(t, d.calls)
}

// The calls that are dear are counted: see the section on cost in doc.go.
func TestFsyncsAreFew(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	syncs := func(do func() error) (n int) {
		d.calls = nil
		require.NoError(t, do())
		for _, c := range d.calls {
			if c[:4] == "sync" {
				n++
			}
		}
		return n
	}
	bare := job(1)
	bare.R = nil
	require.Equal(t, 4, syncs(func() error { return s.Add(bare) }))
	require.Equal(t, 5, syncs(func() error { return s.Add(job(2)) }))
	require.Equal(t, 2, syncs(func() error { return s.PutR(1, []byte("first")) }))
	require.Equal(t, 3, syncs(func() error { return s.PutR(1, []byte("again")) }))
	require.Equal(t, 3, syncs(func() error { return s.Append(1, line("memo")) }))
	require.Equal(t, 3, syncs(func() error { return unlink(s, ids(1, 2)) }))
	require.NoError(t, s.Add(job(3)))
	require.Equal(t, 2, syncs(func() error { return s.PutWatermark(ctx, 9) }))
	require.Equal(t, 1, syncs(func() error { return unlink(s, ids(3)) }))
	require.Equal(t, 1, syncs(func() error { return s.PutTombstones(ctx, tombsOf(1), nil) }))
	require.Equal(t, 1, syncs(func() error { return s.PutTombstones(ctx, tombsOf(2, 3), nil) }))
	require.Equal(t, 2, syncs(func() error { return d.open(t).Close() }), "the log of tombstones is synced")
}

// ids returns ids, and tombsOf their tombstones.
func ids(list ...jobid.ID) []jobid.ID { return list }

func tombsOf(list ...jobid.ID) (out []purge.Record) {
	for _, id := range list {
		out = append(out, tomb(id))
	}
	return out
}
