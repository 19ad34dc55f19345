package purge_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	require.Equal(t, eventlog.Timestamp(math.Inf(1)), x.Due(purge.Limits{}))
	_, _, done := x.Unlinked([]jobid.ID{1}, nil)
	require.False(t, done)
	_, ok := x.Lookup(0)
	require.False(t, ok)
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

// PU-3, PU-13.
func TestLimitsSayWhichJobsGoAndWhy(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 4) // they ended at 0, 1, 2 and 3 seconds
	sec := func(n float64) jobstate.Optional[time.Duration] {
		return jobstate.Some(time.Duration(n * float64(time.Second)))
	}
	for _, c := range []struct {
		now  eventlog.Timestamp
		l    purge.Limits
		want string
	}{
		{10, purge.Limits{}, ""},
		{10, purge.PurgeAll(), "1 count, 2 count, 3 count, 4 count"},
		{10, count(3), "1 count"},
		{10, count(4), ""},
		{10, purge.Limits{MaxAge: sec(10)}, ""},
		{10, purge.Limits{MaxAge: sec(8)}, "1 age, 2 age"},
		{10, purge.Limits{MaxAge: sec(7.999)}, "1 age, 2 age, 3 age"},
		{3, purge.Limits{MaxAge: sec(0)}, "1 age, 2 age, 3 age"},
		{10, purge.Limits{MaxAge: sec(9), MaxCount: jobstate.Some(2)}, "1 age,count, 2 count"},
		{10, purge.Limits{MinAge: sec(8)}, ""},
		{10, purge.Limits{MaxAge: sec(0), MaxCount: jobstate.Some(0), MinAge: sec(8)}, "1 age,count, 2 age,count, 3 age,count"},
	} {
		p, err := x.Plan(start+c.now, c.l)
		require.NoError(t, err)
		var got []string
		for _, j := range p.Jobs {
			got = append(got, fmt.Sprintf("%d %v", j.ID, j.Reason))
		}
		require.Equal(t, c.want, strings.Join(got, ", "), "%+v", c.l)
		require.False(t, p.More)
	}
	require.Equal(t, "id", purge.ReasonID.String())
	require.Empty(t, purge.Reason(0).String())
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
		{Summary: makeJobs(1)[0], Pins: []purge.Pin{{Kind: purge.PinHousekeeping}}},
		{Summary: makeJobs(3)[2], Pins: []purge.Pin{{Kind: purge.PinWaiter, By: "client 7"}, {Kind: purge.PinDependency, By: "ƒD"}}},
	}, p.Pinned)
	l := purge.PurgeAll()
	l.Batch = purge.NoBatch
	p, err = x.Plan(start+20, l)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 7)
	require.Len(t, p.Pinned, 3)

	_, err = x.PlanIDs(3)
	require.EqualError(t, err, `purge: ƒ4: job is pinned by waiter "client 7", dependency "ƒD"`)
	_, err = x.Unpin(3, purge.Pin{Kind: purge.PinWaiter, By: "client 7"})
	require.NoError(t, err)
	_, err = x.PlanIDs(3)
	require.ErrorIs(t, err, purge.ErrPinned, "the last pin counts")
	_, err = x.Unpin(3, purge.Pin{Kind: purge.PinDependency, By: "ƒD"})
	require.NoError(t, err)
	_, err = x.PlanIDs(3)
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
	_, err = x.Pin(1, purge.Pin{By: strings.Repeat("x", 257)})
	require.EqualError(t, err, "purge: too many bytes in Pin.By: 257, the limit is 256")
	_, err = x.PlanIDs(1)
	require.EqualError(t, err, "purge: ƒ2: job is pinned by PinKind(0), PinKind(0) \"x\", PinKind(0) \"xx\" and 997 more")
	require.Len(t, x.Pins(1), purge.MaxPins)
}

func TestAClockThatStepsIsAnErrorUntilItIsAccepted(t *testing.T) {
	x, m := populated(t, purge.Config{}, 10)
	l := purge.Limits{MaxAge: jobstate.Some(time.Minute)}
	require.NoError(t, x.Observe(start+9), "the first time is believed")
	for _, now := range []eventlog.Timestamp{
		start + 8.75, start + 9 + 604801, 0, -5, eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1)),
	} {
		_, err := x.Plan(now, l)
		require.ErrorIs(t, err, purge.ErrClock)
		_, err = x.Claim(now, l)
		require.ErrorIs(t, err, purge.ErrClock)
		require.ErrorIs(t, x.Observe(now), purge.ErrClock)
		require.Equal(t, 10, x.Len())
		require.Empty(t, m.calls)
	}
	require.NoError(t, x.Observe(start+9+604800), "not too far")
	require.NoError(t, x.Observe(start+9+604801), "a quiet week with ticks")
	require.ErrorIs(t, x.Observe(start+9+604800), purge.ErrClock)

	require.NoError(t, x.AcceptClock(start+2e6), "the machine was off")
	p, err := tick(t.Context(), x, m, start+2e6, l)
	require.NoError(t, err)
	require.Len(t, p.Jobs, 10)
	require.ErrorIs(t, x.Observe(start+3e6), purge.ErrClock, "once")
	require.NoError(t, x.AcceptClock(start+20), "the clock was wrong")
	require.NoError(t, x.Observe(start+21))
	require.ErrorIs(t, x.AcceptClock(0), purge.ErrClock)
	require.EqualError(t, x.Observe(start), "purge: clock stepped: 2023-11-14T22:13:20Z is before 2023-11-14T22:13:41Z; accept the clock if it is right")
	require.EqualError(t, x.Observe(start*2), "purge: clock stepped: 2077-09-27T20:26:40Z is too far after 2023-11-14T22:13:41Z; accept the clock if it is right")
	require.EqualError(t, x.Observe(-1e300), "purge: clock stepped: -1.0000000000000001e300 is not a valid time; the last was 2023-11-14T22:13:41Z")
}

// Of the time of ClaimIDs only an earlier one can tell that it is wild.
func TestACorrectedClockFreesStuckJobs(t *testing.T) {
	x, err := purge.New(purge.Config{})
	require.NoError(t, err)
	require.NoError(t, x.Add(jobstate.Summary{ID: 5, Inactive: start, Result: jobstate.ResultFailed}))
	_, err = x.ClaimIDs(math.MaxFloat64, 5)
	require.NoError(t, err)
	x.Unlinked(nil, map[jobid.ID]error{5: errors.New("disk")})
	require.NoError(t, x.AcceptClock(start))
	p, err := x.Plan(start, purge.PurgeAll())
	require.NoError(t, err)
	require.Len(t, p.Jobs, 1)
}

// The clock is set back while the store works: what it could not remove waits for a minute.
func TestAClockThatIsCorrectedAmidABatchDelaysNoRetry(t *testing.T) {
	x, err := purge.Recover(purge.Config{}, purge.Snapshot{Jobs: makeJobs(1)})
	require.NoError(t, err)
	const ahead = start + 6*86400
	require.NoError(t, x.Observe(ahead))
	_, err = x.Claim(ahead, purge.PurgeAll())
	require.NoError(t, err)
	require.NoError(t, x.AcceptClock(start+1))
	x.Unlinked(nil, map[jobid.ID]error{1: errors.New("disk")})
	require.NoError(t, x.Observe(start+1+3600))
	p, err := x.Plan(start+1+3600, purge.PurgeAll())
	require.NoError(t, err)
	require.Len(t, p.Jobs, 1)
}

func TestAJobWithATimeInTheFutureStopsNothing(t *testing.T) {
	const jumped = start + 1e9
	future := jobstate.Summary{ID: 50, Inactive: jumped, Result: jobstate.ResultCompleted}
	for _, restart := range []bool{false, true} {
		x, m := populated(t, purge.Config{}, 10)
		require.NoError(t, x.Observe(start+10))
		require.NoError(t, m.Create(future))
		require.NoError(t, x.Add(future))
		if restart {
			ev := m.snapshot()
			ev.Now = start + 10
			var err error
			x, err = purge.Recover(purge.Config{}, ev)
			require.NoError(t, err)
		}
		p, err := tick(t.Context(), x, m, start+4000, purge.Limits{MaxAge: jobstate.Some(time.Hour)})
		require.NoError(t, err)
		require.Len(t, p.Jobs, 10, "everything else goes on")
		require.ErrorIs(t, x.Observe(jumped+1), purge.ErrClock, "its time is no proof of the time")
		_, err = purgeIDs(t.Context(), x, m, start+4000, 50)
		require.NoError(t, err)
		require.Zero(t, x.Len())
	}
}

func TestDueIsWhenTheLimitsPurgeNext(t *testing.T) {
	const day, ms = 24 * 60 * 60, 0.001
	never, atOnce := eventlog.Timestamp(math.Inf(1)), eventlog.Timestamp(math.Inf(-1))
	x, _ := populated(t, purge.Config{}, 3)
	require.NoError(t, x.Observe(start+10))
	old := jobstate.Some(time.Hour)
	for _, c := range []struct {
		l    purge.Limits
		want eventlog.Timestamp
		why  string
	}{
		{purge.Limits{}, never, "no limits"},
		{purge.Limits{MinAge: old}, never, "that purges nothing"},
		{count(3), start + 10 + day, "to tell the time"},
		{count(2), atOnce, "too many"},
		{purge.Limits{MaxAge: old}, start + 3600 + ms, "too old"},
		{purge.Limits{MaxAge: old, MinAge: jobstate.Some(2 * time.Hour)}, start + 7200 + ms, "too old, not too young"},
		{purge.Limits{MaxCount: jobstate.Some(0), MinAge: old}, start + 3600 + ms, "too many, not too young"},
	} {
		require.Equal(t, c.want, x.Due(c.l), c.why)
	}
	for id := range jobid.ID(3) {
		_, err := x.Pin(id+1, purge.Pin{})
		require.NoError(t, err)
	}
	require.Equal(t, start+10+day, x.Due(count(0)), "pinned jobs wake nobody")
}

func TestARestartRefusesImpossibleRecords(t *testing.T) {
	jobs := makeJobs(3)
	bad := jobs[1]
	bad.Result = 3
	timeless := jobs[1]
	timeless.Inactive = eventlog.Timestamp(math.NaN())
	for _, c := range []struct {
		ev   purge.Snapshot
		want string
	}{
		{purge.Snapshot{Jobs: []jobstate.Summary{jobs[0], jobs[1], jobs[0]}}, "job was added before"},
		{purge.Snapshot{Tombstones: []jobstate.Summary{jobs[0], jobs[1], jobs[0]}}, "job was added before"},
		{purge.Snapshot{Jobs: []jobstate.Summary{jobs[0], bad, jobs[2]}}, "malformed record"},
		{purge.Snapshot{Jobs: []jobstate.Summary{jobs[0], timeless, jobs[2]}}, "malformed record"},
	} {
		_, err := purge.Recover(purge.Config{}, c.ev)
		require.ErrorContains(t, err, c.want)
	}
	_, err := purge.Recover(purge.Config{}, purge.Snapshot{Now: eventlog.Timestamp(math.NaN())})
	require.ErrorIs(t, err, purge.ErrClock)
	for _, cfg := range []purge.Config{
		{TombstoneCount: jobstate.Some(-1)}, {TombstoneAge: jobstate.Some(-time.Second)},
	} {
		_, err := purge.New(cfg)
		require.ErrorContains(t, err, "purge: invalid limits: ")
	}
	var x purge.Index
	for _, j := range []jobstate.Summary{bad, timeless, {ID: 4}, {ID: 4, Inactive: eventlog.Timestamp(math.Inf(1))}} {
		require.ErrorContains(t, x.Add(j), "malformed record")
	}
	require.Zero(t, x.Watermark(), "what was refused was not seen")
}

func TestTombstonesBeyondALoweredLimitEndOverTime(t *testing.T) {
	jobs := makeJobs(5000)
	x, err := purge.Recover(purge.Config{TombstoneCount: jobstate.Some(1)}, purge.Snapshot{Tombstones: jobs[:4995], Jobs: jobs[4995:]})
	require.NoError(t, err)
	for want := range 5 {
		p, err := x.ClaimIDs(start+6000, jobid.ID(4996+want))
		require.NoError(t, err)
		require.Len(t, p.Expired, min(1001, 4995-1000*want))
		require.Len(t, p.Tombstones, 1)
		_, _, done := x.Unlinked(p.IDs(), nil)
		require.True(t, done)
		require.NoError(t, x.Check())
	}
	require.Equal(t, 1, x.Stats().Tombstones.Total())
}
