package storetest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/storetest"
)

// store keeps everything in maps, which survive what this example calls a crash.
type store struct {
	jobs  map[jobid.ID]bool
	tombs map[jobid.ID]jobstate.Summary
	mark  jobid.ID
}

func (s *store) Prepare(_ context.Context, p purge.Plan) error {
	s.mark = max(s.mark, p.Watermark)
	for _, r := range p.Tombstones {
		s.tombs[r.ID] = r
	}
	for _, id := range p.Expired {
		delete(s.tombs, id)
	}
	return nil
}

func (s *store) Unlink(_ context.Context, ids []jobid.ID) (map[jobid.ID]error, error) {
	for _, id := range ids {
		delete(s.jobs, id)
	}
	return nil, nil
}

func (s *store) Create(jobs ...jobstate.Summary) error {
	for _, j := range jobs {
		s.jobs[j.ID] = true
	}
	return nil
}

func (s *store) Reopen() error { return nil }

func (s *store) Stored() ([]jobid.ID, []jobstate.Summary, jobid.ID, error) {
	return slices.Collect(maps.Keys(s.jobs)), slices.Collect(maps.Values(s.tombs)), s.mark, nil
}

// t takes the place of a *testing.T.
type t struct{}

func (t) Helper()                           {}
func (t) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func Example() {
	storetest.Run(t{}, func() storetest.Subject {
		return &store{jobs: map[jobid.ID]bool{}, tombs: map[jobid.ID]jobstate.Summary{}}
	})
	fmt.Println("it is a store")
	// Output: it is a store
}
