package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/node"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// A peer is one side of a session, spoken by hand.
type peer[M any] struct {
	*world
	conn *nats.Conn
	to   string
	sub  *nats.Subscription
}

func newPeer[M any](w *world, to, from string) *peer[M] {
	conn, err := nats.Connect(w.url)
	require.NoError(w, err)
	w.Cleanup(conn.Close)
	sub, err := conn.SubscribeSync("jl.main." + from)
	require.NoError(w, err)
	require.NoError(w, conn.Flush())
	return &peer[M]{w, conn, "jl.main." + to, sub}
}

func (p *peer[M]) say(v any) {
	text, err := json.Marshal(v)
	require.NoError(p, err)
	require.NoError(p, p.conn.Publish(p.to, text))
}

// listened says something, and whether somebody listened: if nobody did, the server says so
// before it answers Flush.
func (p *peer[M]) listened(text string) bool {
	sub, err := p.conn.SubscribeSync(nats.NewInbox())
	require.NoError(p, err)
	defer func() { _ = sub.Unsubscribe() }()
	require.NoError(p, p.conn.PublishRequest(p.to, sub.Subject, []byte(text)))
	require.NoError(p, p.conn.Flush())
	n, _, err := sub.Pending()
	require.NoError(p, err)
	return n == 0
}

// hears waits for a message for which want is true.
func (p *peer[M]) hears(want func(M) bool) (m M) {
	for end := time.Now().Add(10 * time.Second); ; {
		msg, err := p.sub.NextMsg(time.Until(end))
		require.NoError(p, err, "it never came")
		m = *new(M)
		require.NoError(p, json.Unmarshal(msg.Data, &m))
		if want(m) {
			return m
		}
	}
}

// greet begins a session: a hello has to answer what the manager asked last.
func greet(n *peer[wire.Do], up wire.Up) {
	up.Hello = true
	n.say(up)
	up.Answer = n.hears(func(d wire.Do) bool { return d.Hello }).Ask
	n.say(up)
}

// The manager asks for another session when it misses something, or does not know the session.
func TestAManagerSeesWhatItMissed(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.manager()
	n := newPeer[wire.Do](w, "up.0", "do.0")
	beats := newPeer[wire.Beat](w, "", "epoch")
	epoch := beats.hears(func(b wire.Beat) bool { return b.Epoch > 0 }).Epoch
	hello := func(d wire.Do) bool { return d.Hello }
	for name, up := range map[string]wire.Up{
		"an unknown session":                  {Epoch: epoch, Session: "other"},
		"an earlier epoch":                    {Epoch: epoch - 1, Session: "mine"},
		"a beat shows that a status was lost": {Epoch: epoch, Session: "mine", Seq: 1},
		"a hello that comes late":             {Epoch: epoch, Session: "late", Hello: true, Answer: "asked long ago"},
		"a hello that was not asked for":      {Epoch: epoch, Session: "late", Hello: true},
		"a gap":                               {Epoch: epoch, Session: "mine", Seq: 2, Tasks: []exec.TaskStatus{{Task: exec.Task{Job: 1}, State: exec.TaskRunning}}},
		"a status that cannot be":             {Epoch: epoch, Session: "mine", Seq: 1, Tasks: []exec.TaskStatus{{Task: exec.Task{Job: 1}, State: "odd"}}},
	} {
		t.Run(name, func(t *testing.T) {
			greet(n, wire.Up{Epoch: epoch, Session: "mine"})
			n.say(up)
			n.hears(hello)
		})
	}
	t.Run("a beat shows that an order was lost", func(t *testing.T) {
		greet(n, wire.Up{Epoch: epoch, Session: "fourth",
			Tasks: []exec.TaskStatus{{Task: exec.Task{Job: 7}, State: exec.TaskReleased}}}) // which the manager lets it forget
		order := n.hears(func(d wire.Do) bool { return d.Session == "fourth" && len(d.Orders) > 0 })
		require.Equal(t, exec.CommandForget, order.Orders[0].Kind)
		n.say(wire.Up{Epoch: epoch, Session: "fourth"})
		check := n.hears(func(d wire.Do) bool { return d.Session == "fourth" && len(d.Orders) == 0 })
		require.Equal(t, order.Seq, check.Seq)
	})
}

// A node with more tasks than a message has room for says hello in parts.
func TestALargeHelloArrives(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.start("node", func(ctx context.Context, e *engine.Engine, log *slog.Logger) error {
		return node.Run(ctx, node.Config{Engine: e, Log: log, Simulate: true})
	})
	m := newPeer[wire.Up](w, "do.0", "up.0")
	w.eventually(func() bool { return m.listened(`{"hello":true}`) }, "no node")
	session, sent := m.hears(func(u wire.Up) bool { return u.Hello }).Session, uint64(0)
	tasks := 0
	for sent < 180 { // 11 MB
		var orders []wire.Order
		for range 16 {
			tasks++
			orders = append(orders, wire.Order{Kind: exec.CommandStart, Task: exec.Task{Job: jobid.ID(tasks), Attempt: 1,
				Action: jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: strings.Repeat("d", 4000)}}})
		}
		sent++
		m.say(wire.Do{Session: session, Seq: sent, Orders: orders})
	}
	m.hears(func(u wire.Up) bool { return u.Session == session && u.Got == sent })
	orders := newPeer[wire.Do](w, "", "do.0")
	w.manager()
	orders.hears(func(d wire.Do) bool { // for no job has them
		for _, o := range d.Orders {
			require.Equal(t, exec.CommandForget, o.Kind)
			tasks--
		}
		return tasks == 0
	})
}

// Two machines that were given one rank are not one node: the first has it until it is down.
func TestASecondNodeOfARankIsIgnored(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.manager()
	n := newPeer[wire.Do](w, "up.0", "do.0")
	epoch := newPeer[wire.Beat](w, "", "epoch").hears(func(b wire.Beat) bool { return b.Epoch > 0 }).Epoch
	greet(n, wire.Up{Epoch: epoch, Node: "first", Session: "mine"})
	n.say(wire.Up{Epoch: epoch, Node: "second", Session: "other", Hello: true})
	n.say(wire.Up{Epoch: epoch, Node: "first", Session: "mine", Seq: 1,
		Tasks: []exec.TaskStatus{{Task: exec.Task{Job: 7}, State: exec.TaskReleased}}}) // which the manager lets it forget
	require.Equal(t, "mine", n.hears(func(d wire.Do) bool { return d.Hello || len(d.Orders) > 0 }).Session)
	second := wire.Up{Epoch: epoch, Node: "second", Session: "other", Hello: true, Tasks: []exec.TaskStatus{{Task: exec.Task{Job: 7}, State: exec.TaskReleased}}}
	var d wire.Do
	require.Eventually(t, func() bool {
		if second.Answer == "" || d.Hello {
			second.Answer = d.Ask
			n.say(second)
		}
		d = wire.Do{}
		if m, err := n.sub.NextMsg(50 * time.Millisecond); err == nil {
			require.NoError(t, json.Unmarshal(m.Data, &d))
		}
		return d.Session == "other"
	}, 15*time.Second, 50*time.Millisecond, "it has the rank when the first is down")
}

// A node begins another session when it misses an order, and obeys no earlier epoch.
func TestANodeSeesWhatItMissed(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.node(0)
	m := newPeer[wire.Up](w, "do.0", "up.0")
	var session string
	begins := func(epoch uint64) func(wire.Up) bool {
		return func(u wire.Up) bool { return u.Hello && u.Epoch == epoch && u.Session != session }
	}
	start := func(id jobid.ID) []wire.Order {
		return []wire.Order{{Kind: exec.CommandStart, Task: exec.Task{Job: id}, Args: []string{"true"}, Job: &wire.Job{UserID: w.cfg.Owner}}}
	}
	next := func(epoch uint64) { session = m.hears(begins(epoch)).Session }
	come := time.NewTicker(50 * time.Millisecond)
	defer come.Stop()
	for n := 0; n == 0; n, _, _ = m.sub.Pending() { // until the node listens
		m.say(wire.Do{Epoch: 5, Hello: true})
		<-come.C
	}
	next(5)
	m.say(wire.Do{Epoch: 5, Session: session, Seq: 2, Orders: start(2)})
	next(5)
	m.say(wire.Do{Epoch: 5, Session: session}) // it has missed none
	m.say(wire.Do{Epoch: 5, Session: session, Seq: 1})
	next(5)
	m.say(wire.Do{Epoch: 6, Session: session, Seq: 1, Orders: start(3)})
	next(6)
	m.say(wire.Do{Epoch: 5, Session: session, Seq: 1, Orders: start(4)})
	m.say(wire.Do{Epoch: 6, Session: "other", Seq: 1, Orders: start(5)})
	m.say(wire.Do{Epoch: 6, Session: session, Seq: 1, Orders: start(6)})
	m.hears(func(u wire.Up) bool {
		for _, st := range u.Tasks {
			require.Equal(t, jobid.ID(6), st.Task.Job, "only what was ordered in this session runs")
		}
		return len(u.Tasks) > 0 && u.Tasks[0].State == exec.TaskReleased
	})
}

// A node that restarts ignores a manager that was paused since before it heard of the next one.
func TestANodeRemembersItsEpoch(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	m := newPeer[wire.Up](w, "do.0", "up.0")
	life := func(epochs ...uint64) (said string) {
		w.eventually(func() bool { return !m.listened(`{}`) }, "the last life goes on")
		var log lockedText
		defer w.start("node", func(ctx context.Context, e *engine.Engine, _ *slog.Logger) error {
			return node.Run(ctx, node.Config{Engine: e, Dir: filepath.Join(w.dir, "node-0"), Log: slog.New(slog.NewTextHandler(&log, nil))})
		})()
		w.eventually(func() bool { return m.listened(`{}`) }, "no node")
		for _, epoch := range epochs {
			m.say(wire.Do{Epoch: epoch, Hello: true})
		}
		m.hears(func(u wire.Up) bool { return u.Hello && u.Epoch == epochs[len(epochs)-1] })
		return log.String()
	}
	const late = `earlier epoch: 4, and 5 is active`
	require.NotContains(t, life(5), late)
	require.Contains(t, life(4, 5), late)
	require.NotContains(t, life(1<<64-1), "epoch: 1844")
	require.Contains(t, life(5, 1<<64-1), "epoch: 5, and 1844")
}

// A node that restarts comes back to the manager that it knows already.
func TestANodeComesBackToItsManager(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.manager()
	ctx := within(t, 15*time.Second)
	for range 2 {
		stop := w.node(0)
		w.over(ctx, w.submit(ctx, "", 1, "true"))
		stop()
	}
}

// A lockedText is a log.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An answer goes only to the inbox of the user of the subject, whatever the reply subject says.
func TestAnAnswerGoesOnlyToItsUser(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.manager()
	w.asks(t.Context(), "status", wire.Request{})
	conn := w.connect()
	all, err := conn.SubscribeSync(">")
	require.NoError(t, err)
	mine := wire.Inbox(7) + ".x"
	for _, reply := range []string{wire.Inbox(8) + ".x", wire.Inbox(77) + ".x", "jl.main.do.0", wire.Inbox(7), mine} {
		require.NoError(t, conn.PublishRequest("jl.main.req.7.nodes", reply, []byte(`{"protocol":1}`)))
	}
	for got := ""; got != mine; { // the last that was asked is answered
		m, err := all.NextMsg(10 * time.Second)
		require.NoError(t, err)
		if strings.HasPrefix(m.Subject, "_INBOX.7") && m.Reply == "" {
			got = m.Subject
		}
		require.NotContains(t, []string{wire.Inbox(8) + ".x", wire.Inbox(77) + ".x", wire.Inbox(7)}, m.Subject)
	}
	for range 20 { // time for others to be answered
		w.asks(t.Context(), "nodes", wire.Request{})
	}
	for n, _, _ := all.Pending(); n > 0; n, _, _ = all.Pending() {
		m, err := all.NextMsg(time.Second)
		require.NoError(t, err)
		require.NotContains(t, []string{wire.Inbox(8) + ".x", wire.Inbox(77) + ".x", wire.Inbox(7)}, m.Subject)
		require.False(t, m.Subject == "jl.main.do.0" && strings.Contains(string(m.Data), "nodes"), "an answer as an order")
	}
}

// Strangers and careless nodes say anything: nothing panics, and a job runs afterwards.
func TestAnythingMayBeSaid(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.nodes()
	conn := w.connect()
	var texts [][]byte
	for _, v := range []any{
		wire.Up{Epoch: 1, Session: "s", Hello: true, Tasks: []exec.TaskStatus{{Task: exec.Task{Job: 3}, State: exec.TaskRunning}}},
		wire.Up{Epoch: 1, Session: "s", Seq: 1, Tasks: []exec.TaskStatus{{Task: exec.Task{Job: 3}, State: exec.TaskReleased, Lines: []string{"x"}}}},
		wire.Request{Protocol: 1, ID: 1, Ranks: idset.Of(0), Force: true, Jobspec: []byte(`{"version":1}`)},
		wire.Request{Protocol: 1}, wire.Request{}, wire.OutputRequest{ID: 1, Offset: -1}, wire.Beat{}, nil,
	} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		texts = append(texts, text, text[:len(text)/2])
	}
	subjects := []string{"up.0", "up.7", "up.x", "req.0.output.0", "req.7.nodes", "req.x.nodes", "req.7.what", "do.0"}
	for verb := range wire.Verbs {
		if verb != "takeover" {
			subjects = append(subjects, "req.0."+verb, "req.7."+verb)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		text := slices.Clone(texts[r.IntN(len(texts))])
		if len(text) > 0 && r.IntN(2) == 0 {
			text[r.IntN(len(text))] = byte(r.IntN(256))
		}
		subject := subjects[r.IntN(len(subjects))]
		reply := wire.Inbox(uint32(7*r.IntN(2))) + ".x"
		require.NoError(t, conn.PublishRequest("jl.main."+subject, reply, text))
	}
	require.NoError(t, conn.Flush())
	ctx := within(t, time.Minute)
	w.asks(ctx, "resume", wire.Request{Ranks: idset.Of(0)})
	job := w.over(ctx, w.submit(ctx, "", 1, "true"))
	require.Equal(t, "COMPLETED", job.Result)
}

// A flood of one user has answers up to a limit; the owner has none. A request of another
// protocol is refused.
func TestAFloodHasALimit(t *testing.T) {
	w := begin(t, 1, perilog.Config{})
	w.manager()
	w.asks(t.Context(), "nodes", wire.Request{})
	conn := w.connect()
	answers := func(uid uint32, protocol int) (texts []string) {
		sub, err := conn.SubscribeSync(wire.Inbox(uid) + ".*")
		require.NoError(t, err)
		defer sub.Unsubscribe()
		for range 3000 {
			require.NoError(t, conn.PublishRequest(fmt.Sprint("jl.main.req.", uid, ".job"), wire.Inbox(uid)+".x", fmt.Appendf(nil, `{"protocol":%d}`, protocol)))
		}
		for {
			m, err := sub.NextMsg(time.Second)
			if err != nil {
				return texts
			}
			texts = append(texts, string(m.Data))
		}
	}
	require.Len(t, answers(w.cfg.Owner, 1), 3000)
	guest := answers(7, 1)
	require.GreaterOrEqual(t, len(guest), 400)
	require.Less(t, len(guest), 1500)
	for _, text := range answers(w.cfg.Owner, 2) {
		require.Contains(t, text, "protocol 2: this manager has 1")
	}
}

// A late word of the session before may come between two parts of a hello: over another server, or
// of a second node of the rank.
func TestALateWordBetweenTwoPartsOfAHello(t *testing.T) {
	t.Parallel()
	w := begin(t, 1, perilog.Config{})
	w.manager()
	n := newPeer[wire.Do](w, "up.0", "do.0")
	epoch := newPeer[wire.Beat](w, "", "epoch").hears(func(b wire.Beat) bool { return b.Epoch > 0 }).Epoch
	greet(n, wire.Up{Epoch: epoch, Session: "a"})
	ctx := within(t, 30*time.Second)
	id := w.submit(ctx, "", 1, "sleep 1000")
	start := n.hears(func(d wire.Do) bool { return d.Session == "a" && len(d.Orders) > 0 })
	runs := []exec.TaskStatus{{Task: start.Orders[0].Task, State: exec.TaskRunning}}
	n.say(wire.Up{Epoch: epoch, Session: "a", Seq: 1, Got: 1, Tasks: runs})
	w.starts(ctx, id)

	n.say(wire.Up{Epoch: epoch, Session: "a", Seq: 9, Got: 1}) // it is asked for another session
	part := wire.Up{Epoch: epoch, Session: "b", Hello: true, Answer: n.hears(func(d wire.Do) bool { return d.Hello }).Ask, Parts: 2, Tasks: runs}
	n.say(part)
	n.say(wire.Up{Epoch: epoch, Session: "a", Seq: 1, Got: 1})
	part.Tasks = []exec.TaskStatus{{Task: exec.Task{Job: 7}, State: exec.TaskReleased}}
	n.say(part)
	n.hears(func(d wire.Do) bool { return d.Session == "b" && len(d.Orders) > 0 }) // to forget job 7
	job, err := w.Job(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "RUN", job.State, "its node never said that it ended")
}
