package joblife_test

import (
	"bytes"
	"fmt"
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

// plain is a Manager as text without what a restart forgets: requests that are out,
// waits, and what was purged.
func plain(m *joblife.Manager) string {
	var out []string
	for l := range strings.Lines(snapshot(m)) {
		if !strings.HasPrefix(l, "{States") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "")
}

// I5: after each Ready, what a snapshot restores is what is live, but for the
// flux-restart of jobs that wait.
func TestASnapshotRestoresTheManagerAtEachStep(t *testing.T) {
	s := newSite(t, busyConfig(), 8)
	check := func() {
		t.Helper()
		records := slices.Collect(s.m.Snapshot())
		cfg := s.cfg
		cfg.Hooks = []joblife.Hooks{joblife.Dependencies()}
		one, _, err := joblife.Restore(s.now, cfg, all(records))
		require.NoError(t, err)
		two, _, err := joblife.Restore(s.now, cfg, all(s.store))
		require.NoError(t, err)
		require.Equal(t, plain(one), plain(two), "of the snapshot, and of all records")
		if s.m.Stats().States[jobstate.StateSched] == 0 {
			require.Equal(t, plain(s.m), plain(one))
		}
	}
	s.hold["action"], s.hold["finish"] = true, true
	var ids []jobid.ID
	for i := range 4 {
		spec := needing(t, "n")
		if i == 3 {
			spec = needing(t, "n", "afterany", ids[0].String(), "begin-time", "1600000005")
		}
		ids = append(ids, s.add(spec))
		check()
	}
	s.step(joblife.Memo{ID: ids[0], Values: []byte(`{"a":"b"}`)})
	s.step(joblife.Update{ID: ids[3], Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("9")}}})
	check()
	done := 0
	for range 40 {
		s.now = s.now.Add(time.Second)
		s.step(joblife.Tick{})
		check()
		if done < len(s.runs) {
			l := s.runs[done]
			done++
			for rank := range l.Ranks.All() {
				s.step(joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: rank}})
				check()
			}
			if l.Action.Kind == jobstate.ActionProlog {
				s.finish(l.Job, 0)
				check()
			}
		}
	}
	require.Equal(t, 4, s.inactive())
	require.Zero(t, s.m.Stats().Housekeeping)
	s.step(joblife.Purge{Limits: purge.Limits{MaxCount: jobstate.Some(2)}, Force: true})
	check()
	require.Equal(t, 2, s.inactive())
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
				slices.SortStableFunc(store, func(a, b joblife.Record) int {
					return int(boolOf(b.Kind == joblife.RecordHousekeeping)) - int(boolOf(a.Kind == joblife.RecordHousekeeping))
				})
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
			got := strings.Replace(s.events(id), "flux-restart priority ", "", 1)
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

func boolOf(b bool) byte {
	if b {
		return 1
	}
	return 0
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
	s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true})
	s.restore(slices.Collect(s.m.Snapshot()))
	s.hello()
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
		every := 41
		switch {
		case os.Getenv("JOBLIFE_LONG") != "": // which takes minutes
			every = 1
		case os.Getenv("JOBLIFE_DEEP") != "":
			every = 1 + n/80
		}
		t.Run(name, func(t *testing.T) {
			list := refdata.Lines[recorded](t, name, n)
			r := &reality{t: t, restarts: every, logs: make(map[jobid.ID][]byte), runs: make(map[jobid.ID]joblife.Launch)}
			var jobs []*recorded
			for i := range list {
				jobs = append(jobs, &list[i])
			}
			r.play(jobs)
			for _, j := range jobs {
				skip := ""
				if len(jobstate.Validate([]byte(j.Eventlog))) > 0 {
					skip = jobstate.EventEpilogFinish // the reference frees before it
				}
				want, got := names(t, []byte(j.Eventlog), skip), names(t, r.logs[jobid.ID(j.ID)], skip)
				if want, got = unrestarted(want), unrestarted(got); want != got {
					t.Errorf("job %v:\n%s\nrepeated:\n%s", jobid.ID(j.ID), want, got)
				}
			}
		})
	}
}

// unrestarted leaves out flux-restart and the priority that follows it, and the
// requests that a restart repeats.
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
