package perilog

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The log of one job's housekeeping. It has events of its own, because the
// job's log is closed by clean before the work is over.
//
//	start    the job, its resources, release-after: all that replay needs
//	part     a piece of an R that is too long for one line
//	launch   ranks on which the work began, or began again
//	end      ranks on which it ended, why, and what is to be done with them
//	drained  ranks that were to be drained and now are
//	force    ranks that a user declared done
//	shrink   ranks that are gone from the instance for good
//	release  a fragment went back; final: the last one, and the end of the log
//
// Events of other names are notes of others and change nothing.
type hkEvent uint8

const (
	hkNote hkEvent = iota
	hkStart
	hkPart
	hkLaunch
	hkEnd
	hkDrained
	hkForce
	hkShrink
	hkRelease
)

// hkNames holds the names of the events.
func (e hkEvent) String() string {
	return [...]string{"note", "start", "part", "launch", "end", "drained", "force", "shrink", "release"}[e]
}

func hkEventOf(name string) hkEvent {
	for e := hkStart; e <= hkRelease; e++ {
		if name == e.String() {
			return e
		}
	}
	return hkNote
}

// hkVersion is the version of the log that this package writes and reads.
const hkVersion = 1

// maxInlineR is how long an R may be, in bytes, to stand in the start event;
// parts of a longer one are as long at most. An escaped part is up to twice
// that, and a line at most 1 MiB.
const maxInlineR = 256 << 10

// maxUser bounds the text that names a user, in bytes.
const maxUser = 256

// hkEntry is one entry of the log. What it holds beside depends on the event.
type hkEntry struct {
	event    hkEvent
	at       eventlog.Timestamp
	ranks    *idset.Set // all but start and part; shared, never changed
	end      End        // end
	decision Decision   // end
	user     string     // force
	final    bool       // release
	text     []byte     // part: of the R
	start    *hkHeader
}

// hkHeader is the context of start. Exactly one of r and parts is set.
type hkHeader struct {
	job   HousekeepingJob // without its R
	r     json.RawMessage
	parts int
}

// causeName returns the name that the log has for a cause, "" for none. It is
// not the text of the cause, which is for people and may change.
func causeName(c Cause) string {
	names := [...]string{
		CauseOK: "ok", CauseFailed: "failed", CauseReported: "reported", CauseSignalled: "signalled",
		CauseTimedOut: "timed-out", CauseCanceled: "canceled", CauseCanceledTimedOut: "canceled-timed-out",
		CauseLaunchFailed: "launch-failed", CauseUnreachable: "unreachable", CauseOffline: "offline",
		CauseAbandoned: "abandoned",
	}
	return names[c]
}

func causeOf(name string) (Cause, bool) {
	for c := CauseOK; c <= CauseAbandoned; c++ {
		if name == causeName(c) {
			return c, true
		}
	}
	return 0, false
}

// appendContext appends the context as one JSON object. What it is given was
// checked, so that there is no error.
func (e *hkEntry) appendContext(dst []byte) []byte {
	switch e.event {
	case hkStart:
		return e.start.append(dst)
	case hkPart:
		dst = append(dst, `{"R":`...)
		return append(jsonscan.AppendString(dst, string(e.text)), '}')
	}
	dst = append(dst, `{"ranks":"`...)
	dst, _ = e.ranks.AppendText(dst) // always nil
	dst = append(dst, '"')
	switch e.event {
	case hkEnd:
		dst = append(dst, `,"cause":`...)
		dst = jsonscan.AppendString(dst, causeName(e.end.Cause))
		dst = append(dst, `,"status":`...)
		dst = strconv.AppendInt(dst, int64(e.end.Status), 10)
		dst = append(dst, `,"decision":"`...)
		dst = append(dst, e.decision.String()...)
		dst = append(dst, '"')
	case hkForce:
		dst = jsonscan.AppendString(append(dst, `,"user":`...), e.user)
	case hkRelease:
		dst = append(dst, `,"final":`...)
		dst = strconv.AppendBool(dst, e.final)
	}
	return append(dst, '}')
}

func (s *hkHeader) append(dst []byte) []byte {
	j := &s.job
	dst = append(dst, `{"version":1,"id":"`...)
	dst, _ = j.Job.AppendText(dst)
	dst = append(dst, `","userid":`...)
	dst = strconv.AppendInt(dst, int64(j.UserID), 10)
	dst = append(dst, `,"priority":`...)
	dst = strconv.AppendInt(dst, int64(j.Priority), 10)
	if j.Submitted != 0 {
		dst = append(dst, `,"t_submit":`...)
		dst, _ = j.Submitted.AppendText(dst)
	}
	if j.ReleaseAfter != nil {
		dst = append(dst, `,"release-after":"`...)
		dst, _ = j.ReleaseAfter.AppendText(dst)
		dst = append(dst, '"')
	}
	if !j.Free.IsEmpty() {
		dst = append(dst, `,"free":"`...)
		dst, _ = j.Free.AppendText(dst)
		dst = append(dst, '"')
	}
	for i, name := range j.Named {
		if i == 0 {
			dst = append(dst, `,"resources":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = jsonscan.AppendString(dst, name)
	}
	if len(j.Named) > 0 {
		dst = append(dst, ']')
	}
	if s.parts > 0 {
		dst = strconv.AppendInt(append(dst, `,"parts":`...), int64(s.parts), 10)
	} else {
		dst = append(append(dst, `,"R":`...), s.r...)
	}
	return append(dst, '}')
}

// splitR returns how many parts an R has whose text is n bytes long: 0 where it
// stands in the start event itself.
func splitR(n int) int {
	if n <= maxInlineR {
		return 0
	}
	// Parts end where a character does, so that they may be 3 bytes short.
	return (n + maxInlineR - 4) / (maxInlineR - 3)
}

// nextPart cuts the next part off a text of which left parts are to come.
func nextPart(text []byte, left int) (part, rest []byte) {
	n := len(text)
	if left > 1 {
		n = min(n, maxInlineR)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
	}
	return text[:n], text[n:]
}

// What is wrong with an entry: the causes that a HousekeepingLogError carries.
var (
	errHKType     = errors.New("has another JSON type")
	errHKRange    = errors.New("is out of range")
	errHKMissing  = errors.New("is missing")
	errHKUnknown  = errors.New("is not a key of this event")
	errHKVersion  = errors.New("is not a version that this package reads")
	errHKValue    = errors.New("is not one of the values it may have")
	errHKNoRanks  = errors.New("names no rank")
	errHKOrder    = errors.New("can not come here")
	errHKState    = errors.New("names ranks of which this can not be")
	errHKFinal    = errors.New("is not what the ranks left tell")
	errHKBothRs   = errors.New("comes with R, or neither does")
	errHKTooLong  = errors.New("is too long")
	errHKNotNamed = errors.New("are not names, each once and not empty")
	errHKStart    = errors.New("does not begin with all that a start says")
)

// hkFields reads the members of a context. The first fault ends it.
type hkFields struct {
	cur  jsonscan.Cursor
	none bool // there is no context: it lacks every key
	seen uint // bits of the keys that were met, as hkKey tells them
	key  string
	err  error
}

func readHK(context json.RawMessage) hkFields {
	f := hkFields{none: len(context) == 0}
	if !f.none {
		f.cur = jsonscan.Object(context)
	}
	return f
}

// hkKey returns a key as a string, without allocating for those that there
// are, and its bit; 0 for others.
func hkKey(key []byte) (string, uint) {
	for i, known := range [...]string{
		"ranks", "cause", "status", "decision", "user", "final", "R", "parts",
		"version", "id", "userid", "priority", "t_submit", "release-after", "free", "resources",
	} {
		if string(key) == known {
			return known, 1 << i
		}
	}
	return string(key), 0
}

func (f *hkFields) next() bool {
	if f.none || f.err != nil || !f.cur.Next() {
		return false
	}
	key, bit := hkKey(f.cur.Key())
	f.key = key
	f.seen |= bit
	return true
}

func (f *hkFields) fail(err error) {
	if f.err == nil {
		f.err = &keyError{key: clip(f.key), err: err}
	}
}

func (f *hkFields) int(low, high int64) int64 {
	n, ok := jsonscan.Int64(f.cur.Raw())
	if !ok {
		f.fail(errHKType)
	} else if n < low || n > high {
		f.fail(errHKRange)
		n = 0
	}
	return n
}

func (f *hkFields) text(most int) string {
	s, ok := jsonscan.String(f.cur.Raw())
	if !ok {
		f.fail(errHKType)
	} else if len(s) > most {
		f.fail(errHKTooLong)
		s = ""
	}
	return s
}

func (f *hkFields) bool() bool {
	v, ok := jsonscan.Bool(f.cur.Raw())
	if !ok {
		f.fail(errHKType)
	}
	return v
}

// ranks reads a set of ranks; an empty one only where none is allowed.
func (f *hkFields) ranks(none bool) *idset.Set {
	s, err := idset.Parse(f.text(idset.MaxText))
	switch {
	case f.err != nil:
	case err != nil:
		f.fail(err)
	case s.IsEmpty() && !none:
		f.fail(errHKNoRanks)
	}
	return s
}

func (f *hkFields) duration() *fsd.Duration {
	d, err := fsd.Parse(f.text(64))
	if err != nil {
		f.fail(err)
	}
	return &d
}

func (f *hkFields) names() []string {
	var out []string
	a := jsonscan.Array(f.cur.Raw())
	for a.Next() && f.err == nil {
		s, ok := jsonscan.String(a.Raw())
		switch {
		case !ok:
			f.fail(errHKType)
		case len(out) > MaxHousekeepingNames:
			f.fail(errHKTooLong)
		}
		out = append(out, s)
	}
	if a.Err() != nil {
		f.fail(errHKType)
	} else if err := checkNames(out); err != nil {
		f.fail(err)
	}
	return out
}

// end returns the first fault, or that a key is missing.
func (f *hkFields) end(required ...string) error {
	if f.err == nil && !f.none {
		f.err = f.cur.Err()
	}
	for _, key := range required {
		if _, bit := hkKey([]byte(key)); f.seen&bit == 0 {
			f.key = key
			f.fail(errHKMissing)
		}
	}
	return f.err
}

// decodeHK decodes an entry of the log strictly. What it returns shares nothing
// with e.
func decodeHK(e eventlog.Entry) (hkEntry, error) {
	out := hkEntry{event: hkEventOf(e.Name), at: e.Timestamp}
	f := readHK(e.Context)
	var err error
	switch out.event {
	case hkNote:
	case hkStart:
		out.start, err = decodeStart(&f)
	case hkPart:
		for f.next() {
			if f.key != "R" {
				f.fail(errHKUnknown)
				continue
			}
			out.text = []byte(f.text(2 * maxInlineR))
		}
		err = f.end("R")
	default:
		err = out.decodeRanks(&f)
	}
	return out, err
}

// decodeRanks decodes the events that name ranks.
func (e *hkEntry) decodeRanks(f *hkFields) error {
	required := []string{"ranks", "", "", ""}[:1]
	switch e.event {
	case hkEnd:
		required = append(required, "cause", "status", "decision")
	case hkForce:
		required = append(required, "user")
	case hkRelease:
		required = append(required, "final")
	}
	for f.next() {
		ok := slices.Contains(required, f.key)
		switch {
		case !ok:
			f.fail(errHKUnknown)
		case f.key == "ranks":
			e.ranks = f.ranks(e.event == hkRelease)
		case f.key == "cause":
			if e.end.Cause, ok = causeOf(f.text(64)); !ok {
				f.fail(errHKValue)
			}
		case f.key == "status":
			e.end.Status = int32(f.int(math.MinInt32, math.MaxInt32))
		case f.key == "decision":
			if e.decision, ok = decisionOf(f.text(64)); !ok {
				f.fail(errHKValue)
			}
		case f.key == "user":
			e.user = f.text(maxUser)
		case f.key == "final":
			e.final = f.bool()
		}
	}
	return f.end(required...)
}

func decodeStart(f *hkFields) (*hkHeader, error) {
	s := new(hkHeader)
	j := &s.job
	for f.next() {
		switch f.key {
		case "version":
			if f.int(math.MinInt64, math.MaxInt64) != hkVersion {
				f.fail(errHKVersion)
			}
		case "id":
			var err error
			if j.Job, err = jobid.Parse(f.text(64)); err != nil {
				f.fail(err)
			}
		case "userid":
			j.UserID = uint32(f.int(0, math.MaxUint32))
		case "priority":
			j.Priority = uint32(f.int(0, math.MaxUint32))
		case "t_submit":
			t, ok := jsonscan.Float64(f.cur.Raw())
			if !ok || t <= 0 {
				f.fail(errHKRange)
			}
			j.Submitted = eventlog.Timestamp(t)
		case "release-after":
			j.ReleaseAfter = f.duration()
		case "free":
			j.Free = f.ranks(false)
		case "resources":
			j.Named = f.names()
		case "R":
			s.r = append(json.RawMessage(nil), f.cur.Raw()...)
		case "parts":
			s.parts = int(f.int(1, math.MaxInt32))
		default:
			f.fail(errHKUnknown)
		}
	}
	err := f.end("version", "id", "userid", "priority")
	if err == nil && (s.r == nil) == (s.parts == 0) {
		f.key = "parts"
		f.fail(errHKBothRs)
		err = f.err
	}
	return s, err
}
