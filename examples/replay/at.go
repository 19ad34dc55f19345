package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// parseTime reads a time: as the tables print it, in UTC; by RFC 3339; or in seconds since
// 1970, as logs have it.
func parseTime(s string) (eventlog.Timestamp, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return eventlog.FromTime(t), nil
		}
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil && x >= 0 && !math.IsInf(x, 0) {
		return eventlog.Timestamp(x), nil
	}
	return 0, errors.New("want a time such as 2026-11-21 15:04 (UTC), RFC 3339 or seconds since 1970")
}

// holdersTable is a table of what held which nodes at a time: a row a holder, jobs in the
// order of the first rank that they hold.
func holdersTable(at eventlog.Timestamp) form {
	return form{
		columns: []column{
			{header: "NODES"},
			{header: "RANKS", drop: 4},
			{header: "JOBID"},
			{header: "USER", right: true, drop: 3},
			{header: "NAME", drop: 2},
			{header: "ST"},
			{header: "SINCE (UTC)", drop: 1},
			{header: "HOLDER"},
		},
		rows: func(b cells, j *job) (cells, float64) { return holderRows(b, j, at) },
	}
}

// holderRows adds a row for each holder of the job's ranks at a time.
func holderRows(b cells, j *job, at eventlog.Timestamp) (cells, float64) {
	if t, ok := j.Entered(jobstate.StateNew); !ok || t > at || !j.WasAllocated() {
		return b, 0
	}
	h := perilog.NewHolds(j.id, j.res)
	for e, err := range eventlog.Entries(j.eventlog) {
		if err != nil || e.Timestamp > at {
			break // newJob has said what is wrong
		}
		if _, err := h.Apply(e); err != nil {
			break
		}
	}
	if !h.Job().HasResources() {
		return b, 0
	}
	order := 0.0
	add := func(ranks *idset.Set, holder string, since eventlog.Timestamp) {
		nodes, text, start := "?", "?", "-"
		if j.res != nil {
			part, err := j.res.Restrict(ranks)
			if err != nil || part.IsEmpty() {
				return
			}
			first, _ := ranks.Min()
			if nodes, text = part.Nodelist().String(), ranks.String(); len(b.text) == 0 {
				order = float64(first)
			}
		}
		if since > 0 {
			start = since.Time().UTC().Format(time.DateTime)
		}
		b.add(nodes, b.width)
		b.add(text, b.width)
		b.add(j.name(), maxLabel)
		b.add(j.user(), 0)
		b.add(j.jobName(), maxName)
		b.add(h.Job().State().Short(), 0)
		b.add(start, 0)
		b.add(holder, b.width)
	}
	if j.res == nil {
		add(nil, "not known: there is no R", 0)
		return b, math.Inf(1)
	}
	var job perilog.Holder // holds until CLEANUP what others hold, too
	for holder := range h.Holders() {
		if holder.Kind == perilog.HolderJob {
			job = holder
			continue
		}
		add(holder.Ranks, strings.TrimSpace(holder.Kind.String()+" "+holder.Description), holder.Since)
		if job.Ranks != nil {
			job.Ranks.SubtractWith(holder.Ranks)
		}
	}
	if job.Ranks != nil {
		add(job.Ranks, job.Kind.String(), job.Since)
	}
	rest := idset.Difference(j.res.Ranks(), h.Held())
	if released := h.Released(); released.Ranks != nil {
		rest.SubtractWith(released.Ranks)
	}
	add(rest, "the event free, which is due", 0)
	return b, order
}
