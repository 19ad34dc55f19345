package main

import (
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/children"
)

// metrics are what is measured as a cluster lives. Times are in seconds. Where jobs share
// nodes, the units are cores, and so many of them count as a node; else they are nodes.
type metrics struct {
	seed     uint64
	units    int // of a node
	failures int // of nodes

	last                  seconds // until when all is counted
	running, acting, held int     // units that run a job, that run a prolog or epilog, that some job has
	waiting               int     // jobs that were submitted, and have not started
	had                   float64 // unit-seconds that some job has
	over                  seconds // when the last job's processes ended

	lo, hi  seconds         // jobs submitted between them count; the others warm up and drain
	ran     float64         // unit-seconds that run a job, from lo to hi
	latency map[seconds]int // units by how long after the end of their job they were free
	results map[jobstate.Result]int

	draws    bool // series and segments are wanted
	series   series
	segments []segment
}

// What a node does.
const (
	spentJob = iota
	spentProlog
	spentEpilog
	spentIdle
)

// A segment is some time of a node, or of a core where jobs share nodes.
type segment struct {
	row      int // of the chart: the unit
	kind     int
	job      jobid.ID
	from, to seconds
}

// The Gantt chart shows no more units, and no more segments are kept.
const (
	ganttRows   = 64
	maxSegments = 1 << 20
)

// pass counts what the nodes did until now.
func (c *metrics) pass(now seconds) {
	c.had += float64(now-c.last) * float64(c.held)
	c.ran += float64(max(0, min(now, c.hi)-max(c.last, c.lo))) * float64(c.running)
	if c.draws {
		c.series.add(c.last, now, bin{seriesBusy: c.nodesOf(c.running), seriesWaiting: float64(c.waiting), seriesIdle: c.nodesOf(c.held - c.running - c.acting)})
	}
	c.last = now
}

// nodesOf returns how many nodes units are.
func (c *metrics) nodesOf(units int) float64 { return float64(units) / float64(c.units) }

// limit sets which jobs count: those that came after the first and before the last part of
// the time, or all, if that is none, or if all come at once.
func (c *metrics) limit(work []arrival, part float64) {
	span := float64(work[len(work)-1].submit)
	c.lo, c.hi = seconds(math.Ceil(part*span)), seconds((1-part)*span)
	if part == 0 || span == 0 || !slices.ContainsFunc(work, func(a arrival) bool { return c.counts(a.submit) }) {
		c.lo, c.hi = 0, math.MaxInt64
	}
}

func (c *metrics) counts(submit seconds) bool { return c.lo <= submit && submit <= c.hi }

// window returns how long the time is in which jobs count. If all do, it lasts until end.
func (c *metrics) window(end seconds) float64 { return float64(max(1, min(c.hi, end)-c.lo)) }

// latencyMean returns the mean of the latencies, 0 of none.
func (c *metrics) latencyMean() float64 {
	sum, n := 0.0, 0
	for t, count := range c.latency {
		sum += float64(t) * float64(count)
		n += count
	}
	return sum / float64(max(1, n))
}

func (c *metrics) latencyQuantile(p float64) seconds {
	n := 0
	for _, count := range c.latency {
		n += count
	}
	below := 0
	for _, t := range slices.Sorted(maps.Keys(c.latency)) {
		if below += c.latency[t]; float64(below) >= p*float64(n) {
			return t
		}
	}
	return 0
}

func (c *metrics) begins(j *job) {
	c.running += j.size
	c.waiting--
}

// wait returns the time from the submission of a job to its start.
func (j *job) wait() float64 { return float64(j.began - j.submit) }

// slowdown returns the bounded slowdown. A failure of a node may have ended the job.
func (j *job) slowdown() float64 {
	run := float64(j.ended - j.began)
	return max(1, (j.wait()+run)/max(run, 10))
}

func (c *metrics) ends(j *job) {
	c.running -= j.size
	c.over = c.last
}

func spentActing(k jobstate.ActionKey) int {
	if k.Kind == jobstate.ActionProlog {
		return spentProlog
	}
	return spentEpilog
}

// spent ends what a job did on a node until now.
func (c *cluster) spent(rank uint32, t *tenant, kind int) {
	if kind == spentIdle {
		c.jobs[t.job].idle += (c.now - t.since) * seconds(t.units)
	}
	if c.draws && t.since < c.last {
		for row := range c.rows(rank, t.what) {
			if len(c.segments) == maxSegments {
				break
			}
			c.segments = append(c.segments, segment{row, kind, t.job, t.since, c.last})
		}
	}
	t.since = c.last
}

// rows yields the units of some resources of a node.
func (c *cluster) rows(rank uint32, what *children.Set) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !c.o.share {
			yield(int(rank))
			return
		}
		cores, _ := what.Kind("core")
		for core := range cores.All() {
			if !yield(int(rank)*c.units + int(core)) {
				return
			}
		}
	}
}

// A series has what there was of each kind, times seconds, in intervals of one length. It
// grows by doubling the length.
type series struct {
	width seconds
	bins  []bin
}

// The kinds of a series.
const (
	seriesBusy    = iota // nodes that run a job
	seriesWaiting        // jobs that wait
	seriesIdle           // nodes held while nothing runs on them
)

type bin [3]float64

const maxBins = 600

// points returns the mean of a kind in each interval, in its middle.
func (s *series) points(kind int) [][2]float64 {
	list := make([][2]float64, len(s.bins))
	for i, b := range s.bins {
		list[i] = [2]float64{(float64(i) + 0.5) * float64(s.width), b[kind] / float64(s.width)}
	}
	return list
}

// add adds what there is of each kind from one time to another.
func (s *series) add(from, to seconds, values bin) {
	if s.width == 0 {
		s.width = 1
	}
	for to > s.width*maxBins {
		for i := range (len(s.bins) + 1) / 2 {
			b := s.bins[2*i]
			if 2*i+1 < len(s.bins) {
				for k, v := range s.bins[2*i+1] {
					b[k] += v
				}
			}
			s.bins[i] = b
		}
		s.bins = s.bins[:(len(s.bins)+1)/2]
		s.width *= 2
	}
	for from < to {
		i := from / s.width
		end := min(to, (i+1)*s.width)
		for seconds(len(s.bins)) <= i {
			s.bins = append(s.bins, bin{})
		}
		for k, v := range values {
			s.bins[i][k] += v * float64(end-from)
		}
		from = end
	}
}
