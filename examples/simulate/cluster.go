package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

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
	"github.com/joblife/joblife/rset/children"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A cluster is a manager of jobs, a scheduler, and all that is outside: nodes that
// run jobs, prologs and epilogs on a virtual clock. Only the outside is made up. The
// manager and the scheduler do what they would do in life.
type cluster struct {
	o     *options
	start time.Time // of the clock
	now   seconds
	cfg   joblife.Config
	m     *joblife.Manager
	sched *sched.Scheduler
	jobs  []job // by id, from 1
	next  int   // the next job to submit
	specs map[shape]*jobspec.Spec
	left  int // jobs that are not inactive
	nodes []node
	queue events
	added int // events

	l        *loop.Loop
	inputs   []joblife.Input  // to be put into it
	reports  []joblife.Report // of this moment
	reported int              // how many of them are among the inputs
	err      error            // of what the loop did
	stored   []joblife.Record // what is durable, for a restart
	log      *logs
	offline  *idset.Set // nodes that are down
	vain     int        // how often one failed since a job began or was over, while others wait
	drained  *idset.Set // nodes that are out of service until they are repaired
	rng      *rand.Rand // of failures of nodes
	pcg      rand.PCG   // scratch of takes
	times    []seconds  // the same
	metrics
}

// A job is what the outside knows of one.
type job struct {
	*arrival
	r       *rset.R // what it has
	running bool
	ran     bool    // its processes began
	began   seconds // when they did
	ended   seconds // when they ended
	free    seconds // when its last node was free
	idle    seconds // unit-seconds that it had nodes, or cores, while nothing ran there
	result  jobstate.Result
}

// A shape is what a jobspec depends on.
type shape struct {
	size  int
	limit seconds
	gpu   bool
}

// A node has the jobs that have some of it: one at most, unless they share nodes.
type node []tenant

// A tenant is a job on a node, where it runs one process at a time.
type tenant struct {
	job   jobid.ID
	what  *children.Set  // that it has of the node
	units int            // the same, counted
	last  perilog.Report // what a prolog or epilog there said last; zero: nothing
	since seconds        // when what it does began: a process, or nothing
}

// acts reports whether a prolog or an epilog runs.
func (t *tenant) acts() bool { return t.last.Kind == perilog.ReportStarted }

// of returns a job on the node, nil if it is not there.
func (n node) of(id jobid.ID) *tenant {
	for i := range n {
		if n[i].job == id {
			return &n[i]
		}
	}
	return nil
}

// newCluster returns a cluster before its first job.
func newCluster(o *options, work []arrival, w way, seed uint64) (*cluster, error) {
	c := &cluster{
		o: o, start: time.Unix(1_600_000_000, 0).UTC(), jobs: make([]job, len(work)+1), left: len(work), next: 1, specs: make(map[shape]*jobspec.Spec),
		nodes: make([]node, o.nodes), offline: new(idset.Set), drained: new(idset.Set), rng: rand.New(rand.NewPCG(seed, 2)),
	}
	for i := range work {
		c.jobs[i+1].arrival = &work[i]
	}
	c.cfg.Actions.WholeJob = w == wholeJob
	if o.prolog > 0 {
		c.cfg.Actions.Prologs = []perilog.ActionConfig{{PerRank: true}}
	}
	if o.epilog > 0 {
		c.cfg.Actions.Epilogs = []perilog.ActionConfig{{PerRank: true}}
	}
	first := seed == o.seed
	c.cfg.Volatile = o.restarts == 0 && (o.log == "" || !first)
	c.metrics = metrics{seed: seed, units: o.units(), latency: make(map[seconds]int), draws: first && o.html+o.svg != ""}
	c.limit(work, o.trim)
	if o.log != "" && first {
		var err error
		if c.log, err = newLogs(o.log, w); err != nil {
			return nil, err
		}
	}
	nodes, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, uint32(o.nodes-1)), Children: o.kinds(),
	}}})
	if err != nil {
		return nil, err
	}
	c.sched = sched.New(sched.Config{Policy: policies[o.policy].of(o)})
	if err := c.sched.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}); err != nil {
		return nil, err
	}
	m, err := joblife.New(c.cfg)
	if err != nil {
		return nil, err
	}
	for i := range o.restarts {
		c.after(work[len(work)-1].submit*seconds(i+1)/seconds(o.restarts+1), func() { c.check(c.restart()) })
	}
	if o.mtbf > 0 {
		c.fail()
	}
	return c, c.connect(m)
}

// A way is how jobs give nodes back.
type way int

const (
	wholeJob way = iota
	partialRelease
)

func (w way) file() string { return [...]string{"whole", "partial"}[w] }

// play lives until all jobs are over, or ctx is canceled. It calls step with the number
// of jobs that ended.
func (c *cluster) play(ctx context.Context, step func(int)) error {
	shown := c.left
	for n := 0; ; n++ {
		goes, err := c.advance()
		if n%256 == 0 || !goes {
			step(shown - c.left)
			shown = c.left
			err = errors.Join(err, ctx.Err())
		}
		if !goes || err != nil {
			c.results = c.ended()
			if c.log != nil {
				err = errors.Join(err, c.log.close())
			}
			c.m, c.l, c.sched, c.stored, c.specs, c.inputs, c.reports = nil, nil, nil, nil, nil, nil, nil
			return err
		}
	}
}

func (c *cluster) ended() map[jobstate.Result]int {
	results := make(map[jobstate.Result]int)
	for v := range c.m.Jobs(jobstate.StateInactive) {
		if r, ok := v.Result(); ok {
			results[r]++
			c.jobs[v.ID()].result = r
		}
	}
	return results
}

// connect runs a manager, which hears of inputs first. The scheduler learns from its hello
// what jobs have.
func (c *cluster) connect(m *joblife.Manager, inputs ...joblife.Input) (err error) {
	c.m = m
	c.l, err = loop.New(m, loop.Config{
		Store: c, MaxInputs: math.MaxInt,
		Effects: func(_ *joblife.Manager, rd *joblife.Ready) { c.do(rd); c.flush() },
		Refused: func(in joblife.Input, err error) { c.check(fmt.Errorf("%T: %w", in, err)) },
	})
	if err != nil {
		return err
	}
	for _, in := range append(inputs, joblife.SchedHello{PartialOK: true}, joblife.SchedReady{}, joblife.ExecHello{}) {
		c.put(in)
	}
	return c.settle()
}

func (c *cluster) time() time.Time { return c.start.Add(time.Duration(c.now) * time.Second) }

func (c *cluster) seconds(t time.Time) seconds {
	return seconds((t.Sub(c.start) + time.Second - 1) / time.Second)
}

// advance goes on to the next moment at which something happens, and does all that
// follows. It returns false when all jobs are over.
func (c *cluster) advance() (bool, error) {
	if c.left == 0 {
		return false, nil
	}
	const never = seconds(math.MaxInt64)
	at := never
	if c.next < len(c.jobs) {
		at = c.jobs[c.next].submit
	}
	if len(c.queue) > 0 {
		at = min(at, c.queue[0].at)
	}
	if deadline, ok := c.m.Deadline(); ok {
		at = min(at, c.seconds(deadline))
	}
	if at == never {
		return false, fmt.Errorf("nothing happens any more, and %d jobs are left", c.left)
	}
	if at > 2*maxSeconds {
		return false, fmt.Errorf("the run takes more than 200 years, and %d jobs are left", c.left)
	}
	c.now = max(c.now, at)
	c.pass(c.now)
	for ; c.next < len(c.jobs) && c.jobs[c.next].submit <= c.now; c.next++ {
		c.submit(jobid.ID(c.next))
	}
	c.happen()
	return true, c.settle()
}

func (c *cluster) submit(id jobid.ID) {
	c.waiting++
	j := &c.jobs[id]
	as := shape{j.size, j.limit, j.gpu}
	spec, ok := c.specs[as]
	if !ok {
		var err error
		want := jobspec.Job{Slots: int64(j.size), Duration: time.Duration(j.limit) * time.Second, Command: []string{"app"}}
		switch per := c.o.perGPU(); {
		case j.gpu:
			want.Slots, want.Cores, want.GPUs = int64(j.size/per), int64(per), 1
		case j.size%c.units == 0:
			want.Nodes, want.Slots, want.Exclusive = int64(j.size/c.units), 0, true
		}
		spec, err = jobspec.New(want)
		c.check(err)
		c.specs[as] = spec
	}
	c.put(joblife.Submit{ID: id, By: joblife.Cred{UserID: j.user}, Spec: spec, Urgency: jobstate.UrgencyDefault})
}

// put has an input dispatched in the next Advance, or in this one.
func (c *cluster) put(in joblife.Input) {
	c.report()
	c.inputs = append(c.inputs, in)
}

// report puts the reports of nodes that end at the same time as one input.
func (c *cluster) report() {
	if n := len(c.reports); n > c.reported {
		c.inputs = append(c.inputs, joblife.Reports{List: c.reports[c.reported:n:n]})
		c.reported = n
	}
}

// flush puts many inputs at once, which costs far less than one by one.
func (c *cluster) flush() {
	c.report()
	c.check(c.l.Put(c.inputs...))
	clear(c.inputs)
	c.inputs = c.inputs[:0]
}

// check keeps the first error.
func (c *cluster) check(err error) { c.err = cmp.Or(c.err, err) }

// settle passes on what is to be told, until nothing follows from it.
func (c *cluster) settle() error {
	for {
		c.flush()
		if c.check(c.l.Advance(c.time())); c.err != nil {
			return c.err
		}
		c.reports, c.reported = c.reports[:0], 0 // all were dispatched
		responses := c.sched.Decide(eventlog.FromTime(c.time()))
		if len(responses) == 0 {
			return nil
		}
		for _, r := range responses {
			if r.R != nil {
				c.jobs[r.ID].r = r.R
			}
			c.put(joblife.SchedResponse(r))
		}
	}
}

// Append keeps the records.
func (c *cluster) Append(records []joblife.Record) error {
	for _, r := range records {
		if c.o.restarts > 0 {
			c.stored = append(c.stored, r.Clone())
		}
		if c.log != nil {
			c.log.add(r)
		}
	}
	return nil
}

// Unlink removes nothing: no job is purged.
func (*cluster) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }

// do does what a Ready wants done.
func (c *cluster) do(rd *joblife.Ready) {
	for _, f := range rd.Faults {
		c.check(f)
	}
	if rd.Hello != nil {
		c.check(c.sched.Hello(*rd.Hello))
	}
	for _, msg := range rd.Sched {
		if f, ok := msg.(alloc.Free); ok {
			c.freed(f)
		}
		c.check(c.sched.Handle(msg))
	}
	for _, msg := range rd.Exec {
		if s, ok := msg.(exec.Start); ok {
			c.started(s)
		}
	}
	for _, r := range rd.Raised {
		if r.Severity == 0 && c.jobs[r.Job].running {
			c.finish(r.Job, 9) // killed
		}
	}
	for _, l := range rd.Launch {
		c.launch(l)
	}
	for _, d := range rd.Drain {
		c.drain(d.Ranks)
	}
	for _, e := range rd.Journal {
		if e.Entry.Name != "clean" {
			continue
		}
		c.left--
		c.vain = 0
		if !c.jobs[e.Job].ran {
			c.waiting--
		}
		if c.log != nil {
			c.check(c.log.over(e.Job))
		}
	}
}

func (c *cluster) started(s exec.Start) {
	j := &c.jobs[s.ID]
	if s.Reattach {
		if j.running {
			c.put(joblife.ExecResponse{ID: s.ID, Type: exec.ResponseReattached})
		}
		return
	}
	j.running, j.ran, j.began, c.vain = true, true, c.now, 0
	c.occupy(s.ID, nil)
	c.begins(j)
	status := int32(0)
	if j.fails {
		status = 1 << 8
	}
	c.after(j.run, func() {
		if j.running { // nobody has killed it
			c.finish(s.ID, status)
		}
	})
	c.put(joblife.ExecResponse{ID: s.ID, Type: exec.ResponseStart})
	if c.offline.IsEmpty() {
		return
	}
	if rank, down := idset.Intersect(j.r.Ranks(), c.offline).Min(); down { // since its own prolog ended
		c.nodeFailed(s.ID, rank)
	}
}

// occupy puts a job on nodes; nil is all of its nodes.
func (c *cluster) occupy(id jobid.ID, ranks *idset.Set) {
	for p := range c.jobs[id].r.Parts() {
		for rank := p.First; rank <= p.Last; rank++ {
			if ranks != nil && !ranks.Contains(rank) {
				continue
			}
			n := &c.nodes[rank]
			t := n.of(id)
			if t == nil {
				for _, other := range *n {
					if other.what.Intersects(p.What) {
						panic(fmt.Sprintf("jobs %d and %d have the same of node %d", other.job, id, rank)) // the manager's promise
					}
				}
				*n = append(*n, tenant{job: id, what: p.What, units: c.count(p.What), since: c.now})
				t = &(*n)[len(*n)-1]
				c.held += t.units
			}
			c.spent(rank, t, spentIdle)
		}
	}
}

// count returns how many units resources of a node are.
func (c *cluster) count(what *children.Set) int {
	if c.o.share {
		return what.Len("core")
	}
	return 1
}

// each yields the nodes of some resources on which their job is, and the job there.
func (c *cluster) each(id jobid.ID, r *rset.R) iter.Seq2[uint32, *tenant] {
	return func(yield func(uint32, *tenant) bool) {
		for p := range r.Parts() {
			for rank := p.First; rank <= p.Last; rank++ {
				if t := c.nodes[rank].of(id); t != nil && !yield(rank, t) {
					return
				}
			}
		}
	}
}

func (c *cluster) finish(id jobid.ID, status int32) {
	j := &c.jobs[id]
	j.running, j.ended = false, c.now
	c.ends(j)
	for rank, t := range c.each(id, j.r) {
		c.spent(rank, t, spentJob)
	}
	c.put(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish, Status: status})
	c.put(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
}

// takes returns how long a prolog or an epilog of a job takes on each of its nodes, in
// order. It follows from the job alone, so that both ways have the same stragglers.
// The result is valid until the next call.
func (c *cluster) takes(id jobid.ID, kind jobstate.ActionKind, nodes int) []seconds {
	mean, odd := c.o.epilog, c.o.straggle
	if kind == jobstate.ActionProlog {
		mean, odd = c.o.prolog, 0
	}
	c.pcg.Seed(c.seed, uint64(id)<<8|uint64(kind))
	rng := rand.New(&c.pcg)
	c.times = c.times[:0]
	for range nodes {
		takes := float64(mean) * (0.75 + rng.Float64()/2)
		if rng.Float64() < odd {
			takes += rng.ExpFloat64() * float64(c.o.straggler)
		}
		c.times = append(c.times, max(1, seconds(takes+0.5)))
	}
	return c.times
}

// launch starts a prolog or an epilog on nodes.
func (c *cluster) launch(l joblife.Launch) {
	type exit struct {
		takes seconds
		rank  uint32
	}
	takes := c.takes(l.Job, l.Action.Kind, l.Ranks.Len())
	list := make([]exit, 0, len(takes))
	c.occupy(l.Job, l.Ranks)
	for rank := range l.Ranks.All() {
		t := c.nodes[rank].of(l.Job)
		t.last = perilog.Report{Action: l.Action, Attempt: l.Attempt, Rank: rank, Kind: perilog.ReportStarted}
		c.acting += t.units
		list = append(list, exit{takes[len(list)], rank})
	}
	slices.SortStableFunc(list, func(a, b exit) int { return cmp.Compare(a.takes, b.takes) })
	for len(list) > 0 {
		later := slices.IndexFunc(list, func(e exit) bool { return e.takes > list[0].takes })
		if later < 0 {
			later = len(list)
		}
		group := list[:later]
		list = list[later:]
		c.after(group[0].takes, func() {
			for _, e := range group {
				if t := c.nodes[e.rank].of(l.Job); t != nil && t.acts() && t.last.Action == l.Action && t.last.Attempt == l.Attempt {
					c.exit(e.rank, t, perilog.ReportExited)
				}
			}
		})
	}
}

func (c *cluster) exit(rank uint32, t *tenant, kind perilog.ReportKind) {
	c.spent(rank, t, spentActing(t.last.Action))
	c.acting -= t.units
	t.last.Kind = kind
	c.reports = append(c.reports, joblife.Report{Job: t.job, Report: t.last})
}

func (c *cluster) freed(f alloc.Free) {
	if f.R == nil {
		return
	}
	j := &c.jobs[f.ID]
	for rank, t := range c.each(f.ID, f.R) { // nowhere if the job was over before anything ran
		c.spent(rank, t, spentIdle)
		j.free = c.now
		if j.ran && c.counts(j.submit) {
			c.latency[c.now-j.ended] += t.units
		}
		c.held -= t.units
		n := &c.nodes[rank]
		*n = slices.DeleteFunc(*n, func(t tenant) bool { return t.job == f.ID })
	}
	if f.Final {
		j.r = nil
	}
}

// drain takes nodes out of service, until they are repaired.
func (c *cluster) drain(ranks *idset.Set) {
	for rank := range ranks.All() {
		if !c.offline.Contains(rank) && c.drained.Insert(rank) {
			c.repair(rank)
		}
	}
	c.put(joblife.Drained{Ranks: ranks})
	c.change(pool.Change{Down: ranks})
}
