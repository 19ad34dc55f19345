package service

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDisconnectOfNobody: a peer that does not say who is gone must not end a session.
func TestDisconnectOfNobody(t *testing.T) {
	d := newDesk(t, Config{})
	d.onlineAs("", "")
	d.submit(0, 1)
	d.run(1)
	d.send("", 4, "drain", ``)
	d.flush()
	d.send("", 0, "disconnect", ``)
	require.Empty(t, d.flush())
	require.Contains(t, d.finish(1, 0), "drain 4: -")
	require.Contains(t, d.submit(0, 2), `> sched.alloc {"id":2,`)
}

// A guest can put any name in front of a message: it says of nobody that it is gone.
func TestDisconnectByAGuest(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	for _, sender := range []string{"s", "x"} {
		gone := by(ownGuest, roleUser, "disconnect", ``)
		gone.Sender = sender
		d.Request(d.now, gone)
		require.Equal(t, "disconnect "+sender+"1: errnum 1 Request requires owner credentials", d.flush())
	}
	d.submit(0, 1)
	require.Contains(t, d.respond("sched.alloc", success(1, 1)), "> job-exec.start ")
}

// TestAnExecutorComesBackUnnoticed: without the disconnect its hello is all there is.
func TestAnExecutorComesBackUnnoticed(t *testing.T) {
	d := newDesk(t, Config{})
	d.onlineAs("", "")
	d.submit(0, 1)
	d.run(1)
	d.send("", 4, "exec-hello", `{"service":"other"}`)
	require.Equal(t, "exec-hello 4: errnum 22 ", d.flush())
	d.send("a", 5, "exec-hello", `{"service":"job-exec"}`)
	require.Equal(t, "exec-hello a5: errnum 22 ", d.flush())
	d.send("", 6, "exec-hello", `{"service":"job-exec"}`)
	out := d.flush()
	require.Contains(t, out, "exec-hello 6: -\n> job-exec.start {\"id\":1,")
	require.Contains(t, out, `"reattach":true`)
}

// TestDisconnectDuringAnUpdate: a client that is gone gets no answer, and the update goes on.
func TestDisconnectDuringAnUpdate(t *testing.T) {
	s := updating(t)
	out := s.drive(from(anOwner, "update", queue(waitingJob, `"batch"`)))
	require.Len(t, out.Calls, 1)
	gone := from(anOwner, "disconnect", ``)
	gone.Matchtag = 0
	s.drive(gone)
	require.NoError(t, s.Respond(start, Response{Topic: out.Calls[0].Topic, Tag: out.Calls[0].Tag}))
	out = s.collect()
	require.Empty(t, out.Answers)
	require.NotEmpty(t, logged(t, out))
}

// TestStreamsAreAskedFor: who takes one answer only cannot read a stream.
func TestStreamsAreAskedFor(t *testing.T) {
	d := newDesk(t, Config{})
	for topic, want := range map[string]string{
		"events-journal": "events-journal a1: errnum 71 job-manager.events requires streaming RPC flag",
		"sched-hello":    "sched-hello a1: errnum 71 ",
	} {
		d.Request(d.now, Request{
			Topic: "job-manager." + topic, Sender: "a", Matchtag: 1, Rolemask: roleOwner, Single: true, Payload: json.RawMessage(`{}`),
		})
		require.Equal(t, want, d.flush())
	}
	require.Zero(t, d.sched.phase)
	require.Equal(t, `events-journal a1: {"id":-1,"events":[]}`, d.ask(1, "events-journal", `{}`))
}
