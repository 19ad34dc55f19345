package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/linestest"
)

// noSuch asks for what there is not: the answer tells that all before was handled.
const (
	noSuch   = `{"topic":"job-manager.nosuch","matchtag":1}` + "\n"
	noAnswer = `{"topic":"job-manager.nosuch","matchtag":1,"errnum":38}` + "\n"
)

func TestManyClientsHaveTheirOwnAnswers(t *testing.T) {
	path := linestest.SocketPath(t)
	stop := prog.Start(t, path)

	_, say, read := linestest.Dial(t, path)
	_, sayToo, readToo := linestest.Dial(t, path)
	say(noSuch)
	require.Equal(t, noAnswer, read())
	sayToo("{\n" + submit(1, 16))
	require.Contains(t, readToo(), `"errnum":71`)
	require.Equal(t, `{"topic":"job-manager.submit","matchtag":1,"payload":{"errors":[]}}`+"\n", readToo())
	say(raise(1, 16) + noSuch)
	require.Equal(t, `{"topic":"job-manager.raise","matchtag":1}`+"\n", read())
	require.Contains(t, read(), `{"event":"job-exception",`, "an event comes to all")
	require.Contains(t, readToo(), `{"event":"job-exception",`)
	require.Equal(t, noAnswer, read())
	status, stderr := stop()
	require.Equal(t, lines.ExitOK, status)
	require.Empty(t, readToo(), "the end of all ends each client")
	require.Contains(t, stderr, "manager: client 2: line 1: ")
}

func TestTheSocketHasRoomForSoManyClients(t *testing.T) {
	p, err := newProcess(options{Options: lines.Options{Now: 1}}, io.Discard)
	require.NoError(t, err)
	for id := range maxClients + 1 {
		var out bytes.Buffer
		closed := false
		c := &client{id: id + 1, out: &out, close: func() { closed = true }}
		p.take(input{client: c})
		require.Equal(t, id == maxClients, closed)
		if closed {
			p.take(input{client: c, line: lines.Line{Number: 1, Text: []byte(submit(1, 16))}})
			require.Zero(t, p.stats.requests+len(p.early), "what it says is not heard")
			require.Equal(t, `{"topic":"job-manager.error","errnum":16,"errstr":"there are too many clients"}`+"\n", out.String())
		}
	}
	require.Len(t, p.clients, maxClients)
}

// A client that asks and does not read is cut off, and holds up nobody.
func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	here, there := net.Pipe()
	c := newClient(1, here, nil)
	go c.out.(*lines.Outbox).Run()
	text := bytes.Repeat([]byte("x"), 1<<20)
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, lines.Room>>20+3)
		_, err = c.out.Write(text)
	}
	require.ErrorContains(t, err, "it does not read")
	c.broken(err)
	_, err = io.Copy(io.Discard, there)
	require.NoError(t, err)
}

// Calls go to those who said hello, and all others to the oldest client. When one goes, what
// it was asked fails, and its session ends.
func TestCallsGoToWhomTheyConcern(t *testing.T) {
	var o options
	_, ok := o.program().Parse([]string{"-now=1000"}, io.Discard, io.Discard)
	require.True(t, ok)
	p, err := newProcess(o, io.Discard)
	require.NoError(t, err)
	p.start()
	var out [4]strings.Builder
	var clients []*client
	for id := range out {
		c := &client{id: id + 1, out: &out[id], close: func() {}}
		clients = append(clients, c)
		p.take(input{client: c})
	}
	say := func(id int, text string) {
		t.Helper()
		for i := range out {
			out[i].Reset()
		}
		p.take(input{client: clients[id], line: lines.Line{Number: 1, Text: []byte(text)}})
	}
	say(1, `{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}`)
	say(1, `{"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}`)
	require.Equal(t, `{"topic":"job-manager.sched-ready","payload":{"count":0}}`+"\n", out[1].String(), "as examples/sched asks")
	say(2, `{"topic":"job-manager.exec-hello","payload":{"service":"my-exec"}}`)
	say(0, `{"topic":"job-manager.config-reload","payload":{"job-manager":{"housekeeping":{"command":["sweep"]}}}}`)
	say(3, submit(1, 16))
	require.Contains(t, out[3].String(), `"errors":[]`)
	require.Contains(t, out[1].String(), `{"topic":"sched.alloc",`)
	say(1, `{"topic":"sched.alloc","payload":{"id":16,"type":0,"R":`+fmt.Sprintf(resources, 0)+`}}`)
	require.Contains(t, out[2].String(), `{"topic":"my-exec.start",`)
	say(2, `{"topic":"my-exec.start","payload":{"id":16,"type":"start","data":{}}}`)
	say(3, `{"topic":"job-manager.update","matchtag":2,"payload":{"id":16,"updates":{"attributes.system.duration":9000}}}`)
	require.Contains(t, out[1].String(), `{"topic":"sched.expiration",`)
	require.Empty(t, out[3].String())
	p.take(input{client: clients[1], line: lines.Line{Err: io.EOF}})
	require.Contains(t, out[3].String(), `{"topic":"job-manager.update","matchtag":2,"errnum":113,`)
	say(3, `{"topic":"job-manager.queue-status","payload":{}}`)
	require.Contains(t, out[3].String(), "Scheduler is offline")

	say(3, raise(3, 16))
	for _, id := range []int{0, 2, 3} {
		require.Contains(t, out[id].String(), `{"event":"job-exception",`, "an event is for all")
	}
	require.Empty(t, out[1].String(), "it is gone")
	say(2, `{"topic":"my-exec.start","payload":{"id":16,"type":"finish","data":{"status":15}}}`)
	say(2, `{"topic":"my-exec.start","payload":{"id":16,"type":"release","data":{"ranks":"all","final":true}}}`)
	require.Contains(t, out[0].String(), `{"topic":"rexec.exec",`, "the bridge")
}
