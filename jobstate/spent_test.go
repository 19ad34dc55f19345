package jobstate_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
)

// TestSpentIsTheSumOfAllStays compares the time in each state with a sum of every stay, at each
// moment of random logs. A replay tells the same (I5).
func TestSpentIsTheSumOfAllStays(t *testing.T) {
	const priority, back = `"name":"priority","context":{"priority":16}`, `"name":"urgency","context":{"urgency":8,"userid":1}`
	events := map[jobstate.State][]string{ // what leads on, and back
		jobstate.StateNew: {`"name":"validate"`}, jobstate.StateDepend: {`"name":"depend"`}, jobstate.StatePriority: {priority},
		jobstate.StateSched: {back, `"name":"flux-restart"`, `"name":"alloc"`}, jobstate.StateRun: {`"name":"start"`, `"name":"finish","context":{"status":0}`},
		jobstate.StateCleanup:  {`"name":"release","context":{"ranks":"all","final":true}`, `"name":"free"`, `"name":"clean"`},
		jobstate.StateInactive: {back},
	}
	others := []string{back, priority, `"name":"memo","context":{"a":1}`, `"name":"exception","context":{"type":"cancel","severity":0,"userid":1}`}
	returned := 0
	rapid.Check(t, func(t *rapid.T) {
		j := jobstate.NewJob(1)
		spent := make(map[jobstate.State]eventlog.Timestamp)
		at := eventlog.Timestamp(1000)
		var log []byte
		apply := func(rest string) {
			line := []byte(`{"timestamp":` + at.String() + `,` + rest + "}\n")
			e, err := eventlog.Parse(line)
			require.NoError(t, err)
			if _, err := j.Apply(e); err == nil {
				log = append(log, line...)
			}
		}
		apply(`"name":"submit","context":{"userid":5,"urgency":16,"flags":0,"version":1}`)
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			step := eventlog.Timestamp(rapid.IntRange(0, 64).Draw(t, "eighths")) / 8
			at += step
			spent[j.State()] += step
			before := j.State()
			list := events[before]
			if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
				list = others
			}
			apply(rapid.SampledFrom(list).Draw(t, "event"))
			if before == jobstate.StateSched && j.State() == jobstate.StatePriority {
				returned++
			}
		}
		replayed, err := jobstate.Replay(1, log)
		require.NoError(t, err)
		sum := time.Duration(0)
		for s := jobstate.StateNew; s <= jobstate.StateInactive; s <<= 1 {
			want := time.Duration(spent[s] * eventlog.Timestamp(time.Second))
			require.Equal(t, want, j.Spent(s, at), "%v", s)
			require.Equal(t, want, replayed.Spent(s, at), "%v", s)
			sum += want
		}
		require.Equal(t, sum, j.Spent(jobstate.StateNew|jobstate.StateActive|jobstate.StateInactive, at))
		require.Zero(t, j.Spent(0, at))
	})
	require.NotZero(t, returned)
}

func TestSpentOfClocksThatWereSetBack(t *testing.T) {
	j, err := jobstate.Replay(1, []byte(`{"timestamp":100,"name":"submit","context":{"userid":5,"urgency":16,"flags":0,"version":1}}
{"timestamp":90,"name":"validate"}
{"timestamp":95,"name":"depend"}
{"timestamp":80,"name":"priority","context":{"priority":16}}
`))
	require.NoError(t, err)
	require.Zero(t, j.Spent(jobstate.StateNew|jobstate.StatePriority, 70))
	require.Equal(t, 5*time.Second, j.Spent(jobstate.StateDepend, 70))
	require.Zero(t, j.Spent(jobstate.StateSched, 70))
	require.Equal(t, time.Duration(math.MaxInt64), j.Spent(jobstate.StateSched, 1e300))
}

// What a summary knows, its job tells as any other; it tells nothing else.
func TestAJobOfASummary(t *testing.T) {
	for _, result := range []jobstate.Result{0, jobstate.ResultCompleted, jobstate.ResultFailed, jobstate.ResultCanceled, jobstate.ResultTimeout} {
		for came := range 4 {
			ran := came > 1
			summary := jobstate.Summary{ID: 7, Inactive: 30, Result: result, Ran: ran, UserID: 5, Unstarted: came == 1, Stopped: came == 3}
			j := summary.Job()
			again, ok := j.Summary()
			require.True(t, ok)
			require.Equal(t, summary, again)
			require.Equal(t, came > 0, j.WasAllocated())
			got, ok := j.Result()
			require.Equal(t, result != 0, ok)
			require.Equal(t, result, got)
			require.Equal(t, result == jobstate.ResultCompleted, j.Success())
			require.Equal(t, ran, j.Started())
			require.True(t, j.Closed() && j.State() == jobstate.StateInactive && j.ID() == 7 && j.UserID() == 5)
			at, ok := j.Entered(jobstate.StateInactive)
			require.True(t, ok && at == 30)
			require.False(t, j.Submitted() || j.Finished() || j.HasResources() || j.OnHold())
			_, ok = j.Cause()
			require.False(t, ok)
			_, ok = j.ExitCode()
			require.False(t, ok)
			require.Empty(t, j.Dependencies())
			require.Nil(t, j.Annotations())
			require.NotPanics(t, func() { _ = j.Waiting() })
			for range j.Updates() {
				t.Fatal("an update")
			}
			require.Equal(t, 10*time.Second, j.Spent(jobstate.StateNew|jobstate.StateActive|jobstate.StateInactive, 40))
			_, err := j.Apply(eventlog.Entry{Timestamp: 50, Name: "memo", Context: []byte(`{"a":1}`)})
			require.ErrorIs(t, err, jobstate.ErrClosed)
		}
	}
}
