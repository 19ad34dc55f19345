package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aclements/go-moremath/stats"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate"
)

// A measure is one line of the table.
type measure struct {
	Name string
	of   func(c *cluster) float64
	text func(x float64) string
}

// measures are the lines of the table.
func (s *study) measures() []measure {
	list := []measure{
		{"makespan", func(c *cluster) float64 { return float64(c.over) }, short},
		{"utilization", func(c *cluster) float64 { return 100 * c.ran / float64(len(c.nodes)) / float64(max(1, c.over)) }, percent},
		{"node-hours held idle", func(c *cluster) float64 { return c.idled / 3600 }, hours},
		{"wait, mean", func(c *cluster) float64 { return mean(c.waits) }, short},
		{"wait, 95th percentile", func(c *cluster) float64 { return quantile(0.95, c.waits) }, short},
		{"bounded slowdown, mean", func(c *cluster) float64 { return mean(c.slow) }, func(x float64) string { return fmt.Sprintf("%.2f", x) }},
		{"node free after its job, mean", func(c *cluster) float64 { return c.latencyMean() }, short},
		{"node free after its job, 99th p.", func(c *cluster) float64 { return float64(c.latencyQuantile(0.99)) }, short},
	}
	for _, r := range []jobstate.Result{
		jobstate.ResultCompleted, jobstate.ResultFailed, jobstate.ResultCanceled, jobstate.ResultTimeout,
	} {
		count := func(c *cluster) float64 { return float64(c.results[r]) }
		if slices.ContainsFunc(s.runs, func(p pair) bool { return count(p[wholeJob])+count(p[partialRelease]) > 0 }) {
			list = append(list, measure{"jobs " + strings.ToLower(r.String()), count, func(x float64) string { return fmt.Sprintf("%.0f", x) }})
		}
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
func (s *study) lines() (list []line) {
	for _, m := range s.measures() {
		var whole, partial, diff []float64
		for _, p := range s.runs {
			a, b := m.of(p[wholeJob]), m.of(p[partialRelease])
			whole, partial, diff = append(whole, a), append(partial, b), append(diff, b-a)
		}
		list = append(list, line{m, mean(whole), mean(partial), mean(diff), spread(diff)})
	}
	return list
}

// Text returns a value as text.
func (m measure) Text(x float64) string { return m.text(x) }

// Difference returns the difference as text, with its interval if there is one.
func (l line) Difference() string {
	text := l.text(math.Abs(l.diff))
	switch {
	case text == l.text(0):
	case l.diff < 0:
		text = "−" + text
	default:
		text = "+" + text
	}
	if !math.IsNaN(l.spread) {
		text += " ± " + l.text(l.spread)
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

// title says what was simulated.
func (s *study) title() string {
	o := s.o
	what := "a made-up workload"
	if s.trace != nil {
		what = filepath.Base(o.swf)
	}
	jobs := len(s.runs[0][wholeJob].jobs) - 1
	load := "all submitted at once"
	if s.offered > 0 {
		load = fmt.Sprintf("load %.2f", s.offered)
	}
	return fmt.Sprintf("%s: %s on %s, %s, %s, %s", what, lines.Count(jobs, "job"), lines.Count(o.nodes, "node"), load, o.policy, lines.Count(len(s.runs), "seed"))
}

// outside says in lines what was made up beside the workload.
func (s *study) outside() []string {
	o := s.o
	list := []string{fmt.Sprintf("prolog %s, epilog %s", short(float64(o.prolog)), short(float64(o.epilog)))}
	if o.epilog > 0 && o.straggle > 0 {
		list[0] += fmt.Sprintf("; %g %% of epilogs take %s more on average", 100*o.straggle, short(float64(o.straggler)))
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
	switch p := s.runs[0]; {
	case p.uneven():
		all := len(p[wholeJob].jobs) - 1
		list = append(list, fmt.Sprintf("Interrupted: %d of %d jobs are over with whole-job release, %d with partial.", all-p[wholeJob].left, all, all-p[partialRelease].left),
			"That is too early to compare them.")
	case len(s.runs) < o.seeds:
		list = append(list, fmt.Sprintf("Interrupted: %d of %s are complete; the others do not count.", len(s.runs), lines.Count(o.seeds, "seed")))
	}
	return list
}

// print prints the table.
func (s *study) print(w io.Writer) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 3, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 4, Align: text.AlignRight, AlignHeader: text.AlignRight},
	})
	header := table.Row{"", "whole job", "partial", "difference"}
	columns := len(header)
	if s.uneven() {
		columns--
	}
	t.AppendHeader(header[:columns])
	for _, l := range s.lines() {
		t.AppendRow(table.Row{l.Name, l.text(l.Whole), l.text(l.Partial), l.Difference()}[:columns])
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n\n%s\n", s.title(), strings.Join(s.outside(), "\n"), t.Render())
	if err == nil && len(s.runs) > 1 {
		_, err = fmt.Fprintf(w, "\nMeans over %d seeds; the difference with its 95 %% confidence interval.\n", len(s.runs))
	}
	if verdict := s.verdict(); err == nil && verdict != "" {
		_, err = fmt.Fprintln(w, verdict)
	}
	return err
}

// verdict says so where partial release gains nothing that can be told from chance.
func (s *study) verdict() string {
	if s.uneven() {
		return ""
	}
	for _, l := range s.lines() {
		if l.Name != "wait, mean" {
			continue
		}
		switch {
		case math.Abs(l.diff) < 0.5:
			return "Partial release makes no difference to the mean wait here."
		case l.spread >= math.Abs(l.diff):
			return "The difference of the mean wait may be chance: its interval includes 0."
		case l.diff > 0:
			return "Jobs wait longer with partial release here."
		}
	}
	return ""
}

// short prints seconds for people.
func short(s float64) string {
	n := int64(math.Round(s))
	switch {
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
