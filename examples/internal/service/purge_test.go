package service

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

var purgeRows = []row{
	{topic: "purge", payload: `{"age_limit":-1.0,"num_limit":-1,"batch":50,"force":false}`},
	{topic: "purge", payload: `{"age_limit":-1.0,"num_limit":-1,"batch":50,"force":true}`},
	{topic: "purge", payload: `{"age_limit":1e300,"num_limit":0,"batch":100,"force":true}`},
	same("purge", `{}`, errno.Protocol, ""),
	same("purge", `{"age_limit":-1.0,"num_limit":-1,"batch":50,"force":1}`, errno.Protocol, ""),
	same("purge", `{"age_limit":-0.5,"num_limit":-1,"batch":50,"force":false}`, errno.Invalid, "if set, age limit must be >= 0"),
	same("purge", `{"age_limit":-1.0,"num_limit":-42,"batch":0,"force":false}`, errno.Invalid, "if set, num limit must be >= 0"),
	same("purge", `{"age_limit":-1.0,"num_limit":-1,"batch":0,"force":false}`, errno.Invalid, "batch must be >= 1 and <= 100"),
	same("purge", `{"age_limit":-1.0,"num_limit":-1,"batch":101,"force":true}`, errno.Invalid, "batch must be >= 1 and <= 100"),

	{topic: "purge-id", payload: `{"id":18,"force":0}`},
	{topic: "purge-id", payload: `{"id":18,"force":1}`},
	same("purge-id", `{"id":18}`, errno.Protocol, ""),
	same("purge-id", `{"id":99,"force":0}`, errno.NoEntry, "id not found"),
	same("purge-id", `{"id":99,"force":1}`, errno.NoEntry, "id not found"),
	same("purge-id", `{"id":16,"force":0}`, errno.Invalid, "cannot purge active job"),
	same("purge-id", `{"id":16,"force":1}`, errno.Invalid, "cannot purge active job"),
}

// graveyard returns a service with n inactive jobs, with the ids from 1.
func graveyard(t *testing.T, cfg joblife.Config, n int) *desk {
	t.Helper()
	d := newDesk(t, Config{Manager: cfg})
	for id := range n {
		d.drive(owner("submit", submission1(jobid.ID(id+1), ownGuest)))
		d.do(joblife.Raise{ID: jobid.ID(id + 1), Type: "cancel"})
	}
	return d
}

func limitsOf(num, batch int, force bool) string {
	return fmt.Sprintf(`{"age_limit":-1.0,"num_limit":%d,"batch":%d,"force":%t}`, num, batch, force)
}

func TestPurgeRemovesOneBatch(t *testing.T) {
	w := graveyard(t, joblife.Config{}, 10)
	for _, tt := range []struct {
		topic, payload string
		count          int
		gone           string
	}{
		{"purge", limitsOf(-1, 50, true), 0, ""},
		{"purge", limitsOf(8, 1, false), 2, ""},
		{"purge", limitsOf(8, 1, true), 1, ids(1)},
		{"purge", limitsOf(8, 1, true), 1, ids(2)},
		{"purge", limitsOf(8, 1, true), 0, ""},
		{"purge", limitsOf(5, 50, true), 3, ids(3, 4, 5)},
		{"purge-id", `{"id":9,"force":0}`, 1, ""},
		{"purge-id", `{"id":9,"force":1}`, 1, ids(9)},
		{"purge", `{"age_limit":1.0,"num_limit":-1,"batch":50,"force":true}`, 0, ""},
		{"purge", limitsOf(0, 100, true), 4, ids(6, 7, 8, 10)},
	} {
		out := w.drive(owner(tt.topic, tt.payload))
		require.Len(t, out.Answers, 1, tt.payload)
		require.JSONEq(t, fmt.Sprintf(`{"count":%d}`, tt.count), text(t, out.Answers[0].Payload), tt.payload)
		if tt.gone == "" {
			require.Empty(t, out.Events)
			continue
		}
		require.Len(t, out.Events, 1)
		require.Equal(t, "job-purge-inactive", out.Events[0].Topic)
		require.JSONEq(t, `{"jobs":`+tt.gone+`}`, text(t, out.Events[0].Payload))
	}
	out := w.drive(owner("purge-id", `{"id":9,"force":1}`)) // it has a tombstone
	require.Equal(t, want{errno.NoEntry, "id not found"}, want{out.Answers[0].Errnum, out.Answers[0].Errstr})
	require.Equal(t, "unknown job id", w.drive(owner("raise", `{"id":9,`+cancel)).Answers[0].Errstr)
}

func TestPurgeByAge(t *testing.T) {
	w := graveyard(t, joblife.Config{}, 3)
	r := owner("purge", `{"age_limit":0.001,"num_limit":-1,"batch":50,"force":true}`)
	w.Request(start.Add(time.Second), r)
	require.JSONEq(t, `{"count":3}`, text(t, w.collect().Answers[0].Payload))
}

// removing returns a service whose store is removing job 1 of 9, by the limits of the
// configuration, and the Out that says so.
func removing(t *testing.T) (*desk, *parcel) {
	t.Helper()
	w := graveyard(t, joblife.Config{Limits: purge.Limits{MaxCount: jobstate.Some(8)}}, 8)
	w.drive(owner("submit", submission1(9, ownGuest)))
	require.NoError(t, w.step(joblife.Raise{ID: 9, Type: "cancel"}))
	out := new(parcel)
	for len(out.Unlink) == 0 {
		require.NoError(t, w.Tick(start.Add(time.Second)))
		require.True(t, w.Next(out))
		if len(out.Unlink) == 0 {
			require.NoError(t, w.Done(start, out, nil))
		}
	}
	return w, out
}

// Requests to purge wait for each other, and for purges by the limits of the configuration.
func TestPurgesWaitForTheStore(t *testing.T) {
	for _, tt := range []struct {
		name     string
		requests []Request
		want     []string
	}{
		{"for each other", []Request{
			owner("purge", limitsOf(6, 50, true)), owner("purge-id", `{"id":9,"force":1}`), owner("purge-id", `{"id":99,"force":1}`),
			owner("purge", limitsOf(5, 50, true)), owner("purge-id", `{"id":1,"force":1}`),
		}, []string{`{"count":2}`, "id not found", `{"count":1}`, "id not found", `{"count":0}`}},
		{"for another job", []Request{owner("purge-id", `{"id":9,"force":1}`)}, []string{`{"count":1}`}},
		{"for that job", []Request{owner("purge-id", `{"id":1,"force":1}`)}, []string{"id not found"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, out := removing(t)
			for _, r := range tt.requests {
				w.Request(start, r)
			}
			require.NoError(t, w.Done(start, out, nil))
			require.Equal(t, tt.want, outcomes(t, w.collect().Answers))
		})
	}
}

// outcomes returns the payloads and errors of answers.
func outcomes(t *testing.T, answers []Answer) (list []string) {
	t.Helper()
	for _, a := range answers {
		if a.Errnum != 0 {
			list = append(list, a.Errstr)
			continue
		}
		list = append(list, text(t, a.Payload))
	}
	return list
}

// The limits may purge between the count and the removal of a request.
func TestAPurgeThatTheLimitsCross(t *testing.T) {
	w := graveyard(t, joblife.Config{Limits: purge.Limits{MaxCount: jobstate.Some(8)}}, 8)
	w.drive(owner("submit", submission1(9, ownGuest)))
	require.NoError(t, w.step(joblife.Raise{ID: 9, Type: "cancel"}))
	w.Request(start, owner("purge", limitsOf(6, 1, true)))
	require.NoError(t, w.Tick(start.Add(time.Second)))
	out := w.collect()
	require.Equal(t, []string{`{"count":1}`}, outcomes(t, out.Answers))
	require.Len(t, out.Events, 3)
	require.JSONEq(t, `{"jobs":[1]}`, text(t, out.Events[1].Payload))
	require.JSONEq(t, `{"jobs":[2]}`, text(t, out.Events[2].Payload))
}

func TestPurgesThatWaitAreLimited(t *testing.T) {
	w, out := removing(t)
	for range maxPurges + 1 {
		w.Request(start, owner("purge", limitsOf(-1, 50, true)))
	}
	var quick parcel
	require.True(t, w.Next(&quick))
	require.Len(t, quick.Answers, 1)
	require.Equal(t, want{errno.Again, "1024 purges are under way"}, want{quick.Answers[0].Errnum, quick.Answers[0].Errstr})
	require.NoError(t, w.Done(start, &quick, nil))
	require.NoError(t, w.Done(start, out, nil))
	require.Len(t, w.collect().Answers, maxPurges)
}

// At the end a purge that has begun goes on, and the others purge nothing.
func TestStopAnswersPurges(t *testing.T) {
	const unloading = "job-manager is unloading"
	count, one, two := owner("purge", limitsOf(0, 50, true)), owner("purge-id", `{"id":1,"force":1}`), owner("purge-id", `{"id":2,"force":1}`)
	for _, tt := range []struct {
		requests []Request
		want     []string
		left     int
	}{
		{[]Request{one, two, count}, []string{unloading, unloading, `{"count":1}`}, 2},
		{[]Request{count, one}, []string{unloading, unloading}, 3},
	} {
		w := graveyard(t, joblife.Config{}, 3)
		w.together(func() {
			for _, r := range tt.requests {
				w.Request(start, r)
			}
			w.Stop(start)
			w.Stop(start) // a signal, and the end of the input
		})
		require.Equal(t, tt.want, outcomes(t, w.collect().Answers))
		require.Equal(t, tt.left, w.m.Stats().States[jobstate.StateInactive])
		require.Empty(t, w.purges.list)
	}
}

func TestAPurgeThatTheStoreRefuses(t *testing.T) {
	w := graveyard(t, joblife.Config{}, 2)
	w.Request(start, owner("purge", limitsOf(0, 50, true)))
	var answers []Answer
	var events []Event
	for out := (parcel{}); w.Next(&out); {
		answers, events = append(answers, out.Answers...), append(events, out.Events...)
		failed := map[jobid.ID]error{}
		if len(out.Unlink) > 0 {
			failed[1] = errors.New("no such directory")
		}
		require.NoError(t, w.Done(start, &out, failed))
	}
	require.Len(t, answers, 1)
	require.Equal(t, want{errno.Invalid, "no such directory"}, want{answers[0].Errnum, answers[0].Errstr})
	require.Len(t, events, 1)
	require.JSONEq(t, `{"jobs":[2]}`, text(t, events[0].Payload))
}
