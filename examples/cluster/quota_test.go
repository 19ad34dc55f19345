package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// What the jobs of a guest take has a limit, also of those that were there before a takeover. A job
// that is over, or was refused, counts no more, and others and the owner are not concerned.
func TestAGuestHasAQuota(t *testing.T) {
	text := specWith(`"job":{"name":"x"}`)
	now := time.Unix(1_700_000_000, 0)
	config := func(most load) joblife.Config {
		return joblife.Config{Owner: 1, Epoch: now, Hooks: []joblife.Hooks{joblife.Dependencies(), quota(1, most)}}
	}
	few := load{2, 1 << 20}
	m, err := joblife.New(config(few))
	require.NoError(t, err)
	var log []joblife.Record
	var id jobid.ID
	step := func(in joblife.Input) error {
		err := m.Step(now, in)
		for rd := new(joblife.Ready); m.Ready(rd); {
			for _, r := range rd.Append {
				r.Data = []byte(string(r.Data))
				log = append(log, r)
			}
			for _, a := range rd.Answers {
				id = a.Job
			}
			require.NoError(t, m.Done(rd.Seq))
		}
		return err
	}
	submit := func(uid uint32, text []byte) error {
		return step(joblife.Submit{Tag: 1, By: joblife.Cred{UserID: uid, Guest: uid != 1}, Jobspec: text, Urgency: jobstate.UrgencyHold})
	}
	restart := func(most load) {
		m, _, err = joblife.Restore(now, config(most), func(yield func(joblife.Record, error) bool) {
			for _, r := range log {
				if !yield(r, nil) {
					return
				}
			}
		})
		require.NoError(t, err)
	}
	unknown := specWith(`"dependencies":[{"scheme":"x","value":"y"}]`)
	for range 3 {
		require.ErrorContains(t, submit(7, unknown), "not supported")
		require.NoError(t, submit(1, text))
	}
	require.NoError(t, submit(7, text))
	require.NoError(t, submit(7, text))
	for range 2 { // before a takeover and after it
		require.ErrorContains(t, submit(7, text), "user 7 has 2 jobs that are not over")
		require.NoError(t, submit(1, text))
		require.NoError(t, step(joblife.Raise{By: joblife.Cred{UserID: 1}, ID: id, Type: "cancel"}))
		restart(few)
	}
	require.NoError(t, submit(8, text))
	require.NoError(t, submit(8, text))
	require.NoError(t, step(joblife.Raise{By: joblife.Cred{UserID: 1}, ID: id, Type: "cancel"}))
	require.NoError(t, submit(8, text))
	require.Error(t, submit(8, text))

	restart(load{100, 3 * len(text)})
	require.ErrorContains(t, submit(7, specWith(`"x":"`+strings.Repeat("x", len(text))+`"`)), "together they may have")
	require.NoError(t, submit(7, text))
	require.Error(t, submit(7, text))
	require.NoError(t, step(joblife.Raise{By: joblife.Cred{UserID: 1}, ID: id, Type: "cancel"}))
	require.NoError(t, submit(7, text))

	for !strings.Contains(string(log[len(log)-1].Data), `"submit"`) {
		log = log[:len(log)-1] // the crash comes before the job is validated
	}
	active := m.Stats().States[jobstate.StateSched]
	restart(load{1, 1}) // jobs that are there go on
	require.NoError(t, step(joblife.Tick{}))
	require.Equal(t, active, m.Stats().States[jobstate.StateSched])
}
