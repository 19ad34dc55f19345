package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/joblife/joblife/idset"
)

const (
	width    = 100 // of the output, in columns
	barWidth = 15
	maxRows  = 16 // about as many, but for notes between
)

// printJSON prints the fragments of both modes in the order of time.
func printJSON(out io.Writer, partial, whole *history) error {
	type object struct {
		Mode  string  `json:"mode"`
		Time  float64 `json:"t"` // seconds from the end of the job
		Ranks string  `json:"ranks"`
		Nodes int     `json:"nodes"`
		Final bool    `json:"final"`
		Back  int     `json:"back"` // nodes that are back, these included
	}
	var list []object
	for _, h := range []*history{partial, whole} {
		back := 0
		for _, f := range h.fragments {
			back += f.ranks.Len()
			list = append(list, object{h.mode, f.at, f.ranks.String(), f.ranks.Len(), f.final, back})
		}
	}
	slices.SortStableFunc(list, func(a, b object) int { return cmp.Compare(a.Time, b.Time) })
	enc := json.NewEncoder(out)
	for _, o := range list {
		if err := enc.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

// printReport prints the timeline and the totals.
func printReport(out io.Writer, o options, partial, whole *history) {
	what := "epilog"
	if o.housekeeping {
		what = "housekeeping"
	}
	fmt.Fprintf(out, "%s, %s of about %v; stragglers: %d, hanging: %d, seed %d.\n", count(o.nodes, "node"), what, o.epilog, o.stragglers, o.hang, o.seed)
	fmt.Fprint(out, "Seconds from the end of the job; how many nodes are back; fragments of sched.free and their ranks.\n\n")
	fmt.Fprintf(out, "%8s  %-49s  %s\n", "", "partial release", "whole job")
	timeline(out, o.nodes, partial, whole)

	p, w := totals(partial), totals(whole)
	fmt.Fprintf(out, "\n%-34s %15s %15s\n", "", "partial release", "whole job")
	for i, percent := range percents {
		fmt.Fprintf(out, "%-34s %13.1f s %13.1f s\n", fmt.Sprintf("%d %% of the nodes are back after", percent), p.back[i], w.back[i])
	}
	fmt.Fprintf(out, "%-34s %15d %15d\n", "fragments", len(partial.fragments), len(whole.fragments))
	fmt.Fprintf(out, "%-34s %15.1f %15.1f\n", "node-seconds held after the job", p.held, w.held)
	fmt.Fprintf(out, "%-34s %15.1f %15.1f\n", "of which idle", p.idle, w.idle)
	fmt.Fprintf(out, "%-34s %15.1f\n", "node-seconds saved", w.idle-p.idle)
	if d := partial.drained; !d.IsEmpty() {
		fmt.Fprintf(out, "\nDrained: %s. No job runs there before somebody has looked.\n", nodes(d))
	}
	if end := whole.fragments[len(whole.fragments)-1].at; o.crash.Seconds() > end {
		fmt.Fprintf(out, "\nThe daemon did not die: everything was over by then. Try a -crash before %.1f s.\n", end)
	}
}

// percents are the parts of the nodes whose time is told.
var percents = [...]int{50, 95, 100}

// A total is what a history comes to, in seconds.
type total struct {
	held, idle float64
	back       [len(percents)]float64
}

func totals(h *history) total {
	var t total
	n := 0
	for _, f := range h.fragments {
		for rank := range f.ranks.All() {
			n++
			t.held += f.at
			t.idle += f.at - h.clean[rank]
			for i, percent := range percents {
				if (n-1)*100 < percent*len(h.clean) {
					t.back[i] = f.at
				}
			}
		}
	}
	return t
}

// timeline prints a line for each stretch of time in which something went back,
// and the notes between.
func timeline(out io.Writer, n int, partial, whole *history) {
	step := stretch(partial, whole)
	sides := [2]side{{h: partial, text: 26}, {h: whole, text: 16}}
	notes := remarks(step, partial, whole)
	for {
		at := math.Min(sides[0].next(), sides[1].next())
		if len(notes) > 0 && notes[0].at <= at {
			fmt.Fprintf(out, "%8.1f  %s\n", notes[0].at, cut(notes[0].text, width-10))
			notes = notes[1:]
			continue
		}
		if math.IsInf(at, 1) {
			return
		}
		within := func(t float64) bool {
			return math.Floor(t/step) == math.Floor(at/step) && (len(notes) == 0 || t < notes[0].at)
		}
		p, pAt := sides[0].line(n, within)
		w, wAt := sides[1].line(n, within)
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%8.1f  %s  %s", math.Max(pAt, wAt), p, w), " "))
	}
}

// stretch returns the shortest time of which few enough lines come.
func stretch(partial, whole *history) float64 {
	for step := 0.1; ; step *= 10 {
		for _, factor := range []float64{1, 2, 5} {
			lines := map[float64]bool{}
			for _, f := range slices.Concat(partial.fragments, whole.fragments) {
				lines[math.Floor(f.at/(step*factor))] = true
			}
			if len(lines) <= maxRows {
				return step * factor
			}
		}
	}
}

// A remark is a note in words.
type remark struct {
	at   float64
	text string
}

// remarks puts the notes of both modes in order. What both tell is told once,
// and of the same of several nodes in one stretch of time the first time.
func remarks(step float64, partial, whole *history) []remark {
	words := func(h *history) []remark {
		var notes []note
		for _, n := range h.notes {
			i := slices.IndexFunc(notes, func(o note) bool {
				return o.format == n.format && math.Floor(o.at/step) == math.Floor(n.at/step)
			})
			if i < 0 {
				notes = append(notes, n)
			} else {
				notes[i].ranks = idset.Union(notes[i].ranks, n.ranks)
			}
		}
		var list []remark
		for _, n := range notes {
			list = append(list, remark{n.at, strings.Replace(n.format, "%s", nodes(n.ranks), 1)})
		}
		return list
	}
	p, w := words(partial), words(whole)
	var all []remark
	for _, r := range p {
		if !slices.Contains(w, r) {
			r.text = "partial: " + r.text
		}
		all = append(all, r)
	}
	for _, r := range w {
		if !slices.Contains(p, r) {
			all = append(all, remark{r.at, "whole: " + r.text})
		}
	}
	slices.SortStableFunc(all, func(a, b remark) int { return cmp.Compare(a.at, b.at) })
	return all
}

// A side is one of the two halves of the timeline.
type side struct {
	h    *history
	done int // fragments
	back int // nodes
	text int // columns of the last column
}

// next returns when the next fragment goes back.
func (s *side) next() float64 {
	if s.done == len(s.h.fragments) {
		return math.Inf(1)
	}
	return s.h.fragments[s.done].at
}

// line returns what goes back within a stretch of time, and when the last of it
// does.
func (s *side) line(n int, within func(float64) bool) (string, float64) {
	ranks, parts, at, final := new(idset.Set), 0, 0.0, ""
	for within(s.next()) {
		f := s.h.fragments[s.done]
		ranks.UnionWith(f.ranks)
		at = f.at
		if f.final {
			final = " final"
		}
		s.done++
		parts++
	}
	s.back += ranks.Len()
	text := ""
	if parts > 0 {
		text = fmt.Sprintf("%d: ", parts)
		text += cut(ranks.String(), s.text-len(text)-len(final)) + final
	}
	full := barWidth * s.back / n
	return fmt.Sprintf("%s%s %5d  %-*s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), s.back, s.text, text), at
}

// nodes returns how many nodes a set is, and which.
func nodes(ranks *idset.Set) string {
	if ranks.IsEmpty() {
		return "no node"
	}
	return count(ranks.Len(), "node") + " (" + cut(ranks.String(), 20) + ")"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// cut shortens text to n columns.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
