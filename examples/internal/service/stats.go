package service

import (
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// getinfo returns the greatest id of a job, above which job-ingest makes more.
func (s *Service) getinfo(*Request) (any, error) {
	return struct {
		Max jobid.ID `json:"max_jobid"`
	}{s.m.Stats().MaxID}, nil
}

// stats is the answer of stats-get.
type stats struct {
	Journal struct {
		Listeners int    `json:"listeners"`
		Events    uint64 `json:"events"`
	} `json:"journal"`
	Active       int               `json:"active_jobs"`
	Inactive     int               `json:"inactive_jobs"`
	Max          jobid.ID          `json:"max_jobid"`
	Housekeeping housekeepingStats `json:"housekeeping"`
}

type housekeepingStats struct {
	Running map[string]houseStats `json:"running"` // by id
	Config  struct {
		ReleaseAfter eventlog.Timestamp `json:"release-after"` // seconds; -1: when all are done
		Command      string             `json:"command"`
	} `json:"config"`
}

// houseStats is a job in housekeeping: the ranks it still has, and those that are busy.
type houseStats struct {
	Start     eventlog.Timestamp `json:"t_start"`
	Pending   string             `json:"pending"`
	Allocated string             `json:"allocated"`
}

// stats returns counts.
func (s *Service) stats(*Request) (any, error) {
	m := s.m.Stats()
	var out stats
	out.Journal.Listeners = len(s.journal.listeners) + len(s.journal.fresh)
	out.Journal.Events = m.Events
	for state, n := range m.States {
		if state != jobstate.StateInactive {
			out.Active += n
		}
	}
	out.Inactive, out.Max = m.States[jobstate.StateInactive], m.MaxID
	out.Housekeeping = s.housekeepingStats()
	return out, nil
}

func (s *Service) housekeepingStats() (out housekeepingStats) {
	out.Running = make(map[string]houseStats)
	for h := range s.m.Holders() {
		if h.Kind == perilog.HolderHousekeeping {
			out.Running[h.Job.String()] = houseStats{Start: h.Since, Pending: h.Ranks.String(), Allocated: h.Ranks.String()}
		}
	}
	out.Config.ReleaseAfter = -1
	if c := s.cfg.Manager.Actions.Housekeeping; c != nil {
		out.Config.Command = strings.Join(c.Command, " ")
		if c.ReleaseAfter != nil {
			out.Config.ReleaseAfter = eventlog.Timestamp(time.Duration(*c.ReleaseAfter).Seconds())
		}
	}
	return out
}
