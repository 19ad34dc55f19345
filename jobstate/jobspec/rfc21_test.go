package jobspec_test

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
)

func TestRFC21AnUpdateSetsWhatItsPathNames(t *testing.T) {
	s := parse(t, system(`,"queue":"debug","x":{"a":[1],"b":2}`))
	for _, test := range []struct{ path, value, want string }{
		{"attributes.system.duration", `3600`, `{"system":{"duration":3600,"queue":"debug","x":{"a":[1],"b":2}}}`},
		{"attributes.system.duration", ` 1e2 `, `{"system":{"duration":1e2,"queue":"debug","x":{"a":[1],"b":2}}}`},
		{"attributes.system.queue", `"batch"`, `{"system":{"duration":0,"queue":"batch","x":{"a":[1],"b":2}}}`},
		{"attributes.system.x.a", `{"k":[true,null,"\u00e9<"]}`, `{"system":{"duration":0,"queue":"debug","x":{"a":{"k":[true,null,"é<"]},"b":2}}}`},
		{"attributes.system.x", `null`, `{"system":{"duration":0,"queue":"debug","x":null}}`},
		{"attributes.system.job.name", `"n"`, `{"system":{"duration":0,"job":{"name":"n"},"queue":"debug","x":{"a":[1],"b":2}}}`},
		{"attributes.system.shell.options.verbose", `2`, `{"system":{"duration":0,"queue":"debug","shell":{"options":{"verbose":2}},"x":{"a":[1],"b":2}}}`},
		{"attributes.user.tag", `"t"`, `{"system":{"duration":0,"queue":"debug","x":{"a":[1],"b":2}},"user":{"tag":"t"}}`},
		{"attributes.system", `{"duration":1}`, `{"system":{"duration":1}}`},
		{"attributes.system.two words", `1`, `{"system":{"duration":0,"queue":"debug","two words":1,"x":{"a":[1],"b":2}}}`},
	} {
		t.Run(test.path, func(t *testing.T) {
			before := print(t, s)
			next, err := s.Update(test.path, json.RawMessage(test.value))
			require.NoError(t, err)
			want := `{"attributes":` + test.want + `,"resources":[{"count":1,"label":"task","type":"slot","with":[{"count":1,"type":"core"}]}],` +
				`"tasks":[{"command":["app"],"count":{"per_slot":1},"slot":"task"}],"version":1}`
			require.Equal(t, want, print(t, next))
			require.Equal(t, before, print(t, s), "the old view stays")
			require.Same(t, s, next.Original())
			require.Same(t, s, s.Original())
		})
	}
}

// event yields the updates of the context of an event jobspec-update.
func event(context string) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		d := jsonobj.NewDoc([]byte(context))
		for o := d.Object(); o.Next() && yield(string(o.Key()), o.Value().Raw()); {
		}
	}
}

func TestAnUpdateMaySetResourcesAndTasks(t *testing.T) { // flux-core#5419
	s := parse(t, text("", "", ""))
	next, err := s.UpdateAll(event(`{"resources":[{"type":"slot","label":"task","count":2,"with":[{"type":"core","count":3}]}],` +
		`"tasks":[{"command":["b","c"],"slot":"task","count":{"per_slot":1}}]}`))
	require.NoError(t, err)
	require.Equal(t, "nodes unknown, slots 2, cores 6, gpus 0, tasks 2", size(next.Counts()))
	require.Equal(t, "b", next.Name())
	next, err = next.Update("attributes", json.RawMessage(`{"system":{"duration":7}}`))
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, next.Duration())
}

func TestRFC21UpdatesChangeWhatTheViewsSay(t *testing.T) {
	first := parse(t, system(`,"constraints":{"a":1},"job":{"name":"old"}`))
	second, err := first.UpdateAll(event(`{"attributes.system.duration":90.5,"attributes.system.queue":"q","attributes.system.bank":"b",
		"attributes.system.project":"p","attributes.system.cwd":"/c","attributes.system.job":{},"attributes.system.preemptible-after":7,
		"attributes.system.constraints.a":2,"attributes.system.dependencies":[{"scheme":"s","value":"v"}],
		"attributes.system.shell.options.per-resource":{"type":"core","count":3}}`))
	require.NoError(t, err)
	require.Equal(t, 90500*time.Millisecond, second.Duration())
	require.Equal(t, []string{"app", "/c", "q", "b", "p"}, []string{second.Name(), second.Cwd(), second.Queue(), second.Bank(), second.Project()})
	require.JSONEq(t, `{"a":2}`, string(second.Constraints()))
	require.Equal(t, "nodes unknown, slots 1, cores 1, gpus 0, tasks 3", size(second.Counts()))
	for d := range second.Dependencies() {
		require.Equal(t, "s=v", d.Scheme+"="+d.Value)
	}
	third, err := second.Update("attributes.system.duration", json.RawMessage(`0`))
	require.NoError(t, err)
	require.Zero(t, third.Duration())
	require.Same(t, first, third.Original(), "the view without any update")
	require.Equal(t, "old", third.Original().Name())
	require.Equal(t, "q", third.Queue())
}

func TestRFC21KeysOfAnEventApplyInTheirOrder(t *testing.T) {
	s := parse(t, text("", "", ""))
	for context, want := range map[string]time.Duration{
		`{"attributes.system":{"duration":1},"attributes.system.duration":2}`: 2 * time.Second,
		`{"attributes.system.duration":2,"attributes.system":{"duration":1}}`: 1 * time.Second,
	} {
		next, err := s.UpdateAll(event(context))
		require.NoError(t, err)
		require.Equal(t, want, next.Duration())
	}
}

func TestRFC21AnEventMaySetTogetherWhatIsWrongAlone(t *testing.T) {
	s := parse(t, text("", "", ""))
	next, err := s.UpdateAll(event(`{"attributes.system":{"queue":"q"},"attributes.system.duration":5}`))
	require.NoError(t, err, "only the result has to be a jobspec")
	require.Equal(t, 5*time.Second, next.Duration())
	_, err = s.Update("attributes.system", json.RawMessage(`{"queue":"q"}`))
	require.ErrorContains(t, err, anyFault)
}

func TestRFC21UpdatesThatAreRefused(t *testing.T) {
	s := parse(t, system(`,"x":{"n":7,"null":null,"list":[{}]}`))
	before := print(t, s)
	for _, test := range []struct {
		path, value string
		cause       string
		message     string
	}{
		{"", `1`, anyFault, `offset 0: path must begin with attributes, resources or tasks`},
		{"attributes", `1`, anyFault, `attributes: must be an object`},
		{"version", `1`, anyFault, `version: offset 0: path must begin with attributes, resources or tasks`},
		{"attribute.x", `1`, anyFault, `attribute.x: offset 0: path must begin with attributes, resources or tasks`},
		{"attributesx.y", `1`, anyFault, `attributesx.y: offset 0: path must begin with attributes, resources or tasks`},
		{"resources", `[]`, anyFault, ``},
		{"tasks.x", `1`, anyFault, `tasks.x: offset 0: path leads through a value that is not an object`},
		{"attributes.", `1`, anyFault, `attributes.: offset 0: path has an empty element`},
		{"attributes.system.", `1`, anyFault, `attributes.system.: offset 0: path has an empty element`},
		{"attributes..system", `1`, anyFault, `attributes..system: offset 0: path has an empty element`},
		{"attributes.system.x.n.y", `1`, anyFault, `attributes.system.x.n.y: offset 0: path leads through a value that is not an object`},
		{"attributes.system.x.null.y", `1`, anyFault, `attributes.system.x.null.y: offset 0: path leads through a value that is not an object`},
		{"attributes.system.x.list.0", `1`, anyFault, `attributes.system.x.list.0: offset 0: path leads through a value that is not an object`},
		{"attributes.user.0\xde", `{}`, anyFault, `"attributes.user.0\xde": offset 0: path must be UTF-8 without U+0000`},
		{"attributes.user.\x00\n", `{}`, anyFault, `"attributes.user.\x00\n": offset 0: path must be UTF-8 without U+0000`},
		{"attributes.system.y", ``, anyFault, ``},
		{"attributes.system.y", `1,"z":2`, anyFault, ``},
		{"attributes.system.y", `{"a":1,"a":2}`, anyFault, ``},
		{"attributes.system.y", "\"\xff\"", anyFault, ``},
		{"attributes.system.duration", `-1`, anyFault, `attributes.system.duration: must be at least 0`},
		{"attributes.system.duration", `null`, anyFault, `attributes.system.duration: must be a number`},
		{"attributes.system.queue", `null`, anyFault, `attributes.system.queue: must be a string`},
		{"attributes.other", `1`, anyFault, `attributes.other: key is not allowed here`},
		{"attributes.system", `1`, anyFault, `attributes.system: must be an object`},
		{"attributes" + strings.Repeat(".a", 2048), `1`, tooMuch, ``},
		{"attributes.system" + strings.Repeat(".a", 2046), `1`, tooMuch, ``},
		{"attributes.system.x", strings.Repeat("[", 2046) + strings.Repeat("]", 2046), tooMuch, ``},
	} {
		next, err := s.Update(test.path, json.RawMessage(test.value))
		require.Nil(t, next)
		require.ErrorContains(t, err, test.cause, "%.80s", test.path)
		require.Equal(t, before, print(t, s))
		if test.message == "" {
			require.Less(t, len(err.Error()), 250)
			continue
		}
		require.EqualError(t, err, "jobspec: "+test.message)
	}
	_, err := s.Update("attributes.system"+strings.Repeat(".a", 2045), json.RawMessage(`1`))
	require.NoError(t, err, "as deep as a jobspec may be")
}

func TestRFC21EventsThatAreRefused(t *testing.T) {
	s := parse(t, text("", "", ""))
	before := print(t, s)
	for context, want := range map[string]string{
		`{"attributes.system.duration":5,"taskz":[]}`:                  `jobspec: taskz: offset 0: path must begin with attributes, resources or tasks`,
		`{"attributes.system.duration":5,"attributes.system.a..b":[]}`: `jobspec: attributes.system.a..b: offset 0: path has an empty element`,
		`{"attributes.system.a":1,"attributes.system.a.b":2}`:          `jobspec: attributes.system.a.b: offset 0: path leads through a value that is not an object`,
		`{"attributes.system.duration":"5"}`:                           `jobspec: attributes.system.duration: must be a number`,
	} {
		next, err := s.UpdateAll(event(context))
		require.Nil(t, next)
		require.EqualError(t, err, want)
		require.Equal(t, before, print(t, s))
	}
}

func TestLimitsHoldForUpdates(t *testing.T) {
	const most = 16 << 20
	s := parse(t, text("", "", ""))
	_, err := s.Update("attributes.system.x", json.RawMessage(`"`+strings.Repeat("x", most)+`"`))
	require.ErrorContains(t, err, tooMuch, "the value alone is too large")
	s, err = s.Update("attributes.system.x", json.RawMessage(`"`+strings.Repeat("x", most-1000)+`"`))
	require.NoError(t, err)
	_, err = s.Update("attributes.system.y", json.RawMessage(`"`+strings.Repeat("y", 1000)+`"`))
	require.ErrorContains(t, err, tooMuch, "the result is too large")
}
