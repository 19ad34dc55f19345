package jobid_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/stretchr/testify/require"
)

func TestAllocationsPerCall(t *testing.T) {
	race.Skip(t)
	const id = jobid.ID(6731191091817518)
	buf := make([]byte, 0, 64)
	g := newGenerator(t, 1)
	now := at(0)
	var parsed jobid.ID
	var made string
	long := strings.Repeat("0", 1<<17)
	tests := []struct {
		name string
		want float64
		f    func()
	}{
		{"String", 1, func() { made = id.String() }},
		{"AppendText with room", 0, func() { buf, _ = id.AppendText(buf[:0]) }},
		{"Next", 0, func() {
			now = now.Add(time.Microsecond)
			if _, err := g.Next(now); err != nil {
				t.Fatal(err)
			}
		}},
		{"Parse, many zeros", 0, func() { parsed, _ = jobid.Parse(long) }},
		{"UnmarshalJSON of a number", 0, func() { _ = parsed.UnmarshalJSON(buf[:copy(buf[:20], "18446744073709551615")]) }},
	}
	for _, f := range formats {
		text := " " + id.Format(f) + "\n"
		tests = append(tests, []struct {
			name string
			want float64
			f    func()
		}{
			{"AppendFormat with room, " + f.String(), 0, func() { buf = id.AppendFormat(buf[:0], f) }},
			{"Format, " + f.String(), 1, func() { made = id.Format(f) }},
			{"Parse, " + f.String(), 0, func() { parsed, _ = jobid.Parse(text) }},
			{"UnmarshalText, " + f.String(), 0, func() { _ = parsed.UnmarshalText(append(buf[:0], text...)) }},
		}...)
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, testing.AllocsPerRun(200, tt.f), tt.name)
	}
	require.NotEmpty(t, made)
}
