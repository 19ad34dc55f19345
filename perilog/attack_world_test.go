package perilog_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/attack"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// place is where a process runs: of a single command, on its leader.
type place struct {
	key  jobstate.ActionKey
	rank uint32
}

// process is a command of an action, as the world sees it.
type process struct {
	attempt uint32
	serves  []uint32
	single  bool
	running bool
	status  int32           // once it does not run
	signal  bool            // it was told to stop
	let     map[uint32]bool // ranks that it said it is done with

	launched, signaled eventlog.Timestamp // by the log, and by the clock
	timeout            time.Duration
}

// released reports whether a single command said that it is done with a rank.
func (p *process) released(rank uint32) bool { return p.let[rank] }

// A world owns every node. It plays one job with a careless embedder, and judges.
type world struct {
	*attack.Tape
	n      uint32
	r      *rset.R
	named  []string
	cfg    *perilog.Config
	job    *perilog.Job
	now    eventlog.Timestamp
	log    []byte // durable
	hkLog  []byte
	posted []byte // what the job's log would be if all were durable

	shells  map[uint32]bool // ranks where the job runs
	asked   bool            // the executor was asked to start it
	started bool            // and said so
	done    map[place]*process
	ran     map[place]bool  // what ran on a rank, or served it, in whatever attempt
	failed  map[uint32]bool // ranks that failed, as an accepted report said that is durable
	drained *idset.Set      // out of service
	toDrain *idset.Set      // asked for, not done
	given   *idset.Set      // of what is being taken: ranks to be drained
	forced  *idset.Set      // an operator ended something there
	offline *idset.Set
	freed   *idset.Set
	final   bool
	changed bool                                 // the configuration
	settled eventlog.Timestamp                   // when Take was called last
	times   map[launchKey]eventlog.Timestamp     // of launches, by the log
	kills   map[jobstate.ActionKey]time.Duration // kill timeouts, by the log
	taken   bool                                 // the last report may have taken up what was lost
	gone    *idset.Set                           // ranks the executor released

	cfgs       []*perilog.Config // since alloc
	lateR      bool              // R comes with alloc
	services   []*service
	served     int
	named2     []string       // named resources that went back
	good       map[place]bool // where a prolog succeeded
	told       *idset.Set     // ranks that control lines said have failed
	wasOffline *idset.Set

	pending []reply // what was accepted and is not durable
}

// reply is an accepted report: once it is durable, the world believes it.
type reply struct {
	rank uint32
	bad  bool
}

func newWorld(t *attack.Tape) *world {
	w := &world{
		Tape: t, now: 1000,
		times: map[launchKey]eventlog.Timestamp{}, kills: map[jobstate.ActionKey]time.Duration{}, shells: map[uint32]bool{}, done: map[place]*process{}, ran: map[place]bool{}, failed: map[uint32]bool{},
		drained: new(idset.Set), toDrain: new(idset.Set), forced: new(idset.Set),
		offline: new(idset.Set), freed: new(idset.Set), gone: new(idset.Set),
		good: map[place]bool{}, told: new(idset.Set), wasOffline: new(idset.Set),
	}
	t.Clock, t.Jobs = func() string { return w.now.String() }, 1
	w.lateR = w.P(0.5)
	w.n = 1 + uint32(w.N(5))
	ranks := new(idset.Set)
	ranks.InsertRange(0, w.n-1)
	r, err := rset.Parse(fmt.Appendf(nil, `{"version":1,"execution":{"R_lite":[{"rank":"%v","children":{"core":"0"}}]}}`, ranks))
	if err != nil {
		panic(err)
	}
	w.r = r
	if w.P(0.2) {
		w.named = []string{"rabbit"}
	}
	w.configure()
	return w
}

func (w *world) fail(format string, args ...any) {
	w.Say("log:\n%s", w.posted)
	w.Say("job: %v", w.job)
	w.Fail(format, args...)
}

// someRanks returns a random set of ranks, perhaps none.
func (w *world) someRanks(p float64) *idset.Set {
	s := new(idset.Set)
	for rank := range w.n {
		if w.P(p) {
			s.Insert(rank)
		}
	}
	return s
}

// configure makes a configuration.
func (w *world) configure() {
	c := &perilog.Config{WholeJob: w.P(0.15)}
	action := func(i int) perilog.ActionConfig {
		a := perilog.ActionConfig{PerRank: w.P(0.8), IgnoreControl: w.P(0.1), Kill: w.P(0.2)}
		if i > 0 || w.P(0.1) {
			a.Description = fmt.Sprintf("act%d", i)
		}
		if w.P(0.2) || !a.PerRank && w.P(0.5) {
			a.Ranks = w.someRanks(0.6)
		}
		if w.P(0.3) {
			a.Resources = w.named
		}
		a.Leader = uint32(w.N(int(w.n) + 1))
		if w.P(0.5) {
			a.Timeout, a.KillTimeout = seconds(5+w.N(40)), seconds(2+w.N(10))
		}
		a.WaitOffline = w.P(0.3)
		if w.P(0.2) {
			cancel := w.P(0.5)
			a.CancelOnException = &cancel
		}
		return a
	}
	for i := range w.N(3) {
		c.Prologs = append(c.Prologs, action(i))
	}
	for i := range w.N(3) {
		c.Epilogs = append(c.Epilogs, action(i))
	}
	if w.P(0.3) {
		h := &perilog.HousekeepingConfig{OnFailure: []jobstate.OnFailure{"", "hold", "drain", "release"}[w.N(4)]}
		if w.P(0.7) {
			d := seconds(w.N(3) * 5)
			h.ReleaseAfter = &d
		}
		if w.P(0.5) {
			h.Timeout, h.KillTimeout = seconds(20), seconds(5)
		}
		c.Housekeeping = h
	}
	if w.P(0.5) {
		c.Tolerate = perilog.Tolerate{Count: w.N(3), Drop: w.P(0.5), AnyFailure: w.P(0.3)}
	}
	if w.P(0.15) { // one command for some ranks, whose nodes may fail
		c.Prologs = []perilog.ActionConfig{{Leader: uint32(w.N(int(w.n) + 1)), Ranks: w.someRanks(0.5)}}
		c.Tolerate = perilog.Tolerate{Count: 2}
	}
	w.Must(c.Check())
	w.changed = w.cfg != nil
	w.cfg, w.cfgs = c, append(w.cfgs, c)
}

// spec returns what an embedder knows of the job from what is durable.
func (w *world) spec() perilog.JobConfig {
	s := perilog.JobConfig{ID: 7, R: w.r, Named: w.named, Owner: 1, Offline: w.offline}
	if w.lateR && !bytes.Contains(w.log, []byte(`"alloc"`)) {
		s.R = nil
	}
	return s
}

// entry makes an event.
func (w *world) entry(name, context string) eventlog.Entry {
	e := eventlog.Entry{Timestamp: w.now, Name: name}
	if context != "" {
		e.Context = []byte(context)
	}
	return e
}

// apply applies an event, and reports whether it was accepted.
func (w *world) apply(name, context string) bool {
	w.now += eventlog.Timestamp(w.N(3)) / 4
	before := w.job.String()
	_, err := w.job.Apply(w.now, w.entry(name, context))
	w.Say("apply %s %s: %v", name, context, err)
	if err != nil && w.job.String() != before {
		w.fail("I6: refused with %v, and changed\n%s\n%v", err, before, w.job)
	}
	return err == nil
}

// take takes the effects, stores them, and does them, or crashes in between.
func (w *world) take(honest bool) {
	todo := w.job.Take(w.now)
	settled := w.settled
	w.settled = w.now
	w.Must(w.job.Check())
	crashAt := -1
	if !honest && w.P(0.06) {
		crashAt = w.N(len(todo.Post) + 1)
	}
	for i, rec := range todo.Post {
		line, err := eventlog.AppendEntry(nil, rec.Entry)
		w.Must(err)
		w.judgeTime(rec, settled)
		if rec.Log == perilog.LogJob {
			w.posted = append(w.posted, line...)
		}
		if i == crashAt {
			w.Say("crash after %d of %d records", i, len(todo.Post))
			w.posted = bytes.Clone(w.log)
			w.crash()
			return
		}
		if rec.Log == perilog.LogJob {
			w.log = append(w.log, line...)
			_, _ = w.Hash.Write(line)
		} else {
			w.hkLog = append(w.hkLog, line...)
		}
		w.Say("%v: %s", rec.Log, bytes.TrimSpace(line))
	}
	for _, p := range w.pending {
		w.failed[p.rank] = w.failed[p.rank] || p.bad
	}
	w.pending = nil
	w.judgeReplay()
	for _, s := range todo.Signal {
		w.signal(s) // what was given up before it was told to stop
	}
	given := new(idset.Set) // up: its node is drained in the same breath
	for _, d := range todo.Drain {
		given.UnionWith(d.Ranks)
	}
	w.given = given
	var acts []func()
	for _, l := range todo.Launch {
		serves := l.Ranks
		if l.Serves != nil {
			serves = l.Serves
		}
		if serves.Intersects(todo.Free.R.Ranks()) {
			w.fail("I3: %v is launched on ranks that are freed with it", l.Action)
		}
		acts = append(acts, func() { w.launch(l) })
	}
	for _, s := range todo.Signal {
		acts = append(acts, func() { w.signal(s) })
	}
	if todo.Start {
		acts = append(acts, w.start)
	}
	for _, d := range todo.Drain {
		acts = append(acts, func() {
			w.Say("drain %v: %s", d.Ranks, d.Reason)
			if d.Ranks.IsEmpty() {
				w.fail("PL-13: a drain of nothing")
			}
			w.toDrain.UnionWith(d.Ranks)
		})
	}
	if !todo.Free.IsEmpty() {
		acts = append(acts, func() { w.free(todo.Free) })
	}
	for _, act := range acts {
		if !honest && w.P(0.02) {
			w.Say("crash between effects")
			w.crash()
			return
		}
		act()
	}
}

// judgeReplay compares the log with what is in memory.
func (w *world) judgeReplay() {
	h := perilog.NewHolds(7, w.r, w.named...)
	for e, err := range eventlog.Entries(w.log) {
		w.Must(err)
		_, err = h.Apply(e)
		w.Must(err)
	}
	if a, b := h.String(), w.job.Holds().String(); a != b {
		w.fail("I5: the log tells\n%s\nand the job\n%s", a, b)
	}
	if w.P(0.3) {
		job, err := perilog.RecoverJob(w.now, w.cfg, w.spec(), w.log, w.hkLog)
		w.Must(err)
		if a, b := job.Told(), w.job.Told(); a != b {
			w.fail("I5: the log tells\n%s\nand the job\n%s", a, b)
		}
	}
}

// launch starts processes.
func (w *world) launch(l perilog.Launch) {
	w.Say("launch %v on %v attempt %d", l.Action, l.Ranks, l.Attempt)
	for rank := range l.Ranks.All() {
		at := place{l.Action, rank}
		p := &process{let: map[uint32]bool{}, attempt: l.Attempt, running: true, single: l.Serves != nil, serves: []uint32{rank}}
		if p.single {
			p.serves = slices.Collect(l.Serves.All())
			if w.job.R().Ranks().Contains(rank) && !l.Serves.Contains(rank) && !w.holds(l.Action, rank) && !w.changed {
				w.fail("I3: %v does not hold rank %d, where it runs", l.Action, rank)
			}
		}
		if old := w.done[at]; old != nil && old.attempt >= l.Attempt {
			w.fail("I10: attempt %d of %v on rank %d after attempt %d", l.Attempt, l.Action, rank, old.attempt)
		}
		if l.Action.Kind == jobstate.ActionProlog && (w.asked || w.started) {
			w.fail("%v is launched after the job", l.Action)
		}
		for _, r := range p.serves {
			if w.freed.Contains(r) {
				w.fail("%v is launched on rank %d, which was freed", l.Action, r)
			}
			w.overlap(l.Action, r)
			w.ran[place{l.Action, r}] = true
			delete(w.good, place{l.Action, r})
		}
		p.launched, p.timeout = w.times[launchKey{l.Action, l.Attempt}], l.Timeout
		w.done[at] = p
	}
}

// holds reports whether an action holds a rank by the log.
func (w *world) holds(key jobstate.ActionKey, rank uint32) bool {
	for h := range w.job.Holders() {
		if h.Description == key.Description && h.Kind.String() == key.Kind.String() && h.Ranks.Contains(rank) {
			return true
		}
	}
	return false
}

// lets reports whether the configuration lets ranks go where housekeeping was given
// up.
func (w *world) lets(key jobstate.ActionKey) bool {
	return key == perilog.Housekeeping() && (w.changed || w.cfg.Housekeeping.OnFailure == "release")
}

// overlap judges that nothing else runs on a rank of the job where an action is
// launched.
func (w *world) overlap(key jobstate.ActionKey, rank uint32) {
	if key.Kind != jobstate.ActionProlog && w.shells[rank] {
		w.fail("PL-16: %v is launched on rank %d, where the job runs", key, rank)
	}
	for at, p := range w.done {
		if p.running && !p.signal && (!p.single || at.rank == rank) && at.key.Kind != key.Kind && slices.Contains(p.serves, rank) && !w.drained.Contains(rank) && !w.toDrain.Contains(rank) && !w.given.Contains(rank) && !w.forced.Contains(rank) {
			w.fail("PL-16: %v is launched on rank %d, where %v runs", key, rank, at.key)
		}
	}
}

func (w *world) signal(s perilog.Signal) {
	for rank := range s.Ranks.All() {
		if p := w.done[place{s.Action, rank}]; p != nil && p.attempt == s.Attempt && p.running {
			w.judgeSignal(s, p)
			p.signal, p.signaled = true, w.now
			if s.Signal == 9 {
				p.running, p.status = false, 9
			}
		}
	}
}

// free judges a fragment.
func (w *world) free(f rset.Fragment) {
	w.Say("free %v named %v final %v", f.R.Ranks(), f.Named, f.Final)
	if w.final {
		w.fail("I2: a fragment after the final one")
	}
	for rank := range f.R.Ranks().All() {
		if w.freed.Contains(rank) {
			w.fail("I1: rank %d is freed twice", rank)
		}
		w.freed.Insert(rank)
		w.judgeRank(rank)
	}
	for _, name := range f.Named {
		if slices.Contains(w.named2, name) {
			w.fail("I1: %s is freed twice", name)
		}
		w.named2 = append(w.named2, name)
		if slices.ContainsFunc(w.active(), func(s *service) bool { return slices.Contains(s.named, name) }) {
			w.fail("I3: %s is freed, and a service holds it", name)
		}
	}
	if f.Final {
		w.final = true
	}
}

// judgeRank judges that a rank may be free.
func (w *world) judgeRank(rank uint32) {
	if w.shells[rank] && !w.drained.Contains(rank) {
		w.fail("I3: rank %d is freed, and the job runs there", rank)
	}
	for _, s := range w.active() {
		if s.ranks.Contains(rank) {
			w.fail("I3: rank %d is freed, and %v holds it", rank, s.key)
		}
	}
	excused := w.drained.Contains(rank) || w.forced.Contains(rank)
	prepared := w.asked
	for at, p := range w.done {
		prepared = prepared || at.key.Kind == jobstate.ActionProlog
		if !slices.Contains(p.serves, rank) {
			continue
		}
		if p.running && !excused && !(p.signal && (p.single || at.key == perilog.Housekeeping())) && !w.lets(at.key) && !p.released(rank) {
			w.fail("I3: rank %d is freed, and %v runs there", rank, at.key)
		}
	}
	if w.failed[rank] && !excused {
		w.fail("I10: rank %d failed and is freed without a drain", rank)
	}
	if excused {
		return
	}
	if prepared {
		for _, key := range w.always(jobstate.ActionEpilog, rank) {
			canceled := !w.every(func(c *perilog.Config) bool { // perhaps before it ran
				return !slices.ContainsFunc(c.Epilogs, func(a perilog.ActionConfig) bool { return a.CancelOnException != nil && *a.CancelOnException })
			})
			if !canceled && !w.ran[place{key, rank}] {
				w.fail("I3: rank %d is freed, and %v did not run there", rank, key)
			}
		}
	}
	if w.every(func(c *perilog.Config) bool { return c.Housekeeping != nil }) && !w.ran[place{perilog.Housekeeping(), rank}] {
		w.fail("I3: rank %d is freed, and housekeeping did not run there", rank)
	}
}

// launchKey names a launch.
type launchKey struct {
	action  jobstate.ActionKey
	attempt uint32
}

// judgeTime judges the times of launches and of ends by timeout. settled is when
// everything was taken last.
func (w *world) judgeTime(rec perilog.LogEntry, settled eventlog.Timestamp) {
	ev, t := new(jobstate.Event), rec.Entry.Timestamp
	if ev.Decode(rec.Entry) != nil {
		return
	}
	launched := func(key jobstate.ActionKey, attempt uint32) {
		if w.times[launchKey{key, attempt}] = t; t < settled {
			w.fail("%v was launched after %v, and the log says %v", key, settled, t)
		}
	}
	switch c := ev.Context().(type) {
	case *jobstate.ActionStartContext:
		key := jobstate.ActionKey{Kind: c.Kind, Description: c.Description}
		if c.Given() {
			w.kills[key] = c.KillTimeout
		}
		if c.Attempt > 0 {
			launched(key, c.Attempt)
		}
	case *jobstate.ActionLaunchContext:
		launched(jobstate.ActionKey{Kind: c.Kind, Description: c.Description}, c.Attempt)
	case *jobstate.ActionFailContext:
		key := jobstate.ActionKey{Kind: c.Kind, Description: c.Description}
		for at, p := range w.done { // of each rank the last one; what has exited obeyed
			if !strings.HasSuffix(c.Cause, "timed-out") || at.key != key || !p.running || p.single || !c.Ranks.Contains(at.rank) {
				continue
			}
			if over := p.signaled + eventlog.Timestamp(w.kills[key].Seconds()); !p.signal || t < over {
				w.fail("%v was given up on rank %d at %v, and was told to stop: %t at %v", key, at.rank, t, p.signal, p.signaled)
			}
		}
	}
}

// judgeSignal judges that a process is told to stop for a reason.
func (w *world) judgeSignal(s perilog.Signal, p *process) {
	if _, fatal := w.job.State().Cause(); fatal || s.Signal != 15 || s.Ranks.Intersects(w.forced) {
		return
	}
	if over := p.launched + eventlog.Timestamp(p.timeout.Seconds()); p.timeout == 0 || w.now < over {
		w.fail("%v is told to stop at %v, launched at %v with a timeout of %v", s.Action, w.now, p.launched, p.timeout)
	}
}
