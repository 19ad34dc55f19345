package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aclements/go-moremath/stats"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/joblife/joblife/jobstate"
)

// A measure is one line of the table: of the jobs of a cluster that count and have run.
type measure struct {
	Name string
	of   func(c *cluster, jobs []*job) float64
	text func(x float64) string
}

const (
	nameIdle   = "node-hours held idle, a week"
	hoursAWeek = 7 * 24
)

// worth is what partial release is worth.
var worth = []measure{
	{"wait, mean", func(_ *cluster, jobs []*job) float64 { return mean(each(jobs, (*job).wait)) }, short},
	{"wait, 95th percentile", func(_ *cluster, jobs []*job) float64 { return quantile(0.95, each(jobs, (*job).wait)) }, short},
	{nameIdle, func(c *cluster, jobs []*job) (sum float64) {
		for _, j := range jobs {
			sum += float64(j.idle)
		}
		return sum / float64(c.units) / c.window(c.last) * hoursAWeek
	}, hours},
}

// measures are the lines of the table.
func (s *study) measures() []measure {
	list := append(slices.Clone(worth),
		measure{"bounded slowdown, mean", func(_ *cluster, jobs []*job) float64 { return mean(each(jobs, (*job).slowdown)) }, func(x float64) string { return fmt.Sprintf("%.2f", x) }},
		measure{"node free after its job, mean", func(c *cluster, _ []*job) float64 { return c.latencyMean() }, short},
		measure{"node free after its job, 99th p.", func(c *cluster, _ []*job) float64 { return float64(c.latencyQuantile(0.99)) }, short},
		measure{"utilization", func(c *cluster, _ []*job) float64 {
			return 100 * c.ran / float64(len(c.nodes)*c.units) / c.window(c.over)
		}, percent},
		measure{"makespan", func(c *cluster, _ []*job) float64 { return float64(c.over) }, short},
	)
	for _, r := range []jobstate.Result{
		jobstate.ResultCompleted, jobstate.ResultFailed, jobstate.ResultCanceled, jobstate.ResultTimeout,
	} {
		count := func(c *cluster, _ []*job) float64 { return float64(c.results[r]) }
		if slices.ContainsFunc(s.runs, func(p pair) bool { return count(p[wholeJob], nil)+count(p[partialRelease], nil) > 0 }) {
			list = append(list, measure{"jobs " + strings.ToLower(r.String()), count, func(x float64) string { return fmt.Sprintf("%.0f", x) }})
		}
	}
	return list
}

// counted returns the jobs that count and have run, of some sizes: nodes, rounded up.
func (c *cluster) counted(least, most int) (list []*job) {
	least, most = (least-1)*c.units+1, most*c.units
	for i := range c.jobs[1:] {
		if j := &c.jobs[i+1]; j.ran && c.counts(j.submit) && least <= j.size && j.size <= most {
			list = append(list, j)
		}
	}
	return list
}

func each(jobs []*job, of func(*job) float64) (list []float64) {
	for _, j := range jobs {
		list = append(list, of(j))
	}
	return list
}

// A line is a measure of both ways: means over the seeds, the mean difference, and the
// half of its 95 % confidence interval.
type line struct {
	measure
	Whole, Partial float64
	diff, spread   float64
}

// lines computes the table.
func (s *study) lines() []line { return s.compare(s.measures(), 1, maxNodes) }

// compare computes measures of the jobs of some sizes.
func (s *study) compare(measures []measure, least, most int) []line {
	whole, partial, diff := make([][]float64, len(measures)), make([][]float64, len(measures)), make([][]float64, len(measures))
	for _, p := range s.runs {
		a, b := p[wholeJob].counted(least, most), p[partialRelease].counted(least, most)
		for i, m := range measures {
			x, y := m.of(p[wholeJob], a), m.of(p[partialRelease], b)
			whole[i], partial[i], diff[i] = append(whole[i], x), append(partial[i], y), append(diff[i], y-x)
		}
	}
	list := make([]line, len(measures))
	for i, m := range measures {
		list[i] = line{m, mean(whole[i]), mean(partial[i]), mean(diff[i]), spread(diff[i])}
	}
	return list
}

// Text returns a value as text.
func (m measure) Text(x float64) string { return m.text(x) }

// Chance reports whether the difference may be chance: its interval includes 0.
func (l line) Chance() bool { return l.spread > 0 && math.Abs(l.diff) <= l.spread }

// Difference returns the difference as text, with its interval if there is one, and with
// a mark if it may be chance.
func (l line) Difference() string {
	text := l.text(math.Abs(l.diff))
	switch {
	case text == l.text(0):
	case l.diff < 0:
		text = "−" + text
	default:
		text = "+" + text
	}
	if l.spread > 0 {
		text += " ± " + l.text(l.spread)
	}
	if l.Chance() {
		text = "~ " + text
	}
	return text
}

// spread returns the half of the 95 % confidence interval of a mean (Student's t), NaN
// for fewer than two values.
func spread(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	mean, lo, _ := stats.MeanCI(x, 0.95)
	return mean - lo
}

// mean returns the mean, 0 of nothing.
func mean(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return stats.Mean(x)
}

// quantile returns a quantile, 0 of nothing.
func quantile(p float64, x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return stats.Sample{Xs: x}.Quantile(p)
}

// newTable returns a table for the terminal, with numbers behind the first column.
func newTable() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	var columns []table.ColumnConfig
	for i := 2; i <= 5; i++ {
		columns = append(columns, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

// gray returns a text, in gray if the difference may be chance.
func (l line) gray(t string, colors bool) string {
	if colors && l.Chance() {
		return text.FgHiBlack.Sprint(t)
	}
	return t
}

// print prints the table, and those of -sweep.
func (s *study) print(w io.Writer) error {
	t := newTable()
	t.AppendHeader(table.Row{"", "whole job", "partial", "difference"})
	f, ok := w.(*os.File)
	colors := ok && term.IsTerminal(int(f.Fd()))
	for _, l := range s.lines() {
		t.AppendRow(table.Row{l.Name, l.text(l.Whole), l.text(l.Partial), l.gray(l.Difference(), colors)})
	}
	var b strings.Builder
	for _, line := range append([]string{s.title()}, s.outside()...) {
		b.WriteString(wrap(line))
	}
	b.WriteString("\n" + t.Render() + "\n\n" + wrap(s.headline()) + "\n" + wrap(s.note()))
	if s.o.sweep {
		b.WriteString("\n" + s.curves(colors))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// columnsShown is how long a line of text on the terminal is at most.
const columnsShown = 80

// wrap returns a text as lines.
func wrap(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if column > 0 && column+1+n > columnsShown {
			b.WriteByte('\n')
			column = 0
		} else if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}
