package perilog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// Check names every fault with its key, all of them at once.
func TestCheckNamesEveryFaultWithItsKey(t *testing.T) {
	long := strings.Repeat("x", maxDescription+1)
	for _, c := range []struct {
		fault  string
		change func(c *Config)
	}{
		{"prologs has more than 256 actions", func(c *Config) { c.Prologs = make([]ActionConfig, maxActions+1) }},
		{"epilogs has more than 256 actions", func(c *Config) { c.Epilogs = make([]ActionConfig, maxActions+1) }},
		{"prologs[0].description is too long, or has control characters or invalid UTF-8", func(c *Config) { c.Prologs[0].Description = long }},
		{"prologs[0].description is too long, or has control characters or invalid UTF-8", func(c *Config) { c.Prologs[0].Description = "a\nb" }},
		{"prologs[0].description is too long, or has control characters or invalid UTF-8", func(c *Config) { c.Prologs[0].Description = "\xff" }},
		{"epilogs[1].description is the name of an earlier action", func(c *Config) { c.Epilogs[1].Description = "" }},
		{"epilogs[1].description is the name of an earlier action", func(c *Config) { c.Epilogs[1].Description = "job-manager.epilog" }},
		{"epilogs[1].leader is not a rank", func(c *Config) { c.Epilogs[1].Leader = math.MaxUint32 }},
		{"prologs[0].resources has a name that is empty, repeated, too long or not one line", func(c *Config) { c.Prologs[0].Resources = []string{""} }},
		{"prologs[0].resources has a name that is empty, repeated, too long or not one line", func(c *Config) { c.Prologs[0].Resources = []string{"a", "b", "a"} }},
		{"prologs[0].resources has a name that is empty, repeated, too long or not one line", func(c *Config) { c.Prologs[0].Resources = []string{long} }},
		{"prologs[0].resources has too many names", func(c *Config) { c.Prologs[0].Resources = manyNames(257) }},
		{"prologs[0].command has too many elements", func(c *Config) { c.Prologs[0].Command = make([]string, maxArguments+1) }},
		{"prologs[0].command has an element that is too long", func(c *Config) { c.Prologs[0].Command = []string{strings.Repeat("x", maxArgument+1)} }},
		{"prologs[0].command is empty: give a program and its arguments, or leave command out if the embedder chooses", func(c *Config) { c.Prologs[0].Command = []string{} }},
		{"prologs[0].command is empty: give a program and its arguments, or leave command out if the embedder chooses", func(c *Config) { c.Prologs[0].Command = []string{"", "x"} }},
		{"prologs[0].timeout is not a duration", func(c *Config) { c.Prologs[0].Timeout = -1 }},
		{"prologs[0].kill-timeout is not a finite duration", func(c *Config) { c.Prologs[0].KillTimeout = fsd.Forever }},
		{"housekeeping.command has too many elements", func(c *Config) { c.Housekeeping.Command = make([]string, maxArguments+1) }},
		{"housekeeping.timeout is not a duration", func(c *Config) { c.Housekeeping.Timeout = -1 }},
		{"housekeeping.kill-timeout is not a finite duration", func(c *Config) { c.Housekeeping.KillTimeout = fsd.Forever }},
		{"housekeeping.release-after is not a duration", func(c *Config) { d := fsd.Duration(-1); c.Housekeeping.ReleaseAfter = &d }},
		{`housekeeping.on-failure is not "drain", "hold" or "release"`, func(c *Config) { c.Housekeeping.OnFailure = "Drain" }},
		{"tolerate.count is negative", func(c *Config) { c.Tolerate.Count = -1 }},
		{"tolerate.fraction is not from 0 to 1", func(c *Config) { c.Tolerate.Fraction = 1.01 }},
		{"tolerate.fraction is not from 0 to 1", func(c *Config) { c.Tolerate.Fraction = -0.01 }},
		{"tolerate.fraction is not from 0 to 1", func(c *Config) { c.Tolerate.Fraction = math.NaN() }},
	} {
		cfg := fullConfig(t)
		c.change(cfg)
		err := cfg.Check()
		require.EqualError(t, err, "perilog: invalid configuration: "+c.fault)
		require.ErrorIs(t, err, ErrConfig)
		_, err = NewJob(cfg, JobConfig{})
		require.ErrorIs(t, err, ErrConfig)
	}
	cfg := fullConfig(t)
	cfg.Prologs[0].Timeout, cfg.Epilogs[0].Leader, cfg.Tolerate.Count = -1, math.MaxUint32, -1
	err := cfg.Check()
	var all interface{ Unwrap() []error }
	require.True(t, errors.As(err, &all))
	keys := []string{"prologs[0].timeout", "epilogs[0].leader", "tolerate.count"}
	require.Len(t, all.Unwrap(), len(keys))
	for i, key := range keys {
		require.ErrorContains(t, all.Unwrap()[i], ": "+key+" ")
	}
}

func TestTheLimitsOfAConfigurationAreWithin(t *testing.T) {
	require.NoError(t, new(Config).Check())
	cfg := fullConfig(t)
	a := &cfg.Prologs[0]
	a.Description, a.Leader, a.Timeout, a.KillTimeout = strings.Repeat("x", maxDescription), idset.MaxID, fsd.Forever, fsd.Forever-1
	a.Command, a.Resources = make([]string, maxArguments), manyNames(256)
	a.Command[0] = strings.Repeat("z", maxArgument)
	never := fsd.Forever
	cfg.Housekeeping.ReleaseAfter = &never
	cfg.Tolerate.Fraction = 1
	require.NoError(t, cfg.Check())
	cfg.Epilogs[0].Description = a.Description
	require.NoError(t, cfg.Check(), "a prolog and an epilog may have one name")
}

// manyNames returns names of 253 bytes, each of which takes 256 in a log, or twice as much.
func manyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%03d%s", i, strings.Repeat(`\`, 250))
	}
	return names
}

// The start of an action fits in a line of a log, whatever ranks and resources it names.
func TestTheLongestStartOfAnActionCanBeLogged(t *testing.T) {
	ranks := new(idset.Set)
	for i := range uint32(maxRanksText / 9) {
		ranks.Insert(maxControlRank - 2*i)
	}
	cfg := fullConfig(t)
	a := &cfg.Prologs[0]
	a.Description, a.Resources, a.PerRank = strings.Repeat(`\`, maxDescription), manyNames(256), false
	require.NoError(t, cfg.Check())
	run := action{ActionKey: a.key(jobstate.ActionProlog), config: a}
	e, err := jobstate.NewEntry(math.MaxFloat64, &jobstate.ActionStartContext{
		ActionKey: run.ActionKey, Ranks: jobstate.Ranks{Set: ranks}, Resources: a.Resources, ActionMode: run.mode(), Attempt: 1,
	})
	require.NoError(t, err)
	_, err = eventlog.AppendEntry(nil, e)
	require.NoError(t, err)
}

// configText sets every key there is.
const configText = `{
	"prologs": [{"description": "gpu", "command": ["gpu-check", "-v"], "per-rank": true, "leader": 3, "ranks": "0-7",
		"resources": ["fs"], "timeout": "5m", "kill-timeout": "10s", "kill": true, "cancel-on-exception": false,
		"wait-offline": true, "ignore-control": true}],
	"epilogs": [{}, {"description": "scrub"}],
	"housekeeping": {"command": ["hk"], "timeout": "1h", "kill-timeout": "30s", "release-after": "0s", "on-failure": "hold"},
	"tolerate": {"count": 2, "fraction": 0.25, "ranks": "1", "any-failure": true, "drop": true},
	"whole-job": true
}`

// fullConfig returns a configuration with every key set.
func fullConfig(t testing.TB) *Config {
	t.Helper()
	var c Config
	d := json.NewDecoder(strings.NewReader(configText))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&c))
	return &c
}

func TestEveryKeyIsFilledFromJSON(t *testing.T) {
	c := fullConfig(t)
	require.NoError(t, c.Check())
	for _, v := range []any{*c, c.Prologs[0], *c.Housekeeping, c.Tolerate} {
		v := reflect.ValueOf(v)
		for i := range v.NumField() {
			f := v.Field(i)
			require.True(t, !f.IsZero(), "%s of %s is not in the text, or not filled", v.Type().Field(i).Name, v.Type())
		}
	}
	require.Equal(t, "0-7", c.Prologs[0].Ranks.String())
	require.False(t, *c.Prologs[0].CancelOnException)
	require.Equal(t, fsd.Duration(5*time.Minute), c.Prologs[0].Timeout)
	require.Zero(t, *c.Housekeeping.ReleaseAfter)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.JSONEq(t, configText, string(text))
	text, err = json.Marshal(Config{})
	require.NoError(t, err)
	require.Equal(t, "{}", string(text))
}

// A key has one name, whatever library reads the file.
func TestTheTagsOfAConfigurationAgree(t *testing.T) {
	keys := 0
	for _, v := range []any{Config{}, ActionConfig{}, HousekeepingConfig{}, Tolerate{}} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			require.Regexp(t, `^[a-z]+(-[a-z]+)*$`, name, f.Name)
			require.Equal(t, strings.ToLower(f.Name), strings.ReplaceAll(name, "-", ""), f.Name)
			for _, format := range []string{"toml", "yaml"} {
				require.Equal(t, name+",omitempty", f.Tag.Get(format), "%s.%s", typ, f.Name)
			}
			keys++
		}
	}
	require.Equal(t, 27, keys)
}

func TestTheDefaultsOfAConfigurationAreThoseDocumented(t *testing.T) {
	prolog := &action{ActionKey: (&ActionConfig{}).key(jobstate.ActionProlog), config: &ActionConfig{}}
	epilog := &action{ActionKey: (&ActionConfig{}).key(jobstate.ActionEpilog), config: &ActionConfig{}}
	require.Equal(t, "prolog job-manager.prolog", prolog.ActionKey.String())
	require.Equal(t, "epilog job-manager.epilog", epilog.ActionKey.String())
	timeouts := func(a *action) [2]time.Duration {
		m := a.mode()
		return [2]time.Duration{m.Timeout, m.KillTimeout}
	}
	require.Equal(t, [2]time.Duration{30 * time.Minute, time.Minute}, timeouts(prolog))
	require.Equal(t, [2]time.Duration{0, time.Minute}, timeouts(epilog))
	require.True(t, prolog.cancels())
	require.False(t, epilog.cancels())

	yes, no := true, false
	prolog.config = &ActionConfig{Timeout: fsd.Forever, KillTimeout: fsd.Duration(7 * time.Second), CancelOnException: &no}
	epilog.config = &ActionConfig{Timeout: fsd.Forever - 1, KillTimeout: 1, CancelOnException: &yes}
	require.Equal(t, [2]time.Duration{0, 7 * time.Second}, timeouts(prolog))
	require.Equal(t, [2]time.Duration{math.MaxInt64 - 1, 1}, timeouts(epilog))
	require.False(t, prolog.cancels())
	require.True(t, epilog.cancels())
}

func TestWhatIsTolerated(t *testing.T) {
	for _, c := range []struct {
		name     string
		all      int
		tolerate Tolerate
		failed   string
		allowed  bool
	}{
		{"none by default", 10, Tolerate{}, "3", false},
		{"as many as the count", 10, Tolerate{Count: 2}, "3,5", true},
		{"not more than the count", 10, Tolerate{Count: 2}, "3,5,7", false},
		{"as many as the fraction", 10, Tolerate{Fraction: 0.3}, "3,5,7", true},
		{"not more than the fraction", 10, Tolerate{Fraction: 0.3}, "3,5,7-8", false},
		{"a fraction that is not exact as a float", 100, Tolerate{Fraction: 0.29}, "0-28", true},
		{"and not one more", 100, Tolerate{Fraction: 0.29}, "0-29", false},
		{"a fraction is rounded down", 99, Tolerate{Fraction: 0.29}, "0-28", false},
		{"a fraction of many", 16384, Tolerate{Fraction: 0.1}, "0-1637", true},
		{"the greater of both", 10, Tolerate{Count: 1, Fraction: 0.2}, "3,5", true},
		{"the greater of both, otherwise", 10, Tolerate{Count: 2, Fraction: 0.1}, "3,5", true},
		{"those that are named", 10, Tolerate{Ranks: idset.Of(3, 5, 7)}, "3,7", true},
		{"not those that are not named", 10, Tolerate{Ranks: idset.Of(3, 5, 7)}, "2", false},
		{"those that are named do not count", 10, Tolerate{Count: 1, Ranks: idset.Of(3)}, "3,5", true},
		{"not all, whatever is tolerated", 10, Tolerate{Count: 99, Fraction: 1}, "0-9", false},
		{"not all, even by name", 2, Tolerate{Ranks: idset.Of(0, 1)}, "0-1", false},
		{"not the only one", 1, Tolerate{Count: 1}, "0", false},
		{"all but one", 10, Tolerate{Fraction: 1}, "0-8", true},
	} {
		failed, err := idset.Parse(c.failed)
		require.NoError(t, err)
		require.Equal(t, c.allowed, c.tolerate.allows(failed, c.all), c.name)
	}
}
