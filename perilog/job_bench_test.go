package perilog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// quiet is an embedder that checks nothing.
type quiet struct {
	job    *perilog.Job
	ledger *rset.Ledger
}

func newQuiet(tb testing.TB, ranks int, r *rset.R) *quiet {
	tb.Helper()
	job, err := perilog.NewJob(perRank(), perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, R: r}})
	require.NoError(tb, err)
	q := &quiet{job: job, ledger: rset.NewLedger(r)}
	q.log(tb, "alloc", "")
	return q
}

func (q *quiet) log(tb testing.TB, name, context string) {
	e := eventlog.Entry{Timestamp: 1, Name: name}
	if context != "" {
		e.Context = []byte(context)
	}
	if _, err := q.job.Apply(1, e); err != nil {
		tb.Fatal(err)
	}
	q.pump(tb)
}

func (q *quiet) pump(tb testing.TB) {
	for {
		effects := q.job.Take()
		for _, e := range effects.Post {
			if _, err := q.job.Apply(1, e); err != nil {
				tb.Fatal(err)
			}
		}
		if len(effects.Post) == 0 {
			return
		}
	}
}

func (q *quiet) exit(tb testing.TB, key perilog.Key, rank int) {
	if a := q.job.Report(1, key, perilog.Report{Kind: perilog.ReportExited, Rank: uint32(rank)}); a != perilog.AnswerApplied {
		tb.Fatal(a)
	}
	q.pump(tb)
}

// BenchmarkJob is a report of a rank, all that follows from it, and the fragment
// of an epilog: ns/rank should not depend on how many there are.
func BenchmarkJob(b *testing.B) {
	for _, n := range []int{16, 1024, 16384} {
		r := hostsR(b, n)
		b.Run(fmt.Sprintf("prolog/ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := newQuiet(b, n, r)
				for i := range n {
					q.exit(b, prologKey, i*7919%n)
				}
				if !q.job.MayStart() {
					b.Fatal("it may not start")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
		})
		b.Run(fmt.Sprintf("epilog/ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := newQuiet(b, n, r)
				for i := range n {
					q.exit(b, prologKey, i)
				}
				q.log(b, "start", "")
				q.log(b, "finish", `{"status":0}`)
				q.log(b, "release", `{"ranks":"all","final":true}`)
				for i := range n {
					q.exit(b, epilogKey, i*7919%n)
					if f := q.job.Feed(q.ledger); f.R.Len() != 1 || f.Final != (i == n-1) {
						b.Fatal("not one rank, or not final")
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rank")
		})
	}
}

// A report of a prolog that ends well on one of many ranks allocates nothing.
func TestReportsToAJobDoNotAllocate(t *testing.T) {
	if perilog.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	const n = 4096
	q := newQuiet(t, n, hostsR(t, n))
	rank := 0
	allocs := testing.AllocsPerRun(n-100, func() {
		q.exit(t, prologKey, rank)
		rank++
	})
	require.Zero(t, allocs)
}
