package perilog

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate/fsd"
)

// fromJSON returns the configuration of a text, decoded as JSON is.
func fromJSON(text string) (Config, error) {
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&m); err != nil {
		return Config{}, err
	}
	return FromMap(m)
}

// manager returns the text of a configuration with one table in job-manager.
func manager(table, text string) string { return `{"job-manager":{"` + table + `":` + text + `}}` }

func TestNoTableMeansNoAction(t *testing.T) {
	for _, text := range []string{`null`, `{}`, `{"job-manager":{}}`, `{"job-manager":{"inactive-age-limit":"7d","plugins":[]},"exec":{"x":1},"tbon":3}`} {
		c, err := fromJSON(text)
		require.NoError(t, err)
		require.Equal(t, Config{}, c)
	}
}

func TestDefaultsOfAConfigurationAreThoseOfTheReference(t *testing.T) {
	c, err := fromJSON(`{"job-manager":{"prolog":{"command":["p","1"]},"epilog":{"command":["e"]},"housekeeping":{"command":["h"]}}}`)
	require.NoError(t, err)
	require.Equal(t, Config{
		Prologs: []ActionConfig{{Kind: RunProlog, Description: "job-manager.prolog", Command: []string{"p", "1"},
			Timeout: 1800, KillTimeout: 60, Cancel: CancelOnException}},
		Epilogs: []ActionConfig{{Kind: RunEpilog, Description: "job-manager.epilog", Command: []string{"e"},
			KillTimeout: 60, Cancel: CancelNever}},
		Housekeeping: &HousekeepingConfig{Command: []string{"h"}, KillTimeout: 60},
	}, c)
}

func TestThePrivilegedHelperIsTheDefaultCommand(t *testing.T) {
	c, err := fromJSON(`{"exec":{"imp":"/usr/libexec/flux-imp","other":1},"job-manager":{"prolog":{},"epilog":{},"housekeeping":{}}}`)
	require.NoError(t, err)
	require.Equal(t, []string{"/usr/libexec/flux-imp", "run", "prolog"}, c.Prologs[0].Command)
	require.Equal(t, []string{"/usr/libexec/flux-imp", "run", "epilog"}, c.Epilogs[0].Command)
	require.Equal(t, []string{"/usr/libexec/flux-imp", "run", "housekeeping"}, c.Housekeeping.Command)
}

func TestEveryKeyIsRead(t *testing.T) {
	c, err := fromJSON(`{"job-manager":{
		"prolog":{"command":["p"],"per-rank":true,"timeout":"1h","kill-timeout":5.5,"cancel-on-exception":false,
			"tolerate":{"count":3,"fraction":0.25,"ranks":"7-9","drop":true}},
		"epilog":{"command":["e"],"per-rank":false,"timeout":90,"kill-timeout":"2m","cancel-on-exception":true},
		"perilog":{"log-ignore":["^x","y$"]},
		"housekeeping":{"command":["h"],"release-after":"1.5m","timeout":"1d","kill-timeout":0}}}`)
	require.NoError(t, err)
	after := 90 * fsd.Second
	require.Equal(t, Config{
		Prologs: []ActionConfig{{Kind: RunProlog, Description: "job-manager.prolog", Command: []string{"p"}, PerRank: true,
			Timeout: 3600, KillTimeout: 5.5, Cancel: CancelNever,
			Tolerate: Tolerate{Count: 3, Fraction: 0.25, Ranks: c.Prologs[0].Tolerate.Ranks, Drop: true}}},
		Epilogs: []ActionConfig{{Kind: RunEpilog, Description: "job-manager.epilog", Command: []string{"e"},
			Timeout: 90, KillTimeout: 120, Cancel: CancelOnException}},
		Housekeeping: &HousekeepingConfig{Command: []string{"h"}, ReleaseAfter: &after, Timeout: 86400, KillTimeout: 60},
		LogIgnore:    []string{"^x", "y$"},
	}, c)
	require.Equal(t, "7-9", c.Prologs[0].Tolerate.Ranks.String())
}

func TestReleaseAfterIsUnsetZeroOrADuration(t *testing.T) { // HK-2
	for text, want := range map[string]fsd.Duration{`"0"`: 0, `0`: 0, `"0s"`: 0, `30`: 30, `"30s"`: 30, `"1m"`: 60} {
		c, err := fromJSON(manager("housekeeping", `{"command":["h"],"release-after":`+text+`}`))
		require.NoError(t, err)
		require.NotNil(t, c.Housekeeping.ReleaseAfter, text)
		require.Equal(t, want, *c.Housekeeping.ReleaseAfter)
	}
	for _, text := range []string{`{"command":["h"]}`, `{"command":["h"],"release-after":"infinity"}`} {
		c, err := fromJSON(manager("housekeeping", text))
		require.NoError(t, err)
		require.Nil(t, c.Housekeeping.ReleaseAfter, text)
	}
}

func TestSeveralActionsOfAKindAreNamed(t *testing.T) {
	c, err := fromJSON(manager("epilog", `{"timeout":"5m","per-rank":true,"tolerate":{"ranks":"1"},"actions":[
		{"name":"scrub","command":["s"]},
		{"name":"report","command":["r"],"per-rank":false,"timeout":"inf","kill-timeout":9,"cancel-on-exception":true,"tolerate":{"count":2}}]}`))
	require.NoError(t, err)
	require.Len(t, c.Epilogs, 2)
	require.Equal(t, ActionConfig{Kind: RunEpilog, Description: "scrub", Command: []string{"s"}, PerRank: true, Timeout: 300,
		KillTimeout: 60, Cancel: CancelNever, Tolerate: c.Epilogs[0].Tolerate}, c.Epilogs[0])
	require.Equal(t, "1", c.Epilogs[0].Tolerate.Ranks.String())
	require.Equal(t, ActionConfig{Kind: RunEpilog, Description: "report", Command: []string{"r"},
		KillTimeout: 9, Cancel: CancelOnException, Tolerate: Tolerate{Count: 2}}, c.Epilogs[1])

	c, err = fromJSON(manager("prolog", `{"command":["own"],"actions":[{"name":"a","command":["x"]}]}`))
	require.NoError(t, err)
	require.Equal(t, "job-manager.prolog", c.Prologs[0].Description)
	require.Equal(t, []string{"own"}, c.Prologs[0].Command)
	require.Equal(t, "a", c.Prologs[1].Description)

	c, err = fromJSON(manager("prolog", `{"actions":[]}`))
	require.NoError(t, err)
	require.Empty(t, c.Prologs)

	// Actions that were given the same default share nothing.
	c, err = fromJSON(manager("prolog", `{"command":["own"],"tolerate":{"ranks":"1"},"actions":[{"name":"a","command":["x"]}]}`))
	require.NoError(t, err)
	c.Prologs[0].Tolerate.Ranks.Insert(2)
	require.Equal(t, "1", c.Prologs[1].Tolerate.Ranks.String())
}

func TestWhatAnyDecoderMakesOfAFileIsRead(t *testing.T) {
	want := ActionConfig{Kind: RunProlog, Description: "a", Command: []string{"x", "y"}, Timeout: 7, KillTimeout: 60,
		Cancel: CancelOnException, Tolerate: Tolerate{Count: 2, Fraction: 1}}
	for _, seven := range []any{7, int64(7), uint64(7), 7.0, json.Number("7"), "7", "7s", json.Number("7e0")} {
		for _, command := range []any{[]any{"x", "y"}, []string{"x", "y"}} {
			action := map[string]any{"name": "a", "command": command, "timeout": seven,
				"tolerate": map[string]any{"count": json.Number("2"), "fraction": 1}}
			for _, actions := range []any{[]any{action}, []map[string]any{action}} {
				c, err := FromMap(map[string]any{"job-manager": map[string]any{"prolog": map[string]any{"actions": actions}}})
				require.NoError(t, err)
				require.Equal(t, []ActionConfig{want}, c.Prologs)
			}
		}
	}
}

func TestAConfigurationRefersToNothingItWasMadeFrom(t *testing.T) { // PL-7
	command, ignore := []string{"x"}, []string{"^a"}
	c, err := FromMap(map[string]any{"job-manager": map[string]any{
		"prolog": map[string]any{"command": command}, "perilog": map[string]any{"log-ignore": ignore}}})
	require.NoError(t, err)
	command[0], ignore[0] = "changed", "changed"
	require.Equal(t, "x", c.Prologs[0].Command[0])
	require.Equal(t, "^a", c.LogIgnore[0])
}

func TestAConfigurationThatIsWrongIsRefusedWithTheKeysName(t *testing.T) {
	strs := func(n, size int) string {
		return `["` + strings.Repeat(strings.Repeat("x", size)+`","`, n-1) + strings.Repeat("x", size) + `"]`
	}
	for _, c := range []struct{ text, err string }{
		{`{"job-manager":1}`, "job-manager: is not a table"},
		{`{"exec":[],"job-manager":{}}`, "exec: is not a table"},
		{`{"exec":{"imp":3}}`, "exec.imp: is not a string"},
		{`{"exec":{"imp":""}}`, "exec.imp: is empty"},
		{`{"exec":{"imp":"` + strings.Repeat("x", 1<<16+1) + `"}}`, "exec.imp: has too many bytes"},
		{manager("prolog", `null`), "job-manager.prolog: is not a table"},
		{manager("prolog", `{}`), "job-manager.prolog.command: is missing, and so is exec.imp"},
		{manager("housekeeping", `{}`), "job-manager.housekeeping.command: is missing, and so is exec.imp"},
		{manager("prolog", `{"command":[]}`), "job-manager.prolog.command: is empty"},
		{manager("prolog", `{"command":"x"}`), "job-manager.prolog.command: is not an array of strings"},
		{manager("prolog", `{"command":["x",1]}`), "job-manager.prolog.command: is not an array of strings"},
		{manager("prolog", `{"command":null}`), "job-manager.prolog.command: is not an array of strings"},
		{manager("prolog", `{"command":`+strs(4097, 1)+`}`), "job-manager.prolog.command: has too many elements"},
		{manager("prolog", `{"command":`+strs(1, 1<<16+1)+`}`), "job-manager.prolog.command: has too many bytes"},
		{manager("prolog", `{"command":["x"],"per_rank":true}`), "job-manager.prolog.per_rank: is not a known key"},
		{manager("prolog", `{"command":["x"],"z":1,"a b\n":1}`), `job-manager.prolog."a b\n": is not a known key`},
		{manager("prolog", `{"command":["x"],"":1}`), `job-manager.prolog."": is not a known key`},
		{manager("prolog", `{"command":["x"],"`+strings.Repeat(" ", 99)+`":1}`),
			`job-manager.prolog."` + strings.Repeat(" ", 64) + `": is not a known key`},
		{manager("prolog", `{"command":["x"],"per-rank":1}`), "job-manager.prolog.per-rank: is not a boolean"},
		{manager("epilog", `{"command":["x"],"cancel-on-exception":"true"}`), "job-manager.epilog.cancel-on-exception: is not a boolean"},
		{manager("epilog", `{"command":["x"],"timeout":"1w"}`), "job-manager.epilog.timeout: is not a duration"},
		{manager("epilog", `{"command":["x"],"timeout":-1}`), "job-manager.epilog.timeout: is not a duration"},
		{manager("epilog", `{"command":["x"],"timeout":true}`), "job-manager.epilog.timeout: is not a duration"},
		{manager("epilog", `{"command":["x"],"kill-timeout":"inf"}`), "job-manager.epilog.kill-timeout: is not finite"},
		{manager("epilog", `{"command":["x"],"kill-timeout":-5}`), "job-manager.epilog.kill-timeout: is not a duration"},
		{manager("epilog", `{"command":["x"],"tolerate":3}`), "job-manager.epilog.tolerate: is not a table"},
		{manager("epilog", `{"command":["x"],"tolerate":{"n":3}}`), "job-manager.epilog.tolerate.n: is not a known key"},
		{manager("epilog", `{"command":["x"],"tolerate":{"count":1.5}}`), "job-manager.epilog.tolerate.count: is not a whole number from 0 to 1048576"},
		{manager("epilog", `{"command":["x"],"tolerate":{"count":-1}}`), "job-manager.epilog.tolerate.count: is not a whole number from 0 to 1048576"},
		{manager("epilog", `{"command":["x"],"tolerate":{"count":1048577}}`), "job-manager.epilog.tolerate.count: is not a whole number from 0 to 1048576"},
		{manager("epilog", `{"command":["x"],"tolerate":{"count":"1"}}`), "job-manager.epilog.tolerate.count: is not a whole number from 0 to 1048576"},
		{manager("epilog", `{"command":["x"],"tolerate":{"fraction":1.01}}`), "job-manager.epilog.tolerate.fraction: is not a number from 0 to 1"},
		{manager("epilog", `{"command":["x"],"tolerate":{"fraction":-0.5}}`), "job-manager.epilog.tolerate.fraction: is not a number from 0 to 1"},
		{manager("epilog", `{"command":["x"],"tolerate":{"fraction":"1"}}`), "job-manager.epilog.tolerate.fraction: is not a number from 0 to 1"},
		{manager("epilog", `{"command":["x"],"tolerate":{"ranks":"1,,2"}}`), "job-manager.epilog.tolerate.ranks: is not an idset"},
		{manager("epilog", `{"command":["x"],"tolerate":{"ranks":7}}`), "job-manager.epilog.tolerate.ranks: is not a string"},
		{manager("epilog", `{"command":["x"],"tolerate":{"drop":0}}`), "job-manager.epilog.tolerate.drop: is not a boolean"},
		{manager("prolog", `{"actions":{}}`), "job-manager.prolog.actions: is not an array of tables"},
		{manager("prolog", `{"actions":[1]}`), "job-manager.prolog.actions: is not an array of tables"},
		{manager("prolog", `{"actions":[`+strings.Repeat("{},", 256)+`{}]}`), "job-manager.prolog.actions: has too many elements"},
		{manager("prolog", `{"actions":[{"command":["x"]}]}`), "job-manager.prolog.actions[0].name: is missing"},
		{manager("prolog", `{"actions":[{"name":"a"}]}`), "job-manager.prolog.actions[0].command: is missing"},
		{manager("prolog", `{"actions":[{"name":"a","command":[]}]}`), "job-manager.prolog.actions[0].command: is missing"},
		{manager("prolog", `{"actions":[{"name":"","command":["x"]}]}`), "job-manager.prolog.actions[0].name: is empty"},
		{manager("prolog", `{"actions":[{"name":"a\u0001","command":["x"]}]}`),
			"job-manager.prolog.actions[0].name: is too long, or has control characters or invalid UTF-8"},
		{manager("prolog", `{"actions":[{"name":"a","command":["x"]},{"name":"a","command":["x"]}]}`),
			"job-manager.prolog.actions[1].name: is the name of an earlier action"},
		{manager("prolog", `{"command":["x"],"actions":[{"name":"job-manager.prolog","command":["x"]}]}`),
			"job-manager.prolog.actions[0].name: is the name of an earlier action"},
		{manager("prolog", `{"actions":[{"name":"a","command":["x"],"actions":[]}]}`), "job-manager.prolog.actions[0].actions: is not a known key"},
		{manager("perilog", `{"log-ignore":["a","("]}`), "job-manager.perilog.log-ignore: element 1 is not a regular expression"},
		{manager("perilog", `{"log-ignore":"a"}`), "job-manager.perilog.log-ignore: is not an array of strings"},
		{manager("perilog", `{"timeout":1}`), "job-manager.perilog.timeout: is not a known key"},
		{manager("housekeeping", `{"command":["x"],"release_after":1}`), "job-manager.housekeeping.release_after: is not a known key"},
		{manager("housekeeping", `{"command":["x"],"release-after":""}`), "job-manager.housekeeping.release-after: is not a duration"},
		{manager("housekeeping", `{"command":["x"],"release-after":[]}`), "job-manager.housekeeping.release-after: is not a duration"},
	} {
		got, err := fromJSON(c.text)
		require.EqualError(t, err, "perilog: "+c.err, c.text[:min(len(c.text), 200)])
		require.Equal(t, Config{}, got)
		require.ErrorIs(t, err, ErrConfig)
		var e *ConfigError
		require.True(t, errors.As(err, &e))
		require.True(t, strings.HasPrefix(c.err, e.Key+": "))
	}
	for _, bad := range []float64{math.NaN(), -1, math.Inf(-1)} {
		_, err := FromMap(map[string]any{"job-manager": map[string]any{"prolog": map[string]any{"command": []string{"x"}, "timeout": bad}}})
		require.EqualError(t, err, "perilog: job-manager.prolog.timeout: is not a duration")
	}
	_, err := FromMap(map[string]any{"job-manager": map[string]any{"prolog": map[string]any{"command": []string{"x"},
		"tolerate": map[string]any{"fraction": math.NaN()}}}})
	require.EqualError(t, err, "perilog: job-manager.prolog.tolerate.fraction: is not a number from 0 to 1")
}

func TestOfSeveralFaultsTheSameIsToldEachTime(t *testing.T) {
	text := manager("prolog", `{"command":1,"a":1,"b":2,"c":3,"timeout":true,"per-rank":0,"tolerate":[]}`)
	for range 50 {
		_, err := fromJSON(text)
		require.EqualError(t, err, "perilog: job-manager.prolog.a: is not a known key")
	}
}

func TestWhatIsConfiguredCanRun(t *testing.T) {
	c, err := fromJSON(`{"job-manager":{"prolog":{"command":["p"],"per-rank":true,"timeout":"1m","tolerate":{"count":1}},
		"housekeeping":{"command":["h"],"timeout":"2m","kill-timeout":7}}}`)
	require.NoError(t, err)
	job := RunJob{Job: 7, UserID: 1001, R: flukes(t, "0-3"), Offline: idset.Of(3)}
	r, err := NewRun(c.Prologs[0].Spec(job))
	require.NoError(t, err)
	got := r.Spec()
	require.Equal(t, Spec{Kind: RunProlog, Description: "job-manager.prolog", Job: 7, UserID: 1001, Ranks: got.Ranks, Offline: got.Offline,
		Hosts: job.R, Command: []string{"p"}, PerRank: true, Timeout: 60, KillTimeout: 60, Cancel: CancelOnException,
		Tolerate: Tolerate{Count: 1}}, got)
	require.Equal(t, "0-3", got.Ranks.String())
	require.Equal(t, "3", got.Offline.String())

	r, err = NewRun(c.Housekeeping.Spec(job))
	require.NoError(t, err)
	got = r.Spec()
	require.Equal(t, Spec{Kind: RunHousekeeping, Description: "housekeeping", Job: 7, UserID: 1001, Ranks: got.Ranks, Offline: got.Offline,
		Hosts: job.R, Command: []string{"h"}, PerRank: true, Timeout: 120, KillTimeout: 7, Cancel: CancelNever}, got)
	require.Equal(t, "3", got.Offline.String())

	_, err = NewRun(c.Prologs[0].Spec(RunJob{}))
	require.ErrorIs(t, err, ErrSpec)
}

// Every text that flux-core's library was asked about is a timeout here if and
// only if it is a duration there, but for what package fsd refuses.
func TestDurationsAreThoseOfTheReference(t *testing.T) {
	accepted := 0
	check := func(text string) {
		want, perr := fsd.Parse(text)
		c, err := FromMap(map[string]any{"job-manager": map[string]any{"epilog": map[string]any{"command": []string{"x"}, "timeout": text}}})
		if perr != nil {
			require.EqualError(t, err, "perilog: job-manager.epilog.timeout: is not a duration", text)
			return
		}
		accepted++
		require.NoError(t, err, text)
		if want.IsInfinite() {
			want = 0
		}
		require.Equal(t, want, c.Epilogs[0].Timeout, text)
	}
	diffs := refdata.ExpectDifferences(t, map[string]int{"let in by the reference alone": 74})
	for _, v := range refdata.Lines[struct {
		In string `json:"in"`
		OK bool   `json:"ok"`
	}](t, "vectors/fsd.jsonl.gz", 575) {
		check(v.In)
		if _, err := fsd.Parse(v.In); (err == nil) != v.OK {
			require.True(t, v.OK, v.In)
			diffs.Note("let in by the reference alone")
		}
	}
	for _, v := range refdata.Lines[struct {
		Out *string `json:"out"`
	}](t, "vectors/fsd_format.jsonl.gz", 327) {
		if v.Out != nil {
			check(*v.Out)
		}
	}
	require.Equal(t, 686, accepted)
}

// FuzzConfig: no panic, and an error names a key; what is accepted can run.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"exec":{"imp":"imp"},"job-manager":{"prolog":{},"epilog":{"per-rank":true,"timeout":"1h"},"housekeeping":{"release-after":"1m"}}}`))
	f.Add([]byte(manager("prolog", `{"command":["x"],"actions":[{"name":"a","command":["x"],"tolerate":{"count":1,"fraction":0.5,"ranks":"1-3","drop":true}}]}`)))
	f.Add([]byte(manager("perilog", `{"log-ignore":["^\\s*$","("]}`)))
	f.Add([]byte(manager("epilog", `{"command":["x"],"timeout":1e308,"kill-timeout":1e-300}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return
		}
		for _, useNumber := range []bool{false, true} {
			var m map[string]any
			d := json.NewDecoder(bytes.NewReader(text))
			if useNumber {
				d.UseNumber()
			}
			if d.Decode(&m) != nil {
				return
			}
			c, err := FromMap(m)
			if err != nil {
				require.ErrorIs(t, err, ErrConfig)
				var e *ConfigError
				require.ErrorAs(t, err, &e)
				require.Regexp(t, `^(exec|job-manager)`, e.Key)
				require.Equal(t, Config{}, c)
				continue
			}
			r := flukes(t, "0-3")
			for _, a := range append(c.Prologs, c.Epilogs...) {
				_, err := NewRun(a.Spec(RunJob{R: r}))
				require.NoError(t, err)
			}
			if c.Housekeeping != nil {
				_, err := NewRun(c.Housekeeping.Spec(RunJob{R: r}))
				require.NoError(t, err)
			}
		}
	})
}
