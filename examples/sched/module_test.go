//go:build unix

package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// asModule makes the next sched a module of the name.
func (i *instance) asModule(name string) { i.Load(name, func(q flux.Message) { i.seen <- q }) }

func TestAModuleOfTheBroker(t *testing.T) {
	i := newInstance(t, nil, nil)
	i.asModule("sched-joblife")
	i.run("-flux", "-forecast-period=0")
	_, text := i.next("module.status")
	require.Equal(t, `{"status":1,"errnum":0}`, text)
	i.next("resource.acquire")
	i.ready()
	text, err := i.call("sched-joblife.stats-get", "{}")
	require.NoError(t, err)
	require.Equal(t, `{"pending_jobs":0,"running_jobs":0,"adopted":0,"allocated":0,"denied":0,"canceled":0,"done":0,"refused":0}`, text)
	text, err = i.call("sched-joblife.ping", `{"seq":7,"pad":"x"}`)
	require.NoError(t, err)
	require.Regexp(t, `^{"seq":7,"pad":"x","route":".*!sched-joblife","userid":\d+,"rolemask":5,"rank":0}$`, text)
	_, err = i.call("sched-joblife.config-reload", "{}")
	require.NoError(t, err)
	_, err = i.call("sched-joblife.nosuch", "{}")
	require.EqualValues(t, errno.NoSys, flux.Errnum(err))

	// flux module debug
	text, err = i.call("sched-joblife.debug", `{"op":"setbit","flags":1}`)
	require.NoError(t, err)
	require.Equal(t, `{"flags":1}`, text)
	i.alloc(5)
	_, text = i.next("sched.alloc")
	require.Equal(t, `{"id":5,"type":2,"note":"DEBUG_FAIL_ALLOC"}`, text)
	_, err = i.call("sched-joblife.debug", `{"op":"set","flags":6}`)
	require.NoError(t, err)
	for id := 6; id < 8; id++ {
		i.alloc(id)
		i.committed()
		i.next("sched.alloc")
	}
	i.alloc(8)
	_, text = i.next("sched.alloc")
	require.Equal(t, `{"id":8,"type":1,"annotations":{"sched":{"reason_pending":"insufficient resources","jobs_ahead":0}}}`, text)
	_, err = i.call("sched-joblife.debug", `{"op":"clrbit","flags":2}`)
	require.NoError(t, err)
	i.say("sched.free", `{"id":7,"R":`+fmt.Sprintf(rankR, 1)+`,"final":true}`)
	i.committed()
	_, text = i.next("sched.alloc")
	require.Contains(t, text, `{"id":8,"type":0,"annotations":{"sched":{"jobs_ahead":null,"reason_pending":null,"resource_summary":"rank1/core0"}},`)
	_, err = i.call("sched.expiration", `{"id":5,"expiration":9}`)
	require.ErrorContains(t, err, "a debug bit denies it")
	text, err = i.call("sched-joblife.debug", `{"op":"clr","flags":0}`)
	require.NoError(t, err)
	require.Equal(t, `{"flags":0}`, text)
	_, err = i.call("sched-joblife.debug", `{}`)
	require.EqualValues(t, errno.Protocol, flux.Errnum(err))

	stranger := flux.NewRequest("sched-joblife.shutdown", nil)
	stranger.UserID, stranger.Rolemask = nobody, flux.RoleUser
	require.NoError(t, i.conn.Send(stranger))
	i.say("sched.shutdown", "{}") // this is no name of the module
	_, err = i.call("sched-joblife.stats-get", "{}")
	require.NoError(t, err)
	i.say("sched-joblife.shutdown", "{}")
	for _, want := range []string{`{"status":2,"errnum":0}`, `{"status":3,"errnum":0}`} {
		_, text := i.next("module.status")
		require.Equal(t, want, text)
	}
	status, stderr := i.end()
	require.Equal(t, lines.ExitOK, status, stderr)
}

// A module that fails says so, and does not come again: the broker shows why.
func TestAModuleThatFails(t *testing.T) {
	i := newInstance(t, nil, nil)
	i.asModule("sched-joblife")
	i.Fail("service.add", errno.Exists, "")
	i.run("-flux")
	for _, want := range []string{`{"status":2,"errnum":0}`, `{"status":3,"errnum":17}`} {
		_, text := i.next("module.status")
		require.Equal(t, want, text)
	}
	status, stderr := i.end()
	require.Equal(t, lines.ExitFault, status)
	require.Contains(t, stderr, "the instance has a scheduler")
}

// The end of an instance, where nobody removes this module, is no failure.
func TestAModuleWhoseResourcesAreGone(t *testing.T) {
	i := newInstance(t, nil, nil)
	i.asModule("sched-joblife")
	i.run("-flux")
	i.next("module.status")
	i.next("resource.acquire")
	i.ready()
	i.acq(i.acqs.RespondError(125, "the resource module was unloaded"))
	i.next("module.status")
	_, text := i.next("module.status")
	require.Equal(t, `{"status":3,"errnum":0}`, text)
	status, stderr := i.end()
	require.Equal(t, lines.ExitOK, status, stderr)
	i.logged("no more is known of the resources: flux: resource.acquire: the resource module was unloaded")
}

// Who asks for more than a broker reads has no answer, and ends no scheduler. For that of an
// allocation there is another session.
func TestABrokerThatDoesNotRead(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	b := &broker{conn: flux.New(ours, flux.Config{Room: 1 << 10})}
	defer b.conn.Close()
	pad := `{"pad":"` + strings.Repeat("x", 1<<10) + `"}`
	q := flux.NewRequest("x.ping", flux.Text(pad))
	q.UserID, q.Rolemask, q.Matchtag = nobody, flux.RoleUser, 7
	require.NoError(t, b.receive(&q))
	b.at = &q
	require.ErrorIs(t, b.reply(alloc.Line{Payload: []byte(pad)}), flux.ErrFull)
	require.NoError(t, b.broken)
	require.ErrorIs(t, ofManager(b.call(q, nil)), errOver)
	b.waits = map[jobid.ID]*flux.Message{5: &q}
	b.respond(alloc.Response{ID: 5, Type: alloc.ResponseDeny, Note: pad})
	require.ErrorIs(t, b.broken, errOver)
}

// What a module is asked before it is ready does not keep it from that.
func TestAModuleIsAskedBeforeItIsReady(t *testing.T) {
	i := newInstance(t, nil, nil)
	i.asModule("sched-joblife")
	release := i.Hold("attr.get")
	i.run("-flux")
	q := flux.NewRequest("sched-joblife.ping", flux.Text(`{}`))
	q.UserID, q.Rolemask = nobody, flux.RoleUser
	for q.Matchtag = 1; q.Matchtag <= 2*inbox; q.Matchtag++ {
		require.NoError(t, i.conn.Send(q))
	}
	_, err := i.call("config.get", `{}`) // it comes behind
	require.NoError(t, err)
	release()
	require.Eventually(t, func() bool { return (<-i.seen).Topic == "module.status" }, 5*time.Second, time.Millisecond)
}

// A guest's pings that a broker is slow to take the answers of do not keep it from that either.
func TestABrokerThatIsSlowAtTheStart(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	b := &broker{ctx: t.Context(), module: true, conn: flux.New(ours, flux.Config{Room: 1 << 10})}
	defer b.conn.Close()
	for q := flux.NewRequest("x", nil); b.tell(q.Respond(nil)) == nil; {
	}
	topics := make(chan string, 1000)
	go func() {
		time.Sleep(20 * time.Millisecond)
		r := flux.NewReader(theirs, 0)
		for m, err := r.Read(); err == nil; m, err = r.Read() {
			if m.Type != flux.TypeRequest {
				continue
			}
			topics <- m.Topic
			answer := m.Respond(flux.Text(`{"value":"0"}`))
			text, _ := flux.AppendFrame(nil, &answer)
			_, _ = theirs.Write(text)
		}
	}()
	require.NoError(t, b.register())
	for _, topic := range []string{"attr.get", "service.add", "service.add", "module.status", "resource.acquire"} {
		require.Equal(t, topic, <-topics)
	}
}

// What is not handled is short, or one message.
func TestLongMessagesWait(t *testing.T) {
	b := &broker{in: make(chan func() error, inbox), over: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		for range 3 {
			b.heard(flux.Message{Type: flux.TypeResponse, Payload: make([]byte, 1<<20)})
		}
		close(ended)
	}()
	for range 3 {
		f := <-b.in
		time.Sleep(5 * time.Millisecond)
		require.Empty(t, b.in)
		require.NoError(t, f())
	}
	<-ended
}
