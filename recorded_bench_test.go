package joblife_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
)

// BenchmarkRecordedJob reads recorded jobs as a tool does that wants all of them: eventlog,
// jobspec and R. In turn it reads the same texts with encoding/json into maps, which folds
// and checks nothing. times-json is how many times longer that takes.
func BenchmarkRecordedJob(b *testing.B) {
	type texts struct {
		Eventlog   string
		Jobspec, R json.RawMessage
	}
	jobs := refdata.Lines[texts](b, "recorded/mixed.jsonl.gz", 380)
	whole := func(j texts) error {
		if _, err := jobstate.Replay(1, []byte(j.Eventlog)); err != nil {
			return err
		}
		if _, err := jobspec.Parse(j.Jobspec); err != nil || string(j.R) == "null" || len(j.R) == 0 {
			return err
		}
		_, err := rset.Parse(j.R)
		return err
	}
	plain := func(j texts) error {
		var v map[string]any
		for line := range bytes.Lines([]byte(j.Eventlog)) {
			v = nil
			if err := json.Unmarshal(line, &v); err != nil {
				return err
			}
		}
		for _, text := range []json.RawMessage{j.Jobspec, j.R} {
			v = nil
			if err := json.Unmarshal(text, &v); len(text) > 0 && err != nil {
				return err
			}
		}
		return nil
	}
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, read := range []func(texts) error{whole, plain} {
			before := b.Elapsed()
			for _, j := range jobs {
				if err := read(j); err != nil {
					b.Fatal(err)
				}
			}
			best[i] = min(best[i], b.Elapsed()-before)
		}
	}
	b.ReportMetric(float64(len(jobs))/best[0].Seconds(), "jobs/s")
	b.ReportMetric(float64(best[1])/float64(best[0]), "times-json")
}
