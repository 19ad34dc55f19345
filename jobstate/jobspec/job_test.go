package jobspec_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/jobstate/jobspec"
)

func TestNewMakesTheFourFormsOfRFC25(t *testing.T) {
	app := []string{"/bin/app", "-v"}
	for _, tt := range []struct {
		job  jobspec.Job
		text string
	}{
		{jobspec.Job{Command: app},
			`{"attributes":{"system":{"duration":0}},"resources":[{"count":1,"label":"task","type":"slot","with":[{"count":1,"type":"core"}]}],` +
				`"tasks":[{"command":["/bin/app","-v"],"count":{"per_slot":1},"slot":"task"}],"version":1}`},
		{jobspec.Job{Command: app, Slots: 3, Cores: 2, GPUs: 1, Duration: 90 * time.Minute},
			`{"attributes":{"system":{"duration":5400}},"resources":[{"count":3,"label":"task","type":"slot","with":[{"count":2,"type":"core"},{"count":1,"type":"gpu"}]}],` +
				`"tasks":[{"command":["/bin/app","-v"],"count":{"per_slot":1},"slot":"task"}],"version":1}`},
		{jobspec.Job{Command: app, Nodes: 4, Slots: 2, Exclusive: true, Duration: 1500 * time.Millisecond, Name: "night", Queue: "batch", Cwd: "/home"},
			`{"attributes":{"system":{"cwd":"/home","duration":1.5,"job":{"name":"night"},"queue":"batch"}},` +
				`"resources":[{"count":4,"exclusive":true,"type":"node","with":[{"count":2,"label":"task","type":"slot","with":[{"count":1,"type":"core"}]}]}],` +
				`"tasks":[{"command":["/bin/app","-v"],"count":{"per_slot":1},"slot":"task"}],"version":1}`},
	} {
		s, err := jobspec.New(tt.job)
		require.NoError(t, err)
		require.Equal(t, tt.text, print(t, s))
		require.Equal(t, tt.job.Duration, s.Duration())
		require.Equal(t, []string{tt.job.Queue, tt.job.Cwd}, []string{s.Queue(), s.Cwd()})
		require.Equal(t, app, s.Command())
	}
}

func TestNewRefusesWhatParseWould(t *testing.T) {
	app := []string{"app"}
	for text, job := range map[string]jobspec.Job{
		"jobspec: tasks[0].command: must not be empty":                                  {},
		"jobspec: tasks.command: text is not valid UTF-8":                               {Command: []string{"\xff"}},
		"jobspec: attributes.system.duration: must be at least 0":                       {Command: app, Duration: -1},
		"jobspec: resources[0].count: must be an integer of at least 1":                 {Command: app, Nodes: -1},
		"jobspec: resources[0].with[0].with[0].count: must be an integer of at least 1": {Command: app, Nodes: 1, Cores: -1},
		"jobspec: resources[0].with[1].count: too large a number":                       {Command: app, GPUs: jobspec.MaxCount + 1},
		"jobspec: resources[0].with[0].count: too large a number":                       {Command: app, Nodes: jobspec.MaxCount, Slots: jobspec.MaxCount, Cores: 1 << 20},
		"jobspec: queue: text is not valid UTF-8":                                       {Command: app, Queue: "\xff"},
		"jobspec: too many bytes":                                                       {Command: []string{strings.Repeat("x", 16<<20)}},
	} {
		s, err := jobspec.New(job)
		require.Nil(t, s)
		require.EqualError(t, err, text)
	}
	_, err := jobspec.New(jobspec.Job{Command: app, Exclusive: true})
	require.ErrorContains(t, err, anyFault, "whole nodes of no nodes")
}

func TestNewPrintsWhatParseReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(least int, label string) int64 { return int64(rapid.IntRange(least, 1000).Draw(t, label)) }
		j := jobspec.Job{
			Nodes: n(0, "nodes"), Slots: n(1, "slots"), Cores: n(1, "cores"), GPUs: n(0, "gpus"),
			Duration: time.Duration(n(0, "ms")) * time.Millisecond,
			Command:  rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "command"),
			Name:     rapid.String().Draw(t, "name"),
		}
		s, err := jobspec.New(j)
		require.NoError(t, err)
		text, err := s.MarshalJSON()
		require.NoError(t, err)
		again, err := jobspec.Parse(text)
		require.NoError(t, err)
		printed, err := again.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(text), string(printed), "New prints the canonical form")
		require.Equal(t, j.Duration, again.Duration())
		require.Equal(t, j.Command, again.Command())
		shape, err := again.Shape()
		require.NoError(t, err)
		cores, _ := shape.Cores.Fixed()
		slots, _ := shape.Slots.Fixed()
		nodes, _ := shape.Nodes.Fixed()
		gpus, _ := shape.GPUs.Fixed()
		require.Equal(t, []int64{j.Nodes, j.Slots, j.Cores, j.GPUs}, []int64{nodes, slots, cores, gpus})
	})
}
