package jobstate

import "strings"

// WaitKind says what kind of thing a job waits for. The zero WaitKind is
// invalid.
type WaitKind uint8

// What a job can wait for, in the order of its life.
const (
	WaitSubmit       WaitKind = 1 + iota // no submit event yet
	WaitValidation                       // the validator
	WaitDependencies                     // Names: the dependencies that are not satisfied
	WaitDepend                           // the manager, to leave DEPEND: no dependency is left
	WaitPriority                         // the priority plugin
	WaitHold                             // a user or an operator, to raise its urgency or priority above 0
	WaitResources                        // the scheduler
	WaitProlog                           // Names: the prologs that are active
	WaitException                        // the fatal exception that a failed prolog brings
	WaitExecutor                         // the executor, to start it
	WaitFinish                           // its own end: it is running
	WaitRelease                          // the executor, to release the resources
	WaitEpilog                           // Names: the epilogs that are active
	WaitFree                             // the manager, to free the resources
	WaitClean                            // the manager, to close the log
	WaitNothing                          // nothing: it is inactive, or invalid
)

// Waiting is what a job waits for.
type Waiting struct {
	Kind  WaitKind
	Names []string // dependencies, or descriptions of prologs and epilogs; else nil
}

// Waiting returns what the job waits for now, as its log tells it. The caller
// owns the result.
func (j *Job) Waiting() Waiting {
	var w Waiting
	switch j.State() {
	case StateNew:
		w.Kind = WaitValidation
		switch {
		case j.invalid:
			w.Kind = WaitNothing
		case !j.submitted:
			w.Kind = WaitSubmit
		}
	case StateDepend:
		w.Kind = WaitDepend
		if names := j.Dependencies(); len(names) > 0 {
			w.Kind, w.Names = WaitDependencies, names
		}
	case StatePriority, StateSched:
		switch {
		case j.Held():
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
	if j.started {
		return WaitFinish, nil
	}
	if names := j.activeNames(ActionProlog); names != nil {
		return WaitProlog, names
	}
	if j.failedPrologs > 0 {
		return WaitException, nil
	}
	return WaitExecutor, nil
}

func (j *Job) waitingToEnd() (WaitKind, []string) {
	switch {
	case j.started && !j.finished && !j.finalRelease:
		return WaitFinish, nil
	case j.livePrologs > 0:
		return WaitProlog, j.activeNames(ActionProlog)
	case j.liveEpilogs > 0:
		return WaitEpilog, j.activeNames(ActionEpilog)
	case j.started && !j.finalRelease:
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

// String says it in words: "dependency after-start=ƒ9, begin-time=1600000000",
// "resources", "epilog job-manager.epilog", "nothing".
func (w Waiting) String() string {
	switch w.Kind {
	case WaitSubmit:
		return "submission"
	case WaitValidation:
		return "validation"
	case WaitDependencies:
		return w.named("dependency", "dependencies")
	case WaitDepend:
		return "the job manager to leave DEPEND"
	case WaitPriority:
		return "priority"
	case WaitHold:
		return "release of the hold"
	case WaitResources:
		return "resources"
	case WaitProlog:
		return w.named("prolog", "prologs")
	case WaitException:
		return "the exception of its failed prolog"
	case WaitExecutor:
		return "the executor to start it"
	case WaitFinish:
		return "its own end"
	case WaitRelease:
		return "the executor to release its resources"
	case WaitEpilog:
		return w.named("epilog", "epilogs")
	case WaitFree:
		return "its resources to be freed"
	case WaitClean:
		return "its log to be closed"
	case WaitNothing:
		return "nothing"
	default:
		return "WaitKind(" + itoa(int(w.Kind)) + ")"
	}
}

func (w Waiting) named(one, many string) string {
	if len(w.Names) > 1 {
		one = many
	}
	return one + " " + strings.Join(w.Names, ", ")
}

// SlurmState returns the name that Slurm's squeue and sacct give to the state
// of such a job: PENDING; CONFIGURING while a prolog runs or the job is being
// started; RUNNING; COMPLETING while it is cleaned up; and once it is over
// COMPLETED, CANCELLED, TIMEOUT or FAILED.
func (j *Job) SlurmState() string {
	switch j.State() {
	case StateRun:
		if j.started {
			return "RUNNING"
		}
		return "CONFIGURING"
	case StateCleanup:
		return "COMPLETING"
	case StateInactive:
		switch r, _ := j.Result(); r {
		case ResultCompleted:
			return "COMPLETED"
		case ResultCanceled:
			return "CANCELLED"
		case ResultTimeout:
			return "TIMEOUT"
		default:
			return "FAILED"
		}
	default:
		if j.invalid {
			return "FAILED"
		}
		return "PENDING"
	}
}

// SlurmReason returns the reason that Slurm shows beside PENDING: Dependency,
// JobHeldUser, Priority or Resources, and None in any other state.
func (j *Job) SlurmReason() string {
	switch j.Waiting().Kind {
	case WaitDependencies:
		return "Dependency"
	case WaitHold:
		return "JobHeldUser"
	case WaitPriority:
		return "Priority"
	case WaitResources:
		return "Resources"
	default:
		return "None"
	}
}
