package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
	"github.com/go-echarts/statsview/statics"

	"github.com/joblife/joblife/jobstate/jobid"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// A chart of the page.
type chart struct {
	ID, Title, Caption string
	Tall               bool
	Option             json.RawMessage
}

// writable returns what prevents a file from being written. It changes nothing.
func writable(name string) error {
	_, stat := os.Lstat(name)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	err = f.Close()
	if errors.Is(stat, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// writePage writes the page of plots: of the first seed, but for the table.
func (s *study) writePage(name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return s.page(f)
}

func (s *study) page(w io.Writer) error {
	list, err := s.charts()
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, map[string]any{
		"Title": s.title(), "Outside": s.outside(), "Seeds": len(s.runs), "Lines": s.lines(), "Uneven": s.uneven(), "Verdict": s.verdict(),
		"Charts": list, "ECharts": template.JS(statics.EchartJS), // of a module, not of a user
	})
}

// ways are the runs of the first seed, with their names and colors.
func (s *study) ways() []plotted {
	return []plotted{{"whole job", "#c2570c", s.runs[0].whole}, {"partial release", "#2563a8", s.runs[0].partial}}
}

type plotted struct {
	name, color string
	*cluster
}

func (s *study) charts() (list []chart, err error) {
	add := func(c chart, plot interface{ JSON() map[string]any }) {
		option, e := json.Marshal(plot.JSON())
		err = errors.Join(err, e)
		c.Option = option
		list = append(list, c)
	}
	add(chart{ID: "utilization", Title: "Nodes that run a job", Caption: "In percent of all nodes. Drag the bar below to zoom."}, s.overTime(spentJob))
	add(chart{ID: "idle", Title: "Nodes held while nothing runs on them", Caption: "In percent of all nodes: they wait for the epilogs of other nodes."}, s.overTime(spentIdle))
	if id := s.slowest(); id != 0 {
		for i, p := range s.ways() {
			add(chart{
				ID: fmt.Sprint("nodes", i), Title: fmt.Sprintf("Nodes around the end of job %v: %s", id, p.name), Tall: true,
				Caption: fmt.Sprintf("The first %d nodes. Scroll to zoom, drag to move.", min(ganttNodes, len(p.nodes))),
			}, gantt(p, id))
		}
	}
	add(chart{ID: "waits", Title: "How long jobs wait", Caption: "Jobs by the time from submission to start."}, s.waitBars())
	add(chart{ID: "latency", Title: "How soon a node is free after its job", Caption: "Nodes by the time from the end of the job to their release."}, s.latencyBars())
	return list, err
}

// overTime plots a kind of node-seconds over time.
func (s *study) overTime(kind int) *charts.Line {
	line := charts.NewLine()
	line.SetGlobalOptions(common("hours since the first submission", "% of nodes")...)
	line.SetGlobalOptions(charts.WithDataZoomOpts(opts.DataZoom{Type: "slider", End: 100}))
	for _, p := range s.ways() {
		data := make([]opts.LineData, len(p.series.bins))
		for i, b := range p.series.bins {
			x := float64(seconds(i)*p.series.width) / 3600
			data[i].Value = [2]float64{x, 100 * b[kind] / float64(p.series.width) / float64(len(p.nodes))}
		}
		line.AddSeries(p.name, data, charts.WithLineChartOpts(opts.LineChart{Step: "end", ShowSymbol: opts.Bool(false)}),
			charts.WithItemStyleOpts(opts.ItemStyle{Color: p.color}), charts.WithLineStyleOpts(opts.LineStyle{Width: 1.5, Color: p.color}))
	}
	return line
}

func common(x, y string) []charts.GlobalOpts {
	return []charts.GlobalOpts{
		charts.WithAnimation(false),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "axis"}),
		charts.WithLegendOpts(opts.Legend{Show: opts.Bool(true), Top: "0"}),
		charts.WithGridOpts(opts.Grid{Left: "50", Right: "20", Top: "40", Bottom: "80"}),
		charts.WithXAxisOpts(opts.XAxis{Type: "value", Name: x, NameLocation: "center", NameGap: 28}),
		charts.WithYAxisOpts(opts.YAxis{Type: "value", Name: y, Min: 0}),
	}
}

// slowest returns the job of which nodes that the Gantt chart shows were held idle the
// longest with whole-job release, or 0 if none were.
func (s *study) slowest() (worst jobid.ID) {
	idle := make(map[jobid.ID]seconds)
	for _, g := range s.runs[0].whole.segments {
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

// maxShown is how many segments a Gantt chart has.
const maxShown = 4000

// gantt plots what nodes did around the end of a job.
func gantt(p plotted, id jobid.ID) zoomed {
	end := p.jobs[id].ended
	last := end + 60
	for _, g := range p.segments {
		if g.job == id {
			last = max(last, g.to)
		}
	}
	lo, hi := max(0, end-4*(last-end)), last+4*(last-end)
	near := slices.DeleteFunc(slices.Clone(p.segments), func(g segment) bool { return g.to < lo || g.from > hi })
	distance := func(g segment) seconds { return max(0, end-g.to, g.from-last) }
	slices.SortStableFunc(near, func(a, b segment) int { return int(distance(a) - distance(b)) })
	near = near[:min(maxShown, len(near))]
	c := charts.NewCustom()
	c.SetGlobalOptions(common("hours since the first submission", "node")...)
	c.XAxisList[0].Min, c.XAxisList[0].Max = float64(lo)/3600, float64(hi)/3600
	for kind, name := range segmentNames() {
		var data []opts.CustomData
		for _, g := range near {
			if g.kind == kind {
				data = append(data, opts.CustomData{Name: g.job.String(), Value: [3]float64{float64(g.from) / 3600, float64(g.rank), float64(g.to) / 3600}})
			}
		}
		c.AddSeries(name.name, data, charts.WithItemStyleOpts(opts.ItemStyle{Color: name.color}))
	}
	margin := (last - end) / 4
	return zoomed{c, float64(max(lo, end-margin)) / 3600, float64(last+margin) / 3600}
}

// zoomed is a chart that shows a part of its x axis first.
type zoomed struct {
	*charts.Custom
	from, to float64
}

func (z zoomed) JSON() map[string]any {
	option := z.Custom.JSON()
	var list []map[string]any
	for _, kind := range []string{"slider", "inside"} {
		list = append(list, map[string]any{"type": kind, "startValue": z.from, "endValue": z.to, "filterMode": "weakFilter"})
	}
	option["dataZoom"] = list
	return option
}

func segmentNames() []struct{ name, color string } {
	return []struct{ name, color string }{{"job", "#7aa6d6"}, {"prolog", "#8d6bb8"}, {"epilog", "#e0a02f"}, {"held idle", "#d24a43"}}
}

// The bars of a distribution: each is below a time, the last has the rest.
var barEnds = []seconds{10, 30, 60, 120, 300, 600, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400}

func (s *study) bars(y string, counts func(c *cluster, add func(seconds, int))) *charts.Bar {
	bar := charts.NewBar()
	bar.SetGlobalOptions(common("", y)...)
	names := make([]string, len(barEnds)+1)
	for i, end := range barEnds {
		names[i] = "< " + short(float64(end))
	}
	names[len(barEnds)] = "more"
	bar.SetGlobalOptions(charts.WithXAxisOpts(opts.XAxis{Type: "category", AxisLabel: &opts.AxisLabel{Rotate: 40}}))
	bar.SetXAxis(names)
	for _, p := range s.ways() {
		data := make([]opts.BarData, len(names))
		sums := make([]int, len(names))
		counts(p.cluster, func(t seconds, n int) {
			i, found := slices.BinarySearch(barEnds, t)
			if found {
				i++
			}
			sums[i] += n
		})
		for i, n := range sums {
			data[i].Value = n
		}
		bar.AddSeries(p.name, data, charts.WithItemStyleOpts(opts.ItemStyle{Color: p.color}))
	}
	bar.Validate()
	return bar
}

func (s *study) waitBars() *charts.Bar {
	return s.bars("jobs", func(c *cluster, add func(seconds, int)) {
		for _, w := range c.waits {
			add(seconds(w), 1)
		}
	})
}

func (s *study) latencyBars() *charts.Bar {
	return s.bars("nodes", func(c *cluster, add func(seconds, int)) {
		for t, n := range c.latency {
			add(t, n)
		}
	})
}
