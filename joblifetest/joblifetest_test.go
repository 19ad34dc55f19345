package joblifetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

func TestGeneratedLogsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := Logs().Draw(t, "log")
		for _, f := range jobstate.Validate(log) {
			if f.Level > jobstate.LevelNote {
				t.Fatalf("%v\n%s", f, log)
			}
		}
		if j, err := jobstate.Replay(1, log); err != nil || j.State() != jobstate.StateInactive {
			t.Fatalf("%v\n%s", err, log)
		}
	})
}

func TestEachRankReportsItsEnd(t *testing.T) {
	kinds, again := make(map[perilog.ReportKind]bool), false
	check := func(t *rapid.T) {
		ranks := idset.Of(rapid.SliceOfN(rapid.Uint32Range(0, 9), 1, 5).Draw(t, "ranks")...)
		ended := new(idset.Set)
		for _, r := range Reports(joblife.Launch{Job: 1, Launch: perilog.Launch{Attempt: 2, Ranks: ranks}}).Draw(t, "reports") {
			if r.Job != 1 || r.Attempt != 2 || !ranks.Contains(r.Rank) {
				t.Fatalf("%+v", r)
			}
			kinds[r.Kind] = true
			again = again || ended.Contains(r.Rank)
			if r.Kind != perilog.ReportStarted {
				ended.Insert(r.Rank)
			}
		}
		if !ended.Equal(ranks) {
			t.Fatalf("%v of %v", ended, ranks)
		}
	}
	for i := 0; i < 50 && (len(kinds) < 4 || !again); i++ { // 20 runs each, in short tests
		rapid.Check(t, check)
	}
	require.Len(t, kinds, 4)
	require.True(t, again)
}

var prolog = jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "job-manager.prolog"}

// nodes returns an R of a core on each of some ranks.
func nodes(t *testing.T, ranks ...uint32) *rset.R {
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(ranks...), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	return r
}

func TestTheWorldKnowsWhatIsWrong(t *testing.T) {
	r := nodes(t, 0, 1)
	part := nodes(t, 0)
	epilog := jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
	over := func(w *World) { w.start(1, r); w.Ended(1, nil) }
	freed := func(w *World) { w.free(alloc.Free{ID: 1, R: r, Final: true}) }
	signaled := func(signal int) func(*World) {
		return func(w *World) {
			over(w)
			w.Do(&joblife.Ready{
				Launch: []joblife.Launch{{Job: 1, Launch: perilog.Launch{Action: epilog, Attempt: 1, Ranks: r.Ranks()}}},
			})
			w.Do(&joblife.Ready{
				Signal: []joblife.Signal{{Job: 1, Signal: perilog.Signal{Action: epilog, Attempt: 1, Ranks: r.Ranks(), Signal: signal}}},
			})
			freed(w)
		}
	}
	for _, c := range []struct {
		name, want string // "": nothing is wrong
		do         func(w *World)
	}{
		{"freed twice", "I1", func(w *World) { w.free(alloc.Free{ID: 1, R: part}); w.free(alloc.Free{ID: 1, R: part}) }},
		{"final too early", "I1", func(w *World) { w.free(alloc.Free{ID: 1, R: part, Final: true}) }},
		{"final twice", "I2", func(w *World) {
			w.free(alloc.Free{ID: 1, R: r, Final: true})
			w.free(alloc.Free{ID: 1, Final: true})
		}},
		{"freed while it runs", "I3", func(w *World) { w.start(1, r); freed(w) }},
		{"freed without an epilog", "I3", func(w *World) { over(w); freed(w) }},
		{"freed without an epilog that went", "", func(w *World) { over(w); w.Configure(perilog.Config{}); freed(w) }},
		{"freed without an epilog that root ended", "", func(w *World) {
			over(w)
			w.input(joblife.ForceFinish{Action: joblife.Action{Job: 1, Key: epilog}})
			freed(w)
		}},
		{"freed while an epilog stops", "I3", signaled(15)},
		{"freed when an epilog was killed", "", signaled(9)},
		{"not freed", "I2", func(w *World) { _ = w.End() }},
		{"forgotten by hello, and it runs", "I3", func(w *World) { w.start(1, r); w.hello(&alloc.Announcement{}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWorld(perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}})
			w.Allocated(1, r)
			require.NoError(t, w.Err())
			c.do(w)
			require.Equal(t, c.want != "", w.Err() != nil, w.Err())
			if c.want != "" {
				require.ErrorContains(t, w.Err(), c.want)
			}
		})
	}
}

func TestTheWorldKnowsWhichPrologsSucceeded(t *testing.T) {
	r := nodes(t, 0, 1)
	for _, c := range []struct {
		name     string
		tolerate perilog.Tolerate
		failed   string // ranks that a control line says failed
		status   int32  // on rank 1
		wrong    bool
	}{
		{"all succeeded", perilog.Tolerate{}, "", 0, false},
		{"one exited with 1", perilog.Tolerate{}, "", 256, true},
		{"one said so", perilog.Tolerate{}, "1", 0, true},
		{"one is tolerated", perilog.Tolerate{Count: 1}, "1", 0, false},
		{"two are too many", perilog.Tolerate{Count: 1}, "0-1", 0, true},
		{"one is named", perilog.Tolerate{Count: 1, Ranks: idset.Of(0)}, "0-1", 0, false},
		{"one had to be dropped", perilog.Tolerate{Count: 1, Drop: true}, "1", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWorld(perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}, Tolerate: c.tolerate})
			w.Allocated(1, r)
			w.launch(joblife.Launch{Job: 1, Launch: perilog.Launch{Action: prolog, Attempt: 1, Ranks: r.Ranks()}})
			said, err := idset.Parse(c.failed)
			require.NoError(t, err)
			for _, p := range w.Processes() {
				w.Failed(p, idset.Intersect(said, idset.Of(p.Rank)))
				require.True(t, w.Exit(p, c.status*int32(p.Rank)))
			}
			w.start(1, r)
			require.Equal(t, c.wrong, w.Err() != nil, w.Err())
		})
	}
}

func TestTheWorldDoesNotMindTheOrderOfAnR(t *testing.T) {
	r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"1,4","children":{"core":"0"}},{"rank":"3","children":{"core":"1"}}]}}`))
	require.NoError(t, err)
	rest, err := r.Restrict(idset.Of(3, 4))
	require.NoError(t, err)
	w := NewWorld(perilog.Config{})
	w.Allocated(1, r)
	w.hello(&alloc.Announcement{Responses: []alloc.HelloResponse{{JobInfo: alloc.JobInfo{ID: 1}, R: rest}}})
	require.NoError(t, w.Err())
}

// chains are workloads of jobs that depend on earlier ones.
func chains(t *rapid.T) []Arrival {
	jobs := Workloads(8, 4).Draw(t, "workload")
	for i := range jobs {
		in := &jobs[i].Submit
		in.ID = jobid.ID(i + 1)
		if i == 0 || rapid.IntRange(0, 2).Draw(t, "alone") == 0 {
			continue
		}
		scheme := rapid.SampledFrom([]string{"after", "afterok", "afterany", "afternotok", "begin-time"}).Draw(t, "scheme")
		value := jobid.ID(rapid.IntRange(1, i).Draw(t, "on")).String()
		if scheme == "begin-time" {
			value = fmt.Sprint(epoch().Unix() + 3600 + int64(rapid.IntRange(0, 90).Draw(t, "at")))
		}
		require.NoError(t, amend(in, "dependencies", func(*jobspec.Spec) string {
			return fmt.Sprintf(`[{"scheme":%q,"value":%q}]`, scheme, value)
		}))
	}
	return jobs
}

func TestTheHooksForDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		RunHooks(t, func() []joblife.Hooks { return []joblife.Hooks{joblife.Dependencies()} }, chains(t))
	})
}

func TestARankThatAPrologReleasedIsPrepared(t *testing.T) {
	r := nodes(t, 0, 1)
	w := NewWorld(perilog.Config{Prologs: []perilog.ActionConfig{{Leader: 4}}, Tolerate: perilog.Tolerate{Count: 1, AnyFailure: true, Drop: true}})
	w.Allocated(1, r)
	w.launch(joblife.Launch{Job: 1, Launch: perilog.Launch{Action: prolog, Attempt: 1, Ranks: idset.Of(4), Serves: r.Ranks()}})
	p := w.Processes()[0]
	w.Released(p, idset.Of(0))
	require.True(t, w.Exit(p, 256))
	w.start(1, nodes(t, 0))
	require.NoError(t, w.Err())
}

func TestOnlyACommandThatExitedHasSucceeded(t *testing.T) {
	r := nodes(t, 0)
	for kind, wrong := range map[perilog.ReportKind]bool{
		perilog.ReportStarted: true, perilog.ReportExited: false, perilog.ReportLaunchFailed: true, perilog.ReportUnreachable: true,
	} {
		w := NewWorld(perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}})
		w.Allocated(1, r)
		w.launch(joblife.Launch{Job: 1, Launch: perilog.Launch{Action: prolog, Attempt: 1, Ranks: r.Ranks()}})
		w.input(joblife.Report{Job: 1, Report: perilog.Report{Action: prolog, Kind: kind, Attempt: 1}})
		w.start(1, r)
		require.Equal(t, wrong, w.Err() != nil, "%v: %v", kind, w.Err())
	}
}

func TestCheckTakesAVolatileManager(t *testing.T) {
	m, err := joblife.New(joblife.Config{Volatile: true})
	require.NoError(t, err)
	spec, err := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"true"}})
	require.NoError(t, err)
	for _, in := range []joblife.Input{
		joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{},
		joblife.Submit{ID: 1, Spec: spec, Urgency: 16}, joblife.SchedResponse{ID: 1, R: nodes(t, 0)},
	} {
		require.NoError(t, m.Step(epoch(), in))
		for rd := new(joblife.Ready); m.Ready(rd); {
			require.NoError(t, m.Done(rd.Seq))
		}
		require.NoError(t, Check(m))
	}
	v, ok := m.Job(1)
	require.True(t, ok)
	require.Equal(t, jobstate.StateRun, v.State())
}

// 29 of 100 ranks may fail, although 0.29*100 is less as a float64.
func TestTheWorldCountsAFractionAsTheManagerDoes(t *testing.T) {
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, 99), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	for _, failed := range []uint32{29, 30} {
		w := NewWorld(perilog.Config{
			Prologs: []perilog.ActionConfig{{PerRank: true}}, Tolerate: perilog.Tolerate{Fraction: 0.29, AnyFailure: true},
		})
		w.Allocated(1, r)
		w.Do(&joblife.Ready{Launch: []joblife.Launch{{Job: 1, Launch: perilog.Launch{Action: prolog, Attempt: 1, Ranks: r.Ranks()}}}})
		for _, p := range w.Processes() {
			w.Exit(p, int32(max(failed, p.Rank)-p.Rank)) // 0 from that rank on
		}
		w.start(1, r)
		require.Equal(t, failed > 29, w.Err() != nil, "%v", w.Err())
	}
}
