package jobstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
)

// entries generates events of every name at few times and with contexts that
// collide, good and bad.
func entries() *rapid.Generator[eventlog.Entry] {
	names := sortedKeys(samples)
	more := []string{
		`{"description":"a","status":0}`, `{"description":"b","status":1}`, `{"description":"a"}`, `{"priority":0}`,
		`{"urgency":0,"userid":1}`, `{"status":256}`, `{"ranks":"0-3","final":false}`, `{"type":"scheduler-restart","severity":0,"note":""}`,
		`{"type":"x","severity":3,"note":""}`, `{"a":null,"b":{"c":1}}`, `{}`, `[]`, ``, `{"userid":1,"urgency":0,"flags":0}`,
	}
	return rapid.Custom(func(t *rapid.T) eventlog.Entry {
		name := rapid.SampledFrom(names).Draw(t, "name")
		context := samples[name]
		if rapid.IntRange(0, 2).Draw(t, "other") == 0 {
			context = rapid.SampledFrom(more).Draw(t, "context")
		}
		return entry(rapid.IntRange(0, 3).Draw(t, "t"), name, context)
	})
}

// TestFoldOfWhatWasNotRefusedIsTheLiveState is I5 and I6: a live job meets any
// events; the log has those that were not refused; the fold of the log, after
// every prefix, is the live job, although its ignored events are in the log.
// The same events give the same outcomes a second time (I7).
// SM-1, SM-20.
func TestFoldOfWhatWasNotRefusedIsTheLiveState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, again := jobstate.NewJob(1), jobstate.NewJob(1)
		var log []byte
		// Half of the runs start from a state far down, else few get there.
		if rapid.Bool().Draw(t, "deep") {
			s := jobstate.State(1 << rapid.IntRange(0, 5).Draw(t, "state"))
			for i, e := range script(upTo(s)...) {
				e.Timestamp = eventlog.Timestamp(1 + i)
				for _, j := range []*jobstate.Job{live, again} {
					_, err := j.Apply(e)
					require.NoError(t, err)
				}
				var err error
				log, err = eventlog.AppendEntry(log, e)
				require.NoError(t, err)
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			e := entries().Draw(t, "event")
			before := describe(live)
			outcome, err := live.Apply(e)
			outcome2, err2 := again.Apply(e)
			require.Equal(t, outcome, outcome2)
			require.Equal(t, err, err2)
			require.NoError(t, jobstate.Check(live))
			if err != nil || outcome.Ignored() {
				require.Equal(t, before, describe(live))
			}
			if err == nil {
				log, err = eventlog.AppendEntry(log, e)
				require.NoError(t, err, "what is in memory can be in the log")
			}
			replayed, err := jobstate.Replay(1, log)
			require.NoError(t, err)
			require.Equal(t, describe(live), describe(replayed))
		}
	})
}
