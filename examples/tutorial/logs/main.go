package main

import (
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

var (
	jobs  = make(map[string]int)             // by result
	spent = make(map[jobstate.State]float64) // seconds of all jobs
	held  = make(map[string][]float64)       // hours by holder, then by rank
)

func main() {
	file, err := os.Open(os.Args[1])
	check(err)
	a, err := archive.Walk(file, archive.Limits{}, func(j archive.Job) error {
		if err := add(j); err != nil {
			fmt.Println(j.ID, err) // and goes on
		}
		return nil
	})
	for _, failure := range a.Failures {
		fmt.Println(failure)
	}
	check(err)

	total := 0
	for _, result := range slices.Sorted(maps.Keys(jobs)) {
		fmt.Println(jobs[result], result)
		total += jobs[result]
	}
	for _, state := range slices.Sorted(maps.Keys(spent)) {
		fmt.Printf("%v: %v on average\n", state, time.Duration(spent[state]/float64(total)*1e9).Round(time.Second))
	}
	for _, holder := range slices.Sorted(maps.Keys(held)) {
		most := slices.Max(held[holder])
		fmt.Printf("%-26s at most %.1f h, on rank %d\n", holder, most, slices.Index(held[holder], most))
	}
}

// add adds a job.
func add(j archive.Job) error {
	var r *rset.R
	if j.R != nil {
		var err error
		if r, err = rset.Parse(j.R); err != nil {
			return err
		}
	}
	holds := perilog.NewHolds(j.ID, r)
	job := holds.Job()
	for e, err := range eventlog.Entries(j.Eventlog) {
		if err != nil {
			return err
		}
		for h := range holds.Holders() {
			name := h.Kind.String() + " " + h.Description
			for rank := range h.Ranks.All() {
				for len(held[name]) <= int(rank) {
					held[name] = append(held[name], 0)
				}
				held[name][rank] += max(0, e.Timestamp.Time().Sub(job.Last().Time()).Hours())
			}
		}
		if _, err := holds.Apply(e); err != nil {
			return err
		}
	}
	for _, state := range []jobstate.State{jobstate.StateDepend, jobstate.StateSched, jobstate.StateRun, jobstate.StateCleanup} {
		spent[state] += job.Spent(state, job.Last()).Seconds()
	}
	result, _ := job.Result()
	text := result.String()
	if code, ok := job.ExitCode(); ok && code > 0 {
		text += fmt.Sprintf(", exit code %d", code)
	}
	if cause, ok := job.Cause(); ok {
		text += ", " + cause.Type
	}
	jobs[text]++
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
