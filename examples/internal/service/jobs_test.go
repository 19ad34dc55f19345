package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

var submitRows = []row{
	{topic: "submit", payload: submission1(40, ownGuest)},
	{topic: "submit", payload: submission1(running, ownGuest)}, // already active
	{topic: "submit", payload: `{"jobs":[]}`},
	same("submit", ``, errno.Protocol, ""),
	same("submit", `null`, errno.Protocol, ""),
	same("submit", `{}`, errno.Protocol, ""),
	same("submit", `{"jobs":{}}`, errno.Protocol, ""),
	same("submit", `{"jobs":[1]}`, errno.Protocol, ""),
	same("submit", `{"jobs":[{"id":40,"urgency":16,"userid":100,"t_submit":1.0,"flags":0}]}`, errno.Protocol, ""),
	same("submit", `{"jobs":[{"id":40,"urgency":16,"userid":"x","t_submit":1.0,"flags":0,"jobspec":{}}]}`, errno.Protocol, ""),
}

const cancel = `"severity":0,"type":"cancel"}`

var raiseRows = []row{
	private("raise", `{"id":16,`+cancel, notYourException),
	private("raise", `{"id":17,"severity":7,"type":"x","note":"y","wait_status":9}`, notYourException),
	{"raise", `{"id":19,` + cancel, want{}, want{errno.Perm, notYourException}, want{errno.Perm, notYourException}},
	same("raise", ``, errno.Protocol, ""),
	same("raise", `{"id":16,"severity":0}`, errno.Protocol, ""),
	same("raise", `{"id":"x",`+cancel, errno.Protocol, ""),
	same("raise", `{"id":16,"severity":8,"type":"cancel"}`, errno.Protocol, "invalid exception severity"),
	same("raise", `{"id":16,"severity":-1,"type":"cancel"}`, errno.Protocol, "invalid exception severity"),
	same("raise", `{"id":16,"severity":0,"type":""}`, errno.Protocol, "invalid exception type"),
	same("raise", `{"id":16,"severity":0,"type":"a b"}`, errno.Protocol, "invalid exception type"),
	same("raise", `{"id":99,"severity":0,"type":"a=b"}`, errno.Protocol, "invalid exception type"),
	same("raise", `{"id":99,`+cancel, errno.NoEntry, "unknown job id"),
	same("raise", `{"id":18,`+cancel, errno.NoEntry, "job is inactive"),

	private("raiseall", `{"dry_run":false,"userid":200,"states":62,`+cancel, notYourException),
	{"raiseall", `{"dry_run":true,"userid":4294967295,"states":62,` + cancel, want{}, want{errno.Perm, notYourException}, want{errno.Perm, notYourException}},
	same("raiseall", `{}`, errno.Protocol, ""),
	same("raiseall", `{"dry_run":1,"userid":200,"states":62,`+cancel, errno.Protocol, ""),
	same("raiseall", `{"dry_run":false,"userid":-3000000000,"states":62,`+cancel, errno.Protocol, ""),
	{
		"raiseall", `{"dry_run":false,"userid":-1,"states":62,"severity":9,"type":"cancel"}`,
		want{errno.Protocol, "invalid exception severity"}, want{errno.Perm, notYourException}, want{errno.Perm, notYourException},
	},
	fails("raiseall", `{"dry_run":false,"userid":200,"states":62,"severity":0,"type":"bad type"}`, errno.Protocol, "invalid exception type", notYourException),
}

var killRows = []row{
	private("kill", `{"id":17,"signum":64}`, "guests may only send signals to their own jobs"),
	same("kill", `{"id":17}`, errno.Protocol, ""),
	same("kill", `{"id":17,"signum":0}`, errno.Invalid, "Invalid signal number"),
	same("kill", `{"id":99,"signum":65}`, errno.Invalid, "Invalid signal number"),
	same("kill", `{"id":99,"signum":9}`, errno.Invalid, "unknown job id"),
	same("kill", `{"id":18,"signum":9}`, errno.Invalid, "job is inactive"),
	fails("kill", `{"id":16,"signum":9}`, errno.Invalid, "job is not running", "guests may only send signals to their own jobs"),

	private("killall", `{"dry_run":false,"userid":200,"signum":15}`, "guests can only kill their own jobs"),
	same("killall", `{"dry_run":false,"userid":200}`, errno.Protocol, "error decoding request"),
	fails("killall", `{"dry_run":false,"userid":200,"signum":144}`, errno.Invalid, "Invalid signal number", "guests can only kill their own jobs"),
}

var changeRows = []row{
	private("urgency", `{"id":16,"urgency":3}`, notYourUrgency),
	{"urgency", `{"id":16,"urgency":17}`, want{}, want{errno.Perm, "guests can only adjust urgency <= default"}, want{errno.Perm, notYourUrgency}},
	fails("urgency", `{"id":17,"urgency":3}`, errno.Invalid, "urgency cannot be changed once resources are allocated", notYourUrgency),
	same("urgency", `{"id":16}`, errno.Protocol, ""),
	same("urgency", `{"id":16,"urgency":null}`, errno.Protocol, ""),
	same("urgency", `{"id":99,"urgency":-1}`, errno.Invalid, "urgency value is out of range"),
	same("urgency", `{"id":16,"urgency":32}`, errno.Invalid, "urgency value is out of range"),
	same("urgency", `{"id":99,"urgency":3}`, errno.Invalid, "unknown job"),
	same("urgency", `{"id":18,"urgency":3}`, errno.Invalid, "job is inactive"),

	private("memo", `{"id":16,"memo":{"a":1}}`, "guests can only add a memo to their own jobs"),
	private("memo", `{"id":17,"volatile":true,"memo":{"a":null}}`, "guests can only add a memo to their own jobs"),
	same("memo", `{"id":16}`, errno.Protocol, ""),
	same("memo", `{"id":99,"memo":{"a":1}}`, errno.NoEntry, "unknown job id"),
	same("memo", `{"id":18,"memo":{"a":1}}`, errno.NoEntry, "job is inactive"),

	{topic: "post-event.post", payload: `{"id":16,"name":"test"}`},
	{topic: "post-event.post", payload: `{"id":17,"name":"test","context":{"note":"x"}}`},
	same("post-event.post", `{"id":16}`, errno.Protocol, ""),
	same("post-event.post", `{"id":99,"name":"test"}`, errno.NoEntry, ""),
	same("post-event.post", `{"id":18,"name":"test"}`, errno.NoEntry, ""),
	same("post-event.post", `{"id":16,"name":"submit","context":{}}`, errno.Invalid, ""),
	same("post-event.post", `{"id":16,"name":"test","context":[]}`, errno.Invalid, ""),
}

// A job that was stored before a restart may be submitted again. One that is refused stops
// no other.
func TestSubmitRefusesJobsOneByOne(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	hook := func(e *joblife.HookEvent) error {
		switch e.Job.ID() {
		case 41:
			return fail(errno.Invalid, "not this one")
		case 43:
			return errors.New("")
		case 44:
			return errors.New("nor that")
		}
		return nil
	}
	w.records = nil
	w.begin(Config{Manager: joblife.Config{Hooks: []joblife.Hooks{{Validate: hook}}}})
	named := strings.Replace(sleep, `"duration":60`, `"duration":60,"queue":"x"`, 1)
	list := []string{}
	for i, spec := range []string{sleep, sleep, named, sleep, sleep, `{}`, sleep} {
		id := 40 + i%6 // the last is the first again
		list = append(list, fmt.Sprintf(`{"id":%d,"urgency":16,"userid":200,"t_submit":1.5,"flags":0,"jobspec":%s}`, id, spec))
	}
	out := w.drive(owner("submit", `{"jobs":[`+strings.Join(list, ",")+`]}`))
	var answer struct{ Errors [][2]any }
	require.NoError(t, json.Unmarshal([]byte(text(t, out.Answers[0].Payload)), &answer))
	require.Len(t, answer.Errors, 5)
	require.Equal(t, [2]any{41.0, "not this one"}, answer.Errors[0])
	require.Equal(t, [2]any{42.0, "'x' is not a valid queue"}, answer.Errors[1])
	require.Equal(t, [2]any{43.0, "rejected by plugin"}, answer.Errors[2])
	require.Equal(t, [2]any{44.0, "nor that"}, answer.Errors[3])
	require.Contains(t, answer.Errors[4][1], "jobspec: ")
	require.Equal(t, jobstate.StateSched, w.view(40).State())
}

func TestWhatRequestsLog(t *testing.T) {
	submitAt := func(id jobid.ID, at string) string {
		return strings.Replace(submission1(id, ownGuest), `:1.5`, at, 1)
	}
	for _, tt := range []struct {
		topic, payload string
		job            jobid.ID
		has, lacks     string
	}{
		{"submit", submitAt(40, `:1699999999.25`), 40, `{"timestamp":1699999999.25,"name":"submit"`, `:1699999999.25,"name":"validate"`},
		{"submit", submitAt(41, `:1e12`), 41, `{"timestamp":1700000000.0,"name":"submit"`, `e12`}, // never a time to come
		{"memo", `{"id":16,"memo":{"a":1}}`, 16, `"memo","context":{"a":1}`, `"b"`},
		{"memo", `{"id":16,"volatile":true,"memo":{"b":2}}`, 16, `"submit"`, `"b"`},
		{"post-event.post", `{"id":17,"name":"test","context":{"note":"x"}}`, 17, `"test","context":{"note":"x"}`, `"userid":100`},
	} {
		w := newWorld(t, joblife.Config{})
		require.Zero(t, w.drive(owner(tt.topic, tt.payload)).Answers[0].Errnum)
		require.Contains(t, string(w.stored[tt.job].Eventlog), tt.has)
		require.NotContains(t, string(w.stored[tt.job].Eventlog), tt.lacks)
	}
}

func TestQueuesRefuseJobsInTheWordsOfFlux(t *testing.T) {
	s := newDesk(t, Config{})
	require.NoError(t, s.step(joblife.EnableQueue{Reason: "fubar"}))
	require.EqualError(t, s.admits(""), "job submission is disabled: fubar")
	require.EqualError(t, s.admits("batch"), "'batch' is not a valid queue")
	s = newDesk(t, Config{Queues: map[string]Queue{"batch": {}}})
	require.NoError(t, s.admits("batch"))
	require.NoError(t, s.step(joblife.EnableQueue{Queue: "batch", Reason: "fubar"}))
	require.EqualError(t, s.admits("batch"), "job submission to batch is disabled: fubar")
	require.EqualError(t, s.admits(""), "a named queue is required")
}

func TestRaisePublishesTheException(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	out := w.drive(by(ownGuest, roleUser, "raise", `{"id":17,"severity":3,"type":"x","note":"a=b","wait_status":9}`))
	require.Len(t, out.Events, 1)
	require.True(t, out.Events[0].Private)
	require.Equal(t, "job-exception", out.Events[0].Topic)
	require.JSONEq(t, `{"id":17,"type":"x","severity":3,"wait_status":9}`, text(t, out.Events[0].Payload))
	require.Contains(t, string(w.stored[17].Eventlog), `{"type":"x","severity":3,"note":"a=b","userid":200,"wait_status":9}`)
}

func TestRaiseAllRaisesOnAllOfAUser(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	all := `{"dry_run":%t,"userid":%d,"states":%d,"severity":7,"type":"test%d"}`
	for n, tt := range []struct {
		dry    bool
		user   int
		states jobstate.State
		count  int
		raised []int
	}{
		{false, ownGuest, 255, 2, []int{pending, running}},
		{false, ownGuest, jobstate.StateRunning, 1, []int{running}},
		{false, -1, jobstate.StatePending, 2, []int{pending, owners}},
		{true, -1, jobstate.StateActive, 3, nil},
		{false, otherGuest, 255, 0, nil},
		{false, -1, jobstate.StateInactive, 0, nil},
	} {
		out := w.drive(owner("raiseall", fmt.Sprintf(all, tt.dry, tt.user, tt.states, n)))
		require.JSONEq(t, fmt.Sprintf(`{"count":%d,"errors":0}`, tt.count), text(t, out.Answers[0].Payload))
		require.Len(t, out.Events, len(tt.raised), "%+v", tt)
		for i, id := range tt.raised {
			require.JSONEq(t, fmt.Sprintf(`{"id":%d,"type":"test%d","severity":7}`, id, n), text(t, out.Events[i].Payload))
		}
	}
}

func TestKillPublishesToTheShells(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	out := w.drive(by(ownGuest, roleUser, "kill", `{"id":17,"signum":10}`))
	require.Equal(t, "shell-17.kill", out.Events[0].Topic)
	require.False(t, out.Events[0].Private)
	require.JSONEq(t, `{"signum":10}`, text(t, out.Events[0].Payload))
	require.Empty(t, out.Append)

	out = w.drive(owner("killall", `{"dry_run":false,"userid":-1,"signum":15}`))
	require.JSONEq(t, `{"count":1,"errors":0}`, text(t, out.Answers[0].Payload))
	require.Equal(t, "shell-17.kill", out.Events[0].Topic)

	out = w.drive(owner("killall", `{"dry_run":true,"userid":200,"signum":15}`))
	require.JSONEq(t, `{"count":1,"errors":0}`, text(t, out.Answers[0].Payload))
	require.Empty(t, out.Events)
}

// A guest may lower what the owner raised, but not raise it.
func TestUrgencyOfAGuest(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	for _, tt := range []struct {
		r   Request
		old int // -1: refused
	}{
		{owner("urgency", `{"id":16,"urgency":31}`), 16},
		{by(ownGuest, roleUser, "urgency", `{"id":16,"urgency":17}`), 31},
		{by(ownGuest, roleUser, "urgency", `{"id":16,"urgency":18}`), -1},
		{by(ownGuest, roleUser, "urgency", `{"id":16,"urgency":0}`), 17},
		{by(ownGuest, roleUser, "urgency", `{"id":16,"urgency":16}`), 0},
	} {
		out := w.drive(tt.r)
		if tt.old < 0 {
			require.Equal(t, "guests can only adjust urgency <= default", out.Answers[0].Errstr)
			continue
		}
		require.JSONEq(t, fmt.Sprintf(`{"old_urgency":%d}`, tt.old), text(t, out.Answers[0].Payload))
	}
	require.Contains(t, string(w.stored[16].Eventlog), `"urgency","context":{"userid":200,"urgency":17}`)
}

// Requests that come while the store is busy share the next commit. One that fails is answered at
// once.
func TestAnswersWaitForTheStore(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	w.send("a", 1, "memo", `{"id":16,"memo":{"a":1}}`)
	first := w.storing()
	w.send("a", 2, "raise", `{"id":16,"severity":1,"type":"x"}`)
	w.send("a", 3, "kill", `{"id":17,"signum":9}`)
	require.False(t, w.Next(new(parcel)), "an Out while the store is busy")
	w.send("a", 4, "raise", `{"id":99,"severity":1,"type":"x"}`)
	require.Equal(t, "raise a4: errnum 2 unknown job id", w.flush())
	w.commit(first)
	var out parcel
	require.True(t, w.Next(&out))
	require.Equal(t, []string{"memo a1: -"}, w.print(&out))
	second := w.storing()
	require.Len(t, second.Append, 1)
	require.Empty(t, w.next)
	w.commit(second)
	answers := w.collect().Answers
	require.Len(t, answers, 2)
	require.ElementsMatch(t, []uint32{2, 3}, []uint32{answers[0].Matchtag, answers[1].Matchtag})
}

func ids(list ...jobid.ID) string { return strings.ReplaceAll(fmt.Sprintf("%d", list), " ", ",") }
