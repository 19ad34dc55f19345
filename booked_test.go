package joblife_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

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
	s.step(joblife.ForceFinish{Action: joblife.Action{Job: id, Key: s.runs[0].Action}, Who: "root"})
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

// A node that a job gave back, and another job has, is not booked twice.
func TestWhatWasFreedIsNotBookedTwice(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Range(0, 1), idset.Of(0)})
	s.step(joblife.Raise{ID: ids[0], Type: "cancel"})
	s.step(joblife.ExecResponse{ID: ids[0], Type: exec.ResponseRelease, Ranks: idset.Of(0)})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	s.restore(s.store)
	require.Empty(t, s.rec.Quarantined)
	require.Equal(t, "rank1/core0", told(s)[ids[0]])
}

// TestTheNodesOfAnUnreadableJobStayBooked, as far as its records tell of them.
func TestTheNodesOfAnUnreadableJobStayBooked(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Range(0, 2), idset.Of(0)}, [2]*idset.Set{idset.Of(3), idset.Of(0)})
	damage := func(s *site, kind joblife.RecordKind, id jobid.ID, part string) {
		t.Helper()
		for i, r := range s.store {
			if r.Kind == kind && r.Job == id && bytes.Contains(r.Data, []byte(part)) {
				s.store[i].Data = []byte("{")
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

	// One that was over holds nothing.
	s, ids = runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	s.finish(ids[0], 0)
	damage(s, joblife.RecordEvent, ids[0], "clean")
	s.restore(s.store)
	require.Len(t, s.rec.Quarantined, 1)
	require.Empty(t, told(s))
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
