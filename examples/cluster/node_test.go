package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/manager"
	"github.com/joblife/joblife/examples/cluster/node"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/sched"
)

// A second process of a node would not know the tasks of the first.
func TestANodeRunsOnce(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.manager()
	stop := w.node(0)
	ctx := within(t, 20*time.Second)
	w.over(ctx, w.submit(ctx, "", 1, "true"))
	e, err := engine.Open(ctx, engine.Config{URL: w.url, Instance: "main", Name: "second"})
	require.NoError(t, err)
	defer e.Close()
	again := func() error {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return node.Run(short, node.Config{Engine: e, Dir: filepath.Join(w.dir, "node-0"), Log: w.log})
	}
	require.ErrorContains(t, again(), "another process")
	stop()
	require.NoError(t, again())
}

// What a job writes beyond the limit of its node is dropped, and its last line says so.
func TestTheOutputOfAJobIsLimited(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.manager()
	w.start("node", func(ctx context.Context, e *engine.Engine, log *slog.Logger) error {
		return node.Run(ctx, node.Config{Engine: e, Dir: filepath.Join(w.dir, "node-0"), Log: log, MaxOutput: 100_000})
	})
	ctx := within(t, 20*time.Second)
	const all, note = "head -c 50000 /dev/zero; head -c 50000 /dev/zero >&2; ", "\njoblife: the rest of the output is dropped: it is limited to 100000 bytes\n"
	for command, want := range map[string]string{all + "exit 3": "", all + "yes | head -c 10000000; exit 3": note} {
		id := w.submit(ctx, "", 1, command)
		var out strings.Builder
		w.starts(ctx, id)
		require.NoError(t, w.Client.Output(ctx, id, 0, ctx, &out))
		require.Equal(t, strings.Repeat("\x00", 100_000)+want, out.String())
		job := w.over(ctx, id)
		require.Equal(t, 3<<8, *job.Status)
	}
}

// What a node keeps of a job can be had at once: no request for it is one too many.
func TestAllOutputThatIsKeptCanBeHad(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.nodes()
	ctx := within(t, time.Minute)
	const size = node.DefaultOutput - 1<<20
	id := w.submit(ctx, "", 1, fmt.Sprintf("head -c %d /dev/zero", size))
	w.over(ctx, id)
	ctx = within(t, 30*time.Second) // as cluster log
	var n counts
	require.NoError(t, w.Client.Output(ctx, id, 0, nil, &n))
	require.Equal(t, counts(size), n)
}

// counts counts bytes.
type counts int

func (c *counts) Write(b []byte) (int, error) { *c += counts(len(b)); return len(b), nil }

// A job of which nothing can be noted fails, and does not wait for ever.
func TestAJobFailsWhereItCannotBeNoted(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.nodes()
	ctx := within(t, 20*time.Second)
	w.over(ctx, w.submit(ctx, "", 1, "true"))
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "node-0", "output")))
	job := w.over(ctx, w.submit(ctx, "", 1, "true"))
	require.Equal(t, "FAILED", job.Result)
}

// A submission without a key that is repeated, since its answer was lost, is one job.
func TestARepeatedSubmissionIsOneJob(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	conn := w.connect()
	keys := make(chan string, 2)
	_, err := conn.Subscribe("jl.main.req.*.submit", func(m *nats.Msg) {
		var r wire.Request
		_ = json.Unmarshal(m.Data, &r)
		if keys <- r.Key; len(keys) > 1 {
			_ = m.Respond([]byte(`{"id":1}`))
		}
	})
	require.NoError(t, err)
	require.NoError(t, conn.Flush())
	ctx := within(t, 20*time.Second)
	w.submit(ctx, "", 1, "true")
	key := <-keys
	require.NotEmpty(t, key)
	require.Equal(t, key, <-keys)
}

// specWith is a jobspec of one core with more attributes.
func specWith(system string) []byte {
	return []byte(`{"version":1,"resources":[{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]}],
		"tasks":[{"command":["true"],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":0,` + system + `}}}`)
}

// The name of a job may be long, but a list of them has room in an answer.
func TestLongNamesLeaveTheListReadable(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.manager()
	ctx := within(t, 30*time.Second)
	for range 200 {
		w.asks(ctx, "submit", wire.Request{Jobspec: specWith(`"job":{"name":"` + strings.Repeat("n", 50<<10) + `"}`)})
	}
	ctx = within(t, 8*time.Second)
	answer := w.asks(ctx, "jobs", wire.Request{})
	require.Len(t, answer.Jobs, 200)
}

// Orders of many jobs with large environments arrive, however many start at once on a node.
func TestManyLargeOrdersArrive(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.start("manager", func(ctx context.Context, e *engine.Engine, log *slog.Logger) error {
		nodes, err := alike(1, 256)
		require.NoError(t, err)
		return manager.Run(ctx, manager.Config{Engine: e, Manager: w.cfg, Policy: sched.EASY{}, Nodes: nodes, Log: log})
	})
	const jobs = 200
	for range jobs {
		w.asks(t.Context(), "submit", wire.Request{Jobspec: specWith(`"environment":{"A":"` + strings.Repeat("a", 50<<10) + `"}`)})
	}
	n := newPeer[wire.Do](w, "up.0", "do.0")
	greet(n, wire.Up{Epoch: newPeer[wire.Beat](w, "", "epoch").hears(func(b wire.Beat) bool { return b.Epoch > 0 }).Epoch, Session: "mine"})
	got := 0
	n.hears(func(d wire.Do) bool { got += len(d.Orders); return got == jobs })
}
