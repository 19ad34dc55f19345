package jobstate

import "strings"

// Waiting returns what the job waits for by its log, in words: "dependencies
// after-start=ƒuZZybuNNy, begin-time=1600000000", "resources", "epilog job-manager.epilog", "nothing".
func (j *Job) Waiting() string {
	switch j.State() {
	case StateNew:
		switch {
		case j.invalid:
			return "nothing"
		case !j.Submitted():
			return "submission"
		}
		return "validation"
	case StateDepend:
		if names := j.Dependencies(); len(names) > 0 {
			return named("dependency", "dependencies", names)
		}
		return "the job manager to leave DEPEND"
	case StatePriority, StateSched:
		switch {
		case j.onHold():
			return "release of the hold"
		case j.state == StatePriority:
			return "priority"
		}
		return "resources"
	case StateRun:
		return j.waitingToRun()
	case StateCleanup:
		return j.waitingToEnd()
	}
	return "nothing"
}

func (j *Job) waitingToRun() string {
	switch {
	case j.Started():
		return "its own end"
	case j.live(ActionProlog) > 0:
		return j.waitingFor(ActionProlog)
	case j.failedPrologs() > 0:
		return "the exception of its failed prolog"
	}
	return "the executor to start it"
}

func (j *Job) waitingToEnd() string {
	switch {
	case j.Started() && !j.Finished() && !j.finalRelease:
		return "its own end"
	case j.live(ActionProlog) > 0:
		return j.waitingFor(ActionProlog)
	case j.live(ActionEpilog) > 0:
		return j.waitingFor(ActionEpilog)
	case j.Started() && !j.finalRelease:
		return "the executor to release its resources"
	case j.allocated:
		return "its resources to be freed"
	}
	return "its log to be closed"
}

func (j *Job) waitingFor(k ActionKind) string {
	var names []string
	for a := range j.Actions() {
		if a.Kind == k {
			names = append(names, a.Description)
		}
	}
	return named(k.String(), k.String()+"s", names)
}

func named(one, many string, names []string) string {
	if len(names) > 1 {
		one = many
	}
	return one + " " + strings.Join(names, ", ")
}
