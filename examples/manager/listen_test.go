package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/linestest"
	"github.com/joblife/joblife/examples/internal/service"
)

// noSuch asks for what there is not: the answer tells that all before was handled.
const (
	noSuch   = `{"topic":"job-manager.nosuch","matchtag":1}` + "\n"
	noAnswer = `{"topic":"job-manager.nosuch","matchtag":1,"errnum":38,"errstr":"Unknown service method 'job-manager.nosuch'"}` + "\n"
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
	require.Contains(t, stderr, "manager: warning: client 2: line 1: ")
}

func TestTheSocketHasRoomForSoManyClients(t *testing.T) {
	s := newSocket(t, 0)
	for id := range maxClients + 1 {
		s.connect(nil)
		require.Equal(t, id == maxClients, s.closed[id])
	}
	require.Equal(t, `{"topic":"job-manager.error","errnum":16,"errstr":"there are too many clients"}`+"\n", s.hears(maxClients))
	require.Empty(t, s.say(maxClients, submit(1, 16)), "what it says is not heard")
	require.Zero(t, s.p.stats.requests+len(s.p.early))
	require.Len(t, s.p.clients, maxClients)
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
	s := newSocket(t, 4)
	s.say(1, `{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}`)
	require.Equal(t, `{"topic":"job-manager.sched-ready","payload":{"count":0}}`+"\n",
		s.say(1, `{"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}`), "as examples/sched asks")
	s.executor(2)
	s.say(0, `{"topic":"job-manager.config-reload","payload":{"job-manager":{"housekeeping":{"command":["sweep"]}}}}`)
	require.Contains(t, s.say(3, submit(1, 16)), `"errors":[]`)
	require.Contains(t, s.hears(1), `{"topic":"sched.alloc",`)
	s.say(1, "{"+gives(16, 0)+"}")
	require.Contains(t, s.hears(2), `{"topic":"my-exec.start",`)
	s.say(2, "{"+tells(16, "start", "{}")+"}")
	require.Empty(t, s.say(3, `{"topic":"job-manager.update","matchtag":2,"payload":{"id":16,"updates":{"attributes.system.duration":9000}}}`))
	require.Contains(t, s.hears(1), `{"topic":"sched.expiration",`)
	s.leave(1)
	require.Contains(t, s.hears(3), `{"topic":"job-manager.update","matchtag":2,"errnum":113,`)
	require.Contains(t, s.say(3, `{"topic":"job-manager.queue-status","payload":{}}`), "Scheduler is offline")

	s.say(3, raise(3, 16))
	for _, id := range []int{0, 2, 3} {
		require.Contains(t, s.hears(id), `{"event":"job-exception",`, "an event is for all")
	}
	require.Empty(t, s.hears(1), "it is gone")
	s.say(2, "{"+tells(16, "finish", `{"status":15}`)+"}")
	s.say(2, "{"+tells(16, "release", `{"ranks":"all","final":true}`)+"}")
	require.Contains(t, s.hears(0), `{"topic":"rexec.exec",`, "the bridge")
}

// A process that is interrupted while the peer commits still hears the peer, whatever else it
// says, and takes no more requests.
func TestAnInterruptWhileThePeerCommits(t *testing.T) {
	path := linestest.SocketPath(t)
	stop := prog.Start(t, path, "-store=lines")
	conn, say, read := linestest.Dial(t, path)
	commit := ""
	for said := false; commit == ""; {
		m, err := parseMessage([]byte(read()))
		require.NoError(t, err)
		switch m.Topic {
		case "kvs.lookup":
			say(fmt.Sprintf(`{"topic":"kvs.lookup","matchtag":%d,"errnum":2}`+"\n", *m.Matchtag))
			if !said {
				say(submit(1, 16))
				said = true
			}
		case "kvs.commit":
			commit = fmt.Sprintf(`{"topic":"kvs.commit","matchtag":%d}`+"\n", *m.Matchtag)
		}
	}
	ended := make(chan int)
	go func() {
		status, _ := stop()
		ended <- status
	}()
	time.Sleep(100 * time.Millisecond)
	say(submit(2, 17))
	time.Sleep(100 * time.Millisecond)
	say(noSuch)
	time.Sleep(100 * time.Millisecond)
	say(commit)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	require.Equal(t, `{"topic":"job-manager.submit","matchtag":1,"payload":{"errors":[]}}`+"\n", read())
	require.Contains(t, read(), keyCheckpoint, "the last that the peer hears")
	require.Empty(t, read())
	require.Equal(t, lines.ExitOK, <-ended)
}

// Where there is nobody to ask each call fails, however many there are at once: they take one
// place in the inbox.
func TestCallsThatThereIsNobodyFor(t *testing.T) {
	s := newSocket(t, 3)
	s.scheduler(1, "")
	s.executor(2)
	s.say(0, `{"topic":"job-manager.config-reload","payload":{"job-manager":{"prolog":{"command":["prepare"],"per-rank":true}}}}`)
	s.say(0, submit(1, 16))
	give := strings.NewReplacer(`"rank":"0"`, `"rank":"0-99"`, `["n0"]`, `["n[0-99]"]`).Replace("{" + gives(16, 0) + "}")
	s.p.do(func() {
		s.p.handle(s.clients[1], lines.Line{Number: 1, Text: []byte(give)})
		for _, c := range s.clients {
			s.p.leave(c)
		}
	})
	c := s.connect(nil)
	require.Contains(t, names(t, s.say(c, eventlogOf(1, 16))), "prolog-finish")

	s.leave(c)
	for n := range uint64(100) {
		s.p.call(service.Call{Tag: 1<<40 + n, Topic: "rexec.exec"})
	}
	require.Equal(t, 1, s.p.service.Loop.Stats().Waiting)
}
