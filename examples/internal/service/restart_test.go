package service

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
)

// restart makes a world of what the store has.
func (w *world) restart(t *testing.T) *world {
	t.Helper()
	next := &world{stored: w.stored, records: w.records}
	var err error
	next.Service, _, err = Restore(start, w.cfg, func(yield func(joblife.Record, error) bool) {
		for _, r := range w.records {
			if !yield(r, nil) {
				return
			}
		}
	})
	require.NoError(t, err)
	next.ask(t)
	return next
}

func TestRestart(t *testing.T) {
	w := newWorld(t)
	w.ask(t, owner("urgency", `{"id":16,"urgency":31}`))
	w.do(t, joblife.Update{ID: 16, Updates: []jobstate.Update{
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
	before := w.ask(t, requests...)
	w = w.restart(t)
	after := w.ask(t, requests...)
	for i, a := range before.Answers {
		require.Zero(t, a.Errnum)
		require.JSONEq(t, text(t, a), text(t, after.Answers[i]), string(requests[i].Payload))
	}

	// A submission whose answer got lost comes again.
	out := w.ask(t, owner("submit", submission1(pending, ownGuest)), owner("submit", submission1(running, ownGuest)))
	for _, a := range out.Answers {
		require.JSONEq(t, `{"errors":[]}`, text(t, a))
	}
	require.Empty(t, out.Append)
}
