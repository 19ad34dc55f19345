package service

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
)

func TestRestart(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	w.drive(owner("urgency", `{"id":16,"urgency":31}`))
	w.do(joblife.Update{ID: 16, Updates: []jobstate.Update{
		{Path: "attributes.system.environment", Value: []byte(`{"A":"b"}`)},
		{Path: "attributes.system.duration", Value: []byte("7")},
	}})
	requests := []Request{
		owner("list", `{"max_entries":0}`), owner("getinfo", ``), by(ownGuest, roleUser, "history.get", `{"slice":"[:]"}`),
	}
	for _, id := range []int{pending, running, inactive, owners} {
		requests = append(requests, owner("getattr", fmt.Sprintf(`{"id":%d,"attrs":["jobspec"]}`, id)))
	}
	requests = append(requests, owner("getattr", `{"id":17,"attrs":["R"]}`))
	before := w.drive(requests...)
	w.restart()
	after := w.drive(requests...)
	for i, a := range before.Answers {
		require.Zero(t, a.Errnum)
		require.JSONEq(t, text(t, a.Payload), text(t, after.Answers[i].Payload), string(requests[i].Payload))
	}

	// A submission whose answer got lost comes again.
	out := w.drive(owner("submit", submission1(pending, ownGuest)), owner("submit", submission1(running, ownGuest)))
	for _, a := range out.Answers {
		require.JSONEq(t, `{"errors":[]}`, text(t, a.Payload))
	}
	require.Empty(t, out.Append)
}
