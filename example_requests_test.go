package joblife_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
)

// Ids as Flux makes them: ƒ3DyvX and ƒ5Sxr3.
const first, second = 25165824, 50331648

// pass passes inputs to a manager at a time in seconds, and shows each Ready to do.
func pass(m *joblife.Manager, now int64, do func(*joblife.Ready), inputs ...joblife.Input) {
	for _, in := range inputs {
		if err := m.Step(time.Unix(now, 0), in); err != nil {
			fmt.Println(err)
		}
		for rd := new(joblife.Ready); m.Ready(rd); check(m.Done(rd.Seq)) {
			do(rd)
		}
	}
}

func nothing(*joblife.Ready) {}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func try[T any](v T, err error) T {
	check(err)
	return v
}

func oneNode() *jobspec.Spec {
	return try(jobspec.New(jobspec.Job{Nodes: 1, Exclusive: true, Command: []string{"app"}}))
}

func oneCore(rank uint32) *rset.R {
	return try(rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(rank), Children: map[string]*idset.Set{"core": idset.Of(0)}}}}))
}

// An instance whose users are not trusted has limits.
func ExampleConfig() {
	m := try(joblife.New(joblife.Config{
		MaxActive:    1,                             // jobs
		MaxLog:       600,                           // bytes of a job's log
		TombstoneAge: jobstate.Some(time.Hour * 24), // how long dependencies may name a purged job
		Offline:      idset.Of(3),                   // the nodes that are down now; the input Offline follows
	}))
	guest := joblife.Cred{UserID: 1000, Guest: true}
	long := json.RawMessage(`{"note":"` + strings.Repeat("x", 400) + `"}`)
	pass(m, 1_700_000_000, nothing,
		joblife.Submit{ID: first, By: guest, Spec: oneNode(), Urgency: jobstate.UrgencyDefault},
		joblife.Submit{ID: second, By: guest, Spec: oneNode(), Urgency: jobstate.UrgencyDefault},
		joblife.Memo{ID: first, By: guest, Values: long},
	)
	// Output:
	// joblife: limit reached: 1 jobs are active, or have housekeeping or a canceled request without a response; MaxActive is 1
	// joblife: limit reached: the log of ƒ3DyvX has no room for the event "memo": 742 bytes, at most 600 by MaxLog
}

// Counts for a monitor, while a user waits for a job. A volatile memo is in the journal, but in
// no log.
func ExampleManager_Stats() {
	m := try(joblife.New(joblife.Config{}))
	show := func(rd *joblife.Ready) {
		for _, e := range rd.Journal {
			if e.Volatile {
				fmt.Println("volatile:", e.Entry.Name, string(e.Entry.Context))
			}
		}
		for _, a := range rd.Answers {
			fmt.Println(a.Tag, a.Job, a.State, a.Err)
		}
		s := m.Stats()
		fmt.Println(s.States, "queued", s.Queue.Pending+s.Queue.Blocked, "actions", s.Actions, "housekeeping", s.Housekeeping,
			"waits", s.Waits, "faults", s.Faults, "canceled", s.Purge.Resident.Canceled)
	}
	pass(m, 1_700_000_000, show,
		joblife.Submit{ID: first, Spec: oneNode(), Urgency: jobstate.UrgencyDefault},
		joblife.Wait{Tag: 7, ID: first, States: jobstate.StateRun | jobstate.StateInactive},
		joblife.Memo{ID: first, Values: json.RawMessage(`{"progress":"5%"}`), Volatile: true},
		joblife.Raise{ID: first, Type: "cancel"},
	)
	// Output:
	// map[SCHED:1] queued 1 actions 0 housekeeping 0 waits 0 faults 0 canceled 0
	// volatile: memo {"progress":"5%"}
	// map[SCHED:1] queued 1 actions 0 housekeeping 0 waits 1 faults 0 canceled 0
	// 7 ƒ3DyvX INACTIVE <nil>
	// map[INACTIVE:1] queued 0 actions 0 housekeeping 0 waits 0 faults 0 canceled 1
}

// A scheduler that gives a node twice is out of step: its session ends, and its next hello
// tells it what is held.
func ExampleSchedResponse() {
	m := try(joblife.New(joblife.Config{}))
	pass(m, 1_700_000_000, nothing,
		joblife.SchedHello{}, joblife.SchedReady{},
		joblife.Submit{ID: first, Spec: oneNode(), Urgency: jobstate.UrgencyDefault},
		joblife.Submit{ID: second, Spec: oneNode(), Urgency: jobstate.UrgencyDefault},
		joblife.SchedResponse{ID: first, R: oneCore(0)},
	)
	err := m.Step(time.Unix(1_700_000_000, 0), joblife.SchedResponse{ID: second, R: oneCore(0)})
	fmt.Println(err)
	if errors.Is(err, joblife.ErrConflict) {
		pass(m, 1_700_000_000, func(rd *joblife.Ready) {
			if rd.Hello != nil {
				fmt.Println(rd.Hello.Responses[0].ID, "holds", rd.Hello.Responses[0].R)
			}
		}, joblife.SchedLost{}, joblife.SchedHello{})
	}
	// Output:
	// joblife: double booking: ƒ5Sxr3 and ƒ3DyvX both have rank0/core0
	// ƒ3DyvX holds rank0/core0
}

// The store failed, so nobody knows what is durable. A new Manager reads it.
func ExampleManager_Abandon() {
	m := try(joblife.New(joblife.Config{}))
	now := time.Unix(1_700_000_000, 0)
	check(m.Step(now, joblife.Submit{ID: first, Spec: oneNode(), Urgency: jobstate.UrgencyDefault}))
	var rd joblife.Ready
	m.Ready(&rd)
	durable := slices.Clone(rd.Append[:2]) // jobspec and submit; then the disk was full
	check(m.Abandon(rd.Seq))
	err := m.Step(now, joblife.Tick{})
	fmt.Println(errors.Is(err, joblife.ErrAbandoned), err)
	m, left, err := joblife.Restore(now, joblife.Config{}, func(yield func(joblife.Record, error) bool) {
		for _, r := range durable {
			if !yield(r, nil) {
				return
			}
		}
	})
	fmt.Println(left.Jobs, m.Stats().MaxID, err)
	// Output:
	// true joblife: the manager was abandoned: restore one from the store
	// [ƒ3DyvX] ƒ3DyvX <nil>
}

// The manager died while an epilog ran. The node says that it still does.
func ExampleReattach() {
	config := joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{Command: []string{"scrub"}, PerRank: true}}}}
	m := try(joblife.New(config))
	var store []byte
	pass(m, 1_700_000_000, func(rd *joblife.Ready) { store = try(joblife.AppendRecords(store, rd.Append)) },
		joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{},
		joblife.Submit{ID: first, Spec: oneNode(), Urgency: jobstate.UrgencyDefault},
		joblife.SchedResponse{ID: first, R: oneCore(0)},
		joblife.ExecResponse{ID: first, Type: exec.ResponseStart},
		joblife.ExecResponse{ID: first, Type: exec.ResponseFinish},
		joblife.ExecResponse{ID: first, Type: exec.ResponseRelease, Final: true},
	)

	m, left, err := joblife.Restore(time.Unix(1_600_000_000, 0), config, joblife.ReadRecords(strings.NewReader(string(store))))
	check(err)
	fmt.Println("now, or when the last record was written:", left.Time, m.Now().Unix())
	for _, u := range left.Unresolved {
		fmt.Println(u.Action, "of job", u.Job, "was lost on rank", u.Ranks)
		still := joblife.Action{Job: u.Job, Key: u.Action, Ranks: u.Ranks}
		ended := perilog.Report{Action: u.Action, Kind: perilog.ReportExited, Attempt: u.Attempt}
		pass(m, 1_700_000_060, nothing, joblife.Reattach{Action: still}, joblife.Report{Job: u.Job, Report: ended})
	}
	v, _ := m.Job(first)
	fmt.Println(v.State())
	// Output:
	// now, or when the last record was written: 1700000000.0 1700000000
	// epilog job-manager.epilog of job ƒ3DyvX was lost on rank 0
	// INACTIVE
}

// An orderly end: nothing is launched any more, and what runs has a minute.
func ExampleShutdown() {
	m := try(joblife.New(joblife.Config{Actions: perilog.Config{Prologs: []perilog.ActionConfig{{Command: []string{"mount"}, PerRank: true}}}}))
	pass(m, 1_700_000_000, nothing,
		joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{},
		joblife.Submit{ID: first, Spec: oneNode(), Urgency: jobstate.UrgencyDefault},
		joblife.SchedResponse{ID: first, R: oneCore(0)},
		joblife.Shutdown{Deadline: 1_700_000_060},
	)
	fmt.Println(m.Stopped())
	at, _ := m.Deadline()
	pass(m, at.Unix(), nothing, joblife.Tick{})
	fmt.Println(m.Stopped(), at.Unix())
	// Output:
	// false
	// perilog: a shutdown has begun: only a restart goes on
	// true 1700000060
}

// The clock jumps, and no limit purges anything until somebody has looked at it.
func ExampleAcceptClock() {
	m := try(joblife.New(joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(time.Hour)}}))
	pass(m, 1_700_000_000, nothing, joblife.Submit{ID: first, Spec: oneNode(), Urgency: jobstate.UrgencyDefault}, joblife.Raise{ID: first, Type: "cancel"}, joblife.Tick{})
	show := func(rd *joblife.Ready) {
		for _, f := range rd.Faults {
			fmt.Println(f)
		}
		if rd.Unlink != nil {
			fmt.Println("purge", rd.Unlink)
		}
	}
	pass(m, 1_900_000_000, show, joblife.Tick{}, joblife.AcceptClock{}, joblife.Tick{})
	// Output:
	// joblife: purge: clock stepped: 2030-03-17T17:46:40Z is too far after 2023-11-14T22:13:20Z; accept the clock if it is right
	// purge [ƒ3DyvX]
}
