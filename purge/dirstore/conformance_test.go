package dirstore_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
	"github.com/joblife/joblife/purge/storetest"
)

// unlink unlinks jobs, and returns all errors as one.
func unlink(s *dirstore.Store, ids []jobid.ID) error { return unlinkAll(ctx, s, ids) }

func unlinkAll(ctx context.Context, s *dirstore.Store, ids []jobid.ID) error {
	failed, err := s.Unlink(ctx, ids)
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		err = errors.Join(err, failed[id])
	}
	return err
}

// A subject is a Store for the suite that any store can run.
type subject struct {
	*dirstore.Store
	t    *testing.T
	disk *disk.Disk
}

func (s *subject) Create(jobs ...jobstate.Summary) error {
	for _, j := range jobs {
		text, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: j.Inactive, Name: "clean"})
		if err == nil {
			err = s.Add(dirstore.Stored{ID: j.ID, Eventlog: text, Jobspec: []byte("{}")})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) Stored() (jobs []jobid.ID, _ []jobstate.Summary, _ jobid.ID, err error) {
	jobs, errs := list(s.Store)
	for _, err := range errs {
		var bad *dirstore.JobError
		require.ErrorAs(s.t, err, &bad)
		jobs = append(jobs, bad.ID)
	}
	require.Empty(s.t, s.Foreign())
	return jobs, nil, 0, nil
}

// Obstruct makes the directory of a job one that cannot be renamed.
func (s *subject) Obstruct(id jobid.ID) (func(), error) {
	s.disk.Before = func(op, name string) error {
		if op == "rename" && name == id.KVSPath() {
			return syscall.EIO
		}
		return nil
	}
	return func() { s.disk.Before = nil }, nil
}

// Damage flips a bit of the log of a job.
func (s *subject) Damage(id jobid.ID) error {
	s.disk.Flip(id.KVSPath()+"/eventlog", 3*8)
	_, err := s.Read(id)
	require.ErrorIs(s.t, err, dirstore.ErrDamaged)
	return nil
}

// Reopen opens the store after a crash of the machine that left nothing of what
// was not synced, or all of it.
func (s *subject) Reopen() error {
	s.disk.Crash()
	s.Store = openOn(s.t, s.disk)
	return nil
}

func TestTheStoreUnlinksAsAStoreDoes(t *testing.T) {
	for _, kept := range []bool{false, true} {
		storetest.Run(t, func() storetest.Subject {
			d := newDisk()
			d.Coin = func() bool { return kept }
			return &subject{Store: createOn(t, d), t: t, disk: d}
		})
	}
}
