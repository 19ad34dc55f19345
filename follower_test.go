package joblife_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
)

// standby returns a Follower of records.
func standby(t testing.TB, records []joblife.Record) *joblife.Follower {
	f := new(joblife.Follower)
	for _, r := range records {
		require.NoError(t, f.Add(r))
	}
	return f
}

// A standby takes over between any two records, as a fresh process does. It has folded what
// waits.
func TestAStandbyTakesOverAfterAnyRecord(t *testing.T) {
	for name, cfg := range map[string]joblife.Config{"plain": {}, "busy": busyConfig()} {
		s := newSite(t, cfg, 8)
		waits := jobspec.Job{Nodes: 2}
		s.submit(jobspec.Job{Nodes: 2})
		s.hold["finish"] = true
		s.submit(jobspec.Job{Nodes: 2})
		s.hold["sched"] = true
		id := s.submit(waits)
		s.step(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("7")}}})
		s.submit(waits)
		s.step(joblife.Raise{ID: id, Type: "cancel"})
		live := new(joblife.Follower)
		for n, r := range s.store {
			mine := r.Clone()
			require.NoError(t, live.Add(mine))
			clear(mine.Data) // of which it keeps nothing
			f := standby(t, s.store[:n+1])
			m, left, err := f.Restore(s.now, s.cfg)
			require.NoError(t, err)
			cold, err := joblife.Load(s.now, s.cfg, true, all(s.store[:n+1]))
			require.NoError(t, err)
			require.Empty(t, left.Quarantined)
			require.NoError(t, joblife.Audit(m))
			require.Equal(t, cold.Stats().States[jobstate.StateRun], m.Stats().States[jobstate.StateRun], "%s %d", name, n)
			require.Zero(t, f.Held(), "it is empty")
		}
		warm := 1
		if name == "plain" {
			warm = 2 // no action has begun in the job that runs
		}
		require.Equal(t, warm, live.Warm(), name)
		m, _, err := live.Restore(s.now, s.cfg)
		require.NoError(t, err)
		want, _, err := joblife.Restore(s.now, s.cfg, all(s.store))
		require.NoError(t, err)
		require.Equal(t, joblife.DescribeAll(want), joblife.DescribeAll(m))
	}
}

// A configuration or a time that is wrong leaves a standby as it is, and a record of no job that
// cannot be read too.
func TestARefusedTakeoverOrRecordChangesNothing(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.step(joblife.StartQueue{Reason: "r"})
	s.submit(jobspec.Job{Nodes: 1})
	f := standby(t, s.store)
	want := slices.Collect(f.Snapshot())
	for _, bad := range []joblife.Record{
		{}, {Kind: 99, Job: 5}, {Kind: joblife.RecordWatermark, Data: []byte("x")}, {Kind: joblife.RecordQueue, Data: []byte("x"), Time: 9e9},
	} {
		require.Error(t, f.Add(bad))
	}
	_, _, err := f.Restore(s.now, joblife.Config{Volatile: true})
	require.ErrorIs(t, err, joblife.ErrInvalid)
	_, _, err = f.Restore(s.now, joblife.Config{Queues: []string{"a", "a"}})
	require.ErrorIs(t, err, joblife.ErrInvalid)
	_, _, err = f.Restore(time.Time{}, joblife.Config{})
	require.ErrorIs(t, err, joblife.ErrClock)
	require.Equal(t, want, slices.Collect(f.Snapshot()))
	m, _, err := f.Restore(s.now, joblife.Config{})
	require.NoError(t, err)
	require.Equal(t, 1, m.Stats().States[jobstate.StateSched])
}

// What a standby cannot read it leaves to the takeover, which quarantines the job.
func TestAStandbyIsFedDamage(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["sched"] = true
	s.submit(jobspec.Job{Nodes: 1})
	id, n := s.submit(jobspec.Job{Nodes: 1}), len(s.store)
	for at := range n {
		for _, damage := range []func(*joblife.Record){
			func(r *joblife.Record) { r.Data = []byte("{}\n") },
			func(r *joblife.Record) { r.Data = nil },
			func(r *joblife.Record) { r.Data = r.Data[:len(r.Data)/2] },
			func(r *joblife.Record) { r.Data = bytes.Repeat(r.Data, 2) },
			func(r *joblife.Record) { r.Job = id },
			func(r *joblife.Record) { r.Job = 0 },
			func(r *joblife.Record) { r.Kind = joblife.RecordInactive },
			func(r *joblife.Record) { r.Kind = joblife.RecordHousekeeping },
			func(r *joblife.Record) { r.Kind = joblife.RecordR },
			func(r *joblife.Record) { r.Kind = joblife.RecordUnlinked },
		} {
			list := slices.Clone(s.store)
			damage(&list[at])
			want, err := joblife.Load(s.now, s.cfg, true, all(list))
			require.NoError(t, err)
			got, err := joblife.Load(s.now, s.cfg, false, all(list))
			require.NoError(t, err)
			require.Equal(t, joblife.DescribeAll(want), joblife.DescribeAll(got))
			require.Equal(t, want.Stats(), got.Stats())
			snap := slices.Collect(standby(t, list).Snapshot())
			again, err := joblife.Load(s.now, s.cfg, false, all(snap))
			require.NoError(t, err)
			require.Equal(t, joblife.Describe(want), joblife.Describe(again), "a snapshot keeps what is damaged")
			require.Equal(t, want.Stats().Quarantined, again.Stats().Quarantined)
		}
	}
}

// A standby that follows for years holds what the Manager does, and not what it ever had.
func TestAStandbyForgetsWhatIsGone(t *testing.T) {
	cfg := busyConfig()
	cfg.Limits, cfg.TombstoneCount = purge.Limits{MaxCount: jobstate.Some(3)}, jobstate.Some(2)
	s := newSite(t, cfg, 8)
	f, n := new(joblife.Follower), 0
	for i := range 40 {
		s.ask(keyed(t, 5, fmt.Sprint(i)))
		s.now = s.now.Add(2 * time.Second)
		s.step(joblife.Tick{})
		for ; n < len(s.store); n++ {
			require.NoError(t, f.Add(s.store[n]))
		}
		require.LessOrEqual(t, f.Held(), 14)
	}
	require.Equal(t, 3, s.inactive())
	snap := slices.Collect(f.Snapshot())
	require.Less(t, len(snap), 14)
	m, err := joblife.Load(s.now, s.cfg, false, all(snap))
	require.NoError(t, err)
	require.Equal(t, joblife.Describe(s.m), joblife.Describe(m))
}

// A job that was revoked is over, and its housekeeping has no last release.
func TestAStandbyKeepsNoJobThatWasRevoked(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}})
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(success(t, id, 0, 1))
	s.step(joblife.Raise{ID: id, Type: "scheduler-restart"})
	s.step(said(id, exec.ResponseFinish))
	s.step(said(id, exec.ResponseRelease))
	require.Equal(t, jobstate.StateInactive, s.state(id))
	snap := slices.Collect(standby(t, s.store).Snapshot())
	require.Equal(t, joblife.RecordInactive, snap[len(snap)-1].Kind)
}

// A snapshot of a process that knows no configuration keeps the state of each queue, and a
// submission whose second half is still to come.
func TestASnapshotKeepsWhatItDoesNotKnow(t *testing.T) {
	s := newSite(t, joblife.Config{Queues: []string{"a", "b"}}, 8)
	s.step(joblife.StartQueue{Queue: "b", Reason: "r"})
	s.submit(jobspec.Job{Nodes: 1, Queue: "b"})
	cut := slices.IndexFunc(s.store, func(r joblife.Record) bool { return r.Kind == joblife.RecordJobspec }) + 1
	snap := slices.Collect(standby(t, s.store[:cut]).Snapshot())
	m, err := joblife.Load(s.now, s.cfg, false, all(append(snap, s.store[cut:]...)))
	require.NoError(t, err)
	require.Equal(t, joblife.Describe(s.m), joblife.Describe(m))
	text, err := joblife.AppendRecords(nil, snap)
	require.NoError(t, err)
	require.Equal(t, len(snap), bytes.Count(text, []byte("\n")))
	require.Empty(t, slices.Collect(new(joblife.Follower).Snapshot()))
}

// A log that a liar wrote takes time and memory in proportion, however often it makes the
// standby begin again.
func TestAStandbyIsNotMadeToFoldALogAgainAndAgain(t *testing.T) {
	race.Skip(t)
	s := newSite(t, busyConfig(), 8)
	s.hold["finish"] = true
	s.submit(jobspec.Job{Nodes: 1})
	list := s.store
	r := list[slices.IndexFunc(list, func(r joblife.Record) bool { return r.Kind == joblife.RecordR })]
	memo := joblife.Record{Job: r.Job, Kind: joblife.RecordEvent, Data: []byte(`{"timestamp":1600000001,"name":"memo","context":{"a":1}}` + "\n")}
	clean := joblife.Record{Job: r.Job, Kind: joblife.RecordEvent, Data: []byte(`{"timestamp":1600000001,"name":"x","context":{"name":"clean"}}` + "\n")}
	done := joblife.Record{Job: r.Job, Kind: joblife.RecordHousekeeping, Data: []byte(`{"timestamp":1600000001,"name":"x","context":{"final":true}}` + "\n")}
	var lines [2]uint64
	for i, n := range []int{1000, 8000} {
		f := standby(t, list)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			for _, r := range []joblife.Record{r, memo, clean, done} {
				require.NoError(t, f.Add(r))
			}
		}
		runtime.ReadMemStats(&after)
		lines[i] = after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, lines[1], 16*lines[0])
}

// What records that come twice, or in the order of a store that keeps each kind apart, mean.
func TestAStandbyIsFedWhatIsOddAndLegal(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	list := s.store
	memo := joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: []byte(`{"timestamp":1600000001,"name":"memo","context":{"a":1}}` + "\n")}
	at := func(kind joblife.RecordKind) int {
		return slices.IndexFunc(list, func(r joblife.Record) bool { return r.Kind == kind })
	}
	r := list[at(joblife.RecordR)]
	require.Equal(t, 1, standby(t, append(slices.Clone(list), memo)).Warm())
	require.Zero(t, standby(t, append(slices.Clone(list), r, memo)).Warm(), "a second R")
	require.Zero(t, standby(t, append(slices.Clone(list), list[at(joblife.RecordJobspec)], memo)).Warm(), "a second jobspec")

	cut := append(slices.Clone(list[:at(joblife.RecordR)+1]), memo) // the alloc was lost in a crash
	require.Equal(t, 1, standby(t, cut).Warm())
	m, left, err := standby(t, cut).Restore(s.now, joblife.Config{})
	require.NoError(t, err)
	require.Empty(t, left.Quarantined)
	v, _ := m.Job(id)
	require.Nil(t, v.R(), "somebody else may have the ranks")
	require.Equal(t, jobstate.StateSched, v.State())

	gone := joblife.Record{Job: id, Kind: joblife.RecordUnlinked}
	require.Len(t, slices.Collect(standby(t, append([]joblife.Record{gone}, list...)).Snapshot()), 2, "the watermark, and that it is gone")

	var over joblife.Record
	s.hold["finish"] = false
	s.restart()
	s.step(joblife.Purge{Limits: purge.PurgeAll(), Force: true})
	for _, r := range s.store {
		if r.Kind == joblife.RecordTombstone {
			over = r
		}
	}
	expired := joblife.Record{Job: id, Kind: joblife.RecordTombstone}
	f := standby(t, []joblife.Record{over, gone})
	require.Equal(t, 2, f.Held())
	require.NoError(t, f.Add(expired))
	require.Zero(t, f.Held())
	m, _, err = standby(t, []joblife.Record{over, expired}).Restore(s.now, joblife.Config{})
	require.NoError(t, err)
	spec := text(t, jobspec.Job{Nodes: 1, Command: []string{"true"}})
	require.ErrorContains(t, m.Step(s.now, joblife.Submit{ID: id, Jobspec: spec}), "given before", "I9")
}

// crowd returns the records of jobs that wait for resources, and before them those of a
// snapshot with inactive jobs.
func crowd(tb testing.TB, pending, inactive int) []joblife.Record {
	w := newMill(tb, joblife.Config{})
	w.own = true
	for range inactive / 100 {
		w.lives(100)
	}
	list := slices.Collect(w.m.Snapshot())
	w.mute = true
	w.store = func(records []joblife.Record) {
		for _, r := range records {
			list = append(list, r.Clone())
		}
	}
	for range pending / 100 {
		w.lives(100)
	}
	return list
}

// takeover restores, and returns how many jobs the first messages ask a scheduler for.
func takeover(b *testing.B, f *joblife.Follower) (records, requests int) {
	now := time.Unix(1_700_000_000, 0)
	m, _, err := f.Restore(now, joblife.Config{})
	require.NoError(b, err)
	for _, in := range []joblife.Input{joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{}} {
		require.NoError(b, m.Step(now, in))
	}
	var rd joblife.Ready
	require.True(b, m.Ready(&rd))
	return len(rd.Append), len(rd.Sched)
}

// BenchmarkTakeover measures from the decision to take over to the first effects, with 100 000
// jobs that wait: by a standby that has followed, and by a process that has to read lines.
// JOBLIFE_LONG adds a million inactive jobs.
func BenchmarkTakeover(b *testing.B) {
	inactive := []int{0}
	if os.Getenv("JOBLIFE_LONG") != "" {
		inactive = append(inactive, 1_000_000)
	}
	for _, inactive := range inactive {
		list := crowd(b, 100_000, inactive)
		text, err := joblife.AppendRecords(nil, list)
		require.NoError(b, err)
		for _, warm := range []bool{true, false} {
			b.Run(fmt.Sprintf("inactive=%d/warm=%v", inactive, warm), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f := new(joblife.Follower)
					if warm {
						b.StopTimer()
						f = standby(b, list)
						runtime.GC()
						b.StartTimer()
					} else {
						for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
							if err == nil {
								err = f.Add(r)
							}
							if err != nil { // require.NoError would take a tenth of the time
								b.Fatal(err)
							}
						}
					}
					records, requests := takeover(b, f)
					b.ReportMetric(float64(records), "records")
					b.ReportMetric(float64(requests), "messages")
				}
			})
		}
	}
}

// ExampleFollower takes over from a Manager whose records it has read.
func ExampleFollower() {
	m, _ := joblife.New(joblife.Config{})
	var standby joblife.Follower
	var rd joblife.Ready
	now := time.Unix(1_600_000_000, 0)
	spec, _ := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"true"}})
	_ = m.Step(now, joblife.Submit{ID: 7, Spec: spec, Urgency: 16})
	for m.Ready(&rd) {
		for _, r := range rd.Append { // as the other process reads them
			if err := standby.Add(r); err != nil {
				fmt.Println(err)
			}
		}
		_ = m.Done(rd.Seq)
	}
	// The other process ends.
	m, left, err := standby.Restore(now.Add(time.Second), joblife.Config{})
	fmt.Println(left.Jobs, err)
	v, _ := m.Job(7)
	fmt.Println(v.State(), jobid.ID(7))
	// Output:
	// [ƒ8] <nil>
	// SCHED ƒ8
}

// A standby keeps nothing of jobs that were refused, and of one that is over no text, whatever its
// user wrote into the log.
func TestAStandbyKeepsLittle(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
	for range 20 {
		s.step(joblife.Validated{ID: s.submit(jobspec.Job{Nodes: 1}), Err: errors.New("no")})
	}
	require.Zero(t, standby(t, s.store).Held())
	each := []perilog.ActionConfig{{PerRank: true}} // with which the log is read at the end
	for _, actions := range []perilog.Config{{}, {Prologs: each, Epilogs: each}} {
		s = newSite(t, joblife.Config{Actions: actions}, 8)
		s.hold["finish"] = true
		id := s.submit(jobspec.Job{Nodes: 1})
		s.step(joblife.Memo{ID: id, Values: []byte(`{"name":"clean"}`)})
		for i := range 5 {
			s.step(joblife.Memo{ID: id, Values: fmt.Appendf(nil, `{"x":"%050000d"}`, i)})
		}
		s.finish(id, 0)
		require.Equal(t, jobstate.StateInactive, s.state(id))
		n := 0
		for r := range standby(t, s.store).Snapshot() {
			n += len(r.Data)
		}
		require.Less(t, n, 1000)
	}
}

// The records of different kinds may come in any order, whatever they lack.
func TestAJobThatIsOverNeedsNoRInAnyOrder(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, jobstate.StateInactive, s.state(id))
	for _, r := range []string{"", `{"version":2}`} {
		for _, order := range [][]joblife.RecordKind{
			{joblife.RecordJobspec, joblife.RecordR, joblife.RecordEvent}, {joblife.RecordEvent, joblife.RecordJobspec, joblife.RecordR},
			{joblife.RecordR, joblife.RecordEvent, joblife.RecordJobspec},
		} {
			var records []joblife.Record
			for _, kind := range order {
				for _, rec := range s.store {
					if rec.Kind == joblife.RecordR {
						rec.Data = []byte(r)
					}
					if rec.Kind == kind && len(rec.Data) > 0 {
						records = append(records, rec)
					}
				}
			}
			s.restore(records)
			require.Empty(t, s.rec.Quarantined, "%v", order)
			require.Equal(t, jobstate.StateInactive, s.state(id))
		}
	}
}

// Nor does a job that is purged come back in any of them, whether or not its tombstone has expired,
// and though the store had failed to remove it once.
func TestAPurgedJobIsGoneInAnyOrder(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	s.hold["unlink"] = true
	s.step(joblife.Purge{Limits: purge.PurgeAll(), Force: true})
	s.step(joblife.Unlinked{Failed: map[jobid.ID]error{id: errors.New("disk")}})
	s.hold["unlink"] = false
	s.now = s.now.Add(time.Hour)
	s.step(joblife.Purge{Limits: purge.PurgeAll(), Force: true})
	require.Zero(t, s.inactive())
	kinds := []joblife.RecordKind{joblife.RecordEvent, joblife.RecordJobspec, joblife.RecordR, joblife.RecordTombstone, joblife.RecordUnlinked}
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.Permutation(kinds).Draw(t, "order")
		list := slices.Clone(s.store)
		if rapid.Bool().Draw(t, "expired") {
			list = append(list, joblife.Record{Job: id, Kind: joblife.RecordTombstone})
		}
		slices.SortStableFunc(list, func(a, b joblife.Record) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
		m, _, err := joblife.Restore(s.now, joblife.Config{}, all(list))
		require.NoError(t, err)
		_, found := m.Job(id)
		require.False(t, found, "it comes back")
	})
}
