package perilog_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// drain is a job of n ranks whose epilog ends rank by rank, in an order that
// leaves holes everywhere.
type drain struct {
	r       *rset.R
	begin   []eventlog.Entry
	release []eventlog.Entry
	let     []eventlog.Entry // the executor's releases, rank by rank
}

func newDrain(t testing.TB, n int) *drain {
	d := &drain{r: holdsR(t, n)}
	for i, e := range []eventlog.Entry{
		{Name: "alloc"}, {Name: "start"}, {Name: "finish", Context: []byte(`{"status":0}`)},
		{Name: "epilog-start", Context: []byte(`{"description":"job-manager.epilog"}`)},
	} {
		e.Timestamp = eventlog.Timestamp(i + 1)
		d.begin = append(d.begin, e)
	}
	for i := range n {
		rank := strconv.Itoa(i * 7919 % n) // a prime: each rank once
		d.release = append(d.release, eventlog.Entry{
			Timestamp: eventlog.Timestamp(i + 10), Name: perilog.EventEpilogRelease,
			Context: []byte(`{"description":"job-manager.epilog","ranks":"` + rank + `","status":0}`),
		})
		d.let = append(d.let, eventlog.Entry{
			Timestamp: eventlog.Timestamp(i + 10), Name: "release", Context: []byte(`{"ranks":"` + rank + `","final":false}`),
		})
	}
	return d
}

// holds returns the Holds after the beginning.
func (d *drain) holds(t testing.TB) *perilog.Holds {
	h := perilog.NewHolds(d.r, perilog.HoldsOptions{})
	for _, e := range d.begin {
		apply(t, h, e)
	}
	return h
}

func apply(t testing.TB, h *perilog.Holds, e eventlog.Entry) {
	if _, err := h.Apply(e); err != nil {
		t.Fatal(err)
	}
}

var drainSizes = []int{16, 1024, 16384}

func BenchmarkEpilogRelease(b *testing.B) {
	for _, n := range drainSizes {
		d := newDrain(b, n)
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			h, i := d.holds(b), 0
			for b.Loop() {
				if i == n {
					b.StopTimer()
					h, i = d.holds(b), 0
					b.StartTimer()
				}
				apply(b, h, d.release[i])
				i++
			}
		})
	}
}

// BenchmarkRelease is the executor's half, after which each rank leaves.
func BenchmarkRelease(b *testing.B) {
	for _, n := range drainSizes {
		d := newDrain(b, n)
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			h, i := d.holds(b), n
			for b.Loop() {
				if i == n {
					b.StopTimer()
					h, i = d.holds(b), 0
					for _, e := range d.release {
						apply(b, h, e)
					}
					b.StartTimer()
				}
				apply(b, h, d.let[i])
				i++
			}
		})
	}
}

// BenchmarkFeed is an epilog-release and the feed after it.
func BenchmarkFeed(b *testing.B) {
	for _, n := range drainSizes {
		d := newDrain(b, n)
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			h, l, i := d.holds(b), rset.NewLedger(d.r), n
			for b.Loop() {
				if i == n {
					b.StopTimer()
					h, l, i = d.holds(b), rset.NewLedger(d.r), 0
					apply(b, h, eventlog.Entry{Timestamp: 9, Name: "release", Context: []byte(`{"ranks":"all","final":true}`)})
					h.Feed(l)
					b.StartTimer()
				}
				apply(b, h, d.release[i])
				if f := h.Feed(l); f.R.Len() != 1 {
					b.Fatal(f.R)
				}
				i++
			}
		})
	}
}

// Every rank of a job ends by itself, whatever the size of the job: amortised,
// nothing is allocated.
func TestEndingRankByRankAllocatesNothing(t *testing.T) {
	if perilog.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, n := range drainSizes {
		d := newDrain(t, n)
		h, i := d.holds(t), 0
		perEvent := func(events []eventlog.Entry) float64 {
			i = 0
			return testing.AllocsPerRun(len(events)-1, func() { // it calls once more, to warm up
				apply(t, h, events[i])
				i++
			})
		}
		require.Zero(t, perEvent(d.release), "epilog-release of each of %d", n)
		require.Zero(t, perEvent(d.let), "release of each of %d", n)
		require.Equal(t, n, h.Ready(nil).Len())
	}
}

func TestEventsThatChangeNothingAllocateNothing(t *testing.T) {
	if perilog.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	d := newDrain(t, 1024)
	h := d.holds(t)
	apply(t, h, d.release[5])
	for name, e := range map[string]eventlog.Entry{
		"a duplicate":            d.release[5],
		"an event of others":     {Name: "debug.x", Context: []byte(`{"a":1}`)},
		"a stranger's end":       {Name: "epilog-finish", Context: []byte(`{"description":"x","status":0}`)},
		"ranges that were there": {Name: "release", Context: []byte(`{"ranks":"","final":false}`)},
	} {
		at := eventlog.Timestamp(5000)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if name != "a duplicate" {
				at++
				e.Timestamp = at
			}
			apply(t, h, e)
		}), name)
	}
}
