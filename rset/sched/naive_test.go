package sched_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A task is a job of a workload: whole nodes of a machine whose nodes are alike.
type task struct {
	id          jobid.ID
	priority    uint32
	nodes       int
	submit      eventlog.Timestamp
	runs, limit eventlog.Timestamp // a limit of 0 is none
	start       eventlog.Timestamp // 0 before it starts
}

func (j *task) end() eventlog.Timestamp { return j.start + j.runs }

// play plays a workload: at each time at which jobs end or come, it tells decide, which
// sets when jobs start.
func play(jobs []*task, decide func(now eventlog.Timestamp, ended, came []*task)) {
	for now := eventlog.Timestamp(0); ; {
		next := never
		for _, j := range jobs {
			if j.submit > now {
				next = min(next, j.submit)
			}
			if j.start > 0 && j.end() > now {
				next = min(next, j.end())
			}
		}
		if next == never {
			return
		}
		now = next
		var ended, came []*task
		for _, j := range jobs {
			if j.start > 0 && j.end() == now {
				ended = append(ended, j)
			}
			if j.submit == now {
				came = append(came, j)
			}
		}
		decide(now, ended, came)
	}
}

const never = eventlog.Timestamp(1e18)

// A naive scheduler goes by the definition of a policy: all it knows is how many nodes are
// in use at a time, and it begins anew at each decision.
type naive struct {
	policy           sched.Policy
	size             int
	now              eventlog.Timestamp
	waiting, running []*task
	reserved         []*task // with the start that is reserved
}

// used returns how many nodes are in use at a time from now on, if jobs end at their
// limits, or now if that is over.
func (n *naive) used(at eventlog.Timestamp) (used int) {
	for _, j := range n.running {
		if j.limit == 0 || j.start+j.limit > at {
			used += j.nodes
		}
	}
	for _, j := range n.reserved {
		if j.start <= at && (j.limit == 0 || at < j.start+j.limit) {
			used += j.nodes
		}
	}
	return used
}

// times are when use changes.
func (n *naive) times() []eventlog.Timestamp {
	times := []eventlog.Timestamp{n.now}
	for _, j := range slices.Concat(n.running, n.reserved) {
		times = append(times, j.start, j.start+j.limit)
	}
	times = slices.DeleteFunc(times, func(t eventlog.Timestamp) bool { return t < n.now })
	slices.Sort(times)
	return times
}

func (n *naive) fits(j *task, at eventlog.Timestamp) bool {
	for _, t := range n.times() {
		if t == at || t > at && (j.limit == 0 || t < at+j.limit) {
			if n.used(t)+j.nodes > n.size {
				return false
			}
		}
	}
	return true
}

func (n *naive) decide(now eventlog.Timestamp, ended, came []*task) {
	n.now, n.reserved = now, nil
	n.running = slices.DeleteFunc(n.running, func(j *task) bool { return slices.Contains(ended, j) })
	n.waiting = append(n.waiting, came...)
	slices.SortFunc(n.waiting, func(a, b *task) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
	})
	tried := 0
	n.waiting = slices.DeleteFunc(n.waiting, func(j *task) bool {
		_, fifo := n.policy.(sched.FIFO)
		busy := 0
		for _, r := range n.running {
			busy += r.nodes
		}
		if (!fifo || tried == 0) && busy+j.nodes <= n.size && n.fits(j, now) {
			j.start = now
			n.running = append(n.running, j)
			return true
		}
		if tried++; fifo || len(n.reserved) > 0 || tried > 4 {
			return false
		}
		for _, at := range n.times() {
			if n.fits(j, at) {
				r := *j
				r.start = at
				n.reserved = append(n.reserved, &r)
				break
			}
		}
		return false
	})
}

// driven is a Scheduler that plays a workload.
type driven struct {
	*sched.Scheduler
	t    require.TestingT
	jobs map[jobid.ID]*task
	has  map[jobid.ID]*rset.R
}

func machine(t require.TestingT, nodes, cores int) *rset.R {
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, uint32(nodes-1)), Children: map[string]*idset.Set{"core": idset.Range(0, uint32(cores-1))},
	}}})
	require.NoError(t, err)
	return r
}

// begun returns a scheduler that is ready, with nodes that are up.
func begun(t require.TestingT, cfg sched.Config, nodes *rset.R) *sched.Scheduler {
	s := sched.New(cfg)
	require.NoError(t, s.Acquire(pool.Acquire{Resources: nodes, Change: pool.Change{Up: nodes.Ranks()}}))
	_, err := s.EndHello()
	require.NoError(t, err)
	return s
}

func drive(t require.TestingT, policy sched.Policy, size int) *driven {
	return &driven{begun(t, sched.Config{Policy: policy}, machine(t, size, 2)), t, make(map[jobid.ID]*task), make(map[jobid.ID]*rset.R)}
}

// mixed returns four nodes with two cores each, two of them with a gpu.
func mixed(t require.TestingT) *rset.R {
	some := machine(t, 4, 2)
	gpus, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(2, 3), Children: map[string]*idset.Set{"gpu": idset.Of(0)}}}})
	require.NoError(t, err)
	some, err = rset.Union(some, gpus)
	require.NoError(t, err)
	return some
}

func specOf(t require.TestingT, j jobspec.Job, constraints ...string) []byte {
	j.Command = []string{"a"}
	spec, err := jobspec.New(j)
	require.NoError(t, err)
	for _, c := range constraints {
		if c != "" {
			spec, err = spec.Update("attributes.system.constraints", []byte(c))
			require.NoError(t, err)
		}
	}
	text, err := spec.MarshalJSON()
	require.NoError(t, err)
	return text
}

func (d *driven) decide(now eventlog.Timestamp, ended, came []*task) {
	for _, j := range ended {
		require.NoError(d.t, d.Handle(alloc.Free{ID: j.id, R: d.has[j.id], Final: true}))
	}
	for _, j := range came {
		d.jobs[j.id] = j
		text := specOf(d.t, jobspec.Job{Nodes: int64(j.nodes), Exclusive: true, Duration: time.Duration(j.limit) * time.Second})
		require.NoError(d.t, d.Handle(alloc.Request{JobInfo: alloc.JobInfo{ID: j.id, Priority: j.priority}, Jobspec: text}))
	}
	for _, a := range d.Decide(now) {
		require.Equal(d.t, alloc.ResponseSuccess, a.Type, a.Note)
		d.jobs[a.ID].start, d.has[a.ID] = now, a.R
	}
}

// Each job starts when a count of nodes says. Conservative is not here: when its jobs start
// hangs on which nodes are reserved.
func TestAPolicyIsWhatItsNameSays(t *testing.T) {
	for _, policy := range []sched.Policy{sched.FIFO{}, sched.EASY{}} {
		t.Run(fmt.Sprintf("%T", policy), func(t *testing.T) {
			overtook := 0
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.IntRange(1, 12).Draw(t, "nodes")
				var jobs [2][]*task
				submit := eventlog.Timestamp(1)
				for id := range jobid.ID(rapid.IntRange(1, 40).Draw(t, "jobs")) {
					submit += eventlog.Timestamp(rapid.IntRange(0, 4).Draw(t, "after"))
					j := task{id: id + 1, submit: submit, priority: uint32(rapid.IntRange(1, 2).Draw(t, "priority")), nodes: rapid.IntRange(1, size).Draw(t, "size")}
					j.limit = eventlog.Timestamp(rapid.IntRange(0, 20).Draw(t, "limit"))
					j.runs = eventlog.Timestamp(rapid.IntRange(1, max(1, int(j.limit))+3).Draw(t, "runs")) // an epilog may take longer
					for i := range jobs {
						one := j
						jobs[i] = append(jobs[i], &one)
					}
				}
				play(jobs[0], (&naive{policy: policy, size: size}).decide)
				play(jobs[1], drive(t, policy, size).decide)
				require.Equal(t, jobs[0], jobs[1])
				for i, j := range jobs[0][1:] {
					if j.start < jobs[0][i].start {
						overtook++
					}
				}
			})
			if policy != sched.Policy(sched.FIFO{}) {
				require.Positive(t, overtook)
			}
		})
	}
}
