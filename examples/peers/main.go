// Command peers compares joblife with what a Go user would pick instead, and
// prints a Markdown table. All sides of a task do the same work in turn in one
// process; the best time of each counts. Before that, all must give the same
// answer: a side that does not is an error, and there is no table.
//
// It is a module of its own, so that joblife does not depend on its peers. Run it
// in its folder: go run .
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"
)

// A task is work that each side does in its way, joblife first.
type task struct {
	name  string
	sides []side
}

// A side does the work once per call of run. What run returns is its answer, which
// show makes comparable outside the time that is measured; nil prints it.
type side struct {
	name string
	run  func() any
	show func(any) string
}

// us is joblife's name as a side.
const us = "joblife"

func main() {
	each := flag.Duration("t", time.Second, "how long to measure each side of each task")
	flag.Parse()
	if err := compare(os.Stdout, tasks(1), *each); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// tasks returns all tasks; scale divides their sizes.
func tasks(scale int) []task {
	return slices.Concat(jsonTasks(scale), setTasks(scale), jobTasks(scale))
}

// compare checks all tasks, then measures one after the other and prints the table.
func compare(w io.Writer, all []task, each time.Duration) error {
	for _, t := range all {
		if err := t.check(); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(w)
	row := func(cells ...any) { fmt.Fprintf(out, "| %-34s | %-7s | %-13s | %-15s |\n", cells...) }
	row("task", us, "peer", us+" is")
	row("---", "---", "---", "---")
	for _, t := range all {
		best := t.measure(each)
		name, took := t.name, short(best[0])
		for k, s := range t.sides[1:] {
			row(name, took, s.name, verdict(best[0], best[k+1]))
			name, took = "", ""
		}
		_ = out.Flush() // it says so at the end
	}
	fmt.Fprintf(out, notes, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return out.Flush()
}

const notes = `
%s, %s/%s; the best time of each, in turn in one process. joblife
checks RFC 18 and RFC 25, duplicate keys and UTF-8 included, and can update a
jobspec; json/v2 is the peer that checks most. The state machine knows a state;
joblife knows what a listing shows of a job. btree has a map beside it.
`

// check returns an error unless all sides give one answer.
func (t *task) check() error {
	var want string
	for i, s := range t.sides {
		answer := s.run()
		got := fmt.Sprint(answer)
		if s.show != nil {
			got = s.show(answer)
		}
		switch {
		case i == 0:
			want = got
		case got != want:
			return fmt.Errorf("%s: %s answers %.100q, %s %.100q", t.name, us, want, s.name, got)
		}
	}
	return nil
}

// shortest is how long one measurement takes at least, in calls of run.
const shortest = 2 * time.Millisecond

// measure returns the best time of each side.
func (t *task) measure(each time.Duration) []time.Duration {
	best := make([]time.Duration, len(t.sides))
	calls := make([]int, len(t.sides))
	for i, s := range t.sides {
		start := time.Now()
		s.run()
		calls[i] = int(shortest/max(time.Since(start), 1)) + 1
	}
	for start := time.Now(); best[0] == 0 || time.Since(start) < each*time.Duration(len(t.sides)); {
		for i, s := range t.sides {
			runtime.GC() // nobody pays for the garbage of another
			start := time.Now()
			for range calls[i] {
				s.run()
			}
			took := max(time.Since(start)/time.Duration(calls[i]), 1)
			if best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	return best
}

// verdict says how joblife's time compares with a peer's.
func verdict(us, peer time.Duration) string {
	switch r := float64(peer) / float64(us); {
	case r >= 1.05:
		return times(r) + "x faster"
	case r <= 1/1.05:
		return "**" + times(1/r) + "x slower**"
	default:
		return "as fast"
	}
}

// times prints a ratio in two digits.
func times(r float64) string {
	if r < 10 {
		return fmt.Sprintf("%.1f", r)
	}
	return fmt.Sprintf("%.0f", r)
}

// short prints a duration in three digits.
func short(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}
