package jobstate_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
)

// TestWhatTheReferenceWritesIsRead: forms that flux-core 0.40 to 0.88 logs, or
// logged once, and that RFC 21 does not have or has otherwise.
func TestWhatTheReferenceWritesIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want jobstate.Context
	}{
		"a path below resources":           {`jobspec-update {"resources.x":1}`, &jobstate.JobspecUpdateContext{Updates: []jobstate.Update{{Path: "resources.x", Value: json.RawMessage("1")}}}},
		"a whole list of tasks":            {`jobspec-update {"tasks":[{"a":1}]}`, &jobstate.JobspecUpdateContext{Updates: []jobstate.Update{{Path: "tasks", Value: json.RawMessage(`[{"a":1}]`)}}}},
		"all attributes, and null":         {`jobspec-update {"attributes":null}`, &jobstate.JobspecUpdateContext{Updates: []jobstate.Update{{Path: "attributes", Value: json.RawMessage("null")}}}},
		"an update of nothing":             {`jobspec-update {}`, &jobstate.JobspecUpdateContext{}},
		"an integer expiration":            {`resource-update {"expiration":0}`, &jobstate.ResourceUpdateContext{}},
		"a user id of 32 bits, as an int":  {`urgency {"userid":-2,"urgency":16}`, &jobstate.UrgencyContext{UserID: 1<<32 - 2, Urgency: 16}},
		"an exception of no user":          {`exception {"type":"alloc","severity":0,"userid":-1,"note":""}`, &jobstate.ExceptionContext{Type: "alloc"}},
		"an exception without a note":      {`exception {"type":"x","severity":7}`, &jobstate.ExceptionContext{Type: "x", Severity: 7}},
		"a plugin's priority":              {`priority {"priority":4294967296}`, &jobstate.PriorityContext{Priority: jobstate.MaxPriority}},
		"an alloc with a note":             {`alloc {"note":"rank0/core0"}`, &jobstate.AllocContext{Extra: json.RawMessage(`{"note":"rank0/core0"}`)}},
		"an alloc with nothing":            {`alloc {}`, &jobstate.AllocContext{}},
		"a negative status":                {`finish {"status":-1}`, &jobstate.FinishContext{Status: -1}},
		"a release of no ranks":            {`release {"ranks":"","final":true}`, &jobstate.ReleaseContext{Final: true}},
		"a release of ranks in brackets":   {`release {"ranks":"[0-3]","final":false}`, &jobstate.ReleaseContext{Ranks: jobstate.Ranks{Set: ids("0-3")}}},
		"an empty description":             {`epilog-finish {"description":"","status":256}`, &jobstate.ActionFinishContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionEpilog}, Status: 256}},
		"no flags":                         {`set-flags {"flags":[]}`, &jobstate.SetFlagsContext{}},
		"a memo that removes":              {`memo {"uri":null}`, &jobstate.MemoContext{Values: json.RawMessage(`{"uri":null}`)}},
		"an empty memo":                    {`memo {}`, &jobstate.MemoContext{Values: json.RawMessage(`{}`)}},
		"a key that somebody else defines": {`prolog-start {"description":"p","hosts":["a"]}`, &jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "p"}, Ranks: jobstate.Ranks{All: true}, Extra: json.RawMessage(`{"hosts":["a"]}`)}},
	} {
		got, err := jobstate.ParseContext(script(c.line)[0])
		require.NoError(t, err, name)
		requireSameContext(t, c.want, got)
	}
	for _, line := range []string{`validate {"a":1}`, `depend {}`, `flux-restart {}`, `start {"a":1}`, "free {}", `debug.exec-reattach-finish`, `debug.start-lost {"note":"x"}`} {
		var ev jobstate.Event
		require.NoError(t, ev.Decode(script(line)[0]), line)
		require.Nil(t, ev.Context())
	}
}

// TestUpdatesOfAllPathsReachTheJob: an event of flux-core 0.88 that sets a whole
// list of tasks no longer stops a replay.
func TestUpdatesOfAllPathsReachTheJob(t *testing.T) {
	j, last := run(t, append(upTo(jobstate.StateSched), `jobspec-update {"attributes.system.duration":60,"tasks":[{"command":["a", "b"]}],"resources.0":null}`)...)
	require.Equal(t, jobstate.Applied, last)
	require.Equal(t, jobstate.StatePriority, j.State())
	var got []string
	for path, value := range j.Updates() {
		got = append(got, path+" "+string(value))
	}
	require.Equal(t, []string{"attributes.system.duration 60", `tasks [{"command":["a","b"]}]`, "resources.0 null"}, got)
}
