package joblifetest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
)

func TestPolicy(t *testing.T) { rapid.Check(t, checkPolicy) }

// An embedder's test tells the World what the Manager wants done, and what became of it.
// This executor releases a node where the job still runs.
func ExampleWorld() {
	const id = 6731191091817518
	m, _ := joblife.New(joblife.Config{})
	w := joblifetest.NewWorld(perilog.Config{})
	step := func(in joblife.Input) {
		if err := m.Step(time.Unix(1e9, 0), in); err != nil {
			fmt.Println(err)
		}
		for rd := new(joblife.Ready); m.Ready(rd); {
			w.Do(rd)
			if err := m.Done(rd.Seq); err != nil {
				fmt.Println(err)
			}
		}
	}
	for _, in := range []joblife.Input{
		joblife.Submit{ID: id, Spec: joblifetest.Jobspecs(1).Example(1), Urgency: 16}, joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{},
	} {
		step(in)
	}
	node, _ := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(0), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	w.Allocated(id, node)
	step(joblife.SchedResponse{ID: id, R: node})
	step(joblife.ExecResponse{ID: id, Type: exec.ResponseStart})
	// w.Ended(id, nil) belongs here.
	step(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish})
	step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
	fmt.Println(errors.Join(w.Err(), joblifetest.Check(m)))
	// Output: joblifetest: job ƒuZZybuNNy: I3: rank 0 is freed, and the job runs there
}

// Any generated log is valid.
func ExampleLogs() {
	log := joblifetest.Logs().Example(1)
	fmt.Println(len(jobstate.Validate(log)))
	// Output: 0
}

// A hook that lets each job wait for a minute asks for the time again after a restart,
// since timers go with the Manager.
func ExampleRunHooks() {
	remind := func(e *joblife.HookEvent) {
		if submitted, ok := e.Job.Job().Entered(jobstate.StateNew); ok {
			e.PostAt(submitted+60, joblife.DependencyRemove{ID: e.Job.ID(), Description: "minute"})
		}
	}
	hooks := func() []joblife.Hooks {
		return []joblife.Hooks{{Restored: remind, Event: func(e *joblife.HookEvent) {
			if e.Entry.Name == jobstate.EventSubmit {
				e.Post(joblife.DependencyAdd{ID: e.Job.ID(), Description: "minute"})
				remind(e)
			}
		}}}
	}
	run := rapid.Custom(func(t *rapid.T) string { // rapid.Check in a test
		joblifetest.RunHooks(t, hooks, joblifetest.Workloads(5, 4).Draw(t, "workload"))
		return "nothing is forgotten"
	})
	fmt.Println(run.Example(1))
	// Output: nothing is forgotten
}

// A logStore keeps all records in a log, and has nothing to unlink.
type logStore struct {
	*logfile.Log
	name string
}

func openLog(name string) (joblifetest.Store, error) {
	log, err := logfile.Open(name, logfile.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		log, err = logfile.Create(name, logfile.Options{})
	}
	return &logStore{log, name}, err
}

func (s *logStore) Append(records []joblife.Record) error {
	lines, err := joblife.AppendRecords(nil, records)
	if err != nil {
		return err
	}
	return s.Log.Append(lines)
}

func (*logStore) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }

func (s *logStore) Records() iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		f, err := os.Open(s.name)
		if err != nil {
			yield(joblife.Record{}, err)
			return
		}
		defer f.Close()
		joblife.ReadRecords(f)(yield)
	}
}

// A test of a store gives each store a place of its own.
func ExampleCheckStore() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	fmt.Println(joblifetest.CheckStore(func(name string) (joblifetest.Store, error) {
		return openLog(filepath.Join(dir, name))
	}))
	// Output: <nil>
}

// An embedder's tests call Check between Steps.
func ExampleCheck() {
	m, err := joblife.New(joblife.Config{})
	if err != nil {
		panic(err)
	}
	text, _ := joblifetest.Jobspecs(4).Example(1).MarshalJSON()
	if err := m.Step(time.Unix(1e9, 0), joblife.Submit{ID: 7, Jobspec: text, Urgency: jobstate.UrgencyDefault}); err != nil {
		panic(err)
	}
	fmt.Println(joblifetest.Check(m))
	// Output: <nil>
}

// Most of these jobs fit on a machine of four nodes.
func ExampleJobspecs() {
	for seed := range 3 {
		j := joblifetest.Jobspecs(4).Example(seed)
		fmt.Println(j.Command(), "for", j.Duration(), "on", j.Counts().Cores, "cores")
	}
	// Output:
	// [sleep] for 1s on 2 cores
	// [hostname] for 0s on unknown cores
	// [sleep] for 1s on 2 cores
}

// Resource sets of 1 to 8 nodes.
func ExampleRs() {
	for seed := range 3 {
		fmt.Println(joblifetest.Rs(8).Example(seed))
	}
	// Output:
	// rank0/core[0-3]
	// rank[0-4]/core[0-2]
	// rank0/core[0-2]
}

// What two nodes may report of a prolog. A test passes the reports to Step.
func ExampleReports() {
	prolog := jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "job-manager.prolog"}
	l := joblife.Launch{Job: 6731191091817518, Launch: perilog.Launch{Action: prolog, Attempt: 1, Ranks: idset.Range(0, 1)}}
	for _, r := range joblifetest.Reports(l).Example(3) {
		fmt.Println(r.Job, r.Action, "rank", r.Rank, r.Kind, r.Status)
	}
	// Output:
	// ƒuZZybuNNy prolog job-manager.prolog rank 1 started 0
	// ƒuZZybuNNy prolog job-manager.prolog rank 0 launch failed 32512
	// ƒuZZybuNNy prolog job-manager.prolog rank 1 exited 0
}

// Up to four jobs for two nodes.
func ExampleWorkloads() {
	for _, a := range joblifetest.Workloads(4, 2).Example(1) {
		fmt.Println("after", a.After, "a job of user", a.Submit.By.UserID, "that runs", a.Runs, "with status", a.Status, "canceled after", a.Cancel)
	}
	// Output:
	// after 0s a job of user 0 that runs 53s with status 0 canceled after 48s
	// after 1s a job of user 1 that runs 3s with status 0 canceled after 0s
	// after 4s a job of user 1 that runs 1m0s with status 256 canceled after 0s
}
