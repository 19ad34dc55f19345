package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/joblife/joblife/examples/internal/lines"
)

// title says what was simulated.
func (s *study) title() string {
	o := s.o
	what := "a made-up workload"
	if s.trace != nil {
		what = lines.Escape(filepath.Base(o.swf))
	}
	jobs := len(s.runs[0][wholeJob].jobs) - 1
	load := "all submitted at once"
	if s.offered > 0 {
		load = fmt.Sprintf("load %.2f", s.offered)
	}
	policy := o.policy
	if o.depth > 0 {
		policy += fmt.Sprintf(" (depth %d", o.depth)
		if o.reservations > 0 {
			policy += ", " + lines.Count(o.reservations, "reservation")
		}
		policy += ")"
	}
	nodes := lines.Count(o.nodes, "node")
	if o.share {
		nodes += " of " + lines.Count(o.cores, "core")
		if o.gpus > 0 {
			nodes += " and " + lines.Count(o.gpus, "gpu")
		}
	}
	return fmt.Sprintf("%s: %s on %s, %s, %s, %s", what, lines.Count(jobs, "job"), nodes, load, policy, lines.Count(len(s.runs), "seed"))
}

// steady is the greatest load at which the queue does not grow for long.
const steady = 0.95

// held returns the load with prologs and epilogs, and with what is held idle, 0 where all jobs
// come at once.
func (s *study) held(w way) float64 {
	if s.offered == 0 {
		return 0
	}
	var loads []float64
	for _, p := range s.runs {
		c := p[w]
		loads = append(loads, c.had/float64(max(1, c.jobs[len(c.jobs)-1].submit))/float64(len(c.nodes)*c.units))
	}
	return mean(loads)
}

// load returns the greatest load there is: that of gpus may be more than that of nodes.
func (s *study) load() float64 { return max(s.offered, s.held(wholeJob)) }

// outside says in lines what was made up beside the workload.
func (s *study) outside() []string {
	o := s.o
	list := []string{fmt.Sprintf("prolog %s, epilog %s", short(float64(o.prolog)), short(float64(o.epilog)))}
	if o.epilog > 0 && o.straggle > 0 {
		list[0] += fmt.Sprintf("; %g %% of epilogs take %s more on average", 100*o.straggle, short(float64(o.straggler)))
	}
	if o.share {
		list = append(list, fmt.Sprintf("Jobs share nodes. What is said of nodes is by cores: a node-hour is %s.", lines.Count(o.cores, "core-hour")))
	}
	if whole, partial := s.held(wholeJob), s.held(partialRelease); s.offered > 0 {
		list = append(list, fmt.Sprintf("load with prologs and epilogs: %.2f with whole-job release, %.2f with partial", whole, partial))
		if most := s.load(); most > steady {
			list = append(list, fmt.Sprintf("Warning: %.2f is above %.2f. The queue grows while jobs come, so the waits say how long the workload is, and the node-hours held idle are those of the jobs that come in a week.", most, steady))
		}
	}
	if o.mtbf > 0 {
		n := 0
		for _, p := range s.runs {
			n += p[wholeJob].failures + p[partialRelease].failures
		}
		list = append(list, fmt.Sprintf("%s, each repaired in %s", lines.Count(n, "node failure"), short(float64(o.repair))))
	}
	if o.restarts > 0 {
		list = append(list, lines.Count(o.restarts, "restart")+" of the manager and the scheduler in each run")
	}
	if len(s.runs) < o.seeds {
		list = append(list, fmt.Sprintf("Interrupted: %d of %s are complete; the others do not count.", len(s.runs), lines.Count(o.seeds, "seed")))
	}
	return list
}

// headline says in one sentence what partial release is worth.
func (s *study) headline() string {
	list := s.compare(worth, 1, maxNodes)
	wait, idle := list[0], list[2]
	const chance = " cannot be told from chance"
	back := fmt.Sprintf("partial release gives back %s of them", hours(max(0, -idle.diff)))
	if idle.Chance() {
		back = "whether partial release gives any of them back" + chance
	}
	gain := "jobs start no earlier"
	switch {
	case math.Abs(wait.diff) < 0.5:
	case wait.Chance():
		gain, back = "whether jobs start earlier"+chance, strings.TrimSuffix(back, chance) // once for both
	case wait.diff < 0:
		gain = fmt.Sprintf("jobs start %s earlier on average", short(-wait.diff))
	default:
		gain = fmt.Sprintf("jobs start %s later on average", short(wait.diff))
	}
	held := fmt.Sprintf("In a week, %s node-hours (%.1f %% of the cluster) were held", hours(idle.Whole), 100*idle.Whole/hoursAWeek/float64(s.o.nodes))
	if s.load() > steady || idle.Whole > hoursAWeek*float64(s.o.nodes) { // they hold them in more than a week
		held = fmt.Sprintf("The jobs that come in a week held %s node-hours", hours(idle.Whole))
	}
	return fmt.Sprintf("%s while nothing ran there; %s, and %s.", held, back, gain)
}

// note says what the table holds.
func (s *study) note() string {
	c := s.runs[0][wholeJob]
	text := "All jobs count."
	if c.lo > 0 {
		text = fmt.Sprintf("%d of %d jobs count: those of the first and the last %g %% of the time are left out, but for the makespan and the results.",
			len(c.counted(1, maxNodes)), len(c.jobs)-1, 100*s.o.trim)
	}
	if len(s.runs) == 1 {
		return text + " One seed does not tell differences from chance."
	}
	text += fmt.Sprintf(" Means over %d seeds; the difference with its 95 %% confidence interval, paired by seed. ~: it may be chance.", len(s.runs))
	if s.trace != nil {
		text += " The seeds differ in prologs, epilogs and failures of nodes: the intervals say nothing about other workloads."
	}
	return text
}

// short prints seconds for people.
func short(s float64) string {
	n := int64(math.Round(s))
	switch {
	case s < 0.05:
		return "0s"
	case s < 10 && s != math.Round(s):
		return fmt.Sprintf("%.1fs", s)
	case n < 60:
		return fmt.Sprintf("%ds", n)
	case n < 3600:
		return units(n, 60, "m", 1, "s")
	case n < 2*86400:
		return units(n, 3600, "h", 60, "m")
	}
	return units(n, 86400, "d", 3600, "h")
}

// units prints seconds in two units, the second if it is not 0.
func units(n, large int64, one string, small int64, two string) string {
	text := strconv.FormatInt(n/large, 10) + one
	if rest := n % large / small; rest > 0 {
		text += fmt.Sprintf("%02d%s", rest, two)
	}
	return text
}

func percent(x float64) string { return fmt.Sprintf("%.2f %%", x) }

func hours(x float64) string {
	if x < 100 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
