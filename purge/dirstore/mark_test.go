package dirstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// Freeing needs no space: nothing can be created and no file can grow, there is no
// ballast, and yet the watermark is raised and jobs go.
func TestTheWatermarkNeedsNoSpace(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	for id := range jobid.ID(5) {
		require.NoError(t, s.Add(job(id+1)))
	}
	for n := range 4 {
		require.NoError(t, d.Remove(fmt.Sprintf("ballast-%d", n+1)))
	}
	d.crash()
	d.noRoom = true
	s = d.open(t)
	require.NoError(t, s.PutWatermark(ctx, 200))
	require.NoError(t, s.PutWatermark(ctx, 300))
	require.NoError(t, unlink(s, ids(5, 4)))
	d.crash()
	s = d.open(t)
	require.Equal(t, jobid.ID(300), s.Watermark())
	got, errs := list(s)
	require.Equal(t, ids(1, 2, 3), got)
	require.Empty(t, errs)
}

// The machine stops while a copy is written, which leaves any part of it.
func TestAWatermarkThatIsTornIsThereInTheOtherCopy(t *testing.T) {
	torn := 0
	for c, coin := range coins(40) {
		for k := 1; ; k++ {
			d := newDisk()
			s := d.create(t)
			require.NoError(t, s.PutWatermark(ctx, 1<<52-1))
			d.coin, d.calls, d.failAt, d.down = coin, nil, k, true
			err := s.PutWatermark(ctx, 1<<52+1<<40)
			stopped := len(d.calls) >= k
			d.crash()
			s, report, openErr := dirstore.Open(".", d.options())
			require.NoError(t, openErr, "coin %d, call %d", c, k)
			if err == nil {
				require.Equal(t, jobid.ID(1<<52+1<<40), s.Watermark())
			}
			require.Contains(t, ids(1<<52-1, 1<<52+1<<40), s.Watermark())
			if report.Watermark != "" {
				torn++
				require.True(t, strings.HasPrefix(report.Watermark, "watermark-"), report.Watermark)
			}
			high := s.Watermark()
			for range 2 { // both copies are whole again
				d.crash()
				s, report, openErr = dirstore.Open(".", d.options())
				require.NoError(t, openErr)
				require.Empty(t, report.Watermark)
				require.Equal(t, high, s.Watermark())
			}
			if !stopped {
				break
			}
		}
	}
	require.Positive(t, torn)
	t.Log(torn, "torn copies")
}

// After a call has returned, either copy alone is enough.
func TestEitherCopyOfTheWatermarkIsEnough(t *testing.T) {
	for n := range 2 {
		for _, damage := range []string{"", "watermark 0000000000000009 00000000\n", mark(7)[:20], "-"} {
			d := newDisk()
			s := d.create(t)
			require.NoError(t, s.PutWatermark(ctx, 50))
			require.NoError(t, s.Close())
			name := fmt.Sprintf("watermark-%d", n+1)
			if damage == "-" {
				require.NoError(t, d.Remove(name))
			} else {
				_, _, copy := d.find(name)
				copy.cache = []byte(damage)
			}
			looker, err := dirstore.OpenReadOnly(".", d.options())
			require.NoError(t, err)
			require.Equal(t, jobid.ID(50), looker.Watermark())
			s, report, err := dirstore.Open(".", d.options())
			require.NoError(t, err)
			require.Equal(t, jobid.ID(50), s.Watermark())
			require.Equal(t, damage != "-", report.Watermark == name)
			for i := range 2 {
				_, _, copy := d.find(fmt.Sprintf("watermark-%d", i+1))
				require.Equal(t, mark(50), string(copy.cache))
			}
		}
	}
}

// A copy that cannot be written is not left alone with one that is being written.
func TestACopyThatFailedIsWrittenFirst(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	d.broken = "watermark-2"
	require.Error(t, s.PutWatermark(ctx, 50))
	d.calls, d.broken = nil, ""
	require.NoError(t, s.PutWatermark(ctx, 60))
	var opened []string
	for _, call := range d.calls {
		if what, name, _ := strings.Cut(call, " "); what == "open" {
			opened = append(opened, name)
		}
	}
	require.Equal(t, []string{"watermark-2", "watermark-1"}, opened)
}

// Jobs come and go all the time. The watermark is written when a job goes whose id is
// beyond it, and then for every id so far.
func TestUnlinkRaisesTheWatermarkSeldom(t *testing.T) {
	d := newDisk()
	s := d.create(t)
	next := jobid.ID(1)
	for ; next <= 50; next++ {
		require.NoError(t, s.Add(job(next)))
	}
	writes := 0
	for id := jobid.ID(1); id <= 200; id++ {
		require.NoError(t, s.Add(job(next)))
		next++
		d.calls = nil
		require.NoError(t, unlink(s, ids(id)))
		for _, call := range d.calls {
			if call == "write watermark-1" {
				writes++
			}
		}
		kept := d.root.clone()
		for n := range 2 {
			got, err := dirstore.ParseMark(kept.names[fmt.Sprintf("watermark-%d", n+1)].stable)
			require.NoError(t, err)
			require.GreaterOrEqual(t, got, id, "I9")
		}
	}
	require.LessOrEqual(t, writes, 5)
}

func TestALinkInThePlaceOfTheWatermarkIsNotFollowed(t *testing.T) {
	s, dir := create(t, 1)
	require.NoError(t, s.PutWatermark(ctx, 50))
	require.NoError(t, s.Close())
	removeMarks(t, dir)
	write(t, mark(50), dir, "watermark-1")
	symlink(t, "job.0000.0000.0000.0001/eventlog", dir, "watermark-2")
	s, _, err := dirstore.Open(dir, dirstore.Options{})
	require.NoError(t, err)
	require.NoError(t, s.PutWatermark(ctx, 60))
	j, err := s.Read(1)
	require.NoError(t, err)
	require.Equal(t, job(1), j)
	require.NoError(t, s.Close())
	write(t, "x", dir, "watermark-1")
	s, _, err = dirstore.Open(dir, dirstore.Options{})
	require.NoError(t, err, "the link was replaced by a copy")
	require.Equal(t, jobid.ID(60), s.Watermark())
	require.NoError(t, s.Close())
}
