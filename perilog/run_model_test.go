package perilog

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
)

// chooser returns a number from 0 to n-1.
type chooser func(n int) int

// set chooses a subset of 0 to n-1, each rank with even chances.
func (c chooser) set(n int) *idset.Set {
	s := new(idset.Set)
	for rank := range uint32(n) {
		if c(2) == 0 {
			s.Insert(rank)
		}
	}
	return s
}

// spec chooses a spec of at most 8 ranks, which may have gaps.
func (c chooser) spec() Spec {
	s := Spec{
		Kind: RunKind(1 + c(3)), Job: jobid.ID(c(100)), Ranks: c.set(8), Command: []string{"x", "y"},
		PerRank: c(3) > 0, Leader: uint32(c(9)), Kill: c(2) == 0, Cancel: CancelPolicy(c(3)),
		Timeout:     []fsd.Duration{0, 50, 50, 1e-9, fsd.Infinity()}[c(5)],
		KillTimeout: []fsd.Duration{0, 5, 5, 1e-9}[c(4)],
	}
	s.Ranks.Insert(uint32(c(8)))
	if c(3) == 0 {
		s.Offline = idset.Intersect(c.set(9), c.set(9))
	}
	if c(2) == 0 {
		s.Tolerate = Tolerate{Count: c(4), Fraction: float64(c(5)) / 4, Ranks: c.set(8), Drop: c(2) == 0}
	}
	return s
}

// input chooses an input for a run whose deadline and time are given.
func (c chooser) input(now, deadline float64) runInput {
	in := runInput{now: now + []float64{0, 0, 0, 1, 7, 30, -20, -1e9, math.NaN(), math.Inf(1)}[c(10)]}
	switch c(16) {
	case 0, 1:
		in.op = "start"
	case 2:
		in.op, in.since = "reattach", now+[]float64{0, -10, -100, 5, math.NaN()}[c(5)]
	case 3:
		in.op, in.severity = "exception", uint8(c(3))
	case 4:
		in.op = "cancel"
	case 5:
		in.op = "force"
		if c(3) > 0 {
			in.ranks = idset.Of(uint32(c(9)), uint32(c(9)))
		}
	case 6, 7:
		in.op = "tick"
		if deadline != 0 && c(2) == 0 {
			in.now = deadline
		}
	default:
		in.op = "report"
		in.report = Report{
			Rank: uint32(c(9)), Kind: ReportKind(c(7)), Detail: []string{"", "why"}[c(2)],
			Status: []int32{0, 0, 0, 256, 15, 9, 143 << 8, 255 << 8, 0x7f, -1, 1 << 16, 0x80, math.MinInt32}[c(13)],
			Line: []byte([]string{`perilog-control:{"version":1}`, `perilog-control:{"version":1,"failed":"1-3"}`,
				`perilog-control:{"version":1,"failed":"9"}`, "perilog-control:", "hello"}[c(5)]),
		}
		if in.report.Kind != ReportOutput {
			in.report.Line = nil
		}
	}
	return in
}

// driveRun drives a run and its model, and a second run that gets the same
// inputs, through as many inputs as more allows.
func driveRun(t require.TestingT, c chooser, more func() bool) {
	spec := c.spec()
	run, err := NewRun(spec)
	require.NoError(t, err)
	twin, err := NewRun(spec)
	require.NoError(t, err)
	n := newNaiveRun(run.Spec())
	watch := &watch{ended: map[uint32]bool{}, drained: map[uint32]bool{}}
	n.now = 1000
	for more() {
		in := c.input(n.now, n.deadline)
		want := n.apply(in)
		require.Equal(t, want, in.apply(run), in.String())
		require.Equal(t, want, in.apply(twin), in.String())
		n.compare(t, run)
		require.Equal(t, run.String(), twin.String())
		watch.look(t, run, in)
		if c(3) > 0 {
			watch.requests(t, run.requests)
			n.fetch(t, run)
			twin.Requests()
			twin.AppendEnded(nil)
			require.Equal(t, run.String(), twin.String())
		}
	}
	// Nothing can keep a run from its end.
	if run.State() == RunReady {
		return
	}
	for range 3 {
		if run.Done() {
			break
		}
		deadline, ok := run.Deadline()
		if !ok {
			run.Cancel(0)
			continue
		}
		require.True(t, run.Tick(deadline))
	}
	require.True(t, run.Done())
}

// watch sees what comes out of a run, and knows nothing of how it works.
type watch struct {
	ended   map[uint32]bool
	drained map[uint32]bool
	raised  int
	launch  int
}

// look checks what must hold after every input.
func (w *watch) look(t require.TestingT, r *Run, in runInput) {
	ended := 0
	for rank := range r.Spec().Ranks.All() {
		switch is := r.EndOf(rank).Cause != 0; {
		case w.ended[rank]:
			require.True(t, is, "rank %d ended and has not", rank)
		case is:
			w.ended[rank] = true
		}
		if w.ended[rank] {
			ended++
			require.False(t, r.spec.PerRank && r.Active().Contains(rank), "rank %d ended and is active", rank)
		}
	}
	require.Equal(t, ended == r.Spec().Ranks.Len(), r.Done(), "done is when every rank has ended")
	if at, ok := r.Deadline(); ok && in.op == "tick" {
		require.Greater(t, at, r.now, "after a tick the next deadline is later")
	}
}

// requests checks what was asked for since the last time.
func (w *watch) requests(t require.TestingT, requests []Request) {
	for _, q := range requests {
		if q.Kind == RequestRaise {
			w.raised++
			require.Equal(t, 1, w.raised)
			continue
		}
		require.False(t, q.Ranks.IsEmpty(), "%s of no rank", q.Kind)
		switch q.Kind {
		case RequestLaunch:
			w.launch++
			require.Equal(t, 1, w.launch)
		case RequestDrain:
			for rank := range q.Ranks.All() {
				require.False(t, w.drained[rank], "rank %d drained twice", rank)
				w.drained[rank] = true
			}
		case RequestSignal:
			require.Contains(t, []int{15, 9}, q.Signal)
		}
	}
}

func TestARunIsWhatAMapOfRanksWouldBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, more := chooserOf(rapid.SliceOfN(rapid.Byte(), 40, 600).Draw(t, "choices"))
		driveRun(t, c, more)
	})
}

// chooserOf returns a chooser that takes a byte for each choice, and whether
// there are bytes left.
func chooserOf(data []byte) (chooser, func() bool) {
	c := func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b) % n
	}
	return c, func() bool { return len(data) > 0 }
}

// FuzzRun drives a run by bytes, against the model.
func FuzzRun(f *testing.F) {
	f.Add([]byte{0, 255, 255, 1, 2, 3})
	f.Add(bytes.Repeat([]byte{0, 1}, 100))
	f.Add([]byte("some text that chooses among ranks, reports, times"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, more := chooserOf(data[:min(len(data), 1<<10)])
		driveRun(t, c, more)
	})
}
