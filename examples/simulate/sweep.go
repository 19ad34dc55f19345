package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
)

// slowShares are the shares of slow epilogs that -sweep simulates.
var slowShares = []float64{0, 0.001, 0.005, 0.01, 0.05}

// A point is what partial release is worth at one place of a curve.
type point struct {
	label string
	load  [2]float64 // by way
	lines []line     // as worth has them
}

// sweep simulates all shares of slow epilogs, each like the runs that there are.
func (s *study) sweep(ctx context.Context, step func(int)) error {
	for _, share := range slowShares {
		sub, o := *s, *s.o
		if share != o.straggle {
			o.straggle, o.log, o.html, o.svg = share, "", "", ""
			sub.o = &o
			if err := sub.simulate(ctx, step); err != nil {
				return err
			}
		}
		s.shares = append(s.shares, point{
			fmt.Sprintf("%g %%", 100*share), [2]float64{sub.held(wholeJob), sub.held(partialRelease)}, sub.compare(worth, 1, maxNodes),
		})
	}
	return nil
}

// sizes returns what partial release is worth by the size of jobs: 1, 2, 3 to 4, 5 to 8 and
// so on.
func (s *study) sizes() (list []point) {
	for least, most := 1, 1; least <= s.o.nodes; least, most = most+1, 2*most {
		some := true
		for _, p := range s.runs {
			some = some && len(p[wholeJob].counted(least, most)) > 0 && len(p[partialRelease].counted(least, most)) > 0
		}
		if some {
			label := strconv.Itoa(most)
			if least < most {
				label = strconv.Itoa(least) + "–" + label
			}
			list = append(list, point{label: label, lines: s.compare(worth, least, most)})
		}
	}
	return list
}

// curves returns the tables of -sweep.
func (s *study) curves(colors bool) string {
	t, u := newTable(), newTable()
	t.AppendHeader(table.Row{"slow", "load", "wait, mean", "wait, 95th p.", "node-h idle/week"})
	for _, p := range s.shares {
		load := "at once"
		if s.offered > 0 {
			load = fmt.Sprintf("%.2f → %.2f", p.load[wholeJob], p.load[partialRelease])
		}
		t.AppendRow(append(table.Row{p.label, load}, p.cells(colors)...))
	}
	u.AppendHeader(table.Row{"nodes", "wait, mean", "wait, 95th p.", "node-h idle/week"})
	for _, p := range s.sizes() {
		u.AppendRow(append(table.Row{p.label}, p.cells(colors)...))
	}
	text := fmt.Sprintf("By the share of slow epilogs, whole job → partial. Where the load is above %.2f, the waits say how long the workload is.", steady)
	if len(s.shares) < len(slowShares) {
		text += fmt.Sprintf(" Interrupted: %d of %d shares are complete.", len(s.shares), len(slowShares))
	}
	return wrap(text) + "\n" + t.Render() + "\n\nBy the nodes of a job:\n\n" + u.Render() + "\n"
}

func (p point) cells(colors bool) (row table.Row) {
	for _, l := range p.lines {
		text := l.text(l.Whole) + " → " + l.text(l.Partial)
		if l.Chance() {
			text = "~ " + text
		}
		row = append(row, l.gray(text, colors))
	}
	return row
}
