package perilog_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// ran is a job whose prolog went well and that has finished: its epilog runs.
func ran(t *testing.T, ranks uint32, change func(*perilog.JobSpec)) *cluster {
	w := newCluster(t, int(ranks), perRank(), change).allocate()
	for rank := range ranks {
		w.exit(prologKey, rank, 0)
	}
	w.begin()
	w.event("finish", `{"status":0}`)
	w.pump()
	return w
}

func TestASecondStartOfADescriptionIsSomebodyElses(t *testing.T) {
	for _, crash := range []bool{false, true} {
		w := ran(t, 2, nil)
		w.now++
		w.event("epilog-start", `{"description":"job-manager.epilog"}`)
		w.event("release", `{"ranks":"all","final":true}`)
		w.exit(epilogKey, 0, 0)
		w.exit(epilogKey, 1, 0)
		require.True(t, w.freed.IsEmpty())
		why := perilog.WhyForeign
		if crash { // and the log does not tell which of the two has ended
			w.crash()
			why = perilog.WhyLost
		} else {
			_, acked := w.job.CheckIn(w.now, epilogKey, perilog.Report{Kind: perilog.ReportExited})
			require.True(t, acked, "the log has the end of the job's own")
		}
		list := w.job.Unresolved()
		require.Len(t, list, 1)
		require.Equal(t, why, list[0].Why)
		require.NoError(t, w.job.ForceFinish(w.now, epilogKey, 0, "alice"))
		w.pump()
		w.over()
	}
}

// Somebody else ends a start while the finish of the job's own is not logged yet.
func TestWhicheverOfTwoStartsEndsFirstTheOtherEndsToo(t *testing.T) {
	w := ran(t, 1, nil)
	w.event("release", `{"ranks":"all","final":true}`)
	w.now++
	w.event("epilog-start", `{"description":"job-manager.epilog"}`)
	w.event("epilog-finish", `{"description":"job-manager.epilog","status":0}`)
	require.Equal(t, "0", perilog.ActiveRanks(w.job, epilogKey).String(), "the job's own goes on")
	w.now++
	w.exit(epilogKey, 0, 0)
	w.over()
}

func TestATimeThatIsNoneIsTakenAsTheLatest(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	for _, now := range []float64{math.Inf(1), math.NaN(), math.Inf(-1), -1, 0} {
		w.job.Tick(eventlog.Timestamp(now))
	}
	deadline, _ := w.job.Deadline()
	require.Equal(t, w.now+60, deadline)
	w.job.Tick(math.MaxFloat64)
	w.exit(prologKey, 0, 0) // its timeout was long ago
	require.Equal(t, "prolog-start, epilog-start, exception", w.events())
}

func TestAnActionOfALongDescriptionIsEndedByForceIfThatFitsInALine(t *testing.T) {
	for n, fits := range map[int]bool{1<<20 - 300: true, 1<<20 - 100: false} {
		w := newCluster(t, 1, perRank(), nil).allocate()
		key := perilog.Key{Kind: jobstate.ActionProlog, Description: strings.Repeat("x", 63) + strings.Repeat("é", (n-63)/2)}
		w.event("prolog-start", `{"description":"`+key.Description+`"}`)
		err := w.job.ForceFinish(w.now, key, 1, "alice")
		if !fits {
			require.ErrorIs(t, err, perilog.ErrAction)
			require.Less(t, len(err.Error()), 200)
			require.True(t, w.job.Take().IsEmpty())
			continue
		}
		require.NoError(t, err)
		w.pump()
		cause, _ := w.state.Cause()
		require.Less(t, len(cause.Note), 200)
	}
}

// The crash came after the epilog was started for a prolog that had failed, and
// before anything told that it had. It is run again, with success.
func TestAnEpilogDoesNotRunBesideTheJob(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.exit(prologKey, 0, 1<<8)
	w.log = w.log[:bytes.LastIndexByte(w.log[:bytes.Index(w.log, []byte(`"exception"`))], '\n')+1]
	w.drains = new(idset.Set)
	w.state = jobstate.NewJob(1)
	for e, err := range eventlog.Entries(w.log) {
		require.NoError(t, err)
		_, err = w.state.Apply(e)
		require.NoError(t, err)
	}
	var err error
	w.job, err = perilog.RecoverJob(w.now, w.config, w.spec, w.log)
	require.NoError(t, err)
	require.NoError(t, w.job.Rerun(w.now, epilogKey))
	require.NoError(t, w.job.Rerun(w.now, prologKey))
	w.pump()
	w.exit(prologKey, 0, 0)
	w.begin()
	require.Empty(t, w.running[epilogKey.String()])
	w.finish(0)
	require.Equal(t, "0", w.running[epilogKey.String()].String())
	w.exit(epilogKey, 0, 0)
	w.over()
	require.Equal(t, 1, w.starts[epilogKey.String()])
}

func TestAFailureBeforeARestartIsNotForgotten(t *testing.T) {
	w := newCluster(t, 2, perRank(), nil).allocate()
	w.forced.Insert(0)
	require.NoError(t, w.job.ForceRanks(w.now, prologKey, idset.Of(0), "alice"))
	w.pump()
	w.crash()
	require.NoError(t, w.job.Reattach(w.now, prologKey))
	w.exit(prologKey, 1, 0)
	require.Equal(t, "prolog-start, prolog-release, epilog-start, exception, prolog-finish 256", w.events())
	cause, _ := w.state.Cause()
	require.Equal(t, "prolog job-manager.prolog failed on some ranks before a restart", cause.Note)
	require.False(t, w.job.MayStart())

	// Of an epilog the exception is not fatal.
	w.exit(epilogKey, 0, 2<<8)
	w.confirm()
	w.crash()
	require.NoError(t, w.job.Reattach(w.now, epilogKey))
	w.exit(epilogKey, 1, 0)
	require.Contains(t, w.events(), "prolog-finish 256, epilog-release, exception, epilog-finish 512")
	w.over()
}

// The crash came when the prolog was ended everywhere, and not finished.
func TestAFailureEverywhereBeforeARestartEndsTheJob(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.event("prolog-release", `{"description":"job-manager.prolog","ranks":"0","status":256}`)
	w.running = map[string]*idset.Set{}
	w.crash()
	require.NoError(t, w.job.Rerun(w.now, prologKey))
	w.pump()
	require.Equal(t, "prolog-start, prolog-release, epilog-start, exception, prolog-finish 256", w.events())
	w.exit(epilogKey, 0, 0)
	w.over()
}

func TestAJobWithoutRanksHasActionsThatEndAtOnce(t *testing.T) {
	w := newClusterOf(t, new(rset.R), perRank(), nil).allocate()
	w.begin()
	w.finish(0)
	w.over()
	require.Equal(t, "prolog-start, prolog-finish 0, start, finish, epilog-start, epilog-finish 0, release, free, clean", w.events())
	require.Empty(t, w.running)
}

// A rabbit's file system outlives every rank, and holds nothing but itself.
func TestANamedResourceOfAJobDelaysItselfAndTheEnd(t *testing.T) {
	named := func(s *perilog.JobSpec) { s.Holds.Named = []string{"rabbit0"} }
	w := newCluster(t, 2, perRank(), named)
	w.ledger = rset.NewLedger(w.spec.R, "rabbit0")
	w.allocate()
	w.exit(prologKey, 0, 0)
	w.exit(prologKey, 1, 0)
	w.begin()
	w.event("finish", `{"status":0}`)
	w.pump()
	w.event("epilog-start", `{"description":"dws","ranks":"","resources":["rabbit0"]}`)
	w.event("release", `{"ranks":"all","final":true}`)
	w.pump()
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 1, 0)
	require.Equal(t, "0-1", w.freed.String())
	require.Zero(t, w.finals)
	require.False(t, w.job.MayFree())
	require.Equal(t, "dws", w.job.Unresolved()[0].Action.Description)
	w.event("epilog-finish", `{"description":"dws","status":0}`)
	w.pump()
	w.over()
}

// What the executor gives up early goes back without an epilog, which is told by
// the late start of it.
func TestWhatIsReleasedEarlyHasNoEpilog(t *testing.T) {
	w := newCluster(t, 3, perRank(), func(s *perilog.JobSpec) { s.Holds.EarlyRelease = true }).allocate()
	for rank := range uint32(3) {
		w.exit(prologKey, rank, 0)
	}
	w.begin()
	w.early.Insert(1)
	w.event("release", `{"ranks":"1","final":false}`)
	w.pump()
	require.Equal(t, "1", w.freed.String())
	w.event("finish", `{"status":0}`)
	w.pump()
	require.Equal(t, "0,2", w.running[epilogKey.String()].String())
	w.event("release", `{"ranks":"0,2","final":true}`)
	w.exit(epilogKey, 0, 0)
	w.exit(epilogKey, 2, 0)
	w.over()
}

func TestOfTooManyActionsTheNextIsRefused(t *testing.T) {
	log := []byte(`{"timestamp":1.0,"name":"alloc"}` + "\n")
	for i := range perilog.MaxActions {
		log = fmt.Appendf(log, `{"timestamp":2.0,"name":"epilog-start","context":{"description":"%d"}}`+"\n", i)
	}
	spec := perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, R: hostsR(t, 2)}}
	job, err := perilog.RecoverJob(1, perilog.Config{}, spec, log)
	require.NoError(t, err)
	require.Len(t, job.Unresolved(), perilog.MaxActions)
	before := job.String()
	_, err = job.Apply(3, eventlog.Entry{Timestamp: 3, Name: "epilog-start", Context: []byte(`{"description":"x"}`)})
	var refused *perilog.EventError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, perilog.ErrActions)
	require.EqualError(t, err, `perilog: event "epilog-start": too many actions are active`)
	require.Equal(t, before, job.String())
	_, err = job.Apply(3, eventlog.Entry{Timestamp: 3, Name: "epilog-finish", Context: []byte(`{"description":"7","status":0}`)})
	require.NoError(t, err)
	_, err = job.Apply(4, eventlog.Entry{Timestamp: 4, Name: "epilog-start", Context: []byte(`{"description":"x"}`)})
	require.NoError(t, err)
}

func TestAJobThatIsClosedStartsNothing(t *testing.T) {
	// The configuration has got an epilog since.
	log := `{"timestamp":1.0,"name":"alloc"}
{"timestamp":2.0,"name":"start"}
{"timestamp":3.0,"name":"exception","context":{"type":"scheduler-restart","severity":0,"note":""}}
{"timestamp":4.0,"name":"finish","context":{"status":0}}
{"timestamp":5.0,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":6.0,"name":"clean"}
`
	job, err := perilog.RecoverJob(7, perRank(), perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, R: hostsR(t, 2)}}, []byte(log))
	require.NoError(t, err)
	require.True(t, job.Take().IsEmpty())
}

func TestNothingIsFreeWhileAnEpilogIsDue(t *testing.T) {
	w := newCluster(t, 1, perRank(), nil).allocate()
	w.exit(prologKey, 0, 0)
	w.event("exception", `{"type":"cancel","severity":0,"note":""}`)
	require.True(t, w.job.Holds().MayFree(), "by the log nobody holds anything")
	require.False(t, w.job.MayFree())
	require.True(t, w.job.Feed(w.ledger).IsEmpty())
	w.pump()
	w.exit(epilogKey, 0, 0)
	w.over()
}
