package perilog_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

func TestALogOfHousekeepingThatFreesTooMuchIsRefused(t *testing.T) {
	b := newBench(t, 3, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
	b.take()
	b.apply("exception", cancel)
	b.take()
	start := `{"timestamp":5,"name":"housekeeping-start","context":{"description":"housekeeping","per-rank":true}}` + "\n"
	for _, release := range []string{`{"ranks":"0-2","final":true}`, `{"ranks":"1","final":false}`, `{"ranks":"7","final":false}`} {
		hk := start + `{"timestamp":8,"name":"release","context":` + release + "}\n"
		_, err := perilog.RecoverJob(9, b.cfg, b.spec, []byte(""+string(b.log)), []byte(hk))
		require.ErrorIs(t, err, perilog.ErrOrder, release)
	}
}

func TestARerunOfHousekeepingTakesNoDrainBack(t *testing.T) {
	b := newBench(t, 1, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
	hk := perilog.Housekeeping()
	b.run()
	b.take()
	require.Equal(t, perilog.AckApplied, b.report(perilog.Report{Action: hk, Attempt: 1, Kind: perilog.ReportUnreachable}))
	require.Empty(t, b.job.Unresolved(), "it is about to be drained")
	b.take()
	require.Equal(t, "0", b.drains.String())
	require.NoError(t, b.job.Rerun(b.now, hk, ranks("0")))
	b.take()
	b.report(perilog.Report{Action: hk, Attempt: 2, Kind: perilog.ReportExited})
	b.take()
	require.True(t, b.freed.IsEmpty(), "HK-3: the drain is not confirmed")
	b.drained()
	require.Equal(t, "0", b.freed.String())
}

// A control line drains a node while the command goes on. It does not run twice at a time there: the
// rank would be freed when the second one ends (I3).
func TestHousekeepingThatRunsIsNotRunAgain(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}})
	b.run()
	b.take()
	require.Equal(t, perilog.AckApplied, b.says(hk, 0, `{"version":1,"failed":true}`))
	b.take()
	require.ErrorIs(t, b.job.Rerun(b.now, hk, ranks("0")), perilog.ErrAction)
	b.exited(hk, 0, 0)
	require.NoError(t, b.job.Rerun(b.now, hk, ranks("0")))
	require.Equal(t, "0", b.take().Launch[0].Ranks.String())
}

// A control line may name a node that the job still holds, or on which nothing was launched. Housekeeping
// failed on neither, and an attempt there would free a node that is in use (I3).
func TestHousekeepingIsNotRunAgainBeforeItRan(t *testing.T) {
	b := newBench(t, 3, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{ReleaseAfter: new(fsd.Duration)}})
	b.take()
	b.job.Offline(b.now, ranks("2"))
	b.apply("start", "")
	b.apply("finish", `{"status":0}`)
	b.apply("release", `{"ranks":"0,2","final":false}`)
	b.take()
	require.Equal(t, perilog.AckApplied, b.says(hk, 0, `{"version":1,"failed":"1-2"}`))
	b.take()
	require.Equal(t, "1-2", b.drains.String())
	for _, rank := range []string{"1", "2", "1-2"} {
		require.ErrorIs(t, b.job.Rerun(b.now, hk, ranks(rank)), perilog.ErrAction, rank)
	}
	b.drained()
	require.True(t, b.freed.IsEmpty())
}

// A crash can come between any two records: what follows from the first is logged then.
func TestWhatHousekeepingEndedOnGoesBackAfterACrash(t *testing.T) {
	force := func(b *bench) { require.NoError(b, b.job.ForceFinish(b.now, hk, nil, 256, "root")) }
	fail := func(b *bench) {
		b.report(perilog.Report{Action: hk, Attempt: 1, Kind: perilog.ReportExited, Status: 256})
	}
	drained := func(b *bench) { fail(b); b.take(); b.job.Drained(b.now, ranks("0")) }
	for name, c := range map[string]struct {
		policy jobstate.OnFailure
		end    func(*bench)
		last   string // the last record that is durable
		back   bool
	}{
		"a failure that is released": {jobstate.OnFailureRelease, fail, "housekeeping-fail", true},
		"a failure that is held":     {jobstate.OnFailureHold, fail, "housekeeping-fail", false},
		"a failure that is drained":  {jobstate.OnFailureDrain, fail, "housekeeping-fail", false},
		"a confirmed drain":          {jobstate.OnFailureDrain, drained, "drained", true},
		"a rank ended by force":      {jobstate.OnFailureHold, force, "housekeeping-fail", true},
		"what is told already":       {jobstate.OnFailureRelease, fail, "housekeeping-release", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{OnFailure: c.policy}})
			b.run()
			b.take()
			b.exited(hk, 1, 0)
			c.end(b)
			b.take()
			const back = `{"description":"housekeeping","ranks":"0","status":256}`
			require.Equal(t, c.back || c.last == "housekeeping-release", bytes.Contains(b.hk, []byte(back)), "in the same way live")
			end := bytes.LastIndex(b.hk, []byte(c.last))
			b.hk = b.hk[:end+bytes.IndexByte(b.hk[end:], '\n')+1]
			b.freed = new(idset.Set) // the crash came before
			b.crash()
			var again []string
			for _, r := range b.take().Post {
				if r.Entry.Name == "housekeeping-release" {
					again = append(again, string(r.Entry.Context))
				}
			}
			if c.back {
				require.Equal(t, []string{back}, again)
			} else {
				require.Empty(t, again)
			}
		})
	}
}

func TestHousekeepingThatAnOperatorEndedIsNotLaunched(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Housekeeping: &perilog.HousekeepingConfig{ReleaseAfter: new(fsd.Duration)}})
	b.take()
	b.job.Offline(b.now, ranks("1"))
	b.run()
	require.Equal(t, "0", b.take().Launch[0].Ranks.String())
	require.NoError(t, b.job.ForceFinish(b.now, perilog.Housekeeping(), ranks("1"), 0, "root"))
	b.take()
	require.Equal(t, "1", b.freed.String())
	b.job.Offline(b.now, nil)
	require.Empty(t, b.take().Launch, "rank 1 is somebody else's by now")
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

// I10: a rank has a holder from when it leaves the job, although nothing was taken, and after
// a shutdown.
func TestHousekeepingHoldsWhatHasLeft(t *testing.T) {
	b := newBench(t, 2, perilog.Config{Housekeeping: new(perilog.HousekeepingConfig)})
	b.run()
	b.job.Shutdown(b.now, b.now)
	holders := slices.Collect(b.job.Holders())
	require.Len(t, holders, 1)
	require.Equal(t, perilog.HolderHousekeeping, holders[0].Kind)
	require.Equal(t, "0-1", holders[0].Ranks.String())
	require.False(t, b.job.Final())
}
