package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A fake is a Scheduler that answers what it is told to.
type fake struct {
	t       testing.TB
	hellos  []int // the jobs of each
	held    []alloc.HelloResponse
	asked   []alloc.Request // in this session
	handled int
	drained idset.Set
	times   []eventlog.Timestamp
	decide  func() []alloc.Response
	due     eventlog.Timestamp // 0: never
	err     error              // of each call
}

func (f *fake) Hello(a alloc.Announcement) error {
	f.hellos, f.held, f.asked = append(f.hellos, len(a.Responses)), a.Responses, nil
	return f.err
}

func (f *fake) Handle(m alloc.Message) error {
	f.handled++
	if m, ok := m.(alloc.Request); ok {
		f.asked = append(f.asked, m)
	}
	return f.err
}

func (f *fake) Drain(ranks *idset.Set) error {
	f.drained.UnionWith(ranks)
	return f.err
}

func (f *fake) Decide(now eventlog.Timestamp) (list []alloc.Response) {
	f.times = append(f.times, now)
	if f.decide != nil {
		list = f.decide()
	}
	f.asked = nil
	return list
}

func (f *fake) Deadline() (eventlog.Timestamp, bool) { return f.due, f.due > 0 }

// machine has nodes of one core.
func machine(t testing.TB, n uint32) *rset.R {
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, n-1), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	return r
}

// wholeNodes is a job.
func wholeNodes(t testing.TB, id jobid.ID, n int64) joblife.Submit {
	s, err := jobspec.New(jobspec.Job{Nodes: n, Exclusive: true, Command: []string{"true"}})
	require.NoError(t, err)
	return joblife.Submit{ID: id, Spec: s, Urgency: jobstate.UrgencyDefault}
}

// scheduled is a site whose Loop drives a Scheduler. Its jobs have no epilog, and run until
// they are told to end. With an Executor the site has no part in it.
func scheduled(t testing.TB, now time.Time, d *disk, s loop.Scheduler, cfg joblife.Config, more ...func(*loop.Config)) *site {
	e := &site{t: t, disk: d, hold: true}
	var err error
	lc := loop.Config{
		Scheduler: s,
		Effects: func(_ *joblife.Manager, rd *joblife.Ready) {
			for _, f := range rd.Faults {
				e.refused = append(e.refused, f)
			}
			rd.Sched = nil // which act would answer
			e.act(e.m, rd)
		},
		Refused: func(_ joblife.Input, err error) { e.refused = append(e.refused, err) },
	}
	if lc.Begin = d.apart; d.apart == nil {
		lc.Store = d
	}
	e.m, lc.Recovered, err = joblife.Restore(now, cfg, d.all)
	require.NoError(t, err)
	for _, f := range more {
		f(&lc)
	}
	e.l, err = loop.New(e.m, lc)
	require.NoError(t, err)
	if e.mute = lc.Executor != nil; !e.mute {
		e.put(joblife.ExecHello{})
	}
	return e
}

func (s *site) ends(id jobid.ID) {
	s.put(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish}, joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
}

func (s *site) state(id jobid.ID) jobstate.State {
	v, ok := s.m.Job(id)
	require.True(s.t, ok)
	return v.State()
}

func plain() joblife.Config { return joblife.Config{Epoch: time.Unix(900_000_000, 0)} }

func onMachine(t testing.TB, n uint32) *sched.Scheduler {
	s, nodes := sched.New(sched.Config{}), machine(t, n)
	require.NoError(t, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	return s
}

// Nobody says hello but the Loop; after a restart the scheduler knows what is held.
func TestALoopDrivesAScheduler(t *testing.T) {
	var texts []string
	for range 3 { // I7
		d := new(disk)
		s := scheduled(t, start, d, onMachine(t, 2), plain())
		s.put(wholeNodes(t, 1, 2), wholeNodes(t, 2, 1), wholeNodes(t, 3, 1))
		require.NoError(t, s.l.Advance(start))
		s.ends(1)
		require.NoError(t, s.l.Advance(start.Add(time.Hour)))
		require.Equal(t, []jobstate.State{jobstate.StateInactive, jobstate.StateRun, jobstate.StateRun}, []jobstate.State{s.state(1), s.state(2), s.state(3)})
		for _, r := range s.m.Allocated() {
			require.Equal(t, eventlog.FromTime(start.Add(time.Hour)), r.Start(), "the Loop's time")
		}
		stats := s.l.Stats()
		require.Zero(t, stats.Refused)
		require.Equal(t, uint64(3+3+3+3+2), stats.Inputs, "hellos and ready, jobs, responses, starts, and the end of job 1")

		next := onMachine(t, 2)
		s = scheduled(t, start, d, next, plain())
		s.put(wholeNodes(t, 4, 1))
		require.NoError(t, s.l.Advance(start.Add(2*time.Hour)))
		require.Empty(t, next.Pool().Available().Ranks().String())
		require.Equal(t, jobstate.StateSched, s.state(4))
		s.put(joblife.Raise{ID: 4, Type: "cancel"})
		s.ends(3)
		require.NoError(t, s.l.Advance(start.Add(3*time.Hour)))
		require.Equal(t, "1", next.Pool().Available().Ranks().String())
		require.Equal(t, jobstate.StateInactive, s.state(4))
		require.Empty(t, s.refused)
		texts = append(texts, d.text(t)+s.journal.String())
	}
	require.Equal(t, texts[0], texts[1])
	require.Equal(t, texts[0], texts[2])
}

// The second response books twice. What follows it is void, and a new session says what is
// held.
func TestARefusedResponseBeginsOneSession(t *testing.T) {
	nodes := machine(t, 1)
	f := &fake{t: t}
	f.decide = func() (list []alloc.Response) {
		for _, q := range f.asked {
			switch {
			case len(f.hellos) == 1:
				list = append(list, alloc.Response{ID: q.ID, R: nodes})
			case q.ID == 2:
				list = append(list, alloc.Response{ID: q.ID, Type: alloc.ResponseDeny, Note: "full"})
			}
		}
		return list
	}
	s := scheduled(t, start, new(disk), f, plain())
	for id := range jobid.ID(4) {
		s.put(wholeNodes(t, id+1, 1))
	}
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, []int{0, 1}, f.hellos)
	require.Len(t, s.refused, 1)
	require.ErrorIs(t, s.refused[0], joblife.ErrConflict)
	require.Equal(t, jobstate.StateRun, s.state(1))
	require.Equal(t, jobstate.StateInactive, s.state(2))
	require.Equal(t, []jobstate.State{jobstate.StateSched, jobstate.StateSched}, []jobstate.State{s.state(3), s.state(4)})
	require.Equal(t, uint64(1), s.l.Stats().Refused)
}

// A Scheduler that is wrong in each session is not asked for ever, even if it annotates. What
// it says in time gives it another session, and so does the program.
func TestASchedulerThatIsAlwaysWrong(t *testing.T) {
	f, good := &fake{t: t}, true
	f.decide = func() (list []alloc.Response) {
		for _, q := range f.asked {
			if good && q.ID == 1 {
				list = append(list, alloc.Response{ID: 1, Type: alloc.ResponseDeny})
			} else {
				list = append(list, alloc.Response{ID: q.ID, Type: alloc.ResponseAnnotate, Annotations: []byte(`{"a":1}`)}, alloc.Response{ID: 99, R: machine(t, 1)})
			}
		}
		return list
	}
	s := scheduled(t, start, new(disk), f, plain())
	s.put(wholeNodes(t, 2, 1))
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, []int{0, 0}, f.hellos)
	require.Len(t, s.refused, 2)
	require.ErrorContains(t, s.refused[1], "until SchedHello and SchedReady are put: ")
	handled, decided := f.handled, len(f.times)
	s.put(wholeNodes(t, 3, 1), joblife.Raise{ID: 2, Type: "cancel"})
	require.NoError(t, s.l.Advance(start.Add(time.Hour)))
	require.Equal(t, []int{handled, decided, 2}, []int{f.handled, len(f.times), len(f.hellos)}, "it has no session")
	require.Equal(t, jobstate.StateInactive, s.state(2))

	s.put(joblife.SchedHello{}, joblife.SchedReady{})
	require.NoError(t, s.l.Advance(start.Add(time.Hour)))
	require.Len(t, f.hellos, 3)
	require.Len(t, s.refused, 3)

	s.put(wholeNodes(t, 1, 1), joblife.Raise{ID: 3, Type: "cancel"}, joblife.SchedHello{}, joblife.SchedReady{})
	require.NoError(t, s.l.Advance(start.Add(time.Hour)))
	require.Len(t, f.hellos, 4)
	require.Len(t, s.refused, 3)
	s.put(wholeNodes(t, 4, 1))
	require.NoError(t, s.l.Advance(start.Add(2*time.Hour)))
	require.Len(t, f.hellos, 5, "the denial was accepted, so there was another session")
	require.Len(t, s.refused, 5)
}

// Nor is one that takes back what nobody canceled, and then is wrong: the same jobs come again.
func TestASchedulerThatCancelsAndIsWrong(t *testing.T) {
	f := &fake{t: t}
	f.decide = func() (list []alloc.Response) {
		require.Less(t, len(f.hellos), 5, "it does not end")
		for _, q := range f.asked {
			list = append(list, alloc.Response{ID: q.ID, Type: alloc.ResponseCancel}, alloc.Response{ID: 99, R: machine(t, 1)})
		}
		return list
	}
	s := scheduled(t, start, new(disk), f, plain())
	s.put(wholeNodes(t, 1, 1))
	require.NoError(t, s.l.Advance(start))
	require.Len(t, f.hellos, 2)
	require.ErrorContains(t, s.refused[1], "until SchedHello and SchedReady are put: ")
}

func TestFaultsOfASchedulerAreHandedOut(t *testing.T) {
	f := &fake{t: t, err: errBroken}
	s := scheduled(t, start, new(disk), f, plain())
	s.put(wholeNodes(t, 1, 1))
	require.NoError(t, s.l.Advance(start))
	require.Len(t, s.refused, 3, "of a hello, a ReadyResponse and a Request")
	for _, err := range s.refused {
		require.EqualError(t, err, "joblife: broken")
	}

	s = scheduled(t, start, new(disk), sched.New(sched.Config{}), plain())
	require.NoError(t, s.l.Advance(start))
	require.Len(t, s.refused, 1)
	require.ErrorContains(t, s.refused[0], "sched: there is no inventory yet")
}

// What the store had when a hello came is of the session before.
func TestASchedulerHearsNothingOfTheSessionBefore(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		f := &fake{t: t}
		s := scheduled(t, time.Now(), &disk{takes: time.Second}, f, plain())
		s.put(wholeNodes(t, 1, 1)) // its records are stored with the hello of the Loop
		stop := s.run(ctx)
		for n := range 3 {
			if n > 0 {
				s.put(wholeNodes(t, jobid.ID(n+1), 1))
			}
			time.Sleep(time.Second / 2) // it is stored
			hello := joblife.Input(joblife.SchedHello{})
			if n > 1 {
				hello = joblife.Tagged{Tag: 1, In: hello}
			}
			s.put(hello, joblife.SchedReady{})
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Len(t, f.hellos, n+1)
			require.Equal(t, n+2, f.handled, "a ReadyResponse, and a Request of each job")
			f.handled = 0
		}
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

// A drain counts in the decision that follows, and so does a node that comes back by Do.
func TestASchedulerDecidesAfterEffects(t *testing.T) {
	sc := onMachine(t, 2)
	cfg := plain()
	cfg.Actions = perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}
	s := scheduled(t, start, new(disk), sc, cfg)
	s.mute = true // epilogs do not end by themselves
	s.put(wholeNodes(t, 1, 2), wholeNodes(t, 2, 2))
	require.NoError(t, s.l.Advance(start))
	s.put(joblife.ExecResponse{ID: 1, Type: exec.ResponseStart})
	s.ends(1)
	require.NoError(t, s.l.Advance(start))
	for rank, status := range []int32{1 << 8, 0} {
		if rank > 0 { // after a restart the scheduler is told what the job has given back
			f := &fake{t: t}
			require.NoError(t, scheduled(t, start, &disk{records: s.disk.records}, f, cfg).l.Advance(start))
			require.Equal(t, "0", f.held[0].Free.String())
		}
		s.put(joblife.Report{Job: 1, Report: perilog.Report{
			Action: jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}, Attempt: 1,
			Kind: perilog.ReportExited, Rank: uint32(rank), Status: status,
		}})
		require.NoError(t, s.l.Advance(start))
	}
	require.Empty(t, s.refused)
	require.Equal(t, "0", sc.Pool().Down().Ranks().String())
	require.Equal(t, jobstate.StateInactive, s.state(1))
	require.Equal(t, jobstate.StateSched, s.state(2))
	require.NoError(t, s.l.Do(func(*joblife.Manager) func() {
		require.NoError(t, sc.Acquire(pool.Acquire{Change: pool.Change{Up: idset.Of(0)}}))
		return nil
	}))
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, jobstate.StateRun, s.state(2))
}

// draining begins an epilog of a job on one node, and returns the report that it failed.
func draining(t *testing.T, now time.Time, d *disk, f *fake) (s *site, failed joblife.Input) {
	f.decide = func() (list []alloc.Response) {
		for _, q := range f.asked {
			list = append(list, alloc.Response{ID: q.ID, R: machine(t, 1)})
		}
		return list
	}
	cfg := plain()
	cfg.Actions = perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}
	s = scheduled(t, now, d, f, cfg)
	s.mute = true // epilogs do not end by themselves
	if d.records != nil {
		return s, nil
	}
	s.put(wholeNodes(t, 1, 1))
	require.NoError(t, s.l.Advance(now))
	s.put(joblife.ExecResponse{ID: 1, Type: exec.ResponseStart})
	s.ends(1)
	require.NoError(t, s.l.Advance(now))
	require.Empty(t, s.refused)
	return s, joblife.Report{Job: 1, Report: perilog.Report{
		Action:  jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"},
		Attempt: 1, Kind: perilog.ReportExited, Status: 1 << 8,
	}}
}

// A drain that a Scheduler refuses is not confirmed, and a restart asks again.
func TestADrainIsConfirmedWhenTheSchedulerHasIt(t *testing.T) {
	d, f := new(disk), &fake{t: t}
	s, failed := draining(t, start, d, f)
	f.err = errBroken
	s.put(joblife.SchedLost{}, failed) // a drain is of no session
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, "0", f.drained.String())
	require.Len(t, s.refused, 1)
	require.ErrorContains(t, s.refused[0], "broken")
	require.Equal(t, jobstate.StateCleanup, s.state(1))

	f = &fake{t: t}
	s, _ = draining(t, start, d, f)
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, "0", f.drained.String())
	require.Empty(t, s.refused)
	require.Zero(t, s.m.Stats().States[jobstate.StateCleanup])
}

// At the end a drain is carried out, and is not confirmed.
func TestADrainAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		d, f := new(disk), &fake{t: t}
		s, failed := draining(t, time.Now(), d, f)
		d.takes = time.Second
		stop := s.run(ctx)
		s.put(failed)
		time.Sleep(time.Second / 2)
		require.ErrorIs(t, stop(), context.Canceled)
		require.Equal(t, "0", f.drained.String())
		require.Equal(t, jobstate.StateCleanup, s.state(1))
	})
}

// At the end nothing new is decided.
func TestASchedulerDecidesNothingAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := scheduled(t, time.Now(), &disk{takes: time.Second}, onMachine(t, 1), plain())
		stop := s.run(ctx)
		time.Sleep(time.Minute)
		s.put(wholeNodes(t, 1, 1))
		time.Sleep(time.Second / 2)
		require.ErrorIs(t, stop(), context.Canceled)
		require.Equal(t, jobstate.StateSched, s.state(1))
	})
}

// forecasting has a job that runs, and one that waits and was told that it does not know when to
// start. Since then the other expires in an hour, so there is a forecast to come.
func forecasting(t *testing.T, now time.Time, d *disk) *site {
	sc, nodes := sched.New(sched.Config{Annotate: true, Forecast: 10 * time.Second}), machine(t, 1)
	require.NoError(t, sc.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	s := scheduled(t, now, d, sc, plain())
	s.put(wholeNodes(t, 1, 1), wholeNodes(t, 2, 1))
	require.NoError(t, s.l.Advance(now))
	s.put(joblife.ExecResponse{ID: 1, Type: exec.ResponseStart}, joblife.SetExpiration{ID: 1, Expiration: eventlog.FromTime(now.Add(time.Hour))})
	require.NoError(t, s.l.Advance(now))
	at, ok := sc.Deadline()
	require.True(t, ok)
	require.Equal(t, now.Add(10*time.Second).UTC(), at.Time())
	return s
}

func (s *site) forecast(id jobid.ID) string {
	v, ok := s.m.Job(id)
	require.True(s.t, ok)
	return string(v.Annotations())
}

// A forecast comes at its time, without any input.
func TestASchedulerDecidesAtItsDeadline(t *testing.T) {
	s := forecasting(t, start, new(disk))
	require.NoError(t, s.l.Advance(start.Add(9*time.Second)))
	require.Empty(t, s.forecast(2))
	require.NoError(t, s.l.Advance(start.Add(10*time.Second)))
	require.Contains(t, s.forecast(2), `"t_estimate":1700003600`)
	require.Empty(t, s.refused)

	bubble(t, func(t *testing.T, ctx context.Context) {
		s := forecasting(t, time.Now(), new(disk))
		stop := s.run(ctx)
		seen := func() (text string) {
			synctest.Wait()
			require.NoError(t, s.l.View(ctx, func(*joblife.Manager) { text = s.forecast(2) }))
			return text
		}
		time.Sleep(10*time.Second - 1)
		require.Empty(t, seen())
		time.Sleep(1 * time.Nanosecond)
		require.Contains(t, seen(), "t_estimate")
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

// A response at a deadline may be refused too, and a deadline that stays does not hold up the
// time.
func TestARefusedResponseAtADeadlineBeginsOneSession(t *testing.T) {
	lie := func(f *fake) func() []alloc.Response {
		return func() []alloc.Response { return []alloc.Response{{ID: jobid.ID(len(f.times)), R: machine(f.t, 1)}} }
	}
	f := &fake{t: t}
	s := scheduled(t, start, new(disk), f, plain())
	require.NoError(t, s.l.Advance(start))
	f.due, f.decide = eventlog.FromTime(start.Add(time.Minute)), lie(f)
	require.NoError(t, s.l.Advance(start.Add(59*time.Second)))
	require.Len(t, f.hellos, 1)
	require.NoError(t, s.l.Advance(start.Add(time.Minute)))
	require.Len(t, f.hellos, 2)
	require.Len(t, s.refused, 2)
	n := len(f.times)
	require.NoError(t, s.l.Advance(start.Add(time.Hour)))
	require.Len(t, f.times, n, "it has no session")

	early := time.Unix(20, 0)
	f = &fake{t: t, due: eventlog.Timestamp(math.Nextafter(20, 30))}
	require.NoError(t, scheduled(t, early, new(disk), f, joblife.Config{}).l.Advance(early))
	require.Equal(t, f.due, f.times[len(f.times)-1], "no time.Time is closer")

	bubble(t, func(t *testing.T, ctx context.Context) {
		due := time.Now().Add(time.Minute)
		f := &fake{t: t, due: eventlog.FromTime(due)}
		f.decide = func() []alloc.Response {
			if time.Now().Before(due) {
				return nil
			}
			return lie(f)()
		}
		stop := scheduled(t, time.Now(), &disk{takes: time.Second}, f, plain()).run(ctx)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, f.hellos, 2)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

// While the Store works, a deadline waits: what the Scheduler has to know is in that Ready.
func TestASchedulerDecidesNothingWhileTheStoreWorks(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		f, d := &fake{t: t}, &disk{takes: 10 * time.Second}
		f.decide = func() []alloc.Response {
			require.False(t, d.busy, "it decides while the store works")
			if f.due > 0 && !time.Now().Before(f.due.Time()) {
				f.due = 0
			}
			return nil
		}
		f.due = eventlog.FromTime(time.Now().Add(5 * time.Second))
		s := scheduled(t, time.Now(), d, f, plain())
		stop := s.run(ctx)
		s.put(wholeNodes(t, 1, 1))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, f.due, "it has decided since")
		require.Positive(t, d.appends)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestAPanicOfASchedulerEndsTheLoop(t *testing.T) {
	f := &fake{t: t, decide: func() []alloc.Response { panic("mine") }}
	s := scheduled(t, start, new(disk), f, plain())
	require.Equal(t, "mine", panics(func() { _ = s.l.Advance(start) }))
	require.ErrorIs(t, s.l.Put(joblife.Tick{}), loop.ErrEnded)
}

// Whatever a Scheduler says, nothing is booked twice, and the Loop goes on.
func TestASchedulerThatLies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := machine(t, 3)
		f := &fake{t: t}
		f.decide = func() (list []alloc.Response) {
			require.LessOrEqual(rt, len(f.times), 1000, "it does not end")
			for range rapid.IntRange(0, 2).Draw(rt, "responses") {
				r := alloc.Response{
					ID:   jobid.ID(rapid.IntRange(1, 4).Draw(rt, "job")),
					Type: rapid.SampledFrom([]alloc.ResponseType{alloc.ResponseSuccess, alloc.ResponseAnnotate, alloc.ResponseDeny, alloc.ResponseCancel, 9}).Draw(rt, "type"),
				}
				if r.Type == alloc.ResponseSuccess {
					ranks := idset.Of(uint32(rapid.IntRange(0, 3).Draw(rt, "rank")))
					r.R, _ = nodes.Restrict(ranks)
				}
				list = append(list, r)
			}
			return list
		}
		s := scheduled(t, start, new(disk), f, plain())
		for id := range jobid.ID(3) {
			s.put(wholeNodes(t, id+1, 1))
		}
		for i := range 4 {
			require.NoError(rt, s.l.Advance(start.Add(time.Duration(i)*time.Minute)))
			held := new(idset.Set)
			for _, r := range s.m.Allocated() {
				require.False(rt, held.Intersects(r.Ranks()))
				held.UnionWith(r.Ranks())
			}
			s.ends(jobid.ID(i + 1))
		}
		for _, err := range s.refused {
			require.False(rt, errors.Is(err, joblife.ErrClock))
		}
		require.True(rt, slices.IsSorted(f.times), fmt.Sprint(f.times))
	})
}

// What a scheduler repeats at each Decide changes nothing, so no other Decide follows.
func TestASchedulerMayRepeatAnAnnotation(t *testing.T) {
	f, asked := &fake{t: t}, false
	f.decide = func() (list []alloc.Response) {
		require.Less(t, len(f.times), 100, "there is no end")
		if asked = asked || len(f.asked) > 0; asked {
			list = append(list, alloc.Response{ID: 1, Type: alloc.ResponseAnnotate, Annotations: []byte(`{"sched":{"waits":1}}`)})
		}
		return list
	}
	s := scheduled(t, start, new(disk), f, plain())
	s.put(wholeNodes(t, 1, 1))
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, jobstate.StateSched, s.state(1))
	require.True(t, asked)
}
