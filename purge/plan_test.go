package purge_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
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
	require.ErrorIs(t, x.Abort(p), purge.ErrStale)
	_, err = x.Lookup(0)
	require.ErrorIs(t, err, purge.ErrUnknown)
	_, err = x.Unpin(0, purge.Pin{})
	require.ErrorIs(t, err, purge.ErrUnknown)
	require.Nil(t, x.Pins(0))
	require.Zero(t, x.Stats())
	require.NoError(t, x.Add(makeJobs(1)[0]))
	require.NoError(t, x.Check())
	_, err = x.Plan(start+86401, purge.PurgeAll())
	require.ErrorIs(t, err, purge.ErrClock, "the default is a day")
}

func TestAJobGoesAfterItsLimitAndNotAtIt(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	for _, c := range []struct {
		age  time.Duration
		want int
	}{{12 * time.Second, 0}, {11 * time.Second, 1}, {10 * time.Second, 2}, {0, 3}, {10*time.Second - time.Microsecond, 3}} {
		p, err := x.Plan(start+12, purge.Limits{MaxAge: purge.To(c.age)})
		require.NoError(t, err)
		require.Len(t, p.Jobs, c.want, "%v", c.age)
	}
	p, err := x.Plan(start+2, purge.Limits{MaxAge: purge.To(time.Duration(0))})
	require.NoError(t, err)
	require.Len(t, p.Jobs, 2, "the last has no age yet")
}

func TestUnsetZeroAndPositiveLimitsDiffer(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	for want, l := range map[int]purge.Limits{
		0: {},
		3: {MaxCount: purge.To(0)},
		2: {MaxCount: purge.To(1)},
	} {
		p, err := x.Plan(start+10, l)
		require.NoError(t, err)
		require.Len(t, p.Jobs, want)
	}
	require.Equal(t, "unset", purge.Limit[int]{}.String())
	require.Equal(t, "0", purge.To(0).String())
	require.Equal(t, "1m0s", purge.To(time.Minute).String())
}

func TestWhyAJobGoesIsTold(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 4)
	p, err := x.Plan(start+10, purge.Limits{MaxAge: purge.To(9 * time.Second), MaxCount: purge.To(2)})
	require.NoError(t, err)
	require.Equal(t, []purge.Candidate{
		{Job: makeJobs(1)[0], Why: purge.ByAge | purge.ByCount},
		{Job: makeJobs(2)[1], Why: purge.ByCount},
	}, p.Jobs)
	require.Equal(t, "age,count", p.Jobs[0].Why.String())
	require.Equal(t, "count", p.Jobs[1].Why.String())
	require.Equal(t, "id", purge.ByID.String())
	require.Empty(t, purge.Why(0).String())
}

func TestAMinimumAgeWinsOverAllLimits(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	l := purge.PurgeAll()
	l.MaxAge, l.MinAge = purge.To(time.Duration(0)), purge.To(5*time.Second)
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
	pin(1, purge.Housekeeping, "")
	pin(3, purge.Waiter, "client 7")
	pin(3, purge.Dependent, "ƒD")
	pin(9, purge.Waiter, "")
	p, err := x.Plan(start+20, purge.Limits{MaxCount: purge.To(6), Batch: 2})
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{2, 4}, p.IDs(), "younger ones go in place of pinned ones")
	require.True(t, p.More)
	require.Equal(t, []purge.Kept{
		{Job: makeJobs(1)[0], Pins: []purge.Pin{{Kind: purge.Housekeeping}}},
		{Job: makeJobs(3)[2], Pins: []purge.Pin{{Kind: purge.Waiter, By: "client 7"}, {Kind: purge.Dependent, By: "ƒD"}}},
	}, p.Pinned)
	l := purge.PurgeAll()
	l.Batch = purge.NoBatch
	p, err = x.Plan(start+20, l)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 7)
	require.Len(t, p.Pinned, 3)

	_, err = x.PlanIDs(start+20, 3)
	require.EqualError(t, err, `purge: ƒ4: job is pinned by waiter "client 7", dependency "ƒD"`)
	_, err = x.Unpin(3, purge.Pin{Kind: purge.Waiter, By: "client 7"})
	require.NoError(t, err)
	_, err = x.PlanIDs(start+20, 3)
	require.ErrorIs(t, err, purge.ErrPinned, "the last pin counts")
	_, err = x.Unpin(3, purge.Pin{Kind: purge.Dependent, By: "ƒD"})
	require.NoError(t, err)
	_, err = x.PlanIDs(start+20, 3)
	require.NoError(t, err)
}

func TestManyPinnedJobsCostAPlanNothing(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 5000)
	for id := jobid.ID(1); id < 4990; id++ {
		_, err := x.Pin(id, purge.Pin{Kind: purge.Waiter})
		require.NoError(t, err)
	}
	p, err := x.Plan(start+6000, purge.Limits{MaxCount: purge.To(0), Batch: 5})
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{4990, 4991, 4992, 4993, 4994}, p.IDs())
	require.Len(t, p.Pinned, 5)
	require.True(t, p.MorePinned)
	require.Less(t, testing.AllocsPerRun(10, func() {
		_, _ = x.Plan(start+6000, purge.Limits{MaxCount: purge.To(0), Batch: 5})
	}), 30.0)
}

func TestPinsAreBounded(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 1)
	for i := range purge.MaxPins {
		_, err := x.Pin(1, purge.Pin{Kind: purge.PinKind(i % 256), By: strings.Repeat("x", i/256)})
		require.NoError(t, err)
	}
	_, err := x.Pin(1, purge.Pin{By: "one more"})
	require.EqualError(t, err, "purge: 1001 pins, at most 1000 are allowed")
	require.ErrorIs(t, err, purge.ErrExcess)
	_, err = x.Pin(1, purge.Pin{By: strings.Repeat("x", 257)})
	require.EqualError(t, err, "purge: 257 bytes of a pinner, at most 256 are allowed")
	_, err = x.PlanIDs(start, 1)
	require.EqualError(t, err, "purge: ƒ2: job is pinned by PinKind(0), PinKind(0) \"x\", PinKind(0) \"xx\" and 997 more")
	require.Len(t, x.Pins(1), purge.MaxPins)
}

func TestAClockThatStepsIsAnErrorUntilItIsAccepted(t *testing.T) {
	x, m := populated(t, purge.Config{MaxJump: time.Hour}, 10)
	l := purge.Limits{MaxAge: purge.To(time.Minute)}
	r := newRunner(t, x, m, l)
	for _, now := range []eventlog.Timestamp{
		start + 8.75, start + 9 + 3601, 0, -5, eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1)),
	} {
		_, err := x.Plan(now, l)
		var clock *purge.ClockError
		require.ErrorAs(t, err, &clock)
		require.ErrorIs(t, err, purge.ErrClock)
		require.Equal(t, start+9, clock.Last)
		_, err = r.Tick(t.Context(), now)
		require.ErrorIs(t, err, purge.ErrClock)
		require.Equal(t, 10, x.Len())
		require.Empty(t, m.calls)
	}
	require.NoError(t, x.Observe(start+9+3600), "not too far")
	require.NoError(t, x.Observe(start+9+3601), "a quiet hour, but for the heart")
	require.ErrorIs(t, x.Observe(start+9+3600), purge.ErrClock)

	require.NoError(t, x.AcceptClock(start+1e6), "the machine was off")
	p, err := r.Tick(t.Context(), start+1e6)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 10)
	require.ErrorIs(t, x.Observe(start+2e6), purge.ErrClock, "once")
	require.NoError(t, x.AcceptClock(start+20), "the clock was wrong")
	require.NoError(t, x.Observe(start+21))
	require.ErrorIs(t, x.AcceptClock(0), purge.ErrClock)
	require.EqualError(t, x.Observe(start), "purge: clock stepped: 1700000000.0 is before 1700000021.0")
	require.EqualError(t, x.Observe(start*2), "purge: clock stepped: 3400000000.0 is too far after 1700000021.0")
	require.EqualError(t, x.Observe(0), "purge: clock stepped: 0.0 is no time; the last was 1700000021.0")
}

func TestAJobOfAClockThatJumpedDoesNotMakeTheJumpATime(t *testing.T) {
	x, m := populated(t, purge.Config{}, 10)
	r := newRunner(t, x, m, purge.Limits{MaxAge: purge.To(time.Hour)})
	_, err := r.Tick(t.Context(), start+10)
	require.NoError(t, err)
	const jumped = start + 1e9
	require.NoError(t, x.Add(purge.Job{ID: 50, Inactive: jumped, Result: purge.Completed}))
	_, err = r.Tick(t.Context(), jumped+1)
	require.EqualError(t, err, "purge: clock stepped: 2700000001.0 is too far after 1700000010.0")
	_, err = r.Tick(t.Context(), start+20)
	require.EqualError(t, err, "purge: clock stepped: 1700000020.0 is before 2700000000.0")
	require.Equal(t, 11, x.Len())
	require.NoError(t, x.AcceptClock(start+20), "the clock was wrong")
	p, err := r.Tick(t.Context(), start+21)
	require.NoError(t, err)
	require.Empty(t, p.Jobs)
}

func TestAPlanForATimeThatWasWrongRemovesNothing(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	wrong, err := x.Plan(start+80000, purge.Limits{MaxAge: purge.To(time.Hour)})
	require.NoError(t, err)
	require.Len(t, wrong.Jobs, 10)
	byID, err := x.PlanIDs(start+80000, 3)
	require.NoError(t, err)
	require.NoError(t, x.AcceptClock(start+10))
	require.ErrorIs(t, x.Commit(wrong), purge.ErrStale)
	p, err := x.Claim(wrong)
	require.NoError(t, err)
	require.Empty(t, p.Jobs)
	require.True(t, p.More)
	require.NoError(t, x.Commit(byID), "somebody named it")
	require.Equal(t, 9, x.Len())
}

func TestACommitTrustsNoWatermarkButTheOneOfItsPlan(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	p, err := x.PlanIDs(start+20, 3)
	require.NoError(t, err)
	require.True(t, p.NeedsWatermark)
	require.Equal(t, jobid.ID(3), p.Watermark, "the caller stores this one")
	x.Saw(8)
	require.NoError(t, x.Add(purge.Job{ID: 7, Inactive: start + 10, Result: purge.Completed}))
	require.NoError(t, x.Commit(p))
	require.EqualValues(t, 3, x.Durable())

	p, err = x.PlanIDs(start+20, 7)
	require.NoError(t, err)
	require.True(t, p.NeedsWatermark, "7 would come back")
	require.Equal(t, jobid.ID(8), p.Watermark)
}

func TestAPlanDoesNotChangeTheIndex(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	l := purge.Limits{MaxCount: purge.To(3)}
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
		p, err := x.Plan(start+20, purge.Limits{MaxCount: purge.To(8)})
		require.NoError(t, err)
		return p
	}
	for _, change := range []func(*purge.Plan){
		func(p *purge.Plan) { p.Jobs[0].ID = 99 },
		func(p *purge.Plan) { p.Jobs[1].Inactive++ },
	} {
		p := plan()
		change(&p)
		require.ErrorIs(t, x.Commit(p), purge.ErrStale)
	}
	named, err := x.PlanIDs(start+20, 1, 2)
	require.NoError(t, err)
	for _, p := range []purge.Plan{plan(), named} {
		p.Jobs = append(p.Jobs, p.Jobs[1])
		require.ErrorIs(t, x.Commit(p), purge.ErrStale, "a job goes once")
		require.NoError(t, x.Check())
	}
	p, err := x.Claim(plan())
	require.NoError(t, err)
	changed := p
	changed.Jobs = changed.Jobs[:1]
	require.EqualError(t, x.Commit(changed), "purge: plan is out of date: is not what was claimed")
	require.ErrorIs(t, x.Abort(changed), purge.ErrStale)
	_, err = x.Claim(p)
	require.ErrorIs(t, err, purge.ErrStale)
	require.NoError(t, x.Commit(p))
	require.ErrorIs(t, x.Commit(p), purge.ErrStale)
	require.ErrorIs(t, x.Abort(p), purge.ErrStale)

	byHand := purge.Plan{Now: start + 20, Jobs: []purge.Candidate{{Job: makeJobs(5)[4], Why: purge.ByID}}}
	require.EqualError(t, x.Commit(byHand), "purge: plan is out of date: ƒ6 would not be purged now")
	fresh, err := purge.Recover(purge.Config{}, purge.Evidence{Jobs: makeJobs(10)})
	require.NoError(t, err)
	require.ErrorIs(t, fresh.Commit(byHand), purge.ErrStale)
	require.NoError(t, x.Check())
}

func TestTwoPlansOfTheSameJobsPurgeThemOnce(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	l := purge.Limits{MaxCount: purge.To(8)}
	first, err := x.Plan(start+20, l)
	require.NoError(t, err)
	second, err := x.Plan(start+20, l)
	require.NoError(t, err)
	require.NoError(t, x.Commit(first))
	require.ErrorIs(t, x.Commit(second), purge.ErrStale)
	second, err = x.Claim(second)
	require.NoError(t, err)
	require.Empty(t, second.Jobs)
	require.False(t, second.More)
	require.Equal(t, 8, x.Len())
}

func TestAnOldPlanGivesUpWhatTheLimitsNowAllow(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 10)
	p, err := x.Plan(start+20, purge.Limits{MaxCount: purge.To(7)})
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1, 2, 3}, p.IDs())
	named, err := x.PlanIDs(start+20, 9, 2)
	require.NoError(t, err)
	require.NoError(t, x.Commit(named))
	p, err = x.Claim(p)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1}, p.IDs(), "two others went: 3 may stay")
}

func TestWhetherMoreFollowsIsToldAnewByAClaim(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 2)
	p, err := x.Plan(start+20, purge.Limits{MaxCount: purge.To(0), Batch: 1})
	require.NoError(t, err)
	require.True(t, p.More)
	_, err = x.Pin(2, purge.Pin{Kind: purge.Waiter})
	require.NoError(t, err)
	pinned, err := x.Claim(p)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1}, pinned.IDs())
	require.False(t, pinned.More)
	require.NoError(t, x.Abort(pinned))
	_, err = x.Unpin(2, purge.Pin{Kind: purge.Waiter})
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
		x, err := purge.New(purge.Config{Purged: func(n purge.Notice) {
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
			l := purge.Limits{MaxCount: purge.To(count), Batch: rapid.IntRange(1, 300).Draw(t, "batch")}
			plans[i], err = x.Plan(start+400, l)
			require.NoError(t, err)
		}
		planned := 0
		for _, p := range rapid.Permutation(plans).Draw(t, "order") {
			planned = max(planned, len(p.Jobs))
			before := x.Len()
			if rapid.Bool().Draw(t, "claim") {
				p, err = x.Claim(p)
				require.NoError(t, err)
				require.NoError(t, x.Commit(p))
				require.Equal(t, before-len(p.Jobs), x.Len())
			} else if x.Commit(p) != nil {
				require.Equal(t, before, x.Len())
			}
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

func TestARestartRefusesWhatCanNotBe(t *testing.T) {
	jobs := makeJobs(3)
	bad := jobs[1]
	bad.Result = 3
	timeless := jobs[1]
	timeless.Inactive = eventlog.Timestamp(math.NaN())
	for _, c := range []struct {
		ev   purge.Evidence
		want error
	}{
		{purge.Evidence{Jobs: []purge.Job{jobs[0], jobs[1], jobs[0]}}, purge.ErrDuplicate},
		{purge.Evidence{Tombstones: []purge.Job{jobs[0], jobs[1], jobs[0]}}, purge.ErrDuplicate},
		{purge.Evidence{Jobs: []purge.Job{jobs[0], bad, jobs[2]}}, purge.ErrJob},
		{purge.Evidence{Jobs: []purge.Job{jobs[0], timeless, jobs[2]}}, purge.ErrJob},
	} {
		_, err := purge.Recover(purge.Config{}, c.ev)
		require.ErrorIs(t, err, c.want)
	}
	for _, cfg := range []purge.Config{
		{MaxJump: -1}, {TombstoneCount: purge.To(-1)}, {TombstoneAge: purge.To(-time.Second)},
	} {
		_, err := purge.New(cfg)
		require.ErrorIs(t, err, purge.ErrLimits)
	}
	var x purge.Index
	for _, j := range []purge.Job{bad, timeless, {ID: 4}, {ID: 4, Inactive: eventlog.Timestamp(math.Inf(1))}} {
		require.ErrorIs(t, x.Add(j), purge.ErrJob)
	}
	require.Zero(t, x.Watermark(), "what was refused was not seen")
}

func TestTheWatermarkIsTheGreatestOfAllEvidence(t *testing.T) {
	job := func(id jobid.ID) []purge.Job { return []purge.Job{{ID: id, Inactive: start}} }
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
	x.Saw(9)
	x.Saw(7)
	require.Equal(t, jobid.ID(9), x.Watermark())
}

func TestTombstonesEndByCountAndByAge(t *testing.T) {
	cfg := purge.Config{TombstoneCount: purge.To(4), TombstoneAge: purge.To(20 * time.Second), MaxJump: math.MaxInt64}
	x, m := populated(t, cfg, 10)
	r := newRunner(t, x, m, purge.Limits{MaxCount: purge.To(0), Batch: 3})
	p, err := r.Tick(t.Context(), start+10)
	require.NoError(t, err)
	require.Empty(t, p.Expired)
	p, err = r.Tick(t.Context(), start+10)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{1, 2}, p.Expired)
	require.Equal(t, 4, x.Stats().Tombstones)
	p, err = r.Tick(t.Context(), start+25)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{3, 4, 5}, p.Expired, "the third by count, the fourth and fifth by age")
	require.Equal(t, 4, x.Stats().Tombstones)
	require.Len(t, m.tombs, 4)
	p, err = r.Tick(t.Context(), start+100)
	require.NoError(t, err)
	require.Equal(t, []jobid.ID{6, 7, 8, 9}, p.Expired)
	require.Empty(t, p.Tombstones, "it is beyond the age itself")
	require.Zero(t, x.Stats().Tombstones)
	require.NoError(t, x.Check())
}

func TestAPurgeByIdEndsNoTombstoneByATimeThatNobodyBelieves(t *testing.T) {
	x, m := populated(t, purge.Config{TombstoneAge: purge.To(time.Hour)}, 10)
	r := newRunner(t, x, m, purge.Limits{})
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
	require.Empty(t, p.Tombstones)
}

func TestTombstonesBeyondALoweredLimitEndOverTime(t *testing.T) {
	jobs := makeJobs(5000)
	x, err := purge.Recover(purge.Config{TombstoneCount: purge.To(1)}, purge.Evidence{Tombstones: jobs[:4995], Jobs: jobs[4995:]})
	require.NoError(t, err)
	for want := range 5 {
		p, err := x.PlanIDs(start+6000, jobid.ID(4996+want))
		require.NoError(t, err)
		p, err = x.Claim(p)
		require.NoError(t, err)
		require.Len(t, p.Expired, min(1002, max(1, 4995-1001*want)))
		require.Len(t, p.Tombstones, 1)
		require.NoError(t, x.Commit(p))
		require.NoError(t, x.Check())
	}
	require.Equal(t, 1, x.Stats().Tombstones)
}

func TestErrorsOfStoresKeepTheirCause(t *testing.T) {
	cause := errors.New("no space")
	err := &purge.StoreError{Op: "unlink", Err: cause}
	require.EqualError(t, err, "purge: unlink: no space")
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, purge.ErrStore)
}
