package dirstore_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
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

// keeper is a Store for the jobs of a Manager, with the other records beside it.
type keeper struct {
	*dirstore.Store
	disk *disk.Disk
	rest []joblife.Record
}

// Append stores events that follow one another at once, those of a new job with its jobspec.
func (k *keeper) Append(records []joblife.Record) error {
	for len(records) > 0 {
		r, n := records[0], 1
		var events []byte
		for r.Kind <= joblife.RecordJobspec && n < len(records) && records[n].Kind == joblife.RecordEvent && records[n].Job == r.Job {
			events = append(events, records[n].Data...)
			n++
		}
		var err error
		switch r.Kind {
		case joblife.RecordJobspec:
			err = k.Add(dirstore.Stored{ID: r.Job, Jobspec: r.Data, Eventlog: events})
		case joblife.RecordR:
			err = k.PutR(r.Job, r.Data)
		case joblife.RecordEvent:
			err = k.Store.Append(r.Job, append(r.Data[:len(r.Data):len(r.Data)], events...))
		default:
			k.rest = append(k.rest, r.Clone())
		}
		if err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

func (k *keeper) Records() iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		jobs := make(map[jobid.ID]dirstore.Stored)
		for j, err := range k.Jobs() {
			if err != nil && !yield(joblife.Record{}, err) {
				return
			}
			jobs[j.ID] = j
		}
		var list []joblife.Record
		for _, r := range k.rest {
			if _, ok := jobs[r.Job]; ok || r.Kind != joblife.RecordHousekeeping {
				list = append(list, r)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(jobs)) {
			list = append(list, joblife.Record{Job: id, Kind: joblife.RecordJobspec, Data: jobs[id].Jobspec})
			if r := jobs[id].R; r != nil {
				list = append(list, joblife.Record{Job: id, Kind: joblife.RecordR, Data: r})
			}
			for line := range bytes.Lines(jobs[id].Eventlog) {
				list = append(list, joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: line})
			}
		}
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Close lets the machine crash, which leaves every second part of what was not synced.
func (k *keeper) Close() error {
	k.disk.Crash()
	return nil
}

func TestTheStoreKeepsTheJobsOfAManager(t *testing.T) {
	race.Skip(t)
	all, kept := make(map[string]*keeper), false
	require.NoError(t, joblifetest.CheckStore(func(name string) (joblifetest.Store, error) {
		k := all[name]
		if k == nil {
			k = &keeper{disk: newDisk()}
			k.disk.Coin = func() bool { kept = !kept; return kept }
			k.Store, all[name] = createOn(t, k.disk), k
			return k, nil
		}
		k.Store = openOn(t, k.disk)
		require.Empty(t, k.Foreign())
		return k, nil
	}))
}
