package joblifetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A Scheduler is what [RunScheduler] tests. It decides when it is asked.
type Scheduler interface {
	// Hello begins a session, perhaps after another: forget what was before. These jobs
	// hold resources, and no others do. All nodes are up until the next Update.
	Hello(alloc.Announcement) error
	// Update tells which ranks come up, and which are down or drained (RFC 28). A job
	// keeps what it has there.
	Update(pool.Change) error
	// Handle takes a message of the Manager: alloc.Request, Cancel, Prioritize, Free or
	// Expiration. It may keep the message.
	Handle(alloc.Message) error
	// Decide returns responses. It is called after each Update, each Handle and each Hello that
	// no Update follows at once, and when time has passed, before what happens then. The first
	// after a Cancel returns alloc.ResponseCancel, unless the request has its response.
	Decide(now eventlog.Timestamp) []alloc.Response
}

// A SchedulerConfig says what a scheduler that is tested may do otherwise. The zero value
// is the strictest.
type SchedulerConfig struct {
	// AnyOrder is for a scheduler with an order of its own, or backfill that may delay the
	// first job: see RunScheduler.
	AnyOrder bool
	// MayWait is for a scheduler that holds back jobs although they fit, such as by a limit for
	// each user. Any job may wait, even for ever, so a scheduler that starts none passes.
	MayWait bool
}

// NewScheduler is for RunScheduler: it makes a scheduler of package sched on the nodes, to test
// a policy.
func NewScheduler(cfg sched.Config) func(nodes *rset.R) Scheduler {
	return func(nodes *rset.R) Scheduler {
		s := &session{sched.New(cfg), pool.Change{Up: nodes.Ranks()}}
		_ = s.Acquire(pool.Acquire{Resources: nodes}) // without an inventory each hello fails
		return s
	}
}

// A session is a sched.Scheduler, for which all nodes are up after a hello.
type session struct {
	*sched.Scheduler
	allUp pool.Change
}

func (s *session) Hello(a alloc.Announcement) error {
	return errors.Join(s.Scheduler.Hello(a), s.Update(s.allUp))
}

func (s *session) Update(c pool.Change) error { return s.Acquire(pool.Acquire{Change: c}) }

// RunScheduler plays a random workload of some minutes, hours or days with a scheduler from
// newScheduler, and injects the faults that the package documentation lists. The nodes are random:
// they may differ, and their ranks may have a gap. Ids may need 63 bits. It also takes nodes down,
// drains them and brings them back, limits how many requests are open, cancels jobs,
// changes priorities and expirations, and frees allocations in parts. To pass, a scheduler
//
//   - answers each request once, and none that it does not have in this session;
//   - answers a Cancel at once, and denies a job only if it does not fit even when all
//     nodes are free and up;
//   - gives what exists, is up, and is held by nobody;
//   - gives what the jobspec asks for, no less and no more: nodes, slots on each, cores and
//     gpus, within its constraints; whole nodes if they are exclusive;
//   - has each R start now, to the second, and expire after the duration of the job, if it
//     has one;
//   - names the hosts of the nodes that it gives;
//   - starts the first job as soon as it fits. The first has the highest priority; of
//     several it is the one with the lowest id;
//   - lets no other job delay the first, if all end when they expire.
//
// With AnyOrder, a job has to start only when each job that waits fits, and may delay
// others. With MayWait, it never has to, and neither order nor delay is judged: let a policy that
// wraps yours judge your own rule, by Pass.Running after Schedule. Annotations are not judged.
// RunScheduler fails t with what was wrong and all that happened before, which it also logs
// when the scheduler panics or fails t.
func RunScheduler(t *rapid.T, newScheduler func(nodes *rset.R) Scheduler, cfg SchedulerConfig) {
	must(t, runScheduler(t, newScheduler, cfg))
}

func runScheduler(t *rapid.T, newScheduler func(nodes *rset.R) Scheduler, cfg SchedulerConfig) error {
	nodes, err := machine(t)
	if err != nil {
		return err
	}
	jobs := Workloads(16, nodes.Len()).Draw(t, "workload")
	unit := time.Duration(rapid.SampledFrom([]int{1, 60, 3600}).Draw(t, "seconds of a second"))
	for i := range jobs {
		err = errors.Join(err, constrain(t, &jobs[i].Submit), jobs[i].scale(unit))
	}
	if err != nil {
		return err
	}
	r := newRunner(t, perilog.Config{}, nodes)
	r.s, r.judge.lax, r.faulty, r.small = newScheduler(nodes), cfg, true, 4
	r.greatIDs()
	return r.play(jobs)
}

// machine draws nodes with hosts and properties. Some ranks may be missing, and the last node may
// have less than the others.
func machine(t *rapid.T) (*rset.R, error) {
	all := Rs(6).Draw(t, "nodes")
	last, _ := all.Ranks().Max()
	gone := rapid.Uint32Range(0, last+3).Draw(t, "missing rank")
	small := rapid.Bool().Draw(t, "a small node")
	var entries []rset.Entry
	var hosts []string
	for rank := range all.Ranks().All() {
		if rank == gone && last > 0 {
			continue
		}
		e := rset.Entry{Ranks: idset.Of(rank), Children: map[string]*idset.Set{"core": all.Children(rank, "core")}}
		if gpus := all.Children(rank, "gpu"); !gpus.IsEmpty() && !(small && rank == last) {
			e.Children["gpu"] = gpus
		}
		if small && rank == last {
			e.Children["core"] = idset.Of(0)
		}
		entries, hosts = append(entries, e), append(hosts, fmt.Sprintf("n%d", rank))
	}
	r, err := rset.New(rset.Config{Entries: entries})
	if err == nil {
		r, err = r.AssignHosts(hostlist.Of(hosts...))
	}
	if err == nil {
		r, err = r.WithProperties(map[string]*idset.Set{"fast": idset.Intersect(r.Ranks(), idset.Of(0, 2, 3))})
	}
	return r, err
}

// constraints are what jobs have of RFC 31, and the ranks that they allow.
var constraints = []struct{ text, ranks string }{
	{"", "0-5"}, {`{"properties":["fast"]}`, "0,2-3"}, {`{"properties":["^fast"]}`, "1,4-5"}, {`{"ranks":["1-3"]}`, "1-3"},
	{`{"hostlist":["n[0,2]"]}`, "0,2"}, {`{"not":[{"hostlist":["n0"]}]}`, "1-5"}, {`{"or":[{"ranks":["0"]},{"properties":["^fast"]}]}`, "0-1,4-5"},
}

// amend changes an attribute of a jobspec to what value returns of it.
func amend(in *joblife.Submit, attribute string, value func(*jobspec.Spec) string) error {
	spec, err := jobspec.Parse(in.Jobspec)
	if err == nil {
		spec, err = spec.Update("attributes.system."+attribute, json.RawMessage(value(spec)))
	}
	if err == nil {
		in.Jobspec, err = spec.MarshalJSON()
	}
	return err
}

// constrain gives half of the jobs constraints.
func constrain(t *rapid.T, in *joblife.Submit) error {
	i := rapid.IntRange(-5, len(constraints)-1).Draw(t, "constraints")
	if i <= 0 {
		return nil
	}
	return amend(in, "constraints", func(*jobspec.Spec) string { return constraints[i].text })
}

// scale has all that a job does take a number of times longer.
func (a *Arrival) scale(by time.Duration) error {
	a.After, a.Runs, a.Cancel = a.After*by, a.Runs*by, a.Cancel*by
	return amend(&a.Submit, "duration", func(s *jobspec.Spec) string { return fmt.Sprint((s.Duration() * by).Seconds()) })
}

// A judge knows what a scheduler was told in a session.
type judge struct {
	w      *World
	nodes  *rset.R
	lax    SchedulerConfig
	trusts bool                            // only the world judges
	ready  bool                            // it has said so: until then the Manager keeps back what it has to say
	limit  int                             // how many requests may have no response; 0: any number
	off    *idset.Set                      // ranks that are down or drained
	asked  map[jobid.ID]*ask               // requests without a response
	ends   map[jobid.ID]eventlog.Timestamp // when jobs that hold resources expire; 0: never
	before map[jobid.ID]string             // requests that have had a response
}

// ask is a request.
type ask struct {
	id                        jobid.ID
	priority                  uint32
	nodes, slots, cores, gpus int // as in jobspec.Job
	exclusive, canceled       bool
	duration                  time.Duration
	allowed                   *idset.Set
}

func (a *ask) String() string {
	s := fmt.Sprintf("%d slots of %d cores and %d gpus", a.slots, a.cores, a.gpus)
	if a.nodes > 0 {
		s = fmt.Sprintf("%d nodes with %s on each", a.nodes, s)
	}
	if a.exclusive {
		s += ", all of each node"
	}
	return fmt.Sprintf("%s, on rank %v", s, a.allowed)
}

func refused(id jobid.ID, format string, args ...any) error {
	return fmt.Errorf("joblifetest: job %v: the scheduler %s", id, fmt.Sprintf(format, args...))
}

func (j *judge) hello(a *alloc.Announcement) {
	j.asked, j.ends = make(map[jobid.ID]*ask), make(map[jobid.ID]eventlog.Timestamp)
	j.before, j.ready = make(map[jobid.ID]string), false
	for _, h := range a.Responses {
		j.ends[h.ID] = h.R.Expiration()
	}
}

func (j *judge) sent(msg alloc.Message) error {
	if j.trusts {
		return nil
	}
	switch m := msg.(type) {
	case alloc.Request:
		spec, err := jobspec.Parse(m.Jobspec)
		if err != nil {
			return err
		}
		shape, err := spec.Shape()
		if err != nil {
			return err
		}
		a := &ask{
			id: m.ID, priority: m.Priority, exclusive: shape.Exclusive, duration: spec.Duration(), allowed: j.nodes.Ranks(),
			nodes: int(shape.Nodes.Min()), slots: int(shape.Slots.Min()), cores: int(shape.Cores.Min()), gpus: int(shape.GPUs.Min()),
		}
		for _, c := range constraints {
			if ranks, err := idset.Parse(c.ranks); err == nil && c.text == string(spec.Constraints()) {
				a.allowed = idset.Intersect(ranks, a.allowed)
			}
		}
		if j.asked[m.ID] = a; j.limit > 0 && len(j.asked) > j.limit {
			return fmt.Errorf("joblifetest: %d requests have no response, and SchedReady allows %d", len(j.asked), j.limit)
		}
	case alloc.Prioritize:
		for _, p := range m.Jobs {
			if a := j.asked[p.ID]; a != nil {
				a.priority = p.Priority
			}
		}
	case alloc.Cancel:
		if a := j.asked[m.ID]; a != nil {
			a.canceled = true
		}
	case alloc.Expiration:
		j.ends[m.ID] = m.Expiration
	}
	return nil
}

// knows judges that a scheduler was told of each cancel, priority and expiration.
func (j *judge) knows(m *joblife.Manager) error {
	if j.trusts || !j.ready {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(j.asked)) {
		v, ok := m.Job(id)
		if !ok || v.State() != jobstate.StateSched {
			return fmt.Errorf("joblifetest: job %v waits no more, and the scheduler is not told: its request has no Cancel", id)
		}
		if p, _ := v.Job().Priority(); p != j.asked[id].priority {
			return fmt.Errorf("joblifetest: job %v has the priority %d, and the scheduler was told %d", id, p, j.asked[id].priority)
		}
	}
	for v := range m.Jobs(jobstate.StateRun) {
		if end, told := j.ends[v.ID()]; told && end != v.R().Expiration() {
			return fmt.Errorf("joblifetest: job %v expires at %s, and the scheduler was told %s", v.ID(), clock(v.R().Expiration()), clock(end))
		}
	}
	return nil
}

// slotsOn returns how many slots of a job these resources are on each rank.
func (a *ask) slotsOn(list []core) map[uint32]int {
	count, slots := make(map[core]int), make(map[uint32]int)
	for _, c := range list {
		count[core{c.rank, c.kind, 0}]++
	}
	for c, n := range count {
		if c.kind != "core" {
			continue
		}
		slots[c.rank] = n / a.cores
		if a.gpus > 0 {
			slots[c.rank] = min(n/a.cores, count[core{c.rank, "gpu", 0}]/a.gpus)
		}
	}
	return slots
}

// fits reports whether a job has room beside ranks that are off and what is taken.
func (j *judge) fits(a *ask, off *idset.Set, taken func(core) bool) bool {
	var free []core
	for rank := range idset.Difference(a.allowed, off).All() {
		list := cores(j.nodes, idset.Of(rank))
		n := len(list)
		list = slices.DeleteFunc(list, taken)
		if !a.exclusive || len(list) == n {
			free = append(free, list...)
		}
	}
	nodes, slots := 0, 0
	for _, n := range a.slotsOn(free) {
		if slots += n; n >= a.slots {
			nodes++
		}
	}
	return a.nodes > 0 && nodes >= a.nodes || a.nodes == 0 && slots >= a.slots
}

func (j *judge) feasible(a *ask) bool {
	return j.fits(a, nil, func(core) bool { return false })
}

// first returns the first job that waits, of those that ever fit. Nil: none waits.
func (j *judge) first() (first *ask) {
	for _, a := range j.asked {
		if a.canceled || !j.feasible(a) {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(first.priority, a.priority), cmp.Compare(a.id, first.id)) < 0 {
			first = a
		}
	}
	return first
}

// response judges a response, and tells the world.
func (j *judge) response(resp alloc.Response, now eventlog.Timestamp) error {
	id := resp.ID
	if j.trusts {
		if resp.Type == alloc.ResponseSuccess {
			j.w.Allocated(id, resp.R)
		}
		return j.w.Err()
	}
	a := j.asked[id]
	switch {
	case a == nil && j.before[id] != "":
		return refused(id, "responds %v, and has responded %s before", resp.Type, j.before[id])
	case a == nil:
		return refused(id, "responds %v, and has no request for it in this session", resp.Type)
	case resp.Type == alloc.ResponseAnnotate:
		return nil
	case a.canceled && resp.Type != alloc.ResponseCancel:
		return refused(id, "responds %v to a request that was canceled", resp.Type)
	case !a.canceled && resp.Type == alloc.ResponseCancel:
		return refused(id, "responds %v to a request that was not canceled", resp.Type)
	case resp.Type == alloc.ResponseDeny && j.feasible(a):
		return refused(id, "denies it, and it fits when all nodes are up and free: %v", a)
	}
	delete(j.asked, id)
	j.before[id] = resp.Type.String()
	if resp.Type != alloc.ResponseSuccess {
		return nil
	}
	for _, c := range cores(resp.R, resp.R.Ranks()) {
		if ids := j.nodes.Children(c.rank, c.kind); !ids.Contains(c.id) {
			return refused(id, "gives it what does not exist: rank %d has no %s %d", c.rank, c.kind, c.id)
		}
	}
	if j.w.Allocated(id, resp.R); j.w.Err() != nil {
		return j.w.Err()
	}
	j.ends[id] = resp.R.Expiration()
	if err := j.amount(a, resp.R, now); err != nil {
		return err
	}
	if first := j.first(); first != nil && !j.lax.AnyOrder && !j.lax.MayWait {
		return j.order(first, a, resp.R, now)
	}
	return nil
}

// amount judges that a job gets what it asks for.
func (j *judge) amount(a *ask, r *rset.R, now eventlog.Timestamp) error {
	if off := idset.Intersect(r.Ranks(), j.off); !off.IsEmpty() {
		return refused(a.id, "gives it rank %v, which is down or drained", off)
	}
	if not := idset.Difference(r.Ranks(), a.allowed); !not.IsEmpty() {
		return refused(a.id, "gives it rank %v, which its constraints do not allow: %v", not, a)
	}
	got := cores(r, r.Ranks())
	nodes, slots, per := r.Ranks().Len(), 0, a.slotsOn(got)
	for rank := range r.Ranks().All() {
		slots += per[rank]
		if a.nodes > 0 && per[rank] < a.slots {
			return refused(a.id, "gives it %d slots on rank %d: it asks for %v", per[rank], rank, a)
		}
	}
	most := max(a.nodes, 1) * a.slots * (a.cores + a.gpus)
	switch {
	case a.nodes > 0 && nodes != a.nodes:
		return refused(a.id, "gives it %d nodes, rank %v: it asks for %v", nodes, r.Ranks(), a)
	case a.nodes == 0 && slots < a.slots:
		return refused(a.id, "gives it %d slots, %v: it asks for %v", slots, r, a)
	case a.exclusive && len(got) != len(cores(j.nodes, r.Ranks())):
		return refused(a.id, "gives it a part of a node, %v: it asks for %v", r, a)
	case !a.exclusive && len(got) > most:
		return refused(a.id, "gives it more than it asks for, %v: it asks for %v", r, a)
	case r.Start() > now || r.Start() <= now-1:
		return refused(a.id, "gives it resources from %s on: take the time from Decide", clock(r.Start()))
	}
	expires := eventlog.Timestamp(0)
	if a.duration > 0 {
		expires = r.Start() + eventlog.Timestamp(a.duration.Seconds())
	}
	if r.Expiration() != expires {
		return refused(a.id, "gives it resources from %s to %s: it asks for %v, where 0 is no limit", clock(r.Start()), clock(r.Expiration()), a.duration)
	}
	nodelist, err := j.nodes.Restrict(r.Ranks())
	if err == nil && nodelist.Nodelist().String() != r.Nodelist().String() {
		return refused(a.id, "gives it the hosts %q, and those of rank %v are %q", r.Nodelist(), r.Ranks(), nodelist.Nodelist())
	}
	return err
}

// order judges that the first job that waits did not have to make way for another.
func (j *judge) order(first, a *ask, r *rset.R, now eventlog.Timestamp) error {
	earlier := cmp.Or(cmp.Compare(first.priority, a.priority), cmp.Compare(a.id, first.id)) > 0
	booked := j.w.booked
	held := func(c core) bool { return booked[c] != 0 && booked[c] != a.id } // before
	if earlier && j.fits(first, j.off, held) {
		return refused(a.id, "gives it resources, with priority %d, and job %v with priority %d comes first and fits: %v", a.priority, first.id, first.priority, first)
	}
	if !earlier {
		return nil
	}
	for _, at := range slices.Sorted(maps.Values(j.ends)) {
		at = max(at, now)
		later := func(c core) bool { return held(c) && (j.ends[booked[c]] == 0 || j.ends[booked[c]] > at) }
		if !j.fits(first, j.off, later) {
			continue
		}
		ends := j.ends[a.id]
		if ends != 0 && ends <= at || j.fits(first, j.off, func(c core) bool { return later(c) || booked[c] == a.id }) {
			return nil
		}
		return refused(a.id, "gives it %v, and so delays job %v with priority %d, which comes first and could start at %s: %v", r, first.id, first.priority, clock(at), first)
	}
	return nil
}

// unanswered judges what a scheduler has not responded to.
func (j *judge) unanswered() error {
	first := j.first()
	fits := first != nil && !j.lax.MayWait
	for _, id := range slices.Sorted(maps.Keys(j.asked)) {
		a := j.asked[id]
		if a.canceled {
			return refused(id, "does not respond to its request, which was canceled")
		}
		if fits && (a == first || j.lax.AnyOrder && j.feasible(a)) {
			fits = j.fits(a, j.off, func(c core) bool { return j.w.booked[c] != 0 })
		}
	}
	switch {
	case fits && j.lax.AnyOrder:
		return fmt.Errorf("joblifetest: no job starts, and each job that waits fits, such as job %v: %v", first.id, first)
	case fits:
		return refused(first.id, "does not respond to its request, and the job comes first and fits: %v", first)
	}
	return nil
}
