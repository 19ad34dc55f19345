package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

var sessionRows = []row{
	same("alloc-query", ``, 0, ""),
	same("disconnect", ``, -1, ""),
	same("drain", ``, -1, ""),
	same("events-journal", `{"allow":1}`, errno.Protocol, "job-manager.events allow should be an object"),
	same("events-journal", `{"allow":null}`, errno.Protocol, "job-manager.events allow should be an object"),
	same("events-journal", `{"deny":"x"}`, errno.Protocol, "job-manager.events deny should be an object"),
	same("events-journal", `{"full":1}`, errno.Protocol, ""),
	same("events-journal", `[]`, errno.Protocol, ""),
	same("events-journal", ``, errno.Protocol, ""),
	same("events-journal-cancel", `{"matchtag":1}`, -1, ""),
	same("events-journal-cancel", ``, errno.Protocol, ""),
	same("exec-hello", `{"service":"x"}`, 0, ""),
	same("exec-hello", `{}`, errno.Protocol, ""),
	same("exec-hello", `{"service":1}`, errno.Protocol, ""),
	same("exec-hello", ``, errno.Protocol, ""),
	same("idle", ``, -1, ""),
	same("resource-status", ``, 0, ""),
	same("sched-hello", ``, errno.NoData, ""),
	same("sched-hello", `{"partial-ok":"x"}`, errno.Protocol, ""),
	same("sched-hello", `[]`, errno.Protocol, ""),
	same("sched-ready", `{"mode":"unlimited"}`, errno.Protocol, ""), // without a hello
	same("sched-ready", `{"mode":"single"}`, errno.Protocol, ""),
	same("sched-ready", `{"mode":"limited"}`, errno.Protocol, ""),
	same("sched-ready", `{"mode":"limited","limit":0}`, errno.Protocol, ""),
	same("wait", `{"id":16}`, errno.NoChild, "job was not submitted with FLUX_JOB_WAITABLE"),
	same("wait", `{"id":99}`, errno.NoChild, "invalid job id, or job may be inactive and not waitable"),
	same("wait", `{"id":-2}`, errno.NoChild, "invalid job id, or job may be inactive and not waitable"),
	same("wait", `{}`, errno.Protocol, "malformed wait request"),
	same("wait", `{"id":"x"}`, errno.Protocol, "malformed wait request"),
	same("wait", `{"id":null}`, errno.Protocol, "malformed wait request"),
	same("wait", ``, errno.Protocol, "malformed wait request"),
}

func TestSchedulerSession(t *testing.T) {
	d := newDesk(t, Config{})
	require.Equal(t, `submit a1: {"errors":[]}`, d.submit(0, 1, 2))
	require.Equal(t, `sched-hello a2: errnum 61 `, d.ask(2, "sched-hello", `{}`))
	out := d.ask(3, "sched-ready", `{"mode":"limited","limit":1}`)
	require.Equal(t, `sched-ready a3: {"count":2}`, strings.SplitN(out, "\n", 2)[0])
	require.Contains(t, grep(out, "> sched.alloc"), `{"id":1,"priority":16,"userid":100,"t_submit":`)
	require.Equal(t, `alloc-query a4: {"queue_length":1,"alloc_pending":1,"running":0}`, d.ask(4, "alloc-query", ``))

	out = d.respond("sched.alloc", success(1, 0))
	require.Contains(t, out, `> sched.alloc {"id":2,`)
	require.Equal(t, `alloc-query a4: {"queue_length":0,"alloc_pending":1,"running":1}`, d.ask(4, "alloc-query", ``))

	// A new scheduler learns of the job that has resources. It is asked for the other again.
	out = d.ask(5, "sched-hello", `{"partial-ok":true}`)
	require.Regexp(t, `^sched-hello a5: \{"id":1,"priority":16,"userid":100,"t_submit":[0-9.]+,"R":\{.*\}\}
sched-hello a5: errnum 61 $`, out)
	out = d.ask(6, "sched-ready", `{"mode":"unlimited"}`)
	require.Regexp(t, `^sched-ready a6: \{"count":1\}
> sched.alloc \{"id":2,.*$`, out)

	// The end of the job frees what it has.
	require.Equal(t, join("raise a9: -", `> sched.free {"id":1,"R":`+resources(0)+`,"final":true}`,
		`event job-exception {"id":1,"type":"cancel","severity":0}`), d.cancel(1))
	require.Equal(t, jobstate.StateInactive, d.view(1).State())
}

func TestSchedulerErrors(t *testing.T) {
	d := newDesk(t, Config{})
	d.cfg.Lookup = nil
	d.submit(0, 1)
	for _, r := range []Response{
		{Topic: "sched.alloc", Payload: json.RawMessage(success(1, 0))}, // nobody asked
		{Topic: "sched.alloc", Payload: json.RawMessage(`{"id":1}`)},
		{Topic: "job-exec.start", Payload: json.RawMessage(`{"id":1,"type":"start","data":{}}`)},
		{Topic: "sched.expiration", Tag: 77},
		{Topic: "x"},
		{Topic: ".start"},
	} {
		require.Error(t, d.Respond(d.now, r), r)
	}
	require.Empty(t, d.flush())

	// A failure that comes before the scheduler is ready is of an earlier one.
	d.ask(3, "sched-hello", `{}`)
	require.NoError(t, d.Respond(d.now, Response{Topic: "sched.alloc", Errnum: 38, Errstr: "no such module"}))
	require.Contains(t, d.ask(4, "sched-ready", `{"mode":"unlimited"}`), "> sched.alloc")
	require.NoError(t, d.Respond(d.now, Response{Topic: "sched.alloc", Errnum: 38, Errstr: "no such module"}))
	require.Equal(t, "log sched.alloc: errnum 38: no such module: the scheduler is lost", d.flush())
	require.Equal(t, `submit a1: {"errors":[]}`, d.submit(0, 2), "it is asked for nothing")

	// Two hellos and a ready at once: the last hello counts.
	d.together(func() {
		d.send("b", 5, "sched-hello", `{}`)
		d.send("b", 6, "sched-ready", `{"mode":"unlimited"}`)
		d.send("c", 7, "sched-hello", `{}`)
	})
	require.Equal(t, join("sched-hello b5: errnum 61 ", "sched-ready b6: errnum 71 ", "sched-hello c7: errnum 61 "), d.flush())
}

func TestExecutorSession(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(int(jobstate.FlagDebug), 1)
	out := d.respond("sched.alloc", success(1, 0))
	require.Contains(t, out, `> job-exec.start {"id":1,"userid":100,"jobspec":{`)
	require.Equal(t, "exec-hello a2: errnum 22 ", d.ask(2, "exec-hello", `{"service":"other"}`))

	require.NoError(t, d.Respond(d.now, Response{Topic: "job-exec.start", Errnum: 38, Errstr: "gone"}))
	require.Equal(t, "log job-exec.start: errnum 38: gone: the executor is lost", d.flush())
	require.Contains(t, string(d.stored[1].Eventlog), `"name":"debug.start-lost","context":{"note":"start response error"}}`)
	out = d.ask(2, "exec-hello", `{"service":"other"}`)
	require.Regexp(t, `^exec-hello a2: -
> other.start \{"id":1,.*$`, out)
	require.Error(t, d.Respond(d.now, Response{Topic: "job-exec.start", Payload: json.RawMessage(`{"id":1,"type":"start","data":{}}`)}))

	require.Empty(t, d.respond("other.start", `{"id":1,"type":"start","data":{}}`))
	require.Empty(t, d.respond("other.start", `{"id":1,"type":"exception","data":{"severity":1,"type":"oom"}}`), "it knows")
	require.Contains(t, string(d.stored[1].Eventlog), `"type":"oom","severity":1`)
	require.Equal(t, jobstate.StateRun, d.view(1).State())

	// The executor refuses a new expiration.
	require.NoError(t, d.step(joblife.SetExpiration{ID: 1, Expiration: 4e9}))
	require.Equal(t, "> sched.expiration {\"id\":1,\"expiration\":4000000000.0}\n> other.expiration {\"id\":1,\"expiration\":4000000000.0}", d.flush())
	for tag := range d.calls {
		require.NoError(t, d.Respond(d.now, Response{Topic: "x.expiration", Tag: tag, Errnum: 22, Errstr: "no"}))
	}
	out = d.flush()
	require.Contains(t, out, `log x.expiration: errnum 22: no`)
	require.Contains(t, out, `event job-exception {"id":1,"type":"exec","severity":1}`)
	require.Contains(t, string(d.stored[1].Eventlog),
		`"note":"failed to send expiration update to exec system: job termination may not coincide with expiration"`)

	require.Empty(t, d.respond("other.start", `{"id":1,"type":"finish","data":{"status":0}}`))
	require.Equal(t, "exec-hello a2: errnum 22 ", d.ask(2, "exec-hello", `{"service":"other"}`))
	out = d.respond("other.start", `{"id":1,"type":"release","data":{"ranks":"all","final":true}}`)
	require.Regexp(t, `^> sched.free \{"id":1,"R":\{.*\},"final":true\}$`, out)
	require.Equal(t, jobstate.StateInactive, d.view(1).State())
	require.Equal(t, "exec-hello a2: -", d.ask(2, "exec-hello", `{"service":"other"}`))
}

// After a restart the job is still there, and the executor is asked to reattach.
func TestExecutorReattaches(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1)
	d.run(1)
	d.restart()
	out := d.ask(2, "exec-hello", `{"service":"job-exec"}`)
	require.Regexp(t, `^exec-hello a2: -
> job-exec.start \{.*"reattach":true,.*$`, out)
	require.Equal(t, "exec-hello a2: errnum 22 ", d.ask(2, "exec-hello", `{"service":"job-exec"}`))
	require.Empty(t, d.respond("job-exec.start", `{"id":1,"type":"reattached","data":{}}`))
	d.greet("s")
	require.Contains(t, d.flush(), fmt.Sprintf(`,"R":%s}`, resources(1)))
	require.Contains(t, d.finish(1, 0), "> sched.free")
}

// Housekeeping holds resources of jobs that are over, and alloc-bypass is not the scheduler's.
func TestResourceStatus(t *testing.T) {
	d := newDesk(t, Config{})
	const none = `resource-status a2: {"allocated":{"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0}}}`
	require.Equal(t, none, d.ask(2, "resource-status", ``))
	keep := joblife.Config{}
	keep.Actions.Housekeeping = &perilog.HousekeepingConfig{Command: []string{"clean"}}
	d.online()
	d.submit(0, 1, 2, 3)
	require.NoError(t, d.step(joblife.Reload{Config: keep}))
	d.run(1)
	d.run(3)
	require.Equal(t, `resource-status a2: {"allocated":{"version":1,"execution":{"R_lite":[{"rank":"1,3","children":{"core":"0"}}],`+
		`"starttime":0.0,"expiration":0.0,"nodelist":["n[1,3]"]}}}`, d.ask(2, "resource-status", ``))
	d.finish(3, 0)
	require.Equal(t, jobstate.StateInactive, d.view(3).State())
	require.Contains(t, d.ask(2, "resource-status", ``), `"rank":"1,3"`)
	require.NoError(t, d.step(joblife.SetFlags{ID: 2, Flags: []string{"alloc-bypass"}}))
	r, err := rset.Parse([]byte(resources(2)))
	require.NoError(t, err)
	require.NoError(t, d.step(joblife.Alloc{ID: 2, R: r}))
	d.flush()
	require.Contains(t, d.ask(2, "resource-status", ``), `"rank":"1,3"`)

	// One rank with two names cannot be told.
	d.submit(0, 5)
	d.respond("sched.alloc", strings.NewReplacer("n3", "other", `"core":"0"`, `"core":"1"`).Replace(success(5, 3)))
	require.Contains(t, d.ask(2, "resource-status", ``), "resource-status a2: errnum 22 ")
}

// TestADoubleBookingEndsTheSession: the answer changes nothing, and the next hello tells what is
// held.
func TestADoubleBookingEndsTheSession(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1, 2)
	d.run(1)
	err := d.Respond(d.now, Response{Topic: "sched.alloc", Payload: json.RawMessage(success(2, 1))})
	require.ErrorIs(t, err, joblife.ErrConflict)
	require.ErrorContains(t, err, "both have rank1/core0")
	require.Equal(t, jobstate.StateSched, d.view(2).State())
	err = d.Respond(d.now, Response{Topic: "sched.alloc", Payload: json.RawMessage(success(2, 2))})
	require.ErrorContains(t, err, "alloc: protocol violation", "the session is over")
	d.send("s", 3, "sched-hello", `{}`)
	require.Contains(t, d.flush(), `"rank":"1"`)
	d.send("s", 4, "sched-ready", `{"mode":"unlimited"}`)
	require.Contains(t, d.flush(), "sched.alloc")
	d.run(2)
	require.Equal(t, jobstate.StateRun, d.view(2).State())
}

// TestDenied: a job that the scheduler refuses ends with its words.
func TestDenied(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1)
	d.respond("sched.alloc", `{"id":1,"type":1,"annotations":{"sched":{"reason_pending":"x"}}}`)
	d.ask(2, "events-journal", `{}`)
	out := d.respond("sched.alloc", `{"id":1,"type":2,"note":"DEBUG_FAIL_ALLOC"}`)
	require.Equal(t, "1 annotations exception clean", told(t, out, "a2"))
	require.Contains(t, out, `"context":{"annotations":null}`)
	require.Contains(t, out, `"context":{"type":"alloc","severity":0,"note":"DEBUG_FAIL_ALLOC","userid":100}`)
	require.Contains(t, out, `event job-exception {"id":1,"type":"alloc","severity":0}`)
}
