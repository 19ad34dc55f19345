package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
)

// What a scheduler is to be told waits until it reads, in its order, and ends with its session.
func TestWhatWaitsForASchedulerIsOfItsSession(t *testing.T) {
	d := newDesk(t, Config{})
	reads := false
	d.cfg.Reads = func(string) bool { return reads }
	d.greet("s")
	d.submit(0, 1, 2)
	require.NotContains(t, d.flush(), "sched")

	d.send("t", 3, "sched-hello", `{}`)
	text := d.flush()
	require.Contains(t, text, "sched-hello s1: errnum 61", "who asked has an answer")
	require.Contains(t, text, "sched-ready s2: errnum 71")
	require.NotContains(t, text, "sched.alloc")
	d.send("t", 4, "sched-ready", `{"mode":"unlimited"}`)
	require.Empty(t, d.flush())
	reads = true
	text = d.flush()
	require.Equal(t, 1, strings.Count(text, "sched-hello t3"), text)
	require.Equal(t, 2, strings.Count(text, "> sched.alloc"), text)
	require.Less(t, strings.Index(text, "sched-ready t4"), strings.Index(text, "> sched.alloc"))
}

// One that does not read for long loses its session, so that what waits has a limit.
func TestWhatWaitsForASchedulerHasALimit(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1)
	d.cfg.Reads = func(string) bool { return false }
	d.sched.list = slices.Repeat([]outgoing{func(*Out) int { return 0 }}, maxBehind+3)
	d.ask(1, "urgency", `{"id":1,"urgency":5}`)
	require.NotZero(t, d.sched.phase, "four messages a job are room enough")
	d.ask(2, "urgency", `{"id":1,"urgency":6}`)
	require.Zero(t, d.sched.phase)
	require.Empty(t, d.sched.list)
}

// What an executor has not read ends with its session, also if it has answered already.
func TestWhatWaitsForAnExecutorIsOfItsSession(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1)
	reads := false
	d.cfg.Reads = func(string) bool { return reads }
	d.run(1)
	d.finish(1, 0)
	require.Empty(t, d.exec.starts)
	d.send("y", 1, "exec-hello", `{"service":"job-exec"}`)
	reads = true
	text := d.flush()
	require.Contains(t, text, "exec-hello y1: ")
	require.NotContains(t, text, "> job-exec.start")
}

// What is lost of an executor's session is no fault of a job whose epilogs run.
func TestAnExpirationThatNobodyAnsweredIsNoExceptionOfAJobThatIsOver(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1)
	d.run(1)
	require.NoError(t, d.step(joblife.SetExpiration{ID: 1, Expiration: 4e9}))
	require.Contains(t, d.flush(), "> job-exec.expiration")
	require.NoError(t, d.step(joblife.Post{By: d.self(), ID: 1, Name: "epilog-start", Context: []byte(`{"description":"mine"}`)}))
	d.finish(1, 0)
	require.Equal(t, jobstate.StateCleanup, d.view(1).State())
	d.send("y", 1, "exec-hello", `{"service":"job-exec"}`)
	require.NotContains(t, d.flush(), "exception")
}
