package jobspec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
)

// slotOfCore is the smallest list of resources.
const slotOfCore = `[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}]`

// oneTask is the usual list of tasks.
const oneTask = `[{"command":["app"],"slot":"task","count":{"per_slot":1}}]`

// text returns a jobspec of the given parts; an empty part is the usual one.
func text(resources, tasks, attributes string) string {
	for _, p := range []struct {
		part  *string
		usual string
	}{{&resources, slotOfCore}, {&tasks, oneTask}, {&attributes, `{"system":{"duration":0}}`}} {
		if *p.part == "" {
			*p.part = p.usual
		}
	}
	return fmt.Sprintf(`{"version":1,"resources":%s,"tasks":%s,"attributes":%s}`, resources, tasks, attributes)
}

// system returns a jobspec with these members of attributes.system.
func system(members string) string {
	return text("", "", `{"system":{"duration":0`+members+`}}`)
}

// parse parses what has to be right.
func parse(t testing.TB, in string) *jobspec.Spec {
	t.Helper()
	s, err := jobspec.Parse([]byte(in))
	require.NoError(t, err, in)
	return s
}

// What errors contain: those about a limit alone say that something is too large, too
// many or too deep.
const (
	anyFault = "jobspec: "
	tooMuch  = "too "
)

// refuse requires that a jobspec is refused for the key at a path, as category
// says, and that the error points at the bytes that at begins with.
func refuse(t testing.TB, in string, cause, path, at string) {
	t.Helper()
	s, err := jobspec.Parse([]byte(in))
	require.Nil(t, s, in)
	require.ErrorContains(t, err, cause, in)
	gotPath, offset := jobspec.Position(err)
	require.Equal(t, path, gotPath, in)
	require.Truef(t, strings.HasPrefix(in[offset:], at), "%s: points at %q, not %q", in, in[offset:], at)
	require.True(t, strings.HasPrefix(err.Error(), "jobspec: "), err.Error())
	require.Equal(t, 1, strings.Count(err.Error(), "jobspec: "), err.Error())
	require.NotContains(t, err.Error(), "\n")
}

// print returns the canonical text.
func print(t require.TestingT, s *jobspec.Spec) string {
	b, err := s.MarshalJSON()
	require.NoError(t, err)
	return string(b)
}

// size prints counts, for comparison.
func size(c jobspec.Counts) string {
	return fmt.Sprintf("nodes %v, slots %v, cores %v, gpus %v, tasks %v", c.Nodes, c.Slots, c.Cores, c.GPUs, c.Tasks)
}
