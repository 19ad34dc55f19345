package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// closedLog is what flux-core left behind when it lost an epilog: a log that is
// closed while the epilog is active.
const closedLog = prelude + `{"timestamp":2,"name":"alloc"}
{"timestamp":3,"name":"epilog-start","context":{"description":"job-manager.epilog"}}
{"timestamp":4,"name":"exception","context":{"type":"cancel","severity":0,"note":""}}
`

const closedEnd = `{"timestamp":5,"name":"free"}
{"timestamp":6,"name":"clean"}
`

func recoverClosed(t *testing.T, c *perilog.Config, more string) *perilog.Job {
	t.Helper()
	job, err := perilog.RecoverJob(100, c, fuzzSpec(t), []byte(closedLog+more+closedEnd), nil)
	require.NoError(t, err)
	require.True(t, job.State().Closed())
	return job
}

var epilogKey = perilog.Key{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}

func TestNothingIsLoggedAfterClean(t *testing.T) {
	epilog := &perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}
	t.Run("an epilog of somebody else is finished by force", func(t *testing.T) {
		job := recoverClosed(t, new(perilog.Config), "")
		require.ErrorIs(t, job.ForceFinish(101, epilogKey, nil, 256, "alice"), perilog.ErrAction)
		require.Empty(t, job.Take(101).Post)
	})
	t.Run("an epilog of the configuration is finished by force", func(t *testing.T) {
		job := recoverClosed(t, epilog, "")
		require.ErrorIs(t, job.ForceFinish(101, epilogKey, nil, 256, "alice"), perilog.ErrAction)
		require.Empty(t, job.Take(101).Post)
	})
	t.Run("an epilog is run again", func(t *testing.T) {
		job := recoverClosed(t, epilog, "")
		require.ErrorIs(t, job.Rerun(101, epilogKey, nil), perilog.ErrAction)
		require.Empty(t, job.Take(101).Post)
	})
	t.Run("an epilog checks in", func(t *testing.T) {
		job := recoverClosed(t, epilog, "")
		job.Report(101, perilog.Report{Action: epilogKey, Kind: perilog.ReportExited, Attempt: 1, Rank: 1, Status: 256})
		require.Empty(t, job.Take(101).Post)
	})
	t.Run("a drain is confirmed", func(t *testing.T) {
		job := recoverClosed(t, epilog, `{"timestamp":4.5,"name":"epilog-fail","context":{"description":"job-manager.epilog","ranks":"1","cause":"failed","status":256,"drain":true}}
`)
		job.Drained(101, idset.Of(1))
		require.Empty(t, job.Take(101).Post)
	})
}

func TestCheckNamesBothFaultsOfATolerance(t *testing.T) {
	c := perilog.Config{Tolerate: perilog.Tolerate{Count: -1, Fraction: 2}}
	err := c.Check()
	require.ErrorContains(t, err, "tolerate.count")
	require.ErrorContains(t, err, "tolerate.fraction")
}

// The records of both logs are durable in one order, so that housekeeping is never
// ahead of the job. Two logs that do not belong together are refused.
func TestALogOfHousekeepingThatIsAheadIsRefused(t *testing.T) {
	c := &perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}
	l := &lifeLog{t: t, now: 10}
	job, err := perilog.NewJob(c, fuzzSpec(t))
	require.NoError(t, err)
	l.job = job
	for e, err := range eventlog.Entries([]byte(prelude)) {
		require.NoError(t, err)
		_, err = job.Apply(l.now, e)
		require.NoError(t, err)
	}
	for range 12 {
		l.round(0)
	}
	require.True(t, job.Done(), "%v", job)
	log := []byte(prelude + `{"timestamp":20,"name":"alloc"}` + "\n")
	_, err = perilog.RecoverJob(1e9, c, fuzzSpec(t), log, l.hk)
	require.ErrorIs(t, err, perilog.ErrOrder)
}
