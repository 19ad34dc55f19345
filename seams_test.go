package joblife_test

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset/alloc"
)

// An executor may run what it was handed, also if it comes and goes before the next Ready: the
// job's nodes are not free (I3).
func TestAnExecutorThatFlapsMayRunWhatItHas(t *testing.T) {
	for name, before := range map[string]func(s *site){
		"at once": func(*site) {},
		"while a store works": func(s *site) {
			s.feed(joblife.Submit{Jobspec: text(t, jobspec.Job{})})
			require.True(t, s.m.Ready(&s.rd))
		},
		"after a restart":      func(s *site) { s.restore(s.store); s.feed(joblife.ExecHello{}) },
		"and again, and again": func(s *site) { s.feed(joblife.ExecLost{}); s.feed(joblife.ExecHello{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, joblife.Config{}, 8)
			s.hold["exec"] = true
			id := s.submit(jobspec.Job{})
			require.Len(t, s.starts(), 1)
			before(s)
			s.feed(joblife.ExecLost{})
			s.feed(joblife.ExecHello{})
			s.feed(joblife.ExecLost{})
			if s.rd.Seq > 0 {
				_ = s.m.Done(s.rd.Seq) // if one is outstanding
			}
			s.step(joblife.Raise{ID: id, Type: "cancel"})
			require.Equal(t, jobstate.StateCleanup, s.state(id))
		})
	}
}

// withDependencies is a jobspec.
func withDependencies(t testing.TB, list []string) []byte {
	return []byte(strings.Replace(string(text(t, jobspec.Job{})), `"system":{`, `"system":{"dependencies":[`+strings.Join(list, ",")+`],`, 1))
}

// However many jobs wait for one, in however many spellings of its id, each of the waits ends.
func TestEachWaitForAJobEnds(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	s.step(joblife.Submit{Tag: 1, Jobspec: text(t, jobspec.Job{}), Urgency: jobstate.UrgencyHold})
	on := s.last[0].Job
	var list []string
	for i := range 20 {
		list = append(list, fmt.Sprintf(`{"scheme":"afterany","value":"%s%d"}`, strings.Repeat("0", i), uint64(on)))
	}
	in := joblife.Submit{Jobspec: withDependencies(t, list), Urgency: jobstate.UrgencyHold}
	for range 600 {
		require.NoError(t, s.m.Step(s.now, in))
	}
	s.act()
	require.Equal(t, 600, s.m.Stats().States[jobstate.StateDepend])
	s.step(joblife.Raise{ID: on, Type: "cancel"})
	require.Zero(t, s.m.Stats().States[jobstate.StateDepend])
}

// What a job with many dependencies costs follows their number.
func TestManyDependenciesOfAJob(t *testing.T) {
	cost := func(n int) uint64 {
		s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"scheme":"begin-time","value":"16%08d"}`, 10000000+i))
		}
		spec := withDependencies(t, list)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.feed(joblife.Submit{Jobspec: spec, Urgency: jobstate.UrgencyDefault})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, cost(2000), 8*cost(500))
}

// A restart asks for the dependencies of the submission, so they cannot be updated.
func TestDependenciesAreNotUpdated(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
	s.step(joblife.Submit{Tag: 1, Jobspec: withDependencies(t, []string{`{"scheme":"begin-time","value":"1900001000"}`}), Urgency: 16})
	id := s.last[len(s.last)-1].Job
	for path, value := range map[string]string{"attributes.system.dependencies": `[]`, "attributes.system": `{"duration":1}`} {
		err := s.try(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: path, Value: []byte(value)}}})
		require.ErrorIs(t, err, joblife.ErrInvalid, path)
		require.ErrorContains(t, err, "dependencies")
	}
	s.step(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte(`7`)}}})
}

// A purged job does not come back if the records of its kinds come in another order.
func TestAPurgedJobStaysAwayInAnyOrderOfKinds(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.submit(jobspec.Job{})
	require.Equal(t, jobstate.StateInactive, s.state(id))
	records := slices.Collect(s.m.Snapshot())
	s.store = nil
	s.step(joblife.PurgeIDs{IDs: []jobid.ID{id}, Force: true})
	records = append(records, s.store...)
	for range 2 {
		m, _, err := joblife.Restore(s.now, s.cfg, all(records))
		require.NoError(t, err)
		_, ok := m.Job(id)
		require.False(t, ok)
		slices.SortStableFunc(records, func(x, y joblife.Record) int { return int(y.Kind) - int(x.Kind) })
	}
}

// A restart whose clock is behind the records stamps nothing before the last of them.
func TestARestartStampsNothingBeforeItsRecords(t *testing.T) {
	action := []perilog.ActionConfig{{Command: []string{"x"}, PerRank: true}}
	s := newSite(t, joblife.Config{Actions: perilog.Config{Prologs: action}}, 8)
	s.hold["action"] = true
	begun := s.now
	id := s.submit(jobspec.Job{})
	s.now = s.now.Add(time.Second)
	other := s.submit(jobspec.Job{})
	cfg := joblife.Config{Owner: s.cfg.Owner, Epoch: s.cfg.Epoch, Actions: perilog.Config{Prologs: append(action, perilog.ActionConfig{Description: "two", Command: []string{"x"}, PerRank: true})}}
	m, left, err := joblife.Restore(begun, cfg, all(s.store))
	require.NoError(t, err)
	v, _ := m.Job(other)
	require.GreaterOrEqual(t, left.Time, v.Job().Last())
	require.NoError(t, m.Step(m.Now(), joblife.Tick{}))
	var rd joblife.Ready
	require.True(t, m.Ready(&rd))
	n := 0
	for _, e := range rd.Journal {
		if e.Job == id && e.Entry.Name == "prolog-start" {
			require.GreaterOrEqual(t, e.Entry.Timestamp, v.Job().Last())
			n++
		}
	}
	require.Equal(t, 1, n, "the second prolog begins")
}

// Who may revoke what a job has could have it given to two jobs: neither a guest nor the executor.
func TestOnlyTheOwnerRevokes(t *testing.T) {
	s, ids := runs(t, [2]*idset.Set{idset.Of(0), idset.Of(0)})
	v, _ := s.m.Job(ids[0])
	user := joblife.Cred{UserID: v.Job().UserID(), Guest: true}
	require.ErrorIs(t, s.try(joblife.Raise{By: user, ID: ids[0], Type: "scheduler-restart"}), joblife.ErrDenied)
	require.ErrorIs(t, s.try(joblife.ExecResponse{ID: ids[0], Type: exec.ResponseException, Exception: exec.Exception{Type: "scheduler-restart"}}), joblife.ErrInvalid)
	id := s.waits(false)
	require.ErrorIs(t, s.try(grants(t, id, idset.Of(0), idset.Of(0))), joblife.ErrConflict)
}

// A job that lost what it had while a node was to be drained for it ends, and nothing is logged
// after its end.
func TestADrainOutlivesItsJob(t *testing.T) {
	s := silent(t, joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{Timeout: fsd.Duration(time.Hour)}}})
	s.hold["action"], s.hold["drain"], s.hold["finish"] = true, true, true
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(grants(t, id, idset.Of(0, 1), idset.Of(0)))
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish})
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(0)})
	l := s.runs[len(s.runs)-1]
	s.step(joblife.Report{Job: id, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Status: 256}})
	s.step(joblife.Raise{ID: id, Type: "scheduler-restart"})
	s.step(said(id, exec.ResponseRelease))
	require.Equal(t, jobstate.StateInactive, s.state(id))
	records := len(s.store)
	s.step(joblife.Drained{Ranks: idset.Of(0)})
	require.Equal(t, records, len(s.store))
	_, wakes := s.m.Deadline()
	require.False(t, wakes)
}

// Two services that begin the same at one time would hold the nodes once: the second is refused.
func TestTwoEqualPostsAreNotOneHold(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		s := silent(t, joblife.Config{Volatile: volatile, MaxLog: 2000})
		id := s.submit(jobspec.Job{Nodes: 1})
		s.step(grants(t, id, idset.Of(0), idset.Of(0)))
		hold := joblife.Post{ID: id, Name: "epilog-start", Context: []byte(`{"description":"data"}`)}
		require.NoError(t, s.m.Step(s.now, hold))
		require.ErrorIs(t, s.m.Step(s.now, hold), joblife.ErrInvalid)
		memo := joblife.Memo{ID: id, By: joblife.Cred{Guest: true}, Values: fmt.Appendf(nil, `{"x":"%0900d"}`, 0)}
		s.step(memo)
		require.ErrorIs(t, s.try(memo), joblife.ErrLimit, "MaxLog counts all")
	}
}

// An executor that has yet to say whether it runs a job hears of its new expiration.
func TestAnExpirationReachesAnExecutorThatIsAsked(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 1, Duration: 100 * time.Second})
	s.cfg.Actions.Prologs = []perilog.ActionConfig{{PerRank: true}}
	s.restart()
	v, _ := s.m.Job(id)
	at := v.R().Start() + 5000
	s.step(joblife.SetExpiration{ID: id, Expiration: at})
	require.Equal(t, exec.Expiration{ID: id, Expiration: at}, s.exec[len(s.exec)-1])
}

// A volatile removal of a memo outlives the event alloc, which cannot say it.
func TestAVolatileRemovalOutlivesAlloc(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Memo{ID: id, Values: []byte(`{"a":1,"b":2}`)})
	s.step(joblife.Memo{ID: id, Values: []byte(`{"a":null}`), Volatile: true})
	s.step(grants(t, id, idset.Of(0), idset.Of(0)))
	v, _ := s.m.Job(id)
	require.JSONEq(t, `{"user":{"b":2}}`, string(v.Annotations()))
}

// What the operator has closed stays closed, though a configuration without it came between and
// the records were replaced by a snapshot; and what was opened since is open.
func TestAClosedQueueComesBackClosed(t *testing.T) {
	with, without := joblife.Config{Queues: []string{"batch", "debug"}}, joblife.Config{Queues: []string{"batch"}}
	for name, between := range map[string]func(s *site){
		"a restart without it": func(s *site) { s.cfg = without; s.restore(s.store) },
		"a reload without it":  func(s *site) { s.step(joblife.Reload{Config: without}) },
		"both, and opened": func(s *site) {
			s.cfg = without
			s.restore(s.store)
			s.step(joblife.Reload{Config: with})
			s.step(joblife.EnableQueue{Queue: "debug", Enable: true})
			s.step(joblife.StartQueue{Queue: "debug", Start: true})
			s.step(joblife.Reload{Config: without})
		},
	} {
		s := newSite(t, with, 8)
		s.step(joblife.StartQueue{Queue: "debug", Start: false, Reason: "broken"})
		s.step(joblife.EnableQueue{Queue: "debug", Enable: false, Reason: "broken"})
		between(s)
		s.cfg = with
		for range 2 { // from all records, and from a snapshot
			m, _, err := joblife.Restore(s.now, with, all(s.store))
			require.NoError(t, err)
			q, _ := m.Queue("debug")
			require.Equal(t, name == "both, and opened", q.Started && q.Enabled, name)
			require.Equal(t, q.Started, q.Enabled, name)
			s.store = slices.Collect(s.m.Snapshot())
		}
	}
}

// A submission that is repeated finds its job also if that is over and quarantined.
func TestAKeyOfAQuarantinedJob(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	in := joblife.Submit{Tag: 7, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16, Key: "k"}
	id := s.ask(in).Job
	require.Equal(t, jobstate.StateInactive, s.state(id))
	s.store = append(slices.Collect(s.m.Snapshot()), joblife.Record{Job: id, Kind: joblife.RecordHousekeeping, Data: []byte("{}\n")})
	for range 2 {
		s.restore(s.store)
		require.Len(t, s.rec.Quarantined, 1)
		require.Equal(t, id, s.ask(in).Job)
		s.store = slices.Collect(s.m.Snapshot())
	}
}

// A scheduler may say the same again after each Ready: there would be no end of them.
func TestAnAnnotationThatChangesNothingIsNotTold(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	for _, notes := range []string{`{"sched":null}`, `{"sched":{"t_estimate":5}}`, `{"sched":{"t_estimate":5}}`, `{"sched":null}`, `{"sched":null}`} {
		before := s.notes(id)
		require.NoError(t, s.m.Step(s.m.Now(), annotate(id, notes)))
		told := s.m.Ready(&s.rd)
		if told {
			require.NoError(t, s.m.Done(s.rd.Seq))
		}
		require.Equal(t, s.notes(id) != before, told, notes)
	}
}

// I12: annotations have one limit, whoever sets them. Memos that reach it do not harm the
// scheduler, and the job starts.
func TestLongMemosLeaveNoRoomForAnnotations(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	memo := func(key string, n int, volatile bool) error {
		return s.try(joblife.Memo{ID: id, Values: fmt.Appendf(nil, `{"%s":"%0*d"}`, key, n, 0), Volatile: volatile})
	}
	s.step(annotate(id, `{"sched":{"t_estimate":4}}`))
	for i, key := range []string{"a", "b", "c"} {
		require.NoError(t, memo(key, 300<<10, i == 1))
	}
	for _, volatile := range []bool{false, true} {
		require.ErrorIs(t, memo("d", 300<<10, volatile), joblife.ErrLimit)
	}
	require.ErrorIs(t, s.try(joblife.Post{ID: id, Name: "memo", Context: fmt.Appendf(nil, `{"d":"%0*d"}`, 300<<10, 0)}), joblife.ErrLimit)
	require.NoError(t, memo("c", 300<<10+100, false), "a value replaces another")
	n := 100 << 10
	for step := n; step > 0; step /= 2 { // as much as there is room for
		for memo("d", n+step, true) == nil {
			n += step
		}
	}
	s.jour = nil
	s.step(annotate(id, `{"sched":{"t_estimate":555555}}`))
	require.Contains(t, s.notes(id), `"t_estimate":4`, "the session goes on")
	resp := success(t, id, 0).(joblife.SchedResponse)
	resp.Annotations = json.RawMessage(`{"sched":{"resource_summary":"rank0"}}`)
	s.step(resp)
	_, context := s.told("alloc")
	require.Equal(t, `{"annotations":{"sched":{"resource_summary":"rank0"}}}`, context)
	require.Equal(t, jobstate.StateRun, s.state(id))
}

// Short memos of a job that has many do not take the time of all of them.
func TestManyMemosCostInProportion(t *testing.T) {
	s := silent(t, joblife.Config{Volatile: true})
	id := s.submit(jobspec.Job{Nodes: 1})
	used := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range n {
			require.NoError(t, s.m.Step(s.now, joblife.Memo{ID: id, Values: fmt.Appendf(nil, `{"k%d-%d":1}`, n, i)}))
			s.act()
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, used(4000), 8*used(1000), "4 times as many")
}

// To confirm a drain, or to say which nodes are offline, takes time for the jobs on those nodes, also
// after a restart.
func TestANodeIsTheMatterOfItsJobs(t *testing.T) {
	const n = 1000
	cfg := joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}
	m, err := joblife.New(cfg)
	require.NoError(t, err)
	now := time.Unix(1_600_000_000, 0)
	var rd joblife.Ready
	var failures []joblife.Input
	drains := 0
	step := func(list ...joblife.Input) {
		for _, in := range list {
			require.NoError(t, m.Step(now, in))
		}
		for m.Ready(&rd) {
			for _, l := range rd.Launch {
				failures = append(failures, joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: uint32(l.Job), Status: 256}})
			}
			drains += len(rd.Drain)
			require.NoError(t, m.Done(rd.Seq))
		}
	}
	some, other := idset.Of(n+1), idset.Of(n+2)
	cheap := func() {
		require.Less(t, testing.AllocsPerRun(10, func() {
			step(joblife.Offline{Ranks: some}, joblife.Drained{Ranks: some}, joblife.Offline{Ranks: other})
		}), float64(n/10))
	}
	step(joblife.SchedHello{PartialOK: true}, joblife.SchedReady{}, joblife.ExecHello{})
	for id := jobid.ID(1); id <= n; id++ {
		step(joblife.Submit{ID: id, Jobspec: text(t, jobspec.Job{}), Urgency: 16})
		step(success(t, id, uint32(id)))
		step(said(id, exec.ResponseStart), said(id, exec.ResponseFinish), said(id, exec.ResponseRelease))
	}
	cheap()
	first := m
	m, _, err = joblife.Restore(now, cfg, all(slices.Collect(m.Snapshot())))
	require.NoError(t, err)
	step()
	cheap()
	m = first
	step(failures...)
	require.Equal(t, n, drains)
	cheap()
	for id := jobid.ID(1); id <= n; id++ {
		step(joblife.Drained{Ranks: idset.Of(uint32(id))})
	}
	require.Equal(t, n, m.Stats().States[jobstate.StateInactive])
}

// A drain ends, and a node comes back, also for a job that no scheduler knows of, and for one that
// does not hold the node: there a command runs for it, as it was configured when it began.
func TestANodeIsTheMatterOfJobsOutsideToo(t *testing.T) {
	for _, restart := range []bool{false, true} {
		s := newSite(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
		s.hold["sched"], s.hold["pool"], s.hold["action"], s.hold["drain"] = true, true, true, true
		id := s.submit(jobspec.Job{Nodes: 1})
		s.step(joblife.SetFlags{ID: id, Flags: []string{"alloc-bypass"}})
		s.step(joblife.Alloc{ID: id, R: success(t, id, 3).(joblife.SchedResponse).R})
		if restart {
			s.restart()
			s.step(joblife.Rerun{Action: joblife.Action{Job: id, Key: s.runs[len(s.runs)-1].Action}})
		}
		l := s.runs[len(s.runs)-1]
		s.step(joblife.Report{Job: id, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited, Rank: 3, Status: 256}})
		require.Equal(t, jobstate.StateCleanup, s.state(id))
		s.step(joblife.Drained{Ranks: idset.Of(3)})
		require.Equal(t, jobstate.StateInactive, s.state(id))
	}

	s := silent(t, joblife.Config{Offline: idset.Of(7)})
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	s.step(success(t, id, 0))
	s.step(joblife.Offline{}) // of a node that does not matter
	s.step(joblife.Reload{Config: joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{Leader: 7}}}}})
	s.finish(id, 0)
	require.Len(t, s.runs, 1, "it matters now")

	for _, restart := range []bool{false, true} {
		s := newSite(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{Leader: 7}}}}, 8)
		s.hold["action"] = true
		s.step(joblife.Offline{Ranks: idset.Of(7)})
		id := s.submit(jobspec.Job{Nodes: 1})
		require.Equal(t, jobstate.StateCleanup, s.state(id))
		require.Empty(t, s.runs)
		if restart {
			s.cfg.Offline = idset.Of(7)
			s.cfg.Actions.Epilogs = []perilog.ActionConfig{{Leader: 6}}
			s.restart()
		}
		s.step(joblife.Offline{})
		require.Len(t, s.runs, 1, "restarted: %v", restart)
	}
}

// Records may say of any number of jobs that they hold the same: to tell so takes time for each job.
func TestJobsThatHoldTheSameCostInProportion(t *testing.T) {
	spec := text(t, jobspec.Job{})
	used := func(n int) uint64 {
		var list []joblife.Record
		for id := jobid.ID(1); id <= jobid.ID(n); id++ {
			add := func(kind joblife.RecordKind, data string) {
				list = append(list, joblife.Record{Job: id, Kind: kind, Data: []byte(data)})
			}
			add(joblife.RecordJobspec, string(spec))
			add(joblife.RecordR, `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}}],"starttime":1,"expiration":0}}`)
			for _, e := range []string{`"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}`, `"validate"`, `"depend"`, `"priority","context":{"priority":16}`, `"alloc"`} {
				add(joblife.RecordEvent, `{"timestamp":1600000000,"name":`+e+"}\n")
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, out, err := joblife.Restore(time.Unix(1_600_000_100, 0), joblife.Config{}, all(list))
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Len(t, out.Quarantined, n)
		require.Equal(t, "rank0/core[0-3]", out.Quarantined[0].R.String())
		require.Empty(t, out.Quarantined[n-1].R)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, used(1200), 8*used(300), "4 times as many")
}

// A response may cross the Cancel that an update of the jobspec brings. What it gives or denies was
// asked for by the jobspec of before.
func TestAResponseOfBeforeAnUpdateDoesNotCount(t *testing.T) {
	update := func(s *site, id jobid.ID, duration string) {
		s.step(joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte(duration)}}})
	}
	between := map[string]struct{ do, undo func(*site, jobid.ID) }{
		"nothing":    {},
		"once more":  {func(s *site, id jobid.ID) { update(s, id, "60") }, nil},
		"a priority": {func(s *site, id jobid.ID) { s.step(joblife.SetUrgency{ID: id, Urgency: 20}) }, nil},
		"a hold": {
			func(s *site, id jobid.ID) { s.step(joblife.SetUrgency{ID: id, Urgency: 0}) },
			func(s *site, id jobid.ID) { s.step(joblife.SetUrgency{ID: id, Urgency: 16}) },
		},
		"a stop": {
			func(s *site, _ jobid.ID) { s.step(joblife.StartQueue{Queue: "a"}) },
			func(s *site, _ jobid.ID) { s.step(joblife.StartQueue{Queue: "a", Start: true}) },
		},
	}
	for name, b := range between {
		for _, first := range []alloc.ResponseType{alloc.ResponseSuccess, alloc.ResponseDeny, alloc.ResponseCancel} {
			for _, early := range []bool{false, true} { // whether what is between ends before the response
				name := fmt.Sprint(name, " ", first, " ", early)
				s := silent(t, joblife.Config{Queues: []string{"a"}})
				id := s.submit(jobspec.Job{Queue: "a"})
				require.Len(t, sent[alloc.Request](s), 1, name)
				update(s, id, "60")
				if b.do != nil {
					b.do(s, id)
				}
				if early && b.undo != nil {
					b.undo(s, id)
				}
				response := success(t, id, 0).(joblife.SchedResponse)
				if response.Type = first; first != alloc.ResponseSuccess {
					response.R = nil
				}
				require.Empty(t, sent[alloc.Request](s), name)
				s.step(response)
				if !early && b.undo != nil {
					require.Empty(t, sent[alloc.Request](s), name)
					b.undo(s, id)
				}
				require.Equal(t, jobstate.StateSched, s.state(id), name)
				requests := sent[alloc.Request](s)
				require.Len(t, requests, 1, name)
				require.Contains(t, string(requests[0].Jobspec), `"duration":60`, name)
				require.Len(t, sent[alloc.Cancel](s), 1, name)
				require.Equal(t, first == alloc.ResponseSuccess, len(sent[alloc.Free](s)) == 1, name)
				s.step(success(t, id, 1))
				require.Equal(t, jobstate.StateRun, s.state(id), name)
			}
		}
	}
	// Another session knows only the jobspec of now.
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{})
	update(s, id, "60")
	s.hello()
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseDeny, Note: "no"})
	require.Equal(t, jobstate.StateInactive, s.state(id))
}

// EL-6: a hook may end a job in the Step of its submission, and until that is durable nobody knows
// of the job, neither in the Ready that is outstanding nor in the next.
func TestAJobThatEndsAtOnceIsNotSeenBeforeItIsDurable(t *testing.T) {
	t.Run("with records", func(t *testing.T) { endsAtOnce(t, false) })
	t.Run("volatile", func(t *testing.T) { endsAtOnce(t, true) })
}

func endsAtOnce(t *testing.T, volatile bool) {
	m, err := joblife.New(joblife.Config{Volatile: volatile, Hooks: []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == jobstate.EventSubmit {
			e.Post(joblife.Raise{ID: e.Job.ID(), Type: "cancel"})
		}
	}}}})
	require.NoError(t, err)
	s := &site{t: t, m: m, now: newSite(t, joblife.Config{}, 1).now}
	seen := func(id jobid.ID) bool {
		_, one := m.Job(id)
		listed := slices.ContainsFunc(slices.Collect(m.Jobs(jobstate.StateInactive)), func(v joblife.View) bool { return v.ID() == id })
		err := m.Step(s.now, joblife.Memo{ID: id, Values: []byte("{}")})
		require.ErrorIs(t, err, map[bool]error{true: joblife.ErrInactive, false: joblife.ErrUnknown}[one])
		require.Equal(t, one, listed)
		return one
	}
	s.feed(joblife.Submit{ID: 5, Jobspec: text(t, jobspec.Job{}), Urgency: 16})
	require.False(t, seen(5))
	require.True(t, m.Ready(&s.rd))
	s.feed(joblife.Submit{ID: 6, Jobspec: text(t, jobspec.Job{}), Urgency: 16})
	require.False(t, seen(5) || seen(6))
	require.NoError(t, m.Done(s.rd.Seq))
	require.True(t, seen(5))
	require.False(t, seen(6))
	s.act()
	require.True(t, seen(6))
}

// One Validated would let a job go on that the other hook has not validated yet.
func TestASecondHookThatValidatesLaterIsRefused(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later(), later()}}, 8)
	err := s.try(joblife.Submit{ID: 7, Jobspec: text(t, jobspec.Job{}), Urgency: 16})
	require.ErrorIs(t, err, joblife.ErrRefused)
	require.ErrorContains(t, err, `hook "later" validates later, as one before it does`)
}

// A scheduler that has restarted does not know what a job holds. The job still waits for its nodes.
func TestARevokedJobWaitsForItsNodes(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for name, ends := range map[string]func(s *site, l joblife.Launch){
			"a drain": func(s *site, l joblife.Launch) {
				for rank := range uint32(2) {
					s.step(joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Rank: rank, Kind: perilog.ReportUnreachable}})
				}
				s.step(joblife.Drained{Ranks: idset.Of(0, 1)})
			},
			"an offline node": func(s *site, l joblife.Launch) {
				s.step(joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Rank: 0, Kind: perilog.ReportExited}})
				s.hold["action"] = false
				s.step(joblife.Offline{})
			},
		} {
			s := silent(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true, WaitOffline: true}}}})
			s.hold["action"], s.hold["drain"], s.hold["finish"] = true, true, true
			id := s.submit(jobspec.Job{Nodes: 2})
			s.step(success(t, id, 0, 1))
			if name != "a drain" {
				s.cfg.Offline = idset.Of(1)
				s.step(joblife.Offline{Ranks: s.cfg.Offline})
			}
			s.step(joblife.Raise{ID: id, Type: "scheduler-restart"})
			s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseFinish})
			s.step(said(id, exec.ResponseRelease))
			require.Equal(t, jobstate.StateCleanup, s.state(id))
			if restart {
				s.restore(s.store)
				s.step(joblife.Rerun{Action: joblife.Action{Job: id, Key: s.runs[0].Action}})
			}
			ends(s, s.runs[len(s.runs)-1])
			require.Equal(t, jobstate.StateInactive, s.state(id), "%s, restart: %v", name, restart)
		}
	}
}

// Memos that volatile ones hide stay in the log, where a restart finds them: they count. A memo has
// room in the event alloc, which has it one level deeper.
func TestWhatVolatileMemosHideCounts(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	memo := func(values string, volatile bool) error {
		return s.try(joblife.Memo{ID: id, Values: []byte(values), Volatile: volatile})
	}
	require.NoError(t, memo(fmt.Sprintf(`{"a":"%0*d"}`, 900<<10, 0), false))
	require.NoError(t, memo(`{"a":null}`, true))
	require.ErrorIs(t, memo(fmt.Sprintf(`{"b":"%0*d"}`, 900<<10, 0), false), joblife.ErrLimit)
	require.NoError(t, memo(`{"b":1}`, false))
	s.restart()
	require.NoError(t, memo(`{"a":null}`, false))
	require.Equal(t, `{"user":{"b":1}}`, string(must(s.m.Job(id)).Annotations()))

	depth := 2000
	for memo(`{"d":`+strings.Repeat("[", depth+1)+strings.Repeat("]", depth+1)+`}`, false) == nil {
		depth++
	}
	require.Greater(t, depth, 2001)
	s.step(success(t, id, 0))
	require.Equal(t, jobstate.StateRun, s.state(id))
}

// Memos of another manager, or of an older version, may be longer than the limit. The job runs, and
// the log has the scheduler's annotations alone.
func TestAJobWithTooLongMemosRuns(t *testing.T) {
	s := silent(t, joblife.Config{})
	id := s.submit(jobspec.Job{Nodes: 1})
	at := must(s.m.Job(id)).Job().Last()
	for _, key := range []string{"a", "b"} {
		at += 0.001
		line := fmt.Sprintf(`{"timestamp":%f,"name":"memo","context":{"%s":"%0*d"}}`+"\n", float64(at), key, 700<<10, 0)
		s.store = append(s.store, joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: []byte(line)})
	}
	s.restart()
	s.step(success(t, id, 0))
	require.Equal(t, jobstate.StateRun, s.state(id))
	require.Greater(t, len(must(s.m.Job(id)).Annotations()), 1<<20)
}

// I7: a node that comes back is told to jobs by id.
func TestJobsHearOfANodeInOrder(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true, WaitOffline: true}}}}, 8)
	s.hold["sched"], s.hold["pool"], s.hold["action"] = true, true, true
	s.step(joblife.Offline{Ranks: idset.Of(3)})
	var ids, launched []jobid.ID
	for range 20 {
		id := s.submit(jobspec.Job{Nodes: 1})
		s.step(joblife.SetFlags{ID: id, Flags: []string{"alloc-bypass"}})
		s.step(joblife.Alloc{ID: id, R: success(t, id, 3).(joblife.SchedResponse).R})
		ids = append(ids, id)
	}
	require.Empty(t, s.runs)
	s.step(joblife.Offline{})
	for _, l := range s.runs {
		launched = append(launched, l.Job)
	}
	require.Equal(t, ids, launched)
}

// The job of a hook that panics goes on, with the priority that it had or that of its urgency: nobody
// would ask the hook again.
func TestAHookThatPanicsLeavesAPriority(t *testing.T) {
	computed := uint32(0)
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{{Name: "rank", Priority: func(*joblife.HookEvent) (uint32, bool) {
		if computed == 0 {
			panic("no table")
		}
		return computed, false
	}}}})
	priority := func(id jobid.ID) uint32 {
		p, _ := must(s.m.Job(id)).Job().Priority()
		return p
	}
	id := s.submit(jobspec.Job{Nodes: 1})
	require.EqualValues(t, 16, priority(id))
	require.Len(t, s.faults(), 1)
	computed = 77
	s.step(joblife.SetUrgency{ID: id, Urgency: 16})
	require.EqualValues(t, 77, priority(id))
	computed = 0
	s.step(joblife.SetUrgency{ID: id, Urgency: 16})
	require.EqualValues(t, 77, priority(id))
}

// PL-15: an executor that comes in a shutdown starts nothing, and says what it runs. What it does not
// have starts in the next life.
func TestAnExecutorThatComesInAShutdownStartsNothing(t *testing.T) {
	s := silent(t, joblife.Config{})
	s.hold["exec"] = true
	var ids []jobid.ID
	for rank := range uint32(4) {
		if rank == 3 {
			s.step(joblife.ExecLost{})
		}
		ids = append(ids, s.submit(jobspec.Job{Nodes: 1}))
		s.step(success(t, ids[rank], rank))
	}
	s.exec = nil
	s.step(joblife.Shutdown{})
	s.step(joblife.ExecHello{})
	require.Equal(t, []bool{true, true, true}, s.starts(), "Reattach")
	s.step(joblife.ExecRefused{ID: ids[0]})
	s.step(respond(ids[1], exec.ResponseReattached))
	s.step(joblife.ExecHello{})
	require.Equal(t, []bool{true, true, true, true, true}, s.starts())
	for _, id := range ids {
		require.Equal(t, jobstate.StateRun, s.state(id))
	}
	s.exec = nil
	s.restart()
	require.Equal(t, []bool{false, true, false, false}, s.starts())
}

// A hook may end all at once: the Step that it is called in is the last, and is whole.
func TestAHookShutsDownAtOnce(t *testing.T) {
	for _, name := range []string{"submit", "validate", "depend", "priority", "alloc", "start", "finish", "release", "free", "clean"} {
		s := newSite(t, joblife.Config{Distinct: true, Hooks: []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
			if e.Entry.Name == name {
				e.Post(joblife.Shutdown{Deadline: e.Now()})
			}
		}}}}, 8)
		s.hold["sched"], s.hold["pool"], s.hold["exec"] = true, true, true
		for _, in := range []joblife.Input{
			joblife.Submit{ID: 5, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16}, success(t, 5, 0),
			respond(5, exec.ResponseStart), respond(5, exec.ResponseFinish), said(5, exec.ResponseRelease),
		} {
			if !s.m.Stopped() {
				s.step(in)
			}
		}
		require.True(t, s.m.Stopped(), name)
		require.ErrorIs(t, s.try(joblife.Tick{}), perilog.ErrStopped)
		require.Empty(t, s.faults())
		s.cfg.Hooks, s.hold = nil, map[string]bool{}
		s.restart()
		require.Equal(t, jobstate.StateInactive, s.state(5), name)
	}
}

// The greatest limits are limits of nothing, for the owner too.
func TestTheGreatestLimitsLimitNothing(t *testing.T) {
	most := jobstate.Some(math.MaxInt)
	s := newSite(t, joblife.Config{
		MaxLog: math.MaxInt, MaxJobspec: math.MaxInt, MaxActive: math.MaxInt, TombstoneCount: most,
		Limits: purge.Limits{MaxCount: most, MaxAge: jobstate.Some[time.Duration](math.MaxInt64), Batch: purge.MaxBatch},
		Hooks:  []joblife.Hooks{joblife.Dependencies()},
	}, 8)
	id := s.add(needing("n", "begin-time", "1600000100"))
	s.step(joblife.SetUrgency{ID: id, Urgency: 20})
	s.step(joblife.Memo{ID: id, By: joblife.Cred{Guest: true}, Values: json.RawMessage(`{"a":1}`)})
	s.now = s.now.Add(200 * time.Second)
	s.step(joblife.Tick{})
	require.Equal(t, jobstate.StateInactive, s.state(id), s.events(id))
	require.Equal(t, 1, s.ask(joblife.Purge{Tag: 7, Limits: purge.PurgeAll(), Force: true}).Count)
	require.Empty(t, s.faults())
}

// A start that no executor got is void, whichever comes first, the end of the job or of the session.
func TestAStartThatNobodyGotKeepsNoNodes(t *testing.T) {
	lost := joblife.ExecLost{}
	for _, inputs := range [][]joblife.Input{{lost, joblife.Raise{ID: 5, Type: "cancel"}}, {joblife.Raise{ID: 5, Type: "cancel"}, lost}} {
		s := silent(t, joblife.Config{})
		s.step(joblife.Submit{ID: 5, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16})
		s.feed(success(t, 5, 0))
		for _, in := range inputs {
			s.feed(in)
		}
		s.act()
		require.Equal(t, jobstate.StateInactive, s.state(5))
		require.Empty(t, s.starts())
	}
}

// A node is no matter of jobs that wait, whatever their users write into their logs before a restart.
func TestANodeIsNoMatterOfJobsThatWait(t *testing.T) {
	s := silent(t, joblife.Config{})
	for id := range jobid.ID(300) {
		s.feed(joblife.Submit{ID: id + 1, Jobspec: text(t, jobspec.Job{Nodes: 1}), Urgency: 16})
	}
	s.act()
	for id := range jobid.ID(300) {
		s.feed(joblife.Memo{ID: id + 1, Values: json.RawMessage(`{"leader":0}`)})
	}
	s.act()
	s.restart()
	allocs := testing.AllocsPerRun(1, func() {
		for _, off := range []*idset.Set{idset.Of(3), nil} {
			require.NoError(t, s.m.Step(s.now, joblife.Offline{Ranks: off}))
		}
	})
	require.Less(t, allocs, 100.0)
}

// What a node reports of a quarantined job counts when the job's records are repaired.
func TestAReportOfAQuarantinedJobIsRepeated(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
	s.hold["action"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	report := exited(s.runs[0], 0).(joblife.Report)
	report.Tag = 7
	good := slices.Clone(s.store)
	for i, r := range s.store {
		if r.Job == id && r.Kind == joblife.RecordJobspec {
			s.store[i].Data = []byte("1")
		}
	}
	s.restart()
	require.Len(t, s.rec.Quarantined, 1)
	require.Equal(t, perilog.AckRepeated, s.ask(report).Report, "not AckUnknown, after which the node forgets it")
	s.store = good
	s.restart()
	require.Equal(t, perilog.AckApplied, s.ask(report).Report)
	require.Equal(t, jobstate.StateInactive, s.state(id))
}
