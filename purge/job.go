package purge

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Result says how a job ended, with the values of jobstate.Result, which are
// those on the wire. The zero Result is of a job of which that is not known.
type Result uint8

// The results of RFC 43.
const (
	Completed Result = 1 << iota // success
	Failed                       // everything else
	Canceled                     // ended by an exception of type "cancel"
	Timeout                      // ended by an exception of type "timeout"
)

// resultNames are the texts of results, by the place in a Counts.
var resultNames = [...]string{"none", "completed", "failed", "canceled", "timeout"}

// place returns where r is counted, and whether r has a name.
func (r Result) place() (int, bool) {
	switch r {
	case 0:
		return 0, true
	case Completed:
		return 1, true
	case Failed:
		return 2, true
	case Canceled:
		return 3, true
	case Timeout:
		return 4, true
	}
	return 0, false
}

// String returns the name of r in lower case, "none" if r is 0, and text like
// "Result(200)" if it has none.
func (r Result) String() string {
	if i, ok := r.place(); ok {
		return resultNames[i]
	}
	return "Result(" + strconv.Itoa(int(r)) + ")"
}

// A Job is what the index knows of an inactive job, and all that a tombstone
// keeps of a purged one.
type Job struct {
	ID       jobid.ID
	Inactive eventlog.Timestamp // when the job became inactive: the time of clean
	Result   Result
	Ran      bool // whether the job ever started
}

// A Dependency is one of the ways of RFC 26 in which a job waits for another.
type Dependency uint8

// The dependencies on another job. The zero Dependency is invalid.
const (
	After      Dependency = iota + 1 // it started
	AfterAny                         // it ended, in whatever way, started or not
	AfterOK                          // it ended with success
	AfterNotOK                       // it started and ended without success
)

// dependencyNames are the schemes of RFC 26.
var dependencyNames = [...]string{"", "after", "afterany", "afterok", "afternotok"}

// String returns the scheme, as "afterok", or text like "Dependency(200)".
func (d Dependency) String() string {
	if d == 0 || int(d) >= len(dependencyNames) {
		return "Dependency(" + strconv.Itoa(int(d)) + ")"
	}
	return dependencyNames[d]
}

// Satisfies reports whether d on this job is satisfied. What is false will stay
// so, as the job has ended. A job that was canceled before it started satisfies
// afterany alone. Satisfies is false for a d that is no constant of this package.
func (j Job) Satisfies(d Dependency) bool {
	switch d {
	case After:
		return j.Ran
	case AfterAny:
		return true
	case AfterOK:
		return j.Result == Completed
	case AfterNotOK:
		return j.Ran && j.Result != Completed
	}
	return false
}

// isTime reports whether t can be the time of an event.
func isTime(t eventlog.Timestamp) bool { return t > 0 && !math.IsInf(float64(t), 1) }

// check returns an error unless the job can be in an index.
func (j Job) check() error {
	if _, ok := j.Result.place(); !ok || !isTime(j.Inactive) {
		return &JobError{ID: j.ID, Err: ErrJob}
	}
	return nil
}

// less is the order of jobs.
func less(a, b Job) bool {
	return a.Inactive < b.Inactive || a.Inactive == b.Inactive && a.ID < b.ID
}

// compare is the order of jobs, for sorting.
func compare(a, b Job) int {
	switch {
	case less(a, b):
		return -1
	case less(b, a):
		return 1
	}
	return 0
}

// The last field of a tombstone. Neither is the start of the other, so that a
// text that was cut is never another record.
const (
	wordRan   = "ran"
	wordNever = "never-ran"
)

// AppendText appends the job's tombstone, as
// "6731191091817518 1699996421.5 failed ran", to dst: the id, the time, the
// result and whether it ran, with a space between. Equal jobs have equal text, and
// text that was cut short is no tombstone. The error, with dst as it was, has
// category ErrJob. AppendText allocates only to grow dst.
func (j Job) AppendText(dst []byte) ([]byte, error) {
	if err := j.check(); err != nil {
		return dst, err
	}
	dst = j.ID.AppendFormat(dst, jobid.FormatDec)
	dst = append(dst, ' ')
	dst, _ = j.Inactive.AppendText(dst) // check has seen that it is finite
	dst = append(dst, ' ')
	dst = append(dst, j.Result.String()...)
	if j.Ran {
		return append(dst, " "+wordRan...), nil
	}
	return append(dst, " "+wordNever...), nil
}

// MarshalText returns the job's tombstone, see [Job.AppendText].
func (j Job) MarshalText() ([]byte, error) { return j.AppendText(nil) }

// String returns the job's tombstone, or "invalid job " and its id.
func (j Job) String() string {
	text, err := j.AppendText(nil)
	if err != nil {
		return "invalid job " + j.ID.String()
	}
	return string(text)
}

// maxTombstone is the length of the longest tombstone: 20 digits, a number of 24
// bytes, and words.
const maxTombstone = 20 + 1 + 24 + 1 + 9 + 1 + 9

// UnmarshalText sets j to a tombstone. It takes exactly the texts that
// AppendText writes. The error is a *SyntaxError, and j is unchanged.
func (j *Job) UnmarshalText(text []byte) error {
	if len(text) > maxTombstone {
		return syntax(text, maxTombstone, "too long")
	}
	fields := bytes.SplitN(text, []byte{' '}, 5)
	if len(fields) != 4 {
		return syntax(text, len(text), "not four fields")
	}
	var out Job
	at := 0
	id, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil {
		return syntax(text, at, "not an id")
	}
	out.ID = jobid.ID(id)
	at += len(fields[0]) + 1
	if err := out.Inactive.UnmarshalText(fields[1]); err != nil || !isTime(out.Inactive) {
		return syntax(text, at, "not a time")
	}
	at += len(fields[1]) + 1
	place := -1
	for i, name := range resultNames {
		if string(fields[2]) == name {
			place = i
		}
	}
	if place < 0 {
		return syntax(text, at, "not a result")
	}
	if place > 0 {
		out.Result = 1 << (place - 1)
	}
	at += len(fields[2]) + 1
	switch string(fields[3]) {
	case wordRan:
		out.Ran = true
	case wordNever:
	default:
		return syntax(text, at, "neither ran nor never-ran")
	}
	var room [maxTombstone]byte
	if canonical, _ := out.AppendText(room[:0]); !bytes.Equal(canonical, text) {
		return syntax(text, 0, "not in canonical form")
	}
	*j = out
	return nil
}

// watermarkPrefix begins the text of a watermark.
const watermarkPrefix = "watermark "

// AppendWatermark appends the record that keeps id as the watermark, as
// "watermark 0017e9fb8df16c2e", to dst. Its length is always the same, so that
// text that was cut short is never a lower watermark.
func AppendWatermark(dst []byte, id jobid.ID) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, watermarkPrefix...)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, digits[id>>shift&15])
	}
	return dst
}

// ParseWatermark reads what AppendWatermark writes, and nothing else. The error
// is a *SyntaxError.
func ParseWatermark(text []byte) (jobid.ID, error) {
	digits, ok := bytes.CutPrefix(text, []byte(watermarkPrefix))
	if !ok {
		return 0, syntax(text, 0, "not a watermark")
	}
	at := len(watermarkPrefix)
	if len(digits) != 16 {
		return 0, syntax(text, at, "not 16 digits")
	}
	var id jobid.ID
	for i, c := range digits {
		d := strings.IndexByte("0123456789abcdef", c)
		if d < 0 {
			return 0, syntax(text, at+i, "not a digit")
		}
		id = id<<4 | jobid.ID(d)
	}
	return id, nil
}

// syntax returns a *SyntaxError that refers to no input.
func syntax(text []byte, at int, reason string) error {
	return &SyntaxError{Offset: at, Input: string(text[:min(len(text), maxToken)]), Reason: reason}
}
