package purge_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// A pending is a plan that is outstanding, with what the model knows of it.
type pending struct {
	plan    purge.Plan
	limits  purge.Limits
	byID    bool
	claimed bool
}

// A world is an index beside a naive one.
type world struct {
	x       *purge.Index
	n       *naive
	cfg     purge.Config
	active  map[jobid.ID]jobstate.State
	plans   []*pending
	done    []purge.Plan
	notices []purge.Plan
}

// maxTime is after every time.
const maxTime = 1 << 60

const modelStart eventlog.Timestamp = 1_700_000_000

func newWorld(t *rapid.T) *world {
	w := &world{n: &naive{}, active: map[jobid.ID]jobstate.State{}}
	w.cfg = purge.Config{
		Active: func(id jobid.ID) (jobstate.State, bool) { s, ok := w.active[id]; return s, ok },
		Purged: func(n purge.Plan) {
			for _, c := range n.Jobs {
				_, err := w.x.Lookup(c.ID)
				if err == nil {
					t.Fatalf("%v is told and still there", c.ID)
				}
			}
			w.notices = append(w.notices, n)
		},
		MaxJump: 50 * time.Second,
	}
	w.n.count = rapid.IntRange(0, 12).Draw(t, "tombstones")
	w.cfg.TombstoneCount = jobstate.Some(w.n.count)
	if rapid.Bool().Draw(t, "age of tombstones") {
		w.n.tombAge = jobstate.Some(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second)
		w.cfg.TombstoneAge = w.n.tombAge
	}
	x, err := purge.New(w.cfg)
	require.NoError(t, err)
	w.x = x
	return w
}

func (w *world) check(t *rapid.T) {
	require.NoError(t, w.x.Check())
	require.Equal(t, w.n.stats(), w.x.Stats())
	require.Equal(t, len(w.n.jobs), w.x.Len())
	require.Equal(t, w.n.high, w.x.Watermark())
	var all []purge.Record
	for _, j := range w.n.jobs {
		all = append(all, j.Record)
	}
	require.Equal(t, all, slices.Collect(w.x.All()))
	require.Equal(t, uint64(w.n.durable), w.x.Durable())
}

func drawID(t *rapid.T) jobid.ID { return jobid.ID(rapid.IntRange(0, 40).Draw(t, "id")) }

// drawNow draws a time: mostly now, sometimes one that no clock would tell.
func (w *world) drawNow(t *rapid.T) eventlog.Timestamp {
	base := max(w.n.clock, modelStart)
	if rapid.IntRange(0, 30).Draw(t, "odd") == 0 {
		return rapid.SampledFrom([]eventlog.Timestamp{
			0, -1, base - 1, base + 51, eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1)),
		}).Draw(t, "odd time")
	}
	return base + eventlog.Timestamp(rapid.IntRange(0, 3).Draw(t, "after"))
}

func (w *world) clockFits(now eventlog.Timestamp) bool {
	return now > 0 && !math.IsInf(float64(now), 0) && (w.n.clock == 0 || now >= w.n.clock && now <= w.n.clock+50)
}

func drawLimits(t *rapid.T) purge.Limits {
	var l purge.Limits
	l.Batch = rapid.SampledFrom([]int{0, 1, 2, 3, 5, purge.NoBatch}).Draw(t, "batch")
	seconds := func(what string) jobstate.Optional[time.Duration] {
		return jobstate.Some(time.Duration(rapid.IntRange(0, 25).Draw(t, what)) * time.Second)
	}
	if rapid.Bool().Draw(t, "max age") {
		l.MaxAge = seconds("max")
	}
	if rapid.IntRange(0, 2).Draw(t, "min age") == 0 {
		l.MinAge = seconds("min")
	}
	if rapid.Bool().Draw(t, "max count") {
		l.MaxCount = jobstate.Some(rapid.IntRange(0, 15).Draw(t, "count"))
	}
	return l
}

func drawJob(t *rapid.T, base eventlog.Timestamp) purge.Record {
	if rapid.IntRange(0, 50).Draw(t, "odd job") == 0 {
		base += 100 // its clock jumped
	}
	return purge.Record{
		ID:       drawID(t),
		Inactive: base + eventlog.Timestamp(rapid.IntRange(-10, 2).Draw(t, "time")),
		Result: rapid.SampledFrom([]jobstate.Result{
			0, jobstate.ResultCompleted, jobstate.ResultFailed, jobstate.ResultCanceled, jobstate.ResultTimeout,
		}).Draw(t, "result"),
		Ran: rapid.Bool().Draw(t, "ran"),
	}
}

func batchOf(l purge.Limits) int {
	switch l.Batch {
	case 0:
		return purge.DefaultBatch
	case purge.NoBatch:
		return math.MaxInt
	}
	return l.Batch
}

// same compares what a plan says, and not how it remembers it.
func same(t require.TestingT, want, got purge.Plan) {
	empty := func(p purge.Plan) purge.Plan {
		out := purge.Plan{
			Now: p.Now, More: p.More, Watermark: p.Watermark, NeedsWatermark: p.NeedsWatermark,
		}
		out.Jobs = append(out.Jobs, p.Jobs...)
		out.Pinned = append(out.Pinned, p.Pinned...)
		out.Tombstones = append(out.Tombstones, p.Tombstones...)
		out.Expired = append(out.Expired, p.Expired...)
		return out
	}
	require.Equal(t, empty(want), empty(got))
}

// status is the error that an id gets from an operation on a resident job.
func (w *world) status(id jobid.ID) error {
	switch {
	case w.n.find(id) != nil:
		return nil
	case w.n.tomb(id) != nil:
		return purge.ErrPurged
	case w.active[id] != 0:
		return purge.ErrActive
	}
	return purge.ErrUnknown
}

func (w *world) add(t *rapid.T) {
	j := drawJob(t, max(w.n.clock, modelStart))
	err := w.x.Add(j)
	old := w.n.find(j.ID)
	switch {
	case old != nil && old.leaving:
		require.ErrorIs(t, err, purge.ErrLeaving)
	case old != nil:
		require.ErrorIs(t, err, purge.ErrDuplicate)
	case w.n.tomb(j.ID) != nil:
		require.ErrorIs(t, err, purge.ErrPurged)
	default:
		require.NoError(t, err)
		delete(w.active, j.ID)
		w.n.add(j)
	}
}

func (w *world) pin(t *rapid.T) {
	id, p := drawID(t), drawPin(t)
	changed, err := w.x.Pin(id, p)
	j := w.n.find(id)
	switch want := w.status(id); {
	case want != nil:
		require.ErrorIs(t, err, want)
	case j.leaving:
		require.ErrorIs(t, err, purge.ErrLeaving)
	default:
		require.NoError(t, err)
		require.Equal(t, !j.pins[p], changed)
		j.pins[p] = true
		j.tries, j.until = 0, 0
		require.Equal(t, sortedPins(j.pins), w.x.Pins(id))
	}
}

func drawPin(t *rapid.T) purge.Pin {
	return purge.Pin{
		Kind: purge.PinKind(rapid.IntRange(0, 4).Draw(t, "kind")),
		By:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "by"),
	}
}

func (w *world) unpin(t *rapid.T) {
	id := drawID(t)
	p := drawPin(t)
	j := w.n.find(id)
	if j != nil && len(j.pins) > 0 && rapid.Bool().Draw(t, "one of its own") {
		p = sortedPins(j.pins)[0]
	}
	changed, err := w.x.Unpin(id, p)
	if want := w.status(id); want != nil {
		require.ErrorIs(t, err, want)
		return
	}
	require.NoError(t, err)
	require.Equal(t, j.pins[p], changed)
	delete(j.pins, p)
}

func (w *world) planLimits(t *rapid.T) {
	l, now := drawLimits(t), w.drawNow(t)
	p, err := w.x.Plan(now, l)
	if !w.clockFits(now) {
		require.ErrorIs(t, err, purge.ErrClock)
		return
	}
	require.NoError(t, err)
	same(t, w.n.plan(now, l, batchOf(l)), p)
	w.keep(&pending{plan: p, limits: l})
}

// keep remembers a plan, and forgets one that was not claimed if there are many.
func (w *world) keep(p *pending) {
	if i := slices.IndexFunc(w.plans, func(p *pending) bool { return !p.claimed }); i >= 0 && len(w.plans) > 5 {
		w.plans = slices.Delete(w.plans, i, i+1)
	}
	w.plans = append(w.plans, p)
}

func (w *world) planIDs(t *rapid.T) {
	ids := rapid.SliceOfN(rapid.Custom(drawID), 0, 4).Draw(t, "ids")
	now := rapid.SampledFrom([]eventlog.Timestamp{modelStart, modelStart + 30, modelStart * 2}).Draw(t, "now")
	p, err := w.x.PlanIDs(now, ids...)
	want := purge.Plan{Now: now}
	for _, id := range ids {
		cause := w.status(id)
		if j := w.n.find(id); cause == nil && len(j.pins) > 0 {
			cause = purge.ErrPinned
		} else if cause == nil && j.leaving {
			cause = purge.ErrLeaving
		}
		if cause != nil {
			var why *purge.JobError
			require.ErrorAs(t, err, &why)
			require.ErrorIs(t, err, cause)
			require.Equal(t, id, why.ID)
			require.Equal(t, w.active[id], why.State)
			return
		}
		if c := (purge.Candidate{Record: w.n.find(id).Record, Reason: purge.ReasonID}); !slices.Contains(want.Jobs, c) {
			want.Jobs = append(want.Jobs, c)
		}
	}
	slices.SortFunc(want.Jobs, func(a, b purge.Candidate) int { return byTime(a.Record, b.Record) })
	w.n.mark(&want)
	require.NoError(t, err)
	same(t, want, p)
	w.keep(&pending{plan: p, byID: true})
}

// pick draws an outstanding plan; nil if there is none.
func (w *world) pick(t *rapid.T) *pending {
	if len(w.plans) == 0 {
		return nil
	}
	return w.plans[rapid.IntRange(0, len(w.plans)-1).Draw(t, "plan")]
}

// drop forgets a plan, but that it is done.
func (w *world) drop(p *pending) {
	w.plans = slices.DeleteFunc(w.plans, func(q *pending) bool { return q == p })
	w.done = append(w.done, p.plan)
}

func (w *world) claim(t *rapid.T) {
	p := w.pick(t)
	if p == nil {
		return
	}
	got, err := w.x.Claim(p.plan)
	if p.claimed {
		require.ErrorIs(t, err, purge.ErrStale)
		return
	}
	require.NoError(t, err)
	want := w.n.trim(p.plan, p.limits, p.byID)
	want.Pinned = p.plan.Pinned
	same(t, want, got)
	if len(got.Jobs) == 0 {
		require.NoError(t, w.x.Commit(got), "a plan without jobs is nothing to commit")
		return
	}
	p.claimed, p.plan = true, got
	for _, c := range got.Jobs {
		j := w.n.find(c.ID)
		j.leaving, j.until = true, 0
	}
}

func (w *world) commit(t *rapid.T) {
	p := w.pick(t)
	if p == nil {
		return
	}
	told := len(w.notices)
	var failed []jobid.ID
	for _, c := range p.plan.Jobs {
		if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
			failed = append(failed, c.ID)
		}
	}
	err := w.x.Commit(p.plan, append(failed, 1000)...)
	if !p.claimed {
		require.Equal(t, len(p.plan.Jobs) > 0, errors.Is(err, purge.ErrStale))
		return
	}
	require.NoError(t, err)
	w.n.commit(p.plan, p.byID, failed)
	if len(failed) == len(p.plan.Jobs) {
		require.Len(t, w.notices, told)
	} else {
		require.Len(t, w.notices, told+1)
		require.Len(t, w.notices[told].Jobs, len(p.plan.Jobs)-len(failed))
		require.Equal(t, p.plan.Now, w.notices[told].Now)
		require.Equal(t, p.plan.Expired, w.notices[told].Expired)
	}
	w.drop(p)
}

func (w *world) abort(t *rapid.T) {
	p := w.pick(t)
	if p == nil {
		return
	}
	err := w.x.Abort(p.plan)
	if !p.claimed {
		require.Equal(t, len(p.plan.Jobs) > 0, errors.Is(err, purge.ErrStale))
		return
	}
	require.NoError(t, err)
	for _, c := range p.plan.Jobs {
		w.n.find(c.ID).leaving = false
	}
	w.drop(p)
}

// again commits and aborts what is done.
func (w *world) again(t *rapid.T) {
	if len(w.done) == 0 {
		return
	}
	p := rapid.SampledFrom(w.done).Draw(t, "done")
	require.ErrorIs(t, w.x.Abort(p), purge.ErrStale)
	require.ErrorIs(t, w.x.Commit(p), purge.ErrStale)
}

func (w *world) look(t *rapid.T) {
	id := drawID(t)
	j, err := w.x.Lookup(id)
	ended, ok := w.x.Ended(id)
	want := w.status(id)
	require.Equal(t, want == nil || want == purge.ErrPurged, ok)
	var why *purge.JobError
	switch {
	case want == nil:
		require.NoError(t, err)
		require.Equal(t, w.n.find(id).Record, j)
		require.Equal(t, j, ended)
	case want == purge.ErrPurged:
		require.ErrorAs(t, err, &why)
		require.Equal(t, *w.n.tomb(id), why.Tomb)
		require.Equal(t, why.Tomb, ended)
	default:
		require.ErrorIs(t, err, want)
	}
}

func (w *world) clock(t *rapid.T) {
	now := w.drawNow(t)
	if rapid.IntRange(0, 3).Draw(t, "accept") > 0 {
		err := w.x.Observe(now)
		if !w.clockFits(now) {
			require.ErrorIs(t, err, purge.ErrClock)
			return
		}
		require.NoError(t, err)
		w.n.observe(now)
		return
	}
	err := w.x.AcceptClock(now)
	if !(now > 0) || math.IsInf(float64(now), 0) {
		require.ErrorIs(t, err, purge.ErrClock)
		return
	}
	require.NoError(t, err)
	w.n.observe(maxTime)
	w.n.clock = now
}

// restart makes the index anew of what a store would have.
func (w *world) restart(t *rapid.T) {
	var ev purge.Evidence
	for _, j := range rapid.Permutation(w.n.jobs).Draw(t, "order") {
		ev.Jobs = append(ev.Jobs, j.Record)
		j.pins, j.leaving, j.tries, j.until = map[purge.Pin]bool{}, false, 0, 0
	}
	ev.Tombstones = slices.Clone(w.n.tombs)
	ev.Watermark = w.n.durable
	for id := range w.active {
		ev.Active = append(ev.Active, id)
	}
	if rapid.Bool().Draw(t, "trusted clock") {
		ev.Now = max(w.n.clock, modelStart)
	}
	x, err := purge.Recover(w.cfg, ev)
	require.NoError(t, err)
	require.LessOrEqual(t, x.Watermark(), w.n.high)
	w.x, w.plans, w.done = x, nil, nil
	w.n.purged, w.n.clock, w.n.high = nil, 0, w.n.durable
	for _, j := range w.n.jobs {
		w.n.clock, w.n.high = max(w.n.clock, j.Inactive), max(w.n.high, j.ID)
	}
	for _, j := range w.n.tombs {
		w.n.clock, w.n.high = max(w.n.clock, j.Inactive), max(w.n.high, j.ID)
	}
	if ev.Now > 0 {
		w.n.clock = ev.Now
	}
	for id := range w.active {
		w.n.high = max(w.n.high, id)
	}
}

func (w *world) submit(t *rapid.T) {
	id := drawID(t)
	if w.status(id) == purge.ErrUnknown {
		w.active[id] = rapid.SampledFrom([]jobstate.State{jobstate.StateDepend, jobstate.StateRun}).Draw(t, "state")
		w.x.RaiseWatermark(id)
		w.n.high = max(w.n.high, id)
	}
}

func indexModel(t *rapid.T) {
	w := newWorld(t)
	t.Repeat(map[string]func(*rapid.T){
		"add": w.add, "add more": w.add, "add yet more": w.add, "submit": w.submit, "pin": w.pin, "unpin": w.unpin,
		"plan": w.planLimits, "plan ids": w.planIDs, "claim": w.claim, "commit": w.commit, "abort": w.abort,
		"again": w.again, "look": w.look, "clock": w.clock,
		"restart": func(t *rapid.T) {
			if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
				w.restart(t)
			}
		},
		"": w.check,
	})
}

func TestAnIndexIsASortedSlice(t *testing.T) { rapid.Check(t, indexModel) }

func FuzzIndex(f *testing.F) { f.Fuzz(rapid.MakeFuzz(indexModel)) }
