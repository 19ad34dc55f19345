package sched_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
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

// script is bytes that messages are made of.
type script []byte

func (s *script) next(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}

// resources returns some of a few nodes, one of which there is not.
func (s *script) resources(t *testing.T) *rset.R {
	if s.next(4) == 0 {
		return nil
	}
	first := uint32(s.next(5))
	r, err := rset.New(rset.Config{Expiration: eventlog.Timestamp(s.next(3) * s.next(100)), Entries: []rset.Entry{{
		Ranks:    idset.Range(first, first+uint32(s.next(5-int(first)))),
		Children: map[string]*idset.Set{"core": []*idset.Set{idset.Of(0), idset.Of(1), idset.Range(0, 1)}[s.next(3)]},
	}}})
	require.NoError(t, err)
	return r
}

// request returns a request, possible or not.
func (s *script) request(t *testing.T, id jobid.ID) alloc.Request {
	j := jobspec.Job{Slots: int64(1 + s.next(8)), Duration: time.Duration(s.next(3)*s.next(50)) * time.Second}
	if s.next(4) > 0 {
		j = jobspec.Job{Nodes: int64(1 + s.next(5)), Exclusive: s.next(4) > 0, Duration: j.Duration}
	}
	j.GPUs = int64(s.next(5) / 4)
	constraints := []string{"", "", "", "", `{"ranks":["0-2"]}`, `{"properties":["p"]}`}[s.next(6)]
	return alloc.Request{JobInfo: alloc.JobInfo{ID: id, Priority: uint32(s.next(3))}, Jobspec: specOf(t, j, constraints)}
}

// message returns a message about one of eight jobs, true or not.
func (s *script) message(t *testing.T) alloc.Message {
	id := jobid.ID(s.next(8))
	switch s.next(10) {
	default:
		return s.request(t, id)
	case 4:
		return alloc.Cancel{ID: id}
	case 5:
		return alloc.Prioritize{Jobs: []alloc.Priority{{ID: id, Priority: uint32(s.next(3))}, {ID: jobid.ID(s.next(9)), Priority: 1}}}
	case 6, 7:
		return alloc.Free{ID: id, R: s.resources(t), Final: s.next(2) == 0}
	case 8:
		return alloc.Expiration{ID: id, Expiration: eventlog.Timestamp(s.next(200))}
	case 9:
		return alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: id}, R: s.resources(t), Free: []*idset.Set{nil, nil, idset.Of(1)}[s.next(3)]}
	}
}

// Whatever a manager says in whatever order, the scheduler keeps its rules. The same calls
// have the same results.
func FuzzScheduler(f *testing.F) {
	f.Add(uint8(0), []byte{1, 0, 5, 1, 1, 3, 0, 40, 2, 0, 1, 1, 0, 1, 0, 1, 5, 0, 0, 7})
	f.Add(uint8(1), []byte{1, 0, 5, 1, 1, 2, 0, 40, 2, 0, 1, 1, 1, 4, 0, 9, 3, 0, 0, 1, 0, 2, 20, 1, 5, 2, 10, 1, 2, 1, 9, 1, 13})
	f.Add(uint8(2), []byte{0, 11, 1, 3, 2, 12, 1, 50, 3, 0, 5, 1, 1, 3, 0, 40, 3, 9, 5, 3, 4, 0, 1, 2, 0})
	for i := range uint64(48) {
		rng, text := rand.New(rand.NewPCG(i, 1)), make([]byte, 600)
		for k := range text {
			text[k] = byte(rng.Uint32())
		}
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, policy uint8, text []byte) {
		said := ""
		cfg := sched.Config{MaxJobs: 6, Annotate: true, Forecast: 10 * time.Second, Policy: policies[policy%6].Policy}
		cfg.Logf = func(format string, args ...any) { said += fmt.Sprintf(format+"\n", args...) }
		first := replay(t, cfg, text) + said
		said = ""
		require.Equal(t, first, replay(t, cfg, text)+said)
	})
}

// A definition is what a policy is called, as a user of the package writes it: it looks at all
// jobs, and asks for each.
type definition struct {
	sched.Policy
	reserves int // for how many jobs that wait; FIFO: 0, and it ends there
	depth    int
}

var policies = []definition{
	{sched.FIFO{}, 0, 0}, {sched.EASY{}, 1, 0}, {sched.EASY{Depth: 2}, 1, 3},
	{sched.Conservative{}, math.MaxInt, 0}, {sched.Conservative{Depth: 3}, math.MaxInt, 3}, {definition{reserves: 1}, 1, 0},
}

func (d definition) Schedule(p *sched.Pass) {
	waits, reserved := 0, 0
	for j := range p.Jobs() {
		if d.depth > 0 && waits == d.depth {
			return
		}
		if p.Start(j.ID) {
			continue
		}
		if waits++; d.reserves == 0 {
			return
		}
		if reserved < d.reserves && (waits <= 4 || d.reserves > 1) {
			if _, ok := p.Reserve(j.ID); ok {
				reserved++
			}
		}
	}
}

// What a policy passes over could not start: nodes that are shared, jobs with gpus, constraints
// or without an end, and ranks that go and come make no difference.
func TestAPolicyPassesOverNothing(t *testing.T) {
	length := 150
	if os.Getenv("JOBLIFE_DEEP") != "" {
		length = 900
	}
	for _, d := range policies[:5] {
		t.Run(fmt.Sprintf("%T%v", d.Policy, d.Policy), func(t *testing.T) {
			passed := 0
			rapid.Check(t, func(rt *rapid.T) {
				rest := script(rapid.SliceOfN(rapid.Byte(), length, 3*length).Draw(rt, "script"))
				cfg := sched.Config{Policy: d.Policy, Fit: []pool.Fit{pool.FitBest, pool.FitWorst}[rest.next(2)]}
				asks := cfg
				asks.Policy = d
				both := []*sched.Scheduler{begun(t, cfg, mixed(t)), begun(t, asks, mixed(t))}
				now, last := eventlog.Timestamp(1), jobid.ID(0)
				var running []alloc.Response
				for len(rest) > 0 {
					now += eventlog.Timestamp(rest.next(20))
					var c pool.Change
					var m alloc.Message = alloc.Cancel{ID: last + 1 - jobid.ID(rest.next(4))}
					switch k := rest.next(20); {
					case k < 8:
						last++
						m = rest.request(t, last)
					case k < 15 && len(running) > 0:
						at := rest.next(len(running))
						r := running[at]
						if m = (alloc.Free{ID: r.ID, R: r.R, Final: true}); rest.next(3) == 0 {
							first, _ := r.R.Ranks().Min()
							part, err := both[0].Held(r.ID).Restrict(idset.Of(first))
							if err == nil {
								m = alloc.Free{ID: r.ID, R: part}
							}
						} else {
							running = slices.Delete(running, at, at+1)
						}
					case k == 15 && len(running) > 0:
						m = alloc.Expiration{ID: running[0].ID, Expiration: now + eventlog.Timestamp(rest.next(100))}
					case k == 16:
						m = alloc.Prioritize{Jobs: []alloc.Priority{{ID: last - jobid.ID(rest.next(3)), Priority: uint32(rest.next(3))}}}
					case k > 17:
						if c = rest.change(t); c.Expiration != nil || c.Shrink != nil && len(rest) > 100 {
							c = pool.Change{} // else little starts from then on
						}
					}
					var said [2][]alloc.Response
					for i, s := range both {
						_ = s.Handle(m)
						_ = s.Acquire(pool.Acquire{Change: c})
						if _, ok := d.Policy.(sched.Conservative); ok { // its plans stand
							s.Anew()
						}
						said[i] = s.Decide(now)
						require.NoError(t, s.Check())
					}
					require.Equal(rt, said[1], said[0])
					for _, r := range said[0] {
						if r.Type == alloc.ResponseSuccess {
							running = append(running, r)
							for w := range both[0].Jobs() {
								if w.ID < r.ID && w.Priority == 2 {
									passed++
								}
							}
						}
					}
				}
			})
			require.True(t, d.reserves == 0 || passed > 10, passed)
		})
	}
}

// replay returns what a scheduler says.
func replay(t *testing.T, cfg sched.Config, text []byte) (said string) {
	s := begun(t, cfg, mixed(t))
	now := eventlog.Timestamp(1)
	for rest := script(text); len(rest) > 0; {
		var err error
		switch rest.next(8) {
		case 0:
			_, err = s.EndHello()
		case 1:
			err = s.Acquire(pool.Acquire{Change: rest.change(t)})
		case 2:
			s.Missed(alloc.Line{Topic: []string{"", alloc.TopicHello, alloc.TopicFree}[rest.next(3)]})
		default:
			err = s.Handle(rest.message(t))
		}
		require.NoError(t, s.Check())
		now += eventlog.Timestamp(rest.next(20))
		if rest.next(3) > 0 {
			said += fmt.Sprintln(err, s.Len(), s.Ready())
			for _, r := range s.Decide(now) {
				b, fail := alloc.Append(nil, r)
				require.NoError(t, fail)
				said += string(b) + "\n"
				require.True(t, s.Ready() || r.Type > alloc.ResponseAnnotate, "it says what it cannot know")
			}
			require.NoError(t, s.Check())
		}
	}
	return said
}
