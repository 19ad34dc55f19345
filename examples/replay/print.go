package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate"
)

// rendered is what a printer makes of a job.
type rendered struct {
	text          []byte
	at            float64 // what a table is sorted by
	errors, notes int     // findings
	err           error   // why it cannot be printed
}

// plain prints what make makes of each job.
type plain struct {
	w                   io.Writer
	make                func(*job) rendered
	counts              bool // prints how many there were of these:
	jobs, errors, notes int
	unreadable          int // jobs, parts of jobs and inputs
}

func (p *plain) render(j *job) rendered { return p.make(j) }

func (p *plain) close() (err error) {
	if p.counts {
		_, err = fmt.Fprintf(p.w, "jobs %d, errors %d, notes %d, unreadable %d\n", p.jobs, p.errors, p.notes, p.unreadable)
	}
	return err
}

func (p *plain) print(r rendered) error {
	p.jobs++
	p.errors += r.errors
	p.notes += r.notes
	_, err := p.w.Write(r.text)
	return err
}

func renderListing(j *job) (r rendered) {
	r.text, r.err = j.listing()
	return r
}

func renderTimeline(j *job) rendered {
	var b bytes.Buffer
	t := timeline{name: j.name(), job: jobstate.NewJob(j.id)}
	for e, err := range eventlog.Entries(j.eventlog) {
		if err != nil || t.print(&b, e) != nil {
			break // newJob has said so
		}
	}
	b.WriteByte('\n')
	return rendered{text: b.Bytes()}
}

// A timeline prints the events of a job as it applies them.
type timeline struct {
	name  string
	job   *jobstate.Job
	start eventlog.Timestamp
}

func (t *timeline) print(w io.Writer, e eventlog.Entry) error {
	if !t.job.Submitted() {
		t.start = e.Timestamp
		fmt.Fprintf(w, "job %s  %s\n", t.name, e.Timestamp.Time().UTC().Format(time.RFC3339Nano))
	}
	outcome, err := t.job.Apply(e)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%12.6f  %-8s  %-17s %s", float64(e.Timestamp-t.start), t.job.State(), e.Name, e.Context)
	if outcome.Ignored() && outcome != jobstate.IgnoredUnknown {
		line = strings.TrimRight(line, " ") + "  (" + outcome.String() + ")"
	}
	_, err = io.WriteString(w, lines.Escape(strings.TrimRight(line, " "))+"\n")
	return err
}

// renderFindings renders what Validate says.
func renderFindings(j *job) (r rendered) {
	for _, f := range jobstate.Validate(j.eventlog) {
		if f.Level == jobstate.LevelError {
			r.errors++
		} else {
			r.notes++
		}
		r.text = fmt.Appendf(r.text, "%s: %s\n", j.name(), lines.Escape(f.String()))
	}
	return r
}
