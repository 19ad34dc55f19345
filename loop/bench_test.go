package loop_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A mill runs jobs, each on a node of its own, as fast as it goes.
type mill struct {
	m     *joblife.Manager
	put   func(...joblife.Input) error
	nodes []*rset.R
	takes time.Duration // of each Append
	text  []byte
	over  int
}

const millNodes = 1024

func newMill(tb testing.TB) *mill {
	w := new(mill)
	for i := range millNodes {
		r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"` + strconv.Itoa(i) + `","children":{"core":"0-3"}}]}}`))
		require.NoError(tb, err)
		w.nodes = append(w.nodes, r)
	}
	var err error
	w.m, err = joblife.New(joblife.Config{})
	require.NoError(tb, err)
	return w
}

func (w *mill) Append(records []joblife.Record) (err error) {
	if w.takes > 0 {
		<-time.After(w.takes)
	}
	w.text, err = joblife.AppendRecords(w.text[:0], records)
	return err
}

func (*mill) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }

func (w *mill) act(_ *joblife.Manager, rd *joblife.Ready) {
	for _, msg := range rd.Sched {
		if msg, ok := msg.(alloc.Request); ok {
			_ = w.put(joblife.SchedResponse{ID: msg.ID, R: w.nodes[msg.ID%millNodes]})
		}
	}
	for _, msg := range rd.Exec {
		if msg, ok := msg.(exec.Start); ok {
			_ = w.put(joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseStart},
				joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseFinish},
				joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseRelease, Final: true})
		}
	}
	for _, e := range rd.Journal {
		if e.Entry.Name == "clean" {
			w.over++
		}
	}
}

func (w *mill) loop(tb testing.TB) *loop.Loop {
	l, err := loop.New(w.m, loop.Config{
		Store: w, Effects: w.act,
		Refused: func(in joblife.Input, err error) { tb.Errorf("%T: %v", in, err) },
	})
	require.NoError(tb, err)
	w.put = l.Put
	require.NoError(tb, l.Put(hello...))
	return l
}

// BenchmarkLife runs jobs from submit to clean, batch jobs at a time: in the loop of
// package joblife's documentation, by Advance, and by Run.
func BenchmarkLife(b *testing.B) {
	for _, batch := range []int{1, 64} {
		name := "/batch=" + strconv.Itoa(batch)
		b.Run("bare"+name, func(b *testing.B) {
			w := newMill(b)
			var queue []joblife.Input
			w.put = func(in ...joblife.Input) error {
				queue = append(queue, in...)
				return nil
			}
			var rd joblife.Ready
			run := func() {
				for len(queue) > 0 {
					for i := 0; i < len(queue); i++ {
						require.NoError(b, w.m.Step(start, queue[i]))
					}
					clear(queue)
					queue = queue[:0]
					for w.m.Ready(&rd) {
						_ = w.Append(rd.Append)
						w.act(w.m, &rd)
						_ = w.m.Done(rd.Seq)
					}
				}
			}
			_ = w.put(hello...)
			life(b, w, batch, run)
		})
		b.Run("advance"+name, func(b *testing.B) {
			w := newMill(b)
			l := w.loop(b)
			life(b, w, batch, func() { _ = l.Advance(start) })
		})
		b.Run("run"+name, func(b *testing.B) {
			w := newMill(b)
			l := w.loop(b)
			go func() { _ = l.Run(b.Context()) }()
			life(b, w, batch, func() {
				_, _ = l.Call(b.Context(), joblife.WaitEmpty{States: jobstate.StateNew | jobstate.StateActive})
			})
		})
	}
}

func life(b *testing.B, w *mill, batch int, run func()) {
	run()
	b.ReportAllocs()
	id := jobid.ID(0)
	for b.Loop() {
		for range batch {
			id++
			if err := w.put(submit(id)); err != nil {
				b.Fatal(err)
			}
		}
		run()
	}
	require.Equal(b, int(id), w.over)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(id), "ns/job")
}

// BenchmarkGroupCommit has callers submit jobs, each when its last one is durable, with a
// store that takes a millisecond.
func BenchmarkGroupCommit(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			w := newMill(b)
			w.takes = time.Millisecond
			l := w.loop(b)
			go func() { _ = l.Run(b.Context()) }()
			b.ReportAllocs()
			var all sync.WaitGroup
			for c := range callers {
				all.Go(func() {
					for i := c; i < b.N; i += callers {
						if _, err := l.Call(b.Context(), submit(jobid.ID(i+1))); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			s := l.Stats()
			b.ReportMetric(float64(s.Inputs)/float64(s.Commits), "inputs/commit")
			b.ReportMetric(100*s.Storing.Seconds()/b.Elapsed().Seconds(), "%storing")
		})
	}
}

// What a Put takes beside its input, and a Call beside its answer.
func TestAllocations(t *testing.T) {
	race.Skip(t)
	w := newMill(t)
	l := w.loop(t)
	require.NoError(t, l.Advance(start))
	tick := joblife.Input(joblife.Tick{})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_ = l.Put(tick, tick)
		_ = l.Advance(start)
	}))
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _ = l.Put(tick, tick, tick) }), 1.0, "the inbox grows")

	l = newMill(t).loop(t)
	go func() { _ = l.Run(t.Context()) }()
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _, _ = l.Call(t.Context(), tick) }), 2.0)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		_ = l.View(t.Context(), func(*joblife.Manager) {})
	}), 4.0)
}
