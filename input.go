package joblife

import (
	"encoding/json"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// An Input is something that happened, for [Manager.Step]: a request such as [Submit], a
// message such as [SchedResponse] or [ExecResponse], a [Report], or a [Tick]. Only types
// of this package implement it. By says who asks; the zero Cred is the instance's owner.
// An input with a Tag gets an [Answer]; with the Tag 0 it gets none.
type Input interface {
	// dispatch takes in the input, without deciding what follows.
	dispatch(m *Manager) error
}

// A Cred says who asks.
type Cred struct {
	UserID uint32
	// Guest is set if it is not the instance's owner. A guest may act only on its own jobs.
	Guest bool
}

// Requests of users and operators.
type (
	// Submit submits a job. The Answer has its id.
	Submit struct {
		Tag     uint64
		By      Cred
		ID      jobid.ID // 0: the Manager makes one, if Config has an Epoch
		Jobspec []byte   // RFC 25 in JSON; retained, and must not change
		Urgency int      // 0 holds the job; jobstate.UrgencyDefault is 16, and a guest's most
		Flags   jobstate.Flags
		// Time is when the user submitted the job, for the event submit. 0, and a time
		// after now, mean now.
		Time eventlog.Timestamp
	}
	// Validated ends a validation that a hook put off with ErrLater. An error invalidates
	// the job: its log ends, and the store removes it.
	Validated struct {
		ID  jobid.ID
		Err error
	}
	// DependencyAdd makes a job wait until DependencyRemove with the same description.
	// Adding one twice, or removing one that is not there, changes nothing. A dependency
	// that was satisfied cannot be added again, nor any to a job that has left DEPEND.
	DependencyAdd struct {
		ID          jobid.ID
		Description string
	}
	DependencyRemove struct {
		ID          jobid.ID
		Description string
	}
	// Urgency sets the urgency (RFC 30). The Answer has the old one.
	Urgency struct {
		Tag     uint64
		By      Cred
		ID      jobid.ID
		Urgency int
	}
	// Priority sets the priority of a job that a hook computed later. The urgencies 0 and
	// 31 override it. A restart forgets it.
	Priority struct {
		ID       jobid.ID
		Priority uint32
	}
	// Update sets values of the jobspec by dotted paths.
	Update struct {
		Tag     uint64
		By      Cred
		ID      jobid.ID
		Updates []jobstate.Update
	}
	// SetExpiration sets when the resources of a running job expire; 0 is never. Only the
	// owner may do so.
	SetExpiration struct {
		Tag        uint64
		By         Cred
		ID         jobid.ID
		Expiration eventlog.Timestamp
	}
	// Memo merges values into the annotations of a job, under the key user. A volatile one
	// is in no log, unless the event alloc follows, which has all annotations.
	Memo struct {
		Tag      uint64
		By       Cred
		ID       jobid.ID
		Values   json.RawMessage // an object; a null removes a key
		Volatile bool
	}
	// SetFlags sets flags by name, such as "debug". A job with the flag "alloc-bypass"
	// waits for Alloc, and the scheduler never hears of it; a job that has resources
	// cannot get that flag. Only the owner may set flags.
	SetFlags struct {
		Tag   uint64
		By    Cred
		ID    jobid.ID
		Flags []string
	}
	// Alloc gives resources to a job in SCHED that has the flag alloc-bypass. R is
	// retained. The error is ErrConflict if another job holds some of it. No scheduler learns
	// that R is used or freed, so keep its ranks out of their inventory. Only the owner may
	// do so.
	Alloc struct {
		Tag uint64
		By  Cred
		ID  jobid.ID
		R   *rset.R
	}
	// Raise raises an exception. Severity 0 ends the job; 1 to 7 do not. Type must not be
	// empty; if it ends the job, "cancel" makes the result CANCELED and "timeout" TIMEOUT.
	// A long Note is cut.
	Raise struct {
		Tag        uint64
		By         Cred
		ID         jobid.ID
		Type       string
		Severity   int
		Note       string
		WaitStatus jobstate.Optional[int32]
	}
	// Post logs an event as it is, to help a job that is stuck, or for a service that runs
	// actions of its own. Only the owner may do so.
	Post struct {
		Tag     uint64
		By      Cred
		ID      jobid.ID
		Name    string
		Context json.RawMessage
	}
	// Wait is answered when the job enters one of States, or has the event Event in its
	// log. If that cannot happen any more, the Answer has an error: ErrInactive, or
	// ErrUnknown for a job that is purged, unknown, or not durable yet. Only the store has
	// the log of an inactive job: look there for its events. A volatile Manager keeps no
	// log, so only later events count.
	Wait struct {
		Tag    uint64
		By     Cred
		ID     jobid.ID
		States jobstate.State
		Event  string
	}
	// WaitEmpty is answered when no job is in States. INACTIVE counts only jobs whose
	// housekeeping still runs.
	WaitEmpty struct {
		Tag    uint64
		States jobstate.State
	}
	// WaitCancel ends all waits with a tag, without an answer. There may be none.
	WaitCancel struct{ Tag uint64 }
	// EnableQueue lets a queue take jobs, or not; StartQueue lets it send them to the
	// scheduler, or not. Reason is for people. A volatile start or stop is in no record, so
	// a restart undoes it. Only the owner may do so.
	EnableQueue struct {
		Tag    uint64
		By     Cred
		Queue  string
		Enable bool
		Reason string
	}
	StartQueue struct {
		Tag      uint64
		By       Cred
		Queue    string
		Start    bool
		Reason   string
		Volatile bool
	}
	// Purge purges inactive jobs by limits, batch by batch. The Answer comes after the last
	// batch and has their number. Without Force it only counts them. Only the owner may do
	// so.
	Purge struct {
		Tag    uint64
		By     Cred
		Limits purge.Limits
		Force  bool
	}
	// PurgeIDs purges inactive jobs by id, at most purge.MaxBatch, all or none; without
	// Force it only counts them. The error is ErrLimit while other jobs are being purged:
	// ask again. Only the owner may do so.
	PurgeIDs struct {
		Tag   uint64
		By    Cred
		IDs   []jobid.ID
		Force bool
	}
	// Unlinked reports which jobs of a Ready.Unlink the store has removed, all at once or
	// in parts. Those in Failed could not be removed; the Manager names them again later.
	Unlinked struct {
		IDs    []jobid.ID
		Failed map[jobid.ID]error
	}
	// Reload replaces Actions, Queues, Limits and Private of the configuration; other
	// fields of Config are ignored. An action that has not begun follows the new ones: see
	// [perilog.Job.SetConfig].
	Reload struct{ Config Config }
	// AcceptClock confirms the time after a jump. Until then the limits purge nothing.
	AcceptClock struct{}
	// Tick passes the time. Call it at Deadline.
	Tick struct{}
	// Shutdown forbids further launches and starts. Running actions may end until the deadline,
	// 0 for none; Stats.Actions counts them. After the deadline Step refuses all inputs. A
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
	// SchedResponse responds to a Request. The error is ErrConflict if another job holds some
	// of the resources: whatever the scheduler believes, nothing is booked twice. If a
	// response is refused, end the session: pass SchedLost, and have the scheduler say hello
	// again, which tells it what is held.
	SchedResponse alloc.Response
	// SchedLost ends the session.
	SchedLost struct{}
)

// What nodes, and those who watch them, say.
type (
	// Report reports what an action did on a rank. The Answer says what became of the
	// report.
	Report struct {
		Tag uint64
		Job jobid.ID
		perilog.Report
	}
	// Drained confirms that ranks are drained. It ignores ranks that no job waits for.
	Drained struct{ Ranks *idset.Set }
	// Offline replaces the set of the ranks that are offline; nil is the empty set. It is
	// retained, and must not change.
	Offline struct{ Ranks *idset.Set }
	// Reattach reports that an action still runs: see [perilog.Job.Reattach].
	Reattach struct{ Action }
	// Rerun launches an action again: see [perilog.Job.Rerun].
	Rerun struct{ Action }
	// ForceFinish ends an action: see [perilog.Job.ForceFinish]. Who is for the log.
	ForceFinish struct {
		Action
		Status int32
		Who    string
	}
)

// An Action is an action of a job, on some ranks.
type Action struct {
	Job   jobid.ID
	Key   perilog.Key
	Ranks *idset.Set // nil: all that apply
}
