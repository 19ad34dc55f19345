package jobstate

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A Summary is what is known of an inactive job without its log. Its text is a tombstone.
type Summary struct {
	ID       jobid.ID
	Inactive eventlog.Timestamp // the time of the clean event
	Result   Result             // 0 if it is not known, for example of a damaged job
	Ran      bool               // the job started
	UserID   uint32             // whose job it is

	Unstarted bool // the job had resources and did not start; false if Ran
	Stopped   bool // the job started, and an exception ended it before it could finish; false unless Ran
}

// Summary returns the summary of an inactive job, and false for another one.
func (j *Job) Summary() (Summary, bool) {
	at, ok := j.Entered(StateInactive)
	if !ok {
		return Summary{}, false
	}
	result, _ := j.Result() // an inactive job has one
	return Summary{
		ID: j.id, Inactive: at, Result: result, Ran: j.Started(), UserID: j.userid,
		Unstarted: j.wasAllocated && !j.Started(), Stopped: j.stopped && j.Started(),
	}, true
}

// Job returns a job that says what the summary does. What the summary does not know reads
// as if it had never been: the times at which it entered other states, exceptions, and so on.
func (s Summary) Job() *Job {
	j := &Job{
		id: s.ID, userid: s.UserID, state: StateInactive, success: s.Result == ResultCompleted,
		started: s.Ran, wasAllocated: s.Ran || s.Unstarted, stopped: s.Stopped, rare: &rare{summary: &s},
	}
	j.entered[StateInactive.index()] = s.Inactive
	return j
}

// summaryResults are the results in tombstones: RFC 43 has a bit for each.
var summaryResults = [...]string{"unknown", "completed", "failed", "canceled", "timeout"}

var errSummary = errors.New("malformed record")

// A summaryEnd is the last field of a tombstone, and what it says.
type summaryEnd struct {
	word                    string
	ran, unstarted, stopped bool
}

// No word begins with another, so text that was cut short is never another tombstone.
var summaryEnds = [...]summaryEnd{
	{"never-ran", false, false, false}, {"unstarted", false, true, false}, {"ran", true, false, false}, {"stopped", true, false, true},
}

// AppendText appends the tombstone to dst, such as "6731191091817518 1000 1699996421.5
// failed ran": id, user, time, result and how far the job came. A summary that is not valid is
// an error, and then dst is returned as it was. AppendText allocates only to grow dst.
func (s Summary) AppendText(dst []byte) ([]byte, error) {
	at := bits.Len(uint(s.Result))
	end := slices.IndexFunc(summaryEnds[:], func(e summaryEnd) bool {
		return e == summaryEnd{e.word, s.Ran, s.Unstarted, s.Stopped}
	})
	if at >= len(summaryResults) || 1<<at>>1 != s.Result || end < 0 || !guard.IsTime(s.Inactive) {
		return dst, fmt.Errorf("jobstate: %v: %w", s.ID, errSummary)
	}
	dst = s.ID.AppendFormat(dst, jobid.FormatDec)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, uint64(s.UserID), 10)
	dst = append(dst, ' ')
	dst, _ = s.Inactive.AppendText(dst) // it is finite
	dst = append(dst, ' ')
	dst = append(dst, summaryResults[at]...)
	dst = append(dst, ' ')
	return append(dst, summaryEnds[end].word...), nil
}

// MarshalText is AppendText into a new slice.
func (s Summary) MarshalText() ([]byte, error) { return s.AppendText(nil) }

// String returns the tombstone, or "invalid record " and the id.
func (s Summary) String() string {
	text, err := s.AppendText(nil)
	if err != nil {
		return "invalid record " + s.ID.String()
	}
	return string(text)
}

// maxTombstone is the length of the longest: 20 and 10 digits, a number of 24 bytes, and words.
const maxTombstone = 20 + 1 + 10 + 1 + 24 + 1 + 9 + 1 + 9

// UnmarshalText sets s to a tombstone. It accepts exactly the texts that AppendText writes: one
// that was cut short is none. The error names the offset; s is unchanged.
func (s *Summary) UnmarshalText(text []byte) error {
	if len(text) > maxTombstone {
		return summaryError(text, maxTombstone, "too long")
	}
	fields := bytes.SplitN(text, []byte{' '}, 6)
	if len(fields) != 5 {
		return summaryError(text, len(text), "not five fields")
	}
	var inactive eventlog.Timestamp
	id, errID := strconv.ParseUint(string(fields[0]), 10, 64)
	user, errUser := strconv.ParseUint(string(fields[1]), 10, 32)
	errInactive := inactive.UnmarshalText(fields[2])
	result := slices.Index(summaryResults[:], string(fields[3]))
	end := slices.IndexFunc(summaryEnds[:], func(e summaryEnd) bool { return e.word == string(fields[4]) })
	at := 0
	for i, field := range [...]struct {
		bad    bool
		reason string
	}{
		{errID != nil, "not an id"}, {errUser != nil, "not a user"}, {errInactive != nil || !guard.IsTime(inactive), "not a time"},
		{result < 0, "not a result"}, {end < 0, "not ran, stopped, unstarted or never-ran"},
	} {
		if field.bad {
			return summaryError(text, at, field.reason)
		}
		at += len(fields[i]) + 1
	}
	out := Summary{ID: jobid.ID(id), UserID: uint32(user), Inactive: inactive, Result: 1 << result >> 1}
	out.Ran, out.Unstarted, out.Stopped = summaryEnds[end].ran, summaryEnds[end].unstarted, summaryEnds[end].stopped
	var room [maxTombstone]byte
	if canonical, _ := out.AppendText(room[:0]); !bytes.Equal(canonical, text) {
		return summaryError(text, 0, "not in canonical form")
	}
	*s = out
	return nil
}

func summaryError(text []byte, at int, reason string) error {
	return fmt.Errorf("jobstate: offset %d: %s: %w: %s", at, guard.Quote(text), errSummary, reason)
}
