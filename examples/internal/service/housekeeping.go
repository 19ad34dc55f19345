package service

import (
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

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
	Start     eventlog.Timestamp `json:"t_start"`
	Pending   *idset.Set         `json:"pending"`   // where it runs
	Allocated *idset.Set         `json:"allocated"` // what it holds
}

// housekeepingStats returns what stats-get tells of housekeeping. A rank is pending until
// it is freed: the Manager does not tell of a command that has ended on it before.
func (s *Service) housekeepingStats() (out housekeepingStats) {
	out.Running = make(map[jobid.ID]houseStats)
	for h := range s.m.Holders() {
		if h.Kind == perilog.HolderHousekeeping {
			out.Running[h.Job] = houseStats{Start: h.Since, Pending: h.Ranks, Allocated: h.Ranks}
		}
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
