package joblife_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/purge"
)

func keyed(t testing.TB, user uint32, key string) joblife.Submit {
	return joblife.Submit{
		Tag: 7, By: joblife.Cred{UserID: user, Guest: true}, Key: key, Urgency: 16,
		Jobspec: text(t, jobspec.Job{Nodes: 1, Command: []string{"true"}}),
	}
}

// A submission that is repeated finds its job, whatever has become of the job or of the
// Manager, until the job is purged.
func TestARepeatedSubmissionFindsItsJob(t *testing.T) {
	key := strings.Repeat("\"\n", 128) // the longest
	for name, again := range restarts {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, busyConfig(), 8)
			s.hold["sched"] = true
			id := s.ask(keyed(t, 5, key)).Job
			find := func(state jobstate.State) {
				t.Helper()
				n := len(s.store)
				require.Equal(t, id, s.ask(keyed(t, 5, key)).Job)
				require.Equal(t, state, s.state(id))
				require.Len(t, s.store, n)
			}
			find(jobstate.StateSched)
			again(s)
			find(jobstate.StateSched)
			s.hold["sched"] = false
			s.restart()
			find(jobstate.StateInactive)
			again(s)
			find(jobstate.StateInactive)
			again(s)
			find(jobstate.StateInactive)
			s.restore(slices.Collect(standby(t, s.store).Snapshot()))
			s.hello()
			find(jobstate.StateInactive)

			s.step(joblife.EnableQueue{Reason: "full"})
			s.step(joblife.Shutdown{})
			find(jobstate.StateInactive)
			s.restart()
			s.step(joblife.EnableQueue{Enable: true})

			s.step(joblife.Purge{Limits: purge.PurgeAll(), Force: true})
			again(s)
			other := s.ask(keyed(t, 5, key)).Job
			require.NotEqual(t, id, other, "the job is not known any more")
			again(s)
			require.Equal(t, other, s.ask(keyed(t, 5, key)).Job)
		})
	}
}

// A key is its user's own: nobody learns of others' keys, and nobody meets them.
func TestAKeyIsItsUsersOwn(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	one := s.ask(keyed(t, 5, "k")).Job
	two := s.ask(keyed(t, 6, "k")).Job
	require.NotEqual(t, one, two)
	require.NotEqual(t, one, s.ask(keyed(t, 5, "")).Job, "no key")
	require.NotEqual(t, s.ask(keyed(t, 5, "")).Job, s.ask(keyed(t, 5, "")).Job)
	require.Equal(t, one, s.ask(keyed(t, 5, "k")).Job)
	require.Equal(t, two, s.ask(keyed(t, 6, "k")).Job)

	in := keyed(t, 5, "k")
	in.ID = one
	require.Equal(t, one, s.ask(in).Job)
	in.ID = two
	require.ErrorIs(t, s.try(in), joblife.ErrInvalid)
	require.ErrorIs(t, s.try(keyed(t, 5, strings.Repeat("x", 257))), joblife.ErrLimit)
	require.ErrorIs(t, s.try(keyed(t, 5, "\xff")), joblife.ErrInvalid)
}

// A submission that comes again before the first is durable is answered with it, and a job that
// is refused or invalid has no key.
func TestAKeyOfAJobThatIsNotDurableOrInvalid(t *testing.T) {
	named := func(name string) joblife.Submit {
		in := keyed(t, 5, "k")
		in.Jobspec = text(t, jobspec.Job{Nodes: 1, Command: []string{"true"}, Name: name})
		return in
	}
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{Validate: byName}}}, 8)
	require.ErrorIs(t, s.try(named("never")), joblife.ErrRefused)
	var rd joblife.Ready
	s.feed(named("later"))
	s.feed(named("later"))
	require.True(t, s.m.Ready(&rd))
	require.Len(t, rd.Answers, 2)
	id := rd.Answers[0].Job
	require.Equal(t, id, rd.Answers[1].Job)
	for _, r := range rd.Append {
		s.store = append(s.store, r.Clone())
	}
	require.NoError(t, s.m.Done(rd.Seq))
	s.feed(joblife.Validated{ID: id, Err: errors.New("no")})
	other := s.ask(named("a")).Job
	require.NotEqual(t, id, other)
	s.restart()
	require.Equal(t, other, s.ask(named("a")).Job)
	cut := slices.IndexFunc(s.store, func(r joblife.Record) bool { return strings.Contains(string(r.Data), `"invalidate"`) })
	list := s.store[:cut+1]
	s = newSite(t, joblife.Config{Hooks: []joblife.Hooks{{Validate: byName}}}, 8)
	s.now = s.now.Add(1e9)
	s.restore(list)
	require.NotEqual(t, id, s.ask(named("a")).Job, "the store has not removed it yet")
}

// Records may have two jobs with one key, such as those of a quarantined job, or half a
// submission.
func TestKeysOfOddRecords(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["sched"] = true
	id := s.ask(keyed(t, 5, "k")).Job
	list := slices.Clone(s.store)
	find := func(list []joblife.Record) jobid.ID {
		s := newSite(t, joblife.Config{}, 8)
		s.now = s.now.Add(1e9)
		s.restore(list)
		return s.ask(keyed(t, 5, "k")).Job
	}
	require.Equal(t, id, find(list))
	twin := slices.Clone(list)
	for i := range twin {
		twin[i].Job++
	}
	require.Equal(t, id, find(append(slices.Clone(list), twin...)), "the earlier one")
	bad := joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: []byte("{}\n")}
	require.Equal(t, id, find(append(slices.Clone(list), bad)), "it is quarantined: no second one is made")
	require.NotEqual(t, id, find(list[:1]), "nobody knows of it")
	key := joblife.Record{Job: id + 9, Kind: joblife.RecordKey, Data: []byte(`{"userid":5,"key":"k"}`)}
	require.Equal(t, id, find(append([]joblife.Record{key}, list...)), "of no job")
	key.Data = []byte(`{"userid":-1}`)
	s.restore(append([]joblife.Record{key}, list...))
	require.Len(t, s.rec.Quarantined, 1)
}
