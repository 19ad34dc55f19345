package dirstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
)

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
	require.Equal(t, 1, syncs(func() error { return unlink(s, ids(1, 2)) }))
	require.Zero(t, syncs(func() error { return d.open(t).Close() }))
}

func ids(list ...jobid.ID) []jobid.ID { return list }
