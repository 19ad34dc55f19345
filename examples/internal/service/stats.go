package service

import (
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
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

// stats returns counts.
func (s *Service) stats(*Request) (any, error) {
	m := s.m.Stats()
	var out stats
	out.Journal.Listeners = len(s.journal)
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

// setBatchTimeout accepts for how long flux-core collects events for a commit. Here a commit
// has what came during the one before.
func (s *Service) setBatchTimeout(r *Request) (any, error) {
	var p struct {
		Timeout float64 `json:"timeout"`
	}
	return nil, r.decode(&p)
}
