package service

import (
	"cmp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// housekeepers returns the processes of housekeeping, by job and rank.
func (s *processes) housekeepers() []*process {
	var list []*process
	for at, p := range s.running {
		if at.action.Kind == jobstate.ActionHousekeeping {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *process) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.rank, b.rank), cmp.Compare(a.attempt, b.attempt))
	})
	return list
}

// kill signals housekeeping, also what waits for the store to be launched.
func (s *processes) kill(signal int, match func(*process) bool) {
	for _, p := range s.housekeepers() {
		if match(p) {
			s.killProcess(&s.quick, p, signal)
		}
	}
	late := func() {
		for _, p := range s.housekeepers() {
			if match(p) && p.pid == 0 {
				p.signal = signal
			}
		}
	}
	s.then = append(s.then, func() { s.later(late) }) // after the launch
}

// housekeepingKill signals housekeeping, of one job or all, on some ranks or all.
func (s *processes) housekeepingKill(r *Request, p struct {
	Signal int32   `json:"signum"`
	Job    *int64  `json:"jobid,omitempty"`
	Ranks  *string `json:"ranks,omitempty"`
}) (any, error) {
	var ranks *idset.Set
	if p.Ranks != nil {
		var err error
		if ranks, err = idset.Parse(*p.Ranks); err != nil {
			return nil, fail(errno.Invalid, "%s", err)
		}
	}
	if p.Signal > 0 {
		s.kill(int(p.Signal), func(q *process) bool {
			all := p.Job == nil || *p.Job == -1
			return (all || jobid.ID(*p.Job) == q.job) && (ranks == nil || ranks.Contains(q.rank))
		})
	}
	return nil, nil
}

// endPartial ends housekeeping of jobs that have freed a part of their resources. A scheduler
// that does not learn which part would read the stored R, and hold that part for ever.
func (s *processes) endPartial() error {
	if s.cfg.Lookup == nil {
		return nil
	}
	all := slices.Collect(s.m.Holders()) // by job
	var list []joblife.Holder
	for i, h := range all {
		alone := (i == 0 || all[i-1].Job != h.Job) && (i+1 == len(all) || all[i+1].Job != h.Job)
		if h.Kind != perilog.HolderHousekeeping || !alone { // the rest of the job still needs what it holds
			continue
		}
		stored, err := s.cfg.Lookup(h.Job)
		if err != nil {
			return err
		}
		if r, err := rset.Parse(stored.R); err == nil && !r.Ranks().Equal(h.Ranks) {
			list = append(list, h)
		}
	}
	for _, h := range list {
		hosts := "?"
		if r := s.allocated(h.Job); r != nil {
			hosts = r.Nodelist().String()
		}
		s.quick.errorf("housekeeping: %s (rank %v) from %s will be terminated because"+
			" scheduler does not support restart with partially released resources", hosts, h.Ranks, s.name(h.Job))
		err := s.step(joblife.ForceFinish{
			Action: joblife.Action{Job: h.Job, Key: perilog.Housekeeping()}, Status: int32(syscall.SIGTERM), Operator: "sched-hello",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// housekeepingStats is what stats-get tells of housekeeping.
type housekeepingStats struct {
	Running map[jobid.ID]houseStats `json:"running"`
	Config  struct {
		ReleaseAfter eventlog.Timestamp `json:"release-after"` // in seconds; -1: when all are done
		Command      string             `json:"command"`
	} `json:"config"`
}

// houseStats is what housekeeping does for a job.
type houseStats struct {
	Start     eventlog.Timestamp `json:"t_start"`   // the earliest launch of what runs
	Pending   *idset.Set         `json:"pending"`   // where it runs
	Allocated *idset.Set         `json:"allocated"` // what it holds
}

// stats returns what stats-get tells of housekeeping. A rank is pending while
// its command runs, or is about to.
func (s *processes) stats() (out housekeepingStats) {
	out.Running = make(map[jobid.ID]houseStats)
	for h := range s.m.Holders() {
		if h.Kind == perilog.HolderHousekeeping {
			out.Running[h.Job] = houseStats{Start: h.Since, Pending: idset.Of(), Allocated: h.Ranks}
		}
	}
	for at, p := range s.running {
		h, ok := out.Running[p.job]
		if !ok || at.action.Kind != jobstate.ActionHousekeeping || !h.Allocated.Contains(p.rank) {
			continue
		}
		if h.Pending.IsEmpty() || p.at < h.Start {
			h.Start = p.at
			out.Running[p.job] = h
		}
		h.Pending.Insert(p.rank)
	}
	out.Config.ReleaseAfter = -1
	if c := s.cfg.Manager.Actions.Housekeeping; c != nil {
		out.Config.Command = strings.Join(c.Command, " ")
		if c.ReleaseAfter != nil && *c.ReleaseAfter != fsd.Forever {
			out.Config.ReleaseAfter = eventlog.Timestamp(time.Duration(*c.ReleaseAfter).Seconds())
		}
	}
	return out
}
