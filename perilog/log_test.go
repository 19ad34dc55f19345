package perilog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// closedLog is what flux-core left behind when it lost an epilog: a log that is
// closed while the epilog is active.
const closedLog = prelude + `{"timestamp":2,"name":"alloc"}
{"timestamp":3,"name":"epilog-start","context":{"description":"job-manager.epilog"}}
{"timestamp":4,"name":"exception","context":{"type":"cancel","severity":0,"note":""}}
{"timestamp":4.5,"name":"perilog-fail","context":{"description":"job-manager.epilog","kind":"epilog","ranks":"1","cause":"failed","status":256,"drain":true}}
{"timestamp":5,"name":"free"}
{"timestamp":6,"name":"clean"}
`

// What is said of an action has its description, and more.
func TestAnActionOfAnotherWriterHasADescriptionThatFitsInALine(t *testing.T) {
	quotes := func(n int) string { return strings.Repeat(`\"`, n) }
	start := func(n int, more string) string { return `{"description":"` + quotes(n) + `"` + more + `}` }
	b := newBench(t, 1, perilog.Config{})
	b.take()
	b.refuse("epilog-start", start(1<<19-100, ""), eventlog.ErrLimit)
	b.refuse("prolog-start", start(4<<10+1, ""), eventlog.ErrLimit)
	b.apply("epilog-start", start(4<<10, ""))
	b.take()

	for name, more := range map[string]string{
		"its own": "", "one that could be run": `,"per-rank":true,"kill-timeout":1.0,"attempt":1`,
	} {
		t.Run("a log has "+name, func(t *testing.T) {
			b := newBench(t, 1, perilog.Config{})
			b.take()
			line := []byte(`{"timestamp":9,"name":"prolog-start","context":` + start(1<<19-50-len(more), more) + "}\n")
			b.log = append(b.log, line...)
			b.crash()
			b.take()
			list := b.job.Unresolved()
			require.Equal(t, perilog.ReasonForeign, list[0].Reason)
			require.NoError(t, b.job.ForceFinish(b.now, list[0].Action, nil, 1, "root"))
			b.take()
			require.Empty(t, b.job.Unresolved())
		})
	}
}

func TestNothingIsLoggedAfterClean(t *testing.T) {
	ours := perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}
	force := func(j *perilog.Job) error { return j.ForceFinish(101, epilog, nil, 256, "alice") }
	for name, c := range map[string]struct {
		config perilog.Config
		try    func(*perilog.Job) error
	}{
		"a foreign epilog is finished by force": {perilog.Config{}, force},
		"an epilog is finished by force":        {ours, force},
		"an epilog is run again":                {ours, func(j *perilog.Job) error { return j.Rerun(101, epilog, nil) }},
		"an epilog checks in": {ours, func(j *perilog.Job) error {
			j.Report(101, perilog.Report{Action: epilog, Kind: perilog.ReportExited, Attempt: 1, Rank: 1, Status: 256})
			return perilog.ErrAction
		}},
		"a drain is confirmed": {ours, func(j *perilog.Job) error { j.Drained(101, idset.Of(1)); return perilog.ErrAction }},
	} {
		t.Run(name, func(t *testing.T) {
			job, err := perilog.RecoverJob(100, &c.config, fuzzSpec(t), []byte(closedLog), nil)
			require.NoError(t, err)
			require.True(t, job.State().Closed())
			require.ErrorIs(t, c.try(job), perilog.ErrAction)
			require.Empty(t, job.Take(101).Post)
		})
	}
}

func names(records []perilog.LogEntry) (list []string) {
	for _, r := range records {
		list = append(list, r.Entry.Name+" "+r.State.String())
	}
	return list
}

// PL-2: what is posted in answer to an event is in time to hold free and clean.
func TestFreeAndCleanAreSettledLast(t *testing.T) {
	b := scheduled(t, perilog.Config{}, perilog.JobConfig{ID: 1})
	decided := func() []string { return names(b.job.Decide(b.now)) }
	b.apply("exception", cancel)
	require.Equal(t, []string{"exception CLEANUP"}, decided())
	b.apply("epilog-start", `{"description":"dws"}`)
	require.Equal(t, []string{"epilog-start CLEANUP"}, decided())
	require.Empty(t, decided())
	require.Empty(t, b.take().Post, "Decide has returned it")
	b.apply("epilog-finish", `{"description":"dws","status":0}`)
	require.Equal(t, []string{"epilog-finish CLEANUP"}, decided())
	require.Equal(t, []string{"clean INACTIVE"}, decided())
	require.True(t, b.take().IsEmpty())
	require.True(t, b.job.Done())
}

// I6: what cannot be a line of a log is refused before it changes the job.
func TestAnEventThatIsTooLongForALogIsRefused(t *testing.T) {
	b := scheduled(t, perilog.Config{}, perilog.JobConfig{ID: 1})
	b.refuse("memo", `{"a":"`+strings.Repeat("x", eventlog.DefaultMaxLine)+`"}`, eventlog.ErrLimit)
	require.Empty(t, b.take().Post)
	b.apply("memo", `{"a":"`+strings.Repeat("x", eventlog.DefaultMaxLine-100)+`"}`)
}

// Jobs that share memory do what they would do alone, whatever comes in between.
func TestJobsThatShareAScratchDoNotMeet(t *testing.T) {
	var shared perilog.Scratch
	play := func(s *perilog.Scratch, together bool) (logs [3]string) {
		var jobs [3]*bench
		for i := range jobs {
			jobs[i] = scheduled(t, both, perilog.JobConfig{ID: jobid.ID(i + 1), Scratch: s})
		}
		step := func(f func(i int)) {
			for i := range jobs {
				if f(i); !together {
					jobs[i].take()
				}
			}
			for i := range jobs {
				jobs[i].take()
				logs[i] = string(jobs[i].log)
			}
		}
		step(func(i int) {
			require.NoError(t, jobs[i].job.SetR(allocation(t, i+1)))
			jobs[i].apply("alloc", "")
		})
		step(func(i int) {
			for rank := range uint32(i + 1) {
				jobs[i].report(perilog.Report{Action: prolog, Kind: perilog.ReportExited, Attempt: 1, Rank: rank, Status: int32(i << 8)})
			}
		})
		step(func(i int) { jobs[i].job.Tick(jobs[i].now + 1) })
		return logs
	}
	alone := play(nil, false)
	require.Equal(t, alone, play(&shared, false))
	require.Equal(t, alone, play(&shared, true))
}

func TestAJobThatWaitsTakesAnotherConfiguration(t *testing.T) {
	b := scheduled(t, perilog.Config{}, perilog.JobConfig{ID: 1})
	require.ErrorIs(t, b.job.SetConfig(&perilog.Config{Prologs: []perilog.ActionConfig{{Timeout: -1}}}), perilog.ErrConfig)
	require.NoError(t, b.job.SetConfig(&perilog.Config{Prologs: []perilog.ActionConfig{perRank()}}))
	require.NoError(t, b.job.SetR(allocation(t, 1)))
	b.apply("alloc", "")
	require.NoError(t, b.job.SetConfig(&perilog.Config{}), "too late: it has begun")
	require.Len(t, b.take().Launch, 1)
	require.False(t, b.job.Starting())
	require.False(t, b.job.Draining())
	b.exited(prolog, 0, 1<<8)
	require.True(t, b.job.Draining())
}

// An entry whose keys are not the usual ones remembers the line that it was read from.
func TestAnAcceptedEventKeepsNothingOfTheLineThatItWasReadFrom(t *testing.T) {
	b := newBench(t, 1, perilog.Config{})
	b.take()
	const text = `{"name":"memo","timestamp":100,"context":{"a":1},"unknown":2}` + "\n"
	line := []byte(text)
	e, err := eventlog.Parse(line)
	require.NoError(t, err)
	_, err = b.job.Apply(100, e)
	require.NoError(t, err)
	clear(line)
	stored, err := eventlog.AppendEntry(nil, b.job.Take(100).Post[0].Entry)
	require.NoError(t, err)
	require.Equal(t, text, string(stored))
}
