package joblifetest

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// Check returns what is wrong with a Manager, as far as its queries show: counts against
// jobs, views against logs, holders against allocations. Call it between Steps. It reads
// all jobs and their logs; a volatile Manager has none.
func Check(m *joblife.Manager) error {
	var errs []error
	bad := func(id jobid.ID, format string, args ...any) {
		errs = append(errs, fmt.Errorf("joblifetest: job %v: %s", id, fmt.Sprintf(format, args...)))
	}
	stats := m.Stats()
	counts := make(map[jobstate.State]int)
	var last jobid.ID
	for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive | jobstate.StateInactive) {
		counts[v.State()]++
		if v.State() == jobstate.StateInactive {
			continue
		}
		if v.ID() <= last {
			bad(v.ID(), "it comes after %v", last)
		}
		last = v.ID()
		checkLog(v, bad)
	}
	for s, n := range counts {
		if n > stats.States[s] {
			bad(0, "%d jobs in %v, and Stats has %d", n, s, stats.States[s])
		}
	}
	checkHolders(m, bad)
	return errors.Join(errs...)
}

func checkLog(v joblife.View, bad func(jobid.ID, string, ...any)) {
	log := v.Eventlog()
	if len(log) == 0 {
		return
	}
	for _, f := range jobstate.Validate(log) {
		if f.Level == jobstate.LevelError {
			bad(v.ID(), "%v\n%s", f, log)
		}
	}
	if j, err := jobstate.Replay(v.ID(), log); err != nil {
		bad(v.ID(), "I5: %v", err)
	} else if j.UserID() != v.UserID() {
		bad(v.ID(), "I5: its log has another user")
	}
}

// checkHolders compares who holds what with what there is to hold.
func checkHolders(m *joblife.Manager, bad func(jobid.ID, string, ...any)) {
	for h := range m.Holders() {
		v, ok := m.Job(h.Job)
		if !ok || v.State() == jobstate.StateInactive || v.R() == nil {
			continue
		}
		if h.Kind == perilog.HolderJob && v.State() == jobstate.StateCleanup && !h.Ranks.IsEmpty() {
			bad(h.Job, "the job holds %v in CLEANUP", h.Ranks)
		}
		if h.Kind == perilog.HolderHousekeeping {
			continue // it holds what has left the job
		}
		if gone := idset.Intersect(v.Holds().Released().Ranks, h.Ranks); !gone.IsEmpty() {
			bad(h.Job, "I3: %v is held by %v, and has left", gone, h.Kind)
		}
	}
}
