package joblifetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
)

// badStore keeps records in memory, and may have a fault.
type badStore struct {
	fault   string
	list    []joblife.Record
	removed []joblife.Record
	ids     []jobid.ID // to be removed at Close
	fails   bool
}

var errFull = errors.New("the disk is full")

func (s *badStore) Append(list []joblife.Record) error {
	switch n := len(list); {
	case s.fails && s.fault == "stores the last records":
		list = list[n/2:]
	case s.fails && s.fault != "hides that it failed":
		list = list[:n/2]
	case s.fault == "loses the last record":
		list = list[:max(0, n-1)]
	case s.fault == "takes 1000 records":
		list = list[:min(n, 1000)]
	case s.fault == "refuses 1000 records" && n > 1000:
		return errFull
	}
	if s.fault == "changes the slice" && len(list) > 1 {
		list[0], list[1] = list[1], list[0]
	}
	first := len(s.list)
	for _, r := range list {
		if s.fault != "keeps the slice" {
			r = r.Clone()
		}
		switch s.fault {
		case "truncates large values":
			r.Data = r.Data[:min(len(r.Data), 1<<16)]
		case "keeps seven bits":
			for i := range r.Data {
				r.Data[i] &= 0x7f
			}
		case "keeps 16 bits of ids":
			r.Job = jobid.ID(uint16(r.Job))
		case "keeps 32 bits of ids":
			r.Job = jobid.ID(uint32(r.Job))
		case "keeps ids as float64":
			r.Job = jobid.ID(float64(r.Job))
		case "keeps lines":
			r.Data, _, _ = bytes.Cut(r.Data, []byte("\n"))
			r.Data = append(r.Data, '\n')
		case "keeps one queue":
			s.list = slices.DeleteFunc(s.list, func(old joblife.Record) bool {
				return r.Kind == joblife.RecordQueue && old.Kind == r.Kind
			})
		case "drops " + r.Kind.String():
			continue
		}
		if r.Kind == joblife.RecordTombstone && len(r.Data) == 0 { // it expired
			s.list = slices.DeleteFunc(s.list, func(old joblife.Record) bool {
				return old.Job == r.Job && old.Kind == r.Kind && s.fault != "keeps what expired"
			})
			continue
		}
		s.list = append(s.list, r)
	}
	if s.fault == "reorders" {
		slices.Reverse(s.list[min(first, len(s.list)):])
	}
	if s.fails && s.fault != "hides that it failed" {
		return errFull
	}
	return nil
}

func (s *badStore) Fail() { s.fails = true }

// isOf reports whether a record is one that Unlink removes.
func isOf(r joblife.Record) bool { return r.Kind <= joblife.RecordHousekeeping }

func (s *badStore) Unlink(ctx context.Context, ids []jobid.ID) (map[jobid.ID]error, error) {
	gone := slices.Clone(ids)
	most := joblife.RecordHousekeeping
	switch {
	case s.fault == "keeps ids":
		s.ids = ids
		return nil, nil
	case s.fault == "refuses 1000 ids" && len(ids) >= 1000:
		return nil, errFull
	case s.fault == "does nothing in time" && ctx.Err() != nil:
		return nil, nil
	case s.fault == "forgets all but one":
		gone = gone[:min(1, len(gone))]
	case s.fault == "removes a part" && ctx.Err() != nil:
		most = joblife.RecordEvent
	case s.fault == "removes all if none are named" && len(gone) == 0:
		s.list = nil
	case s.fault == "removes by a prefix":
		for _, r := range s.list {
			if slices.ContainsFunc(ids, func(id jobid.ID) bool {
				return strings.HasPrefix(fmt.Sprintf("%x", uint64(r.Job)), fmt.Sprintf("%x", uint64(id)))
			}) {
				gone = append(gone, r.Job)
			}
		}
	case s.fault == "removes a neighbor" && len(gone) > 0:
		gone = append(gone, slices.Max(gone)+1)
	case s.fault == "refuses unknown jobs":
		for _, id := range ids {
			if !slices.ContainsFunc(s.list, func(r joblife.Record) bool { return r.Job == id && isOf(r) }) {
				return map[jobid.ID]error{id: errors.New("no such job")}, nil
			}
		}
	case s.fault == "removes tombstones":
		most = joblife.RecordTombstone
	}
	kept := make([]joblife.Record, 0, len(s.list))
	for _, r := range s.list {
		switch {
		case !slices.Contains(gone, r.Job) || r.Kind > most:
			kept = append(kept, r)
		case s.fault == "resurrects":
			s.removed = append(s.removed, r)
		}
	}
	if s.list = kept; s.fault == "changes ids" && len(ids) > 0 {
		ids[0] = 0
	}
	return nil, nil
}

func (s *badStore) Records() iter.Seq2[joblife.Record, error] {
	return memory(slices.DeleteFunc(slices.Clone(s.list), func(r joblife.Record) bool {
		return r.Kind == joblife.RecordUnlinked
	}))
}

func (s *badStore) Close() error {
	if s.fault == "is not durable" {
		s.list = nil
	}
	s.list = slices.DeleteFunc(s.list, func(r joblife.Record) bool { return isOf(r) && slices.Contains(s.ids, r.Job) })
	s.list, s.removed, s.fails = append(s.list, s.removed...), nil, false
	return nil
}

// inMemory opens stores with a fault.
func inMemory(fault string) func(name string) (Store, error) {
	all := make(map[string]*badStore)
	return func(name string) (Store, error) {
		if all[name] == nil {
			all[name] = &badStore{fault: fault}
		}
		return all[name], nil
	}
}

func TestABadStoreIsFound(t *testing.T) {
	for _, c := range []struct{ fault, want string }{
		{"is not durable", "jobs live and are purged: a restart finds"},
		{"loses the last record", "a restart finds"},
		{"takes 1000 records", "many at once: the event records of job ƒ"},
		{"refuses 1000 records", "many at once: on Append of 5000 records: the disk is full"},
		{"reorders", "a restart finds"},
		{"keeps the slice", "slices are not kept, nor changed"},
		{"changes the slice", "on Append: it changed record 0 of the slice that it was given: copy what is to change"},
		{"keeps ids", "is there, and it was unlinked"},
		{"changes ids", "on Unlink of 1 jobs: it changed the slice that it was given"},
		{"truncates large values", "the greatest records: the jobspec records of job ƒ2 end after 65536 of"},
		{"keeps seven bits", `differ at byte 106 of 282: `},
		{"keeps 16 bits of ids", "the event records of job ƒBht3tfQZv88 are missing"},
		{"keeps 32 bits of ids", "are missing"},
		{"keeps ids as float64", "are missing"},
		{"refuses 1000 ids", "many at once: on Unlink of 1000 jobs: the disk is full"},
		{"keeps lines", "the jobspec records of job"},
		{"keeps one queue", "a restart finds"},
		{"drops event", "the event records of job"},
		{"drops jobspec", "the jobspec records of job"},
		{"drops R", "the R records of job"},
		{"drops housekeeping", "the housekeeping records of job"},
		{"drops tombstone", "a restart finds"},
		{"drops watermark", "a restart finds"},
		{"drops queue", "a restart finds"},
		{"keeps what expired", "a restart finds"},
		{"forgets all but one", "is there, and it was unlinked"},
		{"does nothing in time", "Unlink with a context that has ended: no error, and 1 jobs were left"},
		{"removes a part", "Unlink with a context that has ended"},
		{"removes a neighbor", "are missing"},
		{"removes by a prefix", "are missing: Append has to store them before it returns, and Unlink of another job not to remove them"},
		{"removes all if none are named", "are missing"},
		{"removes tombstones", "a restart finds"},
		{"refuses unknown jobs", "Unlink of 1 jobs: no such job: a job of which nothing is stored is no error"},
		{"resurrects", "is there, and it was unlinked"},
		{"stores the last records", "an Append that fails: what is there is not what the first records make of it"},
		{"hides that it failed", "an Append that fails: on Append: no error"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			err := CheckStore(inMemory(c.fault))
			t.Log(err)
			require.ErrorContains(t, err, c.want)
		})
	}
}
