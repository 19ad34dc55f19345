package perilog_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// A cluster is what a Job lives in: its log, the reducer, the ledger, the
// processes on its nodes, and an embedder that does what Take says. After every
// input it checks what must hold of every history.
type cluster struct {
	t      require.TestingT
	config perilog.Config
	spec   perilog.JobSpec
	job    *perilog.Job
	state  *jobstate.Job
	ledger *rset.Ledger
	now    eventlog.Timestamp

	log    []byte
	names  []string // of the events, with the status of a finish
	starts map[string]int

	keys    []perilog.Key         // the actions that were launched
	running map[string]*idset.Set // by action: where its process runs
	drains  *idset.Set            // asked for, not done yet
	drained *idset.Set            // out of service: nothing is allocated there
	forced  *idset.Set            // ended by force: whoever did it knows of the process
	early   *idset.Set            // what the executor gave up while the job runs
	freed   *idset.Set
	finals  int
	signals int

	started bool // the job shells run
	autoEnd bool // free and clean are posted when they may be
	burned  bool // it crashed between two steps
	fuse    int  // how many steps the embedder still takes before it crashes; 0: it does not
}

func newCluster(t require.TestingT, ranks int, c perilog.Config, change func(*perilog.JobSpec)) *cluster {
	return newClusterOf(t, hostsR(t, ranks), c, change)
}

func newClusterOf(t require.TestingT, r *rset.R, c perilog.Config, change func(*perilog.JobSpec)) *cluster {
	w := &cluster{
		t: t, config: c, spec: perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, UserID: 100, R: r}, Owner: 5},
		ledger: rset.NewLedger(r), now: 100, autoEnd: true,
		starts: map[string]int{}, running: map[string]*idset.Set{},
		drains: new(idset.Set), drained: new(idset.Set), forced: new(idset.Set), early: new(idset.Set), freed: new(idset.Set),
	}
	if change != nil {
		change(&w.spec)
	}
	w.state = jobstate.NewJob(w.spec.Job)
	var err error
	w.job, err = perilog.NewJob(c, w.spec)
	require.NoError(t, err)
	return w
}

// hostsR returns the R of n nodes fluke0 and so on.
func hostsR(t require.TestingT, n int) *rset.R {
	r, err := rset.Parse(fmt.Appendf(nil, `{"version":1,"execution":{"R_lite":[{"rank":"0-%d","children":{"core":"0-3"}}],"nodelist":["fluke[0-%d]"]}}`, n-1, n-1))
	if n == 1 {
		r, err = rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}}],"nodelist":["fluke0"]}}`))
	}
	require.NoError(t, err)
	return r
}

// allocate brings the job to RUN.
func (w *cluster) allocate() *cluster {
	w.event("submit", `{"userid":100,"urgency":16,"flags":0,"version":1}`)
	w.event("validate", "")
	w.event("depend", "")
	w.event("priority", `{"priority":16}`)
	w.event("alloc", "")
	w.pump()
	return w
}

// event logs an event and has it folded.
func (w *cluster) event(name, context string) perilog.Note {
	e := eventlog.Entry{Timestamp: w.now, Name: name}
	if context != "" {
		e.Context = []byte(context)
	}
	return w.apply(e)
}

func (w *cluster) apply(e eventlog.Entry) perilog.Note {
	outcome, err := w.state.Apply(e)
	require.NoError(w.t, err, "%s %s", e.Name, e.Context)
	w.log, err = eventlog.AppendEntry(w.log, e)
	require.NoError(w.t, err)
	name := e.Name
	if c, err := jobstate.ParseContext(e); err == nil {
		if f, ok := c.(*jobstate.ActionFinishContext); ok {
			name = fmt.Sprintf("%s %d", name, f.Status)
		}
		if s, ok := c.(*jobstate.ActionStartContext); ok {
			w.starts[s.Kind.String()+" "+s.Description]++
		}
	}
	w.names = append(w.names, name)
	require.NotEqual(w.t, jobstate.IgnoredDuplicate, outcome, "%s %s", e.Name, e.Context)
	note, err := w.job.Apply(w.now, e)
	require.NoError(w.t, err)
	if w.early.IsEmpty() {
		require.NotEqual(w.t, perilog.NoteLate, note.Kind, "nothing may start too late: %s", w.log)
	}
	return note
}

// burn is a step of the embedder's, and reports whether it crashes after it.
func (w *cluster) burn() bool {
	if w.fuse == 0 {
		return false
	}
	if w.fuse--; w.fuse > 0 {
		return false
	}
	w.burned = true
	w.crash()
	return true
}

// pump does what the Job wants done until it wants nothing more, or until the
// fuse has burned: before anything, after any event or request, or before what
// is free is told.
func (w *cluster) pump() {
	if w.burn() {
		return
	}
	for {
		effects := w.job.Take()
		require.NoError(w.t, w.job.Check())
		for _, e := range effects.Post {
			w.apply(e.Clone())
			require.NoError(w.t, w.job.Check())
			if w.burn() {
				return
			}
		}
		for _, q := range effects.Requests {
			w.do(q)
			if w.burn() {
				return
			}
		}
		w.feed()
		if !effects.IsEmpty() {
			continue
		}
		switch {
		case w.autoEnd && w.job.MayFree() && w.state.HasResources():
			require.True(w.t, w.state.MayFree(), "%s", w.log)
			w.event("free", "")
			if w.burn() {
				return
			}
		case w.autoEnd && w.job.MayClean() && w.state.MayClean():
			w.event("clean", "")
		default:
			return
		}
	}
}

func (w *cluster) do(q perilog.ActionRequest) {
	key := q.Action.String()
	require.False(w.t, q.Ranks.IsEmpty())
	switch q.Kind {
	case perilog.RequestLaunch:
		if w.running[key] == nil {
			w.running[key] = new(idset.Set)
			w.keys = append(w.keys, q.Action)
		}
		require.False(w.t, w.running[key].Intersects(q.Ranks), "launched twice")
		require.False(w.t, w.perRank(q.Action) && w.freed.Intersects(q.Ranks), "I3: launched where the job is no more")
		require.Positive(w.t, w.starts[key], "I4: launched before the start was logged")
		require.False(w.t, w.started && !w.state.Finished(), "%s runs beside the job: %s", key, w.log)
		for other, ranks := range w.running {
			if other[0] != key[0] {
				require.False(w.t, idset.Difference(ranks, idset.Union(w.drained, w.forced)).Intersects(q.Ranks), "%s and %s run on one node", key, other)
			}
		}
		w.running[key].UnionWith(q.Ranks)
	case perilog.RequestSignal:
		w.signals++
	case perilog.RequestDrain:
		require.Equal(w.t, "update", q.Mode)
		w.drains.UnionWith(q.Ranks)
	default:
		require.Fail(w.t, "a request that is none", "%v", q)
	}
}

// perRank reports whether an action runs on the nodes of the job. One that runs
// once does so on the instance's leader.
func (w *cluster) perRank(key perilog.Key) bool {
	for _, a := range slices.Concat(w.config.Prologs, w.config.Epilogs) {
		if a.Spec(w.spec.RunJob).PerRank && (a.Description == key.Description || a.Description == "" && strings.HasPrefix(key.Description, "job-manager.")) &&
			a.Kind.String() == key.Kind.String() {
			return true
		}
	}
	return false
}

// feed frees what may be freed, and checks I1, I2 and I3 against the processes.
func (w *cluster) feed() {
	f := w.job.Feed(w.ledger)
	require.NoError(w.t, w.ledger.Check(), "I1")
	require.False(w.t, !f.IsEmpty() && w.finals > 0, "I2: a fragment after the final one")
	if f.Final {
		w.finals++
	}
	w.give(f.R.Ranks())
}

// give tells the scheduler of ranks that are free.
func (w *cluster) give(ranks *idset.Set) {
	require.False(w.t, w.freed.Intersects(ranks), "freed twice")
	require.False(w.t, w.job.Holds().Held().Intersects(ranks), "I3: freed and held")
	safe := idset.Union(w.drained, w.forced)
	for key, running := range w.running {
		early := idset.Difference(idset.Intersect(ranks, running), safe)
		require.True(w.t, early.IsEmpty(), "I3: ranks %s are freed and %s runs there: %s", early, key, w.log)
	}
	if w.started {
		given := idset.Union(w.early, w.job.Holds().Dropped())
		require.True(w.t, w.state.Finished() || given.ContainsAll(ranks), "I3: the job runs there")
	}
	w.freed.UnionWith(ranks)
	require.True(w.t, w.freed.Equal(w.ledger.Freed()))
}

// exit tells that the process of an action has ended on a rank.
func (w *cluster) exit(key perilog.Key, rank uint32, status int32) perilog.Answer {
	w.ended(key, rank)
	return w.report(key, perilog.Report{Kind: perilog.ReportExited, Rank: rank, Status: status})
}

func (w *cluster) ended(key perilog.Key, rank uint32) {
	if running := w.running[key.String()]; running != nil {
		running.Remove(rank)
	}
}

func (w *cluster) report(key perilog.Key, rep perilog.Report) perilog.Answer {
	answer := w.job.Report(w.now, key, rep)
	w.pump()
	return answer
}

// confirm drains what is asked for.
func (w *cluster) confirm() {
	w.drained.UnionWith(w.drains)
	w.job.Drained(w.now, w.drains)
	w.drains = new(idset.Set)
	w.pump()
}

// tick lets time pass to the next deadline.
func (w *cluster) tick() {
	t, ok := w.job.Deadline()
	require.True(w.t, ok, "nothing is timed")
	w.now = max(w.now, t)
	w.job.Tick(w.now)
	w.pump()
}

func (w *cluster) begin() {
	require.True(w.t, w.job.MayStart() && w.state.MayStart())
	for key, running := range w.running {
		gone := idset.Union(idset.Union(w.forced, w.drained), w.job.Holds().Dropped())
		require.True(w.t, gone.ContainsAll(running), "the job starts beside %s: %s", key, w.log)
	}
	w.started = true
	w.event("start", "")
	w.pump()
}

func (w *cluster) finish(status int) {
	w.event("finish", fmt.Sprintf(`{"status":%d}`, status))
	w.pump()
	w.event("release", `{"ranks":"all","final":true}`)
	w.pump()
}

func (w *cluster) exception(severity int) {
	w.event("exception", fmt.Sprintf(`{"type":"cancel","severity":%d,"note":"","userid":100}`, severity))
	w.pump()
}

// crash loses what is in memory. Processes go on, and so does what was drained.
// The scheduler says hello, and is told what the job holds still: what is free is
// free for it. Where free is in the log that is all, and no fragment follows;
// otherwise a final one is to come.
func (w *cluster) crash() {
	before := w.job.Holds().String()
	var err error
	w.job, err = perilog.RecoverJob(w.now, w.config, w.spec, w.log)
	require.NoError(w.t, err)
	require.Equal(w.t, before, w.job.Holds().String(), "I5: recovered is live")
	final := slices.Contains(w.names, "free")
	released := w.job.Holds().Released()
	require.Equal(w.t, final, released.Final, "%s", w.log)
	w.ledger, err = rset.Rebuild(w.spec.R, released, w.spec.Holds.Named...)
	require.NoError(w.t, err)
	require.True(w.t, w.ledger.Freed().ContainsAll(w.freed), "what was freed is what the log says")
	w.give(idset.Difference(w.ledger.Freed(), w.freed))
	w.finals = 0
	if final {
		w.finals = 1
	}
	w.drains = new(idset.Set) // the requests are lost
	w.pump()
}

// events returns the names of what was logged after alloc.
func (w *cluster) events() string {
	return strings.Join(w.names[slices.Index(w.names, "alloc")+1:], ", ")
}

// over checks that the job has come to its end and gave everything back.
func (w *cluster) over() {
	require.Equal(w.t, jobstate.StateInactive, w.state.State(), "%s", w.job)
	require.True(w.t, w.ledger.IsFinal())
	require.Equal(w.t, 1, w.finals)
	require.Equal(w.t, w.spec.R.Len(), w.freed.Len())
	require.Empty(w.t, w.job.Unresolved())
}

var (
	prologKey = perilog.Key{Kind: jobstate.ActionProlog, Description: "job-manager.prolog"}
	epilogKey = perilog.Key{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
)

// perRank is a prolog and an epilog that run on every rank.
func perRank() perilog.Config {
	return perilog.Config{
		Prologs: []perilog.ActionConfig{{Kind: perilog.RunProlog, PerRank: true, Timeout: 60, KillTimeout: 10}},
		Epilogs: []perilog.ActionConfig{{Kind: perilog.RunEpilog, PerRank: true, Timeout: 60, KillTimeout: 10}},
	}
}
