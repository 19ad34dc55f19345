package jobstate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// requireSameContext compares field by field, and sets by their ids.
func requireSameContext(t require.TestingT, want, got jobstate.Context) {
	require.IsType(t, want, got)
	requireSameFields(t, reflect.ValueOf(want).Elem(), reflect.ValueOf(got).Elem())
}

func requireSameFields(t require.TestingT, want, got reflect.Value) {
	for i := range want.NumField() {
		name := want.Type().Field(i).Name
		switch w := want.Field(i).Interface().(type) {
		case *idset.Set:
			require.Equal(t, w.String(), got.Field(i).Interface().(*idset.Set).String(), name)
		case jobstate.Ranks:
			require.Equal(t, w.String(), got.Field(i).Interface().(jobstate.Ranks).String(), name)
		case *jobstate.FailedRanks:
			g := got.Field(i).Interface().(*jobstate.FailedRanks)
			require.Equal(t, w == nil, g == nil, name)
			if w != nil {
				requireSameFields(t, reflect.ValueOf(w).Elem(), reflect.ValueOf(g).Elem())
			}
		default:
			require.Equal(t, w, got.Field(i).Interface(), name)
		}
	}
}

func TestEncodingRefusesWhatDecodingWould(t *testing.T) {
	for _, c := range []jobstate.Context{
		&jobstate.SubmitContext{Urgency: 32},
		&jobstate.SubmitContext{Version: -1},
		&jobstate.UrgencyContext{Urgency: 32},
		&jobstate.ExceptionContext{Severity: 8},
		&jobstate.ExceptionContext{Note: "\xff"},
		&jobstate.DependencyAddContext{Description: "\xff"},
		&jobstate.DependencyAddContext{Extra: json.RawMessage(`{"description":"twice"}`)},
		&jobstate.DependencyAddContext{Extra: json.RawMessage(`{"a":1`)},
		&jobstate.DependencyAddContext{Extra: json.RawMessage(`[]`)},
		&jobstate.JobspecUpdateContext{},
		&jobstate.JobspecUpdateContext{Updates: []jobstate.Update{{Path: "version", Value: json.RawMessage("1")}}},
		&jobstate.JobspecUpdateContext{Updates: []jobstate.Update{{Path: "attributes.a", Value: json.RawMessage("}")}}},
		&jobstate.JobspecUpdateContext{Updates: []jobstate.Update{{Path: "attributes.a"}}},
		&jobstate.JobspecUpdateContext{Updates: []jobstate.Update{{Path: "tasks", Value: json.RawMessage("1")}, {Path: "tasks", Value: json.RawMessage("1")}}},
		&jobstate.ResourceUpdateContext{Expiration: -1},
		&jobstate.ResourceUpdateContext{Expiration: eventlog.Timestamp(math.NaN())},
		&jobstate.ResourceUpdateContext{Expiration: eventlog.Timestamp(math.Inf(1))},
		&jobstate.AllocContext{Annotations: json.RawMessage(`{"a":`)},
		&jobstate.AllocContext{Annotations: json.RawMessage(`[]`)},
		&jobstate.MemoContext{},
		&jobstate.MemoContext{Values: json.RawMessage(`1`)},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Description: "no kind"}},
		&jobstate.ActionFinishContext{ActionKey: jobstate.ActionKey{Description: "no kind"}},
		&jobstate.SetFlagsContext{Flags: []string{"\xc0"}},
		&jobstate.SubmitContext{Extra: json.RawMessage(`{"version":1}`)},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, Extra: json.RawMessage(`{"ranks":"0"}`)},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, Resources: []string{""}},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, Resources: []string{"a", "a"}},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, Resources: []string{"\xff"}},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, ActionMode: jobstate.ActionMode{PerRank: true, Leader: jobstate.Some[uint32](0)}},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, ActionMode: jobstate.ActionMode{Leader: jobstate.Some[uint32](1 << 31)}},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, Attempt: 1},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, ActionMode: jobstate.ActionMode{Timeout: -1}},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, ActionMode: jobstate.ActionMode{KillTimeout: -1}},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, OnFailure: jobstate.OnFailureHold},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionEpilog}, ReleaseAfter: jobstate.Some[fsd.Duration](0)},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionHousekeeping}, ReleaseAfter: jobstate.Some[fsd.Duration](-1)},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionHousekeeping}, OnFailure: "Drain"},
		&jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionHousekeeping}, Extra: json.RawMessage(`{"on-failure":"hold"}`)},
		&jobstate.ActionLaunchContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, Attempt: 1, ActionMode: jobstate.ActionMode{PerRank: true, Leader: jobstate.Some[uint32](0)}},
		&jobstate.ActionLaunchContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, Attempt: 1, Extra: json.RawMessage(`{"leader":1}`)},
		&jobstate.ActionLaunchContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}},
		&jobstate.ActionLaunchContext{Attempt: 1},
		&jobstate.ActionFailContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}},
		&jobstate.ActionFailContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog}, Ranks: idset.Of(1), Note: "\xff"},
		&jobstate.ActionReleaseContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionEpilog}, Resources: []string{"a", ""}},
		&jobstate.ActionReleaseContext{ActionKey: jobstate.ActionKey{Kind: 4}},
		&jobstate.DrainedContext{Extra: json.RawMessage(`{"ranks":""}`)},
		&jobstate.ExceptionContext{Failed: &jobstate.FailedRanks{Ranks: idset.Of(1), Action: jobstate.FailedKeep}},
		&jobstate.ExceptionContext{Severity: 1, Failed: &jobstate.FailedRanks{Action: jobstate.FailedKeep}},
		&jobstate.ExceptionContext{Severity: 1, Failed: &jobstate.FailedRanks{Ranks: idset.Of(1)}},
		&jobstate.ExceptionContext{Severity: 1, Failed: &jobstate.FailedRanks{Ranks: idset.Of(1), Action: 3}},
		&jobstate.ExceptionContext{Severity: 1, Extra: json.RawMessage(`{"ranks":1,"action":2}`)},
	} {
		out, err := jobstate.AppendContext([]byte("before"), c)
		require.ErrorIs(t, err, jobstate.ErrContext, "%#v", c)
		require.Equal(t, "before", string(out))
		_, err = jobstate.NewEntry(1, c)
		require.Error(t, err)
	}
	_, err := jobstate.NewEntry(0, &jobstate.PriorityContext{})
	require.ErrorIs(t, err, eventlog.ErrEntry)
	one := jobstate.Update{Path: "tasks", Value: json.RawMessage("1")}
	_, err = jobstate.NewEntry(1, &jobstate.JobspecUpdateContext{Updates: []jobstate.Update{one, one}})
	require.EqualError(t, err, "jobstate: malformed context of jobspec-update: tasks: path appears twice")
}

// TestRecordedContextsRoundTrip: the contexts of recorded jobs encode to the
// bytes that Flux wrote, where we write keys in its order.
func TestRecordedContextsRoundTrip(t *testing.T) {
	n := 0
	for _, r := range committed(t) {
		for e, err := range eventlog.Entries([]byte(r.Eventlog)) {
			require.NoError(t, err)
			c, err := jobstate.ParseContext(e)
			require.NoError(t, err)
			if c == nil {
				continue
			}
			got, err := jobstate.AppendContext(nil, c)
			require.NoError(t, err)
			if e.Name == "jobspec-update" || e.Name == "resource-update" || e.Name == "exception" {
				require.JSONEq(t, string(e.Context), string(got))
			} else {
				require.Equal(t, string(e.Context), string(got), e.Name)
			}
			n++
		}
	}
	require.Greater(t, n, 100)
}

func TestWhatIsNotSetIsNotWritten(t *testing.T) {
	all := jobstate.Ranks{All: true}
	for want, c := range map[string]jobstate.Context{
		`{"userid":1,"urgency":16,"flags":0}`:      &jobstate.SubmitContext{UserID: 1, Urgency: 16},
		`{"type":"x","severity":1,"note":""}`:      &jobstate.ExceptionContext{Type: "x", Severity: 1},
		`{"description":"prolog"}`:                 &jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "prolog"}, Ranks: all},
		`{"description":"h"}`:                      &jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionHousekeeping, Description: "h"}, Ranks: all},
		`{"description":"h","release-after":"0s"}`: &jobstate.ActionStartContext{ActionKey: jobstate.ActionKey{Kind: jobstate.ActionHousekeeping, Description: "h"}, Ranks: all, ReleaseAfter: jobstate.Some[fsd.Duration](0)},
	} {
		out, err := jobstate.AppendContext(nil, c)
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}

// TestContextFieldsAllSurvive sets every field of every type by reflection, so
// that a field that is added and forgotten in the codec is found.
func TestContextFieldsAllSurvive(t *testing.T) {
	for _, c := range []jobstate.Context{
		&jobstate.SubmitContext{}, &jobstate.DependencyAddContext{}, &jobstate.DependencyRemoveContext{},
		&jobstate.SetFlagsContext{}, &jobstate.JobspecUpdateContext{}, &jobstate.ResourceUpdateContext{},
		&jobstate.PriorityContext{}, &jobstate.UrgencyContext{}, &jobstate.AllocContext{},
		&jobstate.ActionStartContext{}, &jobstate.ActionLaunchContext{}, &jobstate.ActionFailContext{}, &jobstate.ActionReleaseContext{},
		&jobstate.ActionFinishContext{}, &jobstate.DrainedContext{}, &jobstate.FinishContext{}, &jobstate.ReleaseContext{},
		&jobstate.ExceptionContext{}, &jobstate.MemoContext{},
	} {
		fill(t, reflect.ValueOf(c).Elem())
		switch c := c.(type) { // Leader excludes PerRank
		case *jobstate.ActionStartContext:
			c.Leader = jobstate.Optional[uint32]{}
			c.Kind = jobstate.ActionHousekeeping // which alone has all of the keys
		case *jobstate.ActionLaunchContext:
			c.Leader = jobstate.Optional[uint32]{}
		}
		e, err := jobstate.NewEntry(1, c)
		require.NoError(t, err, "%T", c)
		back, err := jobstate.ParseContext(e)
		require.NoError(t, err)
		requireSameContext(t, c, back)
	}
}

func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case json.RawMessage:
			f.SetBytes([]byte(`{"other":1}`))
		case []string:
			f.Set(reflect.ValueOf([]string{"a", "b"}))
		case []jobstate.Update:
			f.Set(reflect.ValueOf([]jobstate.Update{{Path: "attributes.x", Value: json.RawMessage(`2`)}}))
		case string:
			f.SetString("text")
		case jobstate.OnFailure:
			f.SetString("hold")
		case jobstate.ActionKey, jobstate.ActionMode:
			fill(t, f)
		case jobstate.Optional[uint32], jobstate.Optional[int32], jobstate.Optional[fsd.Duration]:
			f.FieldByName("Set").SetBool(true)
		case eventlog.Timestamp:
			f.SetFloat(1.25)
		case jobstate.Ranks:
			f.Set(reflect.ValueOf(jobstate.Ranks{All: true}))
		case *idset.Set:
			f.Set(reflect.ValueOf(idset.Of(1, 2, 9)))
		case *jobstate.FailedRanks:
			f.Set(reflect.ValueOf(&jobstate.FailedRanks{Ranks: idset.Of(4), Nodelist: "n[4]", Action: jobstate.FailedKeep}))
		case bool:
			f.SetBool(true)
		default:
			switch f.Kind() {
			case reflect.Uint8, reflect.Uint32:
				f.SetUint(1)
			case reflect.Int, reflect.Int32, reflect.Int64:
				f.SetInt(1)
			default:
				t.Fatalf("field %s of %s is of a kind that the test does not fill", v.Type().Field(i).Name, v.Type())
			}
		}
	}
}

func TestParseContextHasNoneForOthers(t *testing.T) {
	for _, name := range []string{"validate", "invalidate", "depend", "flux-restart", "start", "free", "clean", "debug.x", ""} {
		c, err := jobstate.ParseContext(eventlog.Entry{Timestamp: 1, Name: name, Context: []byte(`{"a":1}`)})
		require.NoError(t, err)
		require.Nil(t, c)
	}
}

func TestAnnotationsMergeByRFC27(t *testing.T) {
	alloc := `alloc {"annotations":{"sched":{"resource_summary":"rank0/core0","n":null},"user":{"a":1},"empty":{}}}`
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"alloc's, nulls and empty ones dropped": {[]string{alloc}, `{"sched":{"resource_summary":"rank0/core0"},"user":{"a":1}}`},
		"a memo replaces":                       {[]string{alloc, `memo {"a":[2]}`}, `{"sched":{"resource_summary":"rank0/core0"},"user":{"a":[2]}}`},
		"a null removes, and the empty user":    {[]string{alloc, `memo {"a":null}`}, `{"sched":{"resource_summary":"rank0/core0"}}`},
		"a null of nothing is nothing":          {[]string{`memo {"zz":null}`}, ``},
		"of alloc they are optional":            {[]string{"alloc"}, ``},
		"dictionaries merge":                    {[]string{`memo {"d":{"x":1,"y":{"z":1}}}`, `memo {"d":{"x":null,"y":{"w":2}}}`}, `{"user":{"d":{"y":{"z":1,"w":2}}}}`},
		"a value becomes a dictionary":          {[]string{`memo {"d":1}`, `memo {"d":{"x":1}}`}, `{"user":{"d":{"x":1}}}`},
		"a dictionary becomes a value":          {[]string{`memo {"d":{"x":1}}`, `memo {"d":1}`}, `{"user":{"d":1}}`},
		"white space goes":                      {[]string{"memo { \"d\" : [ 1 , 2 ] }"}, `{"user":{"d":[1,2]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := run(t, append(upTo(jobstate.StateSched), c.lines...)...)
			require.Equal(t, c.want, string(j.Annotations()))
		})
	}
}

// TestAnnotationsTakeMemoryForWhatIsLeft: a memo that a job repeats for weeks costs
// what one does.
func TestAnnotationsTakeMemoryForWhatIsLeft(t *testing.T) {
	j, _ := run(t, submit)
	for i := range 10_000 {
		_, err := j.Apply(entry(i+1, "memo", fmt.Sprintf(`{"progress":%d}`, i)))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, jobstate.AnnotationsSize(j), 1<<10)
	require.Equal(t, `{"user":{"progress":9999}}`, string(j.Annotations()))
	large := strings.Repeat("x", 1<<16)
	k, _ := run(t, submit, `memo {"a":"`+large+`"}`)
	require.LessOrEqual(t, jobstate.AnnotationsSize(k), 1<<16+100, "the only one")
	for i := range 100 {
		_, err := j.Apply(entry(i+1, "memo", fmt.Sprintf(`{"%d":%q,"%d":null}`, i, large, i-1)))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, jobstate.AnnotationsSize(j), 5<<16)
	require.Greater(t, jobstate.AnnotationsSize(j), 3<<15)
	want := `{"user":{"progress":9999,"99":"` + large + `"}}`
	require.Equal(t, want, string(j.Annotations()))
	for _, e := range script(`validate`, `exception {"type":"x","severity":0,"note":""}`, "clean") {
		_, err := j.Apply(e)
		require.NoError(t, err)
	}
	require.Equal(t, want, string(j.Annotations()))
	require.LessOrEqual(t, jobstate.AnnotationsSize(j), jobstate.AnnotationsLen(j)*5/4, "a closed log")
}

// TestAnnotationsEqualTheNaiveMerge compares random sequences of memos.
func TestAnnotationsEqualTheNaiveMerge(t *testing.T) {
	key := rapid.StringMatching(`[a-d]|k[0-9]{1,2}`)
	var val func(depth int) *rapid.Generator[any]
	val = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](1.0), rapid.Just[any]("s"), rapid.Just[any](true))
		if depth == 0 {
			return leaf
		}
		dict := rapid.Custom(func(t *rapid.T) any {
			return map[string]any(rapid.MapOfN(key, val(depth-1), 0, 20).Draw(t, "dict"))
		})
		return rapid.OneOf(leaf, dict)
	}
	rapid.Check(t, func(t *rapid.T) {
		j, want := jobstate.NewJob(1), map[string]any{}
		_, err := j.Apply(script(submit)[0])
		require.NoError(t, err)
		for i := range rapid.IntRange(1, 12).Draw(t, "memos") {
			memo := rapid.MapOfN(key, val(2), 0, 20).Draw(t, "memo")
			_, err := j.Apply(entry(i+1, "memo", marshal(memo)))
			require.NoError(t, err)
			naiveMerge(want, map[string]any{"user": any(memo)})
			require.NoError(t, jobstate.Check(j))
			if len(want) == 0 {
				require.Nil(t, j.Annotations())
				continue
			}
			require.JSONEq(t, marshal(want), string(j.Annotations()))
		}
	})
}

// TestMergeAnnotationsIsTheMergeOfALog: what a manager merges before an event is what the
// log's reader merges after it.
func TestMergeAnnotationsIsTheMergeOfALog(t *testing.T) {
	cases := []struct{ into, patch, want string }{
		{"", `{"sched":{"a":1}}`, `{"sched":{"a":1}}`},
		{`{"sched":{"a":1}}`, "", `{"sched":{"a":1}}`},
		{"", "", ""},
		{`{"user":{"k":1},"sched":{"a":1,"b":2}}`, `{"sched": {"a":null,"c":3}}`, `{"user":{"k":1},"sched":{"b":2,"c":3}}`},
		{`{"sched":{"a":1}}`, `{"sched":{"a":null}}`, ""},
		{"", `{"sched":{"a":null,"b":{}}}`, ""},
	}
	for _, c := range cases {
		got, err := jobstate.MergeAnnotations(json.RawMessage(c.into), json.RawMessage(c.patch))
		require.NoError(t, err)
		require.Equal(t, c.want, string(got))
		require.Equal(t, c.want == "", got == nil)
	}
	for _, bad := range []string{"[]", "null", `{"a":`, `{"a":1} x`, `{"a":1}{"b":2}`, " "} {
		_, err := jobstate.MergeAnnotations(nil, json.RawMessage(bad))
		require.Error(t, err, bad)
		_, err = jobstate.MergeAnnotations(json.RawMessage(bad), nil)
		require.Error(t, err, bad)
	}
}

// flux-core writes the event alloc of a job without annotations without a context.
func TestAllocWithoutAnnotationsHasNoContext(t *testing.T) {
	e, err := jobstate.NewEntry(1, &jobstate.AllocContext{})
	require.NoError(t, err)
	require.Nil(t, e.Context)
	e, err = jobstate.NewEntry(1, &jobstate.AllocContext{Extra: []byte(`{"bypass":true}`)})
	require.NoError(t, err)
	require.Equal(t, `{"bypass":true}`, string(e.Context))
}

// elapsed returns how long a call of f takes, the best of five.
func elapsed(f func()) time.Duration {
	best := time.Hour
	for range 5 {
		testing.Benchmark(func(b *testing.B) {
			f()
			best = min(best, b.Elapsed())
			b.FailNow() // which ends it: once is enough
		})
	}
	return best
}

func TestUpdatesCostInProportion(t *testing.T) {
	encode := func(n int) func() {
		c := &jobstate.JobspecUpdateContext{}
		for i := range n {
			c.Updates = append(c.Updates, jobstate.Update{Path: fmt.Sprintf("tasks.%05d", i), Value: json.RawMessage("1")})
		}
		return func() {
			_, err := jobstate.NewEntry(1, c)
			require.NoError(t, err)
		}
	}
	require.Less(t, elapsed(encode(48_000)), 64*elapsed(encode(3_000)), "16 times as many")
}
