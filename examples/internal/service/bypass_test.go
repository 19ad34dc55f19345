package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// bypassing is a jobspec with an R of its own.
func bypassing(r string) string {
	return strings.Replace(sleep, `"duration":60`, `"duration":60,"alloc-bypass":{"R":`+r+`}`, 1)
}

func (d *desk) submitAs(user int, id jobid.ID, spec string) string {
	d.t.Helper()
	return d.ask(1, "submit", submissionOf(id, user, 0, spec))
}

// TestAllocBypass: the owner's job gets the R in its jobspec, and the scheduler hears nothing.
func TestAllocBypass(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	out := d.submitAs(ownUser, 16, bypassing(resources(3)))
	require.NotContains(t, out, "sched.")
	require.Contains(t, grep(out, "job-exec.start"), `"rank":"3"`)
	events := string(d.stored[16].Eventlog)
	require.Contains(t, events, `"set-flags","context":{"flags":["alloc-bypass"]}`)
	require.Contains(t, events, `"name":"alloc"`)
	require.Empty(t, grep(d.ask(2, "alloc-query", ``), `"queue_length":1`))
	require.Equal(t, "sched-hello s3: errnum 61 ", func() string { d.send("s", 3, "sched-hello", `{}`); return d.flush() }(), "no scheduler is told")

	d.restart()
	d.online()
	d.respond("job-exec.start", `{"id":16,"type":"start","data":{}}`)
	out = d.finish(16, 0)
	require.NotContains(t, out, "sched.free")
	require.Contains(t, string(d.stored[16].Eventlog), `"name":"free"`)

	// A stop of the queue is nothing to it.
	d.ask(4, "queue-start", `{"start":false,"all":false}`)
	require.Contains(t, d.submitAs(ownUser, 17, bypassing(resources(3))), "job-exec.start")

	for _, r := range []string{`1`, `{"version":1}`, `null`} {
		require.Contains(t, d.submitAs(ownUser, 18, bypassing(r)), "alloc-bypass: invalid R: ", r)
	}
	require.Contains(t, d.submitAs(7, 18, bypassing(resources(3))), "Guest user cannot use alloc bypass")
	require.Equal(t, `submit a1: {"errors":[]}`, d.submitAs(7, 18, sleep))
}

// TestAllocBypassBesideOthers: the job runs on what others have and get, as in flux-core.
func TestAllocBypassBesideOthers(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 3)
	d.run(3)
	d.submitAs(ownUser, 16, bypassing(resources(3)))
	d.restart()
	d.online()
	require.Equal(t, jobstate.StateRun, d.view(16).State())
	require.Equal(t, jobstate.StateRun, d.view(3).State())
	d.respond("job-exec.start", `{"id":3,"type":"start","data":{}}`)
	require.Contains(t, d.finish(3, 0), "sched.free")
	d.submit(0, 4)
	d.run(4)
	require.Equal(t, jobstate.StateRun, d.view(4).State(), "a scheduler may give what it has")
}

// TestAllocBypassOfTooMuch: the job ends, and says why.
func TestAllocBypassOfTooMuch(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submitAs(ownUser, 16, bypassing(`{"version":1,"execution":{"R_lite":[{"rank":"0-1000000","children":{"core":"0"}}],"starttime":0,"expiration":0}}`))
	d.flush()
	require.Contains(t, string(d.stored[16].Eventlog), `"type":"alloc","severity":0,"note":"perilog: invalid R: its ranks do not fit`)
	require.Equal(t, jobstate.StateInactive, d.view(16).State())
}

// TestAllocBypassAfterACrash: wherever the log ends, the job gets its R after a restart.
func TestAllocBypassAfterACrash(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submitAs(ownUser, 16, bypassing(resources(3)))
	all := d.records
	for n := 2; n <= len(all); n++ { // with jobspec and submit
		d.records = slices.Clone(all[:n])
		d.stored = make(map[jobid.ID]*Stored)
		d.restart()
		out := d.online()
		v := d.view(16)
		require.Equal(t, jobstate.StateRun, v.State(), n)
		require.Equal(t, "3", v.R().Ranks().String())
		require.NotContains(t, out, "> sched.")
	}
}
