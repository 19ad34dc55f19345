package jobspec_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate/jobspec"
)

func TestInvalidJSONIsRefusedWithItsOffset(t *testing.T) {
	full := text("", "", "")
	for in, offset := range map[string]int{
		"":                          0,
		full[:len(full)-1]:          len(full) - 1,
		full + "x":                  len(full),
		`{"version":1,"version":1}`: 13,
	} {
		_, err := jobspec.Parse([]byte(in))
		require.ErrorContains(t, err, anyFault, "%q", in)
		path, got := jobspec.Position(err)
		require.Equal(t, offset, got, "%q", in)
		require.Empty(t, path)
	}
}

func TestWhiteSpaceAndTheOrderOfKeysDoNotMatter(t *testing.T) {
	s := parse(t, " {\r\n\t\"attributes\" : { \"system\" : { \"duration\" : 5 } } , \"tasks\":"+oneTask+",\"resources\" : "+slotOfCore+" , \"version\" : 1 } \n")
	require.Equal(t, 5*time.Second, s.Duration())
	require.Equal(t, print(t, parse(t, system(``)+"\n")), strings.Replace(print(t, s), `"duration":5`, `"duration":0`, 1))
}

func TestEveryPrefixOfAJobspecIsRefused(t *testing.T) {
	full := system(`,"job":{"name":"ƒ"},"dependencies":[{"scheme":"a","value":"b"}]`)
	for i := range full {
		_, err := jobspec.Parse([]byte(full[:i]))
		require.ErrorContains(t, err, anyFault, full[:i])
	}
}

func TestLimitsAreKept(t *testing.T) {
	nested := func(n int) string {
		return text(strings.Repeat(`[{"type":"rack","count":1,"with":`, n-2)+slotOfCore+strings.Repeat(`}]`, n-2), "", "")
	}
	many := func(n int) string {
		return text(`[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}`+strings.Repeat(`,{"type":"x","count":1}`, n-2)+`]}]`, "", "")
	}
	tasks := func(n int) string {
		return text("", `[{"command":["app"],"slot":"task","count":{"per_slot":1}}`+strings.Repeat(`,{"command":["app"],"slot":"task","count":{"per_slot":1}}`, n-1)+`]`, "")
	}
	deep := func(n int) string {
		// attributes.system.x is the fourth level.
		return system(`,"x":` + strings.Repeat("[", n-3) + strings.Repeat("]", n-3))
	}
	long := func(n int) string {
		s := system(`,"x":""`)
		return strings.Replace(s, `"x":""`, `"x":"`+strings.Repeat("x", n-len(s))+`"`, 1)
	}
	label := func(n int) string {
		w := strings.Repeat("x", n)
		return text(fmt.Sprintf(`[{"type":"slot","count":1,"label":%q,"with":[{"type":"core","count":1}]}]`, w), fmt.Sprintf(`[{"command":["app"],"slot":%q,"count":{"per_slot":1}}]`, w), "")
	}
	kind := func(n int) string {
		w := strings.Repeat("x", n)
		return text(fmt.Sprintf(`[{"type":"slot","count":1,"label":"task","with":[{"type":%q,"count":1}]}]`, w), fmt.Sprintf(`[{"command":["app"],"slot":"task","count":{"per_resource":{"type":%q,"count":1}}}]`, w), "")
	}
	for _, test := range []struct {
		name      string
		good, bad string
		path      string
	}{
		{"a label", label(256), label(257), "resources[0].label"},
		{"a type", kind(256), kind(257), "resources[0].with[0].type"},
		{"bytes", long(16 << 20), long(16<<20 + 1), ""},
		{"depth", deep(2048), deep(2049), ""},
		{"vertices", many(1024), many(1025), "resources[0].with[1023]"},
		{"tasks", tasks(1024), tasks(1025), "tasks[1024]"},
		{"nesting of resources", nested(jobspec.MaxNesting), nested(jobspec.MaxNesting + 1), "resources[0]" + strings.Repeat(".with[0]", 14) + "...."},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := jobspec.Parse([]byte(test.good))
			require.NoError(t, err)
			s, err := jobspec.Parse([]byte(test.bad))
			require.Nil(t, s)
			require.ErrorContains(t, err, tooMuch)
			path, _ := jobspec.Position(err)
			require.Equal(t, test.path, path)
		})
	}
	_, err := jobspec.Parse([]byte(`"` + strings.Repeat("x", 16<<20) + `"`))
	require.EqualError(t, err, "jobspec: offset 16777216: too many bytes")
}

func TestProductsAndSumsBeyondTheLargestQuantityAreRefused(t *testing.T) {
	const m = jobspec.MaxCount
	rack := func(n, slots, cores int64) string {
		return fmt.Sprintf(`[{"type":"rack","count":%d,"with":[{"type":"slot","count":%d,"label":"task","with":[{"type":"core","count":%d}]}]}]`, n, slots, cores)
	}
	// 2^31-1 racks of 2^22 slots are just within 2^53-1.
	s := parse(t, text(rack(m, 1<<22, 1), "", ""))
	require.Equal(t, fmt.Sprintf("nodes unknown, slots %[1]d, cores %[1]d, gpus 0, tasks %[1]d", int64(m)<<22), size(s.Counts()))
	refuse(t, text(rack(m, m, 1), "", ""), tooMuch, "resources[0].with[0].count", "{")
	refuse(t, text(rack(m, 1<<22, 2), "", ""), tooMuch, "resources[0].with[0].with[0].count", "{")

	// 6361*69431*20394401 is 2^53-1.
	s = parse(t, text(rack(6361, 69431, 20394401), "", ""))
	require.Equal(t, "nodes unknown, slots 441650591, cores 9007199254740991, gpus 0, tasks 441650591", size(s.Counts()))
	// So is (2^31-1)*2^22 and 2^22-1 more.
	sum := strings.TrimSuffix(rack(m, 1<<22, 1), "]") + `,{"type":"slot","count":%d,"label":"b","with":[{"type":"gpu","count":1}]}]`
	s = parse(t, text(fmt.Sprintf(sum, 1<<22-1), "", ""))
	require.Equal(t, "9007199254740991", s.Counts().Slots.String())
	refuse(t, text(fmt.Sprintf(sum, 1<<22), "", ""), tooMuch, "resources", "[")

	one := rack(m, 1<<22, 1)
	two := strings.TrimSuffix(one, "]") + "," + strings.TrimPrefix(strings.Replace(one, `"task"`, `"b"`, 1), "[")
	refuse(t, text(two, "", ""), tooMuch, "resources", "[")

	socket := fmt.Sprintf(`{"type":"socket","count":%d}`, m)
	sockets := fmt.Sprintf(`[{"type":"slot","count":%d,"label":"task","with":[%s,%s]}]`, 1<<22, socket, socket)
	refuse(t, text(sockets, `[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"socket","count":1}}}]`, ""), tooMuch, "tasks", "[")

	task := `{"command":["a"],"slot":"task","count":{"per_slot":%d}}`
	refuse(t, text(rack(m, 1<<22, 1), "["+fmt.Sprintf(task, 2)+"]", ""), tooMuch, "tasks", "[")
	refuse(t, text(rack(m, 1<<22, 1), "["+fmt.Sprintf(task, 1)+","+fmt.Sprintf(task, 1)+"]", ""), tooMuch, "tasks", "[")
}

func TestQuantitiesAreKnownOrNot(t *testing.T) {
	for in, want := range map[int64]string{0: "0", 7: "7", jobspec.MaxQuantity: "9007199254740991", jobspec.MaxQuantity + 1: "unknown", -1: "unknown"} {
		q := jobspec.Known(in)
		require.Equal(t, want, q.String())
		n, ok := q.Value()
		require.Equal(t, want != "unknown", ok)
		if ok {
			require.Equal(t, in, n)
		} else {
			require.Zero(t, n)
		}
	}
	require.Equal(t, "unknown", jobspec.Quantity{}.String())
	require.Equal(t, "nodes unknown, slots unknown, cores unknown, gpus unknown, tasks unknown", size(jobspec.Counts{}))
}

func TestCountsFollowTheResourcesOnceThereAreSome(t *testing.T) {
	perNode := `{"system":{"duration":0,"shell":{"options":{"per-resource":{"type":"node"%s}}}}}`
	perCore := `{"system":{"duration":0,"shell":{"options":{"per-resource":{"type":"core"%s}}}}}`
	const count = `,"count":3`
	nodes := `[{"type":"node","count":4%s,"with":[{"type":"slot","count":2,"label":"task","with":[{"type":"core","count":5}]}]}]`
	slots := `[{"type":"slot","count":%s,"label":"task","with":[{"type":"core","count":5},{"type":"gpu","count":1}]}]`
	plain, exclusive := fmt.Sprintf(nodes, ""), fmt.Sprintf(nodes, `,"exclusive":true`)
	fixed, open := fmt.Sprintf(slots, "6"), fmt.Sprintf(slots, `"2+"`)
	perSlot2 := `[{"command":["a"],"slot":"task","count":{"per_slot":2}}]`
	perGPU := `[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"gpu","count":2}}}]`
	perCoreTask := `[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"core","count":2}}}]`
	got := jobspec.Resources{Nodes: 7, Cores: 100, GPUs: 9, Slots: 11}

	two := `[{"type":"slot","count":"2+","label":"task","with":[{"type":"core","count":1}]},{"type":"slot","count":1,"label":"b","with":[{"type":"core","count":1}]}]`
	inSlot := func(kind string) string {
		return text(`[{"type":"slot","count":1,"label":"task","with":[{"type":"node","count":"2+"},{"type":"ssd","count":"2+"}]}]`,
			`[{"command":["a"],"slot":"task","count":{"per_resource":{"type":"`+kind+`","count":2}}}]`, "")
	}
	for _, test := range []struct{ name, in, before, after string }{
		{"nodes", text(plain, "", ""), "nodes 4, slots 8, cores 40, gpus 0, tasks 8", "nodes 7, slots 8, cores 100, gpus 9, tasks 8"},
		{"exclusive nodes", text(exclusive, "", ""), "nodes 4, slots 8, cores unknown, gpus unknown, tasks 8", "nodes 7, slots 8, cores 100, gpus 9, tasks 8"},
		{"slots", text(fixed, "", ""), "nodes unknown, slots 6, cores 30, gpus 6, tasks 6", "nodes 7, slots 6, cores 100, gpus 9, tasks 6"},
		{"open slots", text(open, perSlot2, ""), "nodes unknown, slots unknown, cores unknown, gpus unknown, tasks unknown", "nodes 7, slots 11, cores 100, gpus 9, tasks 22"},
		{"per gpu of open slots", text(open, perGPU, ""), "nodes unknown, slots unknown, cores unknown, gpus unknown, tasks unknown", "nodes 7, slots 11, cores 100, gpus 9, tasks 18"},
		{"per core of open slots", text(open, perCoreTask, ""), "nodes unknown, slots unknown, cores unknown, gpus unknown, tasks unknown", "nodes 7, slots 11, cores 100, gpus 9, tasks 200"},
		{"per node of nodes", text(plain, "", fmt.Sprintf(perNode, count)), "nodes 4, slots 8, cores 40, gpus 0, tasks 12", "nodes 7, slots 8, cores 100, gpus 9, tasks 12"},
		{"per node of slots", text(fixed, "", fmt.Sprintf(perNode, count)), "nodes unknown, slots 6, cores 30, gpus 6, tasks unknown", "nodes 7, slots 6, cores 100, gpus 9, tasks 21"},
		{"per node, once by default", text(fixed, "", fmt.Sprintf(perNode, "")), "nodes unknown, slots 6, cores 30, gpus 6, tasks unknown", "nodes 7, slots 6, cores 100, gpus 9, tasks 7"},
		{"per core of nodes", text(plain, "", fmt.Sprintf(perCore, count)), "nodes 4, slots 8, cores 40, gpus 0, tasks unknown", "nodes 7, slots 8, cores 100, gpus 9, tasks 300"},
		{"per core of slots", text(fixed, "", fmt.Sprintf(perCore, count)), "nodes unknown, slots 6, cores 30, gpus 6, tasks 90", "nodes 7, slots 6, cores 100, gpus 9, tasks 90"},
		{"per what the shell alone knows", text(fixed, "", strings.Replace(fmt.Sprintf(perCore, count), "core", "gpu", 1)), "nodes unknown, slots 6, cores 30, gpus 6, tasks 6", "nodes 7, slots 6, cores 100, gpus 9, tasks 6"},
		{"per something malformed", text(fixed, "", fmt.Sprintf(perCore, `,"count":0`)), "nodes unknown, slots 6, cores 30, gpus 6, tasks unknown", "nodes 7, slots 6, cores 100, gpus 9, tasks unknown"},
		{"per core, as often as can be", text(fixed, "", fmt.Sprintf(perCore, `,"count":2147483647`)), "nodes unknown, slots 6, cores 30, gpus 6, tasks 64424509410", "nodes 7, slots 6, cores 100, gpus 9, tasks 64424509410"},
		{"per nothing", text(fixed, "", `{"system":{"duration":0,"shell":{"options":{"per-resource":{}}}}}`), "nodes unknown, slots 6, cores 30, gpus 6, tasks unknown", "nodes 7, slots 6, cores 100, gpus 9, tasks unknown"},
		{"a shell without options", text(fixed, "", `{"system":{"duration":0,"shell":7}}`), "nodes unknown, slots 6, cores 30, gpus 6, tasks 6", "nodes 7, slots 6, cores 100, gpus 9, tasks 6"},
		{"per core of slots of two kinds, one of them open", text(two, perCoreTask, ""), "nodes unknown, slots unknown, cores unknown, gpus 0, tasks unknown", "nodes 7, slots 11, cores 100, gpus 9, tasks unknown"},
		{"slots of two kinds, one of them open", text(two, perSlot2, ""), "nodes unknown, slots unknown, cores unknown, gpus 0, tasks unknown", "nodes 7, slots 11, cores 100, gpus 9, tasks unknown"},
		{"nodes of an open slot", inSlot("node"), "nodes unknown, slots 1, cores unknown, gpus unknown, tasks unknown", "nodes 7, slots 1, cores 100, gpus 9, tasks 14"},
		{"what no resource set counts", inSlot("ssd"), "nodes unknown, slots 1, cores unknown, gpus unknown, tasks unknown", "nodes 7, slots 1, cores 100, gpus 9, tasks unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := parse(t, test.in)
			require.Equal(t, test.before, size(s.Counts()))
			require.Equal(t, test.after, size(s.CountsOn(got)))
		})
	}

	t.Run("a resource set that does not tell its slots", func(t *testing.T) {
		s := parse(t, text(open, perSlot2, ""))
		require.Equal(t, "nodes 7, slots unknown, cores 100, gpus 9, tasks unknown", size(s.CountsOn(jobspec.Resources{Nodes: 7, Cores: 100, GPUs: 9})))
	})
	t.Run("numbers beyond all measure", func(t *testing.T) {
		s := parse(t, text(plain, "", fmt.Sprintf(perCore, count)))
		require.Equal(t, "nodes unknown, slots 8, cores unknown, gpus unknown, tasks unknown",
			size(s.CountsOn(jobspec.Resources{Nodes: -1, Cores: math.MaxInt64, GPUs: math.MinInt64, Slots: -1})))
		require.Equal(t, "unknown", s.CountsOn(jobspec.Resources{Cores: jobspec.MaxQuantity}).Tasks.String())
	})
}

func TestLookupFollowsADottedPath(t *testing.T) {
	s := parse(t, system(`,"shell":{"options":{"verbose": 2 ,"deep":{"er":[1, 2]}}},"":{"":7}`))
	for path, want := range map[string]string{
		"version": `1`,
		"attributes.system.shell.options.verbose": `2`,
		"attributes.system.shell.options.deep.er": `[1, 2]`,
		"attributes.system..":                     `7`,
	} {
		got, ok := s.Lookup(path)
		require.True(t, ok, path)
		require.Equal(t, want, string(got), path)
	}
	for _, path := range []string{"", ".", "x", "version.x", "tasks.0", "attributes.system.shell.options.verbose.x", "attributes.", "attributes.system.nothing"} {
		got, ok := s.Lookup(path)
		require.False(t, ok, path)
		require.Nil(t, got)
	}
	got, _ := s.Lookup("version")
	got[0] = '2'
	got, _ = s.Lookup("version")
	require.Equal(t, "1", string(got), "each call returns a copy")
}

func TestASpecKeepsNothingOfItsInput(t *testing.T) {
	in := []byte(system(`,"queue":"q","constraints":{"a":1},"dependencies":[{"scheme":"a","value":"b"}]`))
	s, err := jobspec.Parse(in)
	require.NoError(t, err)
	before := print(t, s) + s.Queue() + s.Name() + string(s.Constraints())
	clear(in)
	require.Equal(t, before, print(t, s)+s.Queue()+s.Name()+string(s.Constraints()))
}

func TestCanonicalTextIsSortedAndKeepsNumbersAndStrings(t *testing.T) {
	s := parse(t, system(`,"z":[1.0,1e2,-0,0.10,9007199254740993],"a":"<&>\u00e9\/\u2028\u0001","é":{"b":null,"a":true}`))
	b, err := json.Marshal(s)
	require.NoError(t, err)
	var compact strings.Builder
	compact.WriteString(print(t, s))
	require.JSONEq(t, compact.String(), string(b), "encoding/json takes it")
	require.Contains(t, compact.String(), `"system":{"a":"<&>é/\u2028\u0001","duration":0,"z":[1.0,1e2,-0,0.10,9007199254740993],"é":{"a":true,"b":null}}`)
	again := parse(t, compact.String())
	require.Equal(t, compact.String(), print(t, again))
}

func TestErrorsQuoteAndCutWhatTheyAreGiven(t *testing.T) {
	long := strings.Repeat("k", 500)
	_, err := jobspec.Parse([]byte(text(`[{"type":"slot","`+long+`":1}]`, "", "")))
	require.Less(t, len(err.Error()), 200)
	_, err = jobspec.Parse([]byte(text(`[{"type":"slot","\u001b[31m":1}]`, "", "")))
	require.EqualError(t, err, `jobspec: resources[0]."\x1b[31m": offset 54: key is not allowed here`)
	s := parse(t, text("", "", ""))
	_, err = s.Update("attributes."+long+".", json.RawMessage(`1`))
	require.Less(t, len(err.Error()), 200)
	_, err = s.Update("attributes.\n\n.", json.RawMessage(`1`))
	require.EqualError(t, err, `jobspec: "attributes.\n\n.": offset 0: path has an empty element`)
}

func TestTheTextIsAsItWasReadWithItsUpdates(t *testing.T) {
	require.Nil(t, new(jobspec.Spec).Text())
	read := ` {"version":1,"tasks":[{"command":["a"],"slot":"t","count":{"per_slot":1}}],
		"resources":[{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]}],
		"attributes":{"system":{"duration":0}}} `
	s, err := jobspec.Parse([]byte(read))
	require.NoError(t, err)
	require.Equal(t, read, string(s.Text()))
	s, err = s.Update("attributes.system.duration", []byte("5"))
	require.NoError(t, err)
	want, err := s.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(want), string(s.Text()))
	made, err := jobspec.New(jobspec.Job{Nodes: 2, Command: []string{"<"}})
	require.NoError(t, err)
	want, err = made.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(want), string(made.Text()))
	require.Equal(t, string(want), fmt.Sprintf("%#v", made))
}
