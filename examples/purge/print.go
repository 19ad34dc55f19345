package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/purge"
)

// newTable returns a table that is printed with Render.
func newTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.AppendHeader(header)
	return t
}

// table prints what there is.
func (s *session) table(title string) {
	st := s.index.Stats()
	t := newTable(s.out, title, "jobs", "completed", "failed", "canceled", "timeout")
	for _, row := range []struct {
		name string
		c    purge.Counts
	}{{"inactive", st.Resident}, {"purged now", st.Purged}, {"tombstones", st.Tombstones}} {
		t.AppendRow(table.Row{row.name, row.c.Total(), row.c.Completed, row.c.Failed, row.c.Canceled, row.c.Timeout})
	}
	t.AppendRow(table.Row{"pinned", st.Pinned})
	t.Render()
}

// shown is how many jobs of a list are printed.
const shown = 8

// jobs prints the jobs of a plan, and those that only their pins keep.
func (s *session) jobs(p purge.Plan) {
	t := newTable(s.out, "id", "ended", "age", "result", "why")
	for i, c := range p.Jobs {
		if i == shown {
			t.AppendRow(table.Row{fmt.Sprintf("%d more", len(p.Jobs)-shown)})
			break
		}
		t.AppendRow(s.row(c.Record, c.Reason))
	}
	for _, k := range p.Pinned {
		t.AppendRow(s.row(k.Record, "stays: "+k.Pins[0].String()))
	}
	t.Render()
}

func (s *session) row(r purge.Record, why any) table.Row {
	age := fsd.Duration(1e9 * max(0, float64(s.now-r.Inactive)))
	return table.Row{r.ID, clock(r.Inactive), age.Format(3), r.Result, why}
}

// clock prints a time for people.
func clock(t eventlog.Timestamp) string { return t.Time().UTC().Format(time.DateTime) }

// describe prints limits in one line.
func describe(l purge.Limits) string {
	text := ""
	if l.MaxAge.Set {
		text += fmt.Sprintf(" age %v", l.MaxAge.Value)
	}
	if l.MaxCount.Set {
		text += fmt.Sprintf(" number %d", l.MaxCount.Value)
	}
	if l.MinAge.Set {
		text += fmt.Sprintf(" minimum age %v", l.MinAge.Value)
	}
	return "the limits" + text
}

// bar shows a progress bar if w is a terminal. Step tells how much more is done,
// done takes the bar away.
func bar(w io.Writer, what string, total int) (step func(int), done func()) {
	f, ok := w.(*os.File)
	if !ok {
		return func(int) {}, func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(int) {}, func() {}
	}
	p := progress.NewWriter()
	p.SetOutputWriter(w)
	p.SetUpdateFrequency(100 * time.Millisecond)
	p.Style().Visibility.ETA = true
	tracker := &progress.Tracker{Message: what, Total: int64(total)}
	p.AppendTracker(tracker)
	go p.Render()
	return func(n int) { tracker.Increment(int64(n)) }, func() {
		tracker.MarkAsDone()
		for p.IsRenderInProgress() && p.LengthActive() > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		p.Stop()
	}
}
