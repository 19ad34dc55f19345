package jobstate

import (
	"fmt"
	"math/bits"

	"github.com/joblife/joblife/internal/guard"
)

// State is a job state of RFC 21, or a mask of several, with the values that Flux
// sends on the wire. The zero State is invalid.
type State uint8

// The states of RFC 21, section "State Descriptions".
const (
	StateNew      State = 1 << iota // submitted, not yet validated
	StateDepend                     // waits for its dependencies
	StatePriority                   // waits for a priority
	StateSched                      // waits for resources
	StateRun                        // has resources; may run, or is running
	StateCleanup                    // has ended; gives back its resources
	StateInactive                   // over; its log is closed
)

// The virtual states of RFC 21, each a mask of states.
const (
	StatePending = StateDepend | StatePriority | StateSched
	StateRunning = StateRun | StateCleanup
	StateActive  = StatePending | StateRunning
)

// numStates is the number of states, masks not counted.
const numStates = 7

// NameFormat selects one of the four forms in which flux-core prints the names of
// states and results. Any other value, zero included, means [NameLongUpper].
type NameFormat byte

// The name formats, by the letters that flux-core gives them.
const (
	NameLongUpper  NameFormat = 'L' // DEPEND, COMPLETED
	NameLongLower  NameFormat = 'l' // depend, completed
	NameShortUpper NameFormat = 'S' // D, CD
	NameShortLower NameFormat = 's' // d, cd
)

// names holds the four forms of the name of a value.
type names[T ~uint8] struct {
	value                                        T
	longUpper, longLower, shortUpper, shortLower string
}

func (n names[T]) in(f NameFormat) string {
	switch f {
	case NameLongLower:
		return n.longLower
	case NameShortUpper:
		return n.shortUpper
	case NameShortLower:
		return n.shortLower
	default:
		return n.longUpper
	}
}

// nameOf returns the names of a value, and what the reference prints for one that
// has none.
func nameOf[T ~uint8](table []names[T], v T) names[T] {
	for i := range table {
		if table[i].value == v {
			return table[i]
		}
	}
	return names[T]{0, "(unknown)", "(unknown)", "?", "?"}
}

// parseName returns the value that has s as one of its four names.
func parseName[T ~uint8](what string, table []names[T], s string) (T, error) {
	for i := range table {
		if n := &table[i]; s == n.longUpper || s == n.longLower || s == n.shortUpper || s == n.shortLower {
			return n.value, nil
		}
	}
	return 0, unknownName(what, s)
}

// appendName appends the long upper-case name.
func appendName[T ~uint8](dst []byte, what string, table []names[T], v T) ([]byte, error) {
	n := nameOf(table, v)
	if n.value == 0 {
		return dst, unknownName(what, itoa(int(v)))
	}
	return append(dst, n.longUpper...), nil
}

// label returns the name of a number, Kind(n) for one without a name.
func label(list []string, kind string, n int) string {
	if n < len(list) && list[n] != "" {
		return list[n]
	}
	return kind + "(" + itoa(n) + ")"
}

var stateNames = []names[State]{
	{StateNew, "NEW", "new", "N", "n"},
	{StateDepend, "DEPEND", "depend", "D", "d"},
	{StatePriority, "PRIORITY", "priority", "P", "p"},
	{StateSched, "SCHED", "sched", "S", "s"},
	{StateRun, "RUN", "run", "R", "r"},
	{StateCleanup, "CLEANUP", "cleanup", "C", "c"},
	{StateInactive, "INACTIVE", "inactive", "I", "i"},
	{StatePending, "PENDING", "pending", "PD", "pd"},
	{StateRunning, "RUNNING", "running", "RU", "ru"},
	{StateActive, "ACTIVE", "active", "A", "a"},
}

// ParseState reads the name of a state or of a virtual state, long or short, in upper
// or in lower case: "RUN", "r", "pending". Anything else is an error.
func ParseState(s string) (State, error) {
	return parseName("state", stateNames, s)
}

// Name returns the name of s in the given form, as flux-core prints it. The seven
// states and the three virtual states have names. Any other value is "(unknown)" or
// "?".
func (s State) Name(f NameFormat) string { return nameOf(stateNames, s).in(f) }

// String returns the long upper-case name. A value without a name prints as
// State(n).
func (s State) String() string {
	if n := nameOf(stateNames, s); n.value != 0 {
		return n.longUpper
	}
	return label(nil, "State", int(s))
}

// In reports whether s is one of the states of mask. The zero State is in
// none.
func (s State) In(mask State) bool { return s&mask != 0 }

// single reports whether s is exactly one of the seven states, not a mask and
// not 0.
func (s State) single() bool { return bits.OnesCount8(uint8(s)) == 1 && s <= StateInactive }

// AppendText appends the long upper-case name. For a State without a
// name it returns dst as it was and an error.
func (s State) AppendText(dst []byte) ([]byte, error) {
	return appendName(dst, "state", stateNames, s)
}

// MarshalText is AppendText into a new slice.
func (s State) MarshalText() ([]byte, error) { return s.AppendText(nil) }

// UnmarshalText is ParseState. After an error s is as before.
func (s *State) UnmarshalText(text []byte) error {
	v, err := ParseState(string(text))
	if err == nil {
		*s = v
	}
	return err
}

// index returns the position of a single state in arrays of numStates.
func (s State) index() int { return bits.TrailingZeros8(uint8(s)) }

// unknownName returns the error for the name of a state or a result.
func unknownName(what, name string) error {
	return fmt.Errorf(prefix+"unknown %s %q", what, guard.Clip(name))
}

// Result says how a job ended, with the values that Flux sends on the wire. The zero
// Result is invalid: a job that has not ended has none.
type Result uint8

// The results of RFC 43.
const (
	ResultCompleted Result = 1 << iota // exit status 0 and no fatal exception before it
	ResultFailed                       // everything else
	ResultCanceled                     // ended by an exception of type "cancel"
	ResultTimeout                      // ended by an exception of type "timeout"
)

var resultNames = []names[Result]{
	{ResultCompleted, "COMPLETED", "completed", "CD", "cd"},
	{ResultFailed, "FAILED", "failed", "F", "f"},
	{ResultCanceled, "CANCELED", "canceled", "CA", "ca"},
	{ResultTimeout, "TIMEOUT", "timeout", "TO", "to"},
}

// ParseResult reads the name of a result, long or short, in upper or in lower case.
// Anything else is an error.
func ParseResult(s string) (Result, error) {
	return parseName("result", resultNames, s)
}

// Name returns the name of r in the given form, as flux-core prints it. A value
// without a name is "(unknown)" or "?".
func (r Result) Name(f NameFormat) string { return nameOf(resultNames, r).in(f) }

// String returns the long upper-case name. A value without a name prints as
// Result(n).
func (r Result) String() string {
	if n := nameOf(resultNames, r); n.value != 0 {
		return n.longUpper
	}
	return label(nil, "Result", int(r))
}

// AppendText appends the long upper-case name. For a Result without a
// name it returns dst as it was and an error.
func (r Result) AppendText(dst []byte) ([]byte, error) {
	return appendName(dst, "result", resultNames, r)
}

// MarshalText is AppendText into a new slice.
func (r Result) MarshalText() ([]byte, error) { return r.AppendText(nil) }

// UnmarshalText is ParseResult. After an error r is as before.
func (r *Result) UnmarshalText(text []byte) error {
	v, err := ParseResult(string(text))
	if err == nil {
		*r = v
	}
	return err
}
