// Package wire has what the roles of a cluster say to each other, and on which subjects. All
// messages are JSON. I is the name of the instance, such as "main".
//
//	jl.I.req.UID.VERB[.ARG]  a request of a user; the server's permissions prove UID
//	jl.I.up.RANK             what a node says: an Up
//	jl.I.do.RANK             what the active manager says to a node: a Do
//	jl.I.epoch               the active manager lives: a Beat, each BeatEvery
//	jl.I.event.UID.JOB       events of a job, live
//	jl.I.log.rec             the stream JL_I: the records of each commit, in lines of joblife.AppendRecords
//	jl.I.log.fence           an empty message in it: its sequence is the epoch of a new manager
//	jl.I.snap.SEQ            the stream JLSNAP_I: records that replace those up to SEQ
//	jl.I.archive.UID.JOB     the stream JLARCHIVE_I: each job that has ended, an Archived
//
// The key "active" of the bucket JL_I has the lease.
package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
)

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
	s := "jl." + string(i)
	for _, p := range parts {
		s += "." + fmt.Sprint(p)
	}
	return s
}

// Inbox is where a user gets answers, and nothing else.
func Inbox(uid uint32) string { return "_INBOX_" + strconv.FormatUint(uint64(uid), 10) }

// An Up is what a node says. The manager takes the first Up of a session only with Hello, and
// the others in the order of Seq, which begins with 1. After a gap, or without the session, it
// asks for another by a Do with Hello set.
type Up struct {
	Epoch   uint64            `json:"epoch"`   // of the manager that it is for
	Session string            `json:"session"` // the node's own, never used before
	Seq     uint64            `json:"seq"`     // of the last status, also in a beat
	Hello   bool              `json:"hello,omitempty"`
	Tasks   []exec.TaskStatus `json:"tasks,omitempty"` // all with Hello, else what changed
}

// A Do is what the manager says to a node, in the order of Seq, which begins with 1. A node
// ignores an epoch before the last, and begins another session after a gap.
type Do struct {
	Epoch   uint64  `json:"epoch"`
	Session string  `json:"session"`
	Seq     uint64  `json:"seq"` // of the last order, also in a beat
	Hello   bool    `json:"hello,omitempty"`
	Orders  []Order `json:"orders,omitempty"`
}

// An Order is an exec.Command for one node, with what it has to know of the job.
type Order struct {
	Kind   exec.CommandKind `json:"kind"`
	Task   exec.Task        `json:"task"`
	Args   []string         `json:"args,omitempty"`
	UserID uint32           `json:"userid,omitempty"` // whose job it is
	Signal int              `json:"signal,omitempty"`
}

// A Beat says who is active.
type Beat struct {
	Epoch  uint64 `json:"epoch"`
	Holder string `json:"holder"`
}

// An Archived is a job that has ended.
type Archived struct {
	ID       jobid.ID        `json:"id"`
	Jobspec  json.RawMessage `json:"jobspec"`
	R        json.RawMessage `json:"R,omitempty"`
	Eventlog string          `json:"eventlog"`
}
