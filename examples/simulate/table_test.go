package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	// 2.776 is Student's t for 4 degrees of freedom, 1.5811 the standard deviation.
	require.InDelta(t, 2.7764*1.5811/math.Sqrt(5), spread([]float64{1, 2, 3, 4, 5}), 0.001)
	require.Zero(t, spread([]float64{7, 7, 7}))
	require.True(t, math.IsNaN(spread([]float64{7})))
}

func TestShort(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0s", 0.25: "0.2s", 9.5: "9.5s", 59: "59s", 60: "1m", 61: "1m01s", 3599: "59m59s", 3600: "1h", 7265: "2h01m",
		2 * 86400: "2d", 3*86400 + 7200: "3d02h", 3599.7: "1h", 0.04: "0s",
	} {
		require.Equal(t, want, short(s))
	}
}

func TestLatencyQuantile(t *testing.T) {
	c := metrics{latency: map[seconds]int{1: 98, 5: 1, 70: 1}}
	require.EqualValues(t, 1, c.latencyQuantile(0.5))
	require.EqualValues(t, 5, c.latencyQuantile(0.99))
	require.EqualValues(t, 70, c.latencyQuantile(1))
	require.InDelta(t, 1.73, c.latencyMean(), 1e-9)
	require.Zero(t, (&metrics{}).latencyQuantile(0.5))
}

func TestTheSlowdownIsThatOfWhatAJobRan(t *testing.T) {
	j := job{arrival: &arrival{run: 200}, began: 100, ended: 150}
	require.Equal(t, 3.0, j.slowdown(), "its node failed")
	j.ended = 100
	require.Equal(t, 10.0, j.slowdown(), "of less than 10 seconds it is that of 10")
}
