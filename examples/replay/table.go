package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// table prints jobs like a listing, oldest first, in lines of at most width
// columns. It holds back blockRows rows to sort them and to find the widths of
// the columns; more jobs are sorted block by block, so that memory stays the same.
type table struct {
	w       io.Writer
	width   int
	rows    []rendered
	columns []column     // nil: not known yet
	text    bytes.Buffer // of a block
}

// blockRows is how many rows are held back.
const blockRows = 1 << 14

// A column of the table.
type column struct {
	index  int // of the cell in a row
	header string
	right  bool // aligned to the right, for numbers
	drop   int  // which goes first if there is no room: the highest; 0: stays
	width  int
}

// minInfo is how much room INFO wants before columns go.
const minInfo = 16

func columns() []column {
	list := []column{
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
	}
	for i := range list {
		list[i].index = i
	}
	return list
}

func (t *table) takesAny() bool { return false }
func (t *table) faults() bool   { return false }

func (t *table) render(j *job) rendered {
	submitted, _ := j.Entered(jobstate.StateNew)
	return rendered{text: row(j), at: float64(submitted)}
}

func (t *table) print(r rendered) error {
	t.rows = append(t.rows, r)
	if len(t.rows) < blockRows {
		return nil
	}
	return t.flush()
}

func (t *table) close() error {
	if len(t.rows) == 0 {
		return nil
	}
	return t.flush()
}

// flush prints the rows that are held back.
func (t *table) flush() error {
	order := make([]int, len(t.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(t.rows[a].at, t.rows[b].at), cmp.Compare(a, b)) })
	t.text.Reset()
	if t.columns == nil {
		t.fit()
		var names []byte
		for _, c := range columns() {
			names = append(append(names, c.header...), '\n')
		}
		t.line(names)
	}
	for _, i := range order {
		t.line(t.rows[i].text)
	}
	t.rows = t.rows[:0]
	_, err := t.w.Write(t.text.Bytes())
	return err
}

// fit finds the widths of the columns, and drops columns until INFO has room.
func (t *table) fit() {
	t.columns = columns()
	for i := range t.columns {
		t.columns[i].width = utf8.RuneCountInString(t.columns[i].header)
	}
	for _, r := range t.rows {
		for i, cell := range cellsOf(r.text) {
			t.columns[i].width = max(t.columns[i].width, utf8.RuneCount(cell))
		}
	}
	total := 0
	for _, c := range t.columns {
		total += c.width + 2
	}
	info := &t.columns[len(t.columns)-1]
	fixed := total - info.width - 2
	for want := min(info.width, minInfo); fixed+want > t.width; {
		last := slices.MaxFunc(t.columns, func(a, b column) int { return cmp.Compare(a.drop, b.drop) })
		if last.drop == 0 {
			break
		}
		t.columns = slices.DeleteFunc(t.columns, func(c column) bool { return c.index == last.index })
		fixed -= last.width + 2
	}
}

// cellsOf returns the cells of a row, which end in newlines.
func cellsOf(row []byte) (cells [12][]byte) {
	for i := range cells {
		cells[i], row, _ = bytes.Cut(row, []byte("\n"))
	}
	return cells
}

// line adds one row, cut at the width.
func (t *table) line(row []byte) {
	b, start := &t.text, t.text.Len()
	cells := cellsOf(row)
	for _, c := range t.columns {
		cell := cells[c.index]
		pad := max(0, c.width-utf8.RuneCount(cell))
		if c.right {
			spaces(b, pad)
		}
		b.Write(cell)
		if !c.right {
			spaces(b, pad)
		}
		spaces(b, 2)
	}
	line := oneLine(string(bytes.TrimRight(b.Bytes()[start:], " ")), t.width)
	b.Truncate(start)
	b.WriteString(line)
	b.WriteByte('\n')
}

const blanks = "                                                                "

func spaces(b *bytes.Buffer, n int) {
	for ; n > len(blanks); n -= len(blanks) {
		b.WriteString(blanks)
	}
	b.WriteString(blanks[:n])
}

// row returns a job's cells, a newline after each: one text, for many rows wait.
// A dash is what there is not.
func row(j *job) []byte {
	b := make([]byte, 0, 160)
	cell := func(s string, ok bool) {
		if !ok {
			s = "-"
		}
		b = append(append(b, s...), '\n')
	}
	cell(j.name(), true)
	b = append(strconv.AppendUint(b, uint64(j.UserID()), 10), '\n')
	name := ""
	if j.spec != nil {
		name = oneLine(j.spec.Name(), 16)
	}
	cell(name, name != "")
	cell(j.State().Name(jobstate.NameShortUpper), true)
	result, ok := j.Result()
	cell(result.String(), ok && j.State() == jobstate.StateInactive)
	code, ok := j.ExitCode()
	cell(strconv.Itoa(code), ok)
	nodes, ok := j.counts().Nodes.Value()
	cell(strconv.FormatInt(nodes, 10), ok)
	if t, ok := j.Entered(jobstate.StateNew); ok {
		b = append(t.Time().UTC().AppendFormat(b, "2006-01-02 15:04"), '\n')
	} else {
		cell("", false)
	}
	cell(between(j, jobstate.StateNew, jobstate.StateRun), true)
	cell(between(j, jobstate.StateRun, jobstate.StateCleanup), true)
	cell(between(j, jobstate.StateCleanup, jobstate.StateInactive), true)
	cell(info(j), true)
	return b
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
	return fsd.Duration(math.Round(float64(max(0, b-a)) * 1e9)).Format(3)
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
