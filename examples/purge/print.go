package main

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/purge"
)

// printTable prints rows.
func printTable(w io.Writer, header table.Row, rows []table.Row) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.AppendHeader(header)
	t.AppendRows(rows)
	t.Render()
}

// printStats prints what there is.
func (s *session) printStats(title string) {
	st := s.index.Stats()
	row := func(name string, c purge.ResultCounts) table.Row {
		return table.Row{name, c.Total(), c.Completed, c.Failed, c.Canceled, c.Timeout}
	}
	printTable(s.out, table.Row{title, "jobs", "completed", "failed", "canceled", "timeout"}, []table.Row{
		row("inactive", st.Resident), row("purged now", st.Purged), row("tombstones", st.Tombstones), {"pinned", st.Pinned},
	})
}

// shown is how many jobs of a list are printed.
const shown = 8

// printPlan prints the jobs of a plan, and those that only their pins keep.
func (s *session) printPlan(p purge.Plan) {
	var rows []table.Row
	row := func(r jobstate.Summary, why string) {
		age := fsd.Duration(1e9 * max(0, float64(s.now-r.Inactive))).Format(3)
		rows = append(rows, table.Row{r.ID.String(), r.Inactive.Time().UTC().Format(time.DateTime), age, r.Result, why})
	}
	for _, c := range p.Jobs[:min(shown, len(p.Jobs))] {
		row(c.Summary, c.Reason.String())
	}
	if more := len(p.Jobs) - shown; more > 0 {
		rows = append(rows, table.Row{fmt.Sprintf("%d more", more)})
	}
	for _, k := range p.Pinned {
		row(k.Summary, "stays: "+k.Pins[0].String())
	}
	printTable(s.out, table.Row{"id", "ended", "age", "result", "why"}, rows)
}

// describe prints limits in one line.
func describe(l purge.Limits) string {
	text := "the limits"
	if l.MaxAge.Set {
		text += fmt.Sprintf(" age %v", fsd.Duration(l.MaxAge.Value))
	}
	if l.MaxCount.Set {
		text += fmt.Sprintf(" number %d", l.MaxCount.Value)
	}
	if l.MinAge.Set {
		text += fmt.Sprintf(" minimum age %v", fsd.Duration(l.MinAge.Value))
	}
	return text
}
