package alloc_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A modelJob is a job of the naive queue.
type modelJob struct {
	alloc.JobInfo
	stopped bool
	stale   bool        // renewed since it was sent
	state   alloc.State // Pending and Blocked are one here: see blocked
}

// A model is the queue as one would write it without a thought for cost: one
// slice, sorted and searched all over at each step.
type model struct {
	jobs  []*modelJob
	phase alloc.Phase
	limit int
	max   int
}

func (m *model) find(id jobid.ID) *modelJob {
	for _, j := range m.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// live is find but for canceled jobs.
func (m *model) live(id jobid.ID) *modelJob {
	if j := m.find(id); j != nil && j.state != alloc.StateCanceled {
		return j
	}
	return nil
}

func (j *modelJob) blocked() bool { return j.stopped || j.Priority == 0 }

// in returns the jobs in a state, in queue order.
func (m *model) in(s alloc.State) (out []*modelJob) {
	slices.SortFunc(m.jobs, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	for _, j := range m.jobs {
		state := j.state
		if state == alloc.StatePending && j.blocked() {
			state = alloc.StateBlocked
		}
		if state == s {
			out = append(out, j)
		}
	}
	return out
}

func (m *model) drop(j *modelJob) {
	m.jobs = slices.DeleteFunc(m.jobs, func(o *modelJob) bool { return o == j })
}

// recall takes back what has to make way: the jobs that wait take the places
// that are or will be free, best first, and the first that finds none takes that
// of the last one sent, if it is better.
func (m *model) recall() (out []string) {
	for m.phase == alloc.PhaseOnline && m.limit > 0 {
		waiting, sent := m.in(alloc.StatePending), m.in(alloc.StateSent)
		places := m.limit - len(sent)
		if len(waiting) <= places || len(sent) == 0 {
			break
		}
		a, b := waiting[places], sent[len(sent)-1]
		if a.Priority < b.Priority || a.Priority == b.Priority && a.ID > b.ID {
			break
		}
		b.state = alloc.StateRecalled
		out = append(out, fmt.Sprintf("cancel %d", b.ID))
	}
	return out
}

func (m *model) fill() (out []string) {
	for m.phase == alloc.PhaseOnline {
		outstanding := len(m.in(alloc.StateSent)) + len(m.in(alloc.StateRecalled)) + len(m.in(alloc.StateCanceled))
		waiting := m.in(alloc.StatePending)
		if len(waiting) == 0 || m.limit > 0 && outstanding >= m.limit {
			break
		}
		waiting[0].state = alloc.StateSent
		out = append(out, fmt.Sprintf("alloc %d@%d", waiting[0].ID, waiting[0].Priority))
	}
	return out
}

func (m *model) settle() []string { return append(m.recall(), m.fill()...) }

func (m *model) add(j alloc.JobInfo, stopped bool) ([]string, error) {
	switch {
	case m.find(j.ID) != nil:
		return nil, errors.New(duplicateJob)
	case len(m.jobs) >= m.max:
		return nil, alloc.ErrLimit
	}
	m.jobs = append(m.jobs, &modelJob{JobInfo: j, stopped: stopped, state: alloc.StatePending})
	return m.settle(), nil
}

func (m *model) cancel(id jobid.ID) (out []string, err error) {
	j := m.live(id)
	if j == nil {
		return nil, errors.New(unknownJob)
	}
	switch j.state {
	case alloc.StateSent:
		out = append(out, fmt.Sprintf("cancel %d", id))
		fallthrough
	case alloc.StateRecalled:
		j.state = alloc.StateCanceled
	default:
		m.drop(j)
	}
	return append(out, m.settle()...), nil
}

func (m *model) prioritize(jobs []alloc.Priority) (out []string, err error) {
	seen := map[jobid.ID]bool{}
	for _, p := range jobs {
		if m.live(p.ID) == nil {
			return nil, errors.New(unknownJob)
		}
		if seen[p.ID] {
			return nil, errors.New(duplicateJob)
		}
		seen[p.ID] = true
	}
	var changed []*modelJob
	for _, p := range jobs {
		j := m.live(p.ID)
		if j.Priority == p.Priority {
			continue
		}
		j.Priority = p.Priority
		if j.state != alloc.StateSent {
			continue
		}
		if j.blocked() {
			j.state = alloc.StateRecalled
			out = append(out, fmt.Sprintf("cancel %d", j.ID))
		} else {
			changed = append(changed, j)
		}
	}
	out = append(out, m.recall()...)
	message := "prioritize"
	for _, j := range changed {
		if j.state == alloc.StateSent {
			message += fmt.Sprintf(" %d@%d", j.ID, j.Priority)
		}
	}
	if message != "prioritize" {
		out = append(out, message)
	}
	return append(out, m.fill()...), nil
}

func (m *model) stop(ids []jobid.ID, stopped bool) (out []string, err error) {
	for _, id := range ids {
		if m.live(id) == nil {
			return nil, errors.New(unknownJob)
		}
	}
	for _, id := range ids {
		j := m.live(id)
		j.stopped = stopped
		if j.state == alloc.StateSent && j.blocked() {
			j.state = alloc.StateRecalled
			out = append(out, fmt.Sprintf("cancel %d", id))
		}
	}
	return append(out, m.settle()...), nil
}

func (m *model) renew(id jobid.ID) (out []string, err error) {
	j := m.live(id)
	if j == nil {
		return nil, errors.New(unknownJob)
	}
	if j.state == alloc.StateSent {
		j.state = alloc.StateRecalled
		out = append(out, fmt.Sprintf("cancel %d", id))
	}
	j.stale = j.state == alloc.StateRecalled
	return append(out, m.settle()...), nil
}

func (m *model) answer(typ alloc.ResponseType, id jobid.ID) (out []string, o alloc.Outcome, err error) {
	j := m.find(id)
	if j == nil || j.state == alloc.StatePending {
		return nil, 0, errors.New(violation)
	}
	canceled := j.state == alloc.StateCanceled
	switch {
	case typ == alloc.ResponseAnnotate && canceled:
		return nil, alloc.OutcomeDropped, nil
	case typ == alloc.ResponseAnnotate:
		return nil, alloc.OutcomeAnnotated, nil
	}
	if typ == alloc.ResponseSuccess && (canceled || j.stale) {
		out = append(out, fmt.Sprintf("free %d rank[0-3]/core[0-7]", id))
	}
	if !canceled && (typ == alloc.ResponseCancel || j.stale) {
		j.state, j.stale = alloc.StatePending, false
		return append(out, m.settle()...), alloc.OutcomeRequeued, nil
	}
	m.drop(j)
	switch {
	case canceled && typ == alloc.ResponseSuccess:
		o = alloc.OutcomeReturned
	case canceled:
		o = alloc.OutcomeDropped
	case typ == alloc.ResponseSuccess:
		o = alloc.OutcomeAllocated
	default:
		o = alloc.OutcomeDenied
	}
	return append(out, m.settle()...), o, nil
}

func (m *model) lost() (back []jobid.ID) {
	for _, j := range m.in(alloc.StateCanceled) {
		m.drop(j)
	}
	m.in(0) // sorts
	for _, j := range m.jobs {
		if j.state != alloc.StatePending {
			j.state, j.stale = alloc.StatePending, false
			back = append(back, j.ID)
		}
	}
	m.phase, m.limit = alloc.PhaseOffline, 0
	return back
}

// described is the model in the words of the function for queues.
func (m *model) described() string {
	out := fmt.Sprintf("%v {Pending:%d Blocked:%d Sent:%d Recalled:%d Canceled:%d}:", m.phase,
		len(m.in(alloc.StatePending)), len(m.in(alloc.StateBlocked)), len(m.in(alloc.StateSent)), len(m.in(alloc.StateRecalled)), len(m.in(alloc.StateCanceled)))
	for _, j := range m.jobs {
		state := j.state
		if state == alloc.StatePending && j.blocked() {
			state = alloc.StateBlocked
		}
		if state != alloc.StateCanceled {
			out += fmt.Sprintf(" %d@%d %v", j.ID, j.Priority, state)
		}
	}
	for _, j := range m.in(alloc.StateCanceled) {
		out += fmt.Sprintf(" %d canceled", j.ID)
	}
	return out
}

// answersOf returns what makes an answer of each type.
func answersOf(t require.TestingT) (out [4]func(jobid.ID) alloc.Response) {
	r, err := rset.Parse([]byte(textR))
	require.NoError(t, err)
	for typ := range alloc.ResponseCancel + 1 {
		a := alloc.Response{Type: typ}
		switch typ {
		case alloc.ResponseSuccess:
			a.R = r
		case alloc.ResponseAnnotate:
			a.Annotations = []byte(`{"sched":{}}`)
		}
		out[typ] = func(id jobid.ID) alloc.Response {
			a.ID = id
			return a
		}
	}
	return out
}

// choose returns a number from 0 to most.
type choose func(most int) int

// machine runs the queue and the model side by side.
type machine struct {
	q       *alloc.Queue
	m       *model
	answers [4]func(jobid.ID) alloc.Response
}

func newMachine(t require.TestingT, size int) *machine {
	return &machine{
		q:       alloc.NewQueue(alloc.Config{MaxJobs: size}),
		m:       &model{phase: alloc.PhaseOffline, max: size},
		answers: answersOf(t),
	}
}

// did compares the outcome of an operation on both.
func (x *machine) did(t require.TestingT, sends []alloc.Send, err error, want []string, wantErr error) {
	if wantErr != nil {
		require.ErrorContains(t, err, wantErr.Error())
		require.Empty(t, sends)
		return
	}
	require.NoError(t, err)
	require.Equal(t, strings.Join(want, ", "), told(sends))
}

// Ids are few, so that operations meet each other.
func (c choose) id() jobid.ID { return jobid.ID(1 + c(8)) }

func (c choose) priority() uint32 { return uint32(c(5)) }

// An operation is one on both, with what choose chooses.
type operation func(x *machine, t require.TestingT, c choose)

func opAdd(x *machine, t require.TestingT, c choose) {
	j := alloc.JobInfo{ID: c.id(), Priority: c.priority(), UserID: 7}
	sends, err := x.q.Add(nil, j)
	want, wantErr := x.m.add(j, false)
	x.did(t, sends, err, want, wantErr)
}

func opAddStopped(x *machine, t require.TestingT, c choose) {
	j := alloc.JobInfo{ID: c.id(), Priority: c.priority(), UserID: 7}
	err := x.q.AddStopped(j)
	want, wantErr := x.m.add(j, true)
	require.Empty(t, want)
	x.did(t, nil, err, nil, wantErr)
}

// some chooses jobs, mostly such as are there. One may be named twice.
func (x *machine) some(c choose) []jobid.ID {
	ids := make([]jobid.ID, c(3))
	for i := range ids {
		ids[i] = c.id()
	}
	if c(3) > 0 {
		ids = slices.DeleteFunc(ids, func(id jobid.ID) bool { return x.m.live(id) == nil })
	}
	return ids
}

func opAnswer(x *machine, t require.TestingT, c choose) {
	id, typ := c.id(), alloc.ResponseType(c(3))
	sends, got, err := x.q.Response(nil, x.answers[typ](id))
	want, outcome, wantErr := x.m.answer(typ, id)
	x.did(t, sends, err, want, wantErr)
	require.Equal(t, outcome, got)
}

func opCancel(x *machine, t require.TestingT, c choose) {
	id := c.id()
	sends, err := x.q.Cancel(nil, id)
	want, wantErr := x.m.cancel(id)
	x.did(t, sends, err, want, wantErr)
}

func opRenew(x *machine, t require.TestingT, c choose) {
	id := c.id()
	sends, err := x.q.Renew(nil, id)
	want, wantErr := x.m.renew(id)
	x.did(t, sends, err, want, wantErr)
}

func opPrioritize(x *machine, t require.TestingT, c choose) {
	jobs := make([]alloc.Priority, c(4))
	for i := range jobs {
		jobs[i] = alloc.Priority{ID: c.id(), Priority: c.priority()}
	}
	if c(3) > 0 { // mostly such as are there, once each
		slices.SortFunc(jobs, func(a, b alloc.Priority) int { return cmp.Compare(b.ID, a.ID) })
		jobs = slices.CompactFunc(jobs, func(a, b alloc.Priority) bool { return a.ID == b.ID })
		jobs = slices.DeleteFunc(jobs, func(p alloc.Priority) bool { return x.m.live(p.ID) == nil })
	}
	sends, err := x.q.Prioritize(nil, jobs)
	want, wantErr := x.m.prioritize(jobs)
	x.did(t, sends, err, want, wantErr)
}

// opSetStopped stops jobs, or starts them.
func opSetStopped(stopped bool) operation {
	return func(x *machine, t require.TestingT, c choose) {
		ids, set := x.some(c), x.q.Start
		if stopped {
			set = x.q.Stop
		}
		sends, err := set(nil, ids...)
		want, wantErr := x.m.stop(ids, stopped)
		x.did(t, sends, err, want, wantErr)
	}
}

// opSession ends sessions, but lets them last for some steps.
func opSession(x *machine, t require.TestingT, c choose) {
	lost := c(4) == 0
	if !lost && x.m.phase == alloc.PhaseOnline && c(9) > 0 {
		return
	}
	want := x.m.lost()
	if lost {
		require.Equal(t, want, x.q.Lost(nil))
	} else {
		require.Equal(t, want, x.q.Hello(nil))
		x.m.phase = alloc.PhaseGreeting
	}
}

func opReady(x *machine, t require.TestingT, c choose) {
	limit := c(4)
	count := len(x.m.in(alloc.StatePending))
	sends, a, err := x.q.Ready(nil, alloc.Ready{Limit: limit})
	if x.m.phase != alloc.PhaseGreeting {
		require.ErrorContains(t, err, violation)
		return
	}
	require.Equal(t, uint32(count), a.Count)
	x.m.phase, x.m.limit = alloc.PhaseOnline, limit
	x.did(t, sends, err, x.m.settle(), nil)
}

// operations are all there are; what is in it twice comes twice as often.
func operations() []operation {
	return []operation{opAdd, opAnswer, opCancel, opPrioritize, opSetStopped(true), opSetStopped(false), opSession, opReady, opAdd, opAddStopped, opAnswer, opPrioritize, opRenew, opRenew, opAnswer}
}

// run does what bytes say to both, each byte one number: first one of the operations, then
// what that needs.
func run(t *testing.T, b []byte) {
	c := choose(func(most int) int {
		if len(b) == 0 {
			return 0
		}
		n := int(b[0]) % (most + 1)
		b = b[1:]
		return n
	})
	x := newMachine(t, 3+c(6))
	for len(b) > 0 {
		operations()[c(len(operations())-1)](x, t, c)
		require.Equal(t, x.m.described(), described(x.q))
	}
}

// noise returns bytes that follow from a seed.
func noise(seed uint64) []byte {
	b := make([]byte, 300)
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
	return b
}

// Every operation against the naive queue, in any order. It says what each call sends, so
// the same calls send the same (I7), and a blocked job is not asked for.
func TestQueueDoesAsTheNaiveQueue(t *testing.T) {
	t.Log("SM-9, SM-16, PR-8")
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { run(t, noise(seed)) })
	}
}

func FuzzQueue(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(noise(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 300 {
			t.Skip("longer than needed")
		}
		run(t, b)
	})
}
