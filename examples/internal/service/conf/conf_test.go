package conf

import (
	"encoding/json"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
)

const whole = `{
	"policy": {
		"jobspec": {"defaults": {"system": {"duration": "1h", "queue": "batch"}}},
		"limits": {"duration": "4h", "job-size": {"max": {"nnodes": 8, "ngpus": 4}, "min": {"ncores": 2}}},
		"access": {"allow-user": ["alice"], "allow-group": []},
		"scheduler": {"any": 1}
	},
	"queues": {
		"batch": {},
		"debug": {
			"requires": ["debug", "fast"],
			"policy": {"limits": {"duration": "0", "job-size": {"max": {"ngpus": -1}}}, "jobspec": {"defaults": {"system": {"duration": "1m"}}}}
		}
	},
	"exec": {"imp": "/bin/imp"},
	"job-manager": {
		"inactive-age-limit": "7d",
		"inactive-num-limit": 10000,
		"max-active-jobs": 3,
		"journal-size-limit": 10,
		"stop-queues-on-restart": true,
		"plugins": [{"load": "perilog.so"}],
		"housekeeping": {"release-after": "1m", "use-systemd-unit": true},
		"prolog": {"per-rank": true, "timeout": "infinity", "kill-timeout": 1.5, "cancel-on-exception": false},
		"epilog": {"command": ["/bin/epilog", "x"], "timeout": "30s"},
		"perilog": {"log-ignore": ["^foo:.*", "bar"]}
	},
	"access": {"allow-guest-user": true, "private-mode": true},
	"resource": {"any": 1}
}`

func TestParse(t *testing.T) {
	four, none := jobstate.Some(4), jobstate.Some(-1)
	no, minute := false, fsd.Duration(time.Minute)
	want := service.Config{
		Manager: joblife.Config{
			Owner: 100, QueuesStopped: true, Private: true,
			Limits: purge.Limits{MaxAge: jobstate.Some(7 * 24 * time.Hour), MaxCount: jobstate.Some(10000)},
			Actions: perilog.Config{
				Housekeeping: &perilog.HousekeepingConfig{
					Command: []string{"/bin/imp", "run", "housekeeping"}, ReleaseAfter: &minute, OnFailure: jobstate.OnFailureRelease,
				},
				Prologs: []perilog.ActionConfig{{
					Command: []string{"/bin/imp", "run", "prolog"}, PerRank: true, Timeout: fsd.Forever,
					KillTimeout: fsd.Duration(1500 * time.Millisecond), CancelOnException: &no,
				}},
				Epilogs: []perilog.ActionConfig{{Command: []string{"/bin/epilog", "x"}, Timeout: fsd.Duration(30 * time.Second)}},
			},
		},
		Queues: map[string]service.Queue{
			"batch": {},
			"debug": {
				Requires: []string{"debug", "fast"},
				Limits:   service.Limits{Duration: jobstate.Some(fsd.Duration(0)), Max: service.Size{GPUs: none}},
			},
		},
		Limits: service.Limits{
			Duration: jobstate.Some(fsd.Duration(4 * time.Hour)),
			Max:      service.Size{Nodes: jobstate.Some(8), GPUs: four},
			Min:      service.Size{Cores: jobstate.Some(2)},
		},
		MaxActive: 3, StopQueues: true,
		LogIgnore: []*regexp.Regexp{regexp.MustCompile("^foo:.*"), regexp.MustCompile("bar")},
		Warnings:  []string{"job-manager.housekeeping.use-systemd-unit is deprecated - ignoring"},
	}
	got, err := Parse(service.Config{Manager: joblife.Config{Owner: 100}}, []byte(whole))
	require.NoError(t, err)
	require.Equal(t, want, got)

	got, err = Parse(got, []byte("{}")) // what is not there any more is as by default
	require.NoError(t, err)
	require.Equal(t, service.Config{
		Manager: joblife.Config{Owner: 100, QueuesStopped: true},
		Queues:  map[string]service.Queue{},
	}, got)

	for text, whole := range map[string]bool{`{}`: false, `{"partial-release":true}`: false, `{"partial-release":false}`: true} {
		got, err = Parse(service.Config{}, []byte(`{"job-manager":{"perilog":`+text+`}}`))
		require.NoError(t, err)
		require.Equal(t, whole, got.Manager.Actions.WholeJob, text)
	}

	got, err = Parse(service.Config{}, []byte(`{"job-manager":{"inactive-age-limit":"inf","inactive-num-limit":-1,
		"prolog":{"command":["a"],"timeout":"0"},"housekeeping":{"command":["b"],"release-after":"inf"}}}`))
	require.NoError(t, err)
	require.Equal(t, service.Config{Queues: map[string]service.Queue{}, Manager: joblife.Config{QueuesStopped: true, Actions: perilog.Config{
		Prologs:      []perilog.ActionConfig{{Command: []string{"a"}, Timeout: fsd.Forever}},
		Housekeeping: &perilog.HousekeepingConfig{Command: []string{"b"}, OnFailure: jobstate.OnFailureRelease},
	}}}, got)
}

// TestRefuse has the errors that people see, with the words of flux-core.
func TestRefuse(t *testing.T) {
	const policy, table = "error parsing [policy", "] config table: "
	cases := []struct{ text, want string }{
		{``, "the configuration is not a JSON object"},
		{`[]`, "the configuration is not a JSON object"},
		{`{`, "the configuration is not a JSON object"},
		{`{"queues":{},"queues":{}}`, "the configuration is not a JSON object"}, // which setting counts, nobody knows
		{`{"policy":{"limits":{"duration":"1h","duration":"2h"}}}`, policy + ".limits" + table + `"duration": key comes twice`},
		{`{"job-manager":{"x":1,"x":1}}`, `job-manager.max-inactive-*: "x": key comes twice`},

		{`{"policy":1}`, policy + table + "Expected object, got integer"},
		{`{"policy":{"foo":1}}`, policy + table + "1 object item(s) left unpacked: foo"},
		{`{"policy":{"jobspec":{"foo":1}}}`, policy + ".jobspec" + table + "1 object item(s) left unpacked: foo"},
		{`{"policy":{"jobspec":{"defaults":1.5}}}`, policy + ".jobspec" + table + "Expected object, got real"},
		{`{"policy":{"jobspec":{"defaults":{"foo":1,"bar":1}}}}`, policy + ".jobspec" + table + "2 object item(s) left unpacked: bar, foo"},
		{`{"policy":{"jobspec":{"defaults":{"system":{"foo":1}}}}}`, policy + ".jobspec" + table + "1 object item(s) left unpacked: foo"},
		{`{"policy":{"jobspec":{"defaults":{"system":{"duration":1}}}}}`, policy + ".jobspec" + table + "'defaults.system.duration' is not a valid FSD"},
		{`{"policy":{"jobspec":{"defaults":{"system":{"queue":1}}}}}`, policy + ".jobspec" + table + "'defaults.system.queue' is not a string"},
		{`{"policy":{"jobspec":{"defaults":{"system":{"queue":null}}}}}`, policy + ".jobspec" + table + "'defaults.system.queue' is not a string"},
		{`{"policy":{"limits":{"foo":1}}}`, policy + ".limits" + table + "1 object item(s) left unpacked: foo"},
		{`{"policy":{"limits":{"duration":1.0}}}`, policy + ".limits" + table + "'duration' is not a valid FSD"},
		{`{"policy":{"limits":{"duration":"1x"}}}`, policy + ".limits" + table + "'duration' is not a valid FSD"},
		{`{"policy":{"limits":{"job-size":{"foo":1}}}}`, policy + ".limits.job-size" + table + "1 object item(s) left unpacked: foo"},
		{`{"policy":{"limits":{"job-size":{"max":{"foo":1}}}}}`, policy + ".limits.max" + table + "1 object item(s) left unpacked: foo"},
		{`{"policy":{"limits":{"job-size":{"max":{"ngpus":"1"}}}}}`, policy + ".limits.max" + table + "Expected integer, got string"},
		{`{"policy":{"limits":{"job-size":{"max":{"ngpus":9999999999}}}}}`, policy + ".limits.max" + table + "ngpus: the number is too large"},
		{`{"policy":{"limits":{"job-size":{"min":{"nnodes":-2}}}}}`, policy + ".limits.min" + table + "values must be >= -1"},
		{`{"policy":{"access":{"foo":1}}}`, policy + ".access" + table + "1 object item(s) left unpacked: foo"},
		{`{"policy":{"access":{"allow-user":1}}}`, policy + ".access" + table + "'allow-user' must be a string array"},
		{`{"policy":{"access":{"allow-group":[1]}}}`, policy + ".access" + table + "'allow-group' must be a string array"},

		{`{"access":{"private-mode":1}}`, "error reading [access] config table: Expected true or false, got integer"},

		{`{"queues":1}`, "error parsing [queues] config table: not a table"},
		{`{"queues":{"":{}}}`, "error parsing [queues] config table: a queue has no name"},
		{"{\"queues\":{\"\x9b\":{}}}", `error parsing [queues] config table: the name of the queue "\x9b" is no UTF-8`},
		{`{"queues":{"` + strings.Repeat("a", 4097) + `":{}}}`, "error parsing [queues] config table: a queue has a name of 4097 bytes, at most 4096"},
		{`{"queues":{"x":1}}`, "error parsing [queues.x] config table: Expected object, got integer"},
		{`{"queues":{"5%d":1}}`, "error parsing [queues.5%d] config table: Expected object, got integer"},
		{`{"queues":{"x":{"foo":1}}}`, "error parsing [queues.x] config table: 1 object item(s) left unpacked: foo"},
		{`{"queues":{"x":{"policy":{"foo":1}}}}`, "error parsing [queues.x.policy] config table: 1 object item(s) left unpacked: foo"},
		{`{"queues":{"x":{"policy":{"limits":{"duration":1}}}}}`, "error parsing [queues.x.policy.limits] config table: 'duration' is not a valid FSD"},
		{`{"queues":{"x":{"policy":{"jobspec":{"defaults":{"system":{"queue":"x"}}}}}}}`, "error parsing [queues.x] config table: 'policy' must not define a default queue!"},
		{`{"queues":{"x":{"requires":1}}}`, "error parsing [queues.x] config table: 'requires' must be an array of property strings (RFC 20)"},
		{`{"queues":{"x":{"requires":["foo|bar"]}}}`, "error parsing [queues.x] config table: 'requires' must be an array of property strings (RFC 20)"},
		{`{"queues":{"foo":{}},"policy":{"jobspec":{"defaults":{"system":{"queue":"bar"}}}}}`, "the [policy] config table defines a default queue bar that is not in [queues] table"},

		{`{"job-manager":[]}`, "job-manager.max-inactive-*: Expected object, got array"},
		{`{"job-manager":{"inactive-age-limit":1}}`, "job-manager.max-inactive-*: Expected string, got integer"},
		{`{"job-manager":{"inactive-age-limit":"notafsd"}}`, "job-manager.inactive-age-limit: invalid FSD"},
		{`{"job-manager":{"inactive-num-limit":-42}}`, "job-manager.inactive-num-limit: must be >= 0"},
		{`{"job-manager":{"inactive-num-limit":"x"}}`, "job-manager.max-inactive-*: Expected integer, got string"},
		{`{"job-manager":{"max-active-jobs":-1}}`, "job-manager.max-active-jobs: must be an integer >= 0"},
		{`{"job-manager":{"max-active-jobs":"1"}}`, "job-manager.max-active-jobs: must be an integer >= 0"},

		{`{"job-manager":{"housekeeping":{"foo":1}}}`, "job-manager.housekeeping: 1 object item(s) left unpacked: foo"},
		{`{"job-manager":{"housekeeping":{"release-after":"foo"}}}`, "job-manager.housekeeping.release-after FSD parse error"},
		{`{"job-manager":{"housekeeping":{"command":"foo"}}}`, "error creating housekeeping command"},
		{`{"job-manager":{"housekeeping":{"command":[]}}}`, "error creating housekeeping command"},
		{`{"job-manager":{"stop-queues-on-restart":1}}`, "job-manager.stop-queues-on-restart: Expected true or false, got integer"},
		{`{"job-manager":{"housekeeping":{}}}`, "job-manager.housekeeping implies IMP but exec.imp is undefined"},

		{`{"job-manager":{"prolog":{"command":"foo"}}}`, "[job-manager.prolog]: command must be an array"},
		{`{"job-manager":{"prolog":{"command":["foo"],"timeout":"5x"}}}`, "[job-manager.prolog]: invalid prolog timeout"},
		{`{"job-manager":{"epilog":{"command":["foo"],"timeout":"5p"}}}`, "[job-manager.epilog]: invalid epilog timeout"},
		{`{"job-manager":{"prolog":{}}}`, "[job-manager.prolog]: no command specified and exec.imp not defined"},
		{`{"job-manager":{"prolog":{"command":[1,2,3]}}}`, "[job-manager.prolog]: malformed prolog command"},
		{`{"job-manager":{"prolog":{"command":["foo"],"per-rank":true,"foo":1}}}`, "[job-manager.prolog]: 1 object item(s) left unpacked: foo"},
		{`{"job-manager":{"prolog":{"command":["foo"],"per-rank":1}}}`, "[job-manager.prolog]: Expected true or false, got integer"},
		{`{"job-manager":{"prolog":{"command":["foo"],"kill-timeout":"1s"}}}`, "[job-manager.prolog]: Expected real or integer, got string"},
		{`{"job-manager":{"epilog":{"command":["foo"],"kill-timeout":1}}}`, "[job-manager.epilog]: kill-timeout not allowed for epilog"},
		{`{"job-manager":{"perilog":{"log-ignore":"foo"}}}`, "[job-manager.perilog]: error parsing log-ignore: not an array"},
		{`{"job-manager":{"perilog":{"log-ignore":[1]}}}`, "[job-manager.perilog]: error parsing log-ignore: all entries must be a string value"},
		{`{"job-manager":{"perilog":{"log-ignore":["["]}}}`, "[job-manager.perilog]: error parsing log-ignore: Failed to compile regex: ["},
		{`{"job-manager":{"perilog":1}}`, "perilog: error unpacking config: Expected object, got integer"},
	}
	old := service.Config{MaxActive: 7}
	for _, c := range cases {
		got, err := Parse(old, []byte(c.text))
		require.EqualError(t, err, c.want, c.text)
		require.Equal(t, old, got, c.text)
	}
}

// FuzzParse: whatever is accepted makes a service, and what is refused changes nothing.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"job-manager":{"prolog":{"command":["a"],"kill-timeout":1e300}}}`))
	f.Add([]byte(`{"policy":{"limits":{"job-size":{"max":{"nnodes":-0}}}}}`))
	f.Add([]byte(`{"queues":{"\u0000":{"requires":[""]}}}`))
	f.Add([]byte("{\"queues\":{\"\x9b\":{\"requires\":[\"\"]}}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		old := service.Config{MaxActive: 7}
		cfg, err := Parse(old, text)
		if err != nil {
			require.Equal(t, old, cfg)
			return
		}
		_, _, err = service.Restore(time.Unix(1700000000, 0), cfg, func(func(joblife.Record, error) bool) {})
		require.NoError(t, err)
		again, err := Parse(cfg, text)
		require.NoError(t, err)
		require.Equal(t, cfg, again)
	})
}

// I12: a text of a mebibyte, or what it may repeat, takes no memory out of proportion.
func TestPatternsHaveALimit(t *testing.T) {
	many := func(n int, pattern string) string {
		list, err := json.Marshal(slices.Repeat([]string{pattern}, n))
		require.NoError(t, err)
		return `{"job-manager":{"perilog":{"log-ignore":` + string(list) + `}}}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"many":             {many(65, "a"), "65 patterns, at most 64"},
		"as many as may":   {many(64, "a{200}"), ""},
		"a long one":       {many(1, strings.Repeat("a", 1025)), "a pattern of 1025 bytes, at most 1024"},
		"as long as may":   {many(1, strings.Repeat("a", 1024)), ""},
		"a mebibyte":       {many(100_000, "a{1000}"), "100000 patterns, at most 64"},
		"that repeat":      {many(64, "("+strings.Repeat("ab", 500)+"){1000}"), "too many characters at (abab"},
		"with classes":     {many(64, strings.Repeat(`[^\pL]{99}`, 99)), "too many characters at [^"},
		"nested":           {many(64, "((a{10}){10}){10}"), "too many characters at ((a"},
		"none is too much": {many(1, "a{1001}"), "Failed to compile regex"},
		"long":             {`{"x":"` + strings.Repeat("x", 1<<20) + `"}`, "the configuration has 1048584 bytes, at most 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(service.Config{}, []byte(c.text))
			runtime.ReadMemStats(&after)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		})
	}
}
