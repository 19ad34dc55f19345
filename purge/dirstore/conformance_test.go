package dirstore_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
	"github.com/joblife/joblife/purge/storetest"
)

// mark is the file of a watermark.
func mark(id jobid.ID) string { return string(dirstore.AppendMark(nil, id)) }

// unlink unlinks jobs, and returns all errors as one.
func unlink(s *dirstore.Store, ids []jobid.ID) error { return unlinkAll(ctx, s, ids) }

func unlinkAll(ctx context.Context, s *dirstore.Store, ids []jobid.ID) error {
	failed, err := s.Unlink(ctx, ids)
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		err = errors.Join(err, failed[id])
	}
	return err
}

// A subject is a Store for the suite that any store can run. Its watermark is the
// greatest of all evidence, which the subject works out for itself, to compare.
type subject struct {
	*dirstore.Store
	t        *testing.T
	disk     *disk
	evidence jobid.ID // the greatest id of any that were put, stored or buried
}

func (s *subject) Create(jobs ...purge.Record) error {
	for _, j := range jobs {
		text, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: j.Inactive, Name: "clean"})
		if err == nil {
			err = s.Add(dirstore.Stored{ID: j.ID, Eventlog: text, Jobspec: []byte("{}")})
		}
		if err != nil {
			return err
		}
		s.evidence = max(s.evidence, j.ID)
	}
	return nil
}

func (s *subject) Prepare(c context.Context, p purge.Plan) error {
	err := s.PutWatermark(c, p.Watermark)
	if err == nil {
		s.evidence = max(s.evidence, p.Watermark)
		err = s.PutTombstones(c, p.Tombstones, p.Expired)
	}
	for _, j := range p.Tombstones {
		if err == nil {
			s.evidence = max(s.evidence, j.ID)
		}
	}
	return err
}

func (s *subject) Stored() (jobs []jobid.ID, tombstones []purge.Record, watermark jobid.ID, err error) {
	jobs, errs := list(s.Store)
	for _, err := range errs {
		var bad *dirstore.JobError
		require.ErrorAs(s.t, err, &bad)
		jobs = append(jobs, bad.ID)
	}
	require.Equal(s.t, s.evidence, s.Watermark())
	foreign, err := s.Foreign()
	require.Empty(s.t, foreign)
	return jobs, tombs(s.t, s.Store), s.Watermark(), err
}

// Obstruct makes the directory of a job one that cannot be renamed.
func (s *subject) Obstruct(id jobid.ID) (func(), error) {
	s.disk.stuck = id.KVSPath()
	return func() { s.disk.stuck = "" }, nil
}

// Damage flips a bit of the log of a job.
func (s *subject) Damage(id jobid.ID) error {
	log := s.disk.root.names[id.KVSPath()].names["eventlog"]
	log.flip(3 * 8)
	log.stable = log.cache
	_, err := s.Read(id)
	require.ErrorIs(s.t, err, dirstore.ErrDamaged)
	return nil
}

// Reopen opens the store after a crash of the machine that left nothing of what
// was not synced, or all of it.
func (s *subject) Reopen() error {
	s.disk.crash()
	s.Store = s.disk.open(s.t)
	return nil
}

func TestTheStoreIsAStore(t *testing.T) {
	for _, kept := range []bool{false, true} {
		storetest.Run(t, func() storetest.Subject {
			d := newDisk()
			d.coin = func() bool { return kept }
			return &subject{Store: d.create(t), t: t, disk: d}
		})
	}
}

// What purge.Recover needs is what the store gives.
func TestARunnerGoesOnAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := dirstore.Create(dir, dirstore.Options{})
	require.NoError(t, err)
	var ev purge.Evidence
	for id := range jobid.ID(10) {
		require.NoError(t, s.Add(job(id+1)))
	}
	require.NoError(t, unlink(s, []jobid.ID{10}))
	require.NoError(t, s.PutTombstones(ctx, []purge.Record{tomb(10)}, nil))
	s = reopen(t, s, dir)
	ids, _ := list(s)
	for _, id := range ids {
		ev.Jobs = append(ev.Jobs, tomb(id))
	}
	ev.Tombstones, ev.Watermark = tombs(t, s), s.Watermark()
	x, err := purge.Recover(purge.Config{}, ev)
	require.NoError(t, err)
	require.Equal(t, 9, x.Len())
	require.Equal(t, jobid.ID(10), x.Watermark())
}
