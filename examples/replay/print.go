package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// table prints jobs like a listing. The widths of its columns follow from the
// first rows; later rows that do not fit move what is right of them.
type table struct {
	w      io.Writer
	rows   [][]string
	widths []int
	jobs   int
}

// tableRows is how many rows are held back to find the widths.
const tableRows = 512

var header = []string{"JOBID", "USER", "NAME", "ST", "RESULT", "EXIT", "NODES", "SUBMIT (UTC)", "QUEUE", "RUN", "CLEANUP", "INFO"}

// rightAligned tells the columns of numbers.
var rightAligned = map[string]bool{"USER": true, "EXIT": true, "NODES": true, "QUEUE": true, "RUN": true, "CLEANUP": true}

func newTable(w io.Writer) *table { return &table{w: w, rows: [][]string{header}} }

func (t *table) takesAny() bool { return false }
func (t *table) faults() bool   { return false }

func (t *table) job(j *job) error {
	t.jobs++
	t.rows = append(t.rows, row(j))
	if len(t.rows) < tableRows {
		return nil
	}
	return t.flush()
}

func (t *table) close() error {
	if t.jobs == 0 {
		return nil
	}
	return t.flush()
}

func (t *table) flush() error {
	if t.widths == nil {
		t.widths = make([]int, len(header))
		for _, row := range t.rows {
			for i, cell := range row {
				t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	var b bytes.Buffer
	for _, row := range t.rows {
		line := ""
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, t.widths[i]-utf8.RuneCountInString(cell)))
			if rightAligned[header[i]] {
				line += pad + cell + "  "
			} else {
				line += cell + pad + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	t.rows = t.rows[:0]
	_, err := t.w.Write(b.Bytes())
	return err
}

// row returns a job's cells. A dash is what there is not.
func row(j *job) []string {
	result, exit, nodes, name := "-", "-", "-", "-"
	if r, ok := j.Result(); ok && j.State() == jobstate.StateInactive {
		result = r.String()
	}
	if code, ok := j.ExitCode(); ok {
		exit = strconv.Itoa(code)
	}
	if n, ok := j.counts().Nodes.Value(); ok {
		nodes = strconv.FormatInt(n, 10)
	}
	if j.spec != nil && j.spec.Name() != "" {
		name = oneLine(j.spec.Name(), 16)
	}
	submit := "-"
	if t, ok := j.Entered(jobstate.StateNew); ok {
		submit = t.Time().UTC().Format("2006-01-02 15:04:05")
	}
	return []string{
		j.name(), strconv.FormatUint(uint64(j.UserID()), 10), name, j.State().Name(jobstate.ShortUpper), result, exit, nodes, submit,
		between(j, jobstate.StateNew, jobstate.StateRun), between(j, jobstate.StateRun, jobstate.StateCleanup),
		between(j, jobstate.StateCleanup, jobstate.StateInactive), info(j),
	}
}

// between returns how long the job took from one state to another. It is a
// dash where it did not reach them; a job that ended in the queue waited until
// it ended.
func between(j *job, from, to jobstate.State) string {
	a, ok := j.Entered(from)
	if !ok {
		return "-"
	}
	b, ok := j.Entered(to)
	if !ok && to == jobstate.StateRun {
		b, ok = j.Entered(jobstate.StateCleanup)
	}
	if !ok {
		return "-"
	}
	return fsd.Duration(max(0, b-a)).Format(3)
}

// info says why the job ended as it did, what it waits for, and what still
// holds its resources.
func info(j *job) string {
	var parts []string
	if e, ok := j.Exception(); ok {
		s := oneLine(e.Type, 20)
		if e.Severity > 0 {
			s += " (severity " + strconv.Itoa(int(e.Severity)) + ")"
		}
		if e.Note != "" {
			s += ": " + oneLine(e.Note, 60)
		}
		parts = append(parts, s)
	}
	if j.State() != jobstate.StateInactive {
		parts = append(parts, oneLine("waits for "+j.Waiting().String(), 100))
	} else {
		for a := range j.Actions() {
			parts = append(parts, fmt.Sprintf("%v %s never finished", a.Kind, oneLine(a.Description, 40)))
		}
	}
	return strings.Join(parts, "; ")
}

// jsonLines prints one object a job.
type jsonLines struct{ w io.Writer }

func (p *jsonLines) takesAny() bool { return false }
func (p *jsonLines) faults() bool   { return false }
func (p *jsonLines) close() error   { return nil }

func (p *jsonLines) job(j *job) error {
	enc := json.NewEncoder(p.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(j.listing())
}

// timeline prints the events of each job.
type timeline struct{ w io.Writer }

func (p *timeline) takesAny() bool { return false }
func (p *timeline) faults() bool   { return false }
func (p *timeline) close() error   { return nil }

func (p *timeline) job(j *job) error {
	var b bytes.Buffer
	again := jobstate.NewJob(j.id)
	var start eventlog.Timestamp
	for e, err := range eventlog.Entries(j.eventlog) {
		if err != nil {
			break // newJob has said so
		}
		if !again.Submitted() {
			start = e.Timestamp
			fmt.Fprintf(&b, "job %s  %s\n", j.name(), e.Timestamp.Time().UTC().Format(time.RFC3339Nano))
		}
		outcome, err := again.Apply(e)
		if err != nil {
			break
		}
		line := fmt.Sprintf("%12.6f  %-8s  %-17s %s", float64(e.Timestamp-start), again.State(), e.Name, e.Context)
		if outcome.Ignored() && outcome != jobstate.IgnoredUnknown {
			line = strings.TrimRight(line, " ") + "  (" + outcome.String() + ")"
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteByte('\n')
	_, err := p.w.Write(b.Bytes())
	return err
}

// findings prints what Validate says.
type findings struct {
	out                 io.Writer
	jobs, errors, notes int
}

func (p *findings) takesAny() bool { return true }
func (p *findings) faults() bool   { return p.errors > 0 }

func (p *findings) job(j *job) error {
	p.jobs++
	for _, f := range jobstate.Validate(j.eventlog) {
		if f.Level == jobstate.LevelError {
			p.errors++
		} else {
			p.notes++
		}
		if _, err := fmt.Fprintf(p.out, "%s: %v\n", j.name(), f); err != nil {
			return err
		}
	}
	return nil
}

func (p *findings) close() error {
	_, err := fmt.Fprintf(p.out, "jobs %d, errors %d, notes %d\n", p.jobs, p.errors, p.notes)
	return err
}
