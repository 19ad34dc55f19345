package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/linestest"
)

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// I12: clients that begin lines and do not end them do not fill the memory, and hold up nobody.
func TestHalfLinesOfManyClientsHaveALimit(t *testing.T) {
	path := linestest.SocketPath(t)
	stop := prog.Start(t, path)
	half := append([]byte(`{"topic":"job-manager.memo","payload":{"memo":"`), bytes.Repeat([]byte("x"), 15<<20)...)
	before := heap()
	for range 40 {
		conn, _, _ := linestest.Dial(t, path)
		_, err := conn.Write(half)
		require.NoError(t, err)
	}
	require.Less(t, heap()-before, int64(2*maxUnread), "the half lines")
	_, say, read := linestest.Dial(t, path)
	say(noSuch)
	require.Equal(t, noAnswer, read())
	say(strings.Replace(noSuch, "}", `,"x":"`+strings.Repeat("x", 10<<20)+`"}`, 1))
	require.Contains(t, read(), `"errnum":90,"errstr":"line is longer than 65536 bytes, for which there is no room now, and was skipped"`)
	say(noSuch)
	require.Equal(t, noAnswer, read())
	status, stderr := stop()
	require.Zero(t, status, stderr)
}

// I12: clients that ask and do not read do not fill the memory, neither many of them nor one
// that opens many streams. Who reads is served.
func TestWhatClientsDoNotReadHasALimit(t *testing.T) {
	for name, c := range map[string]struct {
		clients, lines int
		limit          int64
		line           func(n int) string
	}{
		"many clients": {8, 50, maxUnsent + 64<<20, func(n int) string { return eventlogOf(n, 16) }},
		"many streams": {1, 1000, 128 << 20, func(n int) string {
			return fmt.Sprintf(`{"topic":"job-manager.events-journal","sender":"s%d","matchtag":%[1]d,"payload":{}}`+"\n", n)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.clients > 1 && os.Getenv("JOBLIFE_DEEP") == "" {
				t.Skip("takes ten seconds: set JOBLIFE_DEEP=1")
			}
			path := linestest.SocketPath(t)
			stop := prog.Start(t, path)
			_, say, read := linestest.Dial(t, path)
			for id := 16; id < 18; id++ {
				say(submit(1, id))
				read()
				say(fmt.Sprintf(`{"topic":"job-manager.memo","matchtag":2,"payload":{"id":%d,"memo":{"m":"%s"}}}`+"\n", id, strings.Repeat("m", 1_000_000)))
				read()
			}
			before := heap()
			for range c.clients {
				conn, _, _ := linestest.Dial(t, path)
				_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
				for n := range c.lines {
					if _, err := io.WriteString(conn, c.line(n+1)); err != nil {
						break // it is cut off
					}
				}
			}
			for range c.clients * 8 { // clients are heard in turn, so that all they ask was handled
				say(noSuch)
				require.Equal(t, noAnswer, read())
			}
			require.Less(t, heap()-before, c.limit)
			stop()
		})
	}
}

// Requests that come while a store is busy have a limit, and that somebody is gone is never
// refused.
func TestABusyStoreTakesSoManyRequests(t *testing.T) {
	l := live(t, "-store=lines", "-now=1000")
	l.out.Reset()
	const room = 4 << 20
	l.p.room[0] = room
	long := `{"topic":"job-manager.getinfo","matchtag":1,"payload":{"x":"` + strings.Repeat("x", room/4-room/64) + `"}}` + "\n"
	for n := range 5 {
		require.Equal(t, n == 4, strings.Contains(l.ask(long)[0], `"errnum":16,"errstr":"too many requests while the store is busy"`), n)
	}
	for _, topic := range []string{topicDisconnect, topicShutsDown} { // a keeper says it once
		require.Empty(t, l.ask(`{"topic":"` + topic + `","sender":"x","matchtag":1}` + "\n")[0])
	}
	short := `{"topic":"job-manager.getinfo"}` + "\n"
	l = live(t, "-store=lines", "-now=1000")
	l.out.Reset()
	l.p.room[0] = room
	n := 0
	for ; n < 100_000 && len(l.ask(short)[0]) == 0; n++ {
	}
	require.Equal(t, room/(perRequest+len(short)), n, "short ones count, too")
}

// What a worker before was told was let in, and a keeper bounds it.
func TestWhatComesAgainIsLetInThoughAStoreIsBusy(t *testing.T) {
	l := live(t, "-store=lines", "-now=1000")
	l.p.room = [2]int{}
	b := &broker{p: l.p, c: l.c, routes: make(bySender[*flux.Message])}
	for n, flags := range []flux.Flags{flagAgain, 0} {
		f := flux.NewRequest(serviceName+".getinfo", flux.Text(`{}`))
		f.Flags, f.Rolemask, f.Matchtag, f.Route = flags, flux.RoleOwner, uint32(n+1), []string{"x"}
		l.p.about(l.c, 0, func() { b.receive(&f) })
		require.Len(t, l.p.early, 1)
	}
}

// What guests ask while a store is busy, or say of others who are gone, leaves the owner its room.
func TestGuestsLeaveTheOwnerItsRoomWhileAStoreIsBusy(t *testing.T) {
	l := live(t, "-store=lines", "-now=1000")
	l.out.Reset()
	l.p.room = [2]int{2 * perRequest, 10 * perRequest}
	for _, topic := range []string{"getinfo", "disconnect"} {
		line := `{"topic":"job-manager.` + topic + `","sender":"x","userid":100,"rolemask":2}` + "\n"
		for range 10 {
			l.ask(line)
		}
		require.Contains(t, l.ask(line)[0], `"errnum":16,`, topic)
	}
	require.Less(t, len(l.p.early), 10)
	require.Empty(t, l.stderr.String(), "nor do they fill the log")
	require.Empty(t, l.ask(`{"topic":"job-manager.getinfo"}` + "\n")[0])
	require.Empty(t, l.ask(`{"topic":"job-manager.disconnect","sender":"x"}` + "\n")[0])
}

// Nor does what a guest sends that is at fault, however it is.
func TestNoGuestFillsTheLog(t *testing.T) {
	l := live(t, "-now=1000")
	for _, line := range []string{`"errnum":5`, `"matchtag":1,"payload":{"id":"` + "\xff" + `"}`, `"x":1,"x":2`} {
		l.ask(`{"topic":"job-manager.raise","userid":100,"rolemask":2,` + line + "}")
	}
	require.Empty(t, l.stderr.String())
}

// I12: jobs of a guest can be more than a peer may be behind. The scheduler and the executor
// get them as they read, also if they do not for a while, and again after each hello.
func TestNoGuestCanHaveASchedulerCutOff(t *testing.T) {
	if os.Getenv("JOBLIFE_DEEP") == "" {
		t.Skip("takes ten seconds: set JOBLIFE_DEEP=1")
	}
	path := linestest.SocketPath(t)
	stop := prog.Start(t, path)
	_, say, read := linestest.Dial(t, path)
	const jobs = lines.Room>>20 + 8
	for id := 16; id < 16+jobs; id++ {
		say(strings.Replace(submit(1, id), `"system":{`, `"user":{"x":"`+strings.Repeat("x", 1_000_000)+`"},"system":{`, 1))
		require.Contains(t, read(), `"errors":[]`)
	}
	before := heap()
	all := func(conn net.Conn, topic string) {
		in := bufio.NewReaderSize(conn, 2<<20)
		for n := 0; n < jobs; {
			text, err := in.ReadSlice('\n')
			require.NoError(t, err)
			if bytes.HasPrefix(text, []byte(`{"topic":"`+topic)) {
				n++
			}
		}
	}
	wait := func() {
		for range 10 {
			say(noSuch)
			require.Equal(t, noAnswer, read())
		}
		require.Less(t, heap()-before, int64(16<<20))
	}
	var sched net.Conn
	var tell func(string)
	for range 2 {
		sched, tell, _ = linestest.Dial(t, path)
		tell(`{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}` + "\n")
		tell(`{"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}` + "\n")
		wait()
	}
	all(sched, "sched.alloc")
	exec, hello, _ := linestest.Dial(t, path)
	hello(`{"topic":"job-manager.exec-hello","payload":{"service":"my-exec"}}` + "\n")
	for n := range jobs {
		tell("{" + gives(16+n, n) + "}\n")
	}
	wait()
	all(exec, "my-exec.start")
	stop()
}
