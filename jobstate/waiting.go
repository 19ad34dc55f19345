package jobstate

import "strings"

// WaitKind says what a job waits for. The zero WaitKind is invalid.
type WaitKind uint8

// What a job can wait for, in the order of its life.
const (
	WaitSubmit       WaitKind = 1 + iota // no submit event yet
	WaitValidation                       // the validator
	WaitDependencies                     // the dependencies in Names
	WaitDepend                           // the manager, to post depend: all dependencies are satisfied
	WaitPriority                         // the priority plugin
	WaitHold                             // a user, to raise the urgency or the priority above 0
	WaitResources                        // the scheduler
	WaitProlog                           // the active prologs, in Names
	WaitException                        // the manager, to post a fatal exception: a prolog failed
	WaitExecutor                         // the executor, to start it
	WaitFinish                           // the job shells, to end
	WaitRelease                          // the executor, to release the resources
	WaitEpilog                           // the active epilogs, in Names
	WaitFree                             // the manager, to free the resources
	WaitClean                            // the manager, to close the log
	WaitNothing                          // nothing: it is inactive, or invalid
)

// Waiting is what a job waits for.
type Waiting struct {
	Kind  WaitKind
	Names []string // dependencies, or descriptions of prologs and epilogs; else nil
}

// Waiting returns what the job waits for, according to its log. The caller owns
// the result.
func (j *Job) Waiting() Waiting {
	var w Waiting
	switch j.State() {
	case StateNew:
		w.Kind = WaitValidation
		switch {
		case j.invalid:
			w.Kind = WaitNothing
		case !j.Submitted():
			w.Kind = WaitSubmit
		}
	case StateDepend:
		w.Kind = WaitDepend
		if names := j.Dependencies(); len(names) > 0 {
			w.Kind, w.Names = WaitDependencies, names
		}
	case StatePriority, StateSched:
		switch {
		case j.OnHold():
			w.Kind = WaitHold
		case j.state == StatePriority:
			w.Kind = WaitPriority
		default:
			w.Kind = WaitResources
		}
	case StateRun:
		w.Kind, w.Names = j.waitingToRun()
	case StateCleanup:
		w.Kind, w.Names = j.waitingToEnd()
	default:
		w.Kind = WaitNothing
	}
	return w
}

func (j *Job) waitingToRun() (WaitKind, []string) {
	if j.Started() {
		return WaitFinish, nil
	}
	if names := j.activeNames(ActionProlog); names != nil {
		return WaitProlog, names
	}
	if j.failedPrologs() > 0 {
		return WaitException, nil
	}
	return WaitExecutor, nil
}

func (j *Job) waitingToEnd() (WaitKind, []string) {
	switch {
	case j.Started() && !j.Finished() && !j.finalRelease:
		return WaitFinish, nil
	case j.live(ActionProlog) > 0:
		return WaitProlog, j.activeNames(ActionProlog)
	case j.live(ActionEpilog) > 0:
		return WaitEpilog, j.activeNames(ActionEpilog)
	case j.Started() && !j.finalRelease:
		return WaitRelease, nil
	case j.allocated:
		return WaitFree, nil
	default:
		return WaitClean, nil
	}
}

// activeNames returns the descriptions of the active actions of a kind, nil
// for none.
func (j *Job) activeNames(k ActionKind) []string {
	var out []string
	for a := range j.Actions() {
		if a.Kind == k {
			out = append(out, a.Description)
		}
	}
	return out
}

var waitTexts = []string{
	WaitSubmit:       "submission",
	WaitValidation:   "validation",
	WaitDependencies: "dependency",
	WaitDepend:       "the job manager to leave DEPEND",
	WaitPriority:     "priority",
	WaitHold:         "release of the hold",
	WaitResources:    "resources",
	WaitProlog:       "prolog",
	WaitException:    "the exception of its failed prolog",
	WaitExecutor:     "the executor to start it",
	WaitFinish:       "its own end",
	WaitRelease:      "the executor to release its resources",
	WaitEpilog:       "epilog",
	WaitFree:         "its resources to be freed",
	WaitClean:        "its log to be closed",
	WaitNothing:      "nothing",
}

// String returns it in words: "dependencies after-start=ƒ9,
// begin-time=1600000000", "resources", "epilog job-manager.epilog", "nothing".
func (w Waiting) String() string {
	text := label(waitTexts, "WaitKind", int(w.Kind))
	switch {
	case len(w.Names) == 0:
		return text
	case len(w.Names) > 1 && w.Kind == WaitDependencies:
		text = "dependencies"
	case len(w.Names) > 1:
		text += "s"
	}
	return text + " " + strings.Join(w.Names, ", ")
}
