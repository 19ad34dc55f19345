package main

import (
	_ "embed"
	"html/template"
	"io"
	"slices"

	"github.com/go-echarts/statsview/statics"

	"github.com/joblife/joblife/jobstate/jobid"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// page writes the page of plots: of the first seed, but for the table.
func (s *study) page(w io.Writer) error {
	first := s.runs[0]
	around := first[wholeJob].slowest()
	return pageTemplate.Execute(w, map[string]any{
		"Title": s.title(), "Outside": s.outside(), "Seeds": len(s.runs), "Lines": s.lines(), "Uneven": s.uneven(), "Headline": s.headline(), "Note": s.note(),
		"Ways": []string{"whole job", "partial release"}, "Runs": []plotted{first[wholeJob].plot(around), first[partialRelease].plot(around)},
		"Around": around, "GanttNodes": min(ganttNodes, s.o.nodes), "Bars": barNames(),
		"ECharts": template.JS(statics.EchartJS), // of a module, not of a user
	})
}

// A plotted is what the page plots of a run. Times are in hours.
type plotted struct {
	Busy    [][2]float64 `json:"busy"`    // over time: percent of nodes that run a job
	Idle    [][2]float64 `json:"idle"`    // over time: percent of nodes held while nothing runs on them
	Waits   []int        `json:"waits"`   // jobs by the time from submission to start, in bars
	Latency []int        `json:"latency"` // nodes by the time from the end of the job to their release
	Gantt   *gantt       `json:"gantt"`   // nil: no job held nodes idle
}

// plot returns what the page plots, with what nodes did around the end of a job; 0 is none.
func (c *cluster) plot(around jobid.ID) plotted {
	waits := make(map[seconds]int)
	for _, j := range c.counted(1, maxNodes) {
		waits[j.started-j.submit]++
	}
	return plotted{c.share(spentJob), c.share(spentIdle), bars(waits), bars(c.latency), c.gantt(around)}
}

// share returns the percent of nodes that did something, over time.
func (c *cluster) share(kind int) [][2]float64 {
	points := make([][2]float64, len(c.series.bins))
	for i, b := range c.series.bins {
		points[i] = [2]float64{hoursOf(seconds(i) * c.series.width), 100 * b[kind] / float64(c.series.width) / float64(len(c.nodes))}
	}
	return points
}

func hoursOf(t seconds) float64 { return float64(t) / 3600 }

// slowest returns the job of which nodes that the Gantt chart shows were held idle the
// longest, or 0 if none were.
func (c *cluster) slowest() (worst jobid.ID) {
	idle := make(map[jobid.ID]seconds)
	for _, g := range c.segments {
		if g.kind == spentIdle {
			idle[g.job] += g.to - g.from
		}
	}
	for id, t := range idle {
		if t > idle[worst] || t == idle[worst] && id < worst {
			worst = id
		}
	}
	return worst
}

// A gantt is what nodes did around the end of a job.
type gantt struct {
	From  float64     `json:"from"` // of the axis
	To    float64     `json:"to"`
	Zoom  [2]float64  `json:"zoom"`  // what is shown first
	Spent [4][]period `json:"spent"` // by kind
}

// A period is a segment: from when to when, and the node between them.
type period struct {
	Job   string     `json:"name"`
	Value [3]float64 `json:"value"`
}

// maxShown is how many segments a Gantt chart has.
const maxShown = 4000

// gantt returns what nodes did around the end of a job, nil for job 0.
func (c *cluster) gantt(id jobid.ID) *gantt {
	if id == 0 {
		return nil
	}
	end := c.jobs[id].ended
	last := end + 60
	for _, g := range c.segments {
		if g.job == id {
			last = max(last, g.to)
		}
	}
	lo, hi := max(0, end-4*(last-end)), last+4*(last-end)
	near := slices.DeleteFunc(slices.Clone(c.segments), func(g segment) bool { return g.to < lo || g.from > hi })
	distance := func(g segment) seconds { return max(0, end-g.to, g.from-last) }
	slices.SortStableFunc(near, func(a, b segment) int { return int(distance(a) - distance(b)) })
	margin := (last - end) / 4
	chart := &gantt{From: hoursOf(lo), To: hoursOf(hi), Zoom: [2]float64{hoursOf(max(lo, end-margin)), hoursOf(last + margin)}}
	for _, g := range near[:min(maxShown, len(near))] {
		chart.Spent[g.kind] = append(chart.Spent[g.kind], period{g.job.String(), [3]float64{hoursOf(g.from), float64(g.rank), hoursOf(g.to)}})
	}
	return chart
}

// The bars of a distribution: each is below a time, the last has the rest.
var barEnds = []seconds{10, 30, 60, 120, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400}

func barNames() (names []string) {
	for _, end := range barEnds {
		names = append(names, "< "+short(float64(end)))
	}
	return append(names, "more")
}

// bars returns how many there are in each bar.
func bars(counts map[seconds]int) []int {
	sums := make([]int, len(barEnds)+1)
	for t, n := range counts {
		i, found := slices.BinarySearch(barEnds, t)
		if found {
			i++
		}
		sums[i] += n
	}
	return sums
}
