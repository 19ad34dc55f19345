package service

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
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

func TestStatsShowHousekeeping(t *testing.T) {
	after := fsd.Duration(90 * time.Second)
	w := newWorld(t, joblife.Config{Actions: perilog.Config{
		Housekeeping: &perilog.HousekeepingConfig{Command: []string{"imp", "run"}, ReleaseAfter: &after},
	}})
	w.do(joblife.Raise{ID: running, Type: "cancel"})
	check := func(allocated string) {
		var answer struct {
			Housekeeping struct {
				Running map[string]map[string]any
				Config  json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text(t, w.drive(owner("stats-get", ``)).Answers[0].Payload)), &answer))
		require.JSONEq(t, `{"release-after":90.0,"command":"imp run"}`, string(answer.Housekeeping.Config))
		require.Equal(t, allocated, answer.Housekeeping.Running["ƒJ"]["allocated"])
		require.Contains(t, answer.Housekeeping.Running["ƒJ"], "pending")
		require.Equal(t, 1700000000.0, answer.Housekeeping.Running["ƒJ"]["t_start"])
	}
	check("0-1")
	w.do(joblife.Report{Job: running, Report: perilog.Report{
		Action: perilog.Housekeeping(), Kind: perilog.ReportExited, Attempt: 1,
	}})
	check("0-1")
	require.NoError(t, w.Tick(start.Add(90*time.Second)))
	w.collect()
	check("1")
	// Housekeeping keeps the job.
	out := w.drive(owner("purge", limitsOf(0, 100, true)))
	require.JSONEq(t, `{"jobs":[18]}`, text(t, out.Events[0].Payload))
	require.JSONEq(t, `{"count":1}`, text(t, out.Answers[0].Payload))
	require.Contains(t, w.drive(owner("purge-id", `{"id":17,"force":1}`)).Answers[0].Errstr, "job is pinned by housekeeping")
}
