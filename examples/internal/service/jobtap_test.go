package service

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
)

// What flux-core loads as plugins is built in, and whoever loads it gets what it wants.
func TestPluginsThatAreBuiltIn(t *testing.T) {
	d := newDesk(t, Config{})
	list := func() string { return strings.TrimPrefix(d.ask(1, "jobtap", `{"query_only":true}`), "jobtap a1: ") }
	before := list()
	require.Contains(t, before, `".begin-time"`)
	require.NotContains(t, before, ".so")
	require.Equal(t, "jobtap a1: -", d.ask(1, "jobtap", `{"load":"perilog.so"}`))
	require.Equal(t, "jobtap a1: errnum 17 perilog.so already loaded", d.ask(1, "jobtap", `{"load":"perilog.so"}`))
	require.Equal(t, "jobtap a1: -", d.ask(1, "jobtap", `{"load":"perilog.so","remove":"all"}`))
	require.Equal(t, `jobtap-query a1: {"conf":{"epilog":{},"prolog":{}},"name":"perilog.so","path":"builtin","procs":{}}`, d.ask(1, "jobtap-query", `{"name":"perilog.so"}`))
	require.Equal(t, strings.Replace(before, "]", `,"perilog.so"]`, 1), list())
	require.Contains(t, d.ask(1, "jobtap", `{"load":"test.so","remove":"all"}`), "jobtap a1: errnum 38 test.so: this job manager loads no plugins")
	require.Contains(t, list(), "perilog.so", "nothing changed")
	require.Equal(t, "jobtap a1: -", d.ask(1, "jobtap", `{"remove":"peri*"}`))
	require.Equal(t, before, list())
}

// What only serves requests can be removed, and is back when it is loaded.
func TestPluginsThatCanBeRemoved(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submitAs(ownUser, 16, sleep)
	for remove, back := range map[string][2]string{
		".history":         {"history.get", `{"slice":"[:]"}`},
		".update-duration": {"update", `{"id":16,"updates":{"attributes.system.duration":30}}`},
		".update-queu*":    {"update", `{"id":16,"updates":{"attributes.system.queue":"batch"}}`},
	} {
		require.NotContains(t, d.ask(1, back[0], back[1]), "not supported")
		all := d.ask(1, "jobtap", `{"query_only":true}`)
		require.Equal(t, "jobtap a1: -", d.ask(1, "jobtap", `{"remove":"`+remove+`"}`))
		require.Equal(t, "jobtap a1: errnum 2 Failed to find plugin to remove", d.ask(1, "jobtap", `{"remove":"`+remove+`"}`))
		require.Regexp(t, "errnum 38|errnum 22 update of .* not supported", d.ask(1, back[0], back[1]))
		name := strings.Replace(remove, "*", "e", 1)
		require.NotContains(t, d.ask(1, "jobtap", `{"query_only":true}`), name)
		require.Equal(t, "jobtap a1: -", d.ask(1, "jobtap", `{"load":"`+name+`"}`))
		require.Equal(t, all, d.ask(1, "jobtap", `{"query_only":true}`))
		require.NotRegexp(t, "errnum 38|not supported", d.ask(1, back[0], back[1]))
	}
	require.Contains(t, d.ask(1, "jobtap", `{"remove":".*"}`), "errnum 38 .priority-default is built in")
	require.NotContains(t, d.ask(1, "history.get", `{"slice":"[:]"}`), "errnum", "nothing changed")
}

// The owner may have only the durations that others may, if .update-duration is told so.
func TestTheOwnerMayNotHaveAnyDuration(t *testing.T) {
	d := newDesk(t, Config{Limits: Limits{Duration: jobstate.Some(fsd.Duration(time.Minute))}})
	d.online()
	d.submitAs(ownUser, 16, sleep)
	more := `{"id":16,"updates":{"attributes.system.duration":3600}}`
	for range 2 {
		require.Equal(t, "jobtap a1: -", d.ask(1, "jobtap", `{"remove":".update-duration"}`))
		require.Equal(t, "jobtap a1: -", d.ask(1, "jobtap", `{"load":".update-duration","conf":{"owner-allow-any":0}}`))
		require.Contains(t, d.ask(1, "update", more), "exceeds policy limit")
	}
	d.run(16)
	require.Contains(t, d.ask(1, "update", more), "duration update of running job requires instance owner privileges")
	require.Equal(t, "jobtap a1: -", d.ask(1, "jobtap", `{"load":".update-duration"}`))
	require.Contains(t, d.ask(1, "update", more), "unable to get job starttime", "the owner may, but this R has none")
}

// told returns what a plugin says of itself.
func (c *cluster) told(name string) string {
	c.t.Helper()
	a := c.ask(owner("jobtap-query", `{"name":"`+name+`"}`))
	require.Zero(c.t, a.Errnum)
	return text(c.t, a.Payload)
}

// What flux-core tells of prologs and epilogs, with its defaults.
func TestTheQueryOfPerilog(t *testing.T) {
	cfg := actions(true, true, false)
	cfg.ASCII = true
	c := newCluster(t, cfg)
	require.Zero(t, c.ask(owner("jobtap", `{"load":"perilog.so"}`)).Errnum)
	require.JSONEq(t, `{"name":"perilog.so","path":"builtin","procs":{},"conf":{
		"prolog":{"command":["prolog","-v"],"per_rank":true,"cancel_on_exception":true,"timeout":1800,"kill-timeout":60},
		"epilog":{"command":["epilog"],"per_rank":true,"cancel_on_exception":false,"timeout":0,"kill-timeout":60}}}`, c.told("perilog.so"))

	c.submit(16, "0-3")
	require.Contains(t, c.told("perilog.so"), `"procs":{"fH":{"name":"prolog","total":4,"active":4,"active_ranks":"0-3"}}`)
	list := c.commands()
	c.end(list[1], 0)
	c.tell(list[2], 0, `{"type":"finished","status":0}`, "") // its output comes
	require.Contains(t, c.told("perilog.so"), `"procs":{"fH":{"name":"prolog","total":4,"active":2,"active_ranks":"0,3"}}`)
	c.end(list[0], 0)
	c.end(list[3], 0)
	require.Contains(t, c.told("perilog.so"), `"total":4,"active":0,"active_ranks":""`)
	c.tell(list[2], 61, "", "")
	require.Contains(t, c.told("perilog.so"), `"procs":{}`)
	c.run(16)
	require.Contains(t, c.told("perilog.so"), `"procs":{"fH":{"name":"epilog","total":4,"active":4,"active_ranks":"0-3"}}`)

	a, yes := &c.cfg.Manager.Actions, true
	a.Prologs[0].Timeout, a.Epilogs[0].Timeout, a.Epilogs[0].CancelOnException = fsd.Forever, fsd.Duration(90*time.Second), &yes
	require.Contains(t, c.told("perilog.so"), `"cancel_on_exception":true,"timeout":90,`)
	require.Contains(t, c.told("perilog.so"), `"cancel_on_exception":true,"timeout":0,`)
}

// Who waits for whom.
func TestTheQueriesOfDependencies(t *testing.T) {
	c := newCluster(t, Config{})
	require.JSONEq(t, `{"name":".dependency-after","path":"builtin","dependencies":[]}`, c.told(".dependency-after"))
	require.JSONEq(t, `{"name":".dependency-singleton","path":"builtin"}`, c.told(".dependency-singleton"))
	submit := func(id jobid.ID, extra string) {
		spec := strings.Replace(sleep, `"duration":60`, `"duration":60`+extra, 1)
		require.Equal(t, `{"errors":[]}`, text(t, c.ask(owner("submit", submissionOf(id, ownUser, 0, spec))).Payload))
	}
	submit(16, `,"job":{"name":"foo"}`)
	submit(17, `,"job":{"name":"foo"},"dependencies":[{"scheme":"singleton","value":""},{"scheme":"afterok","value":"ƒH"}]`)
	submit(18, ``)
	require.JSONEq(t, `{"name":".dependency-after","path":"builtin","dependencies":[
		{"id":16,"depid":17,"type":"after-success","description":"after-success=ƒH"}]}`, c.told(".dependency-after"))
	require.JSONEq(t, `{"name":".dependency-singleton","path":"builtin","100:foo":{"count":2,"singletons":[17]}}`, c.told(".dependency-singleton"))
	require.Equal(t, `{"name":".history","path":"builtin"}`, c.told(".history"))
}
