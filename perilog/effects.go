package perilog

import (
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset"
)

// Housekeeping returns the key of a job's housekeeping.
func Housekeeping() jobstate.ActionKey {
	return jobstate.ActionKey{Kind: jobstate.ActionHousekeeping, Description: "housekeeping"}
}

// A LogKind is one of the logs of a job.
type LogKind uint8

// The logs. The zero LogKind is invalid.
const (
	LogJob          LogKind = 1 + iota // the job's eventlog; the event clean closes it
	LogHousekeeping                    // the log of its housekeeping, which can outlive the job
)

// A LogEntry is an entry of one of the logs of a job.
type LogEntry struct {
	Log   LogKind
	Entry eventlog.Entry
	State jobstate.State // the job's, after the entry

	// Exception is a copy of what the event exception says; nil for other events.
	Exception *jobstate.ExceptionContext
}

// Effects is what the embedder has to do for a [Job], in the order of the fields. The slices, and
// the contexts in Post, are valid until the next Take; the caller owns the sets of ranks. Make
// launches, signals and drains idempotent: action and attempt identify a launch.
type Effects struct {
	// Post has the events that Apply accepted, and those that follow from all inputs. Make Post
	// durable BEFORE anything else, in this order: if a record is durable, all records before it
	// are. Send answers to reports AFTER that. If you cannot store Post, do nothing else and drop
	// the Job: RecoverJob reads what is durable.
	Post []LogEntry
	// Launch lists commands to start, AFTER Post is durable.
	Launch []Launch
	// Signal lists signals to send, AFTER Launch.
	Signal []Signal
	// Start tells the embedder to ask the executor to start the job on [Job.R], AFTER Post is
	// durable. After a restart it can be set again. Apply the executor's responses: start,
	// finish and release; see also [Job.NotStarted].
	Start bool
	// Drain lists ranks to drain, AFTER Post is durable. They are held until [Job.Drained]. A node
	// that is drained already keeps its reason (the mode "update" of Flux).
	Drain []Drain
	// Free is the fragment that goes back to the scheduler, AFTER Post is durable; often it
	// is empty. If a crash loses it, the scheduler learns at its next hello what was freed.
	Free rset.Fragment
	// Results say how actions ended, for an administrator's log.
	Results []ActionResult
}

// A Launch is a command to start on each of Ranks.
type Launch struct {
	Action  jobstate.ActionKey
	Attempt uint32        // at least 1, greater than in any earlier launch
	Ranks   *idset.Set    // not empty; of a single command its leader
	Command []string      // from the configuration; nil if that has none
	Serves  *idset.Set    // the ranks that a single command serves, perhaps none; nil with PerRank
	Timeout time.Duration // 0: none
}

// A Signal goes to the processes of an attempt on ranks, where they still run.
type Signal struct {
	Action  jobstate.ActionKey
	Attempt uint32
	Ranks   *idset.Set // not empty
	Signal  int        // 15, SIGTERM, or 9, SIGKILL
}

// A Drain asks the embedder to take ranks out of service.
type Drain struct {
	Ranks  *idset.Set // not empty
	Reason string     // such as "prolog timed out for job ƒuZZybuNNy"
}

// An ActionResult says how an action ended on all of its ranks.
type ActionResult struct {
	Action     jobstate.ActionKey
	Status     int32              // the worst wait status; 0: it succeeded on every rank
	Tolerated  bool               // the job goes on though ranks failed
	Groups     []Group            // in the order of causes and codes; a rank is in one
	Failed     *idset.Set         // the ranks on which it failed; may be empty
	Note       string             // one line for the job's user; "" after success
	Detail     string             // for administrators: what the ranks reported, one line for each; at most 8 KiB
	Start, End eventlog.Timestamp // of the action on all ranks
}

// A Group is a set of ranks on which an action ended the same way.
type Group struct {
	Cause string     // "ok", or what the event that logs a failure calls it, such as "timed-out"
	Code  int        // the exit code of "failed", the signal of "signaled", else 0
	Ranks *idset.Set // not empty
}

// A Report says what happened to an action on a rank.
type Report struct {
	Action  jobstate.ActionKey
	Kind    ReportKind
	Attempt uint32 // the Attempt of the Launch
	Rank    uint32 // where it runs; for a single command, its leader
	Status  int32  // a wait status, as wait(2) gives it
	Detail  string // text for administrators only; may be empty
	Line    []byte // of ReportOutput, with or without its newline; not retained
}

// A ReportKind says what happened. The zero ReportKind is invalid.
type ReportKind uint8

// The kinds of reports.
const (
	ReportStarted      ReportKind = 1 + iota // the command runs
	ReportExited                             // it ended with the wait status Status
	ReportLaunchFailed                       // it could not be launched; Status may be the reason
	ReportUnreachable                        // the embedder lost contact with the node
	ReportOutput                             // it wrote Line to its standard output
)

// String returns words such as "launch failed"; another value prints as ReportKind(n).
func (k ReportKind) String() string {
	return guard.Name("ReportKind", k, "started", "exited", "launch failed", "unreachable", "output")
}

// An Ack says what became of a report. The zero Ack is invalid.
type Ack uint8

// The kinds of Ack. Only AckApplied means that something has changed. A process repeats its last
// report until the answer is AckEnded, AckStale or AckUnknown: before, the log lacks its end.
const (
	AckApplied  Ack = 1 + iota // it is accepted
	AckRepeated                // it was reported before, or the job was shut down
	AckEnded                   // the log has the end of the action on that rank
	AckStale                   // its attempt is not the latest on that rank
	AckUnknown                 // no such action runs on that rank
	AckIgnored                 // it is legal and has no effect, such as plain output or a repeated control line
)

// String returns a word such as "applied"; another value prints as Ack(n).
func (a Ack) String() string {
	return guard.Name("Ack", a, "applied", "repeated", "ended", "stale", "unknown", "ignored")
}
