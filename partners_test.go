package joblife_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// of returns some cores of ranks.
func of(t testing.TB, ranks, cores *idset.Set) *rset.R {
	t.Helper()
	return grants(t, 0, ranks, cores).(joblife.SchedResponse).R
}

// waits returns a new job that waits for its resources, or for those of an Alloc.
func (s *site) waits(bypass bool) jobid.ID {
	s.t.Helper()
	id := s.submit(jobspec.Job{Nodes: 1})
	if bypass {
		s.step(joblife.SetFlags{ID: id, Flags: []string{"alloc-bypass"}})
	}
	return id
}

// given gives a job resources of the scheduler.
func given(id jobid.ID, r *rset.R) joblife.Input {
	return joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: r}
}

// TestNothingIsBookedTwice is PR-10 for all that can hold resources: what is held is refused,
// and nothing changes; what is beside it is not.
func TestNothingIsBookedTwice(t *testing.T) {
	two, one := idset.Range(0, 1), idset.Of(1) // cores
	keeps := joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}}
	give := func(s *site, id jobid.ID) { // the ranks beside
		s.cancel(id)
		s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(1, 4)})
	}
	damage := func(s *site, id jobid.ID) {
		s.store = append(s.store, joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: []byte("?\n")})
		s.restart()
		require.Len(t, s.rec.Quarantined, 1)
	}
	for _, c := range []struct {
		name  string
		cfg   joblife.Config
		ranks *idset.Set                 // of which a job gets the cores 0 and 1
		then  func(s *site, id jobid.ID) // then it holds those of the ranks 2 and 3
	}{
		{"a job", joblife.Config{}, idset.Range(2, 3), func(*site, jobid.ID) {}},
		{"a job that gave back the ranks beside", joblife.Config{}, idset.Range(1, 4), give},
		{"housekeeping of a job that is over", keeps, idset.Range(2, 3), func(s *site, id jobid.ID) {
			s.finish(id, 0)
			require.Equal(t, jobstate.StateInactive, s.state(id))
		}},
		{"a job of before a restart", joblife.Config{}, idset.Range(2, 3), func(s *site, id jobid.ID) { s.restart() }},
		{"a quarantined job", joblife.Config{}, idset.Range(2, 3), damage},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := silent(t, c.cfg)
			s.hold["action"] = true
			holder := s.waits(false)
			s.step(given(holder, of(t, c.ranks, two)))
			c.then(s, holder)
			id := s.waits(false)
			for _, r := range []struct {
				r       *rset.R
				overlap string
			}{
				{of(t, idset.Of(2), one), "rank2/core1"},
				{of(t, idset.Range(0, 5), one), "rank[2-3]/core1"},
				{of(t, idset.Range(3, 5), idset.Range(0, 3)), "rank3/core[0-1]"},
			} {
				before := joblife.DescribeAll(s.m)
				err := s.m.Step(s.now, given(id, r.r))
				require.ErrorIs(t, err, joblife.ErrConflict)
				require.ErrorContains(t, err, id.String()+" and "+holder.String()+" both have "+r.overlap)
				require.Equal(t, before, joblife.DescribeAll(s.m), "I6")
				require.False(t, s.m.Ready(&s.rd))
			}
			s.step(given(id, of(t, idset.Range(0, 5), idset.Range(2, 3))))
			require.Equal(t, jobstate.StateRun, s.state(id), "other cores are free")
			id = s.waits(false)
			s.step(given(id, of(t, idset.Of(0, 1, 4, 5), two)))
			require.Equal(t, jobstate.StateRun, s.state(id), "other ranks are free")
		})
	}
}

// One overlap is told in full, and whether there are others.
func TestAConflictTellsOfOtherHolders(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)}, [2]*idset.Set{idset.Of(1), idset.Of(0)}, [2]*idset.Set{idset.Of(2), idset.Of(0)})
	id := s.waits(false)
	text := "both have rank0/core0"
	err := s.try(grants(t, id, idset.Of(0), idset.Of(0)))
	require.True(t, strings.HasSuffix(err.Error(), ids[0].String()+" "+text), err)
	err = s.try(grants(t, id, idset.Range(0, 2), idset.Of(0)))
	require.True(t, strings.HasSuffix(err.Error(), ids[0].String()+" "+text+"; others hold some of it too"), err)
}

// An executor that has released everything is not asked again while epilogs run.
func TestAnExecutorIsNotAskedForAJobThatItReleased(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}})
	s.hold["action"] = true
	id := s.waits(false)
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	s.finish(id, 0)
	require.Equal(t, jobstate.StateCleanup, s.state(id))
	s.exec = nil
	s.step(joblife.ExecHello{})
	require.Empty(t, s.exec)
}

// What is refused tells the scheduler nothing: its next hello does, and then it is served.
func TestAfterADoubleBookingTheNextHelloTellsTheTruth(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Range(0, 1), idset.Of(0)})
	id := s.waits(false)
	require.ErrorIs(t, s.try(grants(t, id, idset.Of(1), idset.Of(0))), joblife.ErrConflict)
	s.step(joblife.SchedLost{})
	require.Equal(t, map[jobid.ID]string{ids[0]: "rank[0-1]/core0"}, told(s))
	s.sched = nil
	s.step(joblife.SchedReady{})
	require.Len(t, sent[alloc.Request](s), 1, "the job waits on")
	s.step(grants(t, id, idset.Of(2), idset.Of(0)))
	require.Equal(t, jobstate.StateRun, s.state(id))
}

// A response that takes nothing is refused all the same: its free would tell the scheduler
// that others' resources are free.
func TestALateResponseFreesNothingOfOthers(t *testing.T) {
	s, _ := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	id := s.waits(false)
	s.cancel(id)
	require.ErrorIs(t, s.try(grants(t, id, idset.Of(0), idset.Of(0))), joblife.ErrConflict)
	require.Empty(t, sent[alloc.Free](s))

	id = s.waits(false)
	s.step(joblife.SetUrgency{ID: id, Urgency: 0})
	require.ErrorIs(t, s.try(grants(t, id, idset.Of(0), idset.Of(0))), joblife.ErrConflict)
	require.Empty(t, sent[alloc.Free](s))
}

// What a job lost to an exception of type scheduler-restart is the scheduler's.
func TestRevokedResourcesAreNotBooked(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	s.step(joblife.Raise{ID: ids[0], Type: "scheduler-restart"})
	require.Equal(t, jobstate.StateCleanup, s.state(ids[0]))
	for range 2 {
		require.Empty(t, told(s))
		s.restart()
	}
	id := s.waits(false)
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	require.Equal(t, jobstate.StateRun, s.state(id))
	s.finish(ids[0], 0)
	require.Equal(t, map[jobid.ID]string{id: "rank0/core0"}, told(s))
}

// A hook that hears of a revocation can give the resources to another job at once.
func TestAHookGivesAwayWhatWasRevoked(t *testing.T) {
	var heir jobid.ID
	r := of(t, idset.Of(0), idset.Of(0))
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == jobstate.EventException {
			e.Post(given(heir, r).(joblife.SchedResponse))
		}
	}}}})
	s.hold["finish"] = true
	id := s.waits(false)
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	heir = s.waits(false)
	s.step(joblife.Raise{ID: id, Type: "scheduler-restart"})
	require.Empty(t, s.faults())
	require.Equal(t, jobstate.StateRun, s.state(heir))
}

// A crash may part the events free and clean, and housekeeping still holds all.
func TestHousekeepingHoldsBeforeTheEventClean(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}})
	s.hold["action"] = true
	id := s.waits(false)
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	s.finish(id, 0)
	s.cutBefore("clean")
	require.True(t, strings.HasSuffix(s.events(id), "free"))
	m, err := joblife.Load(s.now, s.cfg, false, all(s.store))
	require.NoError(t, err)
	require.NoError(t, joblife.Audit(m))
	s.restart()
	require.Equal(t, map[jobid.ID]string{id: "rank0/core0"}, told(s))
	other := s.waits(false)
	require.ErrorIs(t, s.try(grants(t, other, idset.Of(0), idset.Of(0))), joblife.ErrConflict)
}

// HK-6: what bypasses the scheduler may be what others have, and takes and frees none of it.
func TestABypassingJobHoldsBesideOthers(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	both := of(t, idset.Range(0, 1), idset.Of(0))
	bypass := s.waits(true)
	s.step(joblife.Alloc{ID: bypass, R: both})
	twin := s.waits(true)
	s.step(joblife.Alloc{ID: twin, R: both})
	id := s.waits(false)
	s.step(given(id, of(t, idset.Of(1), idset.Of(0))))
	held := map[jobid.ID]string{ids[0]: "rank0/core0", id: "rank1/core0"}
	for range 2 {
		for _, id := range []jobid.ID{ids[0], bypass, twin, id} {
			require.Equal(t, jobstate.StateRun, s.state(id))
		}
		require.Equal(t, held, told(s))
		s.restart()
		require.Empty(t, s.rec.Quarantined)
	}
	s.finish(bypass, 0)
	waits := s.waits(false)
	require.ErrorIs(t, s.try(given(waits, both)), joblife.ErrConflict)
	s.finish(id, 0)
	s.step(given(waits, of(t, idset.Of(1), idset.Of(0))))

	// A damaged one holds nothing either.
	s.store = append(s.store, joblife.Record{Job: twin, Kind: joblife.RecordEvent, Data: []byte("?\n")})
	s.restart()
	require.Len(t, s.rec.Quarantined, 1)
	require.Nil(t, s.rec.Quarantined[0].R)
	require.Equal(t, map[jobid.ID]string{ids[0]: "rank0/core0", waits: "rank1/core0"}, told(s))
}

// TestBookingsAreWhatJobsHold compares the index of who holds what with a map, through
// bookings and releases of any form: at any time it equals what the jobs hold.
func TestBookingsAreWhatJobsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type place struct{ rank, core uint32 }
		b := joblife.NewAllocations()
		holds := make(map[jobid.ID]map[place]bool)
		some := func(most uint32) *idset.Set {
			first := rapid.Uint32Range(0, most).Draw(t, "first")
			set := idset.Range(first, min(most, first+rapid.Uint32Range(0, most/2).Draw(t, "more")))
			if rapid.Bool().Draw(t, "hole") {
				set.Remove(first + 1)
			}
			return set
		}
		draw := func() *rset.R {
			entries := []rset.Entry{{Ranks: some(12), Children: map[string]*idset.Set{"core": some(3)}}}
			if rest := idset.Difference(some(12), entries[0].Ranks); !rest.IsEmpty() {
				entries = append(entries, rset.Entry{Ranks: rest, Children: map[string]*idset.Set{"core": some(3)}})
			}
			r, err := rset.New(rset.Config{Entries: entries})
			require.NoError(t, err)
			return r
		}
		places := func(r *rset.R) map[place]bool {
			out := make(map[place]bool)
			for e := range r.Entries() {
				for rank := range e.Ranks.All() {
					for core := range e.Children["core"].All() {
						out[place{rank, core}] = true
					}
				}
			}
			return out
		}
		t.Repeat(map[string]func(*rapid.T){
			"book": func(t *rapid.T) {
				id, r := jobid.ID(rapid.IntRange(1, 6).Draw(t, "job")), draw()
				if holds[id] != nil {
					t.Skip("it has some")
				}
				mine, taken := places(r), false
				for _, theirs := range holds {
					for p := range theirs {
						taken = taken || mine[p]
					}
				}
				err := b.Conflict(id, r)
				require.Equal(t, taken, errors.Is(err, joblife.ErrConflict), err)
				if taken && rapid.Bool().Draw(t, "refused") {
					return
				}
				b.Add(id, r)
				holds[id] = mine
			},
			"free": func(t *rapid.T) {
				id, r := jobid.ID(rapid.IntRange(1, 6).Draw(t, "job")), draw()
				b.Remove(id, r)
				for p := range holds[id] {
					if r.Ranks().Contains(p.rank) {
						delete(holds[id], p)
					}
				}
				if len(holds[id]) == 0 {
					delete(holds, id)
				}
			},
			"": func(t *rapid.T) {
				have := make(map[jobid.ID]map[place]bool)
				b.Each(func(id jobid.ID, rank uint32, kind string, n uint32) {
					if have[id] == nil {
						have[id] = make(map[place]bool)
					}
					require.False(t, have[id][place{rank, n}], "twice")
					have[id][place{rank, n}] = true
				})
				require.Equal(t, holds, have)
			},
		})
	})
}

// grants is a scheduler's response that gives cores of ranks.
func grants(t testing.TB, id jobid.ID, ranks, cores *idset.Set) joblife.Input {
	t.Helper()
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": cores}}}})
	require.NoError(t, err)
	return joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: r}
}

// runs returns a site where jobs run, each on what it is given.
func runs(t *testing.T, given ...[2]*idset.Set) (*site, []jobid.ID) {
	s := silent(t, joblife.Config{})
	s.hold["finish"] = true
	var ids []jobid.ID
	for _, g := range given {
		id := s.submit(jobspec.Job{Nodes: 1})
		s.step(grants(t, id, g[0], g[1]))
		ids = append(ids, id)
	}
	return s, ids
}

// forge has the records say that a job was given something else.
func (s *site) forge(id jobid.ID, in joblife.Input) {
	i := slices.IndexFunc(s.store, func(r joblife.Record) bool { return r.Job == id && r.Kind == joblife.RecordR })
	s.store[i].Data = in.(joblife.SchedResponse).R.AppendJSON(nil)
}

// told returns what a scheduler is told at its hello: the resources of each job.
func told(s *site) map[jobid.ID]string {
	s.t.Helper()
	require.NoError(s.t, s.m.Step(s.now, joblife.SchedHello{}))
	out := make(map[jobid.ID]string)
	require.True(s.t, s.m.Ready(&s.rd))
	require.Empty(s.t, s.rd.Faults)
	for _, h := range s.rd.Hello.Responses {
		out[h.ID] = h.R.String()
		text, err := alloc.Append(nil, h)
		require.NoError(s.t, err, string(text))
	}
	require.NoError(s.t, s.m.Done(s.rd.Seq))
	require.Equal(s.t, out, allocated(s))
	return out
}

// allocated returns what jobs hold. It comes in the order of ids.
func allocated(s *site) map[jobid.ID]string {
	out := make(map[jobid.ID]string)
	last := jobid.ID(0)
	for id, r := range s.m.Allocated() {
		require.Greater(s.t, id, last)
		last = id
		out[id] = r.String()
	}
	return out
}

func TestAllocatedIsWhatTheSchedulerHasNotBack(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}})
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	require.Empty(t, allocated(s))
	s.step(success(t, id, 0, 1))
	bypass := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.SetFlags{ID: bypass, Flags: []string{"alloc-bypass"}})
	s.step(joblife.Alloc{ID: bypass, R: success(t, bypass, 5).(joblife.SchedResponse).R})
	require.Equal(t, map[jobid.ID]string{id: "rank[0-1]/core[0-3]"}, allocated(s))
	s.finish(id, 0)
	require.Equal(t, jobstate.StateInactive, s.state(id))
	require.Equal(t, map[jobid.ID]string{id: "rank[0-1]/core[0-3]"}, allocated(s), "housekeeping holds them")
	s.restart()
	require.Equal(t, map[jobid.ID]string{id: "rank[0-1]/core[0-3]"}, allocated(s))
	s.step(joblife.ForceFinish{Action: joblife.Action{Job: id, Key: s.runs[0].Action}, Operator: "root"})
	require.Empty(t, allocated(s))
}

// TestJobsThatHoldTheSameAreQuarantined: the end of one would free the nodes of the other.
func TestJobsThatHoldTheSameAreQuarantined(t *testing.T) {
	all4 := idset.Range(0, 3)
	s, ids := runs(t,
		[2]*idset.Set{idset.Range(0, 1), all4}, [2]*idset.Set{idset.Range(2, 3), idset.Of(0)},
		[2]*idset.Set{idset.Of(3), idset.Of(1)}, [2]*idset.Set{idset.Of(4), all4})
	s.forge(ids[0], grants(t, ids[0], idset.Range(0, 2), all4))
	for range 2 { // from all records, and from a snapshot
		s.restore(s.store)
		require.Len(t, s.rec.Quarantined, 2)
		one, two := s.rec.Quarantined[0], s.rec.Quarantined[1]
		require.Equal(t, ids[:2], []jobid.ID{one.Job, two.Job})
		require.ErrorIs(t, one.Err, joblife.ErrConflict)
		require.ErrorContains(t, one.Err, ids[0].String()+" and "+ids[1].String()+" both have rank2/core0")
		require.Equal(t, "rank[0-2]/core[0-3]", one.R.String())
		require.Equal(t, "rank3/core0", two.R.String(), "without what is named before")
		require.Equal(t, ids[2:], s.rec.Jobs, "one that shares a node goes on")
		require.Equal(t, map[jobid.ID]string{
			ids[0]: "rank[0-2]/core[0-3]", ids[1]: "rank3/core0", ids[2]: "rank3/core1", ids[3]: "rank4/core[0-3]",
		}, told(s))
		_, ok := s.m.Job(ids[0])
		require.False(t, ok)
		require.NoError(t, joblife.Audit(s.m))
		s.store = slices.Collect(s.m.Snapshot())
	}
	s.store = slices.DeleteFunc(s.store, func(r joblife.Record) bool { return r.Job == ids[1] })
	s.restore(s.store)
	require.Empty(t, s.rec.Quarantined, "an operator has removed the wrong one")
	require.Equal(t, []jobid.ID{ids[0], ids[2], ids[3]}, s.rec.Running)
}

// TestTheNodesOfAnUnreadableJobStayBooked, as far as its records tell of them.
func TestTheNodesOfAnUnreadableJobStayBooked(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Range(0, 2), idset.Of(0)}, [2]*idset.Set{idset.Of(3), idset.Of(0)})
	damage := func(s *site, kind joblife.RecordKind, id jobid.ID, part string) {
		t.Helper()
		for i, r := range s.store {
			if r.Kind == kind && r.Job == id && bytes.Contains(r.Data, []byte(part)) {
				s.store[i].Data = []byte("{\n")
				return
			}
		}
		t.Fatalf("no %v with %s", kind, part)
	}
	good := slices.Clone(s.store)
	for _, c := range []struct {
		what string
		kind joblife.RecordKind
		part string
		want string
	}{
		{"its last event", joblife.RecordEvent, "start", "rank[0-2]/core0"},
		{"its first event", joblife.RecordEvent, "submit", "rank[0-2]/core0"},
		{"its jobspec", joblife.RecordJobspec, "", "rank[0-2]/core0"},
		{"its R", joblife.RecordR, "", ""},
	} {
		s.store = slices.Clone(good)
		damage(s, c.kind, ids[0], c.part)
		s.restore(s.store)
		require.Len(t, s.rec.Quarantined, 1, c.what)
		require.Equal(t, c.want, told(s)[ids[0]], c.what)
		require.Equal(t, c.want == "", s.rec.Quarantined[0].R == nil, c.what)
		require.Equal(t, "rank3/core0", told(s)[ids[1]], c.what)
	}

	// What follows a damaged event is not believed.
	s, ids = runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	s.step(joblife.Raise{ID: ids[0], Type: "scheduler-restart"})
	damage(s, joblife.RecordEvent, ids[0], "start")
	s.restore(s.store)
	require.Equal(t, map[jobid.ID]string{ids[0]: "rank0/core0"}, told(s))
	// What others have now is theirs.
	s, ids = runs(t, [2]*idset.Set{idset.Range(0, 2), idset.Of(0)}, [2]*idset.Set{idset.Of(3), idset.Of(0)})
	s.step(joblife.Raise{ID: ids[0], Type: "cancel"})
	s.step(joblife.ExecResponse{ID: ids[0], Type: exec.ResponseRelease, Ranks: idset.Of(0)})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	damage(s, joblife.RecordEvent, ids[0], "release")
	s.restore(s.store)
	require.Equal(t, map[jobid.ID]string{ids[0]: "rank[1-2]/core0", ids[1]: "rank3/core0", id: "rank0/core0"}, told(s))
	require.Equal(t, jobstate.StateRun, s.state(id))

	// One that was over holds nothing, whatever of it is damaged.
	for _, part := range []string{"submit", "clean"} {
		s, ids = runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
		s.finish(ids[0], 0)
		damage(s, joblife.RecordEvent, ids[0], part)
		s.restore(s.store)
		require.Len(t, s.rec.Quarantined, 1)
		require.Empty(t, told(s))
	}
}

// A hello without t_submit is malformed for schedulers, which would not know that the nodes are
// in use.
func TestTheHelloHasATimeOfAJobWithoutItsSubmit(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	s.store = slices.DeleteFunc(s.store, func(r joblife.Record) bool {
		return r.Kind == joblife.RecordEvent && bytes.Contains(r.Data, []byte(`"submit"`))
	})
	s.restore(s.store)
	require.Len(t, s.rec.Quarantined, 1)
	s.feed(joblife.SchedHello{PartialOK: true})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Hello.Responses, 1)
	require.Equal(t, ids[0], s.rd.Hello.Responses[0].ID)
	require.NotZero(t, s.rd.Hello.Responses[0].Submit)
	require.NoError(t, s.m.Done(s.rd.Seq))
}

// What a scheduler keeps in R for the instances in jobs stays in the store, and there alone.
func TestTheKeySchedulingIsStoredAndNotKept(t *testing.T) {
	give := func(scheduling string) (*site, jobid.ID) {
		s := silent(t, joblife.Config{})
		id := s.submit(jobspec.Job{Nodes: 1})
		r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"starttime":0.0,` +
			`"expiration":0.0,"properties":{"+gone":"0","big":"0"}},"scheduling":` + scheduling + `}`))
		require.NoError(t, err)
		s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: r})
		require.Equal(t, jobstate.StateRun, s.state(id))
		return s, id
	}
	s, id := give(`{"graph": [1, "}"]}`)
	const want = `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"starttime":0.0,"expiration":0.0,"properties":{"big":"0"}}`
	require.Equal(t, want+`,"scheduling":{"graph":[1,"}"]}}|`, ofJob(id, slices.Values(s.store))[joblife.RecordR])
	check := func() {
		t.Helper()
		require.Equal(t, want+"}", string(must(s.m.Job(id)).R().AppendJSON(nil)))
		start := s.exec[len(s.exec)-1].(exec.Start)
		require.Equal(t, want+"}", string(start.R.AppendJSON(nil)))
	}
	check()
	for i, r := range s.store { // a scheduler may have put it there, as in flux-core
		if r.Kind == joblife.RecordR {
			s.store[i].Data = bytes.Replace(r.Data, []byte(`"big"`), []byte(`"+local":"0","big"`), 1)
		}
	}
	s.restart()
	check()
	bad := append(slices.Clone(s.store), joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: []byte("?\n")})
	_, rec, err := joblife.Restore(s.now, s.cfg, all(bad))
	require.NoError(t, err)
	require.Equal(t, want+"}", string(rec.Quarantined[0].R.AppendJSON(nil)))
	s.restore(slices.Collect(s.m.Snapshot()))
	s.hello()
	check()

	s, id = give(`"` + strings.Repeat("x", 1<<20) + `"`)
	require.Equal(t, want+"}|", ofJob(id, slices.Values(s.store))[joblife.RecordR], "a record has no room for it")
}

// The executor has released all ranks, and not finally. A new scheduler that takes no
// partial allocations learns nothing of the job, and gets no fragment of it.
func TestAJobThatHoldsNothingIsNotAnnounced(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(respond(id, exec.ResponseStart))
	s.step(respond(id, exec.ResponseFinish))
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(0, 1)})
	require.Equal(t, []string{"free 0-1 final=false"}, s.log)
	s.step(joblife.SchedHello{})
	s.step(joblife.SchedReady{})
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
	require.Equal(t, []string{"free 0-1 final=false"}, s.log)
	require.Equal(t, 0, s.pool.Len())
	v, _ := s.m.Job(id)
	require.Equal(t, jobstate.StateInactive, v.State())
}

// RFC 27, RFC 32: a new scheduler and a new executor learn the expiration of today.
func TestANewExpirationIsInWhatHelloAndReattachSay(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 2, Duration: 60})
	at := eventlog.FromTime(s.now.Add(time.Hour))
	check := func() {
		t.Helper()
		s.exec = nil
		s.feed(joblife.SchedHello{PartialOK: true})
		require.True(t, s.m.Ready(&s.rd))
		require.Equal(t, at, s.rd.Hello.Responses[0].R.Expiration())
		require.NoError(t, s.m.Done(s.rd.Seq))
		s.step(joblife.SchedReady{})
		s.step(joblife.ExecHello{})
		require.Equal(t, at, s.exec[0].(exec.Start).R.Expiration())
		require.Equal(t, at, must(s.m.Job(id)).R().Expiration())
	}
	s.step(joblife.SetExpiration{ID: id, Expiration: at})
	check()
	s.restore(s.store)
	check()
	start := must(s.m.Job(id)).R().Start()
	require.Positive(t, start)
	require.ErrorIs(t, s.m.Step(s.now, joblife.SetExpiration{ID: id, Expiration: start}), joblife.ErrInvalid)
	s.step(joblife.Post{ID: id, Name: jobstate.EventResourceUpdate, Context: []byte(`{"expiration":1}`)})
	require.Positive(t, must(s.m.Job(id)).R().Expiration())
	at = 0 // never
	s.step(joblife.SetExpiration{ID: id})
	check()
}

// HK-6: what did not come from the scheduler is in no hello and no free.
func TestAJobThatBypassesTheScheduler(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == jobstate.EventSubmit && e.Job.UserID() == 5 {
			e.Post(joblife.SetFlags{ID: e.Job.ID(), Flags: []string{"alloc-bypass"}})
		}
	}}}}, 8)
	s.hold["finish"] = true
	other := s.submit(jobspec.Job{Nodes: 1})
	require.ErrorIs(t, s.try(joblife.SetFlags{ID: other, Flags: []string{"debug", "alloc-bypass"}}), joblife.ErrInvalid, "the scheduler would never get them back")
	r := success(t, other, 7).(joblife.SchedResponse).R
	require.ErrorIs(t, s.try(joblife.Alloc{ID: other, R: r}), joblife.ErrInvalid)
	s.sched = nil
	id := s.ask(joblife.Submit{Tag: 7, By: joblife.Cred{UserID: 5}, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16}).Job
	require.Equal(t, jobstate.StateSched, s.state(id))
	s.restart()
	require.ErrorIs(t, s.try(joblife.Alloc{ID: id, By: joblife.Cred{UserID: 5, Guest: true}, R: r}), joblife.ErrDenied)
	require.ErrorContains(t, s.try(joblife.Alloc{ID: id}), "an allocation has at least one rank")
	require.NoError(t, s.ask(joblife.Alloc{Tag: 7, ID: id, R: r}).Err)
	require.Equal(t, jobstate.StateRun, s.state(id))
	s.feed(joblife.SchedHello{PartialOK: true})
	var rd joblife.Ready
	require.True(t, s.m.Ready(&rd))
	require.Len(t, rd.Hello.Responses, 1)
	require.Equal(t, other, rd.Hello.Responses[0].ID)
	require.NoError(t, s.m.Done(rd.Seq))
	s.restart()
	s.step(joblife.SetExpiration{ID: id, Expiration: 1_700_000_000})
	s.finish(id, 0)
	require.Equal(t, jobstate.StateInactive, s.state(id))
	require.Empty(t, sent[alloc.Expiration](s), "the scheduler never hears of it")
	require.Empty(t, sent[alloc.Request](s))
	require.Empty(t, sent[alloc.Free](s))
	require.Empty(t, s.faults())

	// A job that waits for the scheduler waits no longer.
	s.hold["pool"] = true
	s.hold["sched"] = true
	id = s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.SetFlags{ID: id, Flags: []string{"alloc-bypass"}})
	require.Len(t, sent[alloc.Cancel](s), 1)
	s.step(success(t, id, 3))
	require.Len(t, sent[alloc.Free](s), 1, "a late response")
	require.Equal(t, jobstate.StateSched, s.state(id))
	s.step(joblife.Raise{ID: id, Type: "cancel"})
	require.Equal(t, jobstate.StateInactive, s.state(id))
}

func TestAnExecutorMayRepeatWhatItSaid(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
	s.hold["exec"], s.hold["action"] = true, true
	id := s.submit(jobspec.Job{Nodes: 2})
	for range 2 {
		s.step(respond(id, exec.ResponseStart))
		s.step(respond(id, exec.ResponseFinish))
	}
	for range 2 {
		s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(0)})
	}
	for range 2 {
		s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Final: true})
	}
	require.Equal(t, "submit validate depend priority alloc start finish epilog-start release release", s.events(id))
}

// A crash between the event alloc and the start of the prologs leaves open whether the executor
// was asked: a new one is asked only whether it has the job, and once. Prologs that are still
// due run when it does not.
func TestAfterACrashBeforeThePrologTheExecutorHasToSay(t *testing.T) {
	for _, due := range []bool{true, false} {
		s := newSite(t, joblife.Config{Actions: perilog.Config{Prologs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
		s.hold["action"], s.hold["exec"] = true, true
		id := s.submit(jobspec.Job{Nodes: 1})
		s.cutBefore("prolog-start")
		s.log, s.exec = nil, nil
		s.restart()
		require.Equal(t, []bool{true}, s.starts(), "I11: Reattach")
		if !due {
			s.step(joblife.Reload{})
			require.Equal(t, []bool{true}, s.starts(), "a second refusal would be taken for one of the start itself")
		}
		require.Empty(t, s.log)
		s.step(joblife.ExecRefused{ID: id})
		if due {
			require.Equal(t, []string{"launch prolog job-manager.prolog on 0"}, s.log)
			s.step(exited(s.runs[0], 0))
		}
		require.Equal(t, []bool{true, false}, s.starts())
	}
}

func TestALostExecutorMayHaveRefusedAJobThatIsGone(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	require.NoError(t, s.m.Step(s.now, joblife.ExecHello{}))
	require.NoError(t, s.m.Step(s.now, joblife.ExecRefused{ID: id}))
	require.NoError(t, s.m.Step(s.now, joblife.ExecLost{}))
	s.act()
	v, _ := s.m.Job(id)
	require.Equal(t, jobstate.StateInactive, v.State())
}

func TestALostExecutorIsAskedAgainForAJobThatRuns(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, []bool{false}, s.starts())
	require.NoError(t, s.m.Step(s.now, joblife.ExecHello{}))
	require.NoError(t, s.m.Step(s.now, joblife.ExecLost{})) // nobody was told to reattach
	s.cancel(id)
	s.hello()
	require.Equal(t, []bool{false, true}, s.starts(), "I10: only the executor can end it")
}

func TestTheExecutorHearsWhatIsRefused(t *testing.T) {
	each := []perilog.ActionConfig{{PerRank: true}}
	s := newSite(t, joblife.Config{Actions: perilog.Config{Prologs: each, Epilogs: each}}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.hold["action"] = true
	far := new(idset.Set)
	for rank := uint32(0); rank < 1<<20; rank += 2 {
		far.Insert(rank)
	}
	require.Error(t, s.try(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: far}), "no line has room for them")
	s.step(said(id, exec.ResponseRelease)) // the executor gives the job up
	require.ErrorIs(t, s.try(joblife.ExecResponse{ID: id, Type: exec.ResponseStart}), perilog.ErrOrder, "I11")
}

// An executor that lost what it ran refuses the job after a restart. What prologs have
// prepared, epilogs clean up, whether the job ran or not, and before its nodes are free.
func TestAJobThatTheExecutorRefusesAfterAPrologGetsItsEpilog(t *testing.T) {
	for _, c := range []struct {
		name            string
		prolog, restart bool
		cancel          bool
		want            string
	}{
		{"refused", true, false, false, "prolog-start prolog-finish exception epilog-start perilog-release epilog-finish free clean"},
		{"refused, canceled", true, false, true, "prolog-start prolog-finish exception epilog-start perilog-release epilog-finish free clean"},
		{"restarted, refused, canceled", true, true, true, "prolog-start prolog-finish exception epilog-start perilog-release epilog-finish free clean"},
		{"no prolog", false, false, false, "exception free clean"},
		{"no prolog, canceled", false, true, true, "exception free clean"},
		{"restarted, refused", true, true, false, "prolog-start prolog-finish exception epilog-start perilog-release epilog-finish free clean"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}
			if c.prolog {
				cfg.Actions.Prologs = []perilog.ActionConfig{{PerRank: true}}
			}
			s := newSite(t, cfg, 8)
			s.hold["exec"] = true // it runs the job, and what it says is lost
			id := s.submit(jobspec.Job{Nodes: 2})
			if c.cancel {
				s.step(joblife.Raise{ID: id, Type: "cancel"})
			}
			require.NotContains(t, s.events(id), "free", "the executor may be starting it")
			require.NotContains(t, s.events(id), "epilog")
			if c.restart {
				s.restart()
				require.Equal(t, id, s.rec.Jobs[0])
			}
			s.step(joblife.ExecRefused{ID: id, Note: "gone"})
			require.True(t, strings.HasSuffix(s.events(id), " "+c.want), s.events(id))
			require.Empty(t, s.faults())
			require.Equal(t, 1, s.inactive())
		})
	}
}

// SM-13, MG-6.
func TestAnExceptionInCLEANUPIsRecordedAndInINACTIVERefused(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish, Status: 256})
	require.Equal(t, jobstate.StateCleanup, s.state(id))
	result, _ := must(s.m.Job(id)).Result()
	require.Equal(t, jobstate.ResultFailed, result)
	s.feed(joblife.Raise{ID: id, Type: "cancel", Note: "too late"})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Raised, 1, "each of others is told")
	require.Len(t, s.rd.Journal, 1)
	require.NoError(t, s.m.Done(s.rd.Seq))
	s.step(said(id, exec.ResponseRelease))
	result, _ = must(s.m.Job(id)).Result()
	require.Equal(t, jobstate.ResultCanceled, result)
	require.ErrorIs(t, s.try(joblife.Raise{ID: id, Type: "x", Severity: 7}), joblife.ErrInactive)
}

// An executor stops the job of its own exception as it sees fit: to be told of it would make it
// kill the job at once.
func TestTheExecutorIsNotToldOfItsOwnException(t *testing.T) {
	for severity := range uint8(2) {
		s := newSite(t, joblife.Config{}, 8)
		s.hold["finish"] = true
		id := s.submit(jobspec.Job{Nodes: 1})
		s.feed(joblife.ExecResponse{ID: id, Type: exec.ResponseException, Exception: exec.Exception{Type: "timeout", Severity: severity}})
		require.True(t, s.m.Ready(&s.rd))
		require.Empty(t, s.rd.Raised)
		require.Len(t, s.rd.Journal, 1)
		require.NoError(t, s.m.Done(s.rd.Seq))
		s.feed(joblife.Raise{ID: id, Type: "cancel"})
		require.True(t, s.m.Ready(&s.rd))
		require.Len(t, s.rd.Raised, 1)
		require.NoError(t, s.m.Done(s.rd.Seq))
	}
}

// flux-core logs when the executor has found a job of the flag debug again.
func TestAReattachedJobIsLoggedIfItIsDebugged(t *testing.T) {
	for _, flags := range []jobstate.Flags{0, jobstate.FlagDebug} {
		s := newSite(t, joblife.Config{}, 8)
		s.hold["finish"] = true
		s.step(joblife.Submit{ID: 5, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: jobstate.UrgencyDefault, Flags: flags})
		s.restart()
		n := len(s.events(5))
		s.step(joblife.ExecResponse{ID: 5, Type: exec.ResponseReattached})
		require.Equal(t, strings.Repeat(" debug.exec-reattach-finish", int(flags/jobstate.FlagDebug)), s.events(5)[n:])
		require.Empty(t, s.faults())
	}
}

// SM-14: a denied request ends the job.
func TestADeniedRequestIsAFatalException(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseAnnotate, Annotations: json.RawMessage(`{"sched":{"t_estimate":5}}`)})
	require.JSONEq(t, `{"sched":{"t_estimate":5}}`, string(must(s.m.Job(id)).Annotations()))
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseDeny, Note: "unsatisfiable"})
	require.Equal(t, "submit validate depend priority exception clean", s.events(id))
	result, _ := must(s.m.Job(id)).Result()
	require.Equal(t, jobstate.ResultFailed, result)
}

// SM-21, SM-3.
func TestAnOperatorPostsAnEvent(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	a := s.ask(joblife.Post{Tag: 7, ID: id, Name: "site-note", Context: json.RawMessage(`{"by":"root"}`)})
	require.Equal(t, id, a.Job)
	require.Contains(t, s.events(id), "site-note", "unknown names are data")
	s.step(success(t, id, 0))
	require.Error(t, s.try(joblife.Post{ID: id, Name: "free"}), "it holds resources")
	require.Error(t, s.try(joblife.Post{ID: id, Name: "clean"}))
}

// MG-8, SM-18.
func TestStatsCountWhatIsThere(t *testing.T) {
	s := silent(t, joblife.Config{})
	held := s.ask(joblife.Submit{Tag: 7, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 0}).Job
	waits := s.submit(jobspec.Job{Nodes: 1})
	runs := s.submit(jobspec.Job{Nodes: 1})
	s.step(success(t, runs, 0))
	st := s.m.Stats()
	require.Equal(t, map[jobstate.State]int{jobstate.StateSched: 2, jobstate.StateRun: 1}, st.States)
	require.Equal(t, alloc.Stats{Blocked: 1, Sent: 1}, st.Queue)
	require.EqualValues(t, 4*2+4+2, st.Events, "and alloc and start")
	s.finish(runs, 0)
	s.cancel(held)
	s.cancel(waits)
	st = s.m.Stats()
	require.Equal(t, map[jobstate.State]int{jobstate.StateInactive: 3}, st.States)
	require.Equal(t, alloc.Stats{Canceled: 1}, st.Queue, "of which the scheduler has said nothing yet (flux-core#2051)")
	require.Equal(t, 1, st.Purge.Resident.Completed)
	require.Equal(t, 2, st.Purge.Resident.Canceled)
	s.step(joblife.SchedLost{})
	require.Zero(t, s.m.Stats().Queue)
}

// SM-7: an epilog that a hook posts at the end is in time to hold the resources
// (flux-core#5011).
func TestAnEpilogThatAHookPostsIsInTime(t *testing.T) {
	hook := joblife.Hooks{Event: func(e *joblife.HookEvent) {
		if e.Job.State() == jobstate.StateCleanup && e.Prev != jobstate.StateCleanup {
			e.Post(joblife.Post{ID: e.Job.ID(), Name: "epilog-start", Context: json.RawMessage(`{"description":"dws"}`)})
		}
	}}
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{hook}})
	waits := s.submit(jobspec.Job{Nodes: 1})
	s.cancel(waits)
	require.Equal(t, jobstate.StateCleanup, s.state(waits), "also without resources (flux-core#5345)")
	s.step(joblife.Post{ID: waits, Name: "epilog-finish", Context: json.RawMessage(`{"description":"dws","status":0}`)})
	require.Equal(t, jobstate.StateInactive, s.state(waits))
	runs := s.submit(jobspec.Job{Nodes: 1})
	s.step(success(t, runs, 0))
	s.finish(runs, 0)
	require.Empty(t, sent[alloc.Free](s))
	s.step(joblife.Post{ID: runs, Name: "epilog-finish", Context: json.RawMessage(`{"description":"other","status":0}`)})
	require.Empty(t, sent[alloc.Free](s), "PL-1")
	s.step(joblife.Post{ID: runs, Name: "epilog-finish", Context: json.RawMessage(`{"description":"dws","status":0}`)})
	require.Len(t, sent[alloc.Free](s), 1)
	require.Equal(t, jobstate.StateInactive, s.state(runs))
}
