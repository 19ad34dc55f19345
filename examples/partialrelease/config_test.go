package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// The configuration of perilog is plain structs: any library fills them.
func TestTOMLAndYAMLAndJSONFillAConfiguration(t *testing.T) {
	const (
		inTOML = `
[[prologs]]
command = ["prepare"]
per-rank = true
timeout = "1m"
[[epilogs]]
description = "scrub"
ranks = "0-3"
resources = ["rabbit"]
kill-timeout = "30s"
cancel-on-exception = true
[housekeeping]
release-after = "0s"
on-failure = "hold"
[tolerate]
count = 2
ranks = "7"
`
		inYAML = `
prologs: [{command: [prepare], per-rank: true, timeout: 1m}]
epilogs: [{description: scrub, ranks: "0-3", resources: [rabbit], kill-timeout: 30s, cancel-on-exception: true}]
housekeeping: {release-after: 0s, on-failure: hold}
tolerate: {count: 2, ranks: "7"}
`
		inJSON = `{"prologs":[{"command":["prepare"],"per-rank":true,"timeout":"1m"}],` +
			`"epilogs":[{"description":"scrub","ranks":"0-3","resources":["rabbit"],"kill-timeout":"30s","cancel-on-exception":true}],` +
			`"housekeeping":{"release-after":"0s","on-failure":"hold"},"tolerate":{"count":2,"ranks":"7"}}`
	)
	for name, fill := range map[string]func(*perilog.Config) error{
		"TOML": func(c *perilog.Config) error { return toml.Unmarshal([]byte(inTOML), c) },
		"YAML": func(c *perilog.Config) error { return yaml.Unmarshal([]byte(inYAML), c) },
		"JSON": func(c *perilog.Config) error { return json.Unmarshal([]byte(inJSON), c) },
	} {
		t.Run(name, func(t *testing.T) {
			var c perilog.Config
			require.NoError(t, fill(&c))
			require.NoError(t, c.Check())
			require.Equal(t, []string{"prepare"}, c.Prologs[0].Command)
			require.True(t, c.Prologs[0].PerRank)
			require.Equal(t, fsd.Duration(time.Minute), c.Prologs[0].Timeout)
			require.Equal(t, fsd.Duration(30*time.Second), c.Epilogs[0].KillTimeout)
			require.Equal(t, "0-3", c.Epilogs[0].Ranks.String())
			require.Equal(t, []string{"rabbit"}, c.Epilogs[0].Resources)
			require.True(t, *c.Epilogs[0].CancelOnException)
			require.Zero(t, *c.Housekeeping.ReleaseAfter)
			require.EqualValues(t, "hold", c.Housekeeping.OnFailure)
			require.Equal(t, 2, c.Tolerate.Count)
			require.Equal(t, "7", c.Tolerate.Ranks.String())
		})
	}
}
