package flux_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/fluxtest"
)

func TestACallThatIsGivenUp(t *testing.T) {
	b := fluxtest.Start(t)
	c, strays := dialerOf(t, limited(t), b.URI())()
	release := b.Hold("attr.get")
	ctx, cancel := context.WithCancel(limited(t))
	given := make(chan error)
	go func() {
		_, err := c.Attr(ctx, "rank")
		given <- err
	}()
	held := make(chan error)
	go func() {
		_, err := c.Attr(limited(t), "size")
		held <- err
	}()
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	release()
	require.NoError(t, <-held)
	require.Empty(t, strays, "nobody gets the late answer")
	_, err := c.Call(ctx, "attr.get", flux.NodeidAny, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestFaultsOfABroker(t *testing.T) {
	b := fluxtest.Start(t)
	ctx := limited(t)
	c, _ := dialerOf(t, ctx, b.URI())()
	b.Fail("service.add", errno.Perm, "no\nmore")
	require.EqualError(t, c.Register(ctx, "s"), `flux: service.add: "no\nmore" (errno 1)`)
	b.Fail("service.add", 0, "")
	require.NoError(t, c.Register(ctx, "s"))
	b.Await("s")

	for payload, want := range map[string]string{"": "no payload", "[]\x00": "not a JSON object", "{\"value\":1}\x00": "cannot unmarshal"} {
		b.Serve("attr.get", func(q flux.Message, answer func(flux.Message)) {
			r := q.Respond([]byte(payload))
			if payload == "" {
				r.Payload = nil
			}
			answer(r)
		})
		_, err := c.Attr(ctx, "rank")
		require.ErrorIs(t, err, flux.ErrMessage)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, c.CallJSON(ctx, "x", 0, func() {}, nil), "unsupported type")

	_, err := c.Start(flux.NewEvent("e", nil), nil)
	require.ErrorIs(t, err, flux.ErrMessage)
	q := flux.NewRequest("x", nil)
	q.Flags |= flux.FlagNoResponse
	_, err = c.Start(q, nil)
	require.ErrorIs(t, err, flux.ErrMessage)
	_, err = c.Start(flux.NewRequest("", nil), nil)
	require.ErrorIs(t, err, flux.ErrMessage)
}

func TestABrokerThatGoesAndComesBack(t *testing.T) {
	b := fluxtest.Start(t)
	ctx := limited(t)
	c, _ := dialerOf(t, ctx, b.URI())()
	require.NoError(t, c.Register(ctx, "s"))
	b.Serve("cut.it", func(flux.Message, func(flux.Message)) { b.Stop() })
	states := make(chan error, 2)
	_, err := c.FollowState(func(_ flux.State, err error) { states <- err })
	require.NoError(t, err)
	require.NoError(t, <-states)
	_, err = c.Call(ctx, "cut.it", flux.NodeidAny, nil)
	require.ErrorIs(t, err, flux.ErrLost)
	require.ErrorIs(t, <-states, flux.ErrLost, "a stream ends, too")
	<-c.Done()
	require.ErrorIs(t, c.Err(), flux.ErrLost)
	require.ErrorIs(t, c.Send(flux.NewEvent("e", nil)), flux.ErrLost)
	_, err = c.Call(ctx, "cut.it", flux.NodeidAny, nil)
	require.ErrorIs(t, err, flux.ErrLost)

	_, err = flux.Dial(ctx, flux.Config{URI: b.URI()})
	require.ErrorIs(t, err, flux.ErrLost)
	require.ErrorContains(t, err, "local-0 does not exist: is the instance running?")
	time.AfterFunc(100*time.Millisecond, b.Listen)
	d, err := flux.Redial(ctx, flux.Config{URI: b.URI()})
	require.NoError(t, err)
	require.NoError(t, d.Register(ctx, "s"), "what a connection had ends with it")
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	<-d.Done()
	require.ErrorIs(t, d.Err(), flux.ErrClosed)
}

func TestRedialEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := flux.Redial(ctx, flux.Config{URI: "local:///none"})
	require.ErrorIs(t, err, flux.ErrLost)
	_, err = flux.Redial(context.Background(), flux.Config{URI: "ssh://host/path"})
	require.ErrorIs(t, err, flux.ErrURI)
}

func TestWhyNoConnectionComesAbout(t *testing.T) {
	t.Setenv("FLUX_URI", "")
	dir, err := os.MkdirTemp("", "flux")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for uri, want := range map[string]string{
		"":                                     "FLUX_URI is not set: run it inside an instance",
		"ssh://host/tmp":                       "ssh://host/tmp is not local://PATH",
		"local://":                             "local:// has no path",
		"local://" + plain:                     "nothing listens on " + plain,
		"local://" + dir + "/none":             "does not exist: is the instance running?",
		"local:///" + strings.Repeat("x", 107): "has 108 bytes, a socket can have 107",
	} {
		_, err := flux.Dial(limited(t), flux.Config{URI: uri})
		require.ErrorContains(t, err, want)
	}
	b := fluxtest.Start(t)
	b.Refuse(errno.Perm)
	_, err = flux.Dial(limited(t), flux.Config{URI: b.URI()})
	require.ErrorIs(t, err, flux.ErrDenied)
	require.ErrorContains(t, err, "(errno 1): see [access]")
	b.Refuse(0)
	t.Setenv("FLUX_URI", b.URI())
	c, err := flux.Dial(limited(t), flux.Config{})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// serve listens where one connection is served by f.
func serve(t *testing.T, f func(conn net.Conn)) (uri string) {
	dir, err := os.MkdirTemp("", "flux")
	require.NoError(t, err)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if conn, err := l.Accept(); err == nil {
			f(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-served
		require.NoError(t, os.RemoveAll(dir))
	})
	return "local://" + filepath.Join(dir, "s")
}

func TestOthersThatListen(t *testing.T) {
	uri := serve(t, func(net.Conn) {})
	_, err := flux.Dial(limited(t), flux.Config{URI: uri})
	require.ErrorIs(t, err, flux.ErrLost)
	require.ErrorContains(t, err, "it lets nobody in: EOF")

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	uri = serve(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })
	_, err = flux.Dial(ctx, flux.Config{URI: uri})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	uri = serve(t, func(conn net.Conn) { _, _ = conn.Write([]byte("\x00HTTP/1.1 400")) })
	c, err := flux.Dial(limited(t), flux.Config{URI: uri})
	require.NoError(t, err)
	<-c.Done()
	require.ErrorIs(t, c.Err(), flux.ErrFraming)
	require.ErrorContains(t, c.Err(), `it begins with "HTTP"`)
	require.NoError(t, c.Close())
}

// A guest can send to a service what no service expects: it is skipped.
func TestWhatIsSkipped(t *testing.T) {
	errs := make(chan error, 10)
	inbox := make(chan flux.Message, 10)
	begin, refused := make(chan struct{}), make(chan flux.Message, 10)
	uri := serve(t, func(conn net.Conn) {
		_, _ = conn.Write([]byte{0})
		<-begin
		frame := func(m flux.Message, change func(b []byte)) {
			b, err := flux.AppendFrame(nil, &m)
			if err != nil {
				panic(err)
			}
			change(b)
			_, _ = conn.Write(b)
		}
		q := flux.NewRequest("s.x", make([]byte, 200_000))
		frame(q, func([]byte) {})
		q.Payload = nil
		frame(q, func(b []byte) { b[len(b)-20] = 0 }) // no magic number
		q.Matchtag = 1
		r := q.Respond(make([]byte, 100_001))
		frame(r, func([]byte) {})
		r.Matchtag, r.Payload = 2, nil
		frame(r, func(b []byte) { b[8] = 9 }) // a route that breaks off
		q = flux.NewRequest("s.x", make([]byte, 100_000))
		q.Matchtag, q.Route = 7, []string{"a", "b"}
		frame(q, func([]byte) {})
		frame(flux.NewEvent("e", nil), func([]byte) {})
		for r := flux.NewReader(conn, 0); ; {
			m, err := r.Read()
			if err != nil {
				return
			}
			if m.Type == flux.TypeResponse {
				refused <- m
			}
		}
	})
	c, err := flux.Dial(limited(t), flux.Config{URI: uri, Max: 100_000, Skipped: func(err error) { errs <- err },
		Handle: func(m flux.Message) { inbox <- m }})
	require.NoError(t, err)
	answers := make(chan error, 2)
	for range 2 {
		_, err := c.Start(flux.NewRequest("s.x", nil), func(_ flux.Message, err error) { answers <- err })
		require.NoError(t, err)
	}
	close(begin)
	require.Equal(t, "e", (<-inbox).Topic)
	for _, want := range []error{flux.ErrLimit, flux.ErrMessage, flux.ErrLimit, flux.ErrMessage, flux.ErrLimit} {
		err := <-errs
		require.ErrorIs(t, err, want)
		require.ErrorAs(t, err, new(*flux.SkipError))
	}
	require.EqualError(t, <-answers, "flux: a message was skipped: flux: offset 0: beyond a limit: a message of 100032 bytes of at most 100000")
	require.ErrorIs(t, <-answers, flux.ErrMessage)
	require.Empty(t, (<-refused).Route)
	m := <-refused // it finds its way back
	require.Equal(t, []string{"a", "b"}, m.Route)
	require.EqualValues(t, 7, m.Matchtag)
	require.EqualValues(t, errno.Size, m.Errnum)
	require.Empty(t, refused)
	require.NoError(t, c.Close())
}

// Send does not wait for a broker that does not read, and Close no longer than a second.
func TestABrokerThatDoesNotRead(t *testing.T) {
	t.Parallel() // it waits
	stop := make(chan struct{})
	uri := serve(t, func(conn net.Conn) {
		_, _ = conn.Write([]byte{0})
		<-stop
	})
	c, err := flux.Dial(limited(t), flux.Config{URI: uri, Room: 4 << 20})
	require.NoError(t, err)
	text := make([]byte, 100_000)
	sent := 0
	for err == nil {
		err = c.Send(flux.NewEvent("e", text))
		sent++
	}
	require.ErrorIs(t, err, flux.ErrFull)
	require.InDelta(t, 45, sent, 5)
	_, err = c.Start(flux.NewRequest("s.x", text), nil)
	require.ErrorIs(t, err, flux.ErrFull)
	require.NoError(t, c.Close())
	close(stop)
}

// A message that may be late goes out in one write with the next, or in its own time.
func TestSendWithin(t *testing.T) {
	ours, theirs := net.Pipe()
	c := flux.New(ours, flux.Config{})
	defer c.Close()
	defer theirs.Close()
	frame := func(topic string) int {
		m := flux.NewRequest(topic, nil)
		m.UserID = flux.UserUnknown
		b, err := flux.AppendFrame(nil, &m)
		require.NoError(t, err)
		return len(b)
	}
	for range 100 {
		require.NoError(t, c.SendWithin(time.Hour, flux.NewRequest("late", nil)))
		runtime.Gosched()
		require.NoError(t, c.Send(flux.NewRequest("next", nil)))
		n, err := theirs.Read(make([]byte, 1000))
		require.NoError(t, err)
		require.Equal(t, frame("late")+frame("next"), n)
	}
	require.NoError(t, c.SendWithin(time.Millisecond, flux.NewRequest("late", nil)))
	n, err := theirs.Read(make([]byte, 1000))
	require.NoError(t, err)
	require.Equal(t, frame("late"), n)
}

// What was sent before Close goes out.
func TestCloseSends(t *testing.T) {
	b := fluxtest.Start(t)
	got := make(chan int, 1)
	n := 0
	b.Serve("count", func(q flux.Message, _ func(flux.Message)) {
		if n++; q.Topic == "count.end" {
			got <- n
		}
	})
	c, err := flux.Dial(limited(t), flux.Config{URI: b.URI()})
	require.NoError(t, err)
	q := flux.NewRequest("count.x", make([]byte, 1000))
	q.Flags |= flux.FlagNoResponse
	for range 999 {
		require.NoError(t, c.Send(q))
	}
	q.Topic = "count.end"
	require.NoError(t, c.Send(q))
	require.NoError(t, c.Close())
	require.Equal(t, 1000, <-got)
}

func TestLogEntries(t *testing.T) {
	b := fluxtest.Start(t)
	ctx := limited(t)
	c, _ := dialerOf(t, ctx, b.URI())()
	require.NoError(t, c.Log(flux.LogEntry{Level: flux.LogErr, Name: "joblife", Text: "one ƒ\r\n\ntwo\n"}))
	require.NoError(t, c.Log(flux.LogEntry{Level: 99, Text: "x"}))
	require.NoError(t, c.Log(flux.LogEntry{}))
	_, err := c.Attr(ctx, "rank")
	require.NoError(t, err)
	log := b.Log()
	require.Len(t, log, 3)
	require.Regexp(t, `^<24>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z 0 joblife \d+ - - one ƒ$`, log[0])
	require.Regexp(t, ` - - two$`, log[1])
	require.Regexp(t, `^<56>1 \S+Z 0 - \d+ - - x$`, log[2])
}

func TestFollowingAConfiguration(t *testing.T) {
	b := fluxtest.Start(t)
	ctx := limited(t)
	c, _ := dialerOf(t, ctx, b.URI())()
	texts := make(chan string, 10)
	_, err := c.FollowConfig(func(text []byte, _ error) { texts <- string(text) })
	require.NoError(t, err)
	require.Equal(t, "{}", <-texts)
	b.SetConfig(`{"queues":{}}`)
	require.Equal(t, `{"queues":{}}`, <-texts)
	var out map[string]any
	require.NoError(t, c.GetConfig(ctx, &out))
	require.Contains(t, out, "queues")
	b.SetAttr("joblife", "1")
	value, err := c.Attr(ctx, "joblife")
	require.NoError(t, err)
	require.Equal(t, "1", value)
}

func TestFollowingAState(t *testing.T) {
	b := fluxtest.Start(t)
	ctx := limited(t)
	c, _ := dialerOf(t, ctx, b.URI())()
	type step struct {
		state flux.State
		err   error
	}
	steps := make(chan step, 10)
	_, err := c.FollowState(func(s flux.State, err error) { steps <- step{s, err} })
	require.NoError(t, err)
	require.Equal(t, step{flux.StateRun, nil}, <-steps)
	b.SetState(flux.StateCleanup)
	require.Equal(t, step{flux.StateCleanup, nil}, <-steps)
	b.SetState(flux.StateExit)
	require.Equal(t, step{flux.StateExit, nil}, <-steps)
	require.EqualValues(t, errno.NoData, flux.Errnum((<-steps).err))

	b.Serve("state-machine.monitor", func(q flux.Message, answer func(flux.Message)) { answer(q.Respond(flux.Text("{}"))) })
	_, err = c.FollowState(func(s flux.State, err error) { steps <- step{s, err} })
	require.NoError(t, err)
	require.ErrorContains(t, (<-steps).err, "no state")

	b.Fail("config.get", errno.Perm, "")
	texts := make(chan error, 1)
	_, err = c.FollowConfig(func(_ []byte, err error) { texts <- err })
	require.NoError(t, err)
	require.True(t, errors.As(<-texts, new(*flux.Error)))
}

// A pong has what came as it came, and is no longer: a guest chooses that.
func TestAPongIsWhatCame(t *testing.T) {
	q := flux.NewRequest("x.ping", flux.Text(`{"seq":12345678901234567890, "rank":[7],"pad":"<`+"\u2028"+`>","t":1e20}`))
	q.UserID, q.Rolemask, q.Route = 7, flux.RoleUser, []string{"12345678-9", "a"}
	pong := q.Pong()
	require.Equal(t, `{"seq":12345678901234567890,"pad":"<`+"\u2028"+`>","t":1e20,"route":"12345678!a!x","userid":7,"rolemask":2,"rank":0}`+"\x00", string(pong.Payload))
	q.Payload = flux.Text(" { } ")
	pong = q.Pong()
	require.Equal(t, `{"route":"12345678!a!x","userid":7,"rolemask":2,"rank":0}`+"\x00", string(pong.Payload))
	q.Payload = flux.Text(`["seq"]`)
	pong = q.Pong()
	require.EqualValues(t, errno.Protocol, pong.Errnum)
}
