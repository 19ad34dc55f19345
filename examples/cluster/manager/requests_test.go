package manager

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// A list describes no more of the jobs that are over than it shows, and counts those it looks at,
// whoever has them.
func TestAListDescribesWhatItShows(t *testing.T) {
	for by, shown := range map[uint32][]jobid.ID{7: {3999, 4000}, 8: nil} {
		var allocs [2]float64
		for i, n := range []int{1000, 4000} {
			var f joblife.Follower
			for id := range jobid.ID(n) {
				text, err := jobstate.Summary{ID: id + 1, UserID: 7, Inactive: 1_700_000_000, Result: jobstate.ResultCompleted}.AppendText(nil)
				require.NoError(t, err)
				require.NoError(t, f.Add(joblife.Record{Time: 1_700_000_000, Job: id + 1, Kind: joblife.RecordInactive, Data: text}))
			}
			m, _, err := f.Restore(time.Unix(1_700_000_000, 0), joblife.Config{Owner: 1, Private: true, Epoch: time.Unix(1_700_000_000, 0)})
			require.NoError(t, err)
			a := idle(t)
			a.ended = newRecent(maxRecent)
			var answer wire.Answer
			allocs[i] = testing.AllocsPerRun(5, func() {
				answer = wire.Answer{}
				seen, err := a.read(m, joblife.Cred{UserID: by, Guest: true}, "jobs", wire.Request{All: true, Limit: 2}, &answer)
				require.NoError(t, err)
				require.Equal(t, n, seen)
			})
			if n == 4000 {
				var ids []jobid.ID
				for _, j := range answer.Jobs {
					ids = append(ids, j.ID)
				}
				require.Equal(t, shown, ids)
			}
		}
		require.InDelta(t, allocs[0], allocs[1], 10)
	}
}

// A list of the jobs of one user has as many of them as it may have of all.
func TestAListOfAUserHasNoOthers(t *testing.T) {
	var f joblife.Follower
	for id := range jobid.ID(6) {
		text, err := jobstate.Summary{ID: id + 1, UserID: 7 + uint32(id)/3, Inactive: 1_700_000_000, Result: jobstate.ResultCompleted}.AppendText(nil)
		require.NoError(t, err)
		require.NoError(t, f.Add(joblife.Record{Time: 1_700_000_000, Job: id + 1, Kind: joblife.RecordInactive, Data: text}))
	}
	m, _, err := f.Restore(time.Unix(1_700_000_000, 0), joblife.Config{Owner: 1, Private: true, Epoch: time.Unix(1_700_000_000, 0)})
	require.NoError(t, err)
	a, user := idle(t), uint32(7)
	a.ended = newRecent(maxRecent)
	var answer wire.Answer
	_, err = a.read(m, joblife.Cred{UserID: 1}, "jobs", wire.Request{All: true, Limit: 2, User: &user}, &answer)
	require.NoError(t, err)
	require.Len(t, answer.Jobs, 2)
	require.Equal(t, []jobid.ID{2, 3}, []jobid.ID{answer.Jobs[0].ID, answer.Jobs[1].ID})
}

// opened opens the engine of a server that is alone.
func opened(t *testing.T) *engine.Engine {
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	t.Cleanup(s.Shutdown)
	e, err := engine.Open(t.Context(), engine.Config{URL: s.ClientURL(), Instance: "main", Plain: true})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// A list of nodes counts by what is in it, and lists and what is long count before they are served.
func TestWhatIsLargeCountsAsManyRequests(t *testing.T) {
	a := idle(t)
	a.Engine = opened(t)
	a.Users, a.Manager.Owner = a.Engine, 1
	a.Log = slog.New(slog.DiscardHandler)
	var err error
	a.Nodes, err = rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, 9999), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop, err := a.listen(ctx)
	require.NoError(t, err)
	defer stop()
	long := `{"protocol":1,"note":"` + strings.Repeat("x", 3*bytesInOne) + `"}`
	for verb, c := range map[string]struct {
		text string
		one  int // counts as so many
	}{"jobs": {`{"protocol":1}`, perList}, "nodes": {`{"protocol":1}`, perList}, "wait": {long, 4}} {
		before, began := len(a.requests.tags(func(request) bool { return true })), time.Now()
		uid := uint32(verb[0])
		for range 2 * requestsPerSecond {
			require.NoError(t, a.Engine.PublishRequest(a.Engine.Subject("req", uid, verb), wire.Inbox(uid)+".x", []byte(c.text)))
		}
		require.NoError(t, a.Engine.Flush())
		time.Sleep(200 * time.Millisecond)
		served := len(a.requests.tags(func(request) bool { return true })) - before
		require.GreaterOrEqual(t, served, 2*requestsPerSecond/c.one-5, verb)
		most := (2 + time.Since(began).Seconds()) * requestsPerSecond / float64(c.one) // a busy machine takes longer
		require.LessOrEqual(t, float64(served), most+5, verb)
	}

	const uid = 7
	began := time.Now()
	require.True(t, a.limit.Allow(uid, began))
	done := make(chan error, 1)
	go func() {
		_, err := a.answer(ctx, joblife.Cred{UserID: uid, Guest: true}, "nodes", wire.Request{})
		done <- err
	}()
	for ended := false; !ended; {
		select {
		case err := <-done:
			require.NoError(t, err)
			ended = true
		case <-time.After(time.Millisecond):
			require.NoError(t, a.Advance(time.Unix(1_700_000_000, 0)))
		}
	}
	require.False(t, a.limit.Allow(uid, began), "10 000 nodes count as 400 requests, whenever that is")
}

// One guest leaves room for others, whether it asks often or at length.
func TestAGuestHasAPartOfTheRoom(t *testing.T) {
	for bytes, want := range map[int]int{0: maxRequests / perGuest, 64 << 10: maxRequested/perGuest>>16 + 1} {
		var rs requests
		by := joblife.Cred{UserID: 7, Guest: true}
		var tags []uint64
		for tag, ok := rs.add(request{by: by, bytes: bytes}); ok; tag, ok = rs.add(request{by: by, bytes: bytes}) {
			tags = append(tags, tag)
		}
		require.Len(t, tags, want)
		for _, other := range []joblife.Cred{{UserID: 8, Guest: true}, {UserID: 1}} {
			tag, ok := rs.add(request{by: other, bytes: bytes})
			require.True(t, ok)
			tags = append(tags, tag)
		}
		for _, tag := range tags {
			_, ok := rs.end(tag)
			require.True(t, ok)
		}
		require.Zero(t, rs.all)
		require.Empty(t, rs.guests)
	}
}

// Of a wait nothing is kept that its sender can make long.
func TestAWaitKeepsNoBytes(t *testing.T) {
	a := idle(t)
	a.Manager.Owner, a.Users = 1, opened(t)
	long, err := json.Marshal(wire.Request{Protocol: wire.Protocol, Note: strings.Repeat("x", 60<<10)})
	require.NoError(t, err)
	for verb, want := range map[string]share{"wait": {1, 0}, "cancel": {1, len(long)}} {
		a.requests = requests{}
		a.request(t.Context(), &nats.Msg{Subject: "jl.main.req.7." + verb, Data: long}, 7)
		require.Equal(t, want, a.requests.guests[7], verb)
	}
}

// A burst of requests for what is large has few answers in memory at once.
func TestFewLargeAnswersAreMadeAtOnce(t *testing.T) {
	a := idle(t)
	a.Engine = opened(t)
	a.Users, a.Manager.Owner = a.Engine, 1
	stop, err := a.listen(t.Context())
	require.NoError(t, err)
	defer stop()
	sub, err := a.Users.SubscribeSync("answers")
	require.NoError(t, err)
	left := func() int { return len(a.requests.tags(func(request) bool { return true })) }
	for _, verb := range []string{"job", "jobs", "nodes"} {
		for range 3 * maxReads {
			a.request(t.Context(), &nats.Msg{Subject: "jl.main.req.7." + verb, Sub: sub, Reply: "answers", Data: []byte(`{"protocol":1}`)}, 7)
		}
		for want := 3 * maxReads; want > 0; {
			time.Sleep(50 * time.Millisecond) // each that may looks at the Manager in the same Advance
			require.NoError(t, a.Advance(time.Unix(1_700_000_000, 0)))
			want -= maxReads
			require.Eventually(t, func() bool { return left() <= want }, 10*time.Second, time.Millisecond)
			require.Equal(t, want, left(), verb)
		}
	}
}

// A purge of all that is over, with a limit beside it, could be meant for some.
func TestAPurgeOfAllHasNoLimits(t *testing.T) {
	age, keep := fsd.Duration(7*24*time.Hour), 0
	for want, list := range map[bool][]wire.Request{
		true:  {{All: true}, {MaxAge: &age}, {MaxCount: &keep}, {MaxAge: &age, MaxCount: &keep}},
		false: {{All: true, MaxAge: &age}, {All: true, MaxCount: &keep}},
	} {
		for _, r := range list {
			_, err := input(1, joblife.Cred{}, "purge", r)
			require.Equal(t, want, err == nil, "%+v: %v", r, err)
		}
	}
}

// What is in an answer counts, and what was looked at for it.
func TestWhatAnAnswerCounts(t *testing.T) {
	log := wire.JobInfo{Eventlog: strings.Repeat("x", 1<<20)}
	require.Equal(t, 64, beyond(&wire.Answer{Jobs: []wire.JobInfo{log}}, 0))
	require.Equal(t, 4+2+3, beyond(&wire.Answer{Jobs: make([]wire.JobInfo, 100), Nodes: make([]wire.Node, 50)}, 3*seenInOne))
}

// An answer has room for a log of 2 MiB, whatever its owner wrote.
func TestAnAnswerHasRoomForALog(t *testing.T) {
	a := idle(t)
	a.Users = opened(t)
	answers, err := a.Users.SubscribeSync("answers")
	require.NoError(t, err)
	for _, text := range []string{"<>&", "\\\"\n", "\u2028"} {
		tag, ok := a.requests.add(request{sub: answers, reply: "answers"})
		require.True(t, ok)
		log := strings.Repeat(text, 2<<20/len(text))
		a.respond(tag, wire.Answer{Jobs: []wire.JobInfo{{Eventlog: log}}}, nil)
		m, err := answers.NextMsg(time.Minute)
		require.NoError(t, err)
		require.Greater(t, len(m.Data), len(log), "%.200s", m.Data)
	}
}
