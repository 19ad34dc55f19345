package joblife_test

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// site is what is around a Manager: a store, a scheduler, an executor and nodes that
// do at once what they are asked to.
type site struct {
	t     testing.TB
	m     *joblife.Manager
	cfg   joblife.Config
	now   time.Time
	store []joblife.Record
	pool  *pool.Pool
	hold  map[string]bool // "sched", "exec", "finish", "action", "drain", "unlink": do not do it
	log   []string        // what was done
	rd    joblife.Ready
	last  []joblife.Answer
	outs  []string // the Readys, each as one text
	sched []alloc.Message
	exec  []exec.Message
	jour  []joblife.JournalEntry
	runs  []joblife.Launch
	rec   joblife.Recovered

	stepped time.Time // the clock at the last Step of try, feed or tick
}

func newSite(t testing.TB, cfg joblife.Config, nodes int) *site {
	t.Helper()
	start := time.Unix(1_600_000_000, 0)
	if cfg.Epoch.IsZero() {
		cfg.Epoch = start.Add(-time.Hour)
	}
	if nodes <= 0 {
		nodes = 8
	}
	m, err := joblife.New(cfg)
	require.NoError(t, err)
	s := &site{t: t, m: m, cfg: cfg, now: start, hold: make(map[string]bool)}
	s.newPool(nodes)
	s.hello()
	return s
}

func (s *site) newPool(nodes int) {
	cores := idset.Range(0, 3)
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, uint32(nodes-1)), Children: map[string]*idset.Set{"core": cores},
	}}})
	require.NoError(s.t, err)
	s.pool, err = pool.New(r, pool.Config{})
	require.NoError(s.t, err)
	s.pool.Update(pool.Change{Up: r.Ranks()})
}

func (s *site) hello() {
	s.step(joblife.SchedHello{PartialOK: true})
	s.step(joblife.SchedReady{})
	s.step(joblife.ExecHello{})
}

// step takes a Step and does what follows.
func (s *site) step(in joblife.Input) {
	s.t.Helper()
	require.NoError(s.t, s.try(in))
}

// try takes a Step, which may be refused, and does what follows.
func (s *site) try(in joblife.Input) error {
	s.now = s.now.Add(time.Millisecond)
	err := s.m.Step(s.now, in)
	if err == nil {
		s.stepped = s.now
	}
	s.act()
	require.NoError(s.t, joblife.Audit(s.m))
	return err
}

// feed takes a Step and does nothing.
func (s *site) feed(in joblife.Input) {
	s.t.Helper()
	s.now = s.now.Add(time.Millisecond)
	require.NoError(s.t, s.m.Step(s.now, in))
	s.stepped = s.now
}

// ask returns the answer to an input with the Tag 7.
func (s *site) ask(in joblife.Input) joblife.Answer {
	s.t.Helper()
	s.step(in)
	return s.answer(7)
}

// answer takes the answer with a tag off the list.
func (s *site) answer(tag uint64) joblife.Answer {
	s.t.Helper()
	i := slices.IndexFunc(s.last, func(a joblife.Answer) bool { return a.Tag == tag })
	require.GreaterOrEqual(s.t, i, 0, "no answer")
	a := s.last[i]
	s.last = slices.Delete(s.last, i, i+1)
	return a
}

// deadline returns when the Manager is to be woken, and idle checks that it is not.
func (s *site) deadline() time.Time {
	s.t.Helper()
	at, ok := s.m.Deadline()
	require.True(s.t, ok)
	return at
}

func (s *site) idle() {
	s.t.Helper()
	at, ok := s.m.Deadline()
	require.False(s.t, ok, "%v", at)
}

// restart makes another Manager of what is stored.
func (s *site) restart() {
	s.t.Helper()
	s.restore(s.store)
	s.hello()
}

func (s *site) restore(records []joblife.Record) {
	s.t.Helper()
	s.last = nil
	cfg := s.cfg
	cfg.Hooks = nil
	warm, err := joblife.Load(s.now, cfg, false, all(records))
	require.NoError(s.t, err)
	cold, err := joblife.Load(s.now, cfg, true, all(records))
	require.NoError(s.t, err)
	require.Equal(s.t, joblife.DescribeAll(cold), joblife.DescribeAll(warm), "I5")
	m, rec, err := joblife.Restore(s.now, s.cfg, all(records))
	require.NoError(s.t, err)
	s.m, s.rec = m, rec
	s.act()
}

// fluxRestarts returns hooks that log flux-restart for each job in SCHED, as flux-core does.
func fluxRestarts() joblife.Hooks {
	return joblife.Hooks{Name: "restarts", Restored: func(e *joblife.HookEvent) {
		if e.Job.State() == jobstate.StateSched {
			e.Post(joblife.Post{ID: e.Job.ID(), Name: jobstate.EventFluxRestart})
		}
	}}
}

// restarts are the ways in which a Manager goes on.
var restarts = map[string]func(*site){
	"live":     func(s *site) {},
	"restart":  func(s *site) { s.restart() },
	"snapshot": func(s *site) { s.restore(slices.Collect(s.m.Snapshot())) },
}

// cutBefore drops what was stored since the first event of a name, as a crash does.
func (s *site) cutBefore(name string) {
	i := slices.IndexFunc(s.store, func(r joblife.Record) bool { return bytes.Contains(r.Data, []byte(`"name":"`+name+`"`)) })
	s.store = s.store[:i]
}

// state returns the state of a job.
func (s *site) state(id jobid.ID) jobstate.State {
	v, ok := s.m.Job(id)
	if !ok {
		return 0
	}
	return v.State()
}

// act does what is ready until nothing is.
func (s *site) act() {
	for s.m.Ready(&s.rd) {
		s.outs = append(s.outs, describe(&s.rd))
		for _, e := range s.rd.Journal {
			e.Entry = e.Entry.Clone()
			s.jour = append(s.jour, e)
		}
		s.sched = append(s.sched, s.rd.Sched...)
		s.exec = append(s.exec, s.rd.Exec...)
		for _, r := range s.rd.Append {
			r.Data = slices.Clone(r.Data)
			s.store = append(s.store, r)
		}
		var todo []joblife.Input
		if s.rd.Hello != nil && !s.hold["pool"] {
			s.newPool(8)
			for _, h := range s.rd.Hello.Responses {
				require.NoError(s.t, s.pool.Adopt(h.ID, h.R, h.Free))
			}
		}
		for _, msg := range s.rd.Sched {
			if _, ok := msg.(alloc.Free); !ok && s.hold["sched"] {
				continue
			}
			switch msg := msg.(type) {
			case alloc.Request:
				v, _ := s.m.Job(msg.ID)
				if v.Jobspec() == nil {
					spec, err := jobspec.Parse(msg.Jobspec)
					require.NoError(s.t, err)
					todo = append(todo, s.alloc(msg.ID, spec))
					continue
				}
				todo = append(todo, s.alloc(msg.ID, v.Jobspec()))
			case alloc.Cancel:
				todo = append(todo, joblife.SchedResponse{ID: msg.ID, Type: alloc.ResponseCancel})
			case alloc.Free:
				s.log = append(s.log, fmt.Sprintf("free %v final=%v", msg.R.Ranks(), msg.Final))
				if !s.hold["pool"] {
					_, err := s.pool.Free(msg.ID, msg.R, msg.Final)
					require.NoError(s.t, err)
				}
			}
		}
		for _, msg := range s.rd.Exec {
			if msg, ok := msg.(exec.Start); ok && !s.hold["exec"] {
				start := exec.ResponseStart
				if msg.Reattach {
					start = exec.ResponseReattached
				}
				todo = append(todo, joblife.ExecResponse{ID: msg.ID, Type: start})
				if s.hold["finish"] {
					continue
				}
				if v, ok := s.m.Job(msg.ID); !ok || v.State() == jobstate.StateInactive || !v.Job().Finished() {
					todo = append(todo, said(msg.ID, exec.ResponseFinish))
				}
				todo = append(todo, said(msg.ID, exec.ResponseRelease))
			}
		}
		for _, l := range s.rd.Launch {
			s.runs = append(s.runs, l)
			s.log = append(s.log, fmt.Sprintf("launch %v on %v", l.Action, l.Ranks))
			if s.hold["action"] {
				continue
			}
			for rank := range l.Ranks.All() {
				todo = append(todo, exited(l, rank))
			}
		}
		for _, d := range s.rd.Drain {
			s.log = append(s.log, fmt.Sprintf("drain %v", d.Ranks))
			if !s.hold["drain"] {
				todo = append(todo, joblife.Drained{Ranks: d.Ranks})
			}
		}
		for _, id := range s.rd.Unlink {
			s.log = append(s.log, fmt.Sprintf("unlink %v", id))
		}
		if len(s.rd.Unlink) > 0 && !s.hold["unlink"] {
			todo = append(todo, joblife.Unlinked{IDs: slices.Clone(s.rd.Unlink)})
		}
		s.last = append(s.last, s.rd.Answers...)
		for _, f := range s.rd.Faults {
			s.log = append(s.log, f.Error())
		}
		require.NoError(s.t, s.m.Done(s.rd.Seq))
		for _, in := range todo {
			if in != nil {
				require.NoError(s.t, s.m.Step(s.now, in))
			}
		}
	}
}

func (s *site) alloc(id jobid.ID, spec *jobspec.Spec) joblife.Input {
	req, err := pool.NewRequest(spec)
	require.NoError(s.t, err)
	r, err := s.pool.Alloc(id, req, eventlog.FromTime(s.now))
	if err != nil {
		return nil // it waits
	}
	return joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: r}
}

func (s *site) events(id jobid.ID) string {
	var names []string
	for _, r := range s.store {
		if r.Job == id && r.Kind == joblife.RecordEvent {
			e, err := eventlog.Parse(r.Data)
			require.NoError(s.t, err)
			names = append(names, e.Name)
		}
	}
	return strings.Join(names, " ")
}

func (s *site) submit(j jobspec.Job) jobid.ID {
	s.t.Helper()
	s.last = nil
	s.step(joblife.Submit{Tag: 1, Jobspec: text(s.t, j), Urgency: jobstate.UrgencyDefault})
	require.Len(s.t, s.last, 1)
	return s.last[0].Job
}

func text(t testing.TB, j jobspec.Job) []byte {
	if j.Command == nil {
		j.Command = []string{"true"}
	}
	spec, err := jobspec.New(j)
	require.NoError(t, err)
	b, err := spec.MarshalJSON()
	require.NoError(t, err)
	return b
}

func all(records []joblife.Record) iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// describe returns all of a Ready as text.
func describe(rd *joblife.Ready) string {
	plain := *rd
	if plain.Hello = nil; rd.Hello != nil {
		return fmt.Sprintf("%+v %+v", plain, *rd.Hello)
	}
	return fmt.Sprintf("%+v", plain)
}

// faults returns the lines of s.log that are faults.
func (s *site) faults() []string {
	var out []string
	for _, l := range s.log {
		if strings.HasPrefix(l, "joblife: ") {
			out = append(out, l)
		}
	}
	return out
}

// success is a scheduler's response that gives ranks.
func success(t testing.TB, id jobid.ID, ranks ...uint32) joblife.Input {
	t.Helper()
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Of(ranks...), Children: map[string]*idset.Set{"core": idset.Range(0, 3)},
	}}})
	require.NoError(t, err)
	return joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: r}
}

// said is what an executor says of a job.
func said(id jobid.ID, typ exec.ResponseType) joblife.Input {
	return joblife.ExecResponse{ID: id, Type: typ, Final: typ == exec.ResponseRelease}
}

// exited reports that a launched process has ended well on a rank.
func exited(l joblife.Launch, rank uint32) joblife.Input {
	return joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: rank}}
}

// starts returns Reattach of each start that the executor got.
func (s *site) starts() (list []bool) {
	for _, msg := range s.exec {
		if msg, ok := msg.(exec.Start); ok {
			list = append(list, msg.Reattach)
		}
	}
	return list
}

// line returns an entry as a log has it.
func line(t testing.TB, e eventlog.Entry) string {
	t.Helper()
	b, err := eventlog.AppendEntry(nil, e)
	require.NoError(t, err)
	return string(b)
}

// release is the executor's final release.
func release(id jobid.ID) exec.Response {
	return exec.Response{ID: id, Type: exec.ResponseRelease, Final: true}
}
