package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// told returns the ids and the names of events of what a listener was told, one answer a
// line.
func told(t *testing.T, text, sender string) string {
	var out []string
	for line := range strings.Lines(text) {
		_, payload, ok := strings.Cut(line, "events-journal "+sender+": ")
		if !ok {
			continue
		}
		var p struct {
			ID         int64
			Events     []struct{ Name string }
			Jobspec, R json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(payload), &p))
		s := fmt.Sprint(p.ID)
		for _, e := range p.Events {
			s += " " + e.Name
		}
		if p.Jobspec != nil {
			s += " +jobspec"
		}
		if p.R != nil {
			s += " +R"
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

func TestJournal(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1, 2, 3)
	d.run(1)
	d.run(2)
	d.cancel(3)
	d.finish(2, 0)
	const active = "1 submit validate depend priority alloc start +jobspec +R"
	require.Equal(t, join(active, "-1"), told(t, d.ask(5, "events-journal", `{}`), "a5"))
	out := told(t, d.ask(6, "events-journal", `{"full":true}`), "a6")
	require.Equal(t, join("2 submit validate depend priority alloc start finish release free clean +jobspec +R",
		"3 submit validate depend priority exception clean +jobspec", active, "-1"), out)
	out = told(t, d.ask(7, "events-journal", `{"full":true,"allow":{"alloc":1,"clean":1},"deny":{"clean":1}}`), "a7")
	require.Equal(t, join("2 alloc +jobspec +R", "3 +jobspec", "1 alloc +jobspec +R", "-1"), out)

	// What comes is told to all who want it.
	out = d.submit(0, 4)
	require.Equal(t, "4 submit validate depend priority +jobspec", told(t, out, "a5"))
	require.Empty(t, told(t, out, "a7"))
	out = d.respond("sched.alloc", `{"id":4,"type":1,"annotations":{"sched":{"t_estimate":5}}}`)
	require.Contains(t, out, `events-journal a5: {"id":4,"events":[{"timestamp":1700000016.0,"name":"annotations","context":{"annotations":{"sched":{"t_estimate":5}}}}]}`)
	out = d.respond("sched.alloc", success(4, 4))
	require.Equal(t, "4 annotations alloc +R", told(t, out, "a6"))
	require.Equal(t, "4 alloc +R", told(t, out, "a7"))
	require.Contains(t, out, `{"annotations":{"sched":{"t_estimate":5,"resource_summary":"rank4"}}}`)
	require.NoError(t, d.step(joblife.Memo{ID: 4, Volatile: true, Values: json.RawMessage(`{"a":1}`)}))
	require.Equal(t, "4 memo", told(t, d.flush(), "a5"))
	d.together(func() { // large events do not make an answer that is too long for a message
		for range 5 {
			long := fmt.Sprintf(`{"a":"%s"}`, strings.Repeat("x", maxTogether/3))
			require.NoError(t, d.step(joblife.Memo{ID: 4, Volatile: true, Values: json.RawMessage(long)}))
		}
	})
	require.Equal(t, "4 memo memo memo\n4 memo memo", told(t, d.flush(), "a5"))

	require.Contains(t, d.ask(1, "stats-get", ``), `{"journal":{"listeners":3,`)
	require.Equal(t, "events-journal a6: errnum 61 ", d.ask(0, "events-journal-cancel", `{"matchtag":6}`))
	require.Empty(t, d.ask(0, "events-journal-cancel", `{"matchtag":6}`))
	d.send("b", 0, "events-journal-cancel", `{"matchtag":5}`)
	require.Empty(t, d.flush(), "another sender's stream ended")
	d.together(func() {
		d.send("a", 8, "events-journal", `{}`)
		d.send("a", 0, "events-journal-cancel", `{"matchtag":8}`)
	})
	require.Equal(t, "events-journal a8: errnum 61 ", d.flush())
	require.Equal(t, "events-journal-cancel a1: errnum 71 ", d.ask(1, "events-journal-cancel", `{}`))
	out = d.finish(1, 0)
	require.Equal(t, "1 finish\n1 release free clean", told(t, out, "a5"))
	require.Empty(t, told(t, out, "a6"))
	require.Equal(t, "", told(t, out, "a7"))
}

// A job that gets resources and ends in one batch has its R nevertheless.
func TestJournalOfAShortJob(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.ask(5, "events-journal", `{}`)
	require.Contains(t, d.submit(0, 1), `"jobspec":`+sleep)
	d.together(func() {
		require.NoError(t, d.Respond(d.now, Response{Topic: "sched.alloc", Payload: json.RawMessage(success(1, 0))}))
		require.NoError(t, d.step(joblife.ExecLost{}))
		require.NoError(t, d.step(joblife.Raise{ID: 1, Type: "cancel"}))
	})
	require.Nil(t, d.view(1).R())
	require.Equal(t, "1 annotations alloc exception free clean +R", told(t, d.flush(), "a5"))
}

// I4: what the history says of a job is durable, as its events are. It has no R of an alloc that
// is not.
func TestAHistoryIsDurable(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1, 2, 3)
	d.run(1)
	d.together(func() {
		d.send("r", 5, "events-journal", `{}`)
		d.send("a", 9, "memo", `{"id":1,"memo":{"a":1}}`)
	})
	o := d.storing()
	require.NoError(t, d.Respond(d.now, Response{Topic: "sched.alloc", Payload: json.RawMessage(success(3, 3))}))
	require.NoError(t, d.step(joblife.SetExpiration{ID: 1, Expiration: 4e9}))
	require.NoError(t, d.step(joblife.UpdateJobspec{ID: 2, Updates: []jobstate.Update{{Path: pathDuration, Value: json.RawMessage("77")}}}))
	d.commit(o)
	out := d.flush()
	require.Equal(t, join("1 submit validate depend priority alloc start +jobspec +R", "2 submit validate depend priority +jobspec",
		"3 submit validate depend priority +jobspec", "-1",
		"1 memo", "3 annotations alloc +R", "1 resource-update", "2 jobspec-update priority"), told(t, out, "r5"))
	history, _, _ := strings.Cut(out, `"id":-1`)
	require.NotContains(t, history, `"expiration":4`)
	require.NotContains(t, history, `"duration":77`)
}

func TestJournalErrors(t *testing.T) {
	d := newDesk(t, Config{})
	require.Empty(t, d.ask(0, "events-journal", `{}`), "there is no stream without a matchtag")
	require.Empty(t, d.journal.list)

	// What the store cannot read is logged, and stops nothing.
	d.submit(0, 1, 2)
	d.cancel(1)
	d.stored[1].Eventlog = []byte("nothing\n")
	require.Equal(t, join("1 +jobspec", "2 submit +jobspec", "-1"), told(t, d.ask(5, "events-journal", `{"full":true,"allow":{"submit":1}}`), "a5"))
	d.cfg.Lookup = func(jobid.ID) (Stored, error) { return Stored{}, errors.New("bad disk") }
	out := d.ask(6, "events-journal", `{"full":true}`)
	require.Contains(t, out, "log events-journal: job ƒ2: bad disk")
	require.Equal(t, join("2 submit validate depend priority +jobspec", "-1"), told(t, out, "a6"))
}

// A backlog of ten times the jobs takes some ten times the work, and not a hundred times.
func TestLongBacklogIsNotQuadratic(t *testing.T) {
	work := func(n int) float64 {
		d := newDesk(t, Config{})
		for ids := range slices.Chunk(idsTo(n), 500) {
			d.submit(0, ids...)
		}
		return testing.AllocsPerRun(1, func() {
			d.Request(d.now, owner("events-journal", `{"full":true}`))
			var o parcel
			require.True(t, d.Next(&o))
			require.Len(t, o.Answers, n+1)
		})
	}
	few, many := work(500), work(5000)
	require.Less(t, many, 20*few)
}

func TestStopAndDisconnect(t *testing.T) {
	prepare := func() *desk {
		d := newDesk(t, Config{})
		d.online()
		d.submit(waitable, 1, 2)
		d.run(1)
		d.ask(2, "drain", ``)
		d.ask(3, "idle", ``)
		d.ask(4, "wait", `{"id":1}`)
		d.ask(5, "wait", `{"id":-1}`)
		d.ask(6, "events-journal", `{}`)
		return d
	}
	d := prepare()
	d.together(func() {
		d.send("a", 7, "events-journal", `{}`)
		d.send("a", 8, "raise", `{"id":1,"severity":2,"type":"x"}`)
		d.Stop(d.now)
	})
	require.Equal(t, join(
		"drain a2: errnum 38 job-manager is unloading",
		"idle a3: errnum 38 job-manager is unloading",
		"wait a4: errnum 38 job-manager is unloading",
		"wait a5: errnum 38 job-manager is unloading",
		"events-journal a6: errnum 61 ",
		"events-journal a7: errnum 61 ",
		"raise a8: -", `event job-exception {"id":1,"type":"x","severity":2}`,
	), d.flush())
	d.restart()
	require.Contains(t, d.ask(2, "exec-hello", `{"service":"job-exec"}`), `{"id":1,`)

	// Who is gone is told nothing. The others go on.
	d = prepare()
	d.flush()
	d.send("b", 2, "drain", ``)
	require.Empty(t, d.ask(1, "disconnect", ``))
	require.Empty(t, len(d.empties.list)-1+len(d.waits.any)+len(d.waits.one)+len(d.journal.list))
	require.NotContains(t, join(d.cancel(2), d.finish(1, 0)), " a4")
	require.NotEmpty(t, d.sched.phase)

	d = prepare()
	d.flush()
	d.send("b", 9, "drain", ``)
	d.send("s", 1, "disconnect", ``)
	d.send("x", 1, "disconnect", ``)
	d.flush()
	require.Zero(t, d.sched.phase)
	require.NotContains(t, d.submit(0, 3), "> sched.alloc")
	require.Empty(t, d.exec.hello.Service)
	require.Contains(t, d.ask(8, "exec-hello", `{"service":"y"}`), "exec-hello a8: -\n> y.start")
}
