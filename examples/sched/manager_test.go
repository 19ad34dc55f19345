package main

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// manager is a job manager made of an alloc.Queue, with lines under way to the
// scheduler and back.
type manager struct {
	t        *testing.T
	rng      *rand.Rand
	options  options
	queue    *alloc.Queue
	session  *session
	out      bytes.Buffer // of the session
	there    [][]byte     // lines on their way to the scheduler
	back     [][]byte     // and from it
	specs    map[jobid.ID]string
	priority map[jobid.ID]uint32
	running  map[jobid.ID]*rset.R
	held     *rset.R // what they hold
	done     int
	outcomes map[alloc.Outcome]int
}

const fourNodes = `{"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-3"}}]}},"up":"all"}}`

// connect loads the scheduler anew: what is under way is lost.
func (m *manager) connect() {
	m.queue.Lost(nil)
	m.out.Reset()
	m.there, m.back = nil, nil
	m.session = newSession(m.options, &m.out, io.Discard)
	require.NoError(m.t, m.session.hello())
	m.receive()
}

// receive puts what the session has written under way.
func (m *manager) receive() {
	for text := range bytes.Lines(m.out.Bytes()) {
		m.back = append(m.back, bytes.Clone(text))
	}
	m.out.Reset()
}

// send puts what the queue says under way.
func (m *manager) send(sends []alloc.Send, err error) {
	require.NoError(m.t, err)
	require.NoError(m.t, m.queue.Check())
	for _, s := range sends {
		text, err := s.AppendLine(nil, []byte(m.specs[s.Job.ID]))
		require.NoError(m.t, err)
		m.there = append(m.there, text)
	}
}

// arrive lets one line arrive, there or back.
func (m *manager) arrive(there bool) {
	switch {
	case there && len(m.there) > 0:
		text := m.there[0]
		m.there = m.there[1:]
		require.NoError(m.t, m.session.Take(lines.Line{Text: text}))
		require.Zero(m.t, m.session.refused, "%s: %s", text, &m.out)
		require.NoError(m.t, m.session.pool.Check())
		m.receive()
	case !there && len(m.back) > 0:
		text := m.back[0]
		m.back = m.back[1:]
		l, err := alloc.ParseLine(text)
		require.NoError(m.t, err)
		m.answer(l)
	}
}

// answer takes a line of the scheduler.
func (m *manager) answer(l alloc.Line) {
	require.Zero(m.t, l.Errnum, l)
	switch l.Topic {
	case alloc.TopicHello:
		hello, err := alloc.Parse[alloc.Hello](l.Payload)
		require.NoError(m.t, err)
		m.queue.Hello(nil)
		m.there = append(m.there, []byte(fourNodes))
		var holders []alloc.Holder
		for id, r := range m.running { // in any order
			holders = append(holders, alloc.Holder{JobInfo: alloc.JobInfo{ID: id, Priority: m.priority[id]}, R: r})
		}
		a := alloc.Announce(holders, hello.PartialOK)
		require.Empty(m.t, a.Failed)
		for _, h := range a.Responses {
			text, err := alloc.AppendMessage(nil, alloc.TopicHello, h)
			require.NoError(m.t, err)
			m.there = append(m.there, text)
		}
		m.there = append(m.there, []byte(helloDone))
	case alloc.TopicReady:
		ready, err := alloc.Parse[alloc.Ready](l.Payload)
		require.NoError(m.t, err)
		sends, count, err := m.queue.Ready(nil, ready)
		require.NoError(m.t, err)
		text, err := alloc.AppendMessage(nil, alloc.TopicReady, count)
		require.NoError(m.t, err)
		m.there = append(m.there, text)
		m.send(sends, nil)
	default:
		a, err := alloc.Parse[alloc.Response](l.Payload)
		require.NoError(m.t, err)
		sends, outcome, err := m.queue.Response(nil, a)
		m.outcomes[outcome]++
		switch outcome {
		case alloc.OutcomeAllocated:
			common, fail := rset.Intersect(m.held, a.R)
			require.NoError(m.t, fail)
			require.True(m.t, common.IsEmpty(), "%v is held twice", common)
			m.running[a.ID] = a.R
			m.hold()
		case alloc.OutcomeDenied:
			m.done++
		}
		m.send(sends, err)
	}
}

// hold notes what is held.
func (m *manager) hold() {
	m.held = new(rset.R)
	for _, r := range m.running {
		bare, err := r.WithTimes(0, 0)
		require.NoError(m.t, err)
		m.held, err = rset.Union(m.held, bare)
		require.NoError(m.t, err)
	}
}

// end ends a job that runs, if there is one. A scheduler that was told of it in
// a hello is told of that once it is ready, one that was not need not know.
func (m *manager) end() {
	if id, ok := m.pick(m.running); ok && m.queue.Phase() != alloc.PhaseGreeting {
		if m.queue.Phase() == alloc.PhaseOnline {
			text, err := alloc.AppendMessage(nil, alloc.TopicFree, alloc.Free{ID: id, R: m.running[id], Final: true})
			require.NoError(m.t, err)
			m.there = append(m.there, text)
		}
		delete(m.running, id)
		m.hold()
		m.done++
	}
}

// pick returns a job.
func (m *manager) pick(jobs map[jobid.ID]*rset.R) (jobid.ID, bool) {
	ids := slices.Sorted(maps.Keys(jobs))
	if len(ids) == 0 {
		return 0, false
	}
	return ids[m.rng.IntN(len(ids))], true
}

// waiting returns the jobs in the queue.
func (m *manager) waiting() map[jobid.ID]*rset.R {
	ids := map[jobid.ID]*rset.R{}
	for j := range m.queue.All() {
		ids[j.ID] = nil
	}
	return ids
}

// meddle does something to a job that waits.
func (m *manager) meddle(stopped map[jobid.ID]bool) {
	id, ok := m.pick(m.waiting())
	if !ok {
		return
	}
	switch m.rng.IntN(4) {
	case 0:
		m.send(m.queue.Cancel(nil, id))
		m.done++
	case 1:
		m.send(m.queue.Stop(nil, id))
		stopped[id] = true
	default:
		m.priority[id] = uint32(m.rng.IntN(4))
		m.send(m.queue.Prioritize(nil, []alloc.Priority{{ID: id, Priority: m.priority[id]}}))
	}
	for _, id := range slices.Sorted(maps.Keys(stopped)) {
		if _, _, ok := m.queue.Job(id); ok && m.rng.IntN(3) == 0 {
			m.send(m.queue.Start(nil, id))
			delete(stopped, id)
		}
	}
}

// The two ends of the protocol, with lines that cross under way: no line is
// refused, nothing is held twice, and each job comes to an end.
func TestAQueueAndThisSchedulerUnderstandEachOther(t *testing.T) {
	outcomes := map[alloc.Outcome]int{}
	for _, args := range [][]string{{"-policy=fifo"}, {"-policy=easy"}, {"-policy=fifo", "-queue-depth=3"}, {"-policy=easy", "-queue-depth=1"}} {
		m := &manager{
			t: t, rng: rand.New(rand.NewPCG(5, 5)), queue: alloc.NewQueue(alloc.Config{}),
			specs: map[jobid.ID]string{}, priority: map[jobid.ID]uint32{}, running: map[jobid.ID]*rset.R{},
			held: new(rset.R), outcomes: outcomes,
		}
		_, ok := m.options.program().Parse(append(args, "-now=1"), io.Discard, io.Discard)
		require.True(t, ok)
		m.connect()
		stopped := map[jobid.ID]bool{}
		jobs := 100
		if os.Getenv("JOBLIFE_DEEP") != "" {
			jobs = 400
		}
		for id := jobid.ID(1); int(id) <= jobs; {
			switch n := m.rng.IntN(100); {
			case n < 12:
				w := wish{slots: int64(1 + m.rng.IntN(18)), cores: 1, duration: float64(1 + m.rng.IntN(50))}
				m.specs[id], m.priority[id] = w.jobspec(), uint32(m.rng.IntN(4))
				m.send(m.queue.Add(nil, alloc.JobInfo{ID: id, Priority: m.priority[id]}))
				id++
			case n < 22:
				m.end()
			case n < 30:
				m.meddle(stopped)
			case n == 30 && m.rng.IntN(5) == 0:
				m.connect()
			default:
				m.arrive(n%2 == 0)
			}
		}
		for n := 0; m.done < jobs; n++ {
			require.Less(t, n, 100_000, "some jobs never end: %+v", m.queue.Stats())
			for _, id := range slices.Sorted(maps.Keys(m.waiting())) {
				if j, _, _ := m.queue.Job(id); j.Priority == 0 {
					m.send(m.queue.Prioritize(nil, []alloc.Priority{{ID: id, Priority: 1}}))
				}
				m.send(m.queue.Start(nil, id))
			}
			m.arrive(true)
			m.arrive(false)
			if len(m.there)+len(m.back) == 0 {
				m.end()
			}
		}
		for len(m.there)+len(m.back) > 0 {
			m.arrive(true)
			m.arrive(false)
		}
		require.Equal(t, jobs, m.done)
		require.Zero(t, m.queue.Stats())
		require.Zero(t, m.session.pool.Len())
		require.Empty(t, m.session.jobs)
	}
	for _, outcome := range []alloc.Outcome{alloc.OutcomeAllocated, alloc.OutcomeAnnotated, alloc.OutcomeDenied, alloc.OutcomeRequeued, alloc.OutcomeReturned, alloc.OutcomeDropped} {
		require.Positive(t, outcomes[outcome], outcome)
	}
}
