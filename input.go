package joblife

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A Cred says who asks.
type Cred struct {
	UserID uint32 // of the user; 0 is root
	// Guest is set if it is not the instance's owner. A guest may act only on its own jobs.
	Guest bool
}

func owner(by Cred) error {
	if by.Guest {
		return fmt.Errorf("%w: the instance's owner alone may ask for it", ErrDenied)
	}
	return nil
}

// An Input is something that happened, for [Manager.Step]: a request such as [Submit], a
// message such as [SchedResponse] or [ExecResponse], a [Report], or a [Tick]. Only types
// of this package implement it. By says who asks; the zero Cred is the instance's owner.
// An input with a Tag gets an [Answer]; with the Tag 0 it gets none. [Tagged] gives a Tag to
// inputs of types without one.
type Input interface {
	// dispatch takes in the input, without deciding what follows.
	dispatch(m *machine) error
}

// Requests of users and operators.
type (
	// Submit submits a job. The Answer has its id. An ID is refused if it was given before, or
	// is lower than that of a job that was purged or invalidated: then nobody knows.
	Submit struct {
		Tag     uint64
		By      Cred
		ID      jobid.ID      // 0: the Manager makes one greater than all before it, if Config has an Epoch
		Jobspec []byte        // RFC 25 in JSON; retained, and must not change
		Spec    *jobspec.Spec // the same as a value, which costs less: set one of the two
		Urgency int           // 0 holds the job; jobstate.UrgencyDefault is 16, and a guest's most
		Flags   jobstate.Flags
		// Key, of at most 256 bytes, is for a sender that repeats a submission because it saw no
		// Answer. While a job of the same user that was submitted with that Key is known, active
		// or inactive, the Answer has the id of that job, and no other is made, whatever the rest
		// of the Submit says; another ID is ErrInvalid. The event submit has the Key. "": none.
		Key string
		// Time is when the user submitted the job. 0, and a time after now, mean now.
		Time eventlog.Timestamp
	}
	// Validated ends a validation that a hook put off with ErrLater. An error invalidates
	// the job: its log ends, and the store removes it.
	Validated struct {
		ID  jobid.ID
		Err error
	}
	// DependencyAdd makes a job wait until DependencyRemove with the same description.
	// Adding one twice changes nothing. A dependency that was satisfied cannot be added again,
	// which is ignored if a hook posts it, nor any to a job that has left DEPEND. If the log has no
	// room (Config.MaxLog, for the owner), the error is ErrLimit, or the job ends if a hook posts
	// it. It is for hooks and services of the instance: let no user send it, nor a DependencyRemove.
	DependencyAdd struct {
		ID          jobid.ID
		Description string // such as "begin-time=1600000000"
	}
	// DependencyRemove says that a dependency is satisfied. The Description is that of its
	// DependencyAdd; one that the job does not wait for changes nothing.
	DependencyRemove struct {
		ID          jobid.ID
		Description string
	}
	// SetUrgency sets the urgency (RFC 30). The Answer has the old one.
	SetUrgency struct {
		Tag     uint64
		By      Cred
		ID      jobid.ID
		Urgency int
	}
	// SetPriority sets the priority of a job that a hook computed later. The urgencies 0 and
	// 31 override it. A restart forgets it.
	SetPriority struct {
		ID       jobid.ID
		Priority uint32
	}
	// UpdateJobspec sets values of the jobspec by dotted paths, all of Updates or none. It takes
	// time in proportion to the jobspec, which keeps to Config.MaxJobspec. It leaves room in the
	// log for a SetFlags and a SetExpiration that belong to it. [Hooks.Validate] is not asked.
	UpdateJobspec struct {
		Tag     uint64
		By      Cred
		ID      jobid.ID
		Updates []jobstate.Update
	}
	// SetExpiration sets when the R of a running job expires; 0 is never. Only the owner may do so.
	SetExpiration struct {
		Tag        uint64
		By         Cred
		ID         jobid.ID
		Expiration eventlog.Timestamp
	}
	// Memo merges values into the annotations of a job, under the key user. A volatile one
	// is in no log, unless the event alloc follows, which has all annotations. Those are at most
	// nearly 1 MiB, volatile ones included: beyond that, the error is ErrLimit.
	Memo struct {
		Tag      uint64
		By       Cred
		ID       jobid.ID
		Values   json.RawMessage // an object; a null removes a key
		Volatile bool
	}
	// SetFlags sets flags by name, such as "debug". A job with "alloc-bypass" waits for Alloc, not for
	// the scheduler; one that has resources cannot get that flag. Only the owner may set flags.
	SetFlags struct {
		Tag   uint64
		By    Cred
		ID    jobid.ID
		Flags []string
	}
	// Alloc gives resources to a job in SCHED with the flag alloc-bypass. It retains R. No scheduler
	// learns of R, so other jobs may have the same. Only the owner may do so.
	Alloc struct {
		Tag uint64
		By  Cred
		ID  jobid.ID
		R   *rset.R
	}
	// Raise raises an exception: Raise{By: user, ID: id, Type: "cancel"} cancels a job. Severity 0
	// ends the job; 1 to 7 do not. Type must not be empty; if it ends the job, "cancel" makes the
	// result CANCELED and "timeout" TIMEOUT. A fatal "scheduler-restart" takes back what the job
	// has, at once: only the owner may raise it, for a scheduler that has given the resources to
	// nobody, or knows that nothing runs there. A long Note is cut. Set WaitStatus only for the
	// type exec, if the exit of a task caused it: it is the status of that task, and an executor
	// finishes the job with it.
	Raise struct {
		Tag        uint64
		By         Cred
		ID         jobid.ID
		Type       string
		Severity   int
		Note       string
		WaitStatus jobstate.Optional[int32]
	}
	// Post logs an event by its Name and Context (RFC 21) as it is, to help a job that is stuck, or for a service that runs
	// actions of its own. Only the owner may do so. The start of an action that the log has with
	// the same time and context is ErrInvalid: it would be one hold of two services. Its description
	// has at most 4 KiB, or the error is eventlog.ErrLimit.
	Post struct {
		Tag     uint64
		By      Cred
		ID      jobid.ID
		Name    string
		Context json.RawMessage
	}
	// Wait is answered when the job is in one of States, or enters one. If it cannot any more, the
	// Answer has ErrInactive, or ErrUnknown for a job that is purged, unknown, or not durable yet.
	Wait struct {
		Tag    uint64
		By     Cred
		ID     jobid.ID
		States jobstate.State
	}
	// WaitEmpty is answered when no job is in States. INACTIVE counts only jobs in housekeeping.
	WaitEmpty struct {
		Tag    uint64
		States jobstate.State
	}
	// WaitCancel ends all waits with a tag, without an answer. There may be none.
	WaitCancel struct{ Tag uint64 }
	// EnableQueue lets a queue, "" the anonymous one, take jobs, or not. Only the owner may do so.
	EnableQueue struct {
		Tag    uint64
		By     Cred
		Queue  string
		Enable bool
		Reason string // for people
	}
	// StartQueue lets a queue, "" the anonymous one, send its jobs to the scheduler, or stops that;
	// requests that have no response are recalled. All names all queues, so that the priority of
	// their jobs counts, and not the order of the queues. A Volatile start or stop is in no record,
	// so a restart undoes it. Only the owner may do so.
	StartQueue struct {
		Tag      uint64
		By       Cred
		Queue    string
		All      bool
		Start    bool
		Reason   string // for people
		Volatile bool
	}
	// Purge purges inactive jobs by limits, batch by batch, and no more than there are when it
	// begins. The Answer comes after the last, with their number. Without Force it only counts
	// them. Only the owner may do so.
	Purge struct {
		Tag    uint64
		By     Cred
		Limits purge.Limits
		Force  bool
	}
	// PurgeIDs is Purge by id, for the owner too: at most purge.MaxBatch jobs, all or none, with Force
	// as there. The error is ErrLimit while others are being purged: ask again.
	PurgeIDs struct {
		Tag   uint64
		By    Cred
		IDs   []jobid.ID // one that appears twice counts once
		Force bool
	}
	// Unlinked reports which jobs of a Ready.Unlink the store has removed, all at once or
	// in parts. Those in Failed could not be removed. The Manager names them again later: invalid
	// jobs after a minute, others when limits or a request do so.
	Unlinked struct {
		IDs    []jobid.ID // those that are gone
		Failed map[jobid.ID]error
	}
	// Reload replaces Actions, Queues, Limits and Private, and ignores the rest of Config. An action
	// that has not begun follows the new ones: see [perilog.Job.SetConfig].
	Reload struct{ Config Config }
	// AcceptClock confirms the time after a jump. Until then the limits purge nothing, and a
	// Purge is refused. A Manager without limits does not mind the clock.
	AcceptClock struct{}
	// Tagged is an input of a type without a Tag, such as an ExecResponse, with one. Its Answer
	// has the Tag alone, and comes when what follows from the input is durable: then its sender
	// need not repeat it after a crash. If In is refused, so is Tagged. If it has a Tag of its
	// own, or is Reports, which have, the error is ErrInvalid.
	Tagged struct {
		Tag uint64
		In  Input
	}
	// Tick passes the time. Step it at [Manager.Deadline].
	Tick struct{}
	// Shutdown forbids further launches and starts. Running actions may end until the deadline,
	// 0 for none: see [Manager.Stopped]. After the deadline Step refuses all inputs. A
	// second Shutdown changes the deadline.
	Shutdown struct{ Deadline eventlog.Timestamp }
)

// What the scheduler says (RFC 27).
type (
	// SchedHello begins a session, and Ready.Hello is the response. Do not send messages of
	// an earlier session, nor those of a Ready that is outstanding: they are void.
	SchedHello alloc.Hello
	// SchedReady lets requests be sent. The ReadyResponse is the first of Ready.Sched.
	SchedReady alloc.Ready
	// SchedResponse responds to a Request. The error is ErrConflict if another job holds some of the
	// resources. If a response is refused, end the session: pass SchedLost, and have the scheduler
	// say hello again, which gets what is held. A response to a request with the jobspec of before
	// an UpdateJobspec does not count: what it gives is freed, and the job is asked for again.
	SchedResponse alloc.Response
	// SchedLost ends the session.
	SchedLost struct{}
)

// What the executor says (RFC 32).
type (
	// ExecHello begins a session of an executor. The executor gets a Start of each job that it
	// has to run, even of one that it runs already. Start.Reattach is set if the job has
	// started, is being stopped, or has prologs that did not run, and in a Shutdown; Raised has
	// what stops it.
	// Messages of an earlier session, and those of a Ready that is outstanding, are void.
	ExecHello struct{}
	// ExecResponse responds to a Start. An executor that goes on with a job may repeat what
	// it said before; a repetition logs no event, but for an exception.
	ExecResponse exec.Response
	// ExecRefused reports that the executor does not have a job, has not run it and will
	// not. The job ends with an exception, and with its epilogs if a prolog ran. But if the
	// executor was only asked whether it has the job (Reattach before the start), the job
	// goes on. An executor that has run a job must respond with start, finish and release
	// instead, even if the job is over: without a start, epilogs may not run.
	ExecRefused struct {
		ID   jobid.ID
		Note string // why, for the job's user; may be empty
	}
	// ExecLost ends the session. Jobs may run on.
	ExecLost struct{}
)

// What nodes, and those who watch them, say.
type (
	// Report reports what an action did on a rank. The Answer says what became of that. Of a
	// quarantined job it is AckRepeated: what is over is to be repeated when its records are repaired.
	Report struct {
		Tag uint64
		Job jobid.ID
		perilog.Report
	}
	// Reports are several at once, in List. The Manager decides once for all of them, so that
	// nodes that end together are one event and one fragment. Each Tag has its Answer.
	Reports struct{ List []Report }
	// Drained confirms that ranks are drained. It ignores ranks that no job waits for. It takes
	// time for the jobs that hold some of the ranks.
	Drained struct{ Ranks *idset.Set }
	// Offline replaces the set of the ranks that are offline; nil is the empty set. It is
	// retained, and must not change. It takes time for the jobs that hold ranks that come or go;
	// for all that run, if a command runs there for other ranks ([perilog.ActionConfig], Leader).
	Offline struct{ Ranks *idset.Set }
	// Reattach reports that an action still runs: see [perilog.Job.Reattach].
	Reattach struct{ Action }
	// Rerun launches an action again: see [perilog.Job.Rerun].
	Rerun struct{ Action }
	// ForceFinish ends an action: see [perilog.Job.ForceFinish]. Status is a wait status, and
	// Operator, 1 to 64 bytes, is who does it, for the log.
	ForceFinish struct {
		Action
		Status   int32
		Operator string
	}
)

// An Action is an action of a job, on some ranks.
type Action struct {
	Job   jobid.ID
	Key   jobstate.ActionKey
	Ranks *idset.Set // nil: all that apply
}

// The errors of this package. After an error nothing has changed. An event that
// a job's state does not allow is an error of package jobstate or perilog; what the
// scheduler may not say is one of package alloc.
var (
	// ErrClock is returned for a time that no event can have, or one before the last.
	ErrClock = errors.New("joblife: clock stepped")
	// ErrUnknown is returned for a job that the Manager does not have, that a guest may
	// not see, or whose submission is not durable yet.
	ErrUnknown = errors.New("joblife: unknown job")
	// ErrInactive is returned for a change of a job that is over.
	ErrInactive = errors.New("joblife: job is inactive")
	// ErrDenied is returned when a guest asks for what only the job's user or the owner may do.
	ErrDenied = errors.New("joblife: permission denied")
	// ErrInvalid is returned for an input that is wrong in itself. The text says why.
	ErrInvalid = errors.New("joblife: invalid request")
	// ErrLimit is returned for a request beyond a limit of Config, or a fixed one: 2^20
	// waits, 1024 purges that wait for the store, and 64 MiB of quarantined jobs.
	ErrLimit = errors.New("joblife: limit reached")
	// ErrConflict is returned for resources that another job has. The text has both, and what they share.
	ErrConflict = errors.New("joblife: double booking")
	// ErrRefused is returned when a hook refuses a job. The text is the hook's.
	ErrRefused = errors.New("joblife: job refused")
	// ErrAbandoned is returned after Abandon: only [Restore] helps.
	ErrAbandoned = errors.New("joblife: the manager was abandoned: restore one from the store")
)

// Defaults and limits of a [Config].
const (
	defaultMaxActive = 1 << 22
	defaultMaxLog    = 8 << 20 // bytes

	maxPosts       = 1 << 12 // inputs that hooks may queue in one Step, and for each job
	maxPostsPerJob = 8
	never          = 1 << 40 // seconds: what is due later is never due; time.Time ends not much later
)

// A Config configures a [Manager]. The zero Config is valid: one queue, no actions, no
// hooks, no purge, and each [Submit] names its ID.
type Config struct {
	// Owner is the user id of the instance, which raises the Manager's exceptions; 0 is root.
	Owner uint32
	// Private hides the jobs of other users from guests: see [Manager.As].
	Private bool
	// Epoch is the time at which ids begin, which messages carry for 17 years from it; Generator is
	// the number of the generator in each id. With a zero Epoch each Submit names its ID.
	Epoch     time.Time
	Generator uint16
	// Queues are the named queues, one of which each job has to name; a name is UTF-8, of at
	// most 4 KiB. Without them there is the anonymous queue "". A queue takes and starts jobs until
	// EnableQueue or StartQueue stops that. A queue that a Reload adds takes jobs but is stopped,
	// even one that was there before.
	Queues []string
	// QueuesStopped says that a named queue without a record begins stopped, as in flux-core.
	QueuesStopped bool
	// Offline are the ranks that are offline until the first input Offline; nil is none.
	// Restore decides by them. The set is retained, and must not change.
	Offline *idset.Set
	// Actions are the prologs, epilogs and housekeeping of all jobs.
	Actions perilog.Config
	// Limits say which inactive jobs are purged. The zero Limits purge nothing.
	Limits purge.Limits
	// TombstoneCount and TombstoneAge say how long a purged job still answers
	// dependencies: see [purge.Config].
	TombstoneCount jobstate.Optional[int]
	TombstoneAge   jobstate.Optional[time.Duration]
	// MaxActive limits at a Submit the jobs that are active, or have housekeeping or a canceled
	// request without a response; 0 means 2^22.
	MaxActive int
	// MaxJobspec limits the bytes of a jobspec at a Submit and with its updates, for a store that
	// takes less. 0 means what a line of a log takes, nearly 1 MiB.
	MaxJobspec int
	// MaxLog limits the bytes of a job's log: the Manager refuses a guest's request that
	// would make it longer, and a Submit whose dependencies do not fit. The owner and hooks
	// have room for twice as much. 0 means 8 MiB. What satisfies a dependency, what ends a job and
	// what the Manager itself logs comes on top, about 1 KiB for each node. The store needs room for that; dirstore has 64 MiB.
	MaxLog int
	// Distinct gives no two events of a job the same time: see [perilog.JobConfig]. Without
	// it, events have the time of their Step.
	Distinct bool
	// Volatile keeps no records: Ready.Append and the logs of jobs stay empty.
	// It is for simulations that never restart.
	Volatile bool
	// Hooks are called for each event, in this order.
	Hooks []Hooks
}

func (c *Config) maxActive() int { return cmp.Or(max(0, c.MaxActive), defaultMaxActive) }

func (c *Config) maxJobspec() int { return min(maxData, cmp.Or(max(0, c.MaxJobspec), maxData)) }

// maxLog returns how many bytes the log of a job may have after a request.
func (c *Config) maxLog(by Cred) int {
	n := min(cmp.Or(max(0, c.MaxLog), defaultMaxLog), math.MaxInt/2)
	if !by.Guest {
		n *= 2 // room for what services report, however much the user posts
	}
	return n
}

func (c *Config) check() error {
	if err := c.Actions.Check(); err != nil {
		return err
	}
	if err := c.Limits.Check(); err != nil {
		return fmt.Errorf("joblife: %w", err)
	}
	for i, name := range c.Queues {
		switch {
		case len(name) > maxNote:
			return fmt.Errorf("%w: a queue with a name of %d bytes, at most %d", ErrLimit, len(name), maxNote)
		case name == "" || !utf8.ValidString(name) || slices.Contains(c.Queues[:i], name):
			return fmt.Errorf("%w: queue %s: empty, no UTF-8, or named twice", ErrInvalid, guard.Quote(name))
		}
	}
	return nil
}

// sees reports whether by may know of a job of a user. Only this and live decide that.
func (c *Config) sees(by Cred, user uint32) bool {
	return !by.Guest || !c.Private || by.UserID == user
}

// What is stored has to fit in a line of a log as a [Record], with its frame.
const (
	maxData   = eventlog.DefaultMaxLine - 4<<10
	maxDepth  = eventlog.DefaultMaxDepth - 8
	maxNote   = 4 << 10 // bytes of what a user, a peer or a hook says in words
	lineFrame = 64      // of an event: more than what its line has beside name and context

	besideUpdate = 512 // bytes of the log that an UpdateJobspec leaves: priority, set-flags, resource-update
)

// fits returns why data, beside more bytes, cannot be stored. Others find out if it is no JSON.
func fits(what string, data []byte, more int) error {
	return fitsIn(maxData, maxDepth, what, data, more)
}

func fitsIn(most, depth int, what string, data []byte, more int) error {
	if n := len(data) + more; n > most {
		return fmt.Errorf("%w: %s of %d bytes, at most %d are stored", ErrLimit, what, n, most)
	}
	if len(data) <= depth || bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= depth {
		return nil
	}
	if err := jsonobj.Check(data, depth); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrLimit, what, err)
	}
	return nil
}

func fitsEntry(e eventlog.Entry) error { return fits("event", e.Context, 6*len(e.Name)) } // a byte may need six

// sanitizeNote makes a note of words from outside.
func sanitizeNote(s string) string {
	if len(s) > maxNote {
		s = s[:maxNote]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// plain returns words from outside for an error that has them in quotes of its own, or none.
func plain(s string) string {
	q := guard.Quote(s)
	return q[1 : len(q)-1]
}
