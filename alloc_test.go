package joblife_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/internal/race"
)

// What a lifecycle of ten events allocates. Five are the inputs of the mill, and four the
// jobspec that is read.
func TestALifecycleAllocatesLittle(t *testing.T) {
	race.Skip(t)
	for _, c := range []struct {
		name     string
		volatile bool
		pool     bool
		most     float64
	}{
		{"the Manager alone, with records", false, false, 20},
		{"the Manager alone, without records", true, false, 17},
		{"with the pool", false, true, 28},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newMill(t, joblife.Config{Volatile: c.volatile})
			if !c.pool {
				w.r = node(t, 1)
			}
			for range 200 {
				w.life()
			}
			require.LessOrEqual(t, testing.AllocsPerRun(500, w.life), c.most)
		})
	}
}

// What a job takes in memory.
func TestAJobIsSmall(t *testing.T) {
	race.Skip(t)
	for far, bytes := range map[string]float64{"pending": 1250, "running": 1800, "inactive": 150} {
		require.LessOrEqual(t, weigh(t, far, 4000), bytes, far)
	}
}

// A record is written into memory at hand.
func TestARecordIsWrittenWithoutAllocations(t *testing.T) {
	race.Skip(t)
	list := records(t, 100, true)
	var dst []byte
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
		dst = dst[:0]
		for _, r := range list {
			dst, _ = r.AppendText(dst)
		}
	})/float64(len(list)), 0.1)
}
