package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// Who asks: the owner of the instance, or a guest with jobs.
const (
	anOwner = "owner"
	aGuest  = "guest"
)

// from is a request of somebody.
func from(who, topic, payload string) Request {
	if who == aGuest {
		return by(5, roleUser, topic, payload)
	}
	return owner(topic, payload)
}

// specOf returns a jobspec.
func specOf(t *testing.T, j jobspec.Job) string {
	t.Helper()
	j.Command = []string{"sleep"}
	s, err := jobspec.New(j)
	require.NoError(t, err)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return string(text)
}

// submitted submits a job, and returns why it was refused.
func (d *desk) submitted(id jobid.ID, user int, spec string) string {
	d.t.Helper()
	out := d.drive(owner("submit", submissionOf(id, user, 0, spec)))
	require.Len(d.t, out.Answers, 1)
	var answer struct {
		Errors [][2]any `json:"errors"`
	}
	require.NoError(d.t, json.Unmarshal([]byte(text(d.t, out.Answers[0].Payload)), &answer))
	if len(answer.Errors) == 0 {
		return ""
	}
	return answer.Errors[0][1].(string)
}

// An exchange is a request and what is answered.
type exchange struct {
	who, topic, payload string
	errnum              int
	text                string // of the error, or of the payload
}

// converse asks one request after the other.
func (d *desk) converse(list ...exchange) {
	d.t.Helper()
	for _, x := range list {
		out := d.drive(from(x.who, x.topic, x.payload))
		require.Len(d.t, out.Answers, 1, x)
		got := out.Answers[0]
		require.Equal(d.t, x.errnum, got.Errnum, "%+v: %s", x, got.Errstr)
		answer := got.Errstr
		if got.Payload != nil {
			answer = text(d.t, got.Payload)
		}
		require.Equal(d.t, x.text, answer, x)
	}
}

// goOnline lets a scheduler say hello and ready.
func (d *desk) goOnline() {
	d.t.Helper()
	d.greet("s")
	d.flush()
}

// runJob gives resources to a job, from ten seconds ago.
func (d *desk) runJob(id jobid.ID) {
	d.t.Helper()
	r, err := rset.Parse([]byte(fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":"%d","children":{"core":"0"}}],`+
		`"nodelist":["n%d"],"starttime":1699999990.0,"expiration":1700003600.0}}`, id, id)))
	require.NoError(d.t, err)
	d.do(joblife.SchedResponse(alloc.Response{ID: id, Type: alloc.ResponseSuccess, R: r}))
	require.Equal(d.t, jobstate.StateRun, d.view(id).State())
}

const (
	allQueues    = "Use --all to apply this command to all queues"
	offlineState = `"start":false,"stop_reason":"Scheduler is offline"}`
)

var queueRows = []row{
	same("config-reload", `{}`, errno.NoSys, ""), // there is nothing to read it with
	same("queue-enable", `{"enable":true,"all":true}`, 0, ""),
	same("queue-enable", `{"enable":true}`, errno.Protocol, ""),
	same("queue-list", ``, 0, ""),
	same("queue-list", `{}`, 0, ""),
	same("queue-start", `{"start":true,"all":true}`, 0, ""),
	same("queue-start", `{"start":true,"all":true,"name":"x"}`, errno.Invalid, "'x' is not a valid queue"),
	same("queue-status", `{}`, 0, ""),
	same("queue-status", `{"name":"x"}`, errno.Invalid, "'x' is not a valid queue"),
}

func TestAnonymousQueue(t *testing.T) {
	s := newDesk(t, Config{})
	s.converse(
		exchange{anOwner, "queue-list", `{}`, 0, `{"queues":[]}`},
		exchange{aGuest, "queue-status", `{}`, 0, `{"enable":true,` + offlineState},
	)
	s.goOnline()
	s.converse(
		exchange{aGuest, "queue-status", `{}`, 0, `{"enable":true,"start":true}`},
		exchange{aGuest, "queue-status", `{"name":"x"}`, errno.Invalid, "'x' is not a valid queue"},
		exchange{aGuest, "queue-status", `{"name":1}`, errno.Protocol, ""},
		exchange{aGuest, "queue-status", `{"name":""}`, errno.Invalid, "'' is not a valid queue"},
		exchange{anOwner, "queue-enable", `{"enable":false}`, errno.Protocol, ""},
		exchange{anOwner, "queue-enable", `{"all":false}`, errno.Protocol, ""},
		exchange{anOwner, "queue-enable", `{"enable":false,"all":false}`, errno.Invalid, "reason is required for disable"},
		exchange{anOwner, "queue-enable", `{"enable":false,"all":false,"reason":"fubar"}`, 0, ""},
		exchange{anOwner, "queue-start", `{"start":false}`, errno.Protocol, ""},
		exchange{anOwner, "queue-start", `{"all":false}`, errno.Protocol, ""},
		exchange{anOwner, "queue-start", `{"start":false,"all":false,"name":"x"}`, errno.Invalid, "'x' is not a valid queue"},
		exchange{anOwner, "queue-start", `{"start":false,"all":false,"name":""}`, errno.Invalid, "'' is not a valid queue"},
		exchange{anOwner, "queue-start", `{"start":false,"all":false,"reason":"my message"}`, 0, ""},
		exchange{aGuest, "queue-status", `{}`, 0, `{"disable_reason":"fubar","enable":false,"start":false,"stop_reason":"my message"}`},
		exchange{anOwner, "queue-enable", `{"enable":true,"all":false}`, 0, ""},
		exchange{anOwner, "queue-start", `{"start":false,"all":false}`, 0, ""},
		exchange{aGuest, "queue-status", `{}`, 0, `{"enable":true,"start":false}`},
		exchange{anOwner, "queue-start", `{"start":true,"all":false}`, 0, ""},
		exchange{aGuest, "queue-status", `{}`, 0, `{"enable":true,"start":true}`},
	)
}

func TestNamedQueues(t *testing.T) {
	s := newDesk(t, Config{Queues: map[string]Queue{"b": {}, "a": {}}})
	s.goOnline()
	s.converse(
		exchange{aGuest, "queue-list", `{}`, 0, `{"queues":["a","b"]}`},
		exchange{aGuest, "queue-status", `{}`, errno.Invalid, "a named queue is required"},
		exchange{anOwner, "queue-enable", `{"enable":true,"all":false}`, errno.Invalid, allQueues},
		exchange{anOwner, "queue-start", `{"start":true,"all":false}`, errno.Invalid, allQueues},
		exchange{anOwner, "queue-start", `{"start":true,"all":true}`, 0, ""},
		exchange{aGuest, "queue-status", `{"name":"b"}`, 0, `{"enable":true,"start":true}`},
		exchange{anOwner, "queue-enable", `{"enable":false,"all":false,"name":"x","reason":""}`, errno.Invalid, "'x' is not a valid queue"},
		exchange{anOwner, "queue-enable", `{"enable":false,"all":false,"name":"a","reason":""}`, 0, ""},
		exchange{anOwner, "queue-start", `{"start":false,"all":false,"name":"b"}`, 0, ""},
		exchange{aGuest, "queue-status", `{"name":"a"}`, 0, `{"disable_reason":"","enable":false,"start":true}`},
		exchange{aGuest, "queue-status", `{"name":"b"}`, 0, `{"enable":true,"start":false}`},
		exchange{anOwner, "queue-enable", `{"enable":false,"all":true,"reason":"r"}`, 0, ""},
		exchange{anOwner, "queue-start", `{"start":false,"all":true}`, 0, ""},
		exchange{aGuest, "queue-status", `{"name":"b"}`, 0, `{"disable_reason":"r","enable":false,"start":false}`},
	)
}

// RFC 27: all queues start in one order of priority, since a scheduler may take few requests.
func TestAllQueuesStartInOneOrder(t *testing.T) {
	s := newDesk(t, Config{Queues: map[string]Queue{"a": {}, "b": {}}})
	s.goOnline()
	s.drive(owner("queue-start", `{"start":false,"all":true}`))
	for i, urgency := range []int{10, 18, 12, 20} {
		submission := submissionOf(jobid.ID(i+1), 100, 0, specOf(t, jobspec.Job{Queue: string("aabb"[i])}))
		require.Empty(t, s.drive(owner("submit", strings.Replace(submission, "16", fmt.Sprint(urgency), 1))).Calls)
	}
	var order []jobid.ID
	for _, c := range s.drive(owner("queue-start", `{"start":true,"all":true}`)).Calls {
		m, err := alloc.Parse[alloc.Request](c.Payload.(json.RawMessage))
		require.NoError(t, err)
		order = append(order, m.ID)
	}
	require.Equal(t, []jobid.ID{4, 2, 3, 1}, order)
}

// TestNoCheckpoint: a restart forgets a stop of that kind, and no other.
func TestNoCheckpoint(t *testing.T) {
	cfg := Config{Queues: map[string]Queue{"a": {}, "b": {}}, Manager: joblife.Config{QueuesStopped: true}}
	s := newDesk(t, cfg)
	s.goOnline()
	s.converse(exchange{aGuest, "queue-status", `{"name":"a"}`, 0, `{"enable":true,"start":false}`})
	for _, r := range []string{
		`{"start":true,"all":true}`, `{"start":false,"all":true,"nocheckpoint":true,"reason":"x"}`,
		`{"start":false,"all":false,"name":"b","reason":"y"}`,
	} {
		s.drive(owner("queue-start", r))
	}
	s.converse(exchange{aGuest, "queue-status", `{"name":"a"}`, 0, `{"enable":true,"start":false,"stop_reason":"x"}`})

	s.restart()
	s.goOnline()
	s.converse(
		exchange{aGuest, "queue-status", `{"name":"a"}`, 0, `{"enable":true,"start":true}`},
		exchange{aGuest, "queue-status", `{"name":"b"}`, 0, `{"enable":true,"start":false,"stop_reason":"y"}`},
	)
}

// TestStopQueues: a restart stops the queues that were started, and says so; the first start
// does not.
func TestStopQueues(t *testing.T) {
	for name, queues := range map[string]map[string]Queue{"a": {"a": {}, "b": {}}, "": nil} {
		cfg := Config{Queues: queues, StopQueues: true}
		s := newDesk(t, cfg)
		s.goOnline()
		status := `{}`
		if name != "" {
			status = `{"name":"a"}`
		}
		s.converse(exchange{aGuest, "queue-status", status, 0, `{"enable":true,"start":true}`})
		s.drive(owner("queue-start", `{"start":false,"all":true,"nocheckpoint":true}`), owner("submit", submission1(16, 7)))
		if name != "" {
			s.drive(owner("queue-start", `{"start":false,"all":false,"name":"b","reason":"x"}`))
		}
		require.NotEmpty(t, s.records)
		s.restart()
		s.goOnline()
		s.converse(exchange{aGuest, "queue-status", status, 0, `{"enable":true,"start":false,"stop_reason":"Automatically stopped due to restart"}`})
		if name != "" {
			s.converse(exchange{aGuest, "queue-status", `{"name":"b"}`, 0, `{"enable":true,"start":false,"stop_reason":"x"}`})
		}
	}
}

// TestReloadIsAllOrNothing: a configuration that the Manager refuses changes nothing.
func TestReloadIsAllOrNothing(t *testing.T) {
	next := Config{}
	s := newDesk(t, Config{
		Queues: map[string]Queue{"a": {}},
		Parse: func(old Config, _ []byte) (Config, error) {
			next.Send = old.Send
			return next, nil
		},
	})
	next.Queues = map[string]Queue{"b": {}}
	next.Manager.Actions.Tolerate.Count = -1
	s.converse(
		exchange{anOwner, "config-reload", `{}`, errno.Invalid, "perilog: invalid configuration: tolerate.count is negative"},
		exchange{anOwner, "queue-list", `{}`, 0, `{"queues":["a"]}`},
	)
	next.Manager.Actions.Tolerate.Count = 0
	s.converse(
		exchange{anOwner, "config-reload", `{}`, 0, ""},
		exchange{anOwner, "queue-list", `{}`, 0, `{"queues":["b"]}`},
		exchange{anOwner, "config-reload", `{}`, errno.NoSys, ""}, // Parse is gone
	)
}

func TestLimits(t *testing.T) {
	one, two, eight := jobstate.Some(1), jobstate.Some(2), jobstate.Some(8)
	hour := jobstate.Some(fsd.Duration(time.Hour))
	s := newDesk(t, Config{
		Queues: map[string]Queue{
			"a": {},
			"b": {Limits: Limits{
				Duration: jobstate.Some(fsd.Duration(90 * time.Minute)), Max: Size{Nodes: jobstate.Some(-1), GPUs: two}, Min: Size{GPUs: one},
			}},
			"c": {Limits: Limits{Duration: jobstate.Some(fsd.Duration(0)), Min: Size{Nodes: jobstate.Some(0)}}},
			"d": {Limits: Limits{Duration: jobstate.Some(fsd.Forever)}},
		},
		Limits: Limits{Duration: hour, Max: Size{Nodes: two, Cores: eight}, Min: Size{Nodes: one}},
	})
	const minute = time.Minute
	cases := []struct {
		job  jobspec.Job
		want string
	}{
		{jobspec.Job{Queue: "a", Nodes: 2, Slots: 2, Cores: 2, Duration: time.Hour}, ""},
		{jobspec.Job{Queue: "a", Nodes: 2}, "requested duration (unlimited) exceeds policy limit of 1h for queue a"},
		{jobspec.Job{Queue: "a", Nodes: 2, Duration: time.Hour + 1}, "requested duration (1h) exceeds policy limit of 1h for queue a"},
		{jobspec.Job{Queue: "b", Nodes: 2, GPUs: 1, Duration: 90 * minute}, ""},
		{jobspec.Job{Queue: "b", Nodes: 2, GPUs: 1, Duration: 100 * minute}, "requested duration (1.7h) exceeds policy limit of 1.5h for queue b"},
		{jobspec.Job{Queue: "c", Nodes: 2}, ""},
		{jobspec.Job{Queue: "d", Nodes: 2}, ""},
		{jobspec.Job{Queue: "a", Nodes: 3, Duration: minute}, "requested nnodes (3) exceeds policy limit of 2 for queue a"},
		{jobspec.Job{Queue: "b", Nodes: 3, GPUs: 1, Duration: minute}, "requested ngpus (3) exceeds policy limit of 2 for queue b"},
		{jobspec.Job{Queue: "b", Nodes: 9, Duration: minute}, "requested ncores (9) exceeds policy limit of 8 for queue b"},
		{jobspec.Job{Queue: "a", Nodes: 1, Slots: 3, Cores: 3, Duration: minute}, "requested ncores (9) exceeds policy limit of 8 for queue a"},
		{jobspec.Job{Queue: "b", Slots: 1, Duration: minute}, "requested nnodes (0) is under policy limit of 1 for queue b"},
		{jobspec.Job{Queue: "b", Nodes: 1, Duration: minute}, "requested ngpus (0) is under policy limit of 1 for queue b"},
		{jobspec.Job{Queue: "c", Slots: 8}, ""},
		{jobspec.Job{Queue: "c", Slots: 9}, "requested ncores (9) exceeds policy limit of 8 for queue c"},
	}
	for i, c := range cases {
		got := s.submitted(jobid.ID(16+i), 100, specOf(t, c.job))
		require.Equal(t, c.want, got, "%+v", c.job)
	}

	many := strings.ReplaceAll(`{"version":1,"resources":[{"type":"node","count":MANY,"with":[{"type":"slot","count":MANY,"label":"task",`+
		`"with":[{"type":"core","count":MANY}]}]}],"tasks":[{"command":["sleep"],"slot":"task","count":{"per_slot":1}}],`+
		`"attributes":{"system":{"duration":60,"queue":"b"}}}`, "MANY", `{"min":2147483647}`)
	require.Equal(t, "requested ncores (9223372036854775807) exceeds policy limit of 8 for queue b", s.submitted(99, 100, many))

	require.Contains(t, s.submitted(99, 100, strings.ReplaceAll(many, `"type":"slot"`, `"type":"rack"`)), "jobspec: ") // not of RFC 25

	s = newDesk(t, Config{Limits: Limits{Duration: hour}}) // the anonymous queue
	require.Equal(t, "requested duration (2d) exceeds policy limit of 1h", s.submitted(16, 100, specOf(t, jobspec.Job{Duration: 48 * time.Hour})))
}

// TestInstanceLifetime: no job may run for longer than the instance does.
func TestInstanceLifetime(t *testing.T) {
	s := newDesk(t, Config{})
	at := eventlog.FromTime(start)
	text := specOf(t, jobspec.Job{Duration: 8 * time.Minute})
	s.call(func() { require.NoError(t, s.Expire(at+480)) })
	require.Empty(t, s.submitted(16, 5, text))
	s.call(func() { require.NoError(t, s.Expire(at+479)) })
	require.Equal(t, "job duration (8m) exceeds remaining instance lifetime (8m)", s.submitted(17, 5, text))
	require.Empty(t, s.submitted(18, 5, specOf(t, jobspec.Job{})))
	s.call(func() { require.NoError(t, s.Expire(at-1)) })
	require.Equal(t, "duration exceeds instance lifetime", s.submitted(19, 5, text))
	s.call(func() { require.NoError(t, s.Expire(0)) })
	require.Empty(t, s.submitted(20, 5, text))
}

// TestMaxActive: a user has no more active jobs than the limit, before and after a restart.
func TestMaxActive(t *testing.T) {
	const full = "user has max number of jobs submitted"
	cfg := Config{MaxActive: 2}
	s := newDesk(t, cfg)
	ask := func(r Request) {
		t.Helper()
		for _, a := range s.drive(r).Answers {
			require.Zero(t, a.Errnum, a.Errstr)
		}
	}
	ask(owner("submit", submission1(16, 5)))
	ask(owner("submit", submission1(17, 5)))
	require.Equal(t, full, s.submitted(18, 5, sleep))
	ask(owner("submit", submission1(19, 6))) // another user
	ask(owner("raise", `{"id":16,"severity":0,"type":"cancel"}`))
	ask(owner("submit", submission1(20, 5)))
	require.Equal(t, full, s.submitted(21, 5, sleep))

	s.restart()
	require.Len(t, s.limits.jobs[5], 2)
	require.Len(t, s.limits.jobs[6], 1)
	require.Len(t, s.limits.jobs, 2)
	require.Equal(t, full, s.submitted(22, 5, sleep))
	for _, id := range []int{17, 19, 20} {
		ask(owner("raise", fmt.Sprintf(`{"id":%d,"severity":0,"type":"cancel"}`, id)))
	}
	require.Empty(t, s.limits.jobs)
}

// TestMaxActiveOfNewJobs: a job that is not validated yet counts, and is not counted again.
func TestMaxActiveOfNewJobs(t *testing.T) {
	later := joblife.Hooks{Validate: func(*joblife.HookEvent) error { return joblife.ErrLater }}
	cfg := Config{MaxActive: 1, Manager: joblife.Config{Hooks: []joblife.Hooks{later}}}
	s := newDesk(t, cfg)
	s.drive(owner("submit", submission1(16, 5)))
	require.Equal(t, "user has max number of jobs submitted", s.submitted(17, 5, sleep))
	s.restart()
	v, ok := s.m.Job(16)
	require.True(t, ok && v.State() == jobstate.StateNew)
	require.Len(t, s.limits.jobs[5], 1)
	require.NoError(t, s.step(joblife.Validated{ID: 16, Err: joblife.ErrInvalid}))
	s.collect()
	require.Empty(t, s.limits.jobs)
}
