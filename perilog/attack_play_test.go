package perilog_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// crash forgets all that is not durable and recovers, perhaps with another
// configuration.
func (w *world) crash() {
	w.Crashes++
	w.pending = nil
	w.posted = bytes.Clone(w.log)
	w.serviceLost()
	if w.P(0.2) {
		w.configure()
	}
	job, err := perilog.RecoverJob(w.now, w.cfg, w.spec(), w.log, w.hkLog)
	w.Must(err)
	w.job = job
	w.Must(job.Check())
	w.Say("recovered: %v", job)
	w.hello()
}

// hello tells the scheduler what went back in fragments that the crash kept from
// it.
func (w *world) hello() {
	for rank := range w.job.Freed().All() {
		if !w.freed.Contains(rank) {
			w.freed.Insert(rank)
			w.judgeRank(rank)
		}
	}
	if !w.job.Freed().ContainsAll(w.freed) {
		w.fail("I1: %v were freed, and the log says %v", w.freed, w.job.Freed())
	}
	if w.job.Final() {
		w.final = true
	}
}

// play plays the job.
func (w *world) play() {
	job, err := perilog.NewJob(w.cfg, w.spec())
	w.Must(err)
	w.job = job
	for i := w.N(250); i > 0 && !w.job.Done(); i-- {
		w.step()
	}
	for i := 0; !w.finished(); i++ {
		if i == 300 {
			w.fail("I10: the job does not end: %v\nunresolved: %v", w.job, w.job.Unresolved())
		}
		w.finish()
		if i > 200 && w.changed { // an operator took one process for another
			for _, at := range w.places() {
				w.force(at.key, nil)
			}
		}
	}
	w.judgeEnd()
}

// finished reports whether all is over, and was taken.
func (w *world) finished() bool {
	w.take(true)
	return w.job.Done()
}

func (w *world) judgeEnd() {
	if w.job.State().WasAllocated() {
		if !w.final || w.freed.Len() != int(w.n) {
			w.fail("I2: the job is over; freed %v, final %v", w.freed, w.final)
		}
	}
	lines := bytes.Split(w.log, []byte("\n"))
	for _, f := range jobstate.Validate(w.log) {
		line := lines[f.Line-1]
		foreign := bytes.Contains(line, []byte("-start")) && !bytes.Contains(line, []byte(`"per-rank"`)) && !bytes.Contains(line, []byte(`"leader"`))
		if f.Level == jobstate.LevelError && !strings.Contains(f.Text, "before finish") && !foreign {
			w.fail("%v", f)
		}
	}
}

// step does one thing at random.
func (w *world) step() {
	w.Steps++
	w.now += 0.25 // so that no two entries are the same
	switch x := w.N(100); {
	case x < 30:
		w.take(false)
	case x < 45:
		w.live()
	case x < 65:
		w.processes()
	case x < 80:
		w.reports()
	case x < 85:
		w.confirm()
	case x < 88:
		w.now += 5
		if w.job.Tick(w.now); w.P(0.3) { // the embedder is slow to take what follows
			w.now += 15
			w.job.Tick(w.now)
		}
	case x < 90:
		w.setOffline(w.someRanks(0.2))
	case x < 92:
		w.operate()
	case x < 94:
		w.serve()
	case x < 95:
		w.reload()
	case x < 97:
		w.careless()
	case x < 99:
		w.Say("crash")
		w.crash()
	default:
		if w.P(0.1) {
			w.job.Shutdown(w.now, 0) // ends with the next crash
		}
	}
	w.Must(w.job.Check())
}

func (w *world) setOffline(ranks *idset.Set) {
	w.offline = ranks
	w.wasOffline.UnionWith(ranks)
	w.job.Offline(w.now, ranks)
}

// live takes the next step of the job's life.
func (w *world) live() {
	s := w.job.State()
	switch {
	case !s.Submitted():
		w.apply("submit", `{"userid":1,"urgency":16,"flags":0,"version":1}`)
	case s.State() == jobstate.StateNew:
		w.apply("validate", "")
	case s.State() == jobstate.StateDepend:
		w.apply("depend", "")
	case s.State() == jobstate.StatePriority:
		w.apply("priority", `{"priority":16}`)
	case s.State() == jobstate.StateSched:
		if w.job.R() == nil {
			w.Must(w.job.SetR(w.r, w.named...))
		}
		w.cfgs = []*perilog.Config{w.cfg}
		w.wasOffline = w.offline.Clone()
		w.apply("alloc", "")
	case s.State().In(jobstate.StateRun|jobstate.StateCleanup) && s.HasResources():
		w.execute(w.P(0.5))
	}
	if s.State().In(jobstate.StateActive) && w.P(0.04) && !s.Finished() {
		w.cancel()
	}
}

func (w *world) cancel() {
	w.apply("exception", fmt.Sprintf(`{"type":"cancel","severity":0,"note":"%v","userid":1}`, w.now))
}

// execute lets the executor do something. In a hurry, it says all that it can.
func (w *world) execute(hurry bool) {
	s := w.job.State()
	if !w.asked {
		w.job.NotStarted(w.now)
		return
	}
	if !s.Started() {
		if s.State() == jobstate.StateCleanup || s.State() == jobstate.StateRun {
			if w.unstarted() {
				return
			}
			if !w.apply("start", "") {
				w.fail("start is refused though the executor was asked")
			}
		}
		return
	}
	ranks := slices.Sorted(maps.Keys(w.shells))
	for _, rank := range ranks {
		if w.shells[rank] && (hurry || w.P(0.3)) {
			w.shells[rank] = false
		}
		if !w.shells[rank] && !w.gone.Contains(rank) && w.P(0.2) && !s.Released() {
			if w.apply("release", fmt.Sprintf(`{"ranks":"%d","final":false}`, rank)) {
				w.gone.Insert(rank)
			}
		}
	}
	if slices.Contains(slices.Collect(maps.Values(w.shells)), true) {
		return
	}
	if !s.Finished() && s.State() == jobstate.StateRun || !s.Finished() && w.P(0.5) {
		w.apply("finish", `{"status":0}`)
	}
	if !s.Released() && (hurry || w.P(0.5)) {
		w.apply("release", `{"ranks":"all","final":true}`)
	}
}

// start asks the executor to start the job.
func (w *world) start() {
	w.Say("start on %v", w.job.R().Ranks())
	if w.asked {
		return // it has it already
	}
	w.judgeStart()
	w.asked, w.started = true, true
	for rank := range w.job.R().Ranks().All() {
		w.shells[rank] = true
	}
}

// judgeStart judges that the job may start.
func (w *world) judgeStart() {
	r := w.job.R().Ranks()
	if r.IsEmpty() {
		w.fail("no job starts on nothing")
	}
	bad := 0
	for rank := range w.failed {
		if w.failed[rank] && !w.forced.Contains(rank) {
			bad++
			if w.every(func(c *perilog.Config) bool { return c.Tolerate.Drop }) && r.Contains(rank) {
				w.fail("I11: the job starts on rank %d, which failed", rank)
			}
		}
	}
	for rank := range r.All() {
		w.judgePrologs(rank)
	}
	if bad == int(w.n) || w.every(func(c *perilog.Config) bool { return bad > c.Tolerate.Count }) {
		w.fail("I11: the job starts, and %d ranks have failed", bad)
	}
	for at, p := range w.done {
		if at.key.Kind == jobstate.ActionProlog && p.running && r.Contains(at.rank) && !w.forced.Contains(at.rank) {
			w.fail("I11: the job starts, and %v runs on rank %d", at.key, at.rank)
		}
	}
}

// places returns where processes are, in order.
func (w *world) places() []place {
	return slices.SortedFunc(maps.Keys(w.done), func(a, b place) int {
		if c := strings.Compare(a.key.String(), b.key.String()); c != 0 {
			return c
		}
		return int(a.rank) - int(b.rank)
	})
}

// processes lets processes end.
func (w *world) processes() {
	for _, at := range w.places() {
		p := w.done[at]
		if !p.running || !w.P(0.4) {
			continue
		}
		p.running = false
		switch {
		case p.signal:
			p.status = 15
		case w.P(0.12):
			p.status = 256
		}
		w.Say("%v ends on rank %d with %d", at.key, at.rank, p.status)
		w.ended(at, p)
	}
}

// ended notes where a process has done its work.
func (w *world) ended(at place, p *process) {
	for _, rank := range p.serves {
		w.good[place{at.key, rank}] = w.good[place{at.key, rank}] || p.status == 0
	}
}

// reports reports what happened, some of it twice, late or wrongly.
func (w *world) reports() {
	for _, at := range w.places() {
		if !w.P(0.5) {
			continue
		}
		switch p := w.done[at]; {
		case w.P(0.1):
			w.report(at, perilog.Report{Kind: perilog.ReportExited, Attempt: p.attempt - 1, Rank: at.rank}, p, perilog.AckStale, perilog.AckEnded, perilog.AckUnknown)
		case w.P(0.05):
			w.report(at, perilog.Report{Kind: perilog.ReportExited, Attempt: p.attempt, Rank: at.rank + 100}, p, perilog.AckUnknown, perilog.AckEnded)
		case p.running && w.P(0.4):
			w.output(at, p)
		case p.running && !p.single && w.P(0.1): // it runs on
			if w.report(at, perilog.Report{Kind: perilog.ReportUnreachable, Attempt: p.attempt, Rank: at.rank}, p) == perilog.AckApplied {
				w.pend(at, at.rank)
			}
		case p.running:
			w.report(at, perilog.Report{Kind: perilog.ReportStarted, Attempt: p.attempt, Rank: at.rank}, p)
		default:
			a := w.report(at, perilog.Report{Kind: perilog.ReportExited, Attempt: p.attempt, Rank: at.rank, Status: p.status}, p)
			if a == perilog.AckApplied && p.status != 0 && !w.wasCanceled(at, p) && !p.single {
				w.pend(at, at.rank)
			}
		}
	}
}

// wasCanceled reports whether a process counts as canceled, however it ended.
func (w *world) wasCanceled(at place, p *process) bool {
	_, fatal := w.job.State().Cause()
	return p.signal || fatal && at.key.Kind != jobstate.ActionHousekeeping
}

// pend notes that an accepted report said that a rank failed.
func (w *world) pend(at place, rank uint32) {
	if at.key.Kind == jobstate.ActionHousekeeping && (w.changed || w.cfg.Housekeeping.OnFailure == "hold" || w.cfg.Housekeeping.OnFailure == "release") {
		return
	}
	w.pending = append(w.pending, reply{rank: rank, bad: true})
}

// output lets a process write a line.
func (w *world) output(at place, p *process) {
	rank := uint32(w.N(int(w.n)))
	rep := perilog.Report{Kind: perilog.ReportOutput, Attempt: p.attempt, Rank: at.rank}
	switch w.N(5) {
	case 0:
		rep.Line = fmt.Appendf(nil, `perilog-control: {"version":1,"failed":"%d","note":"gpu"}`, rank)
		if w.report(at, rep, p) == perilog.AckApplied && slices.Contains(p.serves, rank) {
			if w.told.Insert(rank); !w.taken {
				w.pend(at, rank)
			}
		}
	case 1:
		rep.Line = []byte(`perilog-control: {"version":1,"progress":50}`)
		w.report(at, rep, p, perilog.AckIgnored, perilog.AckRepeated, perilog.AckEnded, perilog.AckStale)
	case 2:
		rep.Line = []byte(`perilog-control: {"version":2}`)
		if w.report(at, rep, p) == perilog.AckApplied && !w.taken && !p.single {
			w.pend(at, at.rank)
		}
	case 3:
		rep.Line = []byte("plain output")
		w.report(at, rep, p, perilog.AckIgnored, perilog.AckRepeated, perilog.AckEnded, perilog.AckStale)
	default:
		rep.Line = fmt.Appendf(nil, `perilog-control: {"version":1,"released":"%d"}`, rank)
		if w.report(at, rep, p) == perilog.AckApplied && p.single {
			p.let[rank] = true
			w.good[place{at.key, rank}] = true
		}
	}
}

// report reports, and judges the answer if some are named.
func (w *world) report(at place, rep perilog.Report, p *process, want ...perilog.Ack) perilog.Ack {
	rep.Action = at.key
	before := w.job.String()
	a := w.job.Report(w.now, rep)
	if a != perilog.AckApplied && w.job.String() != before {
		w.fail("answer %v, and changed\n%s\n%v", a, before, w.job)
	}
	w.Say("report %v %v rank %d attempt %d status %d %s: %v", at.key, rep.Kind, rep.Rank, rep.Attempt, rep.Status, rep.Line, a)
	w.taken = a == perilog.AckApplied && strings.Contains(before, " lost ") // whatever it said
	if len(want) > 0 && !slices.Contains(want, a) && !w.taken && !w.changed {
		w.fail("answer %v to %v of attempt %d on rank %d, want one of %v", a, rep.Kind, rep.Attempt, rep.Rank, want)
	}
	return a
}

// confirm drains nodes, and says so, perhaps of too many and twice.
func (w *world) confirm() {
	some := idset.Intersect(w.toDrain, w.someRanks(0.6))
	w.drained.UnionWith(some)
	w.toDrain.SubtractWith(some)
	w.job.Drained(w.now, w.drained)
}

// operate lets an operator resolve something, who looks at the node first.
func (w *world) operate() {
	for _, u := range w.job.Unresolved() {
		if !w.P(0.5) {
			continue
		}
		w.resolve(u)
	}
	if w.P(0.1) {
		for _, at := range w.places() {
			if p := w.done[at]; p.running && w.P(0.3) {
				w.force(at.key, idset.Of(at.rank))
			}
		}
	}
}

// resolve resolves one thing truthfully.
func (w *world) resolve(u perilog.Unresolved) {
	if u.Reason == perilog.ReasonStart {
		w.execute(false)
		return
	}
	if u.Reason == perilog.ReasonForeign {
		if w.P(0.5) {
			err := w.job.ForceFinish(w.now, u.Action, nil, 1, "root")
			w.Say("force %v: %v", u.Action, err)
			for _, s := range w.services {
				s.ended = s.ended || s.key == u.Action && err == nil
			}
		}
		return
	}
	for rank := range u.Ranks.All() {
		if !slices.ContainsFunc(w.job.Unresolved(), func(o perilog.Unresolved) bool {
			return o.Action == u.Action && o.Reason == u.Reason && o.Ranks.Contains(rank)
		}) {
			continue // it was ended by force with another one
		}
		p, ranks := w.done[place{u.Action, rank}], idset.Of(rank)
		switch {
		case u.Reason != perilog.ReasonLost || p == nil || !p.running && w.P(0.3):
			err := w.job.Rerun(w.now, u.Action, ranks)
			w.Say("rerun %v on %d: %v", u.Action, rank, err)
			if err == nil && u.Reason == perilog.ReasonHeld || u.Action == perilog.Housekeeping() {
				// What is repeated with success needs no drain.
				w.failed[rank] = false
				w.pending = slices.DeleteFunc(w.pending, func(r reply) bool { return r.rank == rank })
			}
			if err != nil && w.P(0.2) {
				w.force(u.Action, ranks)
			}
		case p.running && w.P(0.7):
			err := w.job.Reattach(w.now, u.Action, ranks)
			w.Say("reattach %v on %d: %v", u.Action, rank, err)
			w.Must(err)
		}
	}
}

// force ends an action by force, after the operator has ended its process.
func (w *world) force(key jobstate.ActionKey, ranks *idset.Set) {
	status := int32(w.N(2))
	if key.Kind == jobstate.ActionProlog {
		status = 1
	}
	if w.P(0.3) {
		ranks = nil
	}
	err := w.job.ForceFinish(w.now, key, ranks, status, "root")
	w.Say("force %v on %v: %v", key, ranks, err)
	if err != nil {
		return
	}
	for at, p := range w.done {
		if at.key == key && (ranks == nil || p.single || ranks.Contains(at.rank)) {
			w.forced.Insert(at.rank)
			for _, r := range p.serves {
				w.forced.Insert(r)
			}
		}
	}
	w.forced.UnionWith(ranks)
	lost := false // it may be one command, whose leader's rank means all ranks
	for rank := range ranks.All() {
		lost = lost || w.done[place{key, rank}] == nil
	}
	if ranks == nil || lost {
		w.forced.InsertRange(0, w.n-1)
	}
}

// careless applies what only a careless embedder applies.
func (w *world) careless() {
	switch w.N(10) {
	case 9:
		if w.job.State().WasAllocated() && w.apply("alloc", "") {
			w.fail("I1: the job was allocated twice")
		}
	case 0:
		w.apply("free", "")
	case 1:
		w.apply("clean", "")
	case 2:
		if w.apply("epilog-finish", `{"description":"job-manager.epilog","status":0}`) && bytes.Contains(w.posted, []byte(`"epilog-start"`)) {
			return // it had ended
		}
	case 3:
		// Whatever does not have it may configure it later: then it would be taken over.
		if slices.ContainsFunc(w.cfg.Epilogs, func(a perilog.ActionConfig) bool { return a.Description == "" }) && w.apply("epilog-start", `{"description":"job-manager.epilog"}`) {
			w.fail("an action of the job's was started by another")
		}
	case 4:
		w.apply("drained", `{"ranks":"0"}`)
	case 5:
		w.apply("memo", fmt.Sprintf(`{"t":%v}`, w.now))
	case 6:
		w.apply("something-new", `{"a":[1]}`)
	default:
		w.unasked()
	}
}

// finish does all that is honest to bring the job to its end.
func (w *world) finish() {
	w.Steps++
	w.now += 1
	s := w.job.State()
	w.setOffline(nil)
	w.take(true)
	if s.State().In(jobstate.StateNew|jobstate.StatePending) && s.Submitted() && s.State() != jobstate.StateNew || s.State() == jobstate.StateRun && !w.asked {
		w.cancel()
	} else if s.State().In(jobstate.StateNew | jobstate.StateRunning) {
		w.live()
		if w.asked {
			w.execute(true)
		}
	}
	w.take(true)
	for _, at := range w.places() {
		p := w.done[at]
		if p.running {
			p.running, p.status = false, 0
			if p.signal {
				p.status = 15
			}
			w.ended(at, p)
		}
		a := w.report(at, perilog.Report{Kind: perilog.ReportExited, Attempt: p.attempt, Rank: at.rank, Status: p.status}, p)
		if a == perilog.AckApplied && p.status != 0 && !w.wasCanceled(at, p) && !p.single {
			w.pend(at, at.rank)
		}
	}
	w.take(true)
	for _, s := range w.active() {
		w.endService(s, true)
	}
	for _, u := range w.job.Unresolved() {
		w.Say("unresolved: %v", u)
		w.resolve(u)
	}
	w.drained.UnionWith(w.toDrain)
	w.toDrain = new(idset.Set)
	w.job.Drained(w.now, w.drained)
	if at, ok := w.job.Deadline(); ok && w.P(0.2) {
		w.now = max(w.now, at)
	}
	w.job.Tick(w.now)
	if w.stopping() {
		w.crash()
	}
}

// stopping reports whether a shutdown goes on: the honest embedder restarts.
func (w *world) stopping() bool { return strings.Contains(w.job.String(), "; stopping") }
