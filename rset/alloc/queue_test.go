package alloc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// How errors begin.
const (
	unknownJob   = "alloc: unknown job"
	duplicateJob = "alloc: duplicate job"
	violation    = "alloc: protocol violation"
)

// told is what is sent, in words: "alloc 3@16, cancel 4".
func told(sends []alloc.Send) string {
	var parts []string
	for _, s := range sends {
		switch s.Kind {
		case alloc.SendAlloc:
			parts = append(parts, fmt.Sprintf("alloc %d@%d", s.Job.ID, s.Job.Priority))
		case alloc.SendCancel:
			parts = append(parts, fmt.Sprintf("cancel %d", s.Job.ID))
		case alloc.SendPrioritize:
			words := []string{"prioritize"}
			for _, p := range s.Jobs {
				words = append(words, fmt.Sprintf("%d@%d", p.ID, p.Priority))
			}
			parts = append(parts, strings.Join(words, " "))
		case alloc.SendFree:
			parts = append(parts, fmt.Sprintf("free %d %v", s.Job.ID, s.R))
		default:
			parts = append(parts, s.Kind.String())
		}
	}
	return strings.Join(parts, ", ")
}

// described is a queue in words, for comparing.
func described(q *alloc.Queue) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %+v:", q.Phase(), q.Stats())
	for j, s := range q.All() {
		fmt.Fprintf(&b, " %d@%d %v", j.ID, j.Priority, s)
	}
	for j := range q.List(alloc.StateCanceled) {
		fmt.Fprintf(&b, " %d canceled", j.ID)
	}
	return b.String()
}

// A drive calls a queue and checks it after each call.
type drive struct {
	t *testing.T
	*alloc.Queue
}

func newDrive(t *testing.T) drive { return drive{t, alloc.NewQueue(alloc.Config{})} }

// online makes a scheduler ready that takes limit requests.
func online(t *testing.T, limit int) drive {
	d := newDrive(t)
	require.Empty(t, d.Hello(nil))
	d.ready(limit, "", 0)
	return d
}

func (d drive) did(want string, sends []alloc.Send, err error) {
	d.t.Helper()
	require.NoError(d.t, err)
	require.Equal(d.t, want, told(sends))
	require.NoError(d.t, d.Check())
}

func (d drive) ready(limit int, want string, count uint32) {
	d.t.Helper()
	sends, a, err := d.Ready(nil, alloc.Ready{Limit: limit})
	d.did(want, sends, err)
	require.Equal(d.t, count, a.Count)
}

func (d drive) add(id jobid.ID, priority uint32, want string) {
	d.t.Helper()
	sends, err := d.Add(nil, alloc.JobInfo{ID: id, Priority: priority})
	d.did(want, sends, err)
}

func (d drive) cancel(id jobid.ID, want string) {
	d.t.Helper()
	sends, err := d.Cancel(nil, id)
	d.did(want, sends, err)
}

func (d drive) prioritize(want string, jobs ...alloc.Priority) {
	d.t.Helper()
	sends, err := d.Prioritize(nil, jobs)
	d.did(want, sends, err)
}

// answerOf returns an answer of a type for a job.
func answerOf(t testing.TB, typ alloc.ResponseType, id jobid.ID) alloc.Response {
	return answersOf(t)[typ](id)
}

func (d drive) answer(typ alloc.ResponseType, id jobid.ID, outcome alloc.Outcome, want string) {
	d.t.Helper()
	sends, got, err := d.Response(nil, answerOf(d.t, typ, id))
	d.did(want, sends, err)
	require.Equal(d.t, outcome, got)
}

func (d drive) state(id jobid.ID, want alloc.State) {
	d.t.Helper()
	_, s, ok := d.Job(id)
	require.True(d.t, ok)
	require.Equal(d.t, want, s)
}

func TestJobsAreAskedForByPriorityThenByID(t *testing.T) {
	d := newDrive(t)
	for _, p := range []alloc.Priority{{5, 16}, {3, 16}, {9, 31}, {1, 1}} {
		d.add(p.ID, p.Priority, "")
	}
	require.Equal(t, "offline {Pending:4 Blocked:0 Sent:0 Recalled:0 Canceled:0}: 9@31 pending 3@16 pending 5@16 pending 1@1 pending", described(d.Queue))
	d.Hello(nil)
	d.ready(0, "alloc 9@31, alloc 3@16, alloc 5@16, alloc 1@1", 4)
	d.add(4, 16, "alloc 4@16")
}

func TestRequestsCarryTheJob(t *testing.T) {
	d := online(t, 0)
	job := alloc.JobInfo{ID: 1, Priority: 16, UserID: 1000, Submit: 12.5}
	sends, err := d.Add(nil, job)
	require.NoError(t, err)
	require.Equal(t, job, sends[0].Job)
	line, err := sends[0].AppendLine(nil, []byte(`{"version":1}`))
	require.NoError(t, err)
	require.Equal(t, `{"topic":"sched.alloc","payload":{"id":1,"priority":16,"userid":1000,"t_submit":12.5,"jobspec":{"version":1}}}`+"\n", string(line))
}

func TestNothingIsSentBetweenHelloAndReady(t *testing.T) {
	d := newDrive(t)
	d.Hello(nil)
	require.Equal(t, alloc.PhaseGreeting, d.Phase())
	d.add(1, 16, "")
	d.prioritize("", alloc.Priority{ID: 1, Priority: 17})
	d.add(2, 16, "")
	d.cancel(2, "")
	d.ready(1, "alloc 1@17", 1)
}

func TestReadyCountsTheJobsThatWaitWithoutBlockedOnes(t *testing.T) {
	d := newDrive(t)
	d.add(1, 0, "")
	d.add(2, 16, "")
	d.add(3, 17, "")
	d.Hello(nil)
	d.ready(1, "alloc 3@17", 2)
}

func TestReadyNeedsAHelloBeforeIt(t *testing.T) {
	d := newDrive(t)
	d.add(1, 16, "")
	for _, phase := range []alloc.Phase{alloc.PhaseOffline, alloc.PhaseOnline} {
		before := described(d.Queue)
		sends, _, err := d.Ready(nil, alloc.Ready{Limit: 2})
		require.Empty(t, sends)
		require.ErrorContains(t, err, violation)
		require.EqualError(t, err, "alloc: protocol violation: ready without a hello, the scheduler is "+phase.String())
		require.Equal(t, before, described(d.Queue))
		d.Hello(nil)
		d.ready(0, "alloc 1@16", 1)
	}
	d.Hello(nil)
	_, _, err := d.Ready(nil, alloc.Ready{Limit: -1})
	require.ErrorIs(t, err, alloc.ErrMessage)
	require.Equal(t, alloc.PhaseGreeting, d.Phase())
}

// SM-16: priority 0 holds, wherever it comes from.
func TestBlockedJobsAreNeverAskedFor(t *testing.T) {
	d := online(t, 0)
	t.Log("SM-16")
	d.add(1, 0, "")
	d.state(1, alloc.StateBlocked)
	d.prioritize("", alloc.Priority{ID: 1, Priority: 0})
	d.prioritize("alloc 1@5", alloc.Priority{ID: 1, Priority: 5})
	d.prioritize("cancel 1", alloc.Priority{ID: 1, Priority: 0})
	d.state(1, alloc.StateRecalled)
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeRequeued, "")
	d.state(1, alloc.StateBlocked)
}

func TestTheLimitIsNeverExceededAndAlwaysUsed(t *testing.T) {
	d := online(t, 2)
	d.add(1, 16, "alloc 1@16")
	d.add(2, 16, "alloc 2@16")
	d.add(3, 16, "")
	d.add(4, 16, "")
	d.answer(alloc.ResponseSuccess, 2, alloc.OutcomeAllocated, "alloc 3@16")
	d.answer(alloc.ResponseDeny, 1, alloc.OutcomeDenied, "alloc 4@16")
	d.answer(alloc.ResponseSuccess, 3, alloc.OutcomeAllocated, "")
	d.answer(alloc.ResponseAnnotate, 4, alloc.OutcomeAnnotated, "")
	d.answer(alloc.ResponseSuccess, 4, alloc.OutcomeAllocated, "")
	require.Equal(t, alloc.Stats{}, d.Stats())
}

func TestTheLastRequestIsRecalledWhenABetterJobComes(t *testing.T) {
	d := online(t, 2)
	d.add(1, 16, "alloc 1@16")
	d.add(2, 15, "alloc 2@15")
	d.add(3, 15, "")
	d.add(4, 20, "cancel 2")
	d.state(2, alloc.StateRecalled)
	d.answer(alloc.ResponseCancel, 2, alloc.OutcomeRequeued, "alloc 4@20")
	d.state(2, alloc.StatePending)
	d.answer(alloc.ResponseSuccess, 1, alloc.OutcomeAllocated, "alloc 2@15")
}

// Each place that comes free is for one better job: no more are recalled.
func TestNoMoreRequestsAreRecalledThanBetterJobsCame(t *testing.T) {
	d := online(t, 3)
	for id := jobid.ID(1); id <= 3; id++ {
		d.add(id, 10, fmt.Sprintf("alloc %d@10", id))
	}
	d.add(4, 20, "cancel 3")
	d.add(5, 5, "")
	d.prioritize("", alloc.Priority{ID: 5, Priority: 6})
	d.add(6, 20, "cancel 2")
	d.cancel(6, "")
	d.add(7, 15, "") // takes the place that 6 was to have
	d.answer(alloc.ResponseCancel, 3, alloc.OutcomeRequeued, "alloc 4@20")
	d.answer(alloc.ResponseCancel, 2, alloc.OutcomeRequeued, "alloc 7@15")
	d.answer(alloc.ResponseDeny, 4, alloc.OutcomeDenied, "alloc 2@10")
}

func TestARecalledJobIsNotAskedForBeforeItsAnswer(t *testing.T) {
	d := online(t, 1)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 20, "cancel 1")
	d.cancel(2, "")
	d.prioritize("", alloc.Priority{ID: 1, Priority: 30})
	d.state(1, alloc.StateRecalled)
	d.answer(alloc.ResponseAnnotate, 1, alloc.OutcomeAnnotated, "")
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeRequeued, "alloc 1@30")
}

func TestARecalledJobMayStillGetItsResources(t *testing.T) {
	d := online(t, 1)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 20, "cancel 1")
	d.answer(alloc.ResponseSuccess, 1, alloc.OutcomeAllocated, "alloc 2@20")
	d.prioritize("cancel 2", alloc.Priority{ID: 2, Priority: 0})
	d.answer(alloc.ResponseDeny, 2, alloc.OutcomeDenied, "")
	require.Equal(t, alloc.Stats{}, d.Stats())
}

func TestManyAreReprioritizedInOneMessage(t *testing.T) {
	d := newDrive(t)
	for id := jobid.ID(1); id <= 5; id++ {
		d.add(id, 10, "")
	}
	d.Hello(nil)
	d.ready(4, "alloc 1@10, alloc 2@10, alloc 3@10, alloc 4@10", 5)
	d.add(6, 0, "")
	d.prioritize("cancel 4, prioritize 3@12 2@11", // 4 is blocked, 1 is as before, 5 waits, 6 is blocked
		alloc.Priority{3, 12}, alloc.Priority{1, 10}, alloc.Priority{4, 0}, alloc.Priority{2, 11}, alloc.Priority{5, 9})
	d.answer(alloc.ResponseCancel, 4, alloc.OutcomeRequeued, "alloc 5@9")
	d.prioritize("")
	d.prioritize("cancel 5, prioritize 1@1", alloc.Priority{5, 0}, alloc.Priority{6, 0}, alloc.Priority{1, 1})
}

func TestAMessageNamesNoMoreJobsThanAllowed(t *testing.T) {
	d := drive{t, alloc.NewQueue(alloc.Config{})}
	d.SetMaxPairs(2)
	d.Hello(nil)
	d.ready(0, "", 0)
	var jobs []alloc.Priority
	for id := jobid.ID(1); id <= 5; id++ {
		d.add(id, 10, fmt.Sprintf("alloc %d@10", id))
		jobs = append(jobs, alloc.Priority{ID: id, Priority: 11})
	}
	d.prioritize("prioritize 1@11 2@11, prioritize 3@11 4@11, prioritize 5@11", jobs...)
	most := alloc.Priority{ID: 1<<63 - 1, Priority: 1<<32 - 1}
	b, err := alloc.AppendMessage(nil, alloc.TopicPrioritize, alloc.Prioritize{Jobs: slices.Repeat([]alloc.Priority{most}, alloc.MaxPairs)})
	require.NoError(t, err, "the default fits in a line")
	require.Less(t, len(b), maxBytes)
}

// A request that makes way is recalled, which says all that there is to say.
func TestARequestThatMakesWayIsNotReprioritizedToo(t *testing.T) {
	d := online(t, 2)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 10, "alloc 2@10")
	d.add(3, 9, "")
	d.add(4, 8, "")
	d.prioritize("cancel 2, cancel 1", alloc.Priority{1, 2}, alloc.Priority{2, 1})
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeRequeued, "alloc 3@9")
	d.answer(alloc.ResponseCancel, 2, alloc.OutcomeRequeued, "alloc 4@8")
	d.prioritize("cancel 4, prioritize 3@5", alloc.Priority{3, 5}, alloc.Priority{4, 1}, alloc.Priority{1, 3})
}

func TestReprioritizingRefusesUnknownJobsAndRepetitions(t *testing.T) {
	d := online(t, 1)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 9, "")
	before := described(d.Queue)
	_, err := d.Prioritize(nil, []alloc.Priority{{2, 11}, {7, 1}})
	require.EqualError(t, err, "alloc: unknown job: ƒ8")
	_, err = d.Prioritize(nil, []alloc.Priority{{2, 11}, {1, 0}, {2, 12}})
	require.ErrorContains(t, err, duplicateJob)
	require.EqualError(t, err, "alloc: duplicate job: ƒ3")
	require.Equal(t, before, described(d.Queue))
	d.prioritize("cancel 1", alloc.Priority{2, 11})
}

// SM-9, PR-8: the job is gone at once; what comes late is given back, and the
// job never had it.
func TestResourcesForACancelledJobAreGivenBackAtOnce(t *testing.T) {
	t.Log("SM-9, PR-8")
	d := online(t, 0)
	d.add(1, 16, "alloc 1@16")
	d.cancel(1, "cancel 1")
	_, _, ok := d.Job(1)
	require.False(t, ok)
	require.Equal(t, alloc.Stats{Canceled: 1}, d.Stats())
	d.answer(alloc.ResponseAnnotate, 1, alloc.OutcomeDropped, "")
	sends, outcome, err := d.Response(nil, alloc.Response{ID: 1, R: parseR(t, strings.Replace(textR, `"version"`, `"scheduling":{"x":1},"version"`, 1))})
	require.NoError(t, err)
	require.Equal(t, alloc.OutcomeReturned, outcome)
	require.Len(t, sends, 1)
	line, err := sends[0].AppendLine(nil, nil)
	require.NoError(t, err)
	require.Equal(t, `{"topic":"sched.free","payload":{"id":1,"R":`+textR+`,"final":true}}`+"\n", string(line), "without what the scheduler keeps with it")
	require.Equal(t, alloc.Stats{}, d.Stats())
}

func TestLateAnswersForACancelledJobAreSwallowed(t *testing.T) {
	for _, typ := range []alloc.ResponseType{alloc.ResponseDeny, alloc.ResponseCancel} {
		d := online(t, 0)
		d.add(1, 16, "alloc 1@16")
		d.cancel(1, "cancel 1")
		d.answer(typ, 1, alloc.OutcomeDropped, "")
		require.Equal(t, alloc.Stats{}, d.Stats())
		d.add(1, 16, "alloc 1@16")
	}
}

// NEEDS 3.1 row 34: no request for a job that is gone, and one cancel only.
func TestACancelledJobIsNeverAskedForAgain(t *testing.T) {
	d := online(t, 1)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 20, "cancel 1")
	d.cancel(1, "") // was taken back before
	d.cancel(2, "")
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeDropped, "")
	d.add(3, 0, "")
	d.cancel(3, "")
	require.Equal(t, alloc.Stats{}, d.Stats())
}

func TestAnIDIsNotAddedAgainWhileItsRequestIsOutstanding(t *testing.T) {
	d := online(t, 0)
	d.add(1, 16, "alloc 1@16")
	_, err := d.Add(nil, alloc.JobInfo{ID: 1})
	require.ErrorContains(t, err, duplicateJob)
	d.cancel(1, "cancel 1")
	before := described(d.Queue)
	_, err = d.Add(nil, alloc.JobInfo{ID: 1, Priority: 16})
	require.ErrorContains(t, err, duplicateJob)
	_, err = d.Queue.Cancel(nil, 1)
	require.ErrorContains(t, err, unknownJob)
	_, err = d.Stop(nil, 1)
	require.ErrorContains(t, err, unknownJob)
	_, err = d.Start(nil, 1)
	require.ErrorContains(t, err, unknownJob)
	_, err = d.Queue.Prioritize(nil, []alloc.Priority{{1, 1}})
	require.ErrorContains(t, err, unknownJob)
	require.Equal(t, before, described(d.Queue))
}

// A canceled request still is one of those that the scheduler has.
func TestTheRequestOfACancelledJobCountsUntilItsAnswer(t *testing.T) {
	d := online(t, 1)
	d.add(1, 16, "alloc 1@16")
	d.add(2, 16, "")
	d.cancel(1, "cancel 1")
	d.add(3, 20, "")
	d.answer(alloc.ResponseSuccess, 1, alloc.OutcomeReturned, "free 1 rank[0-3]/core[0-7], alloc 3@20")
}

func TestAnswersToNoRequestChangeNothing(t *testing.T) {
	d := newDrive(t)
	d.add(1, 16, "")
	d.add(2, 0, "")
	check := func(id jobid.ID) {
		t.Helper()
		before := described(d.Queue)
		for typ := alloc.ResponseSuccess; typ <= alloc.ResponseCancel; typ++ {
			sends, outcome, err := d.Response(nil, answerOf(t, typ, id))
			require.Empty(t, sends)
			require.Zero(t, outcome)
			require.ErrorContains(t, err, violation)
			require.EqualError(t, err, fmt.Sprintf("alloc: protocol violation: %v response for job %v, which has no request", typ, id))
			require.Equal(t, before, described(d.Queue))
		}
	}
	check(1)
	d.Hello(nil)
	check(1)
	d.ready(1, "alloc 1@16", 1)
	check(2)
	check(3)
	d.answer(alloc.ResponseSuccess, 1, alloc.OutcomeAllocated, "")
	check(1)
}

func TestAnswersThatLackSomethingChangeNothing(t *testing.T) {
	d := online(t, 0)
	d.add(1, 16, "alloc 1@16")
	for _, a := range []alloc.Response{{ID: 1}, {ID: 1, Type: alloc.ResponseAnnotate}, {ID: 1, Type: 4}, {ID: 1, Type: alloc.ResponseCancel, Note: "x"}} {
		_, _, err := d.Response(nil, a)
		require.ErrorIs(t, err, alloc.ErrMessage)
		d.state(1, alloc.StateSent)
	}
}

// As flux-core does: the request has ended, so it is made again.
func TestAnUnrequestedCancelResponsePutsTheJobBack(t *testing.T) {
	d := online(t, 0)
	d.add(1, 16, "alloc 1@16")
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeRequeued, "alloc 1@16")
}

func TestLossOfTheSchedulerPutsEverythingBack(t *testing.T) {
	d := online(t, 4)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 12, "alloc 2@12")
	d.add(3, 11, "alloc 3@11")
	d.add(4, 11, "alloc 4@11")
	d.add(5, 0, "")
	d.cancel(4, "cancel 4")
	d.prioritize("cancel 3", alloc.Priority{3, 0})
	require.Equal(t, []jobid.ID{7, 2, 1, 3}, d.Lost([]jobid.ID{7}), "in queue order, behind what was there")
	require.NoError(t, d.Check())
	require.Equal(t, "offline {Pending:2 Blocked:2 Sent:0 Recalled:0 Canceled:0}: 2@12 pending 1@10 pending 3@0 blocked 5@0 blocked", described(d.Queue))
	require.Empty(t, d.Lost(nil))
	d.add(4, 1, "") // its late answer will never come
	d.Hello(nil)
	d.ready(1, "alloc 2@12", 3)
}

func TestASecondHelloReplacesTheFirst(t *testing.T) {
	d := online(t, 0)
	d.add(1, 10, "alloc 1@10")
	require.Equal(t, []jobid.ID{1}, d.Hello(nil))
	require.NoError(t, d.Check())
	d.add(2, 10, "")
	_, _, err := d.Response(nil, answerOf(t, alloc.ResponseSuccess, 1))
	require.ErrorContains(t, err, violation, "of the scheduler before")
	require.Empty(t, d.Hello(nil))
	d.ready(1, "alloc 1@10", 2)
}

// A stopped queue, RFC 27: requests are taken back though priorities stay.
func TestAStoppedJobIsRecalledAndComesBack(t *testing.T) {
	d := online(t, 0)
	d.add(1, 10, "alloc 1@10")
	stop := func(id jobid.ID, want string) {
		t.Helper()
		sends, err := d.Stop(nil, id)
		d.did(want, sends, err)
	}
	start := func(id jobid.ID, want string) {
		t.Helper()
		sends, err := d.Start(nil, id)
		d.did(want, sends, err)
	}
	stop(1, "cancel 1")
	stop(1, "")
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeRequeued, "")
	d.state(1, alloc.StateBlocked)
	d.prioritize("", alloc.Priority{1, 12})
	stop(1, "")
	start(1, "alloc 1@12")
	start(1, "")

	stop(1, "cancel 1")
	start(1, "") // asked for again once the scheduler has answered
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeRequeued, "alloc 1@12")

	d.add(2, 0, "")
	stop(2, "")
	d.prioritize("", alloc.Priority{2, 5})
	d.state(2, alloc.StateBlocked)
	d.prioritize("", alloc.Priority{2, 0})
	start(2, "")
	d.state(2, alloc.StateBlocked)
}

// A job that waits gives its claim to the next one when it is stopped.
func TestStoppingAWaitingJobWithAClaimRecallsNothingMore(t *testing.T) {
	d := online(t, 1)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 20, "cancel 1")
	d.add(3, 15, "")
	sends, err := d.Stop(nil, 2)
	d.did("", sends, err)
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeRequeued, "alloc 3@15")
}

// A job comes into a stopped queue: there is nothing to take back.
func TestAJobThatIsAddedStoppedIsNotAskedForBeforeStart(t *testing.T) {
	d := online(t, 0)
	require.NoError(t, d.AddStopped(alloc.JobInfo{ID: 1, Priority: 10}))
	d.state(1, alloc.StateBlocked)
	require.ErrorContains(t, d.AddStopped(alloc.JobInfo{ID: 1}), duplicateJob)
	d.prioritize("", alloc.Priority{1, 20})
	require.Equal(t, []jobid.ID(nil), d.Hello(nil))
	d.ready(0, "", 0)
	sends, err := d.Start(nil, 1)
	d.did("alloc 1@20", sends, err)
}

// Jobs of one queue are stopped and started together: of those that start, the best get
// the requests, and none is recalled for another.
func TestJobsThatStartTogetherAreAskedForInOrder(t *testing.T) {
	d := online(t, 2)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 20, "alloc 2@20")
	d.add(3, 15, "cancel 1")
	sends, err := d.Stop(nil, 1, 2, 3)
	d.did("cancel 2", sends, err)
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeRequeued, "")
	d.answer(alloc.ResponseCancel, 2, alloc.OutcomeRequeued, "")
	sends, err = d.Start(nil, 1, 3, 2)
	d.did("alloc 2@20, alloc 3@15", sends, err)
	sends, err = d.Stop(nil, 1, 4, 2)
	require.ErrorContains(t, err, unknownJob)
	d.did("", sends, nil)
	d.state(1, alloc.StatePending)
	d.state(2, alloc.StateSent)
}

func TestAFullQueueTakesNoMore(t *testing.T) {
	q := alloc.NewQueue(alloc.Config{MaxJobs: 2})
	d := drive{t, q}
	d.Hello(nil)
	d.ready(0, "", 0)
	d.add(1, 16, "alloc 1@16")
	d.add(2, 16, "alloc 2@16")
	d.cancel(1, "cancel 1")
	_, err := q.Add(nil, alloc.JobInfo{ID: 3})
	require.ErrorIs(t, err, alloc.ErrLimit, "the canceled one counts until it has a response")
	require.EqualError(t, err, "alloc: limit exceeded: 3 jobs, at most 2 are allowed")
	d.answer(alloc.ResponseCancel, 1, alloc.OutcomeDropped, "")
	d.add(3, 16, "alloc 3@16")
}

func TestTheZeroQueueWorks(t *testing.T) {
	var q alloc.Queue
	require.NoError(t, q.Check())
	require.Equal(t, alloc.PhaseOffline, q.Phase())
	require.Equal(t, alloc.Stats{}, q.Stats())
	require.Empty(t, q.Lost(nil))
	for range q.All() {
		t.Fatal("a job")
	}
	_, err := q.Cancel(nil, 1)
	require.ErrorContains(t, err, unknownJob)
	_, _, ok := q.Job(1)
	require.False(t, ok)
	_, err = q.Add(nil, alloc.JobInfo{ID: 1, Priority: 1})
	require.NoError(t, err)
	q.Hello(nil)
	sends, _, err := q.Ready(nil, alloc.Ready{})
	require.NoError(t, err)
	require.Equal(t, "alloc 1@1", told(sends))
	require.NoError(t, q.Check())
}

func TestListsEndWhenTheyAreToldTo(t *testing.T) {
	d := online(t, 1)
	d.add(1, 10, "alloc 1@10")
	d.add(2, 20, "cancel 1")
	d.add(3, 5, "")
	require.Len(t, slices.Collect(d.List(alloc.StatePending)), 2)
	for j := range d.List(alloc.StatePending) {
		require.Equal(t, jobid.ID(2), j.ID)
		break
	}
	n := 0
	for range d.List(alloc.StatePending) {
		if n++; n == 2 {
			break
		}
	}
	for range d.All() {
		n++
		break
	}
	require.Equal(t, 3, n)
}

func TestOperationsAppendToWhatTheyAreGiven(t *testing.T) {
	d := online(t, 0)
	first := []alloc.Send{{Kind: alloc.SendFree}}
	sends, err := d.Add(first, alloc.JobInfo{ID: 1, Priority: 1})
	require.NoError(t, err)
	require.Len(t, sends, 2)
	require.Equal(t, alloc.SendFree, sends[0].Kind)
	sends, err = d.Queue.Prioritize(first, []alloc.Priority{{1, 2}})
	require.NoError(t, err)
	require.Len(t, sends, 2)
	sends, err = d.Queue.Cancel(first, 9)
	require.Error(t, err)
	require.Len(t, sends, 1)
}

func TestSendsBecomeLines(t *testing.T) {
	for want, s := range map[string]alloc.Send{
		`{"topic":"sched.cancel","payload":{"id":7}}`:             {Kind: alloc.SendCancel, Job: alloc.JobInfo{ID: 7}},
		`{"topic":"sched.prioritize","payload":{"jobs":[[7,1]]}}`: {Kind: alloc.SendPrioritize, Jobs: []alloc.Priority{{7, 1}}},
	} {
		b, err := s.AppendLine([]byte("x"), nil)
		require.NoError(t, err)
		require.Equal(t, "x"+want+"\n", string(b))
		require.Contains(t, want, s.Kind.String())
	}
	_, err := alloc.Send{}.AppendLine(nil, nil)
	require.ErrorIs(t, err, alloc.ErrMessage)
	_, err = alloc.Send{Kind: alloc.SendAlloc}.AppendLine(nil, nil)
	require.ErrorIs(t, err, alloc.ErrMessage, "a request without jobspec")
	require.Equal(t, "sched.free", alloc.SendFree.String())
}

func TestEveryNameIsTotal(t *testing.T) {
	require.Equal(t, "[State(0) pending blocked sent recalled canceled]", fmt.Sprint([]alloc.State{0, 1, 2, 3, 4, 5}))
	require.Equal(t, "State(200)", alloc.State(200).String())
	require.Equal(t, "[Phase(0) offline greeting online Phase(4)]", fmt.Sprint([]alloc.Phase{0, 1, 2, 3, 4}))
	require.Equal(t, "[Outcome(0) allocated annotated denied requeued returned dropped Outcome(7)]", fmt.Sprint([]alloc.Outcome{0, 1, 2, 3, 4, 5, 6, 7}))
	require.Equal(t, "[SendKind(0) sched.alloc sched.cancel sched.prioritize sched.free SendKind(5)]", fmt.Sprint([]alloc.SendKind{0, 1, 2, 3, 4, 5}))
}
