package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
)

// driver is a manager that sends lines to a session and holds each answer
// against the naive machine.
type driver struct {
	t       testing.TB
	rng     *rand.Rand
	policy  string
	args    []string
	byRank  bool // all fragments are ranks, as those of RFC 27
	machine machine
	session *session
	clock   *lines.Clock
	out     bytes.Buffer
	told    bytes.Buffer // standard error
	record  *[]byte      // of all that is written, if not nil
	lines   int
	spent   time.Duration // in the session
	events  []event       // of running jobs, by time
	nextID  jobid.ID

	counts struct {
		started, denied, canceled, backfilled, partial, leftOver, overrun, ignored, estimates, moved, expired, down int
	}
}

// event is what happens to a running job: it frees a fragment, or what it has.
type event struct {
	at    eventlog.Timestamp
	id    jobid.ID
	final bool
}

const begin = eventlog.Timestamp(1e6)

func newDriver(t testing.TB, policy string, seed uint64, args ...string) *driver {
	d := &driver{t: t, rng: rand.New(rand.NewPCG(seed, 1)), policy: policy, args: args, nextID: 1}
	d.machine = machine{owners: map[unit]jobid.ID{}, jobs: map[jobid.ID]*naiveJob{}}
	for r := range 16 {
		n := node{cores: 8}
		if r >= 8 {
			n.gpus = 2
		}
		if r >= 13 {
			n.cores, n.big = 12, true
		}
		d.machine.nodes = append(d.machine.nodes, n)
	}
	d.connect(begin)
	return d
}

// connect begins a session, with a hello of all that is held.
func (d *driver) connect(now eventlog.Timestamp) {
	var o options
	args := append([]string{"-policy", d.policy, "-now", fmt.Sprint(float64(now))}, d.args...)
	status, ok := o.program().Parse(args, &d.told, &d.told)
	require.True(d.t, ok, status)
	d.session = newSession(o, &d.out, &d.told)
	d.clock = d.session.clock
	require.NoError(d.t, d.session.hello())
	d.out.Reset()

	cfg := rset.Config{Properties: map[string]*idset.Set{"big": new(idset.Set)}}
	up := new(idset.Set)
	for r, n := range d.machine.nodes {
		if !n.down {
			up.Insert(uint32(r))
		}
		if n.big {
			cfg.Properties["big"].Insert(uint32(r))
		}
		cfg.Entries = append(cfg.Entries, entries(d.machine.units(uint32(r)))...)
	}
	hosts, err := hostlist.Parse("n[0-15]")
	require.NoError(d.t, err)
	cfg.Hosts = hosts
	inventory, err := rset.New(cfg)
	require.NoError(d.t, err)
	d.acquire(pool.Acquire{Resources: inventory, Change: pool.Change{Up: up}})
	for _, j := range d.jobs(true) {
		m := alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: j.id, Priority: j.priority, UserID: 1}, Free: j.r.Ranks()}
		m.R, err = j.r.WithTimes(j.r.Start(), j.expires)
		require.NoError(d.t, err)
		for _, u := range j.units {
			m.Free.Remove(u.rank)
		}
		d.send(alloc.TopicHello, m)
	}
	answers := d.write(alloc.Line{Topic: alloc.TopicHello, Errnum: alloc.NoData}.AppendText(nil))
	require.Len(d.t, answers, 1)
	require.Equal(d.t, alloc.TopicReady, answers[0].Topic)
}

// write sends a line and returns the answers to it.
func (d *driver) write(text []byte, err error) (answers []alloc.Line) {
	require.NoError(d.t, err)
	d.lines++
	d.told.Reset()
	start := time.Now()
	err = d.session.Take(lines.Line{Number: d.lines, Text: text})
	d.spent += time.Since(start)
	require.NoError(d.t, err)
	if d.record != nil {
		*d.record = append(*d.record, d.out.Bytes()...)
	}
	for text := range bytes.Lines(d.out.Bytes()) {
		m, err := alloc.ParseLine(text)
		require.NoError(d.t, err)
		m.Payload = slices.Clone(m.Payload)
		answers = append(answers, m)
	}
	d.out.Reset()
	return answers
}

// send sends a message, and checks what the scheduler says to it.
func (d *driver) send(topic string, m alloc.Message) {
	d.check(d.write(alloc.AppendMessage(nil, topic, m)))
}

// acquire tells of a change of the inventory.
func (d *driver) acquire(a pool.Acquire) {
	c := a.Change
	payload, err := json.Marshal(struct {
		Resources        *rset.R               `json:"resources,omitempty"`
		Up               *idset.Set            `json:"up,omitempty"`
		Down             *idset.Set            `json:"down,omitempty"`
		Shrink           *idset.Set            `json:"shrink,omitempty"`
		AddProperties    map[string]*idset.Set `json:"property-add,omitempty"`
		RemoveProperties map[string]*idset.Set `json:"property-remove,omitempty"`
		Expiration       *eventlog.Timestamp   `json:"expiration,omitempty"`
	}{a.Resources, c.Up, c.Down, c.Shrink, c.AddProperties, c.RemoveProperties, c.Expiration})
	require.NoError(d.t, err)
	d.check(d.write(alloc.Line{Topic: topicAcquire, Payload: payload}.AppendText(nil)))
}

// check holds answers against the machine, and then whether all was started
// that had to be.
func (d *driver) check(answers []alloc.Line) {
	require.Empty(d.t, d.told.String())
	for _, m := range answers {
		require.Zero(d.t, m.Errnum, m.Errstr)
		if m.Topic != alloc.TopicAlloc {
			require.Equal(d.t, alloc.TopicExpiration, m.Topic)
			continue
		}
		a, err := alloc.Parse[alloc.Response](m.Payload)
		require.NoError(d.t, err)
		j := d.machine.jobs[a.ID]
		require.NotNil(d.t, j, "answer to no request: %s", m)
		require.False(d.t, j.running, "answer to a request that was answered: %s", m)
		switch a.Type {
		case alloc.ResponseSuccess:
			d.started(j, a)
		case alloc.ResponseAnnotate:
			d.annotated(j, a)
		case alloc.ResponseDeny:
			d.counts.denied++
			require.False(d.t, d.machine.possible(j.wish), "denied and possible: %+v: %s", j.wish, a.Note)
			delete(d.machine.jobs, j.id)
		case alloc.ResponseCancel:
			d.counts.canceled++
			require.True(d.t, j.canceled)
			delete(d.machine.jobs, j.id)
		}
	}
	if j := d.machine.first(); j != nil && d.session.ready {
		require.False(d.t, d.machine.fitsNow(j.wish), "job %d waits and fits: %+v", uint64(j.id), j.wish)
	}
	if d.lines%8 == 0 {
		d.checkForecast()
	}
	if d.lines%64 == 0 {
		d.checkBackfill()
		require.NoError(d.t, d.session.pool.Check())
	}
}

// started checks an allocation.
func (d *driver) started(j *naiveJob, a alloc.Response) {
	d.counts.started++
	now := d.clock.Now()
	first := d.machine.first()
	require.NoError(d.t, d.machine.give(j, a.R), "job %d: %+v: %v", uint64(j.id), j.wish, a.R)
	require.Equal(d.t, now, a.R.Start())
	require.Equal(d.t, now+eventlog.Timestamp(j.wish.duration), a.R.Expiration())
	require.Contains(d.t, string(a.Annotations), `"resource_summary":"rank`)
	if head := d.head(); d.policy == "easy" && head != nil && head.before(j) {
		require.Contains(d.t, string(a.Annotations), `"backfill":"`+head.id.String()+`"`)
	} else {
		require.NotContains(d.t, string(a.Annotations), "backfill")
	}
	require.Equal(d.t, j.estimate > 0, strings.Contains(string(a.Annotations), `"t_estimate":null`))
	if j != first {
		require.Equal(d.t, "easy", d.policy, "job %d overtook job %d", uint64(j.id), uint64(first.id))
		d.counts.backfilled++
		// The one that has a reservation is the first that can have one.
		if head := d.head(); head != nil && head.before(j) {
			require.True(d.t, d.machine.fitsAt(head.wish, head.estimate), "job %d delays job %d: %v", uint64(j.id), uint64(head.id), a.R)
		}
	}
	d.plan(j)
}

// head returns the job that has a reservation, since easy tells its start, nil if none was.
func (d *driver) head() (head *naiveJob) {
	if d.policy != "easy" {
		return nil
	}
	for _, j := range d.machine.jobs {
		if !j.running && j.estimate > 0 {
			require.Nil(d.t, head, "two jobs were told their start")
			head = j
		}
	}
	return head
}

// annotated checks an estimate.
func (d *driver) annotated(j *naiveJob, a alloc.Response) {
	var notes struct {
		Sched struct {
			Estimate *eventlog.Timestamp `json:"t_estimate"`
		}
	}
	require.NoError(d.t, json.Unmarshal(a.Annotations, &notes))
	j.estimate = 0
	if notes.Sched.Estimate == nil {
		return
	}
	d.counts.estimates++
	j.estimate = *notes.Sched.Estimate
	if d.policy == "easy" {
		require.Equal(d.t, d.head(), j)
	}
}

// checkForecast checks what fifo told its first jobs: that they start one after the other,
// the first as soon as there is room, and none before it could start alone. Package pool
// tests plans.
func (d *driver) checkForecast() {
	if f, ok := d.session.policy.(*forecasting); !ok || f.stale || f.next != d.clock.Now()+f.period {
		return // time went on
	}
	last, known := d.clock.Now(), true
	for i, j := range d.session.waiting {
		told := d.machine.jobs[j.id].estimate
		if known = known && i < maxTold && told > 0; !known {
			require.Zero(d.t, told, "job %d", uint64(j.id))
			continue
		}
		alone, ok := d.machine.earliest(d.machine.jobs[j.id].wish, d.clock.Now())
		require.True(d.t, ok)
		require.GreaterOrEqual(d.t, told, max(last, alone), "job %d", uint64(j.id))
		if i == 0 {
			require.Equal(d.t, alone, told)
		}
		last = told
	}
	if first := d.session.waiting.first(); first != nil {
		_, ok := d.machine.earliest(d.machine.jobs[first.id].wish, d.clock.Now())
		require.Equal(d.t, ok, d.machine.jobs[first.id].estimate > 0)
	}
}

// checkBackfill checks the estimate of the head, and that none waits that could
// start without harm to it.
func (d *driver) checkBackfill() {
	head := d.head()
	if head == nil {
		return
	}
	now := d.clock.Now()
	// Jobs overrun, and then an estimate is as old as the last message.
	if at, ok := d.machine.earliest(head.wish, now); ok && head.estimate > now {
		require.LessOrEqual(d.t, at, head.estimate, "job %d", uint64(head.id))
	}
	for _, j := range d.machine.jobs {
		if !j.running && head.before(j) && now+eventlog.Timestamp(j.wish.duration) <= head.estimate {
			require.False(d.t, d.machine.fitsNow(j.wish), "job %d could start before job %d", uint64(j.id), uint64(head.id))
		}
	}
}

// plan says when a job that started gives back what.
func (d *driver) plan(j *naiveJob) {
	length := j.wish.duration * d.rng.Float64()
	switch d.rng.IntN(10) {
	case 0: // it stays beyond its expiration, as with a slow epilog
		length = j.wish.duration * 1.2
		d.counts.overrun++
	case 1:
		length = j.wish.duration
	}
	at := d.clock.Now() + eventlog.Timestamp(length)
	for range d.rng.IntN(4) - 1 {
		d.events = append(d.events, event{at, j.id, false})
		at += eventlog.Timestamp(d.rng.Float64() * 20)
	}
	d.events = append(d.events, event{at, j.id, true})
	slices.SortStableFunc(d.events, func(a, b event) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
}

// step lets the next event happen.
func (d *driver) step() {
	e := d.events[0]
	d.events = d.events[1:]
	d.clock.Advance(e.at)
	j := d.machine.jobs[e.id]
	fragment := j.units
	leftOver := false
	switch {
	case !e.final:
		fragment = d.some(j.units)
	case d.rng.IntN(20) == 0:
		// The fragments do not add up: final frees the rest.
		fragment = d.some(j.units)
		leftOver = len(fragment) < len(j.units)
	}
	if len(fragment) == 0 && !e.final {
		return
	}
	r, err := resources(fragment)
	require.NoError(d.t, err)
	if leftOver {
		d.counts.leftOver++
	}
	if !e.final {
		d.counts.partial++
	}
	d.machine.take(j, fragment, e.final)
	d.send(alloc.TopicFree, alloc.Free{ID: e.id, R: r, Final: e.final})
}

// some returns some of the units: of some ranks all, or any.
func (d *driver) some(units []unit) (out []unit) {
	byRank := d.byRank || d.rng.IntN(2) == 0
	keep := make(map[uint32]bool)
	for _, u := range units {
		if _, seen := keep[u.rank]; !seen || !byRank {
			keep[u.rank] = d.rng.IntN(2) == 0
		}
		if keep[u.rank] {
			out = append(out, u)
		}
	}
	return out
}

// wish draws what a job asks for.
func (d *driver) wish() wish {
	w := wish{slots: 1 + d.rng.Int64N(3), cores: 1 + d.rng.Int64N(3), duration: float64(1 + d.rng.IntN(300))}
	if d.rng.IntN(4) == 0 {
		w.gpus = 1
	}
	if d.rng.IntN(3) == 0 {
		w.constraint = d.rng.IntN(len(constraints))
	}
	switch d.rng.IntN(12) {
	case 0, 1:
		w.nodes, w.slots = 1+d.rng.Int64N(3), 1
	case 2:
		w.nodes, w.slots, w.cores, w.gpus, w.whole = 1+d.rng.Int64N(6), 1, 1, 0, true
	case 3:
		w.nodes, w.slots, w.mostNodes = 1, 1, 2+d.rng.Int64N(3)
	case 4:
		if d.rng.IntN(4) == 0 { // 2 nodes or all that there are
			w.nodes, w.slots, w.mostNodes, w.duration = 2, 1, -1, 10
		}
	case 5:
		w.slots = 4 + d.rng.Int64N(30)
	case 6:
		if d.rng.IntN(3) == 0 { // may be more than there is
			w.nodes, w.slots, w.cores, w.gpus = 1+d.rng.Int64N(20), 1, 6+d.rng.Int64N(8), d.rng.Int64N(4)
		}
	}
	return w
}

// submit sends a request.
func (d *driver) submit() {
	j := &naiveJob{id: d.nextID, priority: 16, wish: d.wish()}
	d.nextID++
	if d.rng.IntN(20) == 0 {
		j.priority = uint32(10 + d.rng.IntN(12))
	}
	d.request(j)
	if !d.machine.possible(j.wish) {
		require.Nil(d.t, d.machine.jobs[j.id], "not possible and not denied: %+v", j.wish)
	}
}

// request asks for resources for a job.
func (d *driver) request(j *naiveJob) {
	d.machine.jobs[j.id] = j
	q := alloc.Request{JobInfo: alloc.JobInfo{ID: j.id, Priority: j.priority, UserID: 1, Submit: d.clock.Now()}, Jobspec: json.RawMessage(j.wish.jobspec())}
	d.send(alloc.TopicAlloc, q)
}

// jobs returns the jobs that run, or those that wait, in order.
func (d *driver) jobs(running bool) (out []*naiveJob) {
	for _, j := range d.machine.jobs {
		if j.running == running {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *naiveJob) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return out
}

// meddle does one of the things that managers and admins do now and then.
func (d *driver) meddle() {
	waiting, running := d.jobs(false), d.jobs(true)
	switch d.rng.IntN(6) {
	case 0:
		if len(waiting) > 0 {
			j := waiting[d.rng.IntN(len(waiting))]
			j.canceled = true
			d.send(alloc.TopicCancel, alloc.Cancel{ID: j.id})
			require.Nil(d.t, d.machine.jobs[j.id], "not canceled")
		}
	case 1:
		if len(running) > 0 {
			d.counts.ignored++
			d.send(alloc.TopicCancel, alloc.Cancel{ID: running[d.rng.IntN(len(running))].id})
		}
	case 2:
		if len(waiting) > 0 {
			var m alloc.Prioritize
			for range 3 {
				j := waiting[d.rng.IntN(len(waiting))]
				j.priority = uint32(10 + d.rng.IntN(12))
				m.Jobs = append(m.Jobs, alloc.Priority{ID: j.id, Priority: j.priority})
			}
			d.counts.moved++
			d.send(alloc.TopicPrioritize, m)
		}
	case 3:
		if len(running) > 0 {
			j := running[d.rng.IntN(len(running))]
			j.expires = d.clock.Now() + eventlog.Timestamp(d.rng.IntN(400))
			d.counts.expired++
			d.send(alloc.TopicExpiration, alloc.Expiration{ID: j.id, Expiration: j.expires})
		}
	default:
		// At most one is down, most of the time none.
		rank := uint32(slices.IndexFunc(d.machine.nodes, func(n node) bool { return n.down }))
		if int32(rank) < 0 {
			rank = uint32(d.rng.IntN(len(d.machine.nodes)))
		}
		n := &d.machine.nodes[rank]
		n.down = !n.down
		c := pool.Change{Up: idset.Of(rank)}
		if n.down {
			d.counts.down++
			c = pool.Change{Down: idset.Of(rank)}
		}
		d.acquire(pool.Acquire{Change: c})
	}
}

// down reports whether a rank is down.
func (d *driver) down() bool {
	return slices.ContainsFunc(d.machine.nodes, func(n node) bool { return n.down })
}

// drive runs jobs up to an id, with up to most of them waiting.
func (d *driver) drive(last, most int) {
	for int(d.nextID) <= last {
		switch {
		case d.rng.IntN(40) == 0 || d.down() && d.rng.IntN(20) == 0:
			d.meddle()
		case len(d.machine.jobs)-d.session.pool.Len() < most && (len(d.events) == 0 || d.rng.IntN(3) > 0):
			d.submit()
		case len(d.events) > 0:
			d.step()
		default: // all that is up is too little for all that waits
			d.meddle()
		}
	}
}

// finish runs all jobs to their ends, and checks that everything came back.
func (d *driver) finish() {
	for r := range d.machine.nodes {
		if d.machine.nodes[r].down {
			d.machine.nodes[r].down = false
			d.acquire(pool.Acquire{Change: pool.Change{Up: idset.Of(uint32(r))}})
		}
	}
	for len(d.events) > 0 {
		d.step()
	}
	require.Empty(d.t, d.machine.owners)
	require.Empty(d.t, d.machine.jobs, "nobody waits")
	p := d.session.pool
	require.NoError(d.t, p.Check())
	require.Zero(d.t, p.Len())
	require.True(d.t, rset.SameResources(p.Inventory(), p.Available()))
	require.Empty(d.t, d.session.jobs)
	require.Empty(d.t, d.session.waiting)
	require.Zero(d.t, d.session.stats.held)
}

// With JOBLIFE_DEEP it has ten thousand jobs, without a tenth of them.
func TestTenThousandJobsAgainstANaiveMachine(t *testing.T) {
	for _, policy := range []string{"fifo", "easy"} {
		jobs := map[string]int{"fifo": 6000, "easy": 4000}[policy]
		t.Run(policy, func(t *testing.T) {
			if os.Getenv("JOBLIFE_DEEP") == "" {
				jobs /= 10
			}
			seed := uint64(jobs)
			t.Logf("seed %d", seed)
			d := newDriver(t, policy, seed, "-forecast-period=50")
			d.drive(jobs, 24)
			d.finish()

			c := d.counts
			t.Logf("%d lines: %+v", d.lines, c)
			require.Equal(t, jobs, c.started+c.denied+c.canceled)
			st := d.session.stats
			require.Equal(t, []int{c.started, c.denied, c.canceled, c.started}, []int{st.allocated, st.denied, st.canceled, st.done})
			for what, n := range map[string]int{
				"started": c.started, "denied": c.denied, "canceled": c.canceled, "partial": c.partial, "left over": c.leftOver,
				"overrun": c.overrun, "ignored": c.ignored, "moved": c.moved, "expired": c.expired, "down": c.down,
			} {
				require.Positive(t, n, what)
			}
			require.Equal(t, policy == "easy", c.backfilled > 0)
			require.Positive(t, c.estimates)
		})
	}
}

// A scheduler that is loaded again goes on with what is held, some of it partly
// freed.
func TestASchedulerIsLoadedAgain(t *testing.T) {
	for _, policy := range []string{"fifo", "easy"} {
		d := newDriver(t, policy, 7, "-forecast-period=100")
		d.byRank = true
		partly := 0
		for last := 100; last <= 500; last += 100 {
			d.drive(last, 10)
			for _, j := range d.jobs(true) {
				if held, ok := d.session.pool.Holder(j.id); ok && held.Held.Len() < j.r.Len() {
					partly++
				}
			}
			waiting := d.jobs(false)
			for _, j := range waiting {
				delete(d.machine.jobs, j.id)
			}
			d.connect(d.clock.Now())
			d.rng.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
			for _, j := range waiting {
				j.estimate = 0
				d.request(j)
			}
		}
		require.Positive(t, partly, "some jobs were partly freed")
		d.finish()
		require.Equal(t, 500, d.counts.started+d.counts.denied+d.counts.canceled)
	}
}

func TestTooManyJobsAreRefused(t *testing.T) {
	var out, told bytes.Buffer
	s := newSession(options{policy: "easy", depth: 8, Options: lines.Options{Now: begin}}, &out, &told)
	s.most = 2
	for i, text := range []string{
		`{"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}]}},"up":"0"}}`,
		`{"topic":"job-manager.sched-hello","payload":{"id":1,"priority":1,"userid":1,"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"starttime":1,"expiration":2000000}}}}`,
		helloDone,
		// The one that waits is the head, and has what job 1 has in a copy.
		`{"topic":"sched.alloc","payload":{"id":2,"priority":1,"userid":1,"jobspec":` + oneCore + `}}`,
		`{"topic":"sched.alloc","payload":{"id":3,"priority":1,"userid":1,"jobspec":` + oneCore + `}}`,
		`{"topic":"job-manager.sched-hello","payload":{"id":4,"priority":1,"userid":1,"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}]}}}}`,
		helloDone,
	} {
		require.NoError(t, s.Take(lines.Line{Number: i + 1, Text: []byte(text)}))
	}
	require.Equal(t, `sched: line 5: sched.alloc: job ƒ4: at most 2 jobs are allowed
sched: line 6: job-manager.sched-hello: job ƒ5: at most 2 jobs are allowed
sched: line 7: job-manager.sched-hello: not ready: the resources of 1 job are unknown; send the hello again, with R
`, told.String())
	require.Equal(t, 2, strings.Count(out.String(), `"errnum":12,`))
}

// The same input has the same output.
func TestASessionIsDeterministic(t *testing.T) {
	for _, policy := range []string{"fifo", "easy"} {
		var output [2][]byte
		for i := range output {
			d := newDriver(t, policy, 3, "-forecast-period=50")
			d.record = &output[i]
			d.drive(300, 20)
		}
		require.NotEmpty(t, output[0])
		require.True(t, bytes.Equal(output[0], output[1]), policy)
	}
}
