package jobstate

import (
	"cmp"
	"math/bits"

	"github.com/joblife/joblife/internal/guard"
)

// State is a state of RFC 21, or a mask of several, with Flux's values on the wire. 0 is invalid.
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
	StatePending = StateDepend | StatePriority | StateSched // has no resources yet
	StateRunning = StateRun | StateCleanup                  // may have resources
	StateActive  = StatePending | StateRunning              // is not over; NEW is not in it
)

// numStates is the number of states, masks not counted.
const numStates = 7

// stateNames has the long and the short name of each state and of the masks with a name.
var stateNames = map[State][2]string{
	StateNew: {"NEW", "N"}, StateDepend: {"DEPEND", "D"}, StatePriority: {"PRIORITY", "P"}, StateSched: {"SCHED", "S"},
	StateRun: {"RUN", "R"}, StateCleanup: {"CLEANUP", "C"}, StateInactive: {"INACTIVE", "I"},
	StatePending: {"PENDING", "PD"}, StateRunning: {"RUNNING", "RU"}, StateActive: {"ACTIVE", "A"},
}

// String returns the name, such as RUN or PENDING. A value without a name prints as State(n).
func (s State) String() string { return cmp.Or(stateNames[s][0], guard.Name("State", s)) }

// Short returns the short name, such as R or PD, empty for a value without a name.
func (s State) Short() string { return stateNames[s][1] }

// In reports whether s is one of the states of mask. The zero State is in none.
func (s State) In(mask State) bool { return s&mask != 0 }

// single reports whether s is exactly one of the seven states, not a mask and not 0.
func (s State) single() bool { return bits.OnesCount8(uint8(s)) == 1 && s <= StateInactive }

// index returns the position of a single state in arrays of numStates.
func (s State) index() int { return bits.TrailingZeros8(uint8(s)) }

// Result says how a job ended, with Flux's values on the wire. 0 is invalid: it has not ended.
type Result uint8

// The results of RFC 43.
const (
	ResultCompleted Result = 1 << iota // exit status 0 and no fatal exception before it
	ResultFailed                       // everything else
	ResultCanceled                     // ended by an exception of type "cancel"
	ResultTimeout                      // ended by an exception of type "timeout"
)

var resultTexts = []string{ResultCompleted: "COMPLETED", ResultFailed: "FAILED", ResultCanceled: "CANCELED", ResultTimeout: "TIMEOUT"}

// String returns the name. A value without a name prints as Result(n).
func (r Result) String() string { return guard.Name("Result", r, resultTexts[1:]...) }
