package main

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The made-up instance began 30 days before now. Jobs were submitted from two weeks
// to half a day ago, and took half a day at most.
var (
	now   = time.Date(2026, time.January, 15, 12, 0, 0, 0, time.UTC)
	epoch = now.Add(-30 * 24 * time.Hour)
)

const (
	submitFirst = 14 * 24 * time.Hour // before now
	submitLast  = 12 * time.Hour
)

// Lives of jobs: logs without times. logOf puts SUBMIT, START and END in their place.
const (
	began = `{"timestamp":SUBMIT,"name":"submit","context":{"userid":5588,"urgency":16,"flags":0,"version":1}}
{"timestamp":SUBMIT,"name":"validate"}
{"timestamp":SUBMIT,"name":"depend"}
{"timestamp":SUBMIT,"name":"priority","context":{"priority":16}}
`
	ran = began + `{"timestamp":START,"name":"alloc"}
{"timestamp":START,"name":"start"}
`
	freed = `{"timestamp":END,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":END,"name":"free"}
`
	clean = `{"timestamp":END,"name":"clean"}` + "\n"

	canceled = `{"timestamp":END,"name":"exception","context":{"type":"cancel","severity":0,"note":""}}` + "\n"
	timedOut = `{"timestamp":END,"name":"exception","context":{"type":"timeout","severity":0,"note":""}}` + "\n"
	killed   = `{"timestamp":END,"name":"finish","context":{"status":15}}` + "\n"
	failed   = `{"timestamp":END,"name":"finish","context":{"status":256}}` + "\n"
	complete = `{"timestamp":END,"name":"finish","context":{"status":0}}` + "\n"
)

// draw makes up n jobs that have ended and two that have not, in the order of their
// ids: the log of each. As in life, the first submitted is not the first to end.
func draw(n int, seed uint64) ([]joblife.Record, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	ids, err := jobid.NewGenerator(0, epoch)
	if err != nil {
		return nil, err
	}
	jobs := make([]joblife.Record, n+2)
	for i := range jobs {
		submit := now.Add(time.Duration(i-n-2) * time.Minute)
		life, took := began, time.Duration(0)
		if i < n {
			submit = now.Add(-submitFirst + (submitFirst-submitLast)/time.Duration(n)*time.Duration(i))
			took = min(time.Duration(random.ExpFloat64()*float64(time.Hour)), submitLast).Truncate(time.Millisecond)
			life = drawLife(random.IntN(100))
		}
		jobs[i].Kind = joblife.RecordEvent
		if jobs[i].Job, err = ids.Next(submit); err != nil {
			return nil, err
		}
		jobs[i].Data = logOf(life, submit, took)
	}
	return jobs, nil
}

// drawLife returns the life of a job by a number below 100.
func drawLife(percent int) string {
	switch {
	case percent < 2:
		return began + canceled + clean
	case percent < 4:
		return ran + canceled + killed + freed + clean
	case percent < 9:
		return ran + timedOut + killed + freed + clean
	case percent < 20:
		return ran + failed + freed + clean
	}
	return ran + complete + freed + clean
}

// logOf returns the log of a life.
func logOf(life string, submit time.Time, took time.Duration) []byte {
	at := func(after time.Duration) string { return eventlog.FromTime(submit.Add(after)).String() }
	times := strings.NewReplacer("SUBMIT", at(0), "START", at(min(time.Second, took)), "END", at(took))
	return []byte(times.Replace(life))
}
