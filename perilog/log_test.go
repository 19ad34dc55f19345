package perilog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
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

// pending returns a job in SCHED.
func pending(t testing.TB, c *perilog.Config, id jobid.ID, s *perilog.Scratch) *perilog.Job {
	t.Helper()
	j, err := perilog.NewJob(c, perilog.Spec{ID: id, Scratch: s})
	require.NoError(t, err)
	for i, e := range []eventlog.Entry{
		{Name: "submit", Context: []byte(`{"userid":5588,"urgency":16,"flags":0,"version":1}`)}, {Name: "validate"}, {Name: "depend"},
		{Name: "priority", Context: []byte(`{"priority":16}`)},
	} {
		e.Timestamp = eventlog.Timestamp(i + 1)
		_, err := j.Apply(e.Timestamp, e)
		require.NoError(t, err)
	}
	j.Take(4)
	return j
}

func apply(t testing.TB, j *perilog.Job, at eventlog.Timestamp, name, context string) {
	t.Helper()
	e := eventlog.Entry{Timestamp: at, Name: name}
	if context != "" {
		e.Context = []byte(context)
	}
	_, err := j.Apply(at, e)
	require.NoError(t, err)
}

func names(records []perilog.Record) (list []string) {
	for _, r := range records {
		list = append(list, r.Entry.Name+" "+r.State.String())
	}
	return list
}

// PL-2: what is posted in answer to an event is in time to hold free and clean.
func TestFreeAndCleanAreSettledLast(t *testing.T) {
	j := pending(t, &perilog.Config{}, 1, nil)
	apply(t, j, 5, "exception", `{"type":"cancel","severity":0,"note":""}`)
	require.Equal(t, []string{"exception CLEANUP"}, names(j.Settle(6)))
	apply(t, j, 5, "epilog-start", `{"description":"dws"}`)
	require.Equal(t, []string{"epilog-start CLEANUP"}, names(j.Settle(6)))
	require.Empty(t, j.Settle(6))
	require.Empty(t, j.Take(6).Post, "Settle has returned it")
	apply(t, j, 6, "epilog-finish", `{"description":"dws","status":0}`)
	require.Equal(t, []string{"epilog-finish CLEANUP"}, names(j.Settle(6)))
	require.Equal(t, []string{"clean INACTIVE"}, names(j.Settle(6)))
	require.True(t, j.Take(6).IsEmpty())
	require.True(t, j.Done())
}

// I6: what cannot be a line of a log is refused before it changes the job.
func TestAnEventThatIsTooLongForALogIsRefused(t *testing.T) {
	j := pending(t, &perilog.Config{}, 1, nil)
	before := j.String()
	e := eventlog.Entry{Timestamp: 5, Name: "memo", Context: []byte(`{"a":"` + strings.Repeat("x", eventlog.DefaultMaxLine) + `"}`)}
	_, err := j.Apply(5, e)
	require.ErrorIs(t, err, eventlog.ErrLimit)
	require.Equal(t, before, j.String())
	require.Empty(t, j.Take(6).Post)
	e.Context = []byte(`{"a":"` + strings.Repeat("x", eventlog.DefaultMaxLine-100) + `"}`)
	_, err = j.Apply(5, e)
	require.NoError(t, err)
}

// Jobs that share memory do what they would do alone, whatever comes in between.
func TestJobsThatShareAScratchDoNotMeet(t *testing.T) {
	var shared perilog.Scratch
	c := &perilog.Config{Prologs: []perilog.ActionConfig{perRank()}, Epilogs: []perilog.ActionConfig{perRank()}}
	play := func(s *perilog.Scratch, together bool) (logs [3]string) {
		var jobs [3]*perilog.Job
		for i := range jobs {
			jobs[i] = pending(t, c, jobid.ID(i+1), s)
		}
		take := func(i int) {
			for _, r := range jobs[i].Take(6).Post {
				line, err := eventlog.AppendEntry(nil, r.Entry)
				require.NoError(t, err)
				logs[i] += string(line)
			}
		}
		step := func(f func(i int)) {
			for i := range jobs {
				if f(i); !together {
					take(i)
				}
			}
			for i := range jobs {
				take(i)
			}
		}
		step(func(i int) {
			require.NoError(t, jobs[i].SetR(allocation(t, i+1)))
			apply(t, jobs[i], 5, "alloc", "")
		})
		step(func(i int) {
			for rank := range uint32(i + 1) {
				jobs[i].Report(6, perilog.Report{Action: prolog, Kind: perilog.ReportExited, Attempt: 1, Rank: rank, Status: int32(i << 8)})
			}
		})
		step(func(i int) { jobs[i].Tick(7) })
		return logs
	}
	alone := play(nil, false)
	require.Equal(t, alone, play(&shared, false))
	require.Equal(t, alone, play(&shared, true))
}

func TestAJobThatWaitsTakesAnotherConfiguration(t *testing.T) {
	j := pending(t, &perilog.Config{}, 1, nil)
	require.ErrorIs(t, j.SetConfig(&perilog.Config{Prologs: []perilog.ActionConfig{{Timeout: -1}}}), perilog.ErrConfig)
	require.NoError(t, j.SetConfig(&perilog.Config{Prologs: []perilog.ActionConfig{perRank()}}))
	require.NoError(t, j.SetR(allocation(t, 1)))
	apply(t, j, 5, "alloc", "")
	require.NoError(t, j.SetConfig(&perilog.Config{}), "too late: it has begun")
	require.Len(t, j.Take(6).Launch, 1)
	require.False(t, j.Starting())
	require.False(t, j.Draining())
	require.Equal(t, jobstate.StateRun, j.State().State())
	j.Report(6, perilog.Report{Action: prolog, Kind: perilog.ReportExited, Attempt: 1, Status: 1 << 8})
	j.Take(6)
	require.True(t, j.Draining())
}
