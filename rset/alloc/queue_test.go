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
		switch s.Topic {
		case alloc.TopicAlloc:
			parts = append(parts, fmt.Sprintf("alloc %d@%d", s.Job.ID, s.Job.Priority))
		case alloc.TopicCancel:
			parts = append(parts, fmt.Sprintf("cancel %d", s.Job.ID))
		case alloc.TopicPrioritize:
			words := []string{"prioritize"}
			for _, p := range s.Message(nil).(alloc.Prioritize).Jobs {
				words = append(words, fmt.Sprintf("%d@%d", p.ID, p.Priority))
			}
			parts = append(parts, strings.Join(words, " "))
		case alloc.TopicFree:
			parts = append(parts, fmt.Sprintf("free %d %v", s.Job.ID, s.R))
		default:
			parts = append(parts, s.Topic)
		}
	}
	return strings.Join(parts, ", ")
}

// described is a queue in words, for comparing.
func described(q *alloc.Queue) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %+v:", q.Phase(), q.Stats())
	for j, s := range q.States() {
		fmt.Fprintf(&b, " %d@%d %v", j.ID, j.Priority, s)
	}
	for j := range q.List(alloc.StateCanceled) {
		fmt.Fprintf(&b, " %d canceled", j.ID)
	}
	return b.String()
}

// A drive calls a queue and compares what it sends.
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

// SM-9, PR-8: the job is gone at once; what comes late is given back, and the
// job never had it.
func TestResourcesForACancelledJobAreGivenBackAtOnce(t *testing.T) {
	d := online(t, 0)
	d.add(1, 16, "alloc 1@16")
	d.cancel(1, "cancel 1")
	require.Equal(t, alloc.Stats{Canceled: 1}, d.Stats())
	d.answer(alloc.ResponseAnnotate, 1, alloc.OutcomeDropped, "")
	sends, outcome, err := d.Response(nil, alloc.Response{ID: 1, R: parseR(t, strings.Replace(textR, `"version"`, `"scheduling":{"x":1},"version"`, 1))})
	require.NoError(t, err)
	require.Equal(t, alloc.OutcomeReturned, outcome)
	require.Len(t, sends, 1)
	line, err := alloc.AppendMessage(nil, alloc.TopicFree, sends[0].Message(nil))
	require.NoError(t, err)
	require.Equal(t, `{"topic":"sched.free","payload":{"id":1,"R":`+textR+`,"final":true}}`+"\n", string(line), "without what the scheduler keeps with it")
	require.Equal(t, alloc.Stats{}, d.Stats())
}

// A response to the request of before Renew gives nothing and denies nothing. The next one counts.
func TestTheResponseToARenewedRequestDoesNotCount(t *testing.T) {
	const free = "free 1 rank[0-3]/core[0-7], "
	for typ, freed := range map[alloc.ResponseType]string{alloc.ResponseSuccess: free, alloc.ResponseDeny: "", alloc.ResponseCancel: ""} {
		for _, lost := range []bool{false, true} {
			d := online(t, 0)
			d.add(1, 16, "alloc 1@16")
			for _, want := range []string{"cancel 1", ""} { // the second update finds it recalled
				sends, err := d.Renew(nil, 1)
				d.did(want, sends, err)
			}
			if lost {
				require.Equal(t, []jobid.ID{1}, d.Hello(nil))
				d.ready(0, "alloc 1@16", 1)
			} else {
				d.answer(typ, 1, alloc.OutcomeRequeued, freed+"alloc 1@16")
			}
			d.answer(alloc.ResponseSuccess, 1, alloc.OutcomeAllocated, "")
			require.Equal(t, alloc.Stats{}, d.Stats())
		}
	}
}

// What a queue refuses is named, and changes nothing. Jobs 1 to 4 are sent, pending,
// blocked and canceled.
func TestARefusedCallIsNamedAndChangesNothing(t *testing.T) {
	prepared := func(t *testing.T) drive {
		d := drive{t, alloc.NewQueue(alloc.Config{MaxJobs: 4})}
		d.Hello(nil)
		d.ready(2, "", 0)
		d.add(4, 20, "alloc 4@20")
		d.add(1, 10, "alloc 1@10")
		d.add(2, 9, "")
		d.add(3, 0, "")
		d.cancel(4, "cancel 4")
		return d
	}
	type call func(d drive) ([]alloc.Send, error)
	add := func(id jobid.ID) call {
		return func(d drive) ([]alloc.Send, error) { return d.Add(nil, alloc.JobInfo{ID: id, Priority: 16}) }
	}
	prioritize := func(jobs ...alloc.Priority) call {
		return func(d drive) ([]alloc.Send, error) { return d.Prioritize(nil, jobs) }
	}
	respond := func(a alloc.Response) call {
		return func(d drive) ([]alloc.Send, error) {
			sends, outcome, err := d.Response(nil, a)
			require.Zero(d.t, outcome)
			return sends, err
		}
	}
	ready := func(limit int) call {
		return func(d drive) ([]alloc.Send, error) {
			sends, _, err := d.Ready(nil, alloc.Ready{Limit: limit})
			return sends, err
		}
	}
	calls := map[string]call{
		"alloc: duplicate job: ƒ2": add(1),
		"alloc: duplicate job: ƒ5 is canceled, and its request has no response":     add(4),
		"alloc: limit exceeded: 5 jobs, at most 4 are allowed":                      add(5),
		"alloc: unknown job: ƒ8":                                                    prioritize(alloc.Priority{2, 11}, alloc.Priority{7, 1}),
		"alloc: duplicate job: ƒ3":                                                  prioritize(alloc.Priority{2, 11}, alloc.Priority{1, 0}, alloc.Priority{2, 12}),
		"alloc: unknown job: ƒ5":                                                    func(d drive) ([]alloc.Send, error) { return d.Cancel(nil, 4) },
		"alloc: unknown job: ƒ6":                                                    func(d drive) ([]alloc.Send, error) { return d.Stop(nil, 1, 5, 2) },
		"alloc: unknown job: ƒ7":                                                    func(d drive) ([]alloc.Send, error) { return d.Start(nil, 6) },
		"alloc: invalid message: alloc response: R: key is missing":                 respond(alloc.Response{ID: 1}),
		"alloc: invalid message: alloc response: annotations: key is missing":       respond(alloc.Response{ID: 1, Type: alloc.ResponseAnnotate}),
		"alloc: invalid message: alloc response: type: value out of range":          respond(alloc.Response{ID: 1, Type: 4}),
		"alloc: invalid message: ready request: limit: value out of range":          ready(-1),
		"alloc: protocol violation: ready without a hello, the scheduler is online": ready(2),
	}
	for id, name := range map[jobid.ID]string{2: "ƒ3", 3: "ƒ4", 9: "ƒA"} {
		for typ := alloc.ResponseSuccess; typ <= alloc.ResponseCancel; typ++ {
			calls[fmt.Sprintf("alloc: protocol violation: %v response for job %s, which has no request", typ, name)] = respond(answerOf(t, typ, id))
		}
	}
	for want, call := range calls {
		d := prepared(t)
		before := described(d.Queue)
		sends, err := call(d)
		require.EqualError(t, err, want)
		require.Empty(t, sends)
		require.Equal(t, before, described(d.Queue))
	}
}

func TestAllJobsComeByIDWithoutThoseThatWereCanceled(t *testing.T) {
	var q alloc.Queue
	for _, id := range []jobid.ID{3, 1, 2, 4} {
		_, err := q.Add(nil, alloc.JobInfo{ID: id, Priority: uint32(id)})
		require.NoError(t, err)
	}
	q.Hello(nil)
	_, _, err := q.Ready(nil, alloc.Ready{})
	require.NoError(t, err)
	_, err = q.Cancel(nil, 2)
	require.NoError(t, err)
	require.Equal(t, 1, q.Stats().Canceled)
	var ids []jobid.ID
	for j := range q.All() {
		if ids = append(ids, j.ID); j.ID == 3 {
			break
		}
	}
	require.Equal(t, []jobid.ID{1, 3}, ids)
}

func TestTheZeroQueueWorks(t *testing.T) {
	var q alloc.Queue
	require.Equal(t, alloc.PhaseOffline, q.Phase())
	require.Equal(t, alloc.Stats{}, q.Stats())
	require.Empty(t, q.Lost(nil))
	for range q.States() {
		t.Fatal("a job")
	}
	_, err := q.Cancel(nil, 1)
	require.ErrorContains(t, err, unknownJob)
	_, err = q.Add(nil, alloc.JobInfo{ID: 1, Priority: 1})
	require.NoError(t, err)
	q.Hello(nil)
	sends, _, err := q.Ready(nil, alloc.Ready{})
	require.NoError(t, err)
	require.Equal(t, "alloc 1@1", told(sends))
}

func TestOperationsAppendToWhatTheyAreGiven(t *testing.T) {
	d := online(t, 0)
	first := []alloc.Send{{Topic: alloc.TopicFree}}
	sends, err := d.Add(first, alloc.JobInfo{ID: 1, Priority: 1})
	require.NoError(t, err)
	require.Equal(t, "free 0 , alloc 1@1", told(sends))
	sends, err = d.Queue.Cancel(first, 9)
	require.Error(t, err)
	require.Equal(t, "free 0 ", told(sends))
	require.Equal(t, []jobid.ID{7, 1}, d.Lost([]jobid.ID{7}))
}

func TestSendsBecomeLines(t *testing.T) {
	for want, s := range map[string]alloc.Send{
		`{"topic":"sched.cancel","payload":{"id":7}}`: {Topic: alloc.TopicCancel, Job: alloc.JobInfo{ID: 7}},
	} {
		b, err := alloc.AppendMessage([]byte("x"), s.Topic, s.Message(nil))
		require.NoError(t, err)
		require.Equal(t, "x"+want+"\n", string(b))
		require.Contains(t, want, s.Topic)
	}
	_, err := alloc.Append(nil, alloc.Send{Topic: alloc.TopicAlloc}.Message(nil))
	require.ErrorIs(t, err, alloc.ErrMessage, "a request without jobspec")
}

func TestEveryNameIsTotal(t *testing.T) {
	require.Equal(t, "[Phase(0) offline greeting online Phase(4)]", fmt.Sprint([]alloc.Phase{0, 1, 2, 3, 4}))
	require.Equal(t, "[Outcome(0) allocated annotated denied requeued returned dropped Outcome(7)]", fmt.Sprint([]alloc.Outcome{0, 1, 2, 3, 4, 5, 6, 7}))
}
