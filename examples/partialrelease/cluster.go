package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// Times in seconds.
const (
	jobEnd      = 1000
	epilogTime  = 20 // on most nodes, more or less
	obeyTime    = 2  // from SIGTERM to the end of a process that does not hang
	drainTime   = 1  // from the request to drain a node to the confirmation
	restartTime = 20 // from the death of the daemon to its return
)

// A node runs one process, of the epilog or of housekeeping.
type node struct {
	takes  float64        // infinite: it hangs
	report perilog.Report // what the process did last
	idle   float64        // when it ended, or the node was drained after that
}

// A fragment of the job's nodes went back to the scheduler.
type fragment struct {
	Mode  string     `json:"mode"`
	Time  float64    `json:"t"` // since the end of the job
	Ranks *idset.Set `json:"ranks"`
	Nodes int        `json:"nodes"`
	Back  int        `json:"back"` // nodes that are back, these included
	Final bool       `json:"final"`
}

// A cluster is the nodes of one job, the daemon that owns it, and the clock.
type cluster struct {
	mode   string
	config perilog.Config
	spec   perilog.JobConfig
	job    *perilog.Job
	logs   map[perilog.LogKind][]byte // what survives the death of the daemon
	dead   bool                       // what the job hears is lost
	err    error

	now     eventlog.Timestamp
	queue   map[eventlog.Timestamp][]func() // what happens when
	nodes   []node
	drained idset.Set

	fragments  []fragment
	back       []float64 // when each node went back, in the order of time
	held, idle float64   // node-seconds
}

// simulate ends a job, cleans its nodes, and returns when all of them are back.
func simulate(o options, whole bool) (*cluster, error) {
	all := idset.Range(0, uint32(o.nodes-1))
	r, err := rset.Parse(fmt.Appendf(nil, `{"version":1,"execution":{"R_lite":[{"rank":%q,"children":{"core":"0-47"}}]}}`, all))
	if err != nil {
		return nil, err
	}
	c := &cluster{
		mode: "partial", config: perilog.Config{WholeJob: whole}, spec: perilog.JobConfig{ID: 1, R: r},
		logs: map[perilog.LogKind][]byte{}, nodes: draw(o), now: jobEnd, queue: map[eventlog.Timestamp][]func(){},
	}
	if whole {
		c.mode, o.releaseAfter = "whole", fsd.Forever
	}
	if o.housekeeping {
		c.config.Housekeeping = &perilog.HousekeepingConfig{Timeout: o.timeout, ReleaseAfter: &o.releaseAfter}
	} else {
		c.config.Epilogs = []perilog.ActionConfig{{PerRank: true, Timeout: o.timeout}}
	}
	if c.job, err = perilog.NewJob(&c.config, c.spec); err != nil {
		return nil, err
	}
	for _, e := range [][2]string{
		{"submit", `{"userid":5588,"urgency":16,"flags":0,"version":1}`}, {"validate"}, {"depend"},
		{"priority", `{"priority":16}`}, {"alloc"}, {"start"},
		{"finish", `{"status":0}`}, {"release", `{"ranks":"all","final":true}`},
	} {
		if _, err := c.job.Apply(c.now, eventlog.Entry{Timestamp: c.now, Name: e[0], Context: []byte(e[1])}); err != nil {
			return nil, err
		}
	}
	if o.crash != fsd.Forever {
		c.after(seconds(o.crash), func() {
			c.dead = true // the processes on the nodes go on
			c.after(restartTime, c.restart)
		})
	}
	return c, c.play()
}

// draw returns the nodes. They take tenths of a second, so that some end together.
func draw(o options) []node {
	rng := rand.New(rand.NewPCG(o.seed, 0))
	nodes := make([]node, o.nodes)
	for i, rank := range rng.Perm(o.nodes) {
		factor := 0.75 + rng.Float64()/2
		if i < o.hang {
			factor = math.Inf(1)
		} else if i < o.hang+o.stragglers {
			factor = 4 + 8*rng.Float64()
		}
		nodes[rank].takes = math.Round(10*epilogTime*factor) / 10
	}
	return nodes
}

func (c *cluster) after(seconds float64, happen func()) {
	at := c.now + eventlog.Timestamp(seconds)
	c.queue[at] = append(c.queue[at], happen)
}

func (c *cluster) since() float64 { return math.Round(float64(c.now-jobEnd)*1000) / 1000 }

// play is the loop of the daemon: it waits for what happens next, passes it to the
// job, and does what the job wants done.
func (c *cluster) play() error {
	for c.act(); c.err == nil && (c.dead || !c.job.Done()); c.act() {
		next := eventlog.Timestamp(math.Inf(1))
		if at, ok := c.job.Deadline(); ok && !c.dead {
			next = at
		}
		for at := range c.queue {
			next = min(next, at)
		}
		if math.IsInf(float64(next), 1) {
			return errors.New("nothing happens any more, and the job holds nodes")
		}
		c.now = next
		due := c.queue[next]
		delete(c.queue, next)
		for _, happen := range due {
			happen()
		}
		c.job.Tick(c.now)
	}
	return c.err
}

// act does what the job wants done: the log first.
func (c *cluster) act() {
	if c.dead || c.err != nil {
		return
	}
	todo := c.job.Take(c.now)
	for _, r := range todo.Post {
		if c.logs[r.Log], c.err = eventlog.AppendEntry(c.logs[r.Log], r.Entry); c.err != nil {
			return
		}
	}
	for _, l := range todo.Launch {
		for rank := range l.Ranks.All() {
			n := &c.nodes[rank]
			n.report = perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportStarted, Rank: rank}
			c.after(n.takes, func() { c.exit(n, 0) })
		}
	}
	for _, s := range todo.Signal {
		for rank := range s.Ranks.All() {
			if n := &c.nodes[rank]; !math.IsInf(n.takes, 1) {
				c.after(obeyTime, func() { c.exit(n, int32(s.Signal)) })
			}
		}
	}
	for _, d := range todo.Drain {
		ranks := d.Ranks.Clone()
		c.after(drainTime, func() { c.drain(ranks) })
	}
	if f := todo.Free; !f.IsEmpty() {
		for rank := range f.R.Ranks().All() {
			c.back = append(c.back, c.since())
			c.held += c.since()
			c.idle += c.since() - c.nodes[rank].idle
		}
		c.fragments = append(c.fragments, fragment{c.mode, c.since(), f.R.Ranks(), f.R.Ranks().Len(), len(c.back), f.Final})
	}
}

// exit ends the process of a node, unless it has ended.
func (c *cluster) exit(n *node, status int32) {
	if n.report.Kind == perilog.ReportExited {
		return
	}
	n.report.Kind, n.report.Status, n.idle = perilog.ReportExited, status, c.since()
	c.job.Report(c.now, n.report)
}

// drain takes nodes out of service and confirms it.
func (c *cluster) drain(ranks *idset.Set) {
	for rank := range idset.Difference(ranks, &c.drained).All() {
		c.nodes[rank].idle = c.since()
	}
	c.drained.UnionWith(ranks)
	c.job.Drained(c.now, ranks)
}

// restart recovers the job from its logs alone. Each process checks in.
func (c *cluster) restart() {
	job, err := perilog.RecoverJob(c.now, &c.config, c.spec, c.logs[perilog.LogJob], c.logs[perilog.LogHousekeeping])
	if err != nil {
		c.err = err
		return
	}
	c.job, c.dead = job, false
	for i := range c.nodes {
		c.job.Report(c.now, c.nodes[i].report)
	}
}
