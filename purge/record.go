package purge

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A Record is what the index knows of an inactive job. It is also what remains
// of a purged job: its tombstone.
type Record struct {
	ID       jobid.ID
	Inactive eventlog.Timestamp // the time of the clean event
	Result   jobstate.Result    // 0 if it is not known, for example of a damaged job
	Ran      bool               // the job started
	UserID   uint32             // whose job it is

	Unstarted bool // the job had resources and did not start; false if Ran
}

// RecordOf returns the record of a job that is inactive. Otherwise the error has category
// ErrActive.
func RecordOf(j *jobstate.Job) (Record, error) {
	at, ok := j.Entered(jobstate.StateInactive)
	if !ok {
		return Record{}, jobError(j.ID(), ErrActive, ": "+j.State().String())
	}
	result, _ := j.Result() // an inactive job has one
	return Record{
		ID: j.ID(), Inactive: at, Result: result, Ran: j.Started(), UserID: j.UserID(), Unstarted: j.WasAllocated() && !j.Started(),
	}, nil
}

// resultNames are the results in tombstones, by their place in a Counts.
var resultNames = [...]string{"unknown", "completed", "failed", "canceled", "timeout"}

// place returns where a result is counted, and false for a value that is no result.
func place(r jobstate.Result) (int, bool) {
	at := bits.Len(uint(r)) // RFC 43 has a bit for each
	if at >= len(resultNames) || resultAt(at) != r {
		return 0, false
	}
	return at, true
}

func resultAt(place int) jobstate.Result { return 1 << place >> 1 }

// check returns an error unless the record can be in an index.
func (r Record) check() error {
	if _, ok := place(r.Result); !ok || !guard.IsTime(r.Inactive) || r.Ran && r.Unstarted {
		return jobError(r.ID, errRecord, "")
	}
	return nil
}

// compare is the order of records: by time, then by id.
func compare(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Inactive, b.Inactive), cmp.Compare(a.ID, b.ID))
}

// The last field of a tombstone. No word begins with another, so text that was cut short
// is never another tombstone.
const (
	wordRan       = "ran"
	wordUnstarted = "unstarted"
	wordNever     = "never-ran"
)

// AppendText appends the tombstone to dst, such as "6731191091817518 1000 1699996421.5
// failed ran": id, user, time, result and how far the job came. Equal records have equal
// text. Text that was cut short is not a valid tombstone. After an error, for a record that
// is not valid, dst is returned as it was. AppendText allocates only to grow dst.
func (r Record) AppendText(dst []byte) ([]byte, error) {
	if err := r.check(); err != nil {
		return dst, err
	}
	dst = r.ID.AppendFormat(dst, jobid.FormatDec)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, uint64(r.UserID), 10)
	dst = append(dst, ' ')
	dst, _ = r.Inactive.AppendText(dst) // check has seen that it is finite
	dst = append(dst, ' ')
	at, _ := place(r.Result)
	dst = append(dst, resultNames[at]...)
	switch {
	case r.Ran:
		return append(dst, " "+wordRan...), nil
	case r.Unstarted:
		return append(dst, " "+wordUnstarted...), nil
	}
	return append(dst, " "+wordNever...), nil
}

// MarshalText is AppendText into a new slice.
func (r Record) MarshalText() ([]byte, error) { return r.AppendText(nil) }

// String returns the tombstone, or "invalid record " and the id.
func (r Record) String() string {
	text, err := r.AppendText(nil)
	if err != nil {
		return "invalid record " + r.ID.String()
	}
	return string(text)
}

// maxTombstone is the length of the longest: 20 and 10 digits, a number of 24 bytes, and words.
const maxTombstone = 20 + 1 + 10 + 1 + 24 + 1 + 9 + 1 + 9

// UnmarshalText sets r to a tombstone. It accepts exactly the texts that
// AppendText writes. The error names the offset; r is unchanged.
func (r *Record) UnmarshalText(text []byte) error {
	if len(text) > maxTombstone {
		return syntax(text, maxTombstone, "too long")
	}
	fields := bytes.SplitN(text, []byte{' '}, 6)
	if len(fields) != 5 {
		return syntax(text, len(text), "not five fields")
	}
	var out Record
	at := 0
	id, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil {
		return syntax(text, at, "not an id")
	}
	out.ID = jobid.ID(id)
	at += len(fields[0]) + 1
	user, err := strconv.ParseUint(string(fields[1]), 10, 32)
	if err != nil {
		return syntax(text, at, "not a user")
	}
	out.UserID = uint32(user)
	at += len(fields[1]) + 1
	if err := out.Inactive.UnmarshalText(fields[2]); err != nil || !guard.IsTime(out.Inactive) {
		return syntax(text, at, "not a time")
	}
	at += len(fields[2]) + 1
	result := slices.Index(resultNames[:], string(fields[3]))
	if result < 0 {
		return syntax(text, at, "not a result")
	}
	out.Result = resultAt(result)
	at += len(fields[3]) + 1
	switch string(fields[4]) {
	case wordRan:
		out.Ran = true
	case wordUnstarted:
		out.Unstarted = true
	case wordNever:
	default:
		return syntax(text, at, "not ran, unstarted or never-ran")
	}
	var room [maxTombstone]byte
	if canonical, _ := out.AppendText(room[:0]); !bytes.Equal(canonical, text) {
		return syntax(text, 0, "not in canonical form")
	}
	*r = out
	return nil
}

func syntax(text []byte, at int, reason string) error {
	return fmt.Errorf("purge: offset %d: %s: %w: %s", at, guard.Quote(text), errRecord, reason)
}
