package joblife_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// mallory is a guest with jobs.
var mallory = joblife.Cred{UserID: 5, Guest: true}

// crowded is a site of which the store has a limit for the log of a job, as all stores do.
func crowded(t *testing.T, maxLog int) *site {
	s := newSite(t, joblife.Config{
		MaxLog: maxLog,
		Actions: perilog.Config{
			Prologs: []perilog.ActionConfig{{PerRank: true}}, Epilogs: []perilog.ActionConfig{{PerRank: true}},
			Housekeeping: &perilog.HousekeepingConfig{},
		},
		Hooks: []joblife.Hooks{joblife.Dependencies(), {Name: "chatty", Event: func(e *joblife.Event) {
			if id := e.Job.ID(); e.Entry.Name == jobstate.EventUrgency || e.Entry.Name == jobstate.EventException {
				e.Post(joblife.Post{ID: id, Name: "site.noted", Context: []byte(`{"text":"` + strings.Repeat("n", maxLog/64) + `"}`)})
				e.Post(joblife.Priority{ID: id, Priority: uint32(e.Entry.Timestamp)})
			}
		}}},
	}, 8)
	return s
}

// logSizes returns how long the logs in the store are.
func (s *site) logSizes() map[jobid.ID]int {
	sizes := make(map[jobid.ID]int)
	for _, r := range s.store {
		if r.Kind == joblife.RecordEvent {
			sizes[r.Job] += len(r.Data)
		}
	}
	return sizes
}

// hostile returns a request of a guest, or what comes of one: words of the scheduler and
// the executor that its jobs can bring about.
func hostile(t *testing.T, rng *rand.Rand, maxLog int, ids []jobid.ID) joblife.Input {
	long := func() string { return strings.Repeat("x\u2028\x7f", rng.IntN(maxLog/8)) }
	object := func() []byte {
		return fmt.Appendf(nil, `{"k%d":"%s"}`, rng.IntN(9), strings.ReplaceAll(long(), "\x7f", "y"))
	}
	id := ids[rng.IntN(len(ids))]
	switch rng.IntN(11) {
	case 0:
		return joblife.Submit{By: mallory, Urgency: rng.IntN(17), Jobspec: bytes.Replace(
			text(t, jobspec.Job{Nodes: 1 + rng.Int64N(2)}), []byte(`"version"`), []byte(`"x":"`+strings.Repeat("j", rng.IntN(4)<<10)+`","version"`), 1)}
	case 1, 2:
		return joblife.Memo{By: mallory, ID: id, Values: object(), Volatile: rng.IntN(3) == 0}
	case 3, 4:
		return joblife.Update{By: mallory, ID: id, Updates: []jobstate.Update{{
			Path: fmt.Sprint("attributes.system.k", rng.IntN(9)), Value: []byte(`"` + strings.Repeat("u", rng.IntN(maxLog/4)) + `"`)}}}
	case 5, 6:
		return joblife.Raise{By: mallory, ID: id, Type: strings.Repeat("t", 1+rng.IntN(9)), Severity: 1 + rng.IntN(7), Note: long()}
	case 7, 8:
		return joblife.Urgency{By: mallory, ID: id, Urgency: rng.IntN(17)}
	case 9:
		return joblife.SchedResponse{ID: id, Type: alloc.ResponseAnnotate, Annotations: object()}
	}
	return joblife.ExecResponse{ID: id, Type: exec.ResponseException, Exception: exec.Exception{Type: "exec", Severity: 1, Note: long()}}
}

// I12, I6: whatever guests ask for, each record can be stored: the log of a job ends in good
// time before the limit of the store, a request beyond that is refused and changes nothing,
// and each job can be canceled and ends.
func TestNoRequestOfAGuestCanMakeAnAppendFail(t *testing.T) {
	const maxLog = 32 << 10
	const own = 24 << 10 // that ends a job of two nodes, with notes
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := twins{a: crowded(t, maxLog), b: crowded(t, maxLog)}
		for _, s := range []*site{w.a, w.b} {
			s.hold["finish"] = true
			s.hold["sched"] = seed%2 == 0
		}
		var ids []jobid.ID
		for range 3 {
			w.must(joblife.Submit{Tag: 7, By: mallory, Urgency: 16, Jobspec: text(t, jobspec.Job{Nodes: 2})})
			a, _ := w.a.answer(7)
			ids = append(ids, a.Job)
		}
		full := 0
		for range 200 {
			w.tick()
			if in := hostile(t, rng, maxLog, ids); w.give(in) != nil {
				full++
			}
		}
		require.Greater(t, full, 30, "seed %d: nothing was refused", seed)
		for s := w.a; ; s.restart() {
			require.NoError(t, joblife.Audit(s.m))
			for _, id := range ids {
				require.ErrorIs(t, s.try(joblife.Memo{By: mallory, ID: id, Values: []byte(`{"m":"` + strings.Repeat("m", maxLog) + `"}`)}), joblife.ErrLimit)
			}
			if s.rec.Jobs != nil {
				break // the logs count after a restart, too
			}
		}
		s := w.a
		var all []jobid.ID
		for v := range s.m.Jobs(jobstate.StateNew | jobstate.StateActive) {
			all = append(all, v.ID())
		}
		for _, id := range all {
			require.NoError(t, s.try(joblife.Raise{By: mallory, ID: id, Type: "cancel", Note: strings.Repeat("n", maxLog)}), "seed %d", seed)
			if s.state(id) != jobstate.StateInactive { // the executor has it
				s.finish(id, 9)
			}
			require.Equal(t, jobstate.StateInactive, s.state(id), "seed %d: %v", seed, id)
		}
		for id, n := range s.logSizes() {
			require.LessOrEqual(t, n, 2*maxLog+own, "seed %d: %v", seed, id)
		}
		s.stored()
	}
}

// A service that reports of a job must not depend on its user.
func TestAGuestWhoFillsALogLeavesRoomForServices(t *testing.T) {
	s := crowded(t, 4<<10)
	s.hold["sched"] = true
	id := s.ask(joblife.Submit{Tag: 7, By: mallory, Urgency: 16, Jobspec: text(t, jobspec.Job{Nodes: 1})}).Job
	var err error
	for n := 0; err == nil && n < 1000; n++ {
		err = s.try(joblife.Urgency{By: mallory, ID: id, Urgency: 3})
	}
	require.ErrorIs(t, err, joblife.ErrLimit)
	require.ErrorContains(t, err, "no room for the event")
	s.step(joblife.Post{ID: id, Name: "prolog-start", Context: []byte(`{"description":"site"}`)})
	err = nil
	for n := 0; err == nil && n < 1000; n++ {
		err = s.try(joblife.Post{ID: id, Name: "site", Context: []byte(`{}`)})
	}
	require.ErrorIs(t, err, joblife.ErrLimit)
	require.LessOrEqual(t, s.logSizes()[id], 8<<10)
}

func TestAGuestUpdatesAJobNoMoreOftenThanARestartCan(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["sched"] = true
	put := func(by joblife.Cred, id jobid.ID, n int) error {
		return s.try(joblife.Update{By: by, ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: fmt.Append(nil, n)}}})
	}
	for _, size := range []int{0, 1000 << 10} {
		spec := strings.Replace(string(spec(t)), `"version"`, `"x":"`+strings.Repeat("x", size)+`","version"`, 1)
		id := s.ask(joblife.Submit{Tag: 7, By: mallory, Urgency: 16, Jobspec: []byte(spec)}).Job
		n := 0
		for n < 2000 && put(mallory, id, n+1) == nil {
			n++
		}
		require.ErrorIs(t, put(mallory, id, 1), joblife.ErrLimit)
		require.Equal(t, 64<<20/(64<<10+len(spec)), n, "of a jobspec of %d bytes", len(spec))
		require.NoError(t, put(joblife.Cred{}, id, 1), "the owner may")
	}
}
