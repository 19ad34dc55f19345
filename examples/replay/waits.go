package main

import (
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// waitsTable is a table of the time that each job was in each state, all stays together.
func waitsTable() form {
	list := []column{{header: "JOBID"}, {header: "USER", right: true, drop: 4}, {header: "NAME", drop: 3}, {header: "ST"}}
	for s := jobstate.StateNew; s < jobstate.StateInactive; s <<= 1 {
		list = append(list, column{header: s.String(), right: true})
	}
	return form{columns: append(list, column{header: "ALL", right: true}), rows: waitsRow}
}

// waitsRow adds the row of a job. Of the state that it is in, the end is not known.
func waitsRow(b cells, j *job) (cells, float64) {
	var last eventlog.Timestamp
	for e, err := range eventlog.Entries(j.eventlog) {
		if err != nil {
			break // newJob has said so
		}
		last = max(last, e.Timestamp)
	}
	b.add(j.name(), maxLabel)
	b.add(j.user(), 0)
	b.add(j.jobName(), maxName)
	b.add(j.State().Short(), 0)
	all := jobstate.State(0)
	for s := jobstate.StateNew; s < jobstate.StateInactive; s <<= 1 {
		all |= s
		_, was := j.Entered(s)
		b.add(j.spent(s, was, last), 0)
	}
	b.add(j.spent(all, j.Submitted(), last), 0)
	return b, submitted(j)
}

// spent returns how long the job was in some states, a dash if it was not, or is in one of
// them.
func (j *job) spent(states jobstate.State, was bool, last eventlog.Timestamp) string {
	if !was || j.State().In(states) {
		return "-"
	}
	return fsd.Duration(j.Spent(states, last)).Format(3)
}
