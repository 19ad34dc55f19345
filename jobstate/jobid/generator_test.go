package jobid_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/jobstate/jobid"
)

func TestTheIDZeroIsNeverMade(t *testing.T) {
	g := newGenerator(t, 0)
	require.Zero(t, g.Last())
	id, err := g.Next(at(0))
	require.NoError(t, err)
	require.Equal(t, jobid.ID(1), id)

	g = newGenerator(t, 1)
	id, err = g.Next(at(0))
	require.NoError(t, err)
	require.Equal(t, jobid.ID(1024), id)
}

func TestAClockThatGoesBackIsRefusedAndForgiven(t *testing.T) {
	g := newGenerator(t, 1)
	_, err := g.Next(epoch.Add(-time.Nanosecond))
	require.ErrorIs(t, err, jobid.ErrClock)
	require.Zero(t, g.Last())

	first, err := g.Next(at(100))
	require.NoError(t, err)
	for _, now := range []time.Time{at(99), at(100).Add(-time.Nanosecond), at(0), at(-5), {}, time.Unix(math.MinInt64/2, 0)} {
		id, err := g.Next(now)
		require.ErrorIs(t, err, jobid.ErrClock, "%v", now)
		require.Zero(t, id)
		require.Equal(t, first, g.Last())
	}
	_, err = g.Next(at(-5))
	require.EqualError(t, err, "jobid: clock went back: generator 1 at -5 ms, its last id is of 100 ms")

	id, err := g.Next(at(100))
	require.NoError(t, err)
	require.Equal(t, first+1, id)
}

func TestTheZeroGeneratorAndABadEpochAreRefused(t *testing.T) {
	var g jobid.Generator
	_, err := g.Next(at(0))
	require.ErrorContains(t, err, outOfRange)

	made, err := jobid.NewGenerator(1, time.Time{})
	require.EqualError(t, err, "jobid: out of range: zero epoch")
	require.ErrorContains(t, err, outOfRange)
	require.Nil(t, made)
	made, err = jobid.NewGenerator(math.MaxUint16, epoch)
	require.EqualError(t, err, "jobid: out of range: generator 65535, at most 16383")
	require.Nil(t, made)
}

func TestI9AfterARestartEveryIDIsGreaterThanTheWatermark(t *testing.T) {
	const ms = 50
	id := func(ms, gen, seq uint64) jobid.ID { return jobid.ID(ms<<24 | gen<<10 | seq) }
	for _, tt := range []struct {
		name      string
		watermark jobid.ID
		want      jobid.ID // of generator 7 at 50 ms; 0: refused with err
		err       error
	}{
		{"none", 0, id(50, 7, 0), nil},
		{"an earlier millisecond", id(49, 16383, 1023), id(50, 7, 0), nil},
		{"this millisecond, our own", id(50, 7, 41), id(50, 7, 42), nil},
		{"this millisecond, our last but one", id(50, 7, 1022), id(50, 7, 1023), nil},
		{"this millisecond, our last", id(50, 7, 1023), 0, jobid.ErrExhausted},
		{"this millisecond, a lower generator", id(50, 6, 1023), id(50, 7, 0), nil},
		{"this millisecond, a higher generator", id(50, 8, 0), 0, jobid.ErrExhausted},
		{"a later millisecond", id(51, 0, 0), 0, jobid.ErrClock},
		{"the end of time", math.MaxUint64, 0, jobid.ErrClock},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGenerator(t, 7)
			g.After(tt.watermark)
			require.Equal(t, tt.watermark, g.Last())
			got, err := g.Next(at(ms))
			require.Equal(t, tt.want, got)
			if tt.err != nil {
				require.ErrorIs(t, err, tt.err)
				require.Equal(t, tt.watermark, g.Last())
				return
			}
			require.NoError(t, err)
			require.Greater(t, got, tt.watermark)
		})
	}
}

func TestI9ALesserWatermarkDoesNotBringIDsBack(t *testing.T) {
	g := newGenerator(t, 7)
	first, err := g.Next(at(50))
	require.NoError(t, err)
	g.After(0)
	g.After(first - 1)
	second, err := g.Next(at(50))
	require.NoError(t, err)
	require.Equal(t, first+1, second)
}

// Generators that share a watermark, as after a restart of an instance, against
// the set of all ids ever made.
func TestGeneratorsAgreeWithASetOfAllIDsMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const generators = 4
		made := map[jobid.ID]bool{0: true}
		var gens [generators]*jobid.Generator
		var last [generators]jobid.ID // what the model expects Last to be
		var now int64
		start := func(i int) {
			g, err := jobid.NewGenerator(uint16(i)*5461, epoch)
			require.NoError(t, err)
			gens[i], last[i] = g, 0
		}
		for i := range gens {
			start(i)
		}
		next := func(i int, ms int64) {
			room := func() bool { // is an id left above last[i] in ms?
				return jobid.ID(uint64(ms)<<24|uint64(i)*5461<<10|1023) > last[i]
			}
			id, err := gens[i].Next(at(ms))
			switch {
			case ms < 0 || uint64(ms) < last[i].Timestamp():
				require.ErrorIs(t, err, jobid.ErrClock)
			case !room():
				require.ErrorIs(t, err, jobid.ErrExhausted)
			default:
				if err != nil || made[id] || id <= last[i] || id.Timestamp() != uint64(ms) || id.Generator() != uint16(i)*5461 {
					t.Fatalf("%v, %v after %v", id, err, last[i])
				}
				made[id], last[i] = true, id
			}
		}
		which := rapid.IntRange(0, generators-1)
		t.Repeat(map[string]func(*rapid.T){
			"one":   func(t *rapid.T) { next(which.Draw(t, "generator"), now) },
			"tick":  func(t *rapid.T) { now += int64(rapid.IntRange(1, 3).Draw(t, "ms")) },
			"burst": func(t *rapid.T) { burst(t, next, which.Draw(t, "generator"), now) },
			"back":  func(t *rapid.T) { next(which.Draw(t, "generator"), now-rapid.Int64Range(1, 9).Draw(t, "ms")) },
			"restart one with its watermark": func(t *rapid.T) {
				i := which.Draw(t, "generator")
				watermark := last[i]
				start(i)
				gens[i].After(watermark)
				last[i] = watermark
			},
			"restart all with the watermark of all": func(*rapid.T) {
				watermark := slices.Max(last[:])
				for i := range gens {
					start(i)
					gens[i].After(watermark)
					last[i] = watermark
				}
			},
			"": func(t *rapid.T) {
				for i, g := range gens {
					require.Equal(t, last[i], g.Last())
				}
			},
		})
	})
}

func burst(t *rapid.T, next func(int, int64), i int, now int64) {
	for range rapid.IntRange(500, 1100).Draw(t, "ids") {
		next(i, now)
	}
}
