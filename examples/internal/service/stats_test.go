package service

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
)

var statsRows = []row{
	same("getinfo", ``, 0, ""),
	same("getinfo", `{}`, 0, ""),
	same("stats-get", ``, 0, ""),
	same("stats-get", `{}`, 0, ""),
	same("set-batch-timeout", `{"timeout":1}`, 0, ""),
	same("set-batch-timeout", `{"timeout":"1"}`, errno.Protocol, ""),
}

func TestGetinfoSeedsTheGenerator(t *testing.T) {
	w := graveyard(t, joblife.Config{}, 0)
	require.JSONEq(t, `{"max_jobid":0}`, text(t, w.drive(owner("getinfo", ``)).Answers[0].Payload))
	w = graveyard(t, joblife.Config{}, 3)
	require.JSONEq(t, `{"max_jobid":3}`, text(t, w.drive(owner("getinfo", ``)).Answers[0].Payload))
	w.drive(owner("purge", limitsOf(0, 100, true)))
	require.JSONEq(t, `{"max_jobid":3}`, text(t, w.drive(owner("getinfo", ``)).Answers[0].Payload))
}

func TestStats(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	var answer map[string]any
	require.NoError(t, json.Unmarshal([]byte(text(t, w.drive(owner("stats-get", ``)).Answers[0].Payload)), &answer))
	events := answer["journal"].(map[string]any)
	require.Positive(t, events["events"])
	delete(events, "events")
	require.Equal(t, map[string]any{
		"journal": map[string]any{"listeners": 0.0}, "active_jobs": 3.0, "inactive_jobs": 1.0, "max_jobid": 19.0,
		"housekeeping": map[string]any{
			"running": map[string]any{}, "config": map[string]any{"release-after": -1.0, "command": ""},
		},
	}, answer)
}
