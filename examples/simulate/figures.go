package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/jobstate/jobid"
)

// A figure is a plot of the page.
type figure struct {
	Name, Title, Note string
	draw              func(d *drawing)
}

func (f figure) svg(width float64, alone bool) []byte {
	d := &drawing{width: width, alone: alone}
	f.draw(d)
	return d.svg(f.Title)
}

var (
	wayClasses  = []string{"whole", "partial"}
	wayNames    = []string{"whole-job release", "partial release"}
	kindClasses = []string{"job", "prolog", "epilog", "idle"} // by kind
)

// figureNames are the names of all plots that there can be.
var figureNames = []string{"nodes", "time", "free", "waits", "sizes", "slow"}

// figures returns the plots: of the first seed, but for the curves.
func (s *study) figures() (list []figure) {
	if id := s.around(); id != 0 {
		list = append(list, figure{"nodes", fmt.Sprintf("The %d %s around the end of a job", s.shownRows(), s.o.unit()),
			"A red " + strings.TrimSuffix(s.o.unit(), "s") + " is held and does nothing. The line is where the job ended: of those that ended at about the same time both ways, the one that held the most.",
			func(d *drawing) { s.gantt(d, id) }})
	}
	list = append(list,
		figure{"time", "What changes over the run", "The means leave out the gray ends: warm-up and drain.", s.overTime},
		figure{"free", "How soon a node is free", "Nodes that are not free yet, by the time since the end of their job.", func(d *drawing) {
			s.survival(d, "% of nodes", "time since the end of the job", func(c *cluster) map[seconds]int { return c.latency })
		}},
		figure{"waits", "How long jobs wait", "Jobs that have not started yet, by the time since their submission.", func(d *drawing) {
			s.survival(d, "% of jobs", "time since the submission", (*cluster).waits)
		}})
	const gray = " Gray points: the difference may be chance."
	sizes := s.sizes()
	list = append(list, figure{"sizes", "Large and small jobs", "By the nodes of a job." + gray, func(d *drawing) { s.curve(d, sizes, "nodes of a job", false) }})
	if len(s.shares) > 0 {
		list = append(list, figure{"slow", "More and fewer slow epilogs", "By the share of epilogs that are slow." + gray + s.above(),
			func(d *drawing) { s.curve(d, s.shares, "slow epilogs", true) }})
	}
	return list
}

// above says which points of -sweep have too great a load.
func (s *study) above() string {
	var labels []string
	for _, p := range s.shares {
		if slices.Max(p.load[:]) > steady {
			labels = append(labels, p.label)
		}
	}
	if len(labels) == 0 {
		return ""
	}
	return fmt.Sprintf(" At %s the load is above %.2f, and the waits say how long the workload is.", strings.Join(labels, ", "), steady)
}

// waits returns how many jobs waited how long.
func (c *cluster) waits() map[seconds]int {
	counts := make(map[seconds]int)
	for _, j := range c.counted(1, maxNodes) {
		counts[j.began-j.submit]++
	}
	return counts
}

func (d *drawing) ticks() int { return int(d.width-marginLeft) / 75 }

// overTime draws series of both ways.
func (s *study) overTime(d *drawing) {
	d.legend(wayClasses, wayNames)
	end := seconds(1)
	for _, c := range s.runs[0] {
		end = max(end, c.last)
	}
	x := linear(0, float64(end), d.ticks(), timeSteps, func(t float64) string { return brief(t / 3600) })
	var p panel
	for kind, label := range []string{seriesBusy: "nodes that run a job", seriesWaiting: "jobs that wait", seriesIdle: "nodes held idle"} {
		most := 1.0
		for _, c := range s.runs[0] {
			for _, v := range c.series.points(kind) {
				most = max(most, v[1])
			}
		}
		p = d.panel(label, 150, x, linear(0, 1.05*most, 4, numberSteps, brief))
		if c := s.runs[0][wholeJob]; c.lo > 0 {
			for _, v := range [][2]seconds{{0, c.lo}, {c.hi, end}} {
				from := p.px(float64(v[0]))
				d.rect(from, p.top, p.px(float64(v[1]))-from, p.high, "out")
			}
		}
		p.grid()
		for w, c := range s.runs[0] {
			p.line(wayClasses[w], c.series.points(kind))
		}
	}
	p.xAxis("hours since the first submission")
}

// survival draws the share of what lasts longer than a time.
func (s *study) survival(d *drawing, label, xLabel string, of func(*cluster) map[seconds]int) {
	d.legend(wayClasses, wayNames)
	first, last, all := seconds(60), seconds(60), 1
	var counts [2]map[seconds]int
	for w, c := range s.runs[0] {
		counts[w] = of(c)
		n := 0
		for t, m := range counts[w] {
			first, last = min(first, max(2, t)), max(last, t)
			n += m
		}
		all = max(all, n)
	}
	least := math.Pow(10, math.Floor(math.Log10(100/float64(all))))
	p := d.panel(label, 300,
		logarithmic(float64(first)/2, float64(last), d.ticks(), []float64{1, 10, 60, 600, 3600, 36000, 4 * 86400, 40 * 86400}, short),
		logarithmic(least, 100, 9, []float64{1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100}, brief))
	p.grid()
	for w := range counts {
		p.line(wayClasses[w], survivors(counts[w]))
	}
	p.xAxis(xLabel)
}

// survivors returns the percent of what lasts longer than each time, as steps.
func survivors(counts map[seconds]int) [][2]float64 {
	all := 0
	for _, n := range counts {
		all += n
	}
	left, share := all, 100.0
	points := [][2]float64{{0, share}}
	for _, t := range slices.Sorted(maps.Keys(counts)) {
		points = append(points, [2]float64{float64(t), share})
		left -= counts[t]
		share = 100 * float64(left) / float64(all)
		points = append(points, [2]float64{float64(t), share})
	}
	return points
}

// curve draws what partial release is worth at some points.
func (s *study) curve(d *drawing, points []point, xLabel string, log bool) {
	d.legend(wayClasses, wayNames)
	x := axis{lo: 0, hi: float64(len(points)), text: func(v float64) string { return points[int(v)].label }}
	longest := 0
	for _, q := range points {
		longest = max(longest, len(q.label))
	}
	for i := 0; i < len(points); i += 1 + len(points)*longest*8/int(d.width) { // as many as have room
		x.ticks = append(x.ticks, float64(i)+0.5)
	}
	var p panel
	for i, m := range worth {
		least, most := math.Inf(1), 1.0
		for _, q := range points {
			least, most = min(least, q.lines[i].Whole, q.lines[i].Partial), max(most, q.lines[i].Whole, q.lines[i].Partial)
		}
		steps, text := timeSteps, short
		if m.Name == nameIdle {
			steps, text = numberSteps, brief
		}
		y := linear(0, 1.1*most, 4, steps, text)
		if log {
			y = logarithmic(max(1, least/1.5), 1.5*most, 4, steps, text)
		}
		p = d.panel(m.Name, 100, x, y)
		p.grid()
		for w, of := range []func(line) float64{func(l line) float64 { return l.Whole }, func(l line) float64 { return l.Partial }} {
			var values [][2]float64
			for k, q := range points {
				values = append(values, [2]float64{float64(k) + 0.5, of(q.lines[i])})
			}
			p.line(wayClasses[w], values)
			for k, q := range points {
				class := wayClasses[w]
				if q.lines[i].Chance() {
					class = "chance"
				}
				p.dot(values[k][0], values[k][1], class)
			}
		}
	}
	p.xAxis(xLabel)
}

// around returns the job that held the most idle, among those that ended at
// nearly the same time both ways, so that they can be compared; else among all; 0 if no job
// held nodes idle.
func (s *study) around() (best jobid.ID) {
	a, b := s.runs[0][wholeJob], s.runs[0][partialRelease]
	if len(a.segments) == 0 {
		return 0
	}
	seen, close := a.segments[len(a.segments)-1].to, false
	for i := range a.jobs {
		j, k := &a.jobs[i], &b.jobs[i]
		if j.idle == 0 || j.free <= j.ended || j.free > seen || k.free == 0 {
			continue
		}
		near := 20*max(j.ended-k.ended, k.ended-j.ended) <= j.free-j.ended
		if near && !close || near == close && j.idle > a.jobs[best].idle {
			best, close = jobid.ID(i), near
		}
	}
	return best
}

// shownRows returns how many nodes the Gantt chart shows, or cores where jobs share nodes.
func (s *study) shownRows() int { return min(ganttRows, s.o.nodes*s.o.units()) }

// gantt draws what nodes did around the end of a job, both ways in one window of time.
func (s *study) gantt(d *drawing, id jobid.ID) {
	d.legend(append(slices.Clone(kindClasses), "free"), []string{"job", "prolog", "epilog", "held idle", "free"})
	j := &s.runs[0][wholeJob].jobs[id]
	margin := max(60, (j.free-j.ended)/3)
	from, to := max(0, j.ended-margin), j.free+margin
	x := linear(float64(from), float64(to), d.ticks(), timeSteps[slices.Index(timeSteps, 60):], clock)
	var p panel
	for w, c := range s.runs[0] {
		lo, hi := math.MaxInt, 0
		for _, g := range c.segments {
			if g.job == id {
				lo, hi = min(lo, g.row), max(hi, g.row)
			}
		}
		first := min(max(0, (lo+hi+1-s.shownRows())/2), s.o.nodes*s.o.units()-s.shownRows())
		last := first + s.shownRows() - 1
		y := axis{lo: float64(last) + 0.5, hi: float64(first) - 0.5, text: plain}
		for i := first; i <= last; i += 16 {
			y.ticks = append(y.ticks, float64(i))
		}
		p = d.panel(s.o.unit()+", "+wayNames[w], 256, x, y)
		p.grid()
		blocks := c.blocks(from, to, first, last)
		for _, kind := range []int{spentJob, spentIdle, spentEpilog, spentProlog} { // the shortest last
			class := kindClasses[kind]
			open, end := `<g class="%s" fill="%s">`+"\n", "</g>\n"
			if d.alone {
				open, end = `<path class="%s" fill="%s" d="`, "\"/>\n"
			}
			fmt.Fprintf(d, open, class, light(class))
			for _, b := range blocks {
				if b.kind == kind {
					p.block(b, class)
				}
			}
			d.WriteString(end)
		}
		p.d.path(fmt.Sprintf("M%.1f %.1fV%.1f", p.px(float64(c.jobs[id].ended)), p.top-4, p.top+p.high), "ink", 1)
	}
	p.xAxis("hours since the first submission")
}

// block draws what nodes did, wide enough to be seen: in an image that stands alone as a part of
// a path, which is far shorter.
func (p panel) block(b block, class string) {
	left, top := p.px(float64(b.from)), p.py(float64(b.row)-0.4)
	wide, high := max(2.5, p.px(float64(b.to))-left), p.py(float64(b.end)+0.4)-top
	if p.d.alone {
		fmt.Fprintf(p.d, "M%.1f %.1fh%.1fv%.1fh-%.1fz", left, top, wide, high, wide)
		return
	}
	fmt.Fprintf(p.d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>job %d: %s, %s to %s</title></rect>`+"\n",
		left, top, wide, high, b.job, class, clock(float64(b.from)), clock(float64(b.to)))
}

// brief prints a number where there is room for a few digits.
func brief(v float64) string {
	digits, unit := 4, ""
	for _, larger := range []string{"k", "M", "G"} {
		if v >= 1e4 {
			v, unit = v/1000, larger
		}
	}
	if v < 1 {
		digits = 2
	}
	return strconv.FormatFloat(v, 'g', digits, 64) + unit
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// clock prints a time in hours and minutes.
func clock(t float64) string { return fmt.Sprintf("%d:%02d", int64(t)/3600, int64(t)/60%60) }

// A block is a segment on some rows, one beside the other.
type block struct {
	segment
	end int // the last row
}

// blocks returns what rows did in a time.
func (c *cluster) blocks(from, to seconds, first, last int) (list []block) {
	near := slices.DeleteFunc(slices.Clone(c.segments), func(g segment) bool {
		return g.to <= from || g.from >= to || g.row < first || g.row > last
	})
	slices.SortFunc(near, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.job, b.job), cmp.Compare(a.kind, b.kind), cmp.Compare(a.to, b.to), cmp.Compare(a.row, b.row))
	})
	for _, g := range near {
		if n := len(list); n > 0 && list[n-1].end+1 == g.row {
			like := g
			like.row = list[n-1].row
			if like == list[n-1].segment {
				list[n-1].end++
				continue
			}
		}
		list = append(list, block{g, g.row})
	}
	return list
}
