package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stranger is what one hears whose answer does not count.
const stranger = `"errnum":22,"errstr":"`

// A scheduler that was replaced has no say in an update, and its successor is told of the next.
// With -ready a bridge learns when the store is read: requests wait until then.
func TestAClientIsToldWhenRequestsAreServed(t *testing.T) {
	const ready = `{"topic":"job-manager.ready"}` + "\n"
	k := newPeer(t)
	l := k.live("-ready")
	require.Empty(t, k.others)
	k.serve(l)
	require.Equal(t, []string{ready}, k.others)
	require.NotContains(t, k.ask(l, submit(1, 16)), ready, "it comes once")
	l.end()

	s := newSocket(t, 2, "-ready")
	require.True(t, strings.HasPrefix(s.hears(0), ready), "the store is read when the bridge speaks")
	require.Equal(t, ready, s.hears(1))
	require.Equal(t, ready, s.hears(s.connect(nil)), "this one comes later")
}

// A hello may name its session, so that a bridge can drop what was for an earlier one.
func TestTheCallsOfASessionHaveItsMark(t *testing.T) {
	l := live(t, "-now=1000")
	mark := func(hello string, n int) string {
		return strings.Replace(hello, "{", fmt.Sprintf(`{"session":%d,`, n), 1)
	}
	answers := l.ask(mark(schedHello, 3), schedReady, mark(execHello, 4), submit(5, 16))
	require.Contains(t, answers[3], `{"topic":"sched.alloc","session":3,"payload":{"id":16,`)
	require.Contains(t, l.ask("{" + gives(16, 0) + "}")[0], `{"topic":"my-exec.start","session":4,"payload":{"id":16,`)
	l.ask(submit(6, 17))
	answers = l.ask(mark(schedHello, 7), schedReady)
	require.Contains(t, answers[1], `{"topic":"sched.alloc","session":7,"payload":{"id":17,`)
	answers = l.ask(schedHello, schedReady)
	require.Contains(t, answers[1], `{"topic":"sched.alloc","payload":{"id":17,`, "this one has no mark")
	l.end()
}

func TestALateAnswerToAnUpdateDoesNotCount(t *testing.T) {
	s := staffed(t, 5)
	s.say(2, "{"+tells(16, "start", "{}")+"}")
	update := `{"topic":"job-manager.update","matchtag":%d,"payload":{"id":16,"updates":{"attributes.system.duration":%d}}}`
	s.say(3, fmt.Sprintf(update, 2, 9000))
	require.Contains(t, s.hears(1), `{"topic":"sched.expiration","matchtag":1,`)
	s.say(4, `{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}`)
	require.Contains(t, s.hears(3), `{"topic":"job-manager.update","matchtag":2,"errnum":113,`)
	s.say(4, `{"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}`)
	require.Contains(t, s.say(1, `{"topic":"sched.expiration","matchtag":1}`), stranger)
	require.Equal(t, "start", s.state(16), "it was not updated")
	s.say(3, fmt.Sprintf(update, 3, 8000))
	require.Contains(t, s.hears(4), `{"topic":"sched.expiration","matchtag":2,`)
	s.say(4, `{"topic":"sched.expiration","matchtag":2}`)
	require.Contains(t, s.hears(3), `{"topic":"job-manager.update","matchtag":3}`)
	require.Contains(t, s.hears(2), `{"topic":"my-exec.expiration","matchtag":3,`)
}

// A guest answers for nobody, whatever name it takes, and what it says ends nothing.
func TestAGuestAnswersForNobody(t *testing.T) {
	s := staffed(t, 4)
	guest := func(text string) string { return `{"userid":100,"rolemask":2,` + text + "}" }
	s.say(3, submit(2, 17))
	require.Contains(t, s.say(1, guest(gives(17, 1))), stranger)
	require.Contains(t, s.say(2, guest(tells(16, "exception", `{"severity":0,"type":"x"}`))), stranger)
	s.say(2, "{"+tells(16, "start", "{}")+"}")
	s.say(3, `{"topic":"job-manager.update","matchtag":3,"payload":{"id":16,"updates":{"attributes.system.duration":9000}}}`)
	require.Contains(t, s.say(1, guest(`"topic":"sched.expiration","matchtag":1`)), stranger)
	require.Contains(t, s.say(1, guest(`"topic":"sched.expiration"`)), stranger)
	require.Equal(t, "start", s.state(16))
	s.say(1, `{"topic":"sched.expiration","matchtag":1}`)
	require.Contains(t, s.hears(3), `{"topic":"job-manager.update","matchtag":3}`)
	s.say(1, "{"+gives(17, 1)+"}")
	require.Contains(t, s.hears(2), `"topic":"my-exec.start",`)
}

// One who says hello and is refused has taken over nothing, and leaves nothing behind. Nobody
// is gone without a name.
func TestARefusedHelloTakesNothingOver(t *testing.T) {
	s := staffed(t, 5)
	for _, hello := range []string{
		`"topic":"job-manager.exec-hello","payload":{"service":"my-exec"}`, // it has a job
		`"topic":"job-manager.exec-hello","payload":{"service":"rexec"}`,
		`"topic":"job-manager.exec-hello","payload":{}`,
		`"topic":"job-manager.exec-hello","rolemask":2,"payload":{"service":"my-exec"}`,
		`"topic":"job-manager.sched-hello","payload":{"partial-ok":7}`,
		`"topic":"job-manager.sched-hello","streaming":false,"payload":{"partial-ok":true}`,
		`"topic":"job-manager.sched-hello","rolemask":2,"payload":{"partial-ok":true}`,
		`"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}`,
	} {
		require.Contains(t, s.say(4, "{"+hello+"}"), `"errnum":`, hello)
	}
	for _, who := range []int{1, 2} { // as a bridge tells that a client of the instance is gone, which it does not name
		require.Empty(t, s.say(who, `{"topic":"job-manager.disconnect"}`))
	}
	check := func(tag int) {
		t.Helper()
		s.say(2, "{"+tells(15+tag, "start", "{}")+"}")
		s.say(3, submit(tag+1, 16+tag))
		require.Contains(t, s.hears(1), `"topic":"sched.alloc",`, "the scheduler is asked")
		s.say(1, "{"+gives(16+tag, tag)+"}")
		require.Contains(t, s.hears(2), `"topic":"my-exec.start",`, "and then the executor")
	}
	check(1)
	require.NotContains(t, s.say(3, raise(8, 16)), "errnum")
	require.Contains(t, s.hears(4), `"event":"job-exception"`, "it is no scheduler")
	s.leave(4)
	check(2)
	s.leave(1)
	another := s.connect(nil)
	s.scheduler(another, "")
	s.say(2, "{"+tells(18, "start", "{}")+"}")
	s.say(3, submit(7, 30))
	require.Contains(t, s.hears(another), `"topic":"sched.alloc",`)
}

// What a bridge is asked does not go to a scheduler or an executor, though it came first. One
// whose service has the name of another's takes over nothing of that.
func TestTheBridgeIsNoSchedulerAndNoExecutor(t *testing.T) {
	s := newSocket(t, 4)
	s.scheduler(0, "")
	require.NotContains(t, s.say(1, `{"topic":"job-manager.exec-hello","payload":{"service":"rexec"}}`), "errnum")
	s.say(2, `{"topic":"job-manager.config-reload","payload":{"job-manager":{"prolog":{"command":["sweep"],"per-rank":true}}}}`)
	s.say(3, submit(1, 16))
	s.say(0, "{"+gives(16, 0)+"}")
	require.Contains(t, s.hears(2), `{"topic":"rexec.exec","matchtag":1,`)
	require.Empty(t, s.hears(1))
	require.Empty(t, s.hears(0))
}

// Where the lines have the time, each deadline is passed at its own time.
func TestDeadlinesPassOneAfterTheOther(t *testing.T) {
	l := live(t, "-now=1000")
	for id := 16; id < 18; id++ {
		begin := fmt.Sprintf(`"system":{"dependencies":[{"scheme":"begin-time","value":"%d"}],`, 1000+id)
		require.Contains(t, l.ask(strings.Replace(submit(1, id), `"system":{`, begin, 1))[0], `"errors":[]`)
	}
	require.Empty(t, l.ask(`{"time":1030}`)[0])
	for id := 16; id < 18; id++ {
		require.Contains(t, l.ask(eventlogOf(1, id))[0], fmt.Sprintf(`{"timestamp":%d.0,"name":"dependency-remove"`, 1000+id))
	}
}

// A call that nobody answers is lost after a time, and its answer counts no more.
func TestNoCallWaitsForEver(t *testing.T) {
	s := newSocket(t, 4)
	s.scheduler(1, `"sender":"a",`)
	s.say(0, `{"topic":"job-manager.config-reload","payload":{"queues":{"a":{},"b":{}}}}`)
	s.say(0, `{"topic":"job-manager.queue-start","payload":{"start":true,"all":true}}`)
	s.say(3, strings.Replace(submit(1, 16), `"duration":60`, `"duration":60,"queue":"a"`, 1))
	s.say(3, `{"topic":"job-manager.update","matchtag":2,"payload":{"id":16,"updates":{"attributes.system.queue":"b"}}}`)
	require.Contains(t, s.hears(1), `{"topic":"feasibility.check","matchtag":1,`)
	require.Contains(t, s.say(1, `{"topic":"feasibility.check","sender":"b","matchtag":1}`), stranger)
	s.say(0, `{"time":1299}`)
	require.Empty(t, s.hears(3))
	s.say(0, `{"time":1300}`)
	require.Contains(t, s.hears(3), `{"topic":"job-manager.update","matchtag":2,"errnum":110,`)
	require.Contains(t, s.say(1, `{"topic":"feasibility.check","matchtag":1}`), stranger)
	require.Equal(t, "priority", s.state(16))
	require.Empty(t, s.p.calls.waiting)
}

// Neither does the store of a peer that is silent, which is a failure of the store.
func TestAStoreThatDoesNotAnswerFails(t *testing.T) {
	s := newSocket(t, 1, "-store=lines")
	require.Contains(t, s.hears(0), `{"topic":"kvs.lookup","matchtag":1,`)
	s.p.clock.Advance(1300)
	s.p.put(input{})
	require.ErrorContains(t, s.p.failed, "kvs.lookup failed: errnum 110")
}

// What an earlier process left needs the bridge: it waits until that is there, so that no node
// is held longer for it.
func TestWhatNeedsTheBridgeWaitsForIt(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte("[job-manager.epilog]\ncommand = ['sweep']\nper-rank = true\n"), 0o600))
	for store, c := range map[string]struct{ lost, asks string }{
		"bolt": {"finish", "resource.drain"},
		"dir":  {"rerun", "rexec.exec"},
	} {
		args := []string{"-store=" + store + ":" + filepath.Join(t.TempDir(), "jobs"), "-config=" + config, "-lost=" + c.lost}
		s := staffed(t, 4, args...)
		s.say(2, "{"+tells(16, "start", "{}")+"}")
		require.Contains(t, s.say(0, raise(2, 16)), `"matchtag":2`)
		s.say(2, "{"+tells(16, "finish", `{"status":15}`)+"}")
		s.say(2, "{"+tells(16, "release", `{"ranks":"all","final":true}`)+"}")
		require.NoError(t, s.p.store.close()) // it crashes while the epilog runs

		s = newSocket(t, 0, args...)
		s.connect(nil)
		require.Empty(t, s.say(0, `{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}`))
		s.connect(nil)
		require.Empty(t, s.say(1, `{"topic":"job-manager.exec-hello","matchtag":3,"payload":{"service":"my-exec"}}`))
		s.connect(nil)
		require.False(t, s.p.started)
		require.Contains(t, s.say(2, `{"topic":"job-manager.getinfo","matchtag":1}`), `{"topic":"`+c.asks+`","matchtag":1,`)
		require.Contains(t, s.hears(0), `"errnum":61`, "it waited for its answer")
		require.Contains(t, s.hears(1), `"matchtag":3}`)
		if c.lost == "rerun" {
			s.say(2, `{"topic":"rexec.exec","matchtag":1,"payload":{"type":"started","pid":7}}`)
			s.say(2, `{"topic":"rexec.exec","matchtag":1,"payload":{"type":"finished","status":0}}`)
			s.say(2, `{"topic":"rexec.exec","matchtag":1,"errnum":61}`)
		} else {
			s.say(2, `{"topic":"resource.drain","matchtag":1}`)
		}
		require.Equal(t, "clean", s.stateFor(2, 16), "at once")
		require.NoError(t, s.p.end())
	}
}

// Where no bridge comes, the store is read all the same after a while.
func TestAStoreDoesNotWaitForABridgeForEver(t *testing.T) {
	s := newSocket(t, 0, "-store=bolt:"+filepath.Join(t.TempDir(), "jobs"))
	s.connect(nil)
	hello := `{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}%s}`
	s.leave(0)
	s.p.clock.Advance(2000)
	s.p.put(input{})
	require.False(t, s.p.started, "there is nobody")
	s.connect(nil)
	require.Empty(t, s.say(1, fmt.Sprintf(hello, "")))
	require.Empty(t, s.say(1, fmt.Sprintf(hello, `,"time":2009`)))
	require.Contains(t, s.say(1, fmt.Sprintf(hello, `,"time":2010`)), `"errnum":61`)
	require.NoError(t, s.p.end())
}

// A scheduler whose answer was refused does not know what is held, and one that failed does not
// know that it is lost. Each learns that its session is over, by the end of its connection or by
// a line that a bridge passes on.
func TestOneWhoseSessionIsEndedIsTold(t *testing.T) {
	alone := `{"topic":"job-manager.error","errnum":113,"errstr":"the session is over: say hello again"}`
	bridged := strings.Replace(alone, `,`, `,"sender":"a",`, 1)
	for name, answer := range map[string]string{
		"a double booking":         gives(17, 0),
		"no answer to sched.alloc": `"topic":"sched.alloc","payload":{"id":17}`,
		"a failure":                `"topic":"sched.alloc","errnum":5`,
	} {
		t.Run(name, func(t *testing.T) {
			for sender, want := range map[string]string{"": alone, `"sender":"a",`: bridged} {
				s := newSocket(t, 2)
				s.scheduler(1, sender)
				s.say(0, submit(1, 16))
				s.say(0, submit(1, 17))
				s.say(1, "{"+sender+gives(16, 0)+"}")
				require.Contains(t, s.say(1, "{"+sender+answer+"}"), want+"\n")
				require.Equal(t, sender == "", s.closed[1])
				require.Equal(t, "alloc", s.state(16))
				require.Equal(t, "priority", s.state(17))

				fresh := s.connect(nil)
				s.scheduler(fresh, "")
				require.Contains(t, s.hears(fresh), `"topic":"sched.alloc","payload":{"id":17,`)
				s.say(fresh, "{"+gives(17, 1)+"}")
				require.Equal(t, "alloc", s.state(17))
			}
		})
	}
	t.Run("an executor that fails", func(t *testing.T) {
		s := newSocket(t, 2)
		s.executor(1)
		require.Contains(t, s.say(1, `{"topic":"my-exec.start","errnum":5}`), alone)
		require.True(t, s.closed[1])
	})
}
