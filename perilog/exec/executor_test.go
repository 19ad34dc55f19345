package exec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
)

func onRanks(t testing.TB, ranks string, expires eventlog.Timestamp) *rset.R {
	t.Helper()
	set, err := idset.Parse(ranks)
	require.NoError(t, err)
	r, err := rset.New(rset.Config{Expiration: expires, Entries: []rset.Entry{{Ranks: set, Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	return r
}

// said is an Effects in one line.
func said(e exec.Effects) string {
	var out []string
	add := func(format string, args ...any) {
		out = append(out, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	for _, c := range e.Commands {
		if add("%v %v on %v", c.Kind, c.Task, c.Ranks); c.Kind == exec.CommandSignal {
			out[len(out)-1] += fmt.Sprint(" ", c.Signal)
		}
	}
	for _, r := range e.Responses {
		switch r.Type {
		case exec.ResponseRelease:
			add("%v %v final=%v", r.Type, r.Ranks, r.Final)
		case exec.ResponseException:
			add("%v %s: %s", r.Type, r.Exception.Type, r.Exception.Note)
		case exec.ResponseFinish:
			add("%v %d", r.Type, r.Status)
		default:
			add("%v", r.Type)
		}
	}
	for _, r := range e.Refused {
		add("refused %s", r.Note)
	}
	for _, r := range e.Reports {
		add("report %v %d %v %d %s%s", r.Action, r.Rank, r.Kind, r.Status, r.Detail, r.Line)
	}
	for _, m := range e.Missing {
		add("missing %v %d", m.Action, m.Rank)
	}
	return strings.Join(out, "; ")
}

var (
	shell  = exec.Task{Job: 1}
	epilog = jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "e"}
)

func is(state exec.TaskState, status int32) exec.TaskStatus {
	return exec.TaskStatus{Task: shell, State: state, Status: status}
}

func attempt(n uint32, state exec.TaskState, status int32) exec.TaskStatus {
	return exec.TaskStatus{Task: exec.Task{Job: 1, Action: epilog, Attempt: n}, State: state, Status: status}
}

// A bench is an executor with two nodes that have a session.
type bench struct {
	t *testing.T
	*exec.Executor
	sessions [2]exec.Session
	now      eventlog.Timestamp
	deadline eventlog.Timestamp // when it is due, as it said last
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, Executor: new(exec.Executor)}
	for rank := range b.sessions {
		b.sessions[rank] = b.hello(uint32(rank))
	}
	return b
}

func (b *bench) take() exec.Effects {
	out := b.Take(b.now)
	b.deadline, _ = b.Deadline()
	return out
}

func (b *bench) hello(rank uint32, tasks ...exec.TaskStatus) exec.Session {
	b.t.Helper()
	s, err := b.Hello(rank, tasks)
	require.NoError(b.t, err)
	return s
}

func (b *bench) start(m exec.Start) {
	b.t.Helper()
	if m.ID = 1; m.R == nil {
		m.R = onRanks(b.t, "0-1", 0)
	}
	require.NoError(b.t, b.Handle(m))
}

// Kill stops the job on account of something that has no wait status.
func (b *bench) Kill(id jobid.ID) { b.Executor.Kill(id, jobstate.Optional[int32]{}) }

func (b *bench) launch(n uint32, ranks ...uint32) {
	b.t.Helper()
	require.NoError(b.t, b.Launch(1, perilog.Launch{Action: epilog, Attempt: n, Ranks: idset.Of(ranks...), Command: []string{"x"}}))
}

func (b *bench) update(rank int, st exec.TaskStatus) {
	b.t.Helper()
	require.NoError(b.t, b.Update(b.sessions[rank], st))
}

func (b *bench) says(want string) {
	b.t.Helper()
	require.Equal(b.t, want, said(b.take()))
	require.NoError(b.t, b.Check())
}

func TestAJobStartsWhenItsShellsRunAndFinishesWhenTheyHaveEnded(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{Jobspec: []byte(`{}`)})
	b.says("start ƒ2 on 0-1")
	b.update(0, is(exec.TaskRunning, 0))
	b.says("")
	b.update(1, is(exec.TaskRunning, 0))
	b.says("start")
	b.update(0, is(exec.TaskReleased, 3<<8))
	b.says("")
	b.update(1, is(exec.TaskExited, 1<<8))
	b.says("finish 768; release 0 final=false")
	b.update(1, is(exec.TaskReleased, 1<<8))
	b.says("release 1 final=true")
	b.start(exec.Start{Reattach: true, Started: true})
	b.says("reattached; finish 768; release  final=true")
	b.Forget(1, false)
	b.says("forget ƒ2 on 0-1")
}

func TestAShellThatCannotStartEndsTheJob(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{})
	b.says("start ƒ2 on 0-1")
	failed := is(exec.TaskFailed, 0)
	failed.Note = "no such user"
	b.update(0, failed)
	b.says("signal ƒ2 on 1 15; exception exec: rank 0: the job shell could not be started: no such user")
	b.update(1, failed)
	b.says("forget ƒ2 on 0-1; refused rank 0: the job shell could not be started: no such user")
}

func TestAJobThatIsStoppedBeforeItWasSentDoesNotStart(t *testing.T) {
	b := newBench(t)
	b.Close(b.sessions[1])
	b.start(exec.Start{})
	b.says("start ƒ2 on 0")
	b.Kill(1)
	b.says("signal ƒ2 on 0 15")
	b.hello(1)
	b.says("")
	b.update(0, is(exec.TaskReleased, 15))
	b.says("start; finish 15; release  final=true")
}

// A start of an earlier life may have reached a node that has not said hello yet.
func TestAJobMayRunOnANodeThatHasNotSaidHello(t *testing.T) {
	b := &bench{t: t, Executor: new(exec.Executor)}
	b.start(exec.Start{})
	b.Kill(1)
	b.says("")
	b.hello(0, is(exec.TaskRunning, 0))
	b.hello(1)
	b.says("signal ƒ2 on 0 15; start")
	b.Fail(0, "power")
	b.says("finish 9; release  final=true")

	b = &bench{t: t, Executor: new(exec.Executor)}
	b.start(exec.Start{R: onRanks(t, "0", 0)})
	b.Fail(0, "power")
	b.says("start; exception exec: rank 0: the job shell is lost: power; finish 9; release  final=true")

	b = newBench(t)
	b.Close(b.sessions[0])
	b.start(exec.Start{R: onRanks(t, "0", 0)})
	b.Fail(0, "power")
	b.says("refused rank 0: the job shell could not be started: power")
}

func TestAStartThatDidNotArriveIsSentAgainUnlessTheJobIsStopped(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{})
	b.launch(1, 1)
	b.Close(b.sessions[0])
	b.hello(0)
	b.says("start ƒ2 on 1; start ƒ2 epilog e 1 on 1; start ƒ2 on 0")
	b.Close(b.sessions[1])
	b.Kill(1)
	b.Signal(1, perilog.Signal{Action: epilog, Attempt: 1, Ranks: idset.Of(1), Signal: 15})
	b.hello(1)
	b.hello(0)
	b.says("forget ƒ2 on 0-1; refused; report epilog e 1 exited 15 stopped before it was started")
}

func TestWhatAShellLeavesIsStoppedToo(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{})
	b.update(0, is(exec.TaskExited, 0))
	b.Kill(1)
	b.Close(b.sessions[0])
	b.hello(0, is(exec.TaskExited, 0))
	b.says("start ƒ2 on 1; signal ƒ2 on 1 15; signal ƒ2 on 0 15")
	b.sessions[0] = b.hello(0) // it has forgotten
	b.update(1, is(exec.TaskExited, 0))
	b.says("signal ƒ2 on 1 15; start; finish 0; release 0 final=false")
	require.NotZero(t, b.deadline, "for SIGKILL")
	b.update(0, is(exec.TaskExited, 0))
	b.says("signal ƒ2 on 0 9")
}

func TestAJobThatHasFinishedDoesNotExpire(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{R: onRanks(t, "0", 50)})
	b.update(0, is(exec.TaskExited, 0))
	b.says("start ƒ2 on 0; start; finish 0")
	require.NoError(t, b.Handle(exec.Expiration{ID: 1, Expiration: 60}))
	b.says("")
	require.Zero(t, b.deadline)

	b = newBench(t)
	b.start(exec.Start{R: onRanks(t, "0", 50)})
	b.take()
	b.update(0, is(exec.TaskReleased, 0)) // and nobody takes what follows
	b.now = 50
	require.Empty(t, b.Expiring(50))
	b.says("start; finish 0; release  final=true")
}

// The log says that the job has started, whatever its node says.
func TestAJobThatHasStartedIsNotRefused(t *testing.T) {
	b := &bench{t: t, Executor: new(exec.Executor)}
	b.start(exec.Start{R: onRanks(t, "0", 0), Reattach: true, Started: true})
	b.hello(0, is(exec.TaskFailed, 0))
	b.says("reattached; exception exec: rank 0: the job shell could not be started; finish 256; release  final=true")
}

func TestTheFirstCauseCounts(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{})
	b.update(0, is(exec.TaskRunning, 0))
	b.update(1, is(exec.TaskFailed, 0))
	b.update(0, is(exec.TaskLost, 0))
	b.says("start ƒ2 on 0-1; signal ƒ2 on 0 15; start; exception exec: rank 1: the job shell could not be started; finish 256; release  final=true")
}

func TestNothingOfTheCallerIsRetained(t *testing.T) {
	b := newBench(t)
	b.Close(b.sessions[0])
	spec, ranks, args, serves := []byte(`{}`), idset.Of(0), []string{"x"}, idset.Of(0, 1)
	b.start(exec.Start{Jobspec: spec, R: onRanks(t, "0", 0)})
	require.NoError(t, b.Launch(1, perilog.Launch{Action: epilog, Attempt: 1, Ranks: ranks, Command: args, Serves: serves}))
	spec[0], args[0] = '!', "y"
	ranks.Insert(7)
	serves.Insert(7)
	b.hello(0)
	todo := b.take()
	require.Equal(t, `{}`, string(todo.Commands[0].Start.Jobspec))
	l := todo.Commands[1].Launch
	require.Equal(t, []string{"0", "x", "0-1"}, []string{l.Ranks.String(), l.Command[0], l.Serves.String()})
}

// RFC 21, RFC 32: if the first fatal exception has the wait status of a task, the job finishes with
// it, in the form of a shell.
func TestAJobFinishesWithTheStatusOfItsCause(t *testing.T) {
	none := jobstate.Optional[int32]{}
	for _, c := range []struct {
		first, second jobstate.Optional[int32]
		want          int
	}{
		{jobstate.Some[int32](11), none, 139 << 8},
		{jobstate.Some[int32](11 | 0x80), none, 139 << 8}, // with a core
		{jobstate.Some[int32](3 << 8), jobstate.Some[int32](11), 3 << 8},
		{none, jobstate.Some[int32](11), 143 << 8},
	} {
		b := newBench(t)
		b.start(exec.Start{R: onRanks(t, "0", 0)})
		b.update(0, is(exec.TaskRunning, 0))
		b.says("start ƒ2 on 0; start")
		b.Executor.Kill(1, c.first)
		b.Executor.Kill(1, c.second)
		b.update(0, is(exec.TaskReleased, 143<<8))
		end := fmt.Sprintf("finish %d; release  final=true", c.want)
		b.says("signal ƒ2 on 0 15; " + end)
		b.start(exec.Start{Reattach: true, Started: true})
		b.says("reattached; " + end)
	}
	b := newBench(t)
	b.start(exec.Start{R: onRanks(t, "0", 0)})
	b.update(0, is(exec.TaskFailed, 0)) // the first cause
	b.says("start ƒ2 on 0; forget ƒ2 on 0; refused rank 0: the job shell could not be started")
	b.start(exec.Start{})
	b.update(0, is(exec.TaskRunning, 0))
	b.update(1, is(exec.TaskLost, 0))
	b.Executor.Kill(1, jobstate.Some[int32](11))
	b.update(0, is(exec.TaskReleased, 143<<8))
	b.says("start ƒ2 on 0-1; signal ƒ2 on 0 15; start; finish 36608; release  final=true")
}

func TestAJobThatIgnoresSIGTERMGetsSIGKILL(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{})
	b.Kill(1)
	b.now = 100
	b.says("start ƒ2 on 0-1; signal ƒ2 on 0-1 15")
	require.Equal(t, eventlog.Timestamp(105), b.deadline)
	b.Kill(1)
	b.now = 104
	b.says("")
	require.Equal(t, eventlog.Timestamp(105), b.deadline)
	b.now = 105
	b.says("signal ƒ2 on 0-1 9")
	require.Zero(t, b.deadline)
	b.now = 5 // steps back
	b.Close(b.sessions[0])
	b.hello(0, is(exec.TaskRunning, 0))
	b.says("signal ƒ2 on 0 9")
}

func TestAJobExpires(t *testing.T) {
	b := newBench(t)
	b.KillTimeout = 2 * time.Second
	b.start(exec.Start{R: onRanks(t, "0", 50)})
	require.NoError(t, b.Handle(exec.Expiration{ID: 1, Expiration: 60}))
	require.NoError(t, b.Handle(exec.Expiration{ID: 2, Expiration: 10}))
	b.update(0, is(exec.TaskRunning, 0))
	b.now = 50
	b.says("start ƒ2 on 0; start")
	b.now = 60
	b.says("signal ƒ2 on 0 15; exception timeout: resource allocation expired")
	require.NoError(t, b.Handle(exec.Expiration{ID: 1, Expiration: 70}))
	require.Equal(t, eventlog.Timestamp(62), b.deadline)
	b.now = 62
	b.says("signal ƒ2 on 0 9")
	b.start(exec.Start{Reattach: true})
	b.Kill(1)
	b.says("reattached") // the manager has the exception
}

// A change of the expiration between two sessions of the manager is only in the next start.
func TestAJobExpiresAsTheNextStartSays(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{R: onRanks(t, "0", 50)})
	b.update(0, is(exec.TaskRunning, 0))
	b.says("start ƒ2 on 0; start")
	b.start(exec.Start{R: onRanks(t, "0", 60), Reattach: true, Started: true})
	b.now = 50
	b.says("reattached")
	require.Equal(t, eventlog.Timestamp(60), b.deadline)
	b.now = 60
	b.says("signal ƒ2 on 0 15; exception timeout: resource allocation expired")
	b.start(exec.Start{R: onRanks(t, "0", 90), Reattach: true, Started: true})
	b.says("reattached; exception timeout: resource allocation expired")
	require.Equal(t, eventlog.Timestamp(65), b.deadline, "for SIGKILL")
	b.update(0, is(exec.TaskReleased, 15))
	b.now = 65
	b.says("finish 15; release  final=true")
	b.start(exec.Start{R: onRanks(t, "0", 90), Reattach: true, Started: true})
	b.says("reattached; exception timeout: resource allocation expired; finish 15; release  final=true")
	require.Zero(t, b.deadline)
}

func TestAJobThatIsStoppedWhenItExpiresHasTimeToEnd(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{R: onRanks(t, "0", 50)})
	b.Take(49)
	b.Kill(1)
	b.now = 50
	b.says("signal ƒ2 on 0 15")
	require.Equal(t, eventlog.Timestamp(55), b.deadline)
}

func TestWhatANodeDoesNotHaveAfterARestartIsLost(t *testing.T) {
	x := new(exec.Executor)
	b := &bench{t: t, Executor: x}
	b.start(exec.Start{Reattach: true, Started: true})
	b.hello(0, is(exec.TaskRunning, 0))
	b.says("")
	b.sessions[1] = b.hello(1)
	b.says("signal ƒ2 on 0 15; reattached; exception exec: rank 1: the job shell is lost: the node does not have it")
	b.update(1, is(exec.TaskRunning, 0)) // it has, after all
	b.says("signal ƒ2 on 1 9")
}

func TestAJobThatMayNotHaveStartedIsRefusedIfNoNodeHasIt(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{Reattach: true})
	b.says("forget ƒ2 on 0-1; refused")
	b.start(exec.Start{})
	b.says("start ƒ2 on 0-1")

	other := &bench{t: t, Executor: new(exec.Executor)}
	other.start(exec.Start{Reattach: true})
	other.hello(0)
	other.sessions[1] = other.hello(1, is(exec.TaskRunning, 0))
	other.says("signal ƒ2 on 1 15; reattached; exception exec: rank 0: the job shell could not be started: the node does not have it")
	require.Equal(t, eventlog.Timestamp(5), other.deadline)
	other.update(1, is(exec.TaskReleased, 15))
	other.says("finish 256; release  final=true")
}

func TestANodeThatIsGivenUpLosesItsTasks(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{})
	b.launch(1, 1)
	b.update(0, is(exec.TaskRunning, 0))
	b.update(1, is(exec.TaskRunning, 0))
	b.says("start ƒ2 on 0-1; start ƒ2 epilog e 1 on 1; start")
	b.Fail(1, "power")
	b.Fail(7, "nobody knows it")
	b.says("signal ƒ2 on 0 15; exception exec: rank 1: the job shell is lost: power; report epilog e 1 unreachable 0 power")
	require.ErrorIs(t, b.Update(b.sessions[1], is(exec.TaskRunning, 0)), exec.ErrSession)
	b.hello(1, is(exec.TaskRunning, 0), attempt(1, exec.TaskRunning, 0))
	b.says("signal ƒ2 on 1 9; signal ƒ2 epilog e 1 on 1 9")
	b.update(0, is(exec.TaskReleased, 0))
	b.says("finish 9; release  final=true")
}

// Commands of a session that is over are not for the next, even if nobody has taken them.
func TestCommandsEndWithTheirSession(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{})
	b.Fail(0, "fire")
	b.hello(0)
	b.says("start ƒ2 on 1; signal ƒ2 on 1 15; exception exec: rank 0: the job shell is lost: fire")
	b.start(exec.Start{R: onRanks(t, "0-1", 0)})
	b.update(1, is(exec.TaskRunning, 0)) // is stopped, by a command that is lost
	b.sessions[1] = b.hello(1, is(exec.TaskRunning, 0))
	b.says("signal ƒ2 on 1 15; start; exception exec: rank 0: the job shell is lost: fire")
}

func TestActionsAreReportedWhenNothingOfThemIsLeft(t *testing.T) {
	b := newBench(t)
	b.launch(1, 0, 1)
	b.launch(1, 0, 1)
	b.says("start ƒ2 epilog e 1 on 0-1")
	line := attempt(1, exec.TaskRunning, 0)
	line.Lines = []string{"perilog-control: a"}
	b.update(0, line)
	b.update(0, line)
	b.says("report epilog e 0 output 0 perilog-control: a")
	b.update(0, attempt(1, exec.TaskExited, 256))
	b.says("")
	b.update(0, attempt(1, exec.TaskReleased, 256))
	b.update(0, attempt(1, exec.TaskReleased, 0))
	b.says("report epilog e 0 exited 256")
	b.Signal(1, perilog.Signal{Action: epilog, Attempt: 1, Ranks: idset.Of(0, 1), Signal: 15})
	b.says("signal ƒ2 epilog e 1 on 1 15")
	b.launch(2, 0, 1)
	b.says("forget ƒ2 epilog e 1 on 0; signal ƒ2 epilog e 1 on 1 9; start ƒ2 epilog e 2 on 0")
	b.launch(1, 0)
	b.update(1, attempt(1, exec.TaskReleased, 9))
	b.says("forget ƒ2 epilog e 1 on 1; start ƒ2 epilog e 2 on 1")
}

func TestALostActionIsReportedOrMissing(t *testing.T) {
	x := new(exec.Executor)
	b := &bench{t: t, Executor: x}
	u := perilog.Unresolved{Action: epilog, Reason: perilog.ReasonLost, Ranks: idset.Range(0, 3), Attempt: 4}
	require.NoError(t, x.Recover(1, u))
	require.NoError(t, x.Recover(1, u))
	require.NoError(t, x.Recover(1, perilog.Unresolved{Reason: perilog.ReasonStart}))
	b.hello(0, attempt(4, exec.TaskRunning, 0))
	b.hello(1, attempt(4, exec.TaskReleased, 1))
	b.hello(2, attempt(4, exec.TaskLost, 0))
	b.hello(3)
	b.says("report epilog e 0 started 0; report epilog e 1 exited 1; report epilog e 2 exited 9; missing epilog e 3")
}

func TestHousekeepingIsForgottenApart(t *testing.T) {
	b := newBench(t)
	l := perilog.Launch{Action: perilog.Housekeeping(), Attempt: 1, Ranks: idset.Of(0)}
	require.NoError(t, b.Launch(1, l))
	b.Forget(1, false)
	done := exec.TaskStatus{Task: exec.Task{Job: 1, Action: l.Action, Attempt: 1}, State: exec.TaskReleased}
	b.update(0, done)
	b.says("start ƒ2 housekeeping housekeeping 1 on 0; report housekeeping housekeeping 0 exited 0")
	b.launch(1, 1)
	b.Forget(1, false)
	b.says("start ƒ2 epilog e 1 on 1")
	b.update(1, attempt(1, exec.TaskReleased, 0))
	b.says("forget ƒ2 epilog e 1 on 1; report epilog e 1 exited 0")
	b.Forget(1, true)
	b.Forget(2, true)
	b.says("forget ƒ2 housekeeping housekeeping 1 on 0")
}

// The manager gave an action up, and never had it stopped.
func TestWhatRunsWhenItIsForgottenIsStopped(t *testing.T) {
	b := newBench(t)
	b.launch(1, 0, 1)
	b.update(0, attempt(1, exec.TaskRunning, 0))
	b.Signal(1, perilog.Signal{Action: epilog, Attempt: 1, Ranks: idset.Of(1), Signal: 15})
	b.says("start ƒ2 epilog e 1 on 0-1; signal ƒ2 epilog e 1 on 1 15")
	b.Forget(1, false)
	b.says("signal ƒ2 epilog e 1 on 0 15")
	b.Forget(1, true)
	b.says("")
}

func TestAStrayTaskIsStopped(t *testing.T) {
	b := newBench(t)
	b.update(0, is(exec.TaskRunning, 0))
	b.update(0, attempt(1, exec.TaskRunning, 0))
	b.update(0, is(exec.TaskReleased, 0))
	b.says("signal ƒ2 on 0 9; signal ƒ2 epilog e 1 on 0 15; forget ƒ2 on 0")
	b.Keep(1)
	b.update(0, is(exec.TaskRunning, 0))
	b.says("")
	b.start(exec.Start{R: onRanks(t, "1", 0)})
	b.update(0, is(exec.TaskReleased, 0)) // not on its rank
	b.says("start ƒ2 on 1")
}

func TestAnErrorChangesNothing(t *testing.T) {
	b := newBench(t)
	b.Executor = new(exec.Executor)
	s := b.hello(0)
	b.start(exec.Start{})
	b.says("start ƒ2 on 0")
	long := jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: strings.Repeat("x", 5000)}
	for want, err := range map[string][]error{
		"exec: ": {
			b.Handle(exec.Start{ID: 2}), b.Handle(exec.Hello{Service: "x"}), b.Handle(nil),
			b.Launch(2, perilog.Launch{Action: epilog, Attempt: 1}), b.Launch(2, perilog.Launch{Ranks: idset.Of(0)}),
			b.Launch(2, perilog.Launch{Action: epilog, Ranks: idset.Of(0)}),
			b.Recover(2, perilog.Unresolved{Reason: perilog.ReasonLost, Action: epilog}), b.Recover(2, perilog.Unresolved{Reason: perilog.ReasonLost}),
			b.Update(s, is("", 0)), b.Update(s, is("Running", 0)), b.Update(s, is(exec.TaskReleased, 0x137f)), b.Update(s, is(exec.TaskReleased, -1)),
			b.Update(s, exec.TaskStatus{Task: exec.Task{Attempt: 1}, State: exec.TaskRunning}),
			b.Update(s, exec.TaskStatus{Task: exec.Task{Action: jobstate.ActionKey{Kind: 9}, Attempt: 1}, State: exec.TaskRunning}),
			b.Update(s, exec.TaskStatus{Task: exec.Task{Action: long, Attempt: 1}, State: exec.TaskRunning}),
			second(b.Hello(0, []exec.TaskStatus{is(exec.TaskReleased, 0), is(exec.TaskReleased, 0)})),
			second(b.Hello(0, []exec.TaskStatus{is("", 0)})), second(b.Hello(1<<31, nil)),
		},
		"at most ": {
			b.Handle(exec.Start{ID: 2, R: onRanks(t, "0-4194302", 0)}),
			b.Launch(1, perilog.Launch{Action: epilog, Attempt: 1, Ranks: idset.Range(0, 4194302)}),
			b.Recover(1, perilog.Unresolved{Reason: perilog.ReasonLost, Action: epilog, Attempt: 1, Ranks: idset.Range(0, 4194302)}),
			second(b.Hello(0, make([]exec.TaskStatus, 1<<16+1))),
			b.Update(s, exec.TaskStatus{Task: shell, State: exec.TaskRunning, Lines: make([]string, 1025)}),
			b.Update(s, exec.TaskStatus{Task: shell, State: exec.TaskRunning, Lines: []string{"", strings.Repeat("x", 4097)}}),
		},
		exec.ErrSession.Error(): {b.Update(exec.Session{}, is(exec.TaskRunning, 0)), b.Update(b.sessions[1], is(exec.TaskRunning, 0))},
	} {
		for i, err := range err {
			require.ErrorContains(t, err, want, i)
		}
	}
	b.says("")
	b.Close(s)
	require.ErrorIs(t, b.Update(exec.Session{}, is(exec.TaskRunning, 0)), exec.ErrSession)
	next := b.hello(0)
	b.Close(s) // is over
	require.ErrorIs(t, b.Update(s, is(exec.TaskRunning, 0)), exec.ErrSession)
	require.NoError(t, b.Update(next, is(exec.TaskRunning, 0)))
	b.says("start ƒ2 on 0")
}

func second[A any](_ A, err error) error { return err }

// A manager asks for a job on two nodes. One of them goes away and comes back.
func ExampleExecutor() {
	var x exec.Executor
	now := eventlog.FromTime(time.Unix(1_700_000_000, 0))
	show := func() {
		todo := x.Take(now)
		for _, c := range todo.Commands {
			fmt.Println(" to rank", c.Ranks, c.Kind, c.Task)
		}
		for _, r := range todo.Responses {
			fmt.Println(" to the manager", r.Type)
		}
	}
	first, _ := x.Hello(0, nil)
	second, _ := x.Hello(1, nil)
	r, _ := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-3"}}]}}`))
	id, _ := jobid.Parse("ƒuZZybuNNy")
	fmt.Println("the manager asks")
	_ = x.Handle(exec.Start{ID: id, Jobspec: []byte(`{"version":1}`), R: r})
	show()
	fmt.Println("the nodes start it")
	task := exec.Task{Job: id}
	_ = x.Update(first, exec.TaskStatus{Task: task, State: exec.TaskRunning})
	_ = x.Update(second, exec.TaskStatus{Task: task, State: exec.TaskRunning})
	show()
	fmt.Println("rank 1 goes away, and rank 0 has ended")
	x.Close(second)
	_ = x.Update(first, exec.TaskStatus{Task: task, State: exec.TaskReleased})
	show()
	fmt.Println("rank 1 is back, and says that it has ended too")
	_, _ = x.Hello(1, []exec.TaskStatus{{Task: task, State: exec.TaskReleased, Status: 1 << 8}})
	show()
	fmt.Println("the log is closed")
	x.Forget(id, true)
	show()
	// Output:
	// the manager asks
	//  to rank 0-1 start ƒuZZybuNNy
	// the nodes start it
	//  to the manager start
	// rank 1 goes away, and rank 0 has ended
	// rank 1 is back, and says that it has ended too
	//  to the manager finish
	//  to the manager release
	// the log is closed
	//  to rank 0-1 forget ƒuZZybuNNy
}

// One job on many nodes: what a message of a node takes, in the best round. Scattered ranks make
// as many ranges as there can be.
func BenchmarkUpdate(b *testing.B) {
	var first time.Duration
	for _, n := range []int{10, 1000, 100_000} {
		for _, scattered := range []bool{false, true} {
			b.Run(fmt.Sprintf("ranks=%d/scattered=%v", n, scattered), func(b *testing.B) {
				r := onRanks(b, idset.Range(0, uint32(n-1)).String(), 0)
				sessions, best := make([]exec.Session, n), time.Hour
				for b.Loop() {
					x := new(exec.Executor)
					for i := range sessions {
						rank := i
						if scattered {
							rank = 2*i%n + 2*i/n
						}
						sessions[i], _ = x.Hello(uint32(rank), nil)
					}
					_ = x.Handle(exec.Start{ID: 1, R: r})
					x.Take(1)
					begin := b.Elapsed()
					for _, state := range []exec.TaskState{exec.TaskRunning, exec.TaskReleased} {
						for _, s := range sessions {
							_ = x.Update(s, exec.TaskStatus{Task: shell, State: state})
							x.Take(1)
						}
					}
					best = min(best, (b.Elapsed()-begin)/time.Duration(2*n))
				}
				if n == 10 && !scattered {
					first = best
				}
				b.ReportMetric(float64(best), "ns/update")
				b.ReportMetric(float64(best)/float64(first), "ratio")
			})
		}
	}
}

func TestAMessageOfANodeAllocatesNothing(t *testing.T) {
	race.Skip(t)
	b := newBench(t)
	sessions := make([]exec.Session, 1000)
	for i := range sessions {
		sessions[i] = b.hello(uint32(i))
	}
	b.start(exec.Start{R: onRanks(t, "0-1000", 0)})
	b.take()
	for _, state := range []exec.TaskState{exec.TaskRunning, exec.TaskExited} {
		rank := 0
		require.Zero(t, testing.AllocsPerRun(len(sessions)-1, func() {
			_ = b.Update(sessions[rank], is(state, 0))
			b.take()
			rank++
		}))
	}
}

// Each rank has its own latest signal, and SIGKILL is the last.
func TestASignalIsRepeatedWhereItWasSent(t *testing.T) {
	b := newBench(t)
	b.launch(1, 0, 1)
	signal := func(rank uint32, signal int) {
		b.Signal(1, perilog.Signal{Action: epilog, Attempt: 1, Ranks: idset.Of(rank), Signal: signal})
	}
	signal(0, 9)
	signal(1, 15)
	b.take()
	b.hello(0, attempt(1, exec.TaskRunning, 0))
	b.hello(1, attempt(1, exec.TaskRunning, 0))
	b.says("signal ƒ2 epilog e 1 on 0 9; signal ƒ2 epilog e 1 on 1 15")
	signal(0, 15)
	b.take()
	b.hello(0, attempt(1, exec.TaskRunning, 0))
	b.says("signal ƒ2 epilog e 1 on 0 9")
}

// A node that tells what an action has written has got the signal: an action that writes a line
// when it gets one would get another for it.
func TestALineOfAnActionDoesNotRepeatASignal(t *testing.T) {
	b := newBench(t)
	b.launch(1, 0)
	b.Signal(1, perilog.Signal{Action: epilog, Attempt: 1, Ranks: idset.Of(0), Signal: 15})
	b.says("start ƒ2 epilog e 1 on 0; signal ƒ2 epilog e 1 on 0 15")
	b.update(0, attempt(1, exec.TaskRunning, 0))
	b.take()
	line := attempt(1, exec.TaskRunning, 0)
	line.Lines = []string{"perilog-control: a"}
	b.update(0, line)
	b.says("report epilog e 0 output 0 perilog-control: a")
	b.Close(b.sessions[0])
	line.Lines = append(line.Lines, "perilog-control: b")
	b.hello(0, line)
	b.says("signal ƒ2 epilog e 1 on 0 15; report epilog e 0 output 0 perilog-control: b")

	b = newBench(t) // which did not ask for it
	b.sessions[0] = b.hello(0, line)
	b.says("signal ƒ2 epilog e 1 on 0 15")
	b.update(0, line)
	b.says("")
}

// A shell that ended while its node was away may have left processes that missed the signal.
func TestWhatAShellLeftWhileItsNodeWasAwayIsStopped(t *testing.T) {
	b := newBench(t)
	b.start(exec.Start{R: onRanks(t, "0", 0)})
	b.update(0, is(exec.TaskRunning, 0))
	b.Close(b.sessions[0])
	b.Kill(1)
	b.take()
	b.now = b.deadline
	b.take()
	b.hello(0, is(exec.TaskExited, 0))
	b.says("signal ƒ2 on 0 9; finish 0")
}

// A node that runs an earlier attempt does not run the next one: else its rank would be
// freed while the earlier one runs (I3).
func TestAnAttemptStartsWhenTheEarlierOneHasEnded(t *testing.T) {
	b := newBench(t)
	b.launch(1, 0, 1)
	b.update(0, attempt(1, exec.TaskRunning, 0))
	b.launch(2, 0, 1)
	b.says("start ƒ2 epilog e 1 on 0-1; signal ƒ2 epilog e 1 on 0-1 9")
	b.update(0, attempt(1, exec.TaskExited, 9))
	b.says("signal ƒ2 epilog e 1 on 0 9")
	b.update(0, attempt(1, exec.TaskReleased, 9))
	b.says("forget ƒ2 epilog e 1 on 0; start ƒ2 epilog e 2 on 0")
	b.Close(b.sessions[1])
	b.sessions[1] = b.hello(1, attempt(1, exec.TaskRunning, 0))
	b.says("signal ƒ2 epilog e 1 on 1 9")
	b.launch(3, 1)
	b.says("forget ƒ2 epilog e 2 on 1") // which never ran
	lines := attempt(1, exec.TaskLost, 0)
	lines.Lines = []string{"perilog-control: late"}
	b.update(1, lines)
	b.says("forget ƒ2 epilog e 1 on 1; start ƒ2 epilog e 3 on 1")
	b.update(1, lines)
	b.says("forget ƒ2 epilog e 1 on 1")
}

// After a restart of the manager, the earlier attempt may run where it is not heard of.
func TestALostAttemptEndsBeforeTheNext(t *testing.T) {
	lost := perilog.Unresolved{Action: epilog, Reason: perilog.ReasonLost, Ranks: idset.Range(0, 2), Attempt: 1}
	b := &bench{t: t, Executor: new(exec.Executor)}
	require.NoError(t, b.Recover(1, lost))
	b.launch(2, 0, 1, 2)
	b.says("")
	b.hello(0)
	b.says("forget ƒ2 epilog e 1 on 0; start ƒ2 epilog e 2 on 0")
	b.sessions[1] = b.hello(1, attempt(1, exec.TaskRunning, 0))
	b.says("signal ƒ2 epilog e 1 on 1 9")
	b.hello(2)
	b.Fail(2, "power")
	b.says("report epilog e 2 unreachable 0 power")
	b.Fail(1, "power")
	b.says("report epilog e 1 unreachable 0 power")
	lost.Ranks = nil
	require.ErrorContains(t, b.Recover(2, lost), "no ranks")
	require.NoError(t, b.Check())
}

// An attempt that waits for the end of an earlier one, and is stopped meanwhile, ends after
// it: else its rank would be freed while the earlier one runs (I3).
func TestAnAttemptThatIsStoppedEndsAfterTheEarlierOne(t *testing.T) {
	b := newBench(t)
	b.launch(1, 0)
	b.update(0, attempt(1, exec.TaskRunning, 0))
	b.launch(2, 0)
	b.take()
	b.Signal(1, perilog.Signal{Action: epilog, Attempt: 2, Ranks: idset.Of(0), Signal: 15})
	b.says("")
	b.Close(b.sessions[0])
	b.sessions[0] = b.hello(0, attempt(1, exec.TaskRunning, 0))
	b.says("signal ƒ2 epilog e 1 on 0 9")
	b.update(0, attempt(1, exec.TaskReleased, 9))
	b.says("forget ƒ2 epilog e 1 on 0; report epilog e 0 exited 15 stopped before it was started")

	b.launch(3, 0) // and is replaced itself
	b.update(0, attempt(3, exec.TaskRunning, 0))
	b.launch(4, 0)
	b.launch(5, 0)
	b.take()
	b.update(0, attempt(3, exec.TaskReleased, 9))
	b.says("forget ƒ2 epilog e 3 on 0; start ƒ2 epilog e 5 on 0")
}

// After a restart of the manager, only a node knows of the attempt before the lost one: the
// lost one is not missing before that has ended.
func TestAnEarlierAttemptOfALostOneEndsBeforeTheNext(t *testing.T) {
	b := &bench{t: t, Executor: new(exec.Executor)}
	lost := perilog.Unresolved{Action: epilog, Reason: perilog.ReasonLost, Ranks: idset.Of(0), Attempt: 2}
	require.NoError(t, b.Recover(1, lost))
	b.sessions[0] = b.hello(0, attempt(1, exec.TaskRunning, 0))
	b.says("signal ƒ2 epilog e 1 on 0 9")
	b.update(0, attempt(1, exec.TaskReleased, 9))
	b.says("forget ƒ2 epilog e 1 on 0; missing epilog e 0")

	lost.Attempt = 5
	four := exec.TaskStatus{Task: exec.Task{Job: 2, Action: epilog, Attempt: 4}, State: exec.TaskRunning}
	b = &bench{t: t, Executor: new(exec.Executor)}
	require.NoError(t, b.Recover(2, lost))
	b.sessions[0] = b.hello(0, four)
	require.NoError(t, b.Launch(2, perilog.Launch{Action: epilog, Attempt: 6, Ranks: idset.Of(0), Command: []string{"x"}}))
	b.says("signal ƒ3 epilog e 4 on 0 9")
	four.State = exec.TaskLost
	b.update(0, four)
	b.says("forget ƒ3 epilog e 4 on 0; forget ƒ3 epilog e 5 on 0; start ƒ3 epilog e 6 on 0")

	four.State, lost.Attempt = exec.TaskRunning, 5
	b = &bench{t: t, Executor: new(exec.Executor)}
	require.NoError(t, b.Recover(2, lost))
	require.NoError(t, b.Launch(2, perilog.Launch{Action: epilog, Attempt: 6, Ranks: idset.Of(0), Command: []string{"x"}}))
	b.sessions[0] = b.hello(0, four)
	b.says("signal ƒ3 epilog e 4 on 0 9; forget ƒ3 epilog e 5 on 0")
	three := four
	three.Task.Attempt = 3
	b.update(0, three) // which may be a lie: one is waited for
	b.says("signal ƒ3 epilog e 3 on 0 15")
}

// RFC 32: the response to a start that reattaches is never "start", and there is none if
// nothing is found, unless the log needs it for epilogs.
func TestAStartIsAnsweredAsItWasAsked(t *testing.T) {
	for _, c := range []struct {
		first, next exec.Start
		node        []exec.TaskStatus
		want        string
	}{
		{exec.Start{}, exec.Start{}, nil, "start"},
		{exec.Start{}, exec.Start{Reattach: true}, nil, "reattached"},
		{exec.Start{}, exec.Start{Reattach: true, Started: true}, nil, ""},
		{exec.Start{}, exec.Start{Reattach: true, Started: true}, []exec.TaskStatus{is(exec.TaskReleased, 0)}, "reattached"},
		{exec.Start{Reattach: true, Started: true}, exec.Start{}, []exec.TaskStatus{is(exec.TaskReleased, 0)}, "start"},
	} {
		b := &bench{t: t, Executor: new(exec.Executor)}
		c.first.R = onRanks(t, "0", 0)
		b.start(c.first)
		if c.node == nil {
			b.Fail(0, "power")
		}
		b.hello(0, c.node...)
		b.take()
		b.start(c.next)
		got, _, _ := strings.Cut(said(b.take()), ";")
		if !strings.HasPrefix(got, "start") && !strings.HasPrefix(got, "reattached") {
			got = ""
		}
		require.Equal(t, c.want, got)
	}
}

// A node cannot keep an action from its next attempt with one that nobody launched.
func TestAnAttemptThatNobodyLaunchedBlocksNone(t *testing.T) {
	b := &bench{t: t, Executor: new(exec.Executor)}
	require.NoError(t, b.Recover(1, perilog.Unresolved{Action: epilog, Reason: perilog.ReasonLost, Ranks: idset.Of(0), Attempt: 2}))
	b.sessions[0] = b.hello(0, attempt(9, exec.TaskRunning, 0))
	b.says("signal ƒ2 epilog e 9 on 0 15; missing epilog e 0")
	b.launch(3, 0)
	b.says("start ƒ2 epilog e 3 on 0")
	b.update(0, attempt(1, exec.TaskRunning, 0)) // which can wait for nothing now
	b.says("signal ƒ2 epilog e 1 on 0 15")
}
