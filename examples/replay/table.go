package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// table prints rows, oldest job first, in lines of at most width columns. It holds back
// blockRows jobs, or blockBytes, to sort them and to find the widths of the columns; more
// jobs are sorted block by block, so that memory stays the same.
type table struct {
	w       io.Writer
	width   int // 0: no terminal, so that nothing is cut
	form    form
	jobs    []rendered
	size    int          // bytes of them
	columns []column     // nil: not known yet
	text    bytes.Buffer // of a block
}

// What is held back at most.
const (
	blockRows  = 1 << 14
	blockBytes = 64 << 20
)

// A form says what a table has.
type form struct {
	columns []column
	// rows adds the rows of a job: cells that end in newlines, cut where a column is
	// narrow if there is a terminal.
	// A job's rows are together, and jobs are sorted by the number.
	rows func(b cells, j *job) (cells, float64)
}

// A column of a table.
type column struct {
	index  int // of the cell in a row
	header string
	right  bool // aligned to the right, for numbers
	drop   int  // which goes first if there is no room: the highest; 0: stays
	width  int
}

// minLast is how much room the last column wants before others go.
const minLast = 16

// jobTable is a table like a job listing.
func jobTable() form {
	return form{
		columns: []column{
			{header: "JOBID"},
			{header: "USER", right: true, drop: 6},
			{header: "NAME", drop: 1},
			{header: "ST"},
			{header: "RESULT"},
			{header: "EXIT", right: true, drop: 3},
			{header: "NODES", right: true, drop: 5},
			{header: "SUBMIT (UTC)", drop: 2},
			{header: "QUEUE", right: true, drop: 4},
			{header: "RUN", right: true},
			{header: "CLEANUP", right: true, drop: 7},
			{header: "INFO"},
		},
		rows: listingRow,
	}
}

func submitted(j *job) float64 {
	t, _ := j.Entered(jobstate.StateNew)
	return float64(t)
}

func (t *table) render(j *job) rendered {
	b, at := t.form.rows(cells{width: t.width}, j)
	return rendered{text: b.text, at: at}
}

func (t *table) print(r rendered) error {
	if len(r.text) == 0 {
		return nil
	}
	t.jobs = append(t.jobs, r)
	if t.size += len(r.text); len(t.jobs) < blockRows && t.size < blockBytes {
		return nil
	}
	return t.flush()
}

func (t *table) close() error { return t.flush() }

func (t *table) flush() error {
	if len(t.jobs) == 0 {
		return nil
	}
	slices.SortStableFunc(t.jobs, func(a, b rendered) int { return cmp.Compare(a.at, b.at) })
	t.text.Reset()
	if t.columns == nil {
		t.fit()
		var names []byte
		for _, c := range t.form.columns {
			names = append(append(names, c.header...), '\n')
		}
		t.lines(names)
	}
	for _, r := range t.jobs {
		t.lines(r.text)
	}
	clear(t.jobs)
	t.jobs, t.size = t.jobs[:0], 0
	_, err := t.w.Write(t.text.Bytes())
	return err
}

// fit finds the widths of the columns, and drops columns until the last has room.
func (t *table) fit() {
	t.columns = slices.Clone(t.form.columns)
	for i := range t.columns {
		t.columns[i].index, t.columns[i].width = i, utf8.RuneCountInString(t.columns[i].header)
	}
	for _, r := range t.jobs {
		for rest := r.text; len(rest) > 0; {
			for i := range t.columns {
				var cell []byte
				cell, rest, _ = bytes.Cut(rest, []byte("\n"))
				t.columns[i].width = max(t.columns[i].width, utf8.RuneCount(cell))
			}
		}
	}
	total := 0
	for _, c := range t.columns {
		total += c.width + 2
	}
	last := t.columns[len(t.columns)-1]
	fixed := total - last.width - 2
	for want := min(last.width, minLast); t.width > 0 && fixed+want > t.width; {
		least := slices.MaxFunc(t.columns, func(a, b column) int { return cmp.Compare(a.drop, b.drop) })
		if least.drop == 0 {
			break
		}
		t.columns = slices.DeleteFunc(t.columns, func(c column) bool { return c.index == least.index })
		fixed -= least.width + 2
	}
}

// lines adds the rows of a job, each cut at the width.
func (t *table) lines(rows []byte) {
	b := &t.text
	cells := make([][]byte, len(t.form.columns))
	for len(rows) > 0 {
		for i := range cells {
			cells[i], rows, _ = bytes.Cut(rows, []byte("\n"))
		}
		start := b.Len()
		for _, c := range t.columns {
			width := c.width
			if !c.right {
				width = -width
			}
			fmt.Fprintf(b, "%*s  ", width, cells[c.index])
		}
		line := bytes.TrimRight(b.Bytes()[start:], " ")
		b.Truncate(start + len(line))
		if t.width > 0 && len(line) > t.width {
			short := oneLine(string(line), t.width)
			b.Truncate(start)
			b.WriteString(short)
		}
		b.WriteByte('\n')
	}
}

// cells are the cells of rows: one text, for many rows wait.
type cells struct {
	text  []byte
	width int // of the terminal; 0: none
}

// add adds a cell, cut at n characters if there is a terminal.
func (c *cells) add(s string, n int) {
	if c.width == 0 {
		n = 0
	}
	c.text = append(append(c.text, oneLine(s, n)...), '\n')
}

func listingRow(b cells, j *job) (cells, float64) {
	b.text = make([]byte, 0, 160)
	cell := func(s string, ok bool) {
		if !ok {
			s = "-"
		}
		b.add(s, b.width)
	}
	b.add(j.name(), maxLabel)
	b.add(j.user(), 0)
	b.add(j.jobName(), maxName)
	cell(j.State().Short(), true)
	result, ok := j.Result()
	cell(result.String(), ok && j.State() == jobstate.StateInactive)
	code, ok := j.ExitCode()
	cell(strconv.Itoa(code), ok)
	nodes, ok := j.counts().Nodes.Value()
	cell(strconv.FormatInt(nodes, 10), ok)
	if t, ok := j.Entered(jobstate.StateNew); ok {
		b.text = append(t.Time().UTC().AppendFormat(b.text, "2006-01-02 15:04"), '\n')
	} else {
		cell("", false)
	}
	cell(between(j, jobstate.StateNew, jobstate.StateRun), true)
	cell(between(j, jobstate.StateRun, jobstate.StateCleanup), true)
	cell(between(j, jobstate.StateCleanup, jobstate.StateInactive), true)
	cell(info(j), true)
	return b, submitted(j)
}

// How many characters of what users name a terminal shows in a column.
const (
	maxLabel = 24
	maxName  = 16
)

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
	return fsd.Duration(max(0, b.Time().Sub(a.Time()))).Format(3) // forever beyond 292 years
}

// info says why the job ended as it did, what it waits for, and what still
// holds its resources.
func info(j *job) string {
	var parts []string
	if e, ok := j.Exception(); ok {
		s := e.Type
		if e.Severity > 0 {
			s += " (severity " + strconv.Itoa(int(e.Severity)) + ")"
		}
		if e.Note != "" {
			s += ": " + e.Note
		}
		parts = append(parts, s)
	}
	if j.State() != jobstate.StateInactive {
		parts = append(parts, "waits for "+j.Waiting())
	} else {
		for a := range j.Actions() {
			parts = append(parts, fmt.Sprintf("%v %s never finished", a.Kind, a.Description))
		}
	}
	return strings.Join(parts, "; ")
}
