package fsd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
)

func TestAllocationsPerCall(t *testing.T) {
	race.Skip(t)
	buf := make([]byte, 0, 64)
	var d fsd.Duration
	var text string
	long := strings.Repeat("0", 1<<20)
	for _, tt := range []struct {
		name string
		want float64
		f    func()
	}{
		{"Parse", 0, func() { d, _ = fsd.Parse(" 1.25h") }},
		{"Parse of infinity", 0, func() { d, _ = fsd.Parse("infinity") }},
		{"UnmarshalText", 0, func() { _ = d.UnmarshalText(append(buf[:0], "1.25h"...)) }},
		{"AppendText with room, six digits", 0, func() { buf, _ = of(90 * time.Minute).AppendText(buf[:0]) }},
		{"AppendText with room, more digits", 0, func() { buf, _ = of(time.Second / 3).AppendText(buf[:0]) }},
		{"AppendText with room, infinity", 0, func() { buf, _ = fsd.Forever.AppendText(buf[:0]) }},
		{"Parse, longest exact", 0, func() { d, _ = fsd.Parse("9223372036.854775806") }},
		{"Parse, a megabyte of zeros", 0, func() { d, _ = fsd.Parse(long) }},
		{"String", 1, func() { text = of(time.Second / 3).String() }},
		{"Format, longest", 1, func() { text = of(-1).Format(17) }},
		{"Format", 1, func() { text = of(time.Second / 3).Format(2) }},
	} {
		require.Equal(t, tt.want, testing.AllocsPerRun(200, tt.f), tt.name)
	}
	require.Equal(t, "0.33s", text)
	require.Zero(t, d)
}
