package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/joblife/joblife/examples/internal/unpack"
)

// Limits of a trace and of its lines. What is beyond them is absurd.
const (
	freeLines  = 1 << 16 // beyond them, two bytes of the file for each
	maxLine    = 1 << 16
	maxSeconds = 100 * 365 * 86400
	maxProcs   = 1 << 24
	maxCores   = 1 << 20 // of a node: an R has no greater ids
	maxJobs    = 1 << 22
)

// A trace is a workload in the Standard Workload Format of the Parallel Workloads
// Archive.
type trace struct {
	jobs         []arrival
	lines        []int    // of the jobs
	nodes, procs int      // of the machine; 0: the header does not say
	skipped      []string // the first lines that are no jobs, and why
	bad          int      // how many they are
	raised       int      // jobs that ran longer than they asked for
}

// errNoTrace is returned for a file without a single job.
var errNoTrace = errors.New("not a trace in the Standard Workload Format: it has no job")

// openTrace reads the trace in a file, compressed with gzip or not.
func openTrace(name string) (*trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := readTrace(f)
	if err != nil {
		return nil, unpack.InFile(name, err)
	}
	return t, nil
}

// skip notes a line that is no job.
func (t *trace) skip(line int, why error) {
	if t.bad++; t.bad <= shown {
		t.skipped = append(t.skipped, fmt.Sprintf("line %d: %v", line, why))
	}
}

// readTrace reads a trace. Lines that are no jobs are skipped.
func readTrace(r io.Reader) (*trace, error) {
	file := unpack.New(r)
	in := bufio.NewReader(file)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReader(file.Bound(unzipped))
	}
	t := new(trace)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	ended := false // the line
	lines.Split(func(data []byte, last bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, last)
		ended = n > len(line)
		return n, line, err
	})
	for n := 1; lines.Scan(); n++ {
		if int64(n) > freeLines+file.Len()/2 {
			return nil, fmt.Errorf("line %d: %w", n, unpack.ErrLong)
		}
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if line[0] == ';' {
			t.header(string(line))
			continue
		}
		j, err := parseArrival(string(line), ended)
		switch {
		case err != nil:
			t.skip(n, err)
			continue
		case len(t.jobs) == maxJobs:
			return nil, fmt.Errorf("line %d: more than %d jobs", n, maxJobs)
		}
		if j.limit > 0 && j.limit < j.run {
			j.limit = j.run
			t.raised++
		}
		t.jobs, t.lines = append(t.jobs, j), append(t.lines, n)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w, and a line of more than %d bytes", errNoTrace, maxLine)
	case err != nil:
		return nil, err
	case t.bad > 0 && len(t.jobs) == 0:
		return nil, fmt.Errorf("%w; %s", errNoTrace, t.skipped[0])
	case len(t.jobs) == 0:
		return nil, errNoTrace
	}
	return t, nil
}

// header takes what a comment says of the machine, without its partitions, in parentheses.
func (t *trace) header(line string) {
	name, value, _ := strings.Cut(strings.TrimLeft(line, "; \t"), ":")
	value, _, _ = strings.Cut(value, "(")
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < 1 || n > maxProcs {
		return
	}
	switch name {
	case "MaxNodes":
		t.nodes = n
	case "MaxProcs":
		t.procs = n
	}
}

// The fields of a line, from 0. Those that a line lacks, or that are -1, are unknown.
const (
	fieldSubmit = 1
	fieldRun    = 3
	fieldProcs  = 4
	fieldWanted = 7
	fieldLimit  = 8
	fieldStatus = 10
	fieldUser   = 11
	fieldCount  = 18
)

// parseArrival parses a line, which has an end or not. The size of the job is in processors.
func parseArrival(line string, ended bool) (arrival, error) {
	texts := strings.Fields(line)
	switch {
	case len(texts) <= fieldProcs || len(texts) > fieldCount:
		return arrival{}, fmt.Errorf("fields: %d, want %d, or %d at least", len(texts), fieldCount, fieldProcs+1)
	case len(texts) < fieldCount && !ended:
		return arrival{}, fmt.Errorf("fields: %d, and no end of the line: the file was cut, or it needs a newline", len(texts))
	}
	var f [fieldCount]float64
	for i := range f {
		f[i] = -1
		if i >= len(texts) {
			continue
		}
		n, err := strconv.ParseFloat(texts[i], 64)
		if err != nil || strings.ContainsAny(texts[i], "_xXnN") { // Go's 1_0, 0x1p4, NaN and Inf
			return arrival{}, fmt.Errorf("field %d, %.20q, is not a number", i+1, texts[i])
		}
		f[i] = n
	}
	for _, i := range []int{fieldRun, fieldProcs, fieldWanted, fieldLimit} {
		if f[i] < 0 && f[i] != -1 {
			return arrival{}, fmt.Errorf("field %d is negative: %g", i+1, f[i])
		}
	}
	size := f[fieldWanted]
	if size <= 0 {
		size = f[fieldProcs]
	}
	switch {
	case 2 <= f[fieldStatus] && f[fieldStatus] <= 4: // such lines follow that of the whole job
		return arrival{}, fmt.Errorf("status %g: a part of a job that has a line of its own", f[fieldStatus])
	case f[fieldSubmit] < 0 || f[fieldSubmit] > maxSeconds:
		return arrival{}, fmt.Errorf("submitted at %g seconds, not 0 to 100 years", f[fieldSubmit])
	case f[fieldRun] < 0:
		return arrival{}, errors.New("the runtime is unknown")
	case f[fieldStatus] == 5 && f[fieldRun] == 0:
		return arrival{}, errors.New("canceled before it ran")
	case f[fieldRun] > maxSeconds || f[fieldLimit] > maxSeconds:
		return arrival{}, fmt.Errorf("a runtime of %g seconds, of %g asked for: want at most 100 years", f[fieldRun], f[fieldLimit])
	case size <= 0:
		return arrival{}, errors.New("the number of processors is unknown")
	case size > maxProcs:
		return arrival{}, fmt.Errorf("%g processors, more than %d", size, maxProcs)
	}
	return arrival{
		submit: seconds(f[fieldSubmit]), run: seconds(math.Ceil(f[fieldRun])), limit: max(0, seconds(math.Ceil(f[fieldLimit]))),
		size: int(math.Ceil(size)), user: uint32(min(max(f[fieldUser], 0), 1<<30)), fails: f[fieldStatus] == 0,
	}, nil
}
