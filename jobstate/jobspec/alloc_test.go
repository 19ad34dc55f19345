package jobspec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobspec"
)

func TestAllocationsStayWithinTheBudget(t *testing.T) {
	race.Skip(t)
	in := []byte(text(`[{"type":"node","count":4,"with":[{"type":"slot","count":2,"label":"task","with":[{"type":"core","count":3},{"type":"gpu","count":1}]}]}]`, "",
		`{"system":{"duration":3600.0,"cwd":"/home/u","queue":"batch","environment":{"A":"1","B":"2"}}}`))
	s := parse(t, string(in))
	set, err := jobspec.ParseCount("1,4-6,9")
	require.NoError(t, err)
	sum := int64(0)
	for name, test := range map[string]struct {
		budget float64
		f      func()
	}{
		// The Spec with vertices and tasks, its text, cwd, and queue.
		"Parse": {4, func() { _, _ = jobspec.Parse(in) }},
		"Counts": {0, func() {
			n, _ := s.Counts().Tasks.Value()
			sum += n
		}},
		"CountsOn": {0, func() {
			n, _ := s.CountsOn(jobspec.Resources{Nodes: 4, Cores: 24}).Cores.Value()
			sum += n
		}},
		"Shape": {0, func() {
			shape, _ := s.Shape()
			sum += shape.Nodes.Min()
		}},
		"Vertices": {0, func() {
			for i := range s.Vertices() {
				sum += int64(i)
			}
		}},
		"Floor": {0, func() {
			n, _ := set.Floor(7)
			sum += n
		}},
		"ParseCount of one number": {0, func() { _, _ = jobspec.ParseCount("[17]") }},
	} {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, testing.AllocsPerRun(100, test.f), test.budget)
		})
	}
	require.NotZero(t, sum)
}
