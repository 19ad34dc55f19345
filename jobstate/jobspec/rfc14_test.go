package jobspec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
)

func TestRFC14TheFourKeysAreRequired(t *testing.T) {
	full := text("", "", "")
	parse(t, full)
	for key, part := range map[string]string{
		"version":    `"version":1,`,
		"resources":  `"resources":` + slotOfCore + `,`,
		"tasks":      `"tasks":` + oneTask + `,`,
		"attributes": `,"attributes":{"system":{"duration":0}}`,
	} {
		without := strings.Replace(full, part, "", 1)
		require.NotEqual(t, full, without)
		refuse(t, without, anyFault, key, "{")
	}
	refuse(t, `[]`, anyFault, "", "[")
	refuse(t, `null`, anyFault, "", "null")
}

func TestRFC14ResourcesAreAListOfAtLeastOneVertex(t *testing.T) {
	refuse(t, text(`[]`, "", ""), anyFault, "resources", "[]")
	refuse(t, text(`{}`, "", ""), anyFault, "resources", "{}")
	refuse(t, text(`[4]`, "", ""), anyFault, "resources[0]", "4")
}

func TestRFC14AVertexHasTypeAndCountAndNoStrangeKeys(t *testing.T) {
	vertex := func(core string) string {
		return text(`[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1},`+core+`]}]`, "", "")
	}
	parse(t, vertex(`{"type":"memory","count":4,"unit":"GB","id":"0-3","label":"m","exclusive":false,"with":[]}`))
	const at = "resources[0].with[1]"
	for core, want := range map[string]struct{ path, points string }{
		`{"count":1}`:                                     {at + ".type", "{"},
		`{"type":"gpu"}`:                                  {at + ".count", "{"},
		`{"type":"","count":1}`:                           {at + ".type", `""`},
		`{"type":7,"count":1}`:                            {at + ".type", `7`},
		`{"type":"core","count":0}`:                       {at + ".count", `0`},
		`{"count":0,"type":"node"}`:                       {at + ".count", `0`},
		`{"type":"slot","count":0,"label":"b","with":[]}`: {at + ".count", `0`},
		`{"type":"gpu","count":"0"}`:                      {at + ".count", `"0"`},
		`{"type":"gpu","count":-1}`:                       {at + ".count", `-1`},
		`{"type":"gpu","count":1.0}`:                      {at + ".count", `1.0`},
		`{"type":"gpu","count":"x"}`:                      {at + ".count", `"x"`},
		`{"type":"gpu","count":{"min":0}}`:                {at + ".count.min", `0`},
		`{"type":"gpu","count":{"min":1,"step":1}}`:       {at + ".count.step", `1`},
		`{"type":"gpu","count":1,"unit":1}`:               {at + ".unit", `1`},
		`{"type":"gpu","count":1,"label":1}`:              {at + ".label", `1`},
		`{"type":"gpu","count":1,"id":1}`:                 {at + ".id", `1`},
		`{"type":"gpu","count":1,"exclusive":"yes"}`:      {at + ".exclusive", `"yes"`},
		`{"type":"gpu","count":1,"with":{}}`:              {at + ".with", `{}`},
		`{"type":"gpu","count":1,"with":[true]}`:          {at + ".with[0]", `true`},
		`{"type":"gpu","count":1,"requires":{}}`:          {at + ".requires", `{}`},
		`{"type":"gpu","count":1,"two words":1}`:          {at + `."two words"`, `1`},
		`{"type":"gpu","count":1,"\u0007":1}`:             {at + `."\a"`, `1`},
		`{"type":"gpu","count":2147483648}`:               {"", ""},
		`{"type":"gpu","count":1,"label":"task"}`:         {at + ".label", "{"},
		`{"type":"slot","count":1,"with":[]}`:             {at + ".label", "{"},
		`{"type":"slot","count":1,"label":"b"}`:           {at + ".with", "{"},
		`{"type":"slot","count":1,"label":"b","with":[]}`: {at + ".with", "[]"},
	} {
		if want.path == "" {
			refuse(t, vertex(core), tooMuch, at+".count", "2147483648")
			continue
		}
		refuse(t, vertex(core), anyFault, want.path, want.points)
	}
}

// flux-core#4259: a count of 0 is one of no resource, but for nodes, slots and cores.
func TestAVertexMayAskForNothing(t *testing.T) {
	for _, nothing := range []string{`{"type":"gpu","count":0}`, `{"count":0,"type":"gpu","with":[{"type":"core","count":7}]}`} {
		s := parse(t, text(`[{"type":"node","count":2,"with":[{"type":"slot","count":3,"label":"task","with":[{"type":"core","count":4},`+nothing+`]}]}]`, "", ""))
		c := s.Counts()
		require.Equal(t, []jobspec.Quantity{jobspec.Known(6), jobspec.Known(24), jobspec.Known(0)}, []jobspec.Quantity{c.Slots, c.Cores, c.GPUs})
		for i, v := range s.Vertices() {
			require.Equal(t, i == 3, v.Count.IsZero(), i)
		}
	}
	s := parse(t, text(`[{"type":"slot","count":1,"label":"task","with":[{"type":"gpu","count":0},{"type":"core","count":4},{"type":"gpu","count":2}]}]`, "", ""))
	shape, err := s.Shape()
	require.NoError(t, err)
	require.Equal(t, jobspec.Shape{Slots: jobspec.Fixed(1), Cores: jobspec.Fixed(4), GPUs: jobspec.Fixed(2)}, shape)
}

func TestRFC14SlotsAndWhatIsInThemAreExclusiveUnlessTheySayOtherwise(t *testing.T) {
	s := parse(t, text(`[{"type":"rack","count":1,"with":[
		{"type":"node","count":1,"exclusive":true,"with":[
			{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1},{"type":"gpu","count":1,"exclusive":false}]}]},
		{"type":"slot","count":1,"label":"b","exclusive":false,"with":[{"type":"socket","count":1,"with":[{"type":"core","count":1}]}]}]}]`, "", ""))
	var got []string
	for i, v := range s.Vertices() {
		got = append(got, fmt.Sprintf("%d in %d: %s %v %v", i, v.Parent, v.Type, v.Count, v.Exclusive))
	}
	require.Equal(t, []string{
		"0 in -1: rack 1 false",
		"1 in 0: node 1 true",
		"2 in 1: slot 1 true",
		"3 in 2: core 1 true",
		"4 in 2: gpu 1 false",
		"5 in 0: slot 1 false",
		"6 in 5: socket 1 true",
		"7 in 6: core 1 true",
	}, got)
	for i := range s.Vertices() {
		require.Zero(t, i)
		break
	}
}

func TestRFC14LabelsAreUnique(t *testing.T) {
	two := `[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]},
		{"type":"slot","count":1,"label":"%s","with":[{"type":"core","count":1}]}]`
	parse(t, text(fmt.Sprintf(two, "other"), "", ""))
	refuse(t, text(fmt.Sprintf(two, "task"), "", ""), anyFault, "resources[1].label", "{")
}

func TestRFC14TasksAreAListOfAtLeastOne(t *testing.T) {
	for tasks, want := range map[string]struct{ path, points string }{
		`[]`:                                    {"tasks", "[]"},
		`{}`:                                    {"tasks", "{}"},
		`[[]]`:                                  {"tasks[0]", "[]"},
		`[{"slot":"task","count":{"total":1}}]`: {"tasks[0].command", "{"},
		`[{"command":["a"],"count":{"total":1}}]`:                                                         {"tasks[0].slot", "{"},
		`[{"command":["a"],"slot":"task"}]`:                                                               {"tasks[0].count", "{"},
		`[{"command":"a","slot":"task","count":{"total":1}}]`:                                             {"tasks[0].command", `"a"`},
		`[{"command":[],"slot":"task","count":{"total":1}}]`:                                              {"tasks[0].command", `[]`},
		`[{"command":[1],"slot":"task","count":{"total":1}}]`:                                             {"tasks[0].command[0]", `1`},
		`[{"command":["a",null],"slot":"task","count":{"total":1}}]`:                                      {"tasks[0].command[1]", `null`},
		`[{"command":["a"],"slot":7,"count":{"total":1}}]`:                                                {"tasks[0].slot", `7`},
		`[{"command":["a"],"slot":"other","count":{"total":1}}]`:                                          {"tasks[0].slot", `"other"`},
		`[{"command":["a"],"slot":"task","count":1}]`:                                                     {"tasks[0].count", `1`},
		`[{"command":["a"],"slot":"task","count":{}}]`:                                                    {"tasks[0].count", `{}`},
		`[{"command":["a"],"slot":"task","count":{"total":1,"per_slot":1}}]`:                              {"tasks[0].count", `{`},
		`[{"command":["a"],"slot":"task","count":{"total":0}}]`:                                           {"tasks[0].count.total", `0`},
		`[{"command":["a"],"slot":"task","count":{"per_slot":0}}]`:                                        {"tasks[0].count.per_slot", `0`},
		`[{"command":["a"],"slot":"task","count":{"per_resource":[]}}]`:                                   {"tasks[0].count.per_resource", `[]`},
		`[{"command":["a"],"slot":"task","count":{"total":1.5}}]`:                                         {"tasks[0].count.total", `1.5`},
		`[{"command":["a"],"slot":"task","count":{"per_slot":"1"}}]`:                                      {"tasks[0].count.per_slot", `"1"`},
		`[{"command":["a"],"slot":"task","count":{"per_resource":1}}]`:                                    {"tasks[0].count.per_resource", `1`},
		`[{"command":["a"],"slot":"task","count":{"per_resource":{"count":1}}}]`:                          {"tasks[0].count.per_resource.type", `{`},
		`[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"core"}}}]`:                      {"tasks[0].count.per_resource.count", `{`},
		`[{"command":["a"],"slot":"task","count":{"per_resource":{"type":1,"count":1}}}]`:                 {"tasks[0].count.per_resource.type", `1`},
		`[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"core","count":0}}}]`:            {"tasks[0].count.per_resource.count", `0`},
		`[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"gpu","count":1}}}]`:             {"tasks[0].count.per_resource.type", `"gpu"`},
		`[{"command":["a"],"slot":"task","count":{"total":1},"distribution":1}]`:                          {"tasks[0].distribution", `1`},
		`[{"command":["a"],"slot":"task","count":{"total":1},"attributes":[]}]`:                           {"tasks[0].attributes", `[]`},
		`[{"command":["a"],"slot":"task","count":{"total":1},"nice":1}]`:                                  {"tasks[0].nice", `1`},
		`[{"command":["a"],"slot":"task","count":{"total":1}},{"command":["a"],"slot":"task","count":0}]`: {"tasks[1].count", `0`},
	} {
		refuse(t, text("", tasks, ""), anyFault, want.path, want.points)
	}
}

func TestRFC14TasksAreDecoded(t *testing.T) {
	const tasks = `[{"command":["read-db","\u00e9\n"],"slot":"read","count":{"per_resource":{"type":"core","count":3}},"distribution":"block"},
		  {"command":["/opt/db"],"slot":"db","count":{"total":1},"attributes":{"environment":{"FOO":null}}},
		  {"command":["log"],"slot":"db","count":{"per_slot":2}},
		  {"command":["x"],"slot":"db","count":{"site":{"any":1}}}]`
	s := parse(t, text(
		`[{"type":"slot","count":10,"label":"read","with":[{"type":"core","count":2}]},{"type":"slot","count":1,"label":"db","with":[{"type":"core","count":6}]}]`,
		tasks, ""))
	want := []string{"read-db", "é\n"}
	require.Equal(t, want, s.Command())
	s.Command()[0] = "changed"
	require.Equal(t, want, s.Command(), "each call returns one of its own")
	all, ok := s.Lookup("tasks")
	require.True(t, ok)
	require.JSONEq(t, tasks, string(all))
}

func TestRFC14AttributesAreUserAndSystem(t *testing.T) {
	parse(t, text("", "", `{"user":{"any":[1]},"system":{"duration":0,"unheard-of":{"a":1}}}`))
	for attributes, want := range map[string]struct{ path, points string }{
		`null`:                                {"attributes", "null"},
		`{"user":{}}`:                         {"attributes.system", "{"},
		`{"system":[]}`:                       {"attributes.system", "[]"},
		`{"system":{"duration":0},"user":1}`:  {"attributes.user", "1"},
		`{"system":{"duration":0},"other":1}`: {"attributes.other", "1"},
	} {
		refuse(t, text("", "", attributes), anyFault, want.path, want.points)
	}
}

func TestRFC14SystemAttributesHaveTypes(t *testing.T) {
	for members, want := range map[string]struct{ path, points string }{
		`"duration":-1`:                         {"duration", "-1"},
		`"duration":"1h"`:                       {"duration", `"1h"`},
		`"duration":null`:                       {"duration", `null`},
		`"durations":0`:                         {"duration", `{`},
		`"duration":0,"preemptible-after":-0.5`: {"preemptible-after", `-0.5`},
		`"duration":0,"cwd":1`:                  {"cwd", `1`},
		`"duration":0,"queue":1`:                {"queue", `1`},
		`"duration":0,"bank":1`:                 {"bank", `1`},
		`"duration":0,"project":1`:              {"project", `1`},
		`"duration":0,"environment":[]`:         {"environment", `[]`},
		`"duration":0,"files":[]`:               {"files", `[]`},
		`"duration":0,"constraints":[]`:         {"constraints", `[]`},
		`"duration":0,"job":"x"`:                {"job", `"x"`},
		`"duration":0,"job":{"name":1}`:         {"job.name", `1`},
		`"duration":0,"dependencies":{}`:        {"dependencies", `{}`},
		`"duration":0,"dependencies":[1]`:       {"dependencies[0]", `1`},
	} {
		refuse(t, text("", "", `{"system":{`+members+`}}`), anyFault, "attributes.system."+want.path, want.points)
	}
}

func TestRFC14SystemAttributesAreRead(t *testing.T) {
	s := parse(t, text("", "", `{"system":{"duration":3600.5,"preemptible-after":0,"cwd":"/home","queue":"batch","bank":"b","project":"p",
		"constraints":{"properties":["amd-mi50"]},"job":{"name":"night"},"environment":{"A":"1"}}}`))
	require.Equal(t, 3600500*time.Millisecond, s.Duration())
	require.Equal(t, []string{"night", "/home", "batch", "b", "p"}, []string{s.Name(), s.Cwd(), s.Queue(), s.Bank(), s.Project()})
	require.JSONEq(t, `{"properties":["amd-mi50"]}`, string(s.Constraints()))
	s.Constraints()[0] = '!'
	require.JSONEq(t, `{"properties":["amd-mi50"]}`, string(s.Constraints()), "each call returns a copy")

	s = parse(t, text("", "", ""))
	require.Zero(t, s.Duration())
	require.Equal(t, []string{"app", "", "", "", ""}, []string{s.Name(), s.Cwd(), s.Queue(), s.Bank(), s.Project()})
	require.Nil(t, s.Constraints())
}

func TestRFC14TheNameOfAJobIsThatOfItsCommandByDefault(t *testing.T) {
	for command, want := range map[string]string{
		`["app","-v"]`: "app", `["/usr/bin/app"]`: "app", `["./app"]`: "app", `["/usr/bin/"]`: "/usr/bin/", `["/"]`: "/", `[""]`: "",
		`["a\/b"]`: "b", `["/opt/ƒ"]`: "ƒ",
	} {
		tasks := `[{"command":` + command + `,"slot":"task","count":{"per_slot":1}}]`
		require.Equal(t, want, parse(t, text("", tasks, "")).Name(), command)
		require.Equal(t, "", parse(t, text("", tasks, `{"system":{"duration":0,"job":{"name":""}}}`)).Name())
		require.Equal(t, want, parse(t, text("", tasks, `{"system":{"duration":0,"job":{"note":"x"}}}`)).Name())
	}
}

func TestRFC14ItsUseCasesAreCounted(t *testing.T) {
	for _, test := range []struct{ name, resources, tasks, want string }{
		{"four nodes of a slot of two cores",
			`[{"type":"node","count":4,"with":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":2}]}]}]`, "",
			"nodes 4, slots 4, cores 8, gpus 0, tasks 4"},
		{"1.1: a slot that is four nodes",
			`[{"type":"slot","count":1,"label":"task","with":[{"type":"node","count":4}]}]`, "",
			"nodes 4, slots 1, cores unknown, gpus unknown, tasks 1"},
		{"1.2: three to thirty nodes",
			`[{"type":"slot","count":1,"label":"task","with":[{"type":"node","count":{"min":3,"max":30}}]}]`, "",
			"nodes unknown, slots 1, cores unknown, gpus unknown, tasks 1"},
		{"1.3: nodes with sockets of cores",
			`[{"type":"slot","count":1,"label":"task","with":[{"type":"node","count":4,"exclusive":false,"with":[{"type":"socket","count":2,"with":[{"type":"core","count":4}]}]}]}]`, "",
			"nodes 4, slots 1, cores 32, gpus 0, tasks 1"},
		{"1.4: exclusive nodes",
			`[{"type":"node","count":4,"exclusive":true,"with":[{"type":"slot","count":2,"label":"task","with":[{"type":"core","count":4},{"type":"gpu","count":1}]}]}]`, "",
			"nodes 4, slots 8, cores unknown, gpus unknown, tasks 8"},
		{"1.6: cores on two clusters",
			`[{"type":"cluster","count":2,"with":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":30}]}]}]`, "",
			"nodes unknown, slots 2, cores 60, gpus 0, tasks 2"},
		{"2.1: twenty tasks on four nodes",
			`[{"type":"node","count":4,"with":[{"type":"slot","count":5,"label":"task","with":[{"type":"core","count":1}]}]}]`,
			`[{"command":["hostname"],"slot":"task","count":{"per_slot":1}}]`,
			"nodes 4, slots 20, cores 20, gpus 0, tasks 20"},
		{"2.2: five tasks on four nodes",
			`[{"type":"node","count":4,"with":[{"type":"slot","count":2,"label":"task","with":[{"type":"core","count":1}]}]}]`,
			`[{"command":["hostname"],"slot":"task","count":{"total":5}}]`,
			"nodes 4, slots 8, cores 8, gpus 0, tasks 5"},
		{"2.4: two programs, each with slots of its own",
			`[{"type":"node","count":1,"with":[{"type":"slot","count":10,"label":"read","with":[{"type":"core","count":1},{"type":"memory","count":4,"unit":"GB"}]},
				{"type":"slot","count":1,"label":"db","with":[{"type":"core","count":6}]}]}]`,
			`[{"command":["read-db"],"slot":"read","count":{"per_slot":1}},{"command":["db"],"slot":"db","count":{"per_slot":1}}]`,
			"nodes 1, slots 11, cores 16, gpus 0, tasks 11"},
		{"tasks for each core of the slot",
			`[{"type":"slot","count":3,"label":"task","with":[{"type":"socket","count":2,"with":[{"type":"core","count":4},{"type":"gpu","count":1}]}]}]`,
			`[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"core","count":2}}},{"command":["b"],"slot":"task","count":{"per_resource":{"type":"gpu","count":1}}}]`,
			"nodes unknown, slots 3, cores 24, gpus 6, tasks 54"},
		{"an open number of slots",
			`[{"type":"slot","count":"2+","label":"task","with":[{"type":"core","count":4}]}]`, "",
			"nodes unknown, slots unknown, cores unknown, gpus 0, tasks unknown"},
		{"a total is known whatever the slots are",
			`[{"type":"slot","count":"2+","label":"task","with":[{"type":"core","count":4}]}]`,
			`[{"command":["a"],"slot":"task","count":{"total":6}}]`,
			"nodes unknown, slots unknown, cores unknown, gpus 0, tasks 6"},
		{"slots without cores",
			`[{"type":"slot","count":2,"label":"task","with":[{"type":"gpu","count":4}]}]`,
			`[{"command":["a"],"slot":"task","count":{"site":1}}]`,
			"nodes unknown, slots 2, cores unknown, gpus 8, tasks unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, size(parse(t, text(test.resources, test.tasks, "")).Counts()))
		})
	}
}

func TestRFC14UnknownKeysAreKeptWhereTheyAreLetIn(t *testing.T) {
	in := `{"attributes":{"system":{"duration":0.0,"x-site":{"k":[1e3,null]}},"user":{"u":"\u00e9"}},"resources":` + slotOfCore +
		`,"tasks":[{"command":["a"],"slot":"task","count":{"site":{}},"attributes":{"k":"v"}}],"version":1,"x-top":[true]}`
	require.JSONEq(t, in, print(t, parse(t, in)))
}
