package jobstate

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/joblife/joblife/internal/guard"
)

// State is a job state of RFC 21, or a mask of several. The values are those
// that Flux sends on the wire. The zero State is invalid.
type State uint8

// The states of RFC 21, section "State Descriptions".
const (
	StateNew      State = 1 << iota // submitted, not yet validated
	StateDepend                     // waits for its dependencies
	StatePriority                   // waits for a priority
	StateSched                      // waits for resources
	StateRun                        // has resources; may run, or is running
	StateCleanup                    // has ended; resources are on their way back
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

// NameFormat selects one of the four forms in which the reference prints the
// names of states and results. Any other value prints as NameLongUpper.
type NameFormat byte

// The name formats, by the letters that flux-core gives them.
const (
	NameLongUpper  NameFormat = 'L' // DEPEND, COMPLETED
	NameLongLower  NameFormat = 'l' // depend, completed
	NameShortUpper NameFormat = 'S' // D, CD
	NameShortLower NameFormat = 's' // d, cd
)

// names holds the four forms of one name.
type names struct{ longUpper, longLower, shortUpper, shortLower string }

func (n names) in(f NameFormat) string {
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

// is reports whether s is one of the four forms.
func (n names) is(s string) bool {
	return s == n.longUpper || s == n.longLower || s == n.shortUpper || s == n.shortLower
}

// unknown is what the reference prints for a value that has no name.
var unknown = names{"(unknown)", "(unknown)", "?", "?"}

var stateNames = [...]struct {
	State
	names
}{
	{StateNew, names{"NEW", "new", "N", "n"}},
	{StateDepend, names{"DEPEND", "depend", "D", "d"}},
	{StatePriority, names{"PRIORITY", "priority", "P", "p"}},
	{StateSched, names{"SCHED", "sched", "S", "s"}},
	{StateRun, names{"RUN", "run", "R", "r"}},
	{StateCleanup, names{"CLEANUP", "cleanup", "C", "c"}},
	{StateInactive, names{"INACTIVE", "inactive", "I", "i"}},
	{StatePending, names{"PENDING", "pending", "PD", "pd"}},
	{StateRunning, names{"RUNNING", "running", "RU", "ru"}},
	{StateActive, names{"ACTIVE", "active", "A", "a"}},
}

// ParseState reads the name of a state or of a virtual state, long or short,
// all in upper or all in lower case. Anything else is an error.
func ParseState(s string) (State, error) {
	for i := range stateNames {
		if stateNames[i].is(s) {
			return stateNames[i].State, nil
		}
	}
	return 0, unknownName("state", s)
}

// Name returns the name of s in the given form, as the reference prints it:
// the seven states and the three virtual states have names, every other value
// is "(unknown)" or "?".
func (s State) Name(f NameFormat) string {
	for i := range stateNames {
		if stateNames[i].State == s {
			return stateNames[i].in(f)
		}
	}
	return unknown.in(f)
}

// String returns the long upper-case name. A value without a name prints as
// State(n).
func (s State) String() string {
	if name := s.Name(NameLongUpper); name != unknown.longUpper {
		return name
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

// Has reports whether every state of mask is in s. Every State has the empty
// mask 0.
func (s State) Has(mask State) bool { return s&mask == mask }

// In reports whether s is one of the states of mask. The zero State is in
// none.
func (s State) In(mask State) bool { return s&mask != 0 }

// Single reports whether s is exactly one of the seven states, not a mask and
// not 0.
func (s State) Single() bool { return bits.OnesCount8(uint8(s)) == 1 && s <= StateInactive }

// AppendText appends the long upper-case name. For a State without a
// name it returns dst as it was and an error.
func (s State) AppendText(dst []byte) ([]byte, error) {
	name := s.Name(NameLongUpper)
	if name == unknown.longUpper {
		return dst, unknownName("state", s.String())
	}
	return append(dst, name...), nil
}

// MarshalText is AppendText into a new slice.
func (s State) MarshalText() ([]byte, error) { return s.AppendText(nil) }

// UnmarshalText is ParseState. After an error s is as before.
func (s *State) UnmarshalText(text []byte) error {
	v, err := ParseState(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}

// index returns the position of a single state in arrays of numStates.
func (s State) index() int { return bits.TrailingZeros8(uint8(s)) }

// unknownName returns the error for the name of a state or a result.
func unknownName(what, name string) error {
	return fmt.Errorf(prefix+"unknown %s %q", what, guard.Clip(name))
}

// Result says how a job ended. The values are those that Flux sends on the
// wire. The zero Result is invalid: a job that has not ended has none.
type Result uint8

// The results of RFC 43.
const (
	ResultCompleted Result = 1 << iota // exit status 0 and no fatal exception before it
	ResultFailed                       // everything else
	ResultCanceled                     // ended by an exception of type "cancel"
	ResultTimeout                      // ended by an exception of type "timeout"
)

var resultNames = [...]struct {
	Result
	names
}{
	{ResultCompleted, names{"COMPLETED", "completed", "CD", "cd"}},
	{ResultFailed, names{"FAILED", "failed", "F", "f"}},
	{ResultCanceled, names{"CANCELED", "canceled", "CA", "ca"}},
	{ResultTimeout, names{"TIMEOUT", "timeout", "TO", "to"}},
}

// ParseResult reads the name of a result, long or short, all in upper or all
// in lower case. Anything else is an error.
func ParseResult(s string) (Result, error) {
	for i := range resultNames {
		if resultNames[i].is(s) {
			return resultNames[i].Result, nil
		}
	}
	return 0, unknownName("result", s)
}

// Name returns the name of r in the given form, as the reference prints it. A
// value without a name is "(unknown)" or "?".
func (r Result) Name(f NameFormat) string {
	for i := range resultNames {
		if resultNames[i].Result == r {
			return resultNames[i].in(f)
		}
	}
	return unknown.in(f)
}

// String returns the long upper-case name. A value without a name prints as
// Result(n).
func (r Result) String() string {
	if name := r.Name(NameLongUpper); name != unknown.longUpper {
		return name
	}
	return "Result(" + strconv.Itoa(int(r)) + ")"
}

// AppendText appends the long upper-case name. For a Result without a
// name it returns dst as it was and an error.
func (r Result) AppendText(dst []byte) ([]byte, error) {
	name := r.Name(NameLongUpper)
	if name == unknown.longUpper {
		return dst, unknownName("result", r.String())
	}
	return append(dst, name...), nil
}

// MarshalText is AppendText into a new slice.
func (r Result) MarshalText() ([]byte, error) { return r.AppendText(nil) }

// UnmarshalText is ParseResult. After an error r is as before.
func (r *Result) UnmarshalText(text []byte) error {
	v, err := ParseResult(string(text))
	if err != nil {
		return err
	}
	*r = v
	return nil
}
