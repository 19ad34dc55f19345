package perilog

import (
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog/internal/run"
	"github.com/joblife/joblife/rset"
)

// A Key names an action of a job, as the log does. Housekeeping has the kind
// jobstate.ActionHousekeeping and the description "housekeeping".
type Key struct {
	Kind        jobstate.ActionKind
	Description string
}

// String returns the kind and the description, such as "epilog
// job-manager.epilog".
func (k Key) String() string { return k.Kind.String() + " " + k.Description }

// Housekeeping returns the key of a job's housekeeping.
func Housekeeping() Key { return Key{jobstate.ActionHousekeeping, "housekeeping"} }

// A Log is one of the logs of a job.
type Log uint8

// The logs. The zero Log is invalid.
const (
	LogJob          Log = 1 + iota // the job's eventlog, which clean closes
	LogHousekeeping                // the log of its housekeeping, which can outlive the job
)

// String returns "job" or "housekeeping".
func (l Log) String() string {
	if l == LogJob {
		return "job"
	}
	return "housekeeping"
}

// A Record is an entry of one of the logs of a job.
type Record struct {
	Log   Log
	Entry eventlog.Entry
	State jobstate.State // the job's, after the entry
}

// Effects is what a [Job] wants done, in the order of its fields. Its slices, and
// the contexts in Post, are valid until the next Take; the caller owns the sets of
// ranks. Launches, signals and drains are idempotent: action and attempt identify a
// launch.
type Effects struct {
	// Post has the events that Apply accepted, and those that follow. Make it
	// durable BEFORE anything else, in this order: if a record is durable, all
	// before it are. Answers to reports go out AFTER it. If it cannot be stored, do
	// nothing else and drop the Job: RecoverJob reads back what is durable.
	Post []Record
	// Launch starts commands, AFTER Post is durable. Reports carry the attempt.
	Launch []Launch
	// Signal sends signals, AFTER Launch.
	Signal []Signal
	// Start asks the executor to start the job on [Job.R], AFTER Post is durable.
	// After a restart it asks again. It responds with the events start, finish
	// and release; see also [Job.NotStarted].
	Start bool
	// Drain drains ranks, AFTER Post is durable. The ranks are held until
	// [Job.Drained] confirms it. A node that is drained already keeps its reason
	// (mode "update").
	Drain []Drain
	// Free is the fragment that goes back to the scheduler, AFTER Post is durable;
	// often it is empty. If a crash loses it, the scheduler learns of it by hello.
	Free rset.Fragment
	// Outcomes tell how actions ended, for an administrator's log.
	Outcomes []Outcome
}

// IsEmpty reports whether there is nothing to do.
func (e Effects) IsEmpty() bool {
	return !e.Start && len(e.Post)+len(e.Launch)+len(e.Signal)+len(e.Drain)+len(e.Outcomes) == 0 && e.Free.IsEmpty()
}

// A Launch is a command to run on each of Ranks; a single command has one rank, its
// leader.
type Launch struct {
	Action  Key
	Attempt uint32        // at least 1, greater than that of any earlier launch
	Ranks   *idset.Set    // not empty
	Command []string      // of the configuration; nil if it has none
	Serves  *idset.Set    // of a single command: the ranks that it serves; nil per rank
	Timeout time.Duration // 0: none
}

// A Signal goes to the processes of an attempt on ranks, where they still run.
type Signal struct {
	Action  Key
	Attempt uint32
	Ranks   *idset.Set // not empty
	Signal  int        // 15, SIGTERM, or 9, SIGKILL
}

// A Drain takes ranks out of service.
type Drain struct {
	Ranks  *idset.Set // not empty
	Reason string     // such as "prolog timed out for job ƒuZZybuNNy"
}

// An Outcome says how an action ended on all of its ranks.
type Outcome struct {
	Action     Key
	Status     int32      // the worst wait status; 0: it succeeded on every rank
	Tolerated  bool       // the job goes on though ranks failed
	Groups     []Group    // in the order of causes and codes; a rank is in one
	Failed     *idset.Set // the ranks on which it did not succeed; may be empty
	Note       string     // one line for the job's user; "" after success
	Detail     string     // for administrators: what was reported of each rank, a line each
	Start, End eventlog.Timestamp
}

// A Group is the ranks on which an action ended the same way, with the exit code of
// CauseFailed or the signal of CauseSignaled.
type Group = run.Group

// A Report tells what happened to an action on a rank.
type Report struct {
	Action  Key
	Kind    ReportKind
	Attempt uint32 // that of the launch
	Rank    uint32 // where it runs: of a single command, its leader
	Status  int32  // a wait status, as wait(2) gives it
	Detail  string // in words, for administrators only; may be empty
	Line    []byte // of ReportOutput, with or without its newline; not retained
}

// A ReportKind says what happened. The zero ReportKind is invalid.
type ReportKind = run.ReportKind

// The kinds of reports.
const (
	ReportStarted      = run.ReportStarted      // the command runs
	ReportExited       = run.ReportExited       // it ended with the wait status Status
	ReportLaunchFailed = run.ReportLaunchFailed // it could not be launched; Status may tell why
	ReportUnreachable  = run.ReportUnreachable  // contact with the node was lost
	ReportOutput       = run.ReportOutput       // it wrote Line to its standard output
)

// An Answer says what became of a report. The zero Answer is invalid.
type Answer = run.Answer

// The answers. Only AnswerApplied means that something has changed. A helper repeats
// its last report until the answer is AnswerEnded, AnswerStale or AnswerUnknown: until
// then the log does not say that the action has ended there.
const (
	AnswerApplied  = run.AnswerApplied  // it is accepted
	AnswerRepeated = run.AnswerRepeated // it was reported before, or the job was shut down
	AnswerEnded    = run.AnswerEnded    // the log says that the action has ended there
	AnswerStale    = run.AnswerStale    // it is of an attempt that is not the latest on that rank
	AnswerUnknown  = run.AnswerUnknown  // no such action runs on that rank
	AnswerIgnored  = run.AnswerIgnored  // it is legal and has no effect, such as plain output
)

// A Cause says how an action ended on a rank. The zero Cause is invalid.
type Cause = run.Cause

// The causes. A rank ends with exactly one of them.
const (
	CauseOK               = run.CauseOK               // the command exited with 0
	CauseFailed           = run.CauseFailed           // it exited with another code
	CauseReported         = run.CauseReported         // a control line named the node as failed
	CauseControl          = run.CauseControl          // it wrote an invalid control line
	CauseSignaled         = run.CauseSignaled         // a signal ended it that the Job did not ask for
	CauseTimedOut         = run.CauseTimedOut         // it reached its timeout
	CauseCanceled         = run.CauseCanceled         // it was canceled, and ended within the kill timeout
	CauseCanceledTimedOut = run.CauseCanceledTimedOut // it was canceled, and did not end within the kill timeout
	CauseLaunchFailed     = run.CauseLaunchFailed     // it could not be launched
	CauseUnreachable      = run.CauseUnreachable      // contact with its node was lost
	CauseOffline          = run.CauseOffline          // its node was offline, and it was not launched
	CauseForced           = run.CauseForced           // an operator finished it by force
)

// ControlPrefix begins each control line; other lines are plain output. See the package
// documentation.
const ControlPrefix = run.ControlPrefix
