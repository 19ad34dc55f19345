package jobspec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
)

func TestRFC25VersionIsOne(t *testing.T) {
	for version, points := range map[string]string{"9999": "9999", "2": "2", "0": "0", "-1": "-1"} {
		// The version tells how to read the rest, so that it comes first.
		in := `{"resources":[{"type":7}],"tasks":7,"version":` + version + `,"attributes":null}`
		refuse(t, in, anyFault, "version", points)
	}
	for _, version := range []string{`"1"`, "1.0", "null", "true"} {
		refuse(t, `{"version":`+version+`}`, anyFault, "version", version)
	}
}

func TestRFC25SystemDurationIsRequired(t *testing.T) {
	refuse(t, text("", "", `{}`), anyFault, "attributes.system", "{}")
	refuse(t, text("", "", `{"system":{"cwd":"/"}}`), anyFault, "attributes.system.duration", "{")
}

// shapes are the four forms of resources.
func shapes() map[string]jobspec.Shape {
	return map[string]jobspec.Shape{
		`[{"type":"slot","count":10,"label":"task","with":[{"type":"core","count":2}]}]`: {Slots: jobspec.Fixed(10), Cores: jobspec.Fixed(2)},
		`[{"type":"slot","count":10,"label":"task","with":[{"type":"gpu","count":1},{"type":"core","count":2}]}]`: {
			Slots: jobspec.Fixed(10), Cores: jobspec.Fixed(2), GPUs: jobspec.Fixed(1),
		},
		`[{"type":"node","count":4,"with":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":2}]}]}]`: {
			Nodes: jobspec.Fixed(4), Slots: jobspec.Fixed(1), Cores: jobspec.Fixed(2),
		},
		`[{"type":"node","count":4,"exclusive":true,"unit":"","with":[{"type":"slot","count":2,"label":"task","with":[{"type":"core","count":2},{"type":"gpu","count":3}]}]}]`: {
			Nodes: jobspec.Fixed(4), Slots: jobspec.Fixed(2), Cores: jobspec.Fixed(2), GPUs: jobspec.Fixed(3), Exclusive: true,
		},
	}
}

func TestRFC25ResourcesHaveFourForms(t *testing.T) {
	for resources, want := range shapes() {
		s := parse(t, text(resources, "", ""))
		got, err := s.Shape()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, resources := range []string{
		`[{"type":"slot","count":1,"label":"task","with":[{"type":"gpu","count":1}]}]`,
		`[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1},{"type":"core","count":1}]}]`,
		`[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1},{"type":"gpu","count":1},{"type":"gpu","count":1}]}]`,
		`[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1},{"type":"memory","count":1}]}]`,
		`[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1,"with":[{"type":"gpu","count":1}]}]}]`,
		`[{"type":"slot","count":1,"label":"task","with":[{"type":"node","count":1}]}]`,
		`[{"type":"rack","count":1,"with":` + slotOfCore + `}]`,
		`[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]},{"type":"core","count":1}]`,
		`[{"type":"node","count":1},{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}]`,
		`[{"type":"node","count":1,"with":[{"type":"core","count":1},{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}]}]`,
		`[{"type":"node","count":1,"with":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]},{"type":"core","count":1}]}]`,
		`[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]},{"type":"slot","count":1,"label":"b","with":[{"type":"core","count":1}]}]`,
	} {
		s := parse(t, text(resources, "", ""))
		shape, err := s.Shape()
		require.ErrorContains(t, err, anyFault, resources)
		require.Zero(t, shape)
		require.EqualError(t, err, "jobspec: resources: must be slot>core, slot>(core,gpu), node>slot>core or node>slot>(core,gpu)")
	}
}

func TestRFC25ItsUseCasesAreRead(t *testing.T) {
	slot := func(slots int, with string) string {
		return fmt.Sprintf(`{"type":"slot","count":%d,"label":"task","with":[{"type":"core","count":%s}]}`, slots, with)
	}
	node := func(slot string) string { return `[{"type":"node","count":4,"with":[` + slot + `]}]` }
	const gpu = `1},{"type":"gpu","count":1`
	for name, c := range map[string]struct{ resources, count, want string }{
		"1.1: a slot on each of four nodes":     {node(slot(1, "1")), `{"per_slot":1}`, "nodes 4, slots 4, cores 4, gpus 0, tasks 4"},
		"2.1: five tasks on four nodes":         {node(slot(1, "1")), `{"total":5}`, "nodes 4, slots 4, cores 4, gpus 0, tasks 5"},
		"2.2: ten tasks of two cores":           {"[" + slot(10, "2") + "]", `{"per_slot":1}`, "nodes unknown, slots 10, cores 20, gpus 0, tasks 10"},
		"2.3: ten tasks with a gpu each":        {"[" + slot(10, `2},{"type":"gpu","count":1`) + "]", `{"per_slot":1}`, "nodes unknown, slots 10, cores 20, gpus 10, tasks 10"},
		"2.4: four tasks on each of four nodes": {node(slot(4, gpu)), `{"per_slot":1}`, "nodes 4, slots 16, cores 16, gpus 16, tasks 16"},
	} {
		s := parse(t, text(c.resources, `[{"command":["app"],"slot":"task","count":`+c.count+`}]`,
			`{"system":{"duration":3600.0,"cwd":"/home/flux","environment":{"HOME":"/home/flux"}}}`))
		require.Equal(t, c.want, size(s.Counts()), name)
		_, err := s.Shape()
		require.NoError(t, err, name)
	}
}
