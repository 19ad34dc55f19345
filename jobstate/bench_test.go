package jobstate_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// benchLogs returns the logs of the committed recordings.
func benchLogs(b *testing.B) (logs [][]byte, size, events int) {
	for _, r := range committed(b) {
		logs = append(logs, []byte(r.Eventlog))
		size += len(r.Eventlog)
		events += bytes.Count([]byte(r.Eventlog), []byte("\n"))
	}
	return logs, size, events
}

// BenchmarkReplay decodes and folds recorded logs, and in turn does the same as
// one writes it with encoding/json and maps. times-json is how many times
// longer that takes, best of each against best of each in one run, for the
// machine is noisy.
func BenchmarkReplay(b *testing.B) {
	logs, size, events := benchLogs(b)
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		for i, replay := range []func([]byte){
			func(log []byte) {
				if _, err := jobstate.Replay(1, log); err != nil {
					b.Fatal(err)
				}
			},
			func(log []byte) {
				n := newNaive()
				for line := range bytes.Lines(log) {
					n.step(line)
				}
			},
		} {
			before := b.Elapsed()
			for _, log := range logs {
				replay(log)
			}
			best[i] = min(best[i], b.Elapsed()-before)
		}
	}
	seconds := best[0].Seconds()
	b.ReportMetric(float64(best[1])/float64(best[0]), "times-json")
	b.ReportMetric(float64(events)/seconds, "events/s")
	b.ReportMetric(float64(size)/1e6/seconds, "joblife-MB/s")
}

// BenchmarkMemory keeps n replayed inactive jobs and reports the bytes of each, and how
// fast they come, the collector's work included.
func BenchmarkMemory(b *testing.B) {
	log := keptLog()
	events := bytes.Count(log, []byte("\n"))
	for _, n := range []int{1, 64, 4096, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var replays time.Duration
			for b.Loop() {
				before := heap()
				start := b.Elapsed()
				jobs := make([]*jobstate.Job, n)
				for i := range jobs {
					var err error
					if jobs[i], err = jobstate.Replay(jobid.ID(i), log); err != nil {
						b.Fatal(err)
					}
				}
				replays += b.Elapsed() - start
				b.ReportMetric(float64(heap()-before)/float64(n), "B/job")
				runtime.KeepAlive(jobs)
			}
			b.ReportMetric(float64(n*events*b.N)/replays.Seconds(), "events/s")
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
