package manager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A list describes no more of the jobs that are over than it shows, and counts those it looks at,
// whoever has them.
func TestAListDescribesWhatItShows(t *testing.T) {
	for by, shown := range map[uint32][]jobid.ID{7: {3999, 4000}, 8: nil} {
		var allocs [2]float64
		for i, n := range []int{1000, 4000} {
			var f joblife.Follower
			for id := range jobid.ID(n) {
				text, err := jobstate.Summary{ID: id + 1, UserID: 7, Inactive: 1_700_000_000, Result: jobstate.ResultCompleted}.AppendText(nil)
				require.NoError(t, err)
				require.NoError(t, f.Add(joblife.Record{Time: 1_700_000_000, Job: id + 1, Kind: joblife.RecordInactive, Data: text}))
			}
			m, _, err := f.Restore(time.Unix(1_700_000_000, 0), joblife.Config{Owner: 1, Private: true, Epoch: time.Unix(1_700_000_000, 0)})
			require.NoError(t, err)
			a := idle(t)
			a.ended = newRecent(maxRecent)
			var answer wire.Answer
			allocs[i] = testing.AllocsPerRun(5, func() {
				answer = wire.Answer{}
				seen, err := a.read(m, joblife.Cred{UserID: by, Guest: true}, "jobs", wire.Request{All: true, Limit: 2}, &answer)
				require.NoError(t, err)
				require.Equal(t, n, seen)
			})
			if n == 4000 {
				var ids []jobid.ID
				for _, j := range answer.Jobs {
					ids = append(ids, j.ID)
				}
				require.Equal(t, shown, ids)
			}
		}
		require.InDelta(t, allocs[0], allocs[1], 10)
	}
}
