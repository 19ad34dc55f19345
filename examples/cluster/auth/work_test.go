package auth

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/wire"
)

func (k *client) js() jetstream.JetStream {
	k.t.Helper()
	js, err := jetstream.New(k.Conn)
	require.NoError(k.t, err)
	return js
}

// hear takes the next message of s.
func (k *client) hear(s *nats.Subscription) *nats.Msg {
	k.t.Helper()
	m, err := s.NextMsg(patience)
	require.NoError(k.t, err, "%s", k.refusals())
	return m
}

// unrefused requires that the server refused nothing, of all up to a last message that it does.
func (k *client) unrefused() {
	k.t.Helper()
	k.send("last", "", "")
	require.Equal(k.t, 0, within(patience, func() bool { return strings.Contains(k.refusals(), `"last"`) }))
	require.Equal(k.t, 1, strings.Count(k.refusals(), "Violation for"), "%s", k.refusals())
}

func TestAManagerDoesItsWork(t *testing.T) {
	strict.restore(t)
	k := strict.client(t, Manager())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	js := k.js()

	kv, err := js.KeyValue(ctx, inst.Bucket())
	require.NoError(t, err)
	w, err := kv.Watch(ctx, "active")
	require.NoError(t, err)
	seen := <-w.Updates()
	require.Equal(t, "manager-a", string(seen.Value()))
	require.NoError(t, w.Stop())
	lease, err := kv.Get(ctx, "active")
	require.NoError(t, err)
	_, err = kv.Update(ctx, "active", []byte("manager-b"), lease.Revision())
	require.NoError(t, err)
	_, err = kv.Update(ctx, "active", []byte("manager-c"), lease.Revision())
	require.Error(t, err, "it is fenced")

	fence, err := js.Publish(ctx, inst.Subject("log.fence"), nil)
	require.NoError(t, err)
	_, err = js.Publish(ctx, inst.Subject("log.rec"), []byte("one"), jetstream.WithExpectLastSequence(fence.Sequence))
	require.NoError(t, err)
	log, err := js.Stream(ctx, inst.Log())
	require.NoError(t, err)
	c, err := log.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: fence.Sequence + 1})
	require.NoError(t, err)
	m, err := c.Next()
	require.NoError(t, err)
	require.Equal(t, "one", string(m.Data()))
	last, err := log.GetMsg(ctx, fence.Sequence+1)
	require.NoError(t, err)
	require.Equal(t, "one", string(last.Data))
	require.NoError(t, log.Purge(ctx, jetstream.WithPurgeSequence(fence.Sequence)))

	snaps, err := js.Stream(ctx, inst.Snapshots())
	require.NoError(t, err)
	_, err = snaps.GetLastMsgForSubject(ctx, inst.Subject("snap", 1))
	require.NoError(t, err)

	standby := strict.client(t, Manager())
	beats := standby.listen(inst.Subject("epoch"))
	k.send(inst.Subject("epoch"), "", "beat")
	standby.hear(beats)
	pings := k.listen(inst.Subject("ping", "*"))
	standby.send(inst.Subject("ping", "a"), "", "")
	k.hear(pings)
	k.send("$JS.FC."+inst.Log()+".x.y", "", "")
	k.unrefused()
}

func TestAReaderDoesItsWork(t *testing.T) {
	strict.restore(t)
	k := strict.client(t, Reader())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	js := k.js()
	log, err := js.Stream(ctx, inst.Log())
	require.NoError(t, err)
	c, err := log.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	_, err = c.Next()
	require.NoError(t, err)
	_, err = c.Info(ctx)
	require.NoError(t, err)
	archive, err := js.Stream(ctx, inst.Archive())
	require.NoError(t, err)
	_, err = archive.GetLastMsgForSubject(ctx, inst.Subject("archive", 1, "f1"))
	require.NoError(t, err)
	require.NoError(t, archive.Purge(ctx, jetstream.WithPurgeSubject(inst.Subject("archive", 1, "f1"))))
	snaps, err := js.Stream(ctx, inst.Snapshots())
	require.NoError(t, err)
	require.NoError(t, snaps.Purge(ctx, jetstream.WithPurgeKeep(1)))
	keys, err := js.KeyValue(ctx, inst.Bucket())
	require.NoError(t, err)
	_, err = keys.Put(ctx, "snapshot", []byte("{}"))
	require.NoError(t, err)
	_, err = keys.Get(ctx, "snapshot")
	require.NoError(t, err)
	require.NoError(t, log.Purge(ctx, jetstream.WithPurgeSequence(1)))
	beats := k.listen(inst.Subject("epoch"))
	strict.client(t, Manager()).send(inst.Subject("epoch"), "", "beat")
	k.hear(beats)
	k.unrefused()
}

func TestANodeDoesItsWork(t *testing.T) {
	node, manager := strict.client(t, Node(1)), strict.client(t, Manager())
	orders, beats := node.listen(inst.Subject("do", 1)), node.listen(inst.Subject("epoch"))
	reports := manager.listen(inst.Subject("up", "*"))
	manager.send(inst.Subject("do", 1), "", "order")
	manager.send(inst.Subject("epoch"), "", "beat")
	node.hear(orders)
	node.hear(beats)
	node.send(inst.Subject("up", 1), "", "report")
	require.Equal(t, inst.Subject("up", 1), manager.hear(reports).Subject)
	node.unrefused()
	manager.unrefused()
}

func TestASchedulerDoesItsWork(t *testing.T) {
	scheduler, manager := strict.client(t, Sched()), strict.client(t, Manager())
	orders, beats := scheduler.listen(inst.Subject("do", "sched")), scheduler.listen(inst.Subject("epoch"))
	decisions := manager.listen(inst.Subject("up", "*"))
	manager.send(inst.Subject("do", "sched"), "", "request")
	manager.send(inst.Subject("epoch"), "", "beat")
	scheduler.hear(orders)
	scheduler.hear(beats)
	scheduler.send(inst.Subject("up", "sched"), "", "response")
	require.Equal(t, inst.Subject("up", "sched"), manager.hear(decisions).Subject)
	scheduler.unrefused()
	manager.unrefused()
}

func TestAUserIsServed(t *testing.T) {
	for verb, by := range map[string]ID{
		"submit": Manager(), "cancel": Manager(), "jobs": Manager(),
		wire.ReaderVerb + "." + wire.VerbHistory: Reader(), wire.ReaderVerb + "." + wire.VerbArchived: Reader(), OutputVerb + ".1": Node(1),
	} {
		t.Run(by.String()+" answers "+verb, func(t *testing.T) {
			server, user := strict.client(t, by), strict.client(t, User(10))
			_, err := server.Subscribe(inst.Subject("req", "*", verb), func(m *nats.Msg) {
				if wire.Reply(10, m.Reply) {
					_ = m.Respond([]byte("answer"))
				}
			})
			require.NoError(t, err)
			require.NoError(t, server.flush())
			m, err := user.Request(inst.Subject("req", 10, verb), nil, patience)
			require.NoError(t, err, "%s %s", server.refusals(), user.refusals())
			require.Equal(t, "answer", string(m.Data))
			server.unrefused()
			user.unrefused()
		})
	}
	t.Run("the manager tells of an event", func(t *testing.T) {
		manager, user := strict.client(t, Manager()), strict.client(t, User(10))
		events := user.listen(inst.Subject("event", 10))
		manager.send(inst.Subject("event", 10), "", "event")
		user.hear(events)
	})
	t.Run("nobody is there, which it hears at once", func(t *testing.T) {
		_, err := strict.client(t, User(10)).Request(inst.Subject("req", 10, "nothing"), nil, patience)
		require.ErrorIs(t, err, nats.ErrNoResponders)
	})
}

// TestTheDeputyIsNotConfused lets a user ask with the reply subject of another. A deputy that
// answers without a look is the control.
func TestTheDeputyIsNotConfused(t *testing.T) {
	for _, deputy := range []ID{Manager(), Reader(), Node(1)} {
		for _, careful := range []bool{true, false} {
			verb := map[ID]string{Manager(): "submit", Reader(): "reader.history", Node(1): OutputVerb + ".1"}[deputy]
			server, user, victim := strict.client(t, deputy), strict.client(t, User(1)), strict.client(t, User(10))
			asked := server.listen(inst.Subject("req", "*", verb))
			inbox := victim.listen(wire.Inbox(10) + ".x")
			user.send(inst.Subject("req", 1, verb), wire.Inbox(10)+".x", "")
			if m := server.hear(asked); !careful || wire.Reply(1, m.Reply) {
				require.NoError(t, m.Respond([]byte("forged")))
			}
			require.NoError(t, server.flush())
			require.NoError(t, victim.flush())
			require.Equal(t, !careful, got(inbox)(), "%s careful: %t", deputy, careful)
		}
	}
}

// TestAHastyDeputySpeaksOnlyToUsers lets those who answer answer wherever a user wants: the
// server stops what is no inbox of a user.
func TestAHastyDeputySpeaksOnlyToUsers(t *testing.T) {
	server := strict.client(t, Reader())
	asked := server.listen(inst.Subject("req", "*", "reader.history"))
	for _, reply := range []string{inst.Subject("log.rec"), inst.Subject("do", 2), inst.Subject("up", 2), inst.Subject("req", 10, "submit"), "_INBOX_manager.x"} {
		strict.client(t, User(1)).send(inst.Subject("req", 1, "reader.history"), reply, "")
		require.NoError(t, server.hear(asked).Respond(nil))
		require.NoError(t, server.flush())
		require.Equal(t, 0, within(patience, func() bool { return strings.Contains(server.refusals(), `"`+reply+`"`) }), reply)
	}
}

// TestWhatRemains shows what the documentation admits. If it fails, the server has become better.
func TestWhatRemains(t *testing.T) {
	strict.restore(t)
	k, node := strict.client(t, Reader()), strict.client(t, Node(2))
	orders := node.listen(inst.Subject("do", 2))
	consumes(inst.Log(), inst.Subject("do", 2))(strict, k)
	for string(node.hear(orders).Data) != "record" { // JetStream sends to whatever subject a reader names
	}
	require.NoError(t, k.js().DeleteConsumer(t.Context(), inst.Log(), "spy"))
}

func TestReply(t *testing.T) {
	for reply, want := range map[string]bool{
		"_INBOX.1.x":          true,
		"_INBOX.1.x.y":        true,
		"":                    false,
		"_INBOX.1":            false,
		"_INBOX.1.":           false,
		"_INBOX.10.x":         false,
		"_INBOX.01.x":         false,
		"_INBOX.1x.x":         false,
		"_INBOX.*.x":          false,
		"_INBOX.1.>":          false,
		"_INBOX.1.*":          false,
		"_INBOX.1.x y":        false,
		"_INBOX.1.x\r\n":      false,
		"_inbox.1.x":          false,
		"x._INBOX.1.x":        false,
		"_INBOX_1.x":          false,
		"_INBOX_manager.x":    false,
		"jl.main.do.1":        false,
		"jl.main.req.1.jobs":  false,
		"$JS.API.STREAM.LIST": false,
	} {
		require.Equal(t, want, wire.Reply(1, reply), "%q", reply)
	}
	require.True(t, wire.Reply(0, wire.Inbox(0)+".x"))
	require.True(t, wire.Reply(1<<32-1, wire.Inbox(1<<32-1)+".x"))
}
