package loop_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/attack"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// Nodes and executor report before, between and after hello and ready, again, and after
// crashes, to a Loop with a Scheduler in it. A World judges that no node is freed early or
// twice, and none is held in the end.
func TestAttack(t *testing.T) {
	attackBy(t, func(tape *attack.Tape) { newCluster(t, tape).run() })
}

func attackBy(t *testing.T, play func(*attack.Tape)) {
	if soak := os.Getenv("JOBLIFE_SOAK"); soak != "" || os.Getenv("JOBLIFE_SEED") != "" {
		attack.Soak(t, soak, play)
		return
	}
	attack.Seeds(t, 150, play)
}

// advance returns errCrash where the site crashes.
func (s *site) advance(now time.Time) (err error) {
	defer func() {
		if v := recover(); v == errCrash {
			err = errCrash
		} else if v != nil {
			panic(v)
		}
	}()
	return s.l.Advance(now)
}

// A cluster is what survives a Loop: the disk, the executor, and nodes with their processes.
type cluster struct {
	*attack.Tape
	t     testing.TB
	w     *joblifetest.World
	cfg   joblife.Config
	nodes int
	disk  *disk
	now   time.Time
	told  map[jobid.ID][]joblife.Input // of the executor, of each job
	todo  []func()                     // what happens there, in any order

	// Of this life.
	s     *site
	sched *sched.Scheduler
	phase alloc.Phase
	write func()            // ends what the disk does; nil: it does nothing
	asked map[jobid.ID]bool // of the executor
	left  int               // how many times it may crash, the last of which it does; 0: it does not
}

func newCluster(t testing.TB, tape *attack.Tape) *cluster {
	c := &cluster{Tape: tape, t: t, cfg: plain(), nodes: 1 + tape.N(3), disk: new(disk), now: start, told: make(map[jobid.ID][]joblife.Input)}
	c.Clock = func() string { return c.now.Format("05.000") }
	actions := perilog.Config{WholeJob: c.P(0.2)}
	timeout := fsd.Duration(c.N(2)) * fsd.Duration(10*time.Second)
	if c.P(0.7) {
		actions.Epilogs = []perilog.ActionConfig{{PerRank: true, Timeout: timeout}}
	}
	if c.P(0.5) {
		actions.Housekeeping = &perilog.HousekeepingConfig{Timeout: timeout}
		if d := fsd.Duration(c.N(3)) * fsd.Duration(5*time.Second); c.P(0.8) {
			actions.Housekeeping.ReleaseAfter = &d
		}
	}
	c.cfg.Actions, c.w = actions, joblifetest.NewWorld(actions)
	return c
}

// A heard is a Scheduler that tells the World what it hears and says.
type heard struct {
	*sched.Scheduler
	c *cluster
}

func (h heard) Hello(a alloc.Announcement) error {
	h.c.Say("hello: %v", a)
	return h.c.hear(joblife.Ready{Hello: &a}, h.Scheduler.Hello(a))
}

func (h heard) Handle(msg alloc.Message) error {
	h.c.Say("scheduler: %T %v", msg, msg)
	return h.c.hear(joblife.Ready{Sched: []alloc.Message{msg}}, h.Scheduler.Handle(msg))
}

func (c *cluster) hear(rd joblife.Ready, err error) error {
	c.w.Do(&rd)
	c.Must(errors.Join(c.w.Err(), err))
	return err
}

func (h heard) Drain(ranks *idset.Set) error {
	h.c.w.Excuse(0, ranks)
	return h.Scheduler.Drain(ranks)
}

func (h heard) Decide(now eventlog.Timestamp) []alloc.Response {
	list := h.Scheduler.Decide(now)
	for _, r := range list {
		if r.Type == alloc.ResponseSuccess {
			h.c.w.Allocated(r.ID, r.R)
		}
	}
	return list
}

// begin restores a Manager, and returns what the nodes have to say.
func (c *cluster) begin() (list []joblife.Input) {
	c.Say("a life begins")
	c.sched, c.phase, c.asked = onMachine(c.t, uint32(c.nodes)), alloc.PhaseOnline, make(map[jobid.ID]bool)
	crashes := func() bool { c.left--; return c.left == 0 }
	c.write, c.disk.apart, c.disk.busy, c.disk.stores = nil, nil, false, float64(c.N(3))/2
	if c.P(0.5) {
		c.disk.apart = func(rd *joblife.Ready, done func(map[jobid.ID]error, error)) {
			c.write = func() {
				c.write = nil
				done(nil, c.disk.Append(rd.Append))
			}
		}
	}
	c.disk.fault = func(int) error {
		if crashes() {
			return errCrash
		}
		return nil
	}
	c.s = scheduled(c.t, c.now, c.disk, heard{c.sched, c}, c.cfg)
	c.s.mute = true
	c.s.effects = func(rd *joblife.Ready) {
		if crashes() {
			panic(errCrash)
		}
		c.act(*rd)
		if crashes() {
			panic(errCrash)
		}
	}
	known := c.w.Processes()
	for _, p := range known {
		list = append(list, report(p))
	}
	for u := range c.s.m.Unresolved() {
		for rank := range u.Ranks.All() {
			if !slices.ContainsFunc(known, func(p joblifetest.Process) bool {
				return p.Job == u.Job && p.Action == u.Action && p.Attempt == u.Attempt && p.Rank == rank
			}) {
				list = append(list, joblife.Rerun{Action: joblife.Action{Job: u.Job, Key: u.Action, Ranks: idset.Of(rank)}})
			}
		}
	}
	return list
}

func (c *cluster) put(list ...joblife.Input) {
	for _, in := range list {
		c.Say("put %T %v", in, in)
		switch in.(type) {
		case joblife.SchedHello:
			c.phase = alloc.PhaseGreeting
		case joblife.SchedReady:
			if c.phase == alloc.PhaseGreeting {
				c.phase = alloc.PhaseOnline
			}
		case joblife.SchedLost:
			c.phase = alloc.PhaseOffline
		}
	}
	c.s.put(list...)
}

func report(p joblifetest.Process) joblife.Report {
	r := perilog.Report{Action: p.Action, Attempt: p.Attempt, Rank: p.Rank, Kind: perilog.ReportStarted}
	if !p.Running {
		r.Kind, r.Status = perilog.ReportExited, p.Status
	}
	return joblife.Report{Job: p.Job, Report: r}
}

// act is the executor and the nodes.
func (c *cluster) act(rd joblife.Ready) {
	rd.Hello = nil // the World knows
	_ = c.hear(rd, nil)
	for _, msg := range rd.Exec {
		if m, ok := msg.(exec.Start); ok {
			c.start(m)
		}
	}
	for _, l := range rd.Launch {
		for rank := range l.Ranks.All() {
			p := joblifetest.Process{Job: l.Job, Action: l.Action, Attempt: l.Attempt, Rank: rank}
			c.todo = append(c.todo, func() {
				if p.Status = int32(c.N(8)/7) << 8; c.w.Exit(p, p.Status) {
					c.put(report(p))
				}
			})
		}
	}
}

// start starts a job, or repeats what was said of it.
func (c *cluster) start(m exec.Start) {
	said, known := c.told[m.ID]
	c.asked[m.ID] = true
	switch {
	case known:
		c.put(said...)
		return
	case m.Reattach:
		c.put(joblife.ExecRefused{ID: m.ID})
		return
	}
	tell := func(r exec.Response) {
		r.ID = m.ID
		c.told[m.ID] = append(c.told[m.ID], joblife.ExecResponse(r))
		if c.asked[m.ID] { // else it says all when it is
			c.put(joblife.ExecResponse(r))
		}
	}
	tell(exec.Response{Type: exec.ResponseStart})
	first, _ := m.R.Ranks().Min()
	c.todo = append(c.todo, func() {
		c.w.Ended(m.ID, nil)
		tell(exec.Response{Type: exec.ResponseFinish})
		tell(exec.Response{Type: exec.ResponseRelease, Ranks: idset.Of(first)})
		c.todo = append(c.todo, func() { tell(exec.Response{Type: exec.ResponseRelease, Final: true}) })
	})
}

// happens lets one thing happen on the cluster.
func (c *cluster) happens() {
	i := c.N(len(c.todo))
	do := c.todo[i]
	c.todo = slices.Delete(c.todo, i, i+1)
	do()
}

// advance reports whether the Loop has not crashed.
func (c *cluster) advance() bool {
	err := c.s.advance(c.now)
	if errors.Is(err, errCrash) {
		c.Say("crash")
		return false
	}
	for _, refused := range c.s.refused {
		if errors.Is(refused, joblife.ErrConflict) {
			err = refused
		}
	}
	c.Must(errors.Join(err, c.w.Err(), joblifetest.Check(c.s.m)))
	if c.phase == alloc.PhaseOnline && c.write == nil {
		c.agree()
	}
	return true
}

// agree judges that the Scheduler knows what is held.
func (c *cluster) agree() {
	held, knows := make(map[jobid.ID]string), make(map[jobid.ID]string)
	for id, r := range c.s.m.Allocated() {
		held[id] = fmt.Sprint(r, " until ", r.Expiration())
	}
	for a := range c.sched.Pool().Allocations() {
		if !a.Held.IsEmpty() { // or the final fragment is to come, which is empty
			knows[a.ID] = fmt.Sprint(a.Held, " until ", a.Expiration)
		}
	}
	if !maps.Equal(held, knows) {
		c.Fail("%v have resources, and the Scheduler knows of %v", held, knows)
	}
}

// live is a life with inputs in any order.
func (c *cluster) live(left int) {
	c.left = left
	say := c.begin()
	for range 5 + c.N(30) {
		c.Steps++
		if c.write != nil && c.P(0.3) {
			c.write()
		}
		switch n := c.N(13); {
		case n < 3:
			if !c.advance() {
				return
			}
		case n < 6 && len(say) > 0:
			i := c.N(len(say))
			c.put(say[i])
			if n > 3 { // else it comes again
				say = slices.Delete(say, i, i+1)
			}
		case n < 9 && len(c.todo) > 0:
			c.happens()
		case n == 9:
			c.put(joblife.SchedHello{PartialOK: c.P(0.8)})
		case n == 10:
			c.put(joblife.SchedReady{})
		case n == 11:
			c.now = c.now.Add(time.Duration(c.N(9)) * time.Second)
		case n == 12 && c.P(0.3):
			c.put(joblife.SchedLost{})
		case n == 12 && c.P(0.3):
			c.put(joblife.Raise{ID: jobid.ID(1 + c.N(4)), Type: "cancel"})
		case n == 12 && c.P(0.5):
			c.put(joblife.SetExpiration{ID: jobid.ID(1 + c.N(4)), Expiration: eventlog.FromTime(c.now.Add(time.Hour))})
		case c.Jobs < 4:
			c.Jobs++
			c.put(wholeNodes(c.t, jobid.ID(c.Jobs), int64(1+c.N(c.nodes))))
		}
	}
	c.put(say...)
}

func (c *cluster) run() {
	for range c.N(6) {
		c.live(c.N(40))
		c.Crashes++ // or it ends between two inputs
	}
	c.live(0)
	for more := true; more; {
		if c.phase == alloc.PhaseOffline {
			c.put(joblife.SchedHello{PartialOK: true})
		}
		if c.phase == alloc.PhaseGreeting {
			c.put(joblife.SchedReady{})
		}
		if c.write != nil {
			c.write()
		}
		c.advance()
		at, ok := c.s.m.Deadline()
		down := c.sched.Pool().Down().Ranks()
		switch {
		case c.write != nil:
		case len(c.todo) > 0 && !(ok && c.P(0.3)): // all that is left happens
			c.happens()
		case ok:
			c.now = at
		case !down.IsEmpty():
			c.Must(c.s.l.Do(func(*joblife.Manager) func() {
				c.Must(c.sched.Acquire(pool.Acquire{Change: pool.Change{Up: down}}))
				return nil
			}))
		default:
			more = false
		}
	}
	c.Must(c.w.End())
	for h := range c.s.m.Holders() {
		c.Fail("%v is held in the end: %v", h.Ranks, h)
	}
	for v := range c.s.m.Jobs(jobstate.StateNew | jobstate.StateActive) {
		c.Fail("job %v is left in %v", v.ID(), v.State())
	}
	if free := c.sched.Pool().Available().Ranks(); free.Len() != c.nodes {
		c.Fail("only %v is free in the end", free)
	}
	_, _ = c.Hash.Write([]byte(c.disk.text(c.t)))
}
