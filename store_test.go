package joblife_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
)

// busyConfig has one of everything.
func busyConfig() joblife.Config {
	return joblife.Config{
		Hooks: []joblife.Hooks{joblife.Dependencies()},
		Actions: perilog.Config{
			Prologs: []perilog.ActionConfig{{PerRank: true}}, Epilogs: []perilog.ActionConfig{{PerRank: true}},
			Housekeeping: &perilog.HousekeepingConfig{},
		},
	}
}

// I3, I4, I10: a crash after any record.
func TestAJobEndsWhereverACrashCutsItsRecordsOff(t *testing.T) {
	s := newSite(t, busyConfig(), 8)
	id := s.submit(jobspec.Job{Nodes: 2})
	want := s.events(id)
	require.Contains(t, want, "clean")
	records := slices.Clone(s.store)
	for n := range records {
		for _, apart := range []bool{false, true} { // housekeeping in a log of its own, read before the others
			store := slices.Clone(records[:n+1])
			if apart {
				store = slices.Concat(parted(store))
			}
			s := newSite(t, busyConfig(), 8)
			s.now = s.now.Add(time.Minute)
			s.store = store
			cut := s.events(id)
			s.restore(store)
			for _, u := range s.rec.Unresolved {
				if u.Reason == perilog.ReasonLost {
					s.step(joblife.Rerun{Action: joblife.Action{Job: u.Job, Key: u.Action, Ranks: u.Ranks}})
				}
			}
			s.hello()
			name := fmt.Sprintf("after record %d, %v of %v apart=%v: %s", n, records[n].Kind, records[n].Job, apart, s.events(id))
			if !strings.HasPrefix(s.events(id), "submit") {
				require.Equal(t, "", s.events(id), "no submit, no job")
				continue
			}
			require.Equal(t, jobstate.StateInactive, s.state(id), name)
			require.Zero(t, s.m.Stats().Housekeeping, name)
			require.Zero(t, s.pool.Len(), name)
			require.Empty(t, s.faults(), name)
			got := s.events(id)
			require.Equal(t, strings.Fields(want)[0], strings.Fields(got)[0], name)
			for _, event := range []string{"submit", "validate", "depend", "alloc", "prolog-start", "prolog-finish", "start", "finish", "epilog-start", "epilog-finish", "free", "clean"} {
				count := strings.Count(" "+got+" ", " "+event+" ")
				if strings.HasPrefix(event, "prolog-") && strings.HasSuffix(cut, "alloc") {
					require.Zero(t, count, "the log does not say whether the executor was asked: RecoverJob goes on without a prolog")
					continue
				}
				require.Equal(t, 1, count, "SM-8: %s: %s", event, name)
			}
		}
	}
}

// parted returns the records of housekeeping, and the others, as some stores keep them.
func parted(records []joblife.Record) (housekeeping, others []joblife.Record) {
	for _, r := range records {
		if r.Kind == joblife.RecordHousekeeping {
			housekeeping = append(housekeeping, r)
		} else {
			others = append(others, r)
		}
	}
	return housekeeping, others
}

// A store that has the log of a job that is over has to have its jobspec.
func TestAJobWithoutItsJobspecIsQuarantined(t *testing.T) {
	for _, over := range []bool{false, true} {
		s := newSite(t, joblife.Config{}, 8)
		s.hold["finish"] = true
		id := s.submit(jobspec.Job{Nodes: 1})
		if over {
			s.finish(id, 0)
		}
		s.store = slices.DeleteFunc(s.store, func(r joblife.Record) bool { return r.Kind == joblife.RecordJobspec })
		s.restart()
		require.Len(t, s.rec.Quarantined, 1)
		require.Equal(t, id, s.rec.Quarantined[0].Job)
		require.ErrorContains(t, s.rec.Quarantined[0].Err, "jobspec of "+id.String())
	}
}

// SM-5.
func TestABadJobStopsNoOther(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	bad := s.submit(jobspec.Job{Nodes: 1})
	good := s.submit(jobspec.Job{Nodes: 1})
	for i, r := range s.store {
		if r.Job == bad && r.Kind == joblife.RecordEvent && strings.Contains(string(r.Data), `"alloc"`) {
			s.store[i].Data = []byte("{\"timestamp\":1.0,\"name\":\"clean\"}\n")
		}
	}
	s.restart()
	require.Len(t, s.rec.Quarantined, 1)
	require.Equal(t, bad, s.rec.Quarantined[0].Job)
	var event *jobstate.EventError
	require.ErrorAs(t, s.rec.Quarantined[0].Err, &event)
	require.Equal(t, 5, event.Line)
	require.Equal(t, 1, s.m.Stats().Quarantined)
	require.Equal(t, []jobid.ID{good}, s.rec.Jobs)
	require.Equal(t, []jobid.ID{good}, s.rec.Running)
	require.ErrorIs(t, s.try(joblife.Submit{ID: bad, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
}

func TestRestoreRefusesWhatItCannotTrust(t *testing.T) {
	now := time.Unix(1_600_000_000, 0)
	none := all(nil)
	_, _, err := joblife.Restore(now, joblife.Config{Volatile: true}, none)
	require.ErrorIs(t, err, joblife.ErrInvalid)
	_, _, err = joblife.Restore(time.Time{}, joblife.Config{}, none)
	require.ErrorIs(t, err, joblife.ErrClock)
	for _, r := range []joblife.Record{
		{}, {Kind: 99}, {Kind: joblife.RecordWatermark, Data: []byte("no")}, {Kind: joblife.RecordQueue, Data: []byte("{")},
	} {
		_, _, err = joblife.Restore(now, joblife.Config{}, all([]joblife.Record{r}))
		require.Error(t, err, r.Kind)
	}
}

// SM-11.
func TestARestartListsOnlyWhatHasStartedAsRunning(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	started := s.submit(jobspec.Job{Nodes: 1})
	s.hold["exec"] = true
	allocated := s.submit(jobspec.Job{Nodes: 1})
	s.exec = nil
	s.restore(s.store)
	require.Equal(t, []jobid.ID{started, allocated}, s.rec.Jobs)
	require.Equal(t, []jobid.ID{started}, s.rec.Running)
	require.Empty(t, s.exec, "nothing before it says hello")
	s.hello()
	require.Len(t, s.exec, 2)
}

// I9.
func TestIDsGrowAcrossRestartsAndAmongThoseOfTheCaller(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	first := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Submit{ID: first + 1000, Jobspec: text(t, jobspec.Job{Nodes: 1})})
	second := s.submit(jobspec.Job{Nodes: 1})
	require.Greater(t, second, first+1000)
	n := len(s.jour)
	s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.Len(t, s.jour, n, "nothing of a job after it was purged (PU-10)")
	require.Equal(t, second, s.m.Stats().MaxID, "though the job is gone")
	s.restart()
	require.Equal(t, second, s.m.Stats().MaxID)
	s.restore(slices.Collect(s.m.Snapshot()))
	s.hello()
	require.Equal(t, second, s.m.Stats().MaxID)
	require.Greater(t, s.submit(jobspec.Job{Nodes: 1}), second)
	cfg := s.cfg
	cfg.Epoch = time.Time{}
	m, err := joblife.New(cfg)
	require.NoError(t, err)
	require.ErrorIs(t, m.Step(s.now, joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "no generator")
}

// TestRealityGoesOnAfterARestartAtEveryEvent restarts after each thing that came from
// outside, from a snapshot. With JOBLIFE_DEEP it does so for the smaller recording and
// after every fifth for the larger one, with JOBLIFE_LONG for both, and else after some.
func TestRealityGoesOnAfterARestartAtEveryEvent(t *testing.T) {
	sources := map[string]int{"recorded/brokers.jsonl.gz": 33, "recorded/mixed.jsonl.gz": 380}
	for name, n := range sources {
		every := 97
		switch {
		case os.Getenv("JOBLIFE_LONG") != "": // which takes minutes
			every = 1
		case os.Getenv("JOBLIFE_DEEP") != "":
			every = 1 + n/80
		}
		t.Run(name, func(t *testing.T) {
			repeat(t, refdata.Lines[recorded](t, name, n), every, unrestarted)
		})
	}
}

// unrestarted leaves out flux-restart and the priority that follows it, which the hooks of
// these tests log, and the requests that a restart repeats.
func unrestarted(names string) string {
	names = strings.ReplaceAll(names, " debug.alloc-request", "")
	names = strings.ReplaceAll(names, " debug.start-request", "")
	return strings.ReplaceAll(names, " flux-restart priority", "")
}

// A Manager that has taken no Step has nothing to tell, at no time.
func TestASnapshotBeforeTheFirstStepHasNothing(t *testing.T) {
	cfg := joblife.Config{Queues: []string{"a", "b"}}
	m, err := joblife.New(cfg)
	require.NoError(t, err)
	lines, err := joblife.AppendRecords(nil, slices.Collect(m.Snapshot()))
	require.NoError(t, err)
	require.Empty(t, lines)
	again, _, err := joblife.Restore(time.Unix(2, 0), cfg, joblife.ReadRecords(bytes.NewReader(lines)))
	require.NoError(t, err)
	require.Equal(t, joblife.Describe(m), joblife.Describe(again))
	for _, m := range []*joblife.Manager{m, again} {
		require.NoError(t, m.Step(time.Unix(2, 0), joblife.Tick{}))
		lines, err = joblife.AppendRecords(nil, slices.Collect(m.Snapshot()))
		require.NoError(t, err)
		require.NotEmpty(t, lines)
	}
}

// A store that keeps the kinds of records apart has to read housekeeping first: what
// still runs on the nodes of a job that is over is not forgotten in silence.
func TestAJobWhoseHousekeepingComesTooLateIsQuarantined(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}, 8)
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	require.Contains(t, s.events(id), "clean")
	rest, events := parted(s.store)
	_, rec, err := joblife.Restore(s.now, s.cfg, all(append(slices.Clone(events), rest...)))
	require.NoError(t, err)
	require.Len(t, rec.Quarantined, 1)
	require.ErrorIs(t, rec.Quarantined[0].Err, joblife.ErrInvalid)
	m, _, err := joblife.Restore(s.now, s.cfg, all(append(rest, events...)))
	require.NoError(t, err)
	require.Equal(t, 1, m.Stats().Housekeeping)
}

// I1: the log of a job has free and clean while housekeeping runs on its nodes, which no other job
// gets, whatever of the records is damaged.
func TestAQuarantinedJobHoldsItsNodesUntilHousekeepingEnds(t *testing.T) {
	for _, part := range []string{"jobspec", `"clean"`, "housekeeping-start", "key"} {
		for _, ended := range []bool{false, true} {
			s := newSite(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}, 8)
			s.hold["action"] = !ended
			id := s.submit(jobspec.Job{Nodes: 2})
			require.Equal(t, jobstate.StateInactive, s.state(id))
			records := slices.Clone(s.store)
			switch part {
			case "key":
				records = slices.Insert(records, 0, joblife.Record{Job: id, Kind: joblife.RecordKey, Data: []byte("{}")})
			case "jobspec":
				records[slices.IndexFunc(records, func(r joblife.Record) bool { return r.Kind == joblife.RecordJobspec })].Data = []byte("{}")
			default:
				records[slices.IndexFunc(records, func(r joblife.Record) bool { return bytes.Contains(r.Data, []byte(part)) })].Data = []byte("?\n")
			}
			s.restore(records)
			require.True(t, ended || len(s.rec.Quarantined) == 1, part)
			require.Equal(t, ended, len(told(s)) == 0, "%s, ended: %v", part, ended)
		}
	}
}

// A job whose resources were revoked holds none, whatever is damaged: no event says that they are free.
func TestAQuarantinedJobThatWasRevokedHoldsNothing(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}})
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(success(t, id, 0, 1))
	s.step(joblife.Raise{ID: id, Type: "scheduler-restart"})
	require.Empty(t, told(s))
	s.restore(append(s.store, joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: []byte("?\n")}))
	require.Len(t, s.rec.Quarantined, 1)
	require.Empty(t, told(s))
}

func TestRecoveredNamesNoJobThatRestoreHasEnded(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
	s.submit(jobspec.Job{Nodes: 1})
	s.cfg.Hooks = []joblife.Hooks{{Validate: func(e *joblife.HookEvent) error {
		e.Post(joblife.Validated{ID: e.Job.ID(), Err: errors.New("no")})
		return joblife.ErrLater
	}}}
	s.restore(s.store)
	require.Empty(t, s.faults())
	require.Empty(t, s.rec.Jobs)
	require.Empty(t, s.m.Stats().States)
}

// A smaller limit ends no job that was accepted under a greater one.
func TestARestartWithASmallerLimitKeepsAllJobs(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["sched"] = true
	var ids []jobid.ID
	for range 3 {
		ids = append(ids, s.submit(jobspec.Job{Nodes: 1}))
	}
	s.cfg.MaxActive = 1
	s.restart()
	require.Equal(t, 3, s.m.Stats().Queue.Sent)
	require.ErrorIs(t, s.try(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrLimit)
	for _, id := range ids {
		require.NotContains(t, s.events(id), "exception")
	}
}

// ofJob returns the records of a job, by kind, as text.
func ofJob(id jobid.ID, records iter.Seq[joblife.Record]) map[joblife.RecordKind]string {
	text := make(map[joblife.RecordKind]string)
	for r := range records {
		if r.Job == id {
			text[r.Kind] += string(r.Data) + "|"
		}
	}
	return text
}

// SM-5: what cannot be read is not thrown away by the next snapshot either.
func TestASnapshotKeepsTheRecordsOfQuarantinedJobs(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}, 8)
	bad := s.submit(jobspec.Job{Nodes: 1})
	tomb := bad + 1
	over := bad + 2
	events := 0
	for i, r := range s.store {
		if r.Kind == joblife.RecordEvent {
			if events++; events == 3 {
				s.store[i].Data = []byte("{\"timestamp\":1.0,\"name\":\"clean\"}\n")
			}
		}
	}
	s.store = append(s.store,
		joblife.Record{Job: tomb, Kind: joblife.RecordTombstone, Data: []byte("?")},
		joblife.Record{Job: over, Kind: joblife.RecordInactive, Data: []byte("!")},
		joblife.Record{Kind: joblife.RecordJobspec, Data: []byte("{}")},
	)
	want := ofJob(bad, slices.Values(s.store))
	require.Len(t, want, 4, "jobspec, R, both logs")
	for range 2 {
		s.restore(s.store)
		require.Len(t, s.rec.Quarantined, 4)
		s.store = slices.Collect(s.m.Snapshot())
		require.Equal(t, want, ofJob(bad, slices.Values(s.store)))
		require.Equal(t, "?|", ofJob(tomb, slices.Values(s.store))[joblife.RecordTombstone])
		require.Equal(t, "!|", ofJob(over, slices.Values(s.store))[joblife.RecordInactive])
		require.Contains(t, s.rec.Quarantined[0].Err.Error(), "names no job")
	}
	// I12: there is an end to what is kept, though not to what is known of ids (I9).
	huge := joblife.Record{Job: tomb, Kind: joblife.RecordTombstone, Data: make([]byte, 65<<20)}
	s.restore([]joblife.Record{huge, {Job: bad, Kind: joblife.RecordTombstone, Data: []byte("?")}})
	require.ErrorIs(t, s.rec.Quarantined[1].Err, joblife.ErrLimit)
	require.NotErrorIs(t, s.rec.Quarantined[0].Err, joblife.ErrLimit)
	for range 2 {
		require.Empty(t, ofJob(tomb, s.m.Snapshot()))
		require.NotEmpty(t, ofJob(bad, s.m.Snapshot()))
		for _, id := range []jobid.ID{bad, tomb} {
			require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid)
		}
		s.restore(slices.Collect(s.m.Snapshot()))
	}
	require.NoError(t, s.try(joblife.Submit{ID: over, Jobspec: text(t, jobspec.Job{Nodes: 1})}))
}

// A summary under the id of another job quarantines that job and harms none.
func TestASummaryOfAnotherJobIsQuarantined(t *testing.T) {
	s, ids := ended(t, joblife.Config{}, 2)
	whole := slices.Collect(s.m.Snapshot())
	for _, kind := range []joblife.RecordKind{joblife.RecordInactive, joblife.RecordTombstone} {
		records := slices.Clone(whole)
		for _, r := range whole {
			if r.Kind == joblife.RecordInactive && r.Job == ids[0] {
				records = append(records, joblife.Record{Job: ids[1] + 1, Kind: kind, Data: r.Data})
				break
			}
		}
		s.restore(records)
		require.Len(t, s.rec.Quarantined, 1)
		require.Equal(t, ids[1]+1, s.rec.Quarantined[0].Job)
		require.ErrorIs(t, s.rec.Quarantined[0].Err, joblife.ErrInvalid)
		for _, id := range ids {
			require.NotEmpty(t, ofJob(id, s.m.Snapshot())[joblife.RecordInactive])
		}
		require.Len(t, ofJob(ids[1]+1, s.m.Snapshot()), 1, "and it is kept")
	}
}

// A job whose records contradict each other is quarantined: a purge does not take it, and the next
// restart finds it again.
func TestAContradictionIsQuarantined(t *testing.T) {
	tomb := func(id jobid.ID) []byte {
		text, err := jobstate.Summary{ID: id, Inactive: 1.6e9, Result: jobstate.ResultFailed, UserID: 1}.MarshalText()
		require.NoError(t, err)
		return text
	}
	for name, bad := range map[string]struct {
		joblife.Record
		hold string
	}{
		"a key that cannot be":       {joblife.Record{Kind: joblife.RecordKey, Data: []byte(`{"userid":5,"key":""}`)}, ""},
		"housekeeping after the end": {joblife.Record{Kind: joblife.RecordHousekeeping, Data: []byte(`{"timestamp":1600000001,"name":"x","context":{}}` + "\n")}, ""},
		"a tombstone of a live job":  {joblife.Record{Kind: joblife.RecordTombstone}, "sched"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, joblife.Config{}, 8)
			s.hold[bad.hold] = true
			bad.Job = s.submit(jobspec.Job{Nodes: 1})
			if bad.Kind == joblife.RecordTombstone {
				bad.Data = tomb(bad.Job)
			}
			s.store = append(s.store, bad.Record)
			for range 2 {
				s.restore(s.store)
				require.Len(t, s.rec.Quarantined, 1)
				_, known := s.m.Job(bad.Job)
				require.False(t, known)
				s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
				require.ErrorIs(t, s.try(joblife.Raise{ID: bad.Job, Type: "cancel"}), joblife.ErrUnknown)
				s.store = slices.Collect(s.m.Snapshot())
			}
		})
	}
}

// ended is a site with n jobs that are over.
func ended(t testing.TB, cfg joblife.Config, n int) (*site, []jobid.ID) {
	s := newSite(t, cfg, 8)
	var ids []jobid.ID
	for range n {
		ids = append(ids, s.submit(jobspec.Job{Nodes: 1}))
	}
	return s, ids
}

// inactive returns how many jobs are inactive.
func (s *site) inactive() int { return s.m.Stats().States[jobstate.StateInactive] }

// PU-7, PU-8.
func TestPurgeByHand(t *testing.T) {
	s, ids := ended(t, joblife.Config{}, 250)
	s.hold["finish"] = true
	run := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, 250, s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll()}).Count, "a dry run")
	require.Equal(t, 250, s.inactive())
	require.Equal(t, 2, s.ask(joblife.PurgeIDs{Tag: 7, IDs: ids[:2]}).Count, "a dry run")
	require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: []jobid.ID{ids[0], run}, Force: true}), purge.ErrActive)
	require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: []jobid.ID{ids[0], 42}, Force: true}), purge.ErrUnknown)
	require.Equal(t, 0, s.ask(joblife.PurgeIDs{Tag: 7, Force: true}).Count, "none")
	require.NoError(t, s.m.Step(s.now, joblife.PurgeIDs{IDs: ids[3:6], Force: true}))
	require.ErrorIs(t, s.m.Step(s.now, joblife.PurgeIDs{IDs: ids[:1], Force: true}), joblife.ErrLimit, "the store is busy")
	s.step(joblife.Tick{})
	require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: ids[3:4], Force: true}), purge.ErrPurged)
	a := s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.NoError(t, a.Err)
	require.Equal(t, 247, a.Count, "in batches")
	require.Equal(t, 0, s.inactive())
	require.Equal(t, 250, s.m.Stats().Purge.Purged.Total())
	require.ErrorIs(t, s.try(joblife.Submit{ID: ids[3], Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
}

// PU-6, PU-12, I9: wherever a crash cuts a purge off.
func TestACrashInTheMiddleOfAPurge(t *testing.T) {
	s, ids := ended(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 3)
	before := len(s.store)
	s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	records := slices.Clone(s.store)
	for n := before; n <= len(records); n++ {
		for _, gone := range []bool{false, true} {
			store := slices.Clone(records[:n])
			if gone && slices.ContainsFunc(store, func(r joblife.Record) bool { return r.Job == ids[2] && r.Kind == joblife.RecordTombstone }) {
				store = slices.DeleteFunc(store, func(r joblife.Record) bool { // what the store has removed
					return slices.Contains(ids, r.Job) && r.Kind != joblife.RecordTombstone && r.Kind != joblife.RecordUnlinked
				})
			}
			s.store, s.log = store, nil
			s.cfg.Hooks = []joblife.Hooks{joblife.Dependencies()}
			s.restart()
			require.Empty(t, s.rec.Quarantined)
			for _, id := range ids {
				require.ErrorIs(t, s.try(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
			}
			id := s.add(needing("b", "afterok", ids[1].String()))
			require.Greater(t, id, ids[2])
			require.Equal(t, jobstate.StateInactive, s.state(id))
			s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
			require.Zero(t, s.inactive())
			require.Empty(t, s.faults())
		}
	}
}

// PU-4, HK-5.
func TestHousekeepingKeepsAJobFromBeingPurged(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}, 8)
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, jobstate.StateInactive, s.state(id))
	for range 2 {
		require.Equal(t, 1, s.m.Stats().Housekeeping)
		require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: []jobid.ID{id}, Force: true}), purge.ErrPinned)
		require.Equal(t, 0, s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true}).Count)
		holders := 0
		for h := range s.m.Holders() {
			require.Equal(t, perilog.HolderHousekeeping, h.Kind)
			holders++
		}
		require.Equal(t, 1, holders, "PR-11")
		s.restart()
		require.Len(t, s.rec.Unresolved, 1, "HK-1")
		s.restore(slices.Collect(s.m.Snapshot()))
		s.hello()
	}
	l := s.runs[0]
	s.step(exited(l, 0))
	require.Equal(t, 0, s.m.Stats().Housekeeping)
	require.Equal(t, 1, s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{id}, Force: true}).Count)
}

// PU-5.
func TestAJobThatCannotBeRemovedStays(t *testing.T) {
	s, ids := ended(t, joblife.Config{}, 3)
	s.hold["unlink"] = true
	s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	require.ErrorIs(t, s.try(joblife.PurgeIDs{IDs: ids[:1], Force: true}), purge.ErrLeaving)
	bad := errors.New("disk")
	s.step(joblife.Unlinked{IDs: []jobid.ID{ids[0]}})
	require.Equal(t, 3, s.inactive(), "not all are told yet")
	s.step(joblife.Unlinked{IDs: ids[1:], Failed: map[jobid.ID]error{ids[1]: bad}})
	require.Equal(t, 2, s.answer(7).Count)
	require.Equal(t, 1, s.inactive())
	require.Equal(t, 1, s.m.Stats().Purge.Stuck)
	require.Len(t, s.faults(), 1)
	_, ok := s.m.Job(ids[1])
	require.True(t, ok)
	s.step(joblife.Unlinked{IDs: ids}) // a repetition
	require.Equal(t, 1, s.inactive())
	s.hold["unlink"] = false
	require.Equal(t, 1, s.ask(joblife.PurgeIDs{Tag: 7, IDs: ids[1:2], Force: true}).Count)
}

func TestARequestCountsItsOwnJobs(t *testing.T) {
	s, _ := ended(t, joblife.Config{Limits: purge.Limits{MaxCount: jobstate.Some(3)}}, 5)
	s.hold["unlink"] = true
	s.step(joblife.Tick{})
	s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	s.hold["unlink"] = false
	var first []jobid.ID
	for v := range s.m.Jobs(jobstate.StateInactive) {
		if len(first) < 2 {
			first = append(first, v.ID())
		}
	}
	s.step(joblife.Unlinked{IDs: first})
	require.Equal(t, 3, s.answer(7).Count)
}

func TestLimitsPurgeByNumberAndAge(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s, ids := ended(t, joblife.Config{}, 5)
		cfg := s.cfg
		cfg.Limits = purge.Limits{MaxCount: jobstate.Some(3), MaxAge: jobstate.Some(time.Hour)}
		if s.cfg = cfg; restart {
			s.restart()
		} else {
			s.step(joblife.Reload{Config: cfg})
		}
		at := s.deadline()
		require.False(t, at.After(s.now.Add(time.Second)))
		s.step(joblife.Tick{})
		require.Equal(t, 3, s.inactive())
		_, ok := s.m.Job(ids[1])
		require.False(t, ok, "oldest first (PU-1)")
		if restart {
			s.restart()
			s.step(joblife.Tick{})
		}
		for n := 0; s.inactive() > 0 && n < 100; n++ {
			at := s.deadline()
			require.False(t, at.Before(s.now))
			s.now = at
			s.step(joblife.Tick{})
		}
		require.Zero(t, s.inactive())
		require.WithinDuration(t, time.Unix(1_600_003_600, 0), s.now, 3*time.Second)
		require.Empty(t, s.faults())
		require.Equal(t, 5, s.m.Stats().Purge.Tombstones.Completed)
	}
}

// Jobs that grow old one after the other make no batch each. New limits count at once.
func TestTheAgeOfJobsIsLookedAtOnceASecond(t *testing.T) {
	for _, reload := range []bool{false, true} {
		s, _ := ended(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(time.Hour)}}, 1)
		s.now = s.now.Add(100 * time.Millisecond)
		s.submit(jobspec.Job{Nodes: 1})
		for s.inactive() == 2 {
			s.now = s.deadline()
			s.step(joblife.Tick{})
		}
		s.due(time.Second)
		s.now = s.now.Add(500 * time.Millisecond)
		s.step(joblife.Tick{})
		require.Equal(t, 1, s.inactive(), "it is old enough")
		if reload {
			s.step(joblife.Reload{Config: s.cfg})
		} else {
			s.now = s.deadline()
		}
		s.step(joblife.Tick{})
		require.Zero(t, s.inactive())
	}
}

// PU-9.
func TestALongRestIsNotAClockThatJumped(t *testing.T) {
	s, _ := ended(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(30 * 24 * time.Hour)}}, 2)
	s.step(joblife.Tick{})
	for n := 0; s.inactive() > 0; n++ {
		require.Less(t, n, 100, "it is woken once a day at most")
		at := s.deadline()
		require.True(t, at.After(s.now.Add(-time.Second)))
		s.now = at
		s.step(joblife.Tick{})
	}
	require.Empty(t, s.faults())
	require.WithinDuration(t, time.Unix(1_600_000_000, 0).Add(30*24*time.Hour), s.now, time.Minute)
}

// PU-9.
func TestAClockThatJumpedPurgesNothingUntilItIsAccepted(t *testing.T) {
	s, _ := ended(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(time.Hour)}}, 2)
	s.step(joblife.Tick{})
	s.now = s.now.Add(300 * 24 * time.Hour)
	s.step(joblife.Tick{})
	s.step(joblife.Tick{}) // which does not look again
	require.Len(t, s.faults(), 1)
	require.Equal(t, 2, s.inactive())
	at := s.deadline()
	require.True(t, at.After(s.now), "no busy loop")
	s.step(joblife.AcceptClock{})
	s.step(joblife.Tick{})
	require.Zero(t, s.inactive())
	require.Len(t, s.faults(), 1)
}

// Without limits nothing wakes the Manager, so it does not learn the time while it rests.
func TestALongRestWithoutLimitsRefusesNoPurge(t *testing.T) {
	limits := purge.Limits{MaxAge: jobstate.Some(24 * time.Hour)}
	rest := func(t *testing.T) *site {
		s, _ := ended(t, joblife.Config{}, 2)
		s.restart()
		s.now = s.now.Add(10 * 24 * time.Hour)
		s.step(joblife.Tick{})
		require.Empty(t, s.faults(), "it does not mind the clock")
		s.idle()
		return s
	}
	t.Run("on request", func(t *testing.T) {
		s := rest(t)
		require.Equal(t, 2, s.ask(joblife.Purge{Tag: 7, Limits: limits}).Count)
		require.Equal(t, 2, s.ask(joblife.Purge{Tag: 7, Limits: limits, Force: true}).Count)
	})
	t.Run("of a job that could not be removed before", func(t *testing.T) {
		s, ids := ended(t, joblife.Config{}, 2)
		s.hold["unlink"] = true
		s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
		s.step(joblife.Unlinked{IDs: ids[:1], Failed: map[jobid.ID]error{ids[1]: fs.ErrPermission}})
		s.hold["unlink"] = false
		s.now = s.now.Add(2 * time.Minute)
		require.Equal(t, 1, s.answer(7).Count)
		require.Equal(t, 1, s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true}).Count)
	})
	t.Run("by limits that are new", func(t *testing.T) {
		s := rest(t)
		s.step(joblife.Reload{Config: joblife.Config{Limits: limits}})
		s.step(joblife.Tick{})
		require.Empty(t, s.faults())
		require.Zero(t, s.inactive())
	})
}

// PU-8.
func TestARequestWithoutABatchIsCarriedOutInBatches(t *testing.T) {
	s, _ := ended(t, joblife.Config{}, 120)
	limits := purge.PurgeAll()
	limits.Batch = purge.NoBatch
	s.hold["unlink"] = true
	s.feed(joblife.Purge{Tag: 7, Limits: limits, Force: true})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Unlink, purge.DefaultBatch)
}

// A store is told of each tombstone that expires, or it would grow for ever (PU-12).
func TestExpiredTombstonesAreRecorded(t *testing.T) {
	s, ids := ended(t, joblife.Config{TombstoneCount: jobstate.Some(1)}, 3)
	for _, id := range ids {
		require.Equal(t, 1, s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{id}, Force: true}).Count)
	}
	var expired []jobid.ID
	for _, r := range s.store {
		if r.Kind == joblife.RecordTombstone && len(r.Data) == 0 {
			expired = append(expired, r.Job)
		}
	}
	require.Equal(t, ids[:2], expired)
	s.restart()
	require.Empty(t, s.rec.Quarantined)
	require.Equal(t, 1, s.m.Stats().Purge.Tombstones.Total())
	require.ErrorIs(t, s.try(joblife.Submit{ID: ids[0], Jobspec: text(t, jobspec.Job{Nodes: 1})}), joblife.ErrInvalid, "I9")
}

// Whatever comes between a purge and its outcome: the outcome is never refused, and none of it
// is done before all of it is there (I6).
func TestNothingAmidAPurgeSpoilsItsOutcome(t *testing.T) {
	s, ids := ended(t, joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(1000 * time.Hour)}}, 3)
	s.hold["unlink"] = true
	s.step(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	s.step(joblife.Unlinked{IDs: ids[:1]})
	last := s.submit(jobspec.Job{Nodes: 1})
	cfg := s.cfg
	cfg.TombstoneCount, cfg.Limits = jobstate.Some(1), purge.Limits{MaxCount: jobstate.Some(0)}
	for _, in := range []joblife.Input{
		joblife.AcceptClock{}, joblife.Reload{Config: cfg}, joblife.Tick{}, joblife.Purge{Tag: 8, Limits: purge.PurgeAll()},
		joblife.Unlinked{IDs: []jobid.ID{ids[0], 42}, Failed: map[jobid.ID]error{ids[0]: errors.New("late"), 43: nil}},
	} {
		s.step(in)
		require.Equal(t, 4, s.inactive())
		require.Equal(t, 3, s.m.Stats().Purge.Leaving)
	}
	s.step(joblife.Unlinked{IDs: ids[1:2]})
	s.step(joblife.Unlinked{IDs: ids[2:]})
	require.Equal(t, jobstate.StateInactive, s.state(last), "it ended after the request")
	a := s.answer(7)
	require.NoError(t, a.Err)
	require.Equal(t, 3, a.Count)
}

// A request ends, however many jobs end while it is carried out: as many go as there were.
func TestARequestToPurgeEnds(t *testing.T) {
	for _, batch := range []int{0, 1, 2} {
		s, ids := ended(t, joblife.Config{}, 3)
		s.hold["unlink"] = true
		limits := purge.PurgeAll()
		limits.Batch = batch
		for tag := range uint64(2) {
			s.step(joblife.Purge{Tag: 7 + tag, Limits: limits, Force: true})
		}
		for range 9 {
			for range 3 {
				s.step(joblife.Submit{Tag: 1, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16})
				ids = append(ids, s.answer(1).Job)
			}
			s.step(joblife.Unlinked{IDs: ids})
		}
		require.Equal(t, 3, s.answer(7).Count)
		for range 40 {
			s.step(joblife.Unlinked{IDs: ids})
		}
		require.GreaterOrEqual(t, s.answer(8).Count, 3, "those that had ended by then")
	}
}

func TestASnapshotKeepsTheTombstonesOfAPurgeThatGoesOn(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.NoError(t, s.m.Step(s.now, joblife.PurgeIDs{IDs: []jobid.ID{id}, Force: true}))
	require.True(t, s.m.Ready(&s.rd))
	require.NoError(t, s.m.Done(s.rd.Seq))
	s.store = slices.Collect(s.m.Snapshot())
	s.step(joblife.Unlinked{IDs: []jobid.ID{id}})
	want := joblife.Describe(s.m)
	require.Contains(t, want, "completed ran")
	m, err := joblife.Load(s.now, s.cfg, false, all(s.store))
	require.NoError(t, err)
	require.Equal(t, want, joblife.Describe(m), "I5")
}

func TestAnInvalidJobIsUnlinkedAgainAfterAFailure(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
	s.hold["unlink"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Validated{ID: id, Err: errors.New("no")})
	s.idle()
	for range 2 {
		s.log = nil
		s.step(joblife.Unlinked{Failed: map[jobid.ID]error{id: errors.New("disk")}})
		require.Len(t, s.faults(), 1)
		at := s.deadline()
		s.step(joblife.Tick{})
		require.Len(t, s.log, 1, "not yet")
		s.now = at
		s.step(joblife.Tick{})
		require.Equal(t, []string{"unlink " + id.String()}, s.log[1:])
		s.idle()
	}
	s.step(joblife.Unlinked{Failed: map[jobid.ID]error{id: errors.New("disk")}})
	s.step(joblife.Unlinked{IDs: []jobid.ID{id}})
	s.idle()
	require.Empty(t, ofJob(id, s.m.Snapshot()))
	s.log = nil
	s.restart()
	require.Empty(t, s.log, "it is known to be unlinked")
}

// Others that fail meanwhile do not put it off.
func TestAnInvalidJobIsUnlinkedAgainThoughOthersFail(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
	s.hold["unlink"] = true
	var first jobid.ID
	for range 3 {
		id := s.submit(jobspec.Job{Nodes: 1})
		first = cmp.Or(first, id)
		s.step(joblife.Validated{ID: id, Err: errors.New("no")})
		s.step(joblife.Unlinked{Failed: map[jobid.ID]error{id: errors.New("disk")}})
		s.log, s.now = nil, s.now.Add(40*time.Second)
		s.step(joblife.Tick{})
		if slices.Contains(s.log, "unlink "+first.String()) {
			return
		}
	}
	t.Fatal("it is not named again")
}

// I7, whatever the order of a map.
func TestInvalidJobsThatStayAreFaultsInOrder(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
	s.hold["unlink"] = true
	failed := map[jobid.ID]error{}
	for range 8 {
		id := s.submit(jobspec.Job{Nodes: 1})
		s.step(joblife.Validated{ID: id, Err: errors.New("no")})
		failed[id] = errors.New("disk of " + id.String())
	}
	s.idle()
	s.log = nil
	s.step(joblife.Unlinked{Failed: failed})
	require.Len(t, s.faults(), 8)
	require.True(t, slices.IsSorted(s.faults()), "%v", s.faults())
}

// I12.
func TestRequestsToPurgeDoNotPileUp(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["unlink"] = true // the store does not answer
	id := s.submit(jobspec.Job{Nodes: 1})
	all := joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true}
	for range 1024 {
		s.feed(all)
	}
	require.ErrorIs(t, s.try(all), joblife.ErrLimit)
	s.step(joblife.Unlinked{IDs: []jobid.ID{id}})
	require.Len(t, s.last, 1024+1, "the submit, and each of them")
}
