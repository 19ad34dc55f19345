package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

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

// A madeUp job is an id and a log.
type madeUp struct {
	id  jobid.ID
	log []byte
}

// Lives of jobs. The number is the seconds since submission, or T for the job's
// whole time.
const (
	began = `0 submit {"userid":5588,"urgency":16,"flags":0,"version":1}
0 validate
0 depend
0 priority {"priority":16}
`
	ran = began + `1 alloc
1 start
`
	ended = `T release {"ranks":"all","final":true}
T free
T clean
`
)

// draw makes up n jobs that have ended and two that have not, in the order of their
// ids. As in life, the first submitted is not the first to end.
func draw(n int, seed uint64) ([]madeUp, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	ids, err := jobid.NewGenerator(0, epoch)
	if err != nil {
		return nil, err
	}
	jobs := make([]madeUp, 0, n+2)
	add := func(submit time.Time, took time.Duration, life string) error {
		id, err := ids.Next(submit)
		if err != nil {
			return err
		}
		log, err := logOf(life, submit, took)
		jobs = append(jobs, madeUp{id, log})
		return err
	}
	for i := range n {
		submit := now.Add(-submitFirst + (submitFirst-submitLast)/time.Duration(n)*time.Duration(i))
		took := min(time.Duration(random.ExpFloat64()*float64(time.Hour)), submitLast).Truncate(time.Millisecond)
		life := ran + finish(0, "") + ended
		switch p := random.IntN(100); {
		case p < 2:
			life = began + exception("cancel") + "T clean\n"
		case p < 4:
			life = ran + finish(15, exception("cancel")) + ended
		case p < 9:
			life = ran + finish(15, exception("timeout")) + ended
		case p < 20:
			life = ran + finish(256, "") + ended
		}
		if err := add(submit, took, life); err != nil {
			return nil, err
		}
	}
	for i, life := range []string{began, ran} {
		if err := add(now.Add(time.Duration(i-5)*time.Minute), 0, life); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

func exception(kind string) string {
	return fmt.Sprintf("T exception {\"type\":%q,\"severity\":0,\"note\":\"\"}\n", kind)
}

func finish(status int, before string) string {
	return fmt.Sprintf("%sT finish {\"status\":%d}\n", before, status)
}

// logOf returns the log of a life.
func logOf(life string, submit time.Time, took time.Duration) (log []byte, err error) {
	for line := range strings.Lines(life) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		at := submit
		switch fields[0] {
		case "1":
			at = submit.Add(min(time.Second, took))
		case "T":
			at = submit.Add(took)
		}
		e := eventlog.Entry{Timestamp: eventlog.FromTime(at), Name: fields[1]}
		if len(fields) > 2 {
			e.Context = []byte(fields[2])
		}
		if log, err = eventlog.AppendEntry(log, e); err != nil {
			return nil, err
		}
	}
	return log, nil
}
