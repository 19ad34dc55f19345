// Package wire has what the roles of a cluster say to each other, and on which subjects. All
// messages are JSON. I is the name of the instance, such as "main".
//
//	jl.I.req.UID.VERB        a request of a user to the manager; the server's permissions prove UID
//	jl.I.req.UID.output.RANK its request to a node, and
//	jl.I.req.UID.reader.VERB to a reader: without one, the server says at once that nobody answers
//	jl.I.up.RANK             what a node says: an Up
//	jl.I.do.RANK             what the active manager says to a node: a Do
//	jl.I.epoch               the active manager lives: a Beat, each BeatEvery
//	jl.I.ping.NAME           whether a manager lives; of all: each Standby answers
//	jl.I.event.UID           events of the jobs of a user, live, as AppendEvent has them
//	jl.I.log.rec             the stream JL_I: the records of each commit, in lines of joblife.AppendRecords
//	jl.I.log.fence           an empty message in it: its sequence is the epoch of a new manager
//	jl.I.snap.SEQ            the stream JLSNAP_I: records that replace those up to SEQ
//	jl.I.archive.UID.JOB     the stream JLARCHIVE_I: each job that has ended, an Archived
//
// The key "active" of the bucket JL_I has the lease.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
)

// Marshal is json.Marshal, but <, > and & stay one byte each: then no text from a JSON text, such as an
// eventlog, has more than twice its bytes. All messages are made by it.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// BeatEvery is the time between two beats of a manager and of a node.
const BeatEvery = 500 * time.Millisecond

// An Instance is the name of an instance: letters, digits and "-".
type Instance string

// Log is the stream of records.
func (i Instance) Log() string { return "JL_" + string(i) }

// Snapshots is the stream of snapshots.
func (i Instance) Snapshots() string { return "JLSNAP_" + string(i) }

// Archive is the stream of jobs that have ended.
func (i Instance) Archive() string { return "JLARCHIVE_" + string(i) }

// Bucket is the bucket of the lease.
func (i Instance) Bucket() string { return "JL_" + string(i) }

// Subject joins the parts of a subject of the instance.
func (i Instance) Subject(parts ...any) string {
	s := append([]byte("jl."), i...)
	for _, p := range parts {
		s = append(s, '.')
		switch p := p.(type) {
		case string:
			s = append(s, p...)
		case uint32:
			s = strconv.AppendUint(s, uint64(p), 10)
		default:
			s = fmt.Append(s, p)
		}
	}
	return string(s)
}

// Inbox is where a user gets answers, and nothing else. The uid is a token of its own, so that a
// permission can name the inboxes of all users.
func Inbox(uid uint32) string { return "_INBOX." + strconv.FormatUint(uint64(uid), 10) }

// An Up is what a node says. The manager takes the first Up of a session only with Hello and
// an Answer, and the others in the order of Seq, which begins with 1. After a gap, or without the session, it
// asks for another by a Do with Hello set.
type Up struct {
	Epoch   uint64            `json:"epoch"`            // of the manager that it is for
	Node    string            `json:"node,omitempty"`   // of the node's folder: another machine with this rank has another
	Session string            `json:"session"`          // the node's own, never used before
	Seq     uint64            `json:"seq"`              // of the last status, also in a beat
	Got     uint64            `json:"got"`              // the last Do
	Answer  string            `json:"answer,omitempty"` // with Hello: the Do.Ask that it answers
	Hello   bool              `json:"hello,omitempty"`
	Parts   int               `json:"parts,omitempty"` // with Hello: how many messages it has, which come together; 0 means 1
	Tasks   []exec.TaskStatus `json:"tasks,omitempty"` // all with Hello, else what changed
	Lines   string            `json:"lines,omitempty"` // of a scheduler, as RFC 27 has them
}

// MaxParts is how many messages a hello may have.
const MaxParts = 32

// A Do is what the manager says to a node, in the order of Seq, which begins with 1. A node
// ignores an epoch before the last, and begins another session after a gap.
type Do struct {
	Epoch   uint64  `json:"epoch"`
	Session string  `json:"session"`
	Seq     uint64  `json:"seq"`             // of the last order, also without one
	Hello   bool    `json:"hello,omitempty"` // begin another session than this
	Ask     string  `json:"ask,omitempty"`   // with Hello: never used before, so that no hello comes late
	Orders  []Order `json:"orders,omitempty"`
	Lines   string  `json:"lines,omitempty"` // for a scheduler, as RFC 27 and RFC 28 have them
}

// An Order is an exec.Command for one node, with what it has to know of the job.
type Order struct {
	Kind   exec.CommandKind `json:"kind"`
	Task   exec.Task        `json:"task"`
	Args   []string         `json:"args,omitempty"`
	Signal int              `json:"signal,omitempty"`
	Job    *Job             `json:"job,omitempty"` // of the start of a job
}

// A Job is what a node has to know of a job.
type Job struct {
	UserID uint32            `json:"userid"` // whose job it is
	Dir    string            `json:"dir,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
}

// MaxOutput is how many bytes of the output of a job are in one answer: a third more as JSON. Who may
// ask a node for a hundred at once has all that it keeps.
const MaxOutput = 1 << 20

// An OutputRequest asks a node for the output of a job.
type OutputRequest struct {
	ID     jobid.ID `json:"id"`
	Offset int64    `json:"offset"`
}

// An Output is a part of the output of a job. End says that it has ended, and that this is all.
type Output struct {
	Error string `json:"error,omitempty"`
	Data  []byte `json:"data,omitempty"`
	End   bool   `json:"end,omitempty"`
}

// User returns who sent a message, by its subject jl.I.req.UID.…, and whether it may be
// answered, by Reply.
func (i Instance) User(subject, reply string) (uid uint32, ok bool) {
	rest, isReq := strings.CutPrefix(subject, i.Subject("req")+".")
	text, _, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(text, 10, 32)
	uid = uint32(n)
	return uid, isReq && err == nil && strconv.FormatUint(n, 10) == text && Reply(uid, reply)
}

// Reply reports if reply is a subject on which the user of uid, and no other, gets answers.
// The sender of a request chooses the reply subject, and the server does not check it: what
// answers a request on jl.I.req.UID.> must ask Reply first, with that UID, and drop the request
// if it is false. Otherwise a user has it speak to another in its own name.
func Reply(uid uint32, reply string) bool {
	rest, ok := strings.CutPrefix(reply, Inbox(uid)+".")
	return ok && rest != "" && !strings.ContainsAny(rest, "*> \t\r\n")
}

// AppendEvent appends an event of a job: a line with its id in decimal, a space, and the entry as
// in an eventlog.
func AppendEvent(dst []byte, id jobid.ID, e eventlog.Entry) ([]byte, error) {
	n := len(dst)
	dst = append(strconv.AppendUint(dst, uint64(id), 10), ' ')
	text, err := eventlog.AppendEntry(dst, e)
	if err != nil {
		return dst[:n], err
	}
	return text, nil
}

// Events returns the events that AppendEvent has appended: the job and the line of its eventlog.
// It ends before what is none.
func Events(text []byte) iter.Seq2[jobid.ID, []byte] {
	return func(yield func(jobid.ID, []byte) bool) {
		for line := range bytes.Lines(text) {
			head, rest, _ := bytes.Cut(line, []byte{' '})
			id, err := strconv.ParseUint(string(head), 10, 64)
			if err != nil || !yield(jobid.ID(id), rest) {
				return
			}
		}
	}
}

// A Beat says who is active.
type Beat struct {
	Epoch uint64 `json:"epoch"`
}

// An Archived is a job that has ended, with its eventlog.
type Archived struct {
	JobInfo
	Jobspec json.RawMessage `json:"jobspec,omitempty"` // as it was submitted
	R       json.RawMessage `json:"R,omitempty"`
}

// Cut leaves out the middle of an eventlog that is longer than n bytes, by whole lines. An entry
// of the name "cut" says so.
func (a *Archived) Cut(n int) {
	if len(a.Eventlog) <= n {
		return
	}
	head := strings.LastIndexByte(a.Eventlog[:n/2], '\n') + 1
	tail := len(a.Eventlog) - n/2
	tail += strings.IndexByte(a.Eventlog[tail:], '\n') + 1
	note, _ := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: max(a.Inactive, 1), Name: "cut",
		Context: fmt.Appendf(nil, `{"bytes":%d}`, tail-head)})
	a.Eventlog = a.Eventlog[:head] + string(note) + a.Eventlog[tail:]
}

// Protocol is the version of what is said here. A request of another one is refused.
const Protocol = 1

// A Request is what a user asks, by a verb of Verbs.
type Request struct {
	Protocol int             `json:"protocol"`
	Key      string          `json:"key,omitempty"` // of a submission that may be repeated
	Jobspec  json.RawMessage `json:"jobspec,omitempty"`
	Urgency  *int            `json:"urgency,omitempty"`
	ID       jobid.ID        `json:"id,omitempty"`
	All      bool            `json:"all,omitempty"`   // also jobs of others, or that are over
	Limit    int             `json:"limit,omitempty"` // how many of those that are over; 0 means 100
	Note     string          `json:"note,omitempty"`
	Ranks    *idset.Set      `json:"ranks,omitempty"`
	Force    bool            `json:"force,omitempty"`
	MaxAge   *fsd.Duration   `json:"max_age,omitempty"`
	MaxCount *int            `json:"max_count,omitempty"`

	// Which jobs that are over: see Matches. User is also of those that are not.
	User   *uint32            `json:"user,omitempty"`
	Since  eventlog.Timestamp `json:"since,omitempty"` // when they ended
	Name   string             `json:"name,omitempty"`
	Result string             `json:"result,omitempty"`
}

// Matches reports whether a job is one of those that the request asks for. What the request
// does not name matches.
func (r *Request) Matches(j *JobInfo) bool {
	return (r.User == nil || *r.User == j.UserID) && (r.Since == 0 || j.Inactive >= r.Since) &&
		(r.Name == "" || r.Name == j.Name) && (r.Result == "" || r.Result == j.Result)
}

// An Answer is what is answered. Error says why a request is refused; then the rest is empty.
type Answer struct {
	Error  string    `json:"error,omitempty"`
	Retry  bool      `json:"retry,omitempty"` // the same request may succeed later
	ID     jobid.ID  `json:"id,omitempty"`
	Count  int       `json:"count,omitempty"`
	Old    int       `json:"old,omitempty"`
	Jobs   []JobInfo `json:"jobs,omitempty"`
	Nodes  []Node    `json:"nodes,omitempty"`
	Status *Status   `json:"status,omitempty"`
}

// A JobInfo tells of a job. Times are seconds since 1970, 0 if there is none yet.
type JobInfo struct {
	ID       jobid.ID           `json:"id"`
	UserID   uint32             `json:"userid"`
	Name     string             `json:"name,omitempty"`
	State    string             `json:"state"`
	Result   string             `json:"result,omitempty"`
	Waiting  string             `json:"waiting,omitempty"`
	Urgency  int                `json:"urgency"`
	Started  bool               `json:"started,omitempty"` // its shells run, or ran
	NNodes   uint64             `json:"nnodes,omitempty"`
	NCores   int64              `json:"ncores,omitempty"`
	Ranks    *idset.Set         `json:"ranks,omitempty"`
	Submit   eventlog.Timestamp `json:"t_submit,omitempty"`
	Run      eventlog.Timestamp `json:"t_run,omitempty"`
	Cleanup  eventlog.Timestamp `json:"t_cleanup,omitempty"`
	Inactive eventlog.Timestamp `json:"t_inactive,omitempty"`
	Status   *int               `json:"status,omitempty"` // the wait status
	Holders  []Holder           `json:"holders,omitempty"`
	Eventlog string             `json:"eventlog,omitempty"` // of the verb job, and of the reader's
}

// These are how many bytes of what a user wrote are in a JobInfo: an answer has room for 10 000.
const maxName, maxWaiting = 64, 256

// cut returns what of a text is shown, on terminals of others too.
func cut(text string, n int) string {
	return Printable(strings.ToValidUTF8(text[:min(len(text), n)], ""))
}

// Printable returns a text with ? for what may control a terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// Describe tells of a job as its log says, without Holders and Eventlog. spec and r may be nil.
func Describe(job *jobstate.Job, spec *jobspec.Spec, r *rset.R) JobInfo {
	info := JobInfo{ID: job.ID(), UserID: job.UserID(), State: job.State().String(), Urgency: job.Urgency(), Started: job.Started()}
	if job.State() != jobstate.StateInactive {
		info.Waiting = cut(job.Waiting(), maxWaiting)
	}
	if spec != nil {
		info.Name = cut(spec.Name(), maxName)
	}
	if result, ok := job.Result(); ok {
		info.Result = result.String()
	}
	if r != nil {
		info.Ranks = r.Ranks()
		info.NNodes, info.NCores = uint64(info.Ranks.Len()), r.Count("core")
	}
	info.Submit, _ = job.Entered(jobstate.StateNew)
	info.Run, _ = job.Entered(jobstate.StateRun)
	info.Cleanup, _ = job.Entered(jobstate.StateCleanup)
	info.Inactive, _ = job.Entered(jobstate.StateInactive)
	if status, ok := job.WaitStatus(); ok {
		info.Status = &status
	}
	return info
}

// A Holder says what holds nodes of a job, and since when.
type Holder struct {
	ID    jobid.ID           `json:"id"`
	What  string             `json:"what"`
	Since eventlog.Timestamp `json:"since,omitempty"`
	Ranks *idset.Set         `json:"ranks"`
}

// A Node tells of a node.
type Node struct {
	Rank    uint32    `json:"rank"`
	Host    string    `json:"host,omitempty"`
	Up      bool      `json:"up"`
	Drained string    `json:"drained,omitempty"` // the reason
	Since   time.Time `json:"since,omitzero"`    // of the drain
	Holders []Holder  `json:"holders,omitempty"`
}

// A Status tells of the active manager.
type Status struct {
	Holder  string         `json:"holder"`
	Epoch   uint64         `json:"epoch"`
	Seq     uint64         `json:"seq"` // the last message of the log; 0: the log is elsewhere
	Up      uint64         `json:"up"`  // nodes
	Down    uint64         `json:"down"`
	Drained uint64         `json:"drained"`
	Jobs    map[string]int `json:"jobs"` // by state
	Inputs  uint64         `json:"inputs"`
	Refused uint64         `json:"refused"` // inputs
	Commits uint64         `json:"commits"`
	// Standbys are the managers that stand by, in the order of their names.
	Standbys []Standby `json:"standbys,omitempty"`
}

// A Standby follows the log, as far as Seq.
type Standby struct {
	Name string `json:"name"`
	Seq  uint64 `json:"seq"`
}

// Verbs are those of requests, and whether only the owner of the instance may use them.
var Verbs = map[string]bool{
	"submit": false, "cancel": false, "urgency": false, "wait": false, "jobs": false, "job": false, "nodes": false,
	"status": false, "drain": true, "resume": true, "purge": true, "takeover": true, "lost": true,
}

// ReaderVerb is what a user asks of a reader, with one of the others as the argument. Both
// answer a guest only with its own jobs.
const (
	ReaderVerb   = "reader"
	VerbHistory  = "history"  // jobs that are over, the last one first
	VerbArchived = "archived" // one job that is over, with its eventlog
)
