package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsRedacted: neither the journal nor the scheduler gets the environment, and the
// journal has no key scheduling. The store and the executor have all of it.
func TestWhatIsRedacted(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.ask(5, "events-journal", `{}`)
	spec := strings.Replace(sleep, `{"duration"`, `{"environment":{"HOME":"/x"},"duration"`, 1)
	out := d.submitAs(ownUser, 1, spec)
	require.Contains(t, grep(out, `"submit"`), `"jobspec":`+sleep)
	require.Contains(t, grep(out, "> sched.alloc"), `"jobspec":`+sleep)
	full := strings.Replace(resources(1), `{"version"`, `{"scheduling":{"graph":1},"version"`, 1)
	out = d.respond("sched.alloc", fmt.Sprintf(`{"id":1,"type":0,"R":%s}`, full))
	require.Contains(t, grep(out, `"alloc"`), `"R":`+resources(1))
	require.Contains(t, grep(out, "> job-exec.start"), "HOME")
	out = join(out, d.ask(6, "events-journal", `{}`), d.respond("job-exec.start", `{"id":1,"type":"start","data":{}}`),
		d.finish(1, 0), d.ask(7, "events-journal", `{"full":true}`))
	out = grep(out, "events-journal")
	require.Equal(t, 3, strings.Count(out, `"R_lite":`)) // alloc, and both backlogs
	require.NotContains(t, out, "HOME")
	require.NotContains(t, out, "scheduling")
	require.Contains(t, string(d.stored[1].Jobspec), "HOME")
	require.Contains(t, string(d.stored[1].R), "scheduling")
}

// TestFeasibilityIsAskedWithoutTheEnvironment as the scheduler is.
func TestFeasibilityIsAskedWithoutTheEnvironment(t *testing.T) {
	s := newDesk(t, Config{Queues: map[string]Queue{"a": {}, "b": {}}})
	spec := strings.Replace(sleep, `{"duration"`, `{"environment":{"HOME":"/x"},"queue":"a","duration"`, 1)
	require.Empty(t, s.submitted(16, ownUser, spec))
	out := s.drive(owner("update", `{"id":16,"updates":{"attributes.system.queue":"b"}}`))
	require.Len(t, out.Calls, 1)
	asked := text(t, out.Calls[0].Payload)
	require.Contains(t, asked, `"queue":"b"`)
	require.NotContains(t, asked, "HOME")
}

// FuzzCut compares with a map.
func FuzzCut(f *testing.F) {
	for _, text := range []string{
		`{"a":{"b":1}}`, `{"a":{"b":1,"c":2}}`, `{"a" : { "c":"}\"", "b" : [1,{"b":"]"}] } }`, `{"a":{"c":1 , "b":-1.5e3},"d":{}}`,
		`{"a":[{"b":1}]}`, `[]`, `{"\u0061":{"b":null,"b\\":2}}`, `{"a":{"":1,"b":"x"}`, `{"b":1,"a":2}`, `{"a":{}}`, `{`, `{"a`, `"a":1`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := string(text)
		got := cut(text, "a", "b")
		require.Equal(t, before, string(text))
		if !json.Valid(text) || strings.Count(before, `a`)+strings.Count(before, `b`)+strings.Count(before, `\u`) > 2 {
			return // a key twice is for the parsers to refuse
		}
		require.True(t, json.Valid(got), "%q", got)
		var root, a map[string]json.RawMessage
		if json.Unmarshal(text, &root) != nil || json.Unmarshal(root["a"], &a) != nil || a["b"] == nil {
			require.Equal(t, before, string(got))
			return
		}
		delete(a, "b")
		var left map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(got, &left))
		require.Len(t, left, len(root))
		for key, value := range left {
			if key != "a" {
				require.Equal(t, root[key], value)
				continue
			}
			var inner map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(value, &inner))
			require.Equal(t, a, inner)
		}
	})
}
