package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/purge"
)

// table prints what there is.
func (s *session) table(title string) {
	st := s.index.Stats()
	fmt.Fprintf(s.out, "%-10s %9s %10s %9s %9s %9s\n", title, "jobs", "completed", "failed", "canceled", "timeout")
	for _, row := range []struct {
		name string
		c    purge.Counts
	}{{"inactive", st.Resident}, {"purged", st.Purged}} {
		fmt.Fprintf(s.out, "%-10s %9d %10d %9d %9d %9d\n", row.name, row.c.Total(),
			row.c.Completed, row.c.Failed, row.c.Canceled, row.c.Timeout)
	}
	fmt.Fprintf(s.out, "%-10s %9d\n%-10s %9d\n", "pinned", st.Pinned, "tombstones", st.Tombstones)
	if oldest, newest, ok := s.ends(); ok {
		fmt.Fprintf(s.out, "%-10s %s\n%-10s %s\n", "oldest", s.describe(oldest), "newest", s.describe(newest))
	}
}

// describe tells of a job in one line.
func (s *session) describe(j purge.Job) string {
	return fmt.Sprintf("%-13v %s  %7s old  %v", j.ID, at(j.Inactive), age(float64(s.now-j.Inactive)), j.Result)
}

// at prints a time for people.
func at(t eventlog.Timestamp) string { return t.Time().UTC().Format("2006-01-02 15:04:05") }

// age prints a duration, which is negative after the clock was put back.
func age(seconds float64) string {
	if seconds < 0 {
		return "-" + fsd.Duration(-seconds).Format(3)
	}
	return fsd.Duration(seconds).Format(3)
}

// describe tells limits in one line.
func describe(l purge.Limits) string {
	limit := func(l purge.Limit[time.Duration]) string {
		d, ok := l.Value()
		switch {
		case !ok:
			return "none"
		case d == math.MaxInt64:
			return fsd.Infinity().String()
		}
		return age(d.Seconds())
	}
	n := "none"
	if v, ok := l.MaxCount.Value(); ok {
		n = fmt.Sprint(v)
	}
	batch := l.Batch
	if batch == 0 {
		batch = purge.DefaultBatch
	}
	return fmt.Sprintf("age=%s num=%s min-age=%s batch=%d", limit(l.MaxAge), n, limit(l.MinAge), batch)
}

// join prints pins.
func join(pins []purge.Pin) string {
	texts := make([]string, len(pins))
	for i, p := range pins {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

// plural prints a number of jobs.
func plural(n int) string {
	if n == 1 {
		return "1 inactive job"
	}
	return fmt.Sprintf("%d inactive jobs", n)
}

// shown is how many jobs of a list are printed.
const shown = 5

func (s *session) print(jobs []purge.Candidate) {
	for i, c := range jobs {
		if i == shown && len(jobs) > shown+1 {
			fmt.Fprintf(s.out, "  … %d more\n", len(jobs)-shown)
			return
		}
		fmt.Fprintf(s.out, "  %-59s why: %v\n", s.describe(c.Job), c.Why)
	}
}

func (s *session) printPinned(p purge.Plan) {
	if len(p.Pinned) == 0 {
		return
	}
	fmt.Fprintf(s.out, "%s would go, too, but stay pinned:\n", plural(len(p.Pinned)))
	for i, k := range p.Pinned {
		if i == shown && len(p.Pinned) > shown+1 {
			fmt.Fprintf(s.out, "  … %d more\n", len(p.Pinned)-shown)
			return
		}
		fmt.Fprintf(s.out, "  %-59s by: %s\n", s.describe(k.Job), join(k.Pins))
	}
}

func (s *session) list(n int) {
	all := s.oldest(n)
	for _, k := range all {
		line := s.describe(k.Job)
		if len(k.Pins) > 0 {
			line = fmt.Sprintf("%-59s pinned by: %s", line, join(k.Pins))
		}
		fmt.Fprintf(s.out, "  %s\n", line)
	}
	fmt.Fprintf(s.out, "%d of %s\n", len(all), plural(s.index.Len()))
}

// refuse prints an error and, to somebody who types commands, what can be done.
func (s *session) refuse(err error) {
	advice := ""
	var job *purge.JobError
	switch {
	case errors.Is(err, purge.ErrPinned) && errors.As(err, &job):
		p := job.Pins[0]
		advice = fmt.Sprintf("it may go when its pins are gone, as by: unpin %v %v %s", job.ID, p.Kind, p.By)
	case errors.Is(err, purge.ErrActive):
		advice = "it has not ended"
	case errors.Is(err, purge.ErrPurged):
		advice = "its tombstone still answers ask"
	case errors.Is(err, purge.ErrUnknown):
		advice = "list shows ids; also a tombstone ends"
	case errors.Is(err, purge.ErrClock):
		advice = "if that is the right time, say so with advance FSD --accept"
	case errors.Is(err, purge.ErrExcess):
		advice = "unpin some, or say it shorter"
	}
	text := explain(err)
	if advice != "" && s.typed {
		text += "; " + strings.TrimSpace(advice)
	}
	fmt.Fprintln(s.out, "!", text)
}

// explain is the text of an error. That of a clock has seconds since 1970; people
// want the time of the day.
func explain(err error) string {
	var c *purge.ClockError
	if !errors.As(err, &c) || !(c.Now > 0) {
		return strings.TrimPrefix(err.Error(), "purge: ")
	}
	step, side := float64(c.Now-c.Last), "after"
	if step < 0 {
		step, side = -step, "before"
	}
	return fmt.Sprintf("%v: %s is %s %s %s, the latest time known", purge.ErrClock, at(c.Now), age(step), side, at(c.Last))
}
