package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/schedule"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/sched"
)

func (w *world) scheduler() func() {
	return w.start("sched", func(ctx context.Context, e *engine.Engine, log *slog.Logger) error {
		return schedule.Run(ctx, schedule.Config{Engine: e, Sched: sched.Config{Policy: sched.EASY{}}, Log: log})
	})
}

// Jobs wait while there is no scheduler. What they hold and which nodes are out of service is
// known to the next scheduler, under the next manager too.
func TestASchedulerApart(t *testing.T) {
	t.Parallel()
	w := begin(t, 3, perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true,
		Command: []string{"sh", "-c", `test $JOBLIFE_RANK != 2 || test -e "$0"`, "/no/such/file"}}}})
	w.remote = true
	stop := w.nodes()
	ctx := within(t, time.Minute)
	first := w.submit(ctx, "", 3, "true")
	gone := w.scheduler()
	_, err := w.Wait(ctx, first) // its epilog fails on node 2
	require.NoError(t, err)
	runs := w.submit(ctx, "", 1, w.waiting())
	w.starts(ctx, runs)
	gone()
	waits := w.submit(ctx, "", 2, "true")
	next := w.submit(ctx, "", 1, "true")
	gone = w.scheduler()
	job, err := w.Wait(ctx, next) // the job before it has no room
	require.NoError(t, err)
	require.Equal(t, "1", job.Ranks.String())
	gone()
	stop()
	w.manager()
	w.scheduler()
	w.over(ctx, w.submit(ctx, "", 1, "true"))
	job, err = w.Job(ctx, waits)
	require.NoError(t, err)
	require.Equal(t, "SCHED", job.State)
	w.asks(ctx, "resume", wire.Request{Ranks: idset.Of(2)})
	job = w.over(ctx, waits)
	require.Equal(t, "1-2", job.Ranks.String())
}

// What is lost or cannot be ends the session with a scheduler, and the next one knows what is
// held. A second scheduler is not heard.
func TestAManagerSeesWhatItMissedOfAScheduler(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.remote = true
	w.nodes()
	s := newPeer[wire.Do](w, "up.sched", "do.sched")
	epoch := newPeer[wire.Beat](w, "", "epoch").hears(func(b wire.Beat) bool { return b.Epoch > 0 }).Epoch
	lines := func(session string, want ...string) {
		t.Helper()
		text := ""
		s.hears(func(d wire.Do) bool {
			if d.Session == session {
				text += d.Lines
			}
			all := true
			for _, part := range want {
				all = all && strings.Contains(text, part)
			}
			return all
		})
	}
	says := func(session string, seq uint64, text string) {
		s.say(wire.Up{Epoch: epoch, Node: "first", Session: session, Seq: seq, Lines: text})
	}
	begins := func(session, before string, seq uint64) { // at the latest after a beat of the one before
		var d wire.Do
		w.eventually(func() bool {
			says(before, seq, "")
			m, err := s.sub.NextMsg(100 * time.Millisecond)
			return err == nil && json.Unmarshal(m.Data, &d) == nil && d.Hello
		}, "the manager asks for no session")
		s.say(wire.Up{Epoch: epoch, Node: "first", Session: session, Hello: true, Answer: d.Ask})
	}
	says("none", 1, "{}\n")
	begins("gap", "none", 0)
	lines("gap", "resource.acquire", `"errnum":61`, "job-manager.sched-ready")
	w.submit(t.Context(), "", 1, w.waiting())
	lines("gap", "sched.alloc")
	says("gap", 2, "{}\n")
	begins("allocates", "gap", 0)
	lines("allocates", "sched.alloc")
	s.say(wire.Up{Epoch: epoch, Node: "second", Session: "other"}) // which nobody answers
	id := w.submit(t.Context(), "", 1, "true")
	r, err := alike(1, 2)
	require.NoError(t, err)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	answer := w.asks(t.Context(), "jobs", wire.Request{})
	success := func(i int) string {
		id, err := json.Marshal(uint64(answer.Jobs[i].ID))
		require.NoError(t, err)
		return `{"topic":"sched.alloc","payload":{"id":` + string(id) + `,"type":0,"R":` + string(text) + `}}` + "\n"
	}
	require.Equal(t, id, answer.Jobs[1].ID)
	says("allocates", 1, success(0))
	w.starts(t.Context(), answer.Jobs[0].ID)
	says("allocates", 2, success(1)) // another job holds that
	begins("knows", "allocates", 2)
	lines("knows", `"topic":"job-manager.sched-hello","payload"`, "sched.alloc")
	says("knows", 1, "no line\n")
	begins("last", "knows", 1)
}
