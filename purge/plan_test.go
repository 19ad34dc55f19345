package purge_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

func TestTheZeroIndexIsReady(t *testing.T) {
	var x purge.Index
	require.NoError(t, x.Check())
	p, err := x.Plan(start, purge.PurgeAll())
	require.NoError(t, err)
	require.Empty(t, p.Jobs)
	require.NoError(t, x.Commit(p))
	require.NoError(t, x.Abort(p))
	_, err = x.Lookup(0)
	require.ErrorIs(t, err, purge.ErrUnknown)
	_, err = x.Unpin(0, purge.Pin{})
	require.ErrorIs(t, err, purge.ErrUnknown)
	require.Nil(t, x.Pins(0))
	require.Zero(t, x.Stats())
	require.NoError(t, x.Add(makeJobs(1)[0]))
	require.NoError(t, x.Check())
	require.NoError(t, x.Observe(start))
	require.NoError(t, x.Observe(start+7*86400), "a week's rest is no error")
	require.ErrorIs(t, x.Observe(start+14*86400+1), purge.ErrClock)
}

func TestAJobGoesAfterItsLimitAndNotAtIt(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	for _, c := range []struct {
		age  time.Duration
		want int
	}{{12 * time.Second, 0}, {11 * time.Second, 1}, {10 * time.Second, 2}, {0, 3}, {10*time.Second - time.Microsecond, 3}} {
		p, err := x.Plan(start+12, purge.Limits{MaxAge: jobstate.Some(c.age)})
		require.NoError(t, err)
		require.Len(t, p.Jobs, c.want, "%v", c.age)
	}
	p, err := x.Plan(start+2, purge.Limits{MaxAge: jobstate.Some(time.Duration(0))})
	require.NoError(t, err)
	require.Len(t, p.Jobs, 2, "the last has no age yet")
}

func TestUnsetZeroAndPositiveLimitsDiffer(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	for want, l := range map[int]purge.Limits{
		0: {},
		3: {MaxCount: jobstate.Some(0)},
		2: {MaxCount: jobstate.Some(1)},
	} {
		p, err := x.Plan(start+10, l)
		require.NoError(t, err)
		require.Len(t, p.Jobs, want)
	}
}

func TestWhyAJobGoesIsTold(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 4)
	p, err := x.Plan(start+10, purge.Limits{MaxAge: jobstate.Some(9 * time.Second), MaxCount: jobstate.Some(2)})
	require.NoError(t, err)
	require.Equal(t, []purge.Candidate{
		{Record: makeJobs(1)[0], Reason: purge.ReasonAge | purge.ReasonCount},
		{Record: makeJobs(2)[1], Reason: purge.ReasonCount},
	}, p.Jobs)
	require.Equal(t, "age,count", p.Jobs[0].Reason.String())
	require.Equal(t, "count", p.Jobs[1].Reason.String())
	require.Equal(t, "id", purge.ReasonID.String())
	require.Empty(t, purge.Reason(0).String())
}

func TestAMinimumAgeWinsOverAllLimits(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	l := purge.PurgeAll()
	l.MaxAge, l.MinAge = jobstate.Some(time.Duration(0)), jobstate.Some(5*time.Second)
	p, err := x.Plan(start+10, l)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1, 2, 3, 4, 5, 6}, p.IDs(), "the sixth has the minimum age")
	require.False(t, p.More)
}

func TestAPinnedOldestJobBlocksNothing(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	pin := func(id jobid.ID, kind purge.PinKind, by string) {
		changed, err := x.Pin(id, purge.Pin{Kind: kind, By: by})
		require.NoError(t, err)
		require.True(t, changed)
	}
	pin(1, purge.PinHousekeeping, "")
	pin(3, purge.PinWaiter, "client 7")
	pin(3, purge.PinDependency, "ƒD")
	pin(9, purge.PinWaiter, "")
	p, err := x.Plan(start+20, purge.Limits{MaxCount: jobstate.Some(6), Batch: 2})
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{2, 4}, p.IDs(), "younger ones go in place of pinned ones")
	require.True(t, p.More)
	require.Equal(t, []purge.Pinned{
		{Record: makeJobs(1)[0], Pins: []purge.Pin{{Kind: purge.PinHousekeeping}}},
		{Record: makeJobs(3)[2], Pins: []purge.Pin{{Kind: purge.PinWaiter, By: "client 7"}, {Kind: purge.PinDependency, By: "ƒD"}}},
	}, p.Pinned)
	l := purge.PurgeAll()
	l.Batch = purge.NoBatch
	p, err = x.Plan(start+20, l)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 7)
	require.Len(t, p.Pinned, 3)

	_, err = x.PlanIDs(start+20, 3)
	require.EqualError(t, err, `purge: ƒ4: job is pinned by waiter "client 7", dependency "ƒD"`)
	_, err = x.Unpin(3, purge.Pin{Kind: purge.PinWaiter, By: "client 7"})
	require.NoError(t, err)
	_, err = x.PlanIDs(start+20, 3)
	require.ErrorIs(t, err, purge.ErrPinned, "the last pin counts")
	_, err = x.Unpin(3, purge.Pin{Kind: purge.PinDependency, By: "ƒD"})
	require.NoError(t, err)
	_, err = x.PlanIDs(start+20, 3)
	require.NoError(t, err)
}

func TestManyPinnedJobsCostAPlanNothing(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 5000)
	for id := jobid.ID(1); id < 4990; id++ {
		_, err := x.Pin(id, purge.Pin{Kind: purge.PinWaiter})
		require.NoError(t, err)
	}
	p, err := x.Plan(start+6000, purge.Limits{MaxCount: jobstate.Some(0), Batch: 5})
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{4990, 4991, 4992, 4993, 4994}, p.IDs())
	require.Len(t, p.Pinned, 5)
	require.Less(t, testing.AllocsPerRun(10, func() {
		_, _ = x.Plan(start+6000, purge.Limits{MaxCount: jobstate.Some(0), Batch: 5})
	}), 30.0)
}

func TestPinsAreBounded(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 1)
	for i := range purge.MaxPins {
		_, err := x.Pin(1, purge.Pin{Kind: purge.PinKind(i % 256), By: strings.Repeat("x", i/256)})
		require.NoError(t, err)
	}
	_, err := x.Pin(1, purge.Pin{By: "one more"})
	require.EqualError(t, err, "purge: too many pins: 1001, the limit is 1000")
	require.ErrorIs(t, err, purge.ErrExcess)
	_, err = x.Pin(1, purge.Pin{By: strings.Repeat("x", 257)})
	require.EqualError(t, err, "purge: too many bytes in Pin.By: 257, the limit is 256")
	_, err = x.PlanIDs(start, 1)
	require.EqualError(t, err, "purge: ƒ2: job is pinned by PinKind(0), PinKind(0) \"x\", PinKind(0) \"xx\" and 997 more")
	require.Len(t, x.Pins(1), purge.MaxPins)
}

func TestAClockThatStepsIsAnErrorUntilItIsAccepted(t *testing.T) {
	x, m := populated(t, purge.Config{MaxJump: time.Hour}, 10)
	l := purge.Limits{MaxAge: jobstate.Some(time.Minute)}
	r := newRunner(t, x, m, l)
	require.NoError(t, x.Observe(start+9), "the first time is believed")
	for _, now := range []eventlog.Timestamp{
		start + 8.75, start + 9 + 3601, 0, -5, eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1)),
	} {
		_, err := x.Plan(now, l)
		require.ErrorIs(t, err, purge.ErrClock)
		_, err = r.Tick(t.Context(), now)
		require.ErrorIs(t, err, purge.ErrClock)
		require.Equal(t, 10, x.Len())
		require.Empty(t, m.calls)
	}
	require.NoError(t, x.Observe(start+9+3600), "not too far")
	require.NoError(t, x.Observe(start+9+3601), "a quiet hour with ticks")
	require.ErrorIs(t, x.Observe(start+9+3600), purge.ErrClock)

	require.NoError(t, x.AcceptClock(start+1e6), "the machine was off")
	p, err := r.Tick(t.Context(), start+1e6)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 10)
	require.ErrorIs(t, x.Observe(start+2e6), purge.ErrClock, "once")
	require.NoError(t, x.AcceptClock(start+20), "the clock was wrong")
	require.NoError(t, x.Observe(start+21))
	require.ErrorIs(t, x.AcceptClock(0), purge.ErrClock)
	require.EqualError(t, x.Observe(start), "purge: clock stepped: 2023-11-14T22:13:20Z is before 2023-11-14T22:13:41Z")
	require.EqualError(t, x.Observe(start*2), "purge: clock stepped: 2077-09-27T20:26:40Z is too far after 2023-11-14T22:13:41Z")
	require.EqualError(t, x.Observe(-1e300), "purge: clock stepped: -1.0000000000000001e300 is not a valid time; the last was 2023-11-14T22:13:41Z")
}

func TestDaysOfRestAreNoStepOfTheClock(t *testing.T) {
	const day = 24 * 60 * 60
	var x purge.Index
	require.NoError(t, x.Observe(start))
	require.NoError(t, x.Observe(start+day))
	require.NoError(t, x.Observe(start+4*day), "a weekend")
	require.ErrorIs(t, x.Observe(start+12*day), purge.ErrClock, "more than a week")
}

func TestAJobWithATimeInTheFutureStopsNothing(t *testing.T) {
	const jumped = start + 1e9
	future := purge.Record{ID: 50, Inactive: jumped, Result: jobstate.ResultCompleted}
	for _, restart := range []bool{false, true} {
		x, m := populated(t, purge.Config{}, 10)
		require.NoError(t, x.Observe(start+10))
		require.NoError(t, m.Create(future))
		require.NoError(t, x.Add(future))
		if restart {
			ev := m.evidence()
			ev.Now = start + 10
			var err error
			x, err = purge.Recover(purge.Config{}, ev)
			require.NoError(t, err)
		}
		r := newRunner(t, x, m, purge.Limits{MaxAge: jobstate.Some(time.Hour)})
		p, err := r.Tick(t.Context(), start+4000)
		require.NoError(t, err)
		require.Len(t, p.Jobs, 10, "everything else goes on")
		require.ErrorIs(t, x.Observe(jumped+1), purge.ErrClock, "its time is no proof of the time")
		_, err = r.PurgeIDs(t.Context(), start+4000, 50)
		require.NoError(t, err)
		require.Zero(t, x.Len())
	}
}

func TestARestartBelievesATrustedClock(t *testing.T) {
	ev := purge.Evidence{Now: start + 1e9, Jobs: makeJobs(3)}
	x, err := purge.Recover(purge.Config{}, ev)
	require.NoError(t, err)
	require.NoError(t, x.Observe(start+1e9+1), "however long the machine was off")
	ev.Now = 0
	x, err = purge.Recover(purge.Config{}, ev)
	require.NoError(t, err)
	require.ErrorIs(t, x.Observe(start+1e9), purge.ErrClock, "no clock is trusted")
	require.NoError(t, x.Observe(start+3))
	ev.Now = eventlog.Timestamp(math.NaN())
	_, err = purge.Recover(purge.Config{}, ev)
	require.ErrorIs(t, err, purge.ErrClock)
}

func TestAPlanForATimeThatWasWrongRemovesNothing(t *testing.T) {
	x, _ := populated(t, purge.Config{MaxJump: 24 * time.Hour}, 10)
	require.NoError(t, x.Observe(start+10))
	wrong, err := x.Plan(start+86000, purge.Limits{MaxAge: jobstate.Some(time.Hour)})
	require.NoError(t, err)
	require.Len(t, wrong.Jobs, 10)
	byID, err := x.PlanIDs(start+86000, 3)
	require.NoError(t, err)
	require.NoError(t, x.AcceptClock(start-1000))
	p, err := x.Claim(wrong)
	require.NoError(t, err)
	require.Empty(t, p.Jobs)
	require.True(t, p.More)
	require.Len(t, commit(t, x, byID).Jobs, 1, "its id was given")
	require.Equal(t, 9, x.Len())
}

func TestACommitTrustsNoWatermarkButTheOneOfItsPlan(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	p, err := x.PlanIDs(start+20, 3)
	require.NoError(t, err)
	p, err = x.Claim(p)
	require.NoError(t, err)
	require.True(t, p.NeedsWatermark)
	require.Equal(t, jobid.ID(3), p.Watermark, "the caller stores this one")
	x.RaiseWatermark(8)
	require.NoError(t, x.Add(purge.Record{ID: 7, Inactive: start + 10, Result: jobstate.ResultCompleted}))
	require.NoError(t, x.Commit(p))
	require.EqualValues(t, 3, x.Durable())

	p, err = x.PlanIDs(start+20, 7)
	require.NoError(t, err)
	require.True(t, p.NeedsWatermark, "7 would come back")
	require.Equal(t, jobid.ID(8), p.Watermark)
}

func TestAPlanDoesNotChangeTheIndex(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	l := purge.Limits{MaxCount: jobstate.Some(3)}
	first, err := x.Plan(start+1000, l)
	require.NoError(t, err)
	require.NoError(t, x.Observe(start+10), "a dry run for a later time is no news of the time")
	second, err := x.Plan(start+1000, l)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, 10, x.Len())
	first.Jobs[0].ID = 5
	third, err := x.Plan(start+1000, l)
	require.NoError(t, err)
	require.Equal(t, second, third, "and its slices are the caller's")
}

func TestAPlanThatWasChangedIsRefused(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	plan := func() purge.Plan {
		p, err := x.Plan(start+20, purge.Limits{MaxCount: jobstate.Some(8)})
		require.NoError(t, err)
		return p
	}
	for _, change := range []func(*purge.Plan){
		func(p *purge.Plan) { p.Jobs[0].ID = 99 },
		func(p *purge.Plan) { p.Jobs[0].Inactive++ },
	} {
		p := plan()
		change(&p)
		p, err := x.Claim(p)
		require.NoError(t, err)
		require.Equal(t, []jobid.ID{2}, p.IDs(), "only what would be planned now")
		require.NoError(t, x.Abort(p))
	}
	named, err := x.PlanIDs(start+20, 1, 2)
	require.NoError(t, err)
	for _, p := range []purge.Plan{plan(), named} {
		p.Jobs = append(p.Jobs, p.Jobs[1])
		p, err := x.Claim(p)
		require.NoError(t, err)
		require.Equal(t, []jobid.ID{1, 2}, p.IDs(), "a job goes once")
		require.NoError(t, x.Abort(p))
		require.NoError(t, x.Check())
	}
	p, err := x.Claim(plan())
	require.NoError(t, err)
	changed := p
	changed.Jobs = changed.Jobs[:1]
	require.EqualError(t, x.Commit(changed), "purge: plan is out of date: it differs from the claimed plan")
	require.ErrorIs(t, x.Abort(changed), purge.ErrStale)
	_, err = x.Claim(p)
	require.ErrorIs(t, err, purge.ErrStale)
	require.NoError(t, x.Commit(p))
	require.ErrorIs(t, x.Commit(p), purge.ErrStale)
	require.ErrorIs(t, x.Abort(p), purge.ErrStale)
	other, err := x.Plan(start+20, purge.PurgeAll())
	require.NoError(t, err)
	require.ErrorIs(t, x.Commit(other), purge.ErrStale, "it is not claimed")

	byHand := purge.Plan{Now: start + 20, Jobs: []purge.Candidate{{Record: makeJobs(5)[4], Reason: purge.ReasonID}}}
	p, err = x.Claim(byHand)
	require.NoError(t, err)
	require.Empty(t, p.Jobs, "without limits nothing goes")
	require.NoError(t, x.Check())
}

func TestTwoPlansOfTheSameJobsPurgeThemOnce(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	l := purge.Limits{MaxCount: jobstate.Some(8)}
	first, err := x.Plan(start+20, l)
	require.NoError(t, err)
	second, err := x.Plan(start+20, l)
	require.NoError(t, err)
	commit(t, x, first)
	second, err = x.Claim(second)
	require.NoError(t, err)
	require.Empty(t, second.Jobs)
	require.False(t, second.More)
	require.Equal(t, 8, x.Len())
}

func TestAnOldPlanGivesUpWhatTheLimitsNowAllow(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	p, err := x.Plan(start+20, purge.Limits{MaxCount: jobstate.Some(7)})
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1, 2, 3}, p.IDs())
	named, err := x.PlanIDs(start+20, 9, 2)
	require.NoError(t, err)
	commit(t, x, named)
	p, err = x.Claim(p)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1}, p.IDs(), "two others went: 3 may stay")
}

func TestWhetherMoreFollowsIsToldAnewByAClaim(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 2)
	p, err := x.Plan(start+20, purge.Limits{MaxCount: jobstate.Some(0), Batch: 1})
	require.NoError(t, err)
	require.True(t, p.More)
	_, err = x.Pin(2, purge.Pin{Kind: purge.PinWaiter})
	require.NoError(t, err)
	pinned, err := x.Claim(p)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1}, pinned.IDs())
	require.False(t, pinned.More)
	require.NoError(t, x.Abort(pinned))
	_, err = x.Unpin(2, purge.Pin{Kind: purge.PinWaiter})
	require.NoError(t, err)
	free, err := x.Claim(p)
	require.NoError(t, err)
	require.True(t, free.More)
}

// TestAHundredPlansAtOnce: whatever is committed, in whatever order, the limits
// that are asked for hold, nothing more goes than they demand, and no job goes twice.
func TestAHundredPlansAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gone := map[jobid.ID]bool{}
		x, err := purge.New(purge.Config{Purged: func(n purge.Plan) {
			for _, c := range n.Jobs {
				if gone[c.ID] {
					t.Fatalf("%v went twice", c.ID)
				}
				gone[c.ID] = true
			}
		}})
		require.NoError(t, err)
		for _, j := range makeJobs(300) {
			require.NoError(t, x.Add(j))
		}
		plans := make([]purge.Plan, 100)
		least := 300
		for i := range plans {
			count := rapid.IntRange(100, 300).Draw(t, "count")
			least = min(least, count)
			l := purge.Limits{MaxCount: jobstate.Some(count), Batch: rapid.IntRange(1, 300).Draw(t, "batch")}
			plans[i], err = x.Plan(start+400, l)
			require.NoError(t, err)
		}
		planned := 0
		for _, p := range rapid.Permutation(plans).Draw(t, "order") {
			planned = max(planned, len(p.Jobs))
			before := x.Len()
			p = commit(t, x, p)
			require.Equal(t, before-len(p.Jobs), x.Len())
		}
		require.NoError(t, x.Check())
		require.GreaterOrEqual(t, x.Len(), least)
		require.LessOrEqual(t, len(gone), 200)
		require.Equal(t, 300-len(gone), x.Len())
		for id := range gone {
			require.LessOrEqual(t, int(id), planned, "only what was planned went")
		}
	})
}

func TestARestartRefusesImpossibleRecords(t *testing.T) {
	jobs := makeJobs(3)
	bad := jobs[1]
	bad.Result = 3
	timeless := jobs[1]
	timeless.Inactive = eventlog.Timestamp(math.NaN())
	for _, c := range []struct {
		ev   purge.Evidence
		want error
	}{
		{purge.Evidence{Jobs: []purge.Record{jobs[0], jobs[1], jobs[0]}}, purge.ErrDuplicate},
		{purge.Evidence{Tombstones: []purge.Record{jobs[0], jobs[1], jobs[0]}}, purge.ErrDuplicate},
		{purge.Evidence{Jobs: []purge.Record{jobs[0], bad, jobs[2]}}, purge.ErrRecord},
		{purge.Evidence{Jobs: []purge.Record{jobs[0], timeless, jobs[2]}}, purge.ErrRecord},
	} {
		_, err := purge.Recover(purge.Config{}, c.ev)
		require.ErrorIs(t, err, c.want)
	}
	for _, cfg := range []purge.Config{
		{MaxJump: -1}, {TombstoneCount: jobstate.Some(-1)}, {TombstoneAge: jobstate.Some(-time.Second)},
	} {
		_, err := purge.New(cfg)
		require.ErrorIs(t, err, purge.ErrLimits)
	}
	var x purge.Index
	for _, j := range []purge.Record{bad, timeless, {ID: 4}, {ID: 4, Inactive: eventlog.Timestamp(math.Inf(1))}} {
		require.ErrorIs(t, x.Add(j), purge.ErrRecord)
	}
	require.Zero(t, x.Watermark(), "what was refused was not seen")
}

func TestTheWatermarkIsTheGreatestOfAllEvidence(t *testing.T) {
	job := func(id jobid.ID) []purge.Record { return []purge.Record{{ID: id, Inactive: start}} }
	ev := purge.Evidence{Jobs: job(1), Active: []jobid.ID{2}, Tombstones: job(3), Watermark: 4}
	for want := jobid.ID(4); want > 0; want-- {
		x, err := purge.Recover(purge.Config{}, ev)
		require.NoError(t, err)
		require.Equal(t, want, x.Watermark())
		switch want {
		case 4:
			ev.Watermark = 0
		case 3:
			ev.Tombstones = nil
		case 2:
			ev.Active = nil
		}
	}
	var x purge.Index
	x.RaiseWatermark(9)
	x.RaiseWatermark(7)
	require.Equal(t, jobid.ID(9), x.Watermark())
}

func TestTombstonesEndByCountAndByAge(t *testing.T) {
	cfg := purge.Config{TombstoneCount: jobstate.Some(4), TombstoneAge: jobstate.Some(20 * time.Second)}
	x, m := populated(t, cfg, 10)
	r := newRunner(t, x, m, purge.Limits{MaxCount: jobstate.Some(0), Batch: 3})
	p, err := r.Tick(t.Context(), start+10)
	require.NoError(t, err)
	require.Empty(t, p.Expired)
	p, err = r.Tick(t.Context(), start+10)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1, 2}, p.Expired)
	require.Equal(t, 4, x.Stats().Tombstones.Total())
	p, err = r.Tick(t.Context(), start+25)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{3, 4, 5}, p.Expired, "all by count, two by age too")
	require.Equal(t, 4, x.Stats().Tombstones.Total())
	require.Len(t, m.tombs, 4)
	p, err = r.Tick(t.Context(), start+100)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{6, 7, 8, 9}, p.Expired)
	require.Len(t, p.Tombstones, 1, "a new one ends with the next batch at the earliest")
	require.NoError(t, x.Check())
}

func TestAPurgeByIDEndsNoTombstoneByAnUnacceptedTime(t *testing.T) {
	x, m := populated(t, purge.Config{TombstoneAge: jobstate.Some(time.Hour)}, 10)
	r := newRunner(t, x, m, purge.Limits{})
	require.NoError(t, x.Observe(start+10))
	_, err := r.PurgeIDs(t.Context(), start+10, 1, 2)
	require.NoError(t, err)
	p, err := r.PurgeIDs(t.Context(), start+1e9, 3)
	require.NoError(t, err, "the clock does not matter")
	require.Equal(t, []jobid.ID{3}, p.IDs())
	require.Empty(t, p.Expired)
	require.Len(t, p.Tombstones, 1)
	require.NoError(t, x.AcceptClock(start+1e9))
	p, err = r.PurgeIDs(t.Context(), start+1e9, 4)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1, 2, 3}, p.Expired, "now it is the time")
}

func TestTombstonesBeyondALoweredLimitEndOverTime(t *testing.T) {
	jobs := makeJobs(5000)
	x, err := purge.Recover(purge.Config{TombstoneCount: jobstate.Some(1)}, purge.Evidence{Tombstones: jobs[:4995], Jobs: jobs[4995:]})
	require.NoError(t, err)
	for want := range 5 {
		p, err := x.PlanIDs(start+6000, jobid.ID(4996+want))
		require.NoError(t, err)
		p, err = x.Claim(p)
		require.NoError(t, err)
		require.Len(t, p.Expired, min(1001, 4995-1000*want))
		require.Len(t, p.Tombstones, 1)
		require.NoError(t, x.Commit(p))
		require.NoError(t, x.Check())
	}
	require.Equal(t, 1, x.Stats().Tombstones.Total())
}
