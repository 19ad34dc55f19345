package main

import (
	"io"
	"math/rand/v2"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// The made-up instance began 30 days before now. Jobs were submitted from two
// weeks to half a day ago; what runs at most half a day has ended by now.
var (
	now   = time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC)
	epoch = now.Add(-30 * 24 * time.Hour)
)

const (
	submitFirst = 14 * 24 * time.Hour // before now
	submitLast  = 12 * time.Hour
)

// The jobs that have not ended: the state in which each is, and how many events
// of life it has behind it.
var activeStates = [...]struct {
	name   string
	events int
}{{"DEPEND", 2}, {"SCHED", 4}, {"RUN", 6}, {"CLEANUP", 7}}

// draw makes up inactive jobs, in the order of their ids, and some active ones.
// As in life, who was submitted first is not the first to end.
func draw(n int, seed uint64, stderr io.Writer) ([]purge.Job, map[jobid.ID]string, error) {
	bar := newProgress(stderr, "making up", n)
	defer bar.done()
	random := rand.New(rand.NewPCG(seed, 0))
	generator, err := jobid.NewGenerator(0, epoch)
	if err != nil {
		return nil, nil, err
	}
	jobs := make([]purge.Job, n)
	for i := range jobs {
		submit := now.Add(-submitFirst + time.Duration(float64(submitFirst-submitLast)*float64(i)/float64(n)))
		if jobs[i], err = drawJob(generator, submit, random); err != nil {
			return nil, nil, err
		}
		bar.show(i)
	}
	active := make(map[jobid.ID]string, len(activeStates))
	for i, state := range activeStates {
		id, err := generator.Next(now.Add(time.Duration(i-len(activeStates)) * time.Minute))
		if err != nil {
			return nil, nil, err
		}
		active[id] = state.name
	}
	return jobs, active, nil
}

// drawJob makes up one job. Two in a hundred are canceled before they start.
func drawJob(generator *jobid.Generator, submit time.Time, random *rand.Rand) (purge.Job, error) {
	id, err := generator.Next(submit)
	took := time.Duration(random.ExpFloat64() * float64(time.Hour)) // waiting and running
	j := purge.Job{ID: id, Result: purge.Completed, Ran: true}
	switch p := random.IntN(100); {
	case p < 2:
		j.Result, j.Ran = purge.Canceled, false
	case p < 4:
		j.Result = purge.Canceled
	case p < 9:
		j.Result = purge.Timeout
	case p < 20:
		j.Result = purge.Failed
	}
	j.Inactive = eventlog.FromTime(submit.Add(min(took, submitLast)).Truncate(time.Millisecond))
	return j, err
}
