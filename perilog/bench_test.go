package perilog_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// BenchmarkFoldRatio measures what Holds adds to the fold of recorded logs: the
// time of both folds, beside that of jobstate's alone, sides alternating. It is to be
// at most 1.3.
func BenchmarkFoldRatio(b *testing.B) {
	jobs := refdata.Lines[holdsRecording](b, "recorded/brokers.jsonl.gz", 33)
	r := allocation(b, 4)
	var alone, both time.Duration
	events := 0
	fold := func(apply func(eventlog.Entry) error, log []byte) time.Duration {
		begin := b.Elapsed()
		for e, err := range eventlog.Entries(log) {
			if err == nil {
				err = apply(e)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		return b.Elapsed() - begin
	}
	logs := make([][]byte, len(jobs))
	for i, job := range jobs {
		logs[i] = []byte(job.Eventlog)
		events += bytes.Count(logs[i], []byte("\n"))
	}
	for b.Loop() {
		for _, log := range logs {
			j := jobstate.NewJob(1)
			alone += fold(func(e eventlog.Entry) error {
				_, err := j.Apply(e)
				return err
			}, log)
			h := perilog.NewHolds(1, r)
			both += fold(func(e eventlog.Entry) error {
				_, err := h.Apply(e)
				return err
			}, log)
		}
	}
	b.ReportMetric(float64(both)/float64(alone), "times-jobstate")
	b.ReportMetric(float64(events), "events/op")
}
