package joblife_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// Users of flux-core know its words, and its tests look for them.
func TestARefusalHasTheWordsOfFlux(t *testing.T) {
	s := silent(t, joblife.Config{Queues: []string{"a", "b"}, Hooks: []joblife.Hooks{joblife.Dependencies()}})
	s.step(joblife.EnableQueue{Queue: "b", Reason: "full"})
	submit := func(j jobspec1) joblife.Submit {
		j.Slots = 1
		return joblife.Submit{Tag: 7, Jobspec: j.text(), Urgency: 16}
	}
	job := func() jobid.ID { return s.ask(submit(jobspec1{Queue: "a"})).Job }
	active, canceled, failed, good := job(), job(), job(), job()
	s.cancel(canceled)
	for status, id := range map[int32]jobid.ID{1 << 8: failed, 0: good} {
		s.step(success(t, id, 0))
		s.finish(id, status)
	}
	other := submit(jobspec1{Queue: "a"})
	other.By.UserID = 5
	theirs := s.ask(other).Job

	for _, c := range []struct{ scheme, value, want string }{
		{"none", "x", `dependency scheme "none" not supported`},
		{"afterok", "x\n", `dependency: afterok: "x\n" is not a valid jobid`},
		{"afterok", "ƒ3", "dependency: afterok: id ƒ3: job not found"},
		{"afterany", theirs.String(), "afterany: Permission denied for job " + theirs.String()},
		{"afterstart", canceled.String(), "dependency: after: " + canceled.String() + " never started"},
		{"afterok", canceled.String(), "dependency: after: " + canceled.String() + " never started"},
		{"afterexcept", canceled.String(), "dependency: after: " + canceled.String() + " never started"},
		{"afterok", failed.String(), "dependency: afterok: job " + failed.String() + " failed or was canceled"},
		{"afternotok", good.String(), "dependency: afternotok: job " + good.String() + " succeeded"},
		{"afterexcept", good.String(), "dependency: afterexcept: job " + good.String() + ": no exception"},
		{"begin-time", "soon", "Invalid begin-time=soon"},
		{"singleton", "x", "singleton jobs require a job name"},
		{"afterok", good.String(), ""},
		{"afternotok", failed.String(), ""},
		{"afterany", canceled.String(), ""},
		{"afterok", active.String(), ""},
	} {
		err := s.try(submit(jobspec1{Queue: "a", Dependencies: []map[string]string{{"scheme": c.scheme, "value": c.value}}}))
		require.Equal(t, c.want, refusal(err), "%s %s", c.scheme, c.value)
	}
	for queue, want := range map[string]string{
		"":     "a named queue is required",
		"c":    "'c' is not a valid queue",
		"c\nd": `'c\nd' is not a valid queue`,
		"b":    "job submission to b is disabled: full",
	} {
		require.Equal(t, want, refusal(s.try(submit(jobspec1{Queue: queue}))))
	}
	require.ErrorContains(t, s.try(joblife.StartQueue{Queue: "c"}), "'c' is not a valid queue")
	require.ErrorContains(t, s.try(joblife.StartQueue{}), "a named queue is required")

	s = silent(t, joblife.Config{})
	s.step(joblife.EnableQueue{Reason: "closed"})
	require.Equal(t, "job submission is disabled: closed", refusal(s.try(submit(jobspec1{}))))
}

// refusal returns the text of an error of ErrRefused, and "" for no error.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	text, ok := strings.CutPrefix(err.Error(), joblife.ErrRefused.Error()+": ")
	if !ok {
		return "no refusal: " + text
	}
	return text
}

// give passes an input at the time of the site. If it is refused, nothing changes (I6).
func (s *site) give(in joblife.Input) error {
	s.t.Helper()
	before := joblife.DescribeAll(s.m)
	due, isDue := s.m.Deadline()
	err := s.m.Step(s.now, in)
	if err == nil {
		s.act()
		return nil
	}
	require.Equal(s.t, before, joblife.DescribeAll(s.m), "%T: %v", in, err)
	due2, isDue2 := s.m.Deadline()
	require.Equal(s.t, due, due2)
	require.Equal(s.t, isDue, isDue2)
	require.False(s.t, s.m.Ready(&s.rd), "%T %+v: %v", in, in, err)
	return err
}

// badSubmits are submissions that no state allows.
func badSubmits(t *testing.T) []joblife.Input {
	ok := text(t, jobspec.Job{Nodes: 1})
	guest := joblife.Cred{UserID: 5, Guest: true}
	return []joblife.Input{
		joblife.Submit{}, joblife.Submit{Jobspec: []byte("{}")}, joblife.Submit{Jobspec: ok[:len(ok)-1]},
		joblife.Submit{Jobspec: ok, Urgency: -1}, joblife.Submit{Jobspec: ok, Urgency: 32},
		joblife.Submit{Jobspec: ok, Urgency: 17, By: guest},
		joblife.Submit{Jobspec: ok, ID: math.MaxUint64}, joblife.Submit{Jobspec: ok, ID: 1 << 63},
		joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1, Queue: "no"})},
		joblife.Submit{Jobspec: needing("a", "begin-time", "9999999999", "no", "1")},
		joblife.Submit{Jobspec: needing("refused")},
	}
}

// bad are inputs with bad values, for a job and without one.
func bad(t *testing.T, id jobid.ID) []joblife.Input {
	nan := eventlog.Timestamp(math.NaN())
	guest := joblife.Cred{UserID: 5, Guest: true}
	key := joblife.Action{Job: id, Key: jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "no"}}
	response := func(r exec.Response) joblife.Input { return joblife.ExecResponse(r) }
	sched := func(r alloc.Response) joblife.Input { return joblife.SchedResponse(r) }
	list := append(badSubmits(t),
		nil, joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1}), ID: id},
		joblife.Validated{ID: id}, joblife.Validated{ID: id, Err: errors.New("no")},
		joblife.DependencyAdd{ID: id}, joblife.DependencyAdd{ID: id, Description: "\x00"},
		joblife.SetUrgency{ID: id, Urgency: -1}, joblife.SetUrgency{ID: id, Urgency: 32},
		joblife.SetUrgency{ID: id, Urgency: 3, By: guest}, joblife.SetPriority{ID: id + 99},
		joblife.UpdateJobspec{ID: id}, joblife.UpdateJobspec{ID: id, By: guest},
		joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("{")}}},
		joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "no", Value: json.RawMessage("1")}}},
		joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: json.RawMessage("1")}, {Path: "attributes..x", Value: json.RawMessage("1")}}},
		joblife.SetExpiration{ID: id, Expiration: -1}, joblife.SetExpiration{ID: id, Expiration: nan},
		joblife.Memo{ID: id}, joblife.Memo{ID: id, Values: json.RawMessage("[]")}, joblife.Memo{ID: id, Values: json.RawMessage("{"), Volatile: true},
		joblife.Memo{ID: id, Values: json.RawMessage("1"), Volatile: true}, joblife.Memo{ID: id, Volatile: true},
		joblife.SetFlags{ID: id + 99}, joblife.SetFlags{ID: id, Flags: []string{""}},
		joblife.Raise{ID: id, Type: "x", Severity: -1}, joblife.Raise{ID: id, Type: "x", Severity: 8},
		joblife.Raise{ID: id}, joblife.Raise{ID: id, Type: "cancel", By: guest},
		joblife.Post{ID: id}, joblife.Post{ID: id, Name: "submit"}, joblife.Post{ID: id, Name: "alloc"}, joblife.Post{ID: id, Name: "invalidate"},
		joblife.Post{ID: id, Name: "x", Context: json.RawMessage("[")}, joblife.Post{ID: id, Name: "x", By: guest},
		joblife.Post{ID: id, Name: "jobspec-update", Context: json.RawMessage(`{"no":1}`)},
		joblife.Post{ID: id, Name: "jobspec-update", Context: json.RawMessage(`{"attributes.system.duration":-1}`)},
		joblife.Wait{}, joblife.Wait{Tag: 1, ID: id}, joblife.Wait{Tag: 1, ID: id, States: 128}, joblife.WaitEmpty{}, joblife.WaitEmpty{Tag: 1}, joblife.WaitEmpty{Tag: 1, States: 128},
		joblife.EnableQueue{Queue: "no"}, joblife.StartQueue{Queue: "no"},
		joblife.Purge{By: guest}, joblife.Purge{Limits: purge.Limits{Batch: -5}}, joblife.Purge{Force: true, Limits: purge.Limits{MaxCount: jobstate.Some(-1)}},
		joblife.PurgeIDs{By: guest, IDs: []jobid.ID{id}}, joblife.PurgeIDs{Force: true, IDs: []jobid.ID{id, id + 99}},
		joblife.Reload{Config: joblife.Config{Queues: []string{""}}}, joblife.Reload{Config: joblife.Config{Queues: []string{"a", "a"}}},
		joblife.Reload{Config: joblife.Config{Queues: []string{"a\xff"}}}, joblife.Reload{Config: joblife.Config{Queues: []string{strings.Repeat("a", 4097)}}},
		joblife.Reload{Config: joblife.Config{Limits: purge.Limits{MaxAge: jobstate.Some(-time.Second)}}},
		joblife.Reload{Config: joblife.Config{Actions: perilog.Config{Prologs: []perilog.ActionConfig{{Description: "\x00"}}}}},
		joblife.SchedReady{}, joblife.SchedReady{Limit: -1},
		sched(alloc.Response{ID: id}), sched(alloc.Response{ID: id, Type: 9}), sched(alloc.Response{ID: id + 99, Type: alloc.ResponseCancel}),
		sched(alloc.Response{ID: id, Type: alloc.ResponseAnnotate, Annotations: json.RawMessage("[]")}),
		response(exec.Response{ID: id}), response(exec.Response{ID: id, Type: 99}), response(exec.Response{ID: id + 99, Type: exec.ResponseStart}),
		response(exec.Response{ID: id, Type: exec.ResponseException, Exception: exec.Exception{Type: "x", Severity: 8}}), response(exec.Response{ID: id, Type: exec.ResponseException}),
		response(exec.Response{ID: id, Type: exec.ResponseRelease, Ranks: idset.Of(77)}),
		joblife.ExecRefused{ID: id + 99}, joblife.ExecRefused{ID: id + 99, Note: "x"},
		joblife.Reattach{Action: key}, joblife.Rerun{Action: key}, joblife.ForceFinish{Action: key, Operator: "me"},
		joblife.Reattach{Action: joblife.Action{Job: id + 99}},
		joblife.Shutdown{Deadline: nan}, joblife.Shutdown{Deadline: -1},
	)
	for _, name := range []string{"validate", "depend", "start", "finish", "release", "free", "clean", "prolog-start", "prolog-finish", "epilog-finish", "drained", "exception", "urgency", "dependency-add"} {
		list = append(list, joblife.Post{ID: id, Name: name, Context: json.RawMessage(`{"x":1}`)})
	}
	return list
}

// The states in which RFC 21 would allow the event.
func TestNobodyPostsWhatTheManagerDecides(t *testing.T) {
	s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{later()}}, 8)
	id := s.submit(jobspec.Job{Nodes: 1})
	require.ErrorIs(t, s.try(joblife.Post{ID: id, Name: "invalidate"}), joblife.ErrInvalid)
	s.hold["sched"] = true
	s.step(joblife.Validated{ID: id})
	require.Equal(t, jobstate.StateSched, s.state(id))
	require.ErrorIs(t, s.try(joblife.Post{ID: id, Name: "alloc"}), joblife.ErrInvalid)
}

func TestAnActionThatIsPostedHasADescriptionOfAtMost4KiB(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["sched"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	start := func(n int) joblife.Input {
		return joblife.Post{ID: id, Name: "epilog-start", Context: json.RawMessage(`{"description":"` + strings.Repeat("d", n) + `"}`)}
	}
	require.ErrorIs(t, s.try(start(4<<10+1)), eventlog.ErrLimit)
	s.step(start(4 << 10))
}

// targets are the jobs that a stage attacks: one that is unknown, the last but one,
// which runs, and another in its turn.
func targets(ids []jobid.ID, turn int) []jobid.ID {
	if len(ids) == 0 {
		return []jobid.ID{42, 43, 44}
	}
	return []jobid.ID{42, ids[max(0, len(ids)-2)], ids[turn%len(ids)]}
}

// I6.
func TestARefusedInputChangesNothing(t *testing.T) {
	validator := joblife.Hooks{Name: "validator", Validate: func(e *joblife.HookEvent) error {
		e.Post(joblife.Memo{ID: e.Job.ID(), Values: json.RawMessage(`{"seen":1}`)})
		e.PostAt(e.Now()+1, joblife.Memo{ID: e.Job.ID(), Values: json.RawMessage(`{"seen":2}`)})
		if e.Job.Jobspec().Name() == "refused" {
			return errors.New("no")
		}
		if e.Job.Job().Urgency() == 1 {
			return joblife.ErrLater
		}
		return nil
	}}
	cfg := busyConfig()
	cfg.Hooks = append(cfg.Hooks, validator)
	s := newSite(t, cfg, 8)
	s.hold["action"], s.hold["exec"], s.hold["finish"], s.hold["drain"] = true, true, true, true
	var ids []jobid.ID
	turn := 0
	attack := func(stage string) {
		t.Helper()
		refused := 0
		turn++
		for _, id := range targets(ids, turn) {
			for _, in := range bad(t, id) {
				if s.give(in) != nil {
					refused++
				}
			}
		}
		for _, at := range []time.Time{{}, time.Unix(1, 0), s.now.Add(-time.Second)} {
			before := joblife.DescribeAll(s.m)
			require.ErrorIs(t, s.m.Step(at, joblife.Tick{}), joblife.ErrClock)
			require.Equal(t, before, joblife.DescribeAll(s.m))
		}
		require.Greater(t, refused, 120, stage)
	}
	submit := func(spec []byte, urgency int) jobid.ID {
		t.Helper()
		ids = append(ids, s.ask(joblife.Submit{Tag: 7, Jobspec: spec, Urgency: urgency}).Job)
		return ids[len(ids)-1]
	}
	attack("empty")
	submit(needing("later"), 1)
	submit(needing("waits", "begin-time", "9999999999"), 16)
	submit(needing("held"), 0)
	run := submit(needing("runs"), 16)
	big := submit(text(t, jobspec.Job{Nodes: 8, Exclusive: true}), 16)
	require.Equal(t, jobstate.StateRun, s.state(run))
	require.Equal(t, jobstate.StateSched, s.state(big))
	attack("prolog")
	s.reportAll()
	attack("starting")
	s.step(said(run, exec.ResponseStart))
	attack("running")
	s.step(joblife.Raise{ID: run, Type: "cancel"})
	attack("stopping")
	s.step(said(run, exec.ResponseFinish))
	s.step(said(run, exec.ResponseRelease))
	attack("epilog")
	s.hold["action"] = false
	s.reportAll()
	require.Equal(t, jobstate.StateInactive, s.state(run))
	attack("inactive")
	s.step(joblife.SchedLost{})
	s.step(joblife.ExecLost{})
	attack("lost")
	s.step(joblife.SchedHello{})
	attack("greeting")
	s.step(joblife.PurgeIDs{Tag: 1, IDs: []jobid.ID{run}, Force: true})
	attack("purged")
	s.step(joblife.Shutdown{})
	attack("stopping")
}

// reportAll reports the end of all that was launched, on the first rank of each.
func (s *site) reportAll() {
	s.t.Helper()
	for _, l := range s.runs {
		rank, _ := l.Ranks.Min()
		s.step(exited(l, rank))
	}
}

func TestAStepWithoutAnInputIsRefused(t *testing.T) {
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{{Name: "hasty", Validate: func(e *joblife.HookEvent) error {
		e.Post(nil)
		e.Post((*joblife.Raise)(nil))
		return nil
	}}}})
	for _, in := range []joblife.Input{nil, (*joblife.Tick)(nil), &joblife.Tick{}, struct{ joblife.Input }{}, struct{ joblife.Tick }{}, struct{ *joblife.Wait }{}} {
		require.ErrorIs(t, s.m.Step(s.now, in), joblife.ErrInvalid, "%T", in)
		require.ErrorIs(t, s.m.Step(s.now, joblife.Tagged{Tag: 1, In: in}), joblife.ErrInvalid, "%T", in)
	}
	s.waits(false)
	require.Len(t, s.faults(), 2)
}

// I12: what cannot be a line of a log is refused before it is anywhere, and what a peer
// says in words too long or not in UTF-8 is cut and mended.
func TestNothingThatCannotBeStoredIsTakenIn(t *testing.T) {
	put := func(id jobid.ID, text string) map[string]joblife.Input {
		object := []byte(`{"a":"` + text + `"}`)
		return map[string]joblife.Input{
			"refused":       joblife.ExecRefused{ID: id, Note: text},
			"raise":         joblife.Raise{ID: id, Type: "x", Severity: 1, Note: text},
			"memo":          joblife.Memo{ID: id, Values: object},
			"volatile memo": joblife.Memo{ID: id, Values: object, Volatile: true},
			"post":          joblife.Post{ID: id, Name: "site", Context: object},
			"post name":     joblife.Post{ID: id, Name: text},
			"flags":         joblife.SetFlags{ID: id, Flags: []string{text}},
			"queue":         joblife.StartQueue{Reason: text},
			"disable":       joblife.EnableQueue{Reason: text},
			"update":        joblife.UpdateJobspec{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.x", Value: []byte(`"` + text + `"`)}}},
			"submit": joblife.Submit{Urgency: 16, Jobspec: []byte(strings.Replace(
				string(spec(t)), `"version"`, `"x":"`+text+`","version"`, 1))},
		}
	}
	for kind, text := range map[string]string{
		"invalid": "\xff", "long": strings.Repeat("x", 3<<20), "just too long": strings.Repeat("x", 1<<20-20), "escapes": strings.Repeat("\x7f\u2028", 1<<18),
		"deep": `","b":` + strings.Repeat(`[`, 2046) + strings.Repeat("]", 2046) + `,"c":"`,
	} {
		for name := range put(1, "") {
			t.Run(kind+" "+name, func(t *testing.T) {
				s := newSite(t, joblife.Config{}, 8)
				s.hold["exec"] = true
				id := s.submit(jobspec.Job{Nodes: 1})
				_ = s.m.Step(s.now, put(id, text)[name]) // refused or not, but no panic
				s.act()
				s.stored()
			})
		}
		for name, r := range map[string]alloc.Response{
			"deny":       {Type: alloc.ResponseDeny, Note: text},
			"annotate":   {Type: alloc.ResponseAnnotate, Annotations: []byte(`{"a":"` + text + `"}`)},
			"annotation": {Type: alloc.ResponseSuccess, Annotations: []byte(`{"a":"` + text + `"}`), R: core(t)},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				s := newSite(t, joblife.Config{}, 8)
				s.hold["sched"], s.hold["exec"], s.hold["pool"] = true, true, true
				r.ID = s.submit(jobspec.Job{Nodes: 1})
				err := s.m.Step(s.now, joblife.SchedResponse(r))
				require.Equal(t, name == "annotate", err != nil, err)
				s.act()
				s.stored()
			})
		}
		t.Run(kind+" dependency", func(t *testing.T) {
			var refuse error
			s := newSite(t, joblife.Config{Hooks: []joblife.Hooks{{
				Dependency: func(*joblife.HookEvent, jobspec.Dependency) (bool, error) { return true, refuse },
				Event: func(e *joblife.HookEvent) {
					if e.Entry.Name == jobstate.EventSubmit {
						e.Post(joblife.DependencyAdd{ID: e.Job.ID(), Description: "x"})
					}
				},
			}}}, 8)
			id := s.add(needing("a", "x", ""))
			refuse = errors.New(text)
			s.restart()
			require.Equal(t, jobstate.StateInactive, s.state(id), "the job ends whatever the hook says")
			s.stored()
		})
	}
}

func TestWhatOutsideSaysTooLongIsRefusedOrCut(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	long := strings.Repeat("x", 2<<20)
	require.ErrorIs(t, s.try(joblife.Memo{ID: id, Volatile: true, Values: []byte(`{"a":"` + long + `"}`)}), joblife.ErrLimit)
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseException, Exception: exec.Exception{Type: "exec", Severity: 1, Note: long}})
	require.Contains(t, s.events(id), "exception")

	// Each node has cores of its own.
	var entries []rset.Entry
	for i := range uint32(30_000) {
		entries = append(entries, rset.Entry{Ranks: idset.Of(8 + i), Children: map[string]*idset.Set{"core": idset.Of(i % 1000), "gpu": idset.Of(i / 1000)}})
	}
	r, err := rset.New(rset.Config{Entries: entries})
	require.NoError(t, err)
	s.hold["sched"], s.hold["pool"] = true, true
	id = s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: r})
	require.Equal(t, "submit validate depend priority exception clean", s.events(id))
	require.Len(t, sent[alloc.Free](s), 1, "they go back")
	s.stored()
}

func spec(t *testing.T) []byte { return text(t, jobspec.Job{Nodes: 1}) }

func core(t *testing.T) *rset.R {
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(0), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	return r
}

// stored checks that each record is a line, and that all of them restore.
func (s *site) stored() {
	s.t.Helper()
	for _, r := range s.store {
		line, err := lineOf(r)
		require.NoError(s.t, err)
		_, err = recordOf(line)
		require.NoError(s.t, err)
	}
	_, rec, err := joblife.Restore(s.now, s.cfg, all(s.store))
	require.NoError(s.t, err)
	require.Empty(s.t, rec.Quarantined)
}

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
		Hooks: []joblife.Hooks{joblife.Dependencies(), {Name: "chatty", Event: func(e *joblife.HookEvent) {
			if id := e.Job.ID(); e.Entry.Name == jobstate.EventUrgency || e.Entry.Name == jobstate.EventException {
				e.Post(joblife.Post{ID: id, Name: "site.noted", Context: []byte(`{"text":"` + strings.Repeat("n", maxLog/64) + `"}`)})
				e.Post(joblife.SetPriority{ID: id, Priority: uint32(e.Entry.Timestamp)})
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
		return joblife.UpdateJobspec{By: mallory, ID: id, Updates: []jobstate.Update{{
			Path: fmt.Sprint("attributes.system.k", rng.IntN(9)), Value: []byte(`"` + strings.Repeat("u", rng.IntN(maxLog/4)) + `"`)}}}
	case 5, 6:
		return joblife.Raise{By: mallory, ID: id, Type: strings.Repeat("t", 1+rng.IntN(9)), Severity: 1 + rng.IntN(7), Note: long()}
	case 7, 8:
		return joblife.SetUrgency{By: mallory, ID: id, Urgency: rng.IntN(17)}
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
		s := crowded(t, maxLog)
		s.hold["finish"] = true
		s.hold["sched"] = seed%2 == 0
		var ids []jobid.ID
		for range 3 {
			ids = append(ids, s.ask(joblife.Submit{Tag: 7, By: mallory, Urgency: 16, Jobspec: text(t, jobspec.Job{Nodes: 2})}).Job)
		}
		full := 0
		for range 200 {
			s.now = s.now.Add(time.Millisecond)
			if s.give(hostile(t, rng, maxLog, ids)) != nil {
				full++
			}
		}
		require.Greater(t, full, 30, "seed %d: nothing was refused", seed)
		for ; ; s.restart() {
			require.NoError(t, joblife.Audit(s.m))
			for _, id := range ids {
				require.ErrorIs(t, s.try(joblife.Memo{By: mallory, ID: id, Values: []byte(`{"m":"` + strings.Repeat("m", maxLog) + `"}`)}), joblife.ErrLimit)
			}
			if s.rec.Jobs != nil {
				break // the logs count after a restart, too
			}
		}
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
		err = s.try(joblife.SetUrgency{By: mallory, ID: id, Urgency: 3})
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

// What nodes and peers say is answered when it is durable, and not before.
func TestATaggedInputIsAnsweredWhenItIsDurable(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.hold["finish"] = true
	id := s.submit(jobspec.Job{Nodes: 1})
	finish := joblife.ExecResponse{ID: id, Type: exec.ResponseFinish}
	var rd joblife.Ready
	s.feed(joblife.Memo{ID: id, Values: []byte(`{"a":1}`)})
	require.True(t, s.m.Ready(&rd))
	s.feed(joblife.Tagged{Tag: 7, In: finish})
	s.feed(joblife.Tagged{Tag: 8, In: finish})
	s.feed(joblife.Tagged{In: finish})
	require.Empty(t, rd.Answers)
	require.NoError(t, s.m.Done(rd.Seq))
	require.True(t, s.m.Ready(&rd))
	require.NotEmpty(t, rd.Append)
	require.Equal(t, []joblife.Answer{{Tag: 7}, {Tag: 8}}, rd.Answers, "a repetition too")
	require.NoError(t, s.m.Done(rd.Seq))
	s.feed(joblife.Tagged{Tag: 9, In: joblife.Drained{Ranks: idset.Of(1)}})
	require.True(t, s.m.Ready(&rd))
	require.Equal(t, []joblife.Answer{{Tag: 9}}, rd.Answers, "of what nobody waits for")
	require.NoError(t, s.m.Done(rd.Seq))

	before := joblife.DescribeAll(s.m)
	for _, in := range append(taggedInputs, nil, joblife.Tagged{}, &joblife.Tick{}, joblife.ExecRefused{ID: 99}) {
		require.Error(t, s.m.Step(s.now, joblife.Tagged{Tag: 5, In: in}), "%T", in)
		require.Equal(t, before, joblife.DescribeAll(s.m))
		require.False(t, s.m.Ready(&rd))
	}
	for _, in := range taggedInputs {
		_, each := in.(joblife.Reports) // has one
		require.True(t, each || reflect.ValueOf(in).FieldByName("Tag").IsValid())
		require.ErrorIs(t, s.m.Step(s.now, joblife.Tagged{Tag: 5, In: in}), joblife.ErrInvalid, "%T: two answers", in)
	}
}

var taggedInputs = []joblife.Input{
	joblife.Submit{}, joblife.SetUrgency{}, joblife.UpdateJobspec{}, joblife.SetExpiration{}, joblife.Memo{}, joblife.SetFlags{},
	joblife.Alloc{}, joblife.Raise{}, joblife.Post{}, joblife.Wait{}, joblife.WaitEmpty{}, joblife.WaitCancel{}, joblife.EnableQueue{},
	joblife.StartQueue{}, joblife.Purge{}, joblife.PurgeIDs{}, joblife.Report{}, joblife.Reports{}, joblife.Tagged{In: joblife.Tick{}},
}

// What a journal has names the job's user, who may read it.
func TestAJournalNamesTheUser(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.step(joblife.Submit{ID: 5, By: joblife.Cred{UserID: 1001}, Jobspec: text(t, jobspec.Job{Nodes: 1, Command: []string{"true"}}), Urgency: 0})
	s.step(joblife.Memo{ID: 5, Values: []byte(`{"a":1}`), Volatile: true})
	s.step(joblife.SetUrgency{ID: 5, Urgency: 16})
	require.Equal(t, jobstate.StateInactive, s.state(5))
	require.True(t, slices.ContainsFunc(s.jour, func(e joblife.JournalEntry) bool { return e.Volatile }))
	for _, e := range s.jour {
		require.Equal(t, uint32(1001), e.UserID, e.Entry.Name)
	}
}

// A store may take less than a line of a log has.
func TestAJobspecBeyondTheLimitIsRefused(t *testing.T) {
	spec, err := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"true"}})
	require.NoError(t, err)
	b := text(t, jobspec.Job{Nodes: 1, Command: []string{"true"}})
	for _, c := range []struct {
		max  int
		want error
	}{{len(b) - 1, joblife.ErrLimit}, {len(b), nil}, {0, nil}, {-1, nil}, {2 << 20, nil}} {
		s := newSite(t, joblife.Config{MaxJobspec: c.max}, 8)
		before := joblife.DescribeAll(s.m)
		require.ErrorIs(t, s.try(joblife.Submit{ID: 1, Jobspec: b, Urgency: 16}), c.want)
		require.ErrorIs(t, s.try(joblife.Submit{ID: 2, Spec: spec, Urgency: 16}), c.want)
		if c.want != nil {
			require.Equal(t, before, joblife.DescribeAll(s.m))
		}
	}
	large := append(slices.Clone(b[:len(b)-1]), []byte(`,"x":"`+strings.Repeat("x", 1<<20)+`"}`)...)
	s := newSite(t, joblife.Config{MaxJobspec: 2 << 20}, 8)
	require.ErrorIs(t, s.try(joblife.Submit{ID: 1, Jobspec: large, Urgency: 16}), joblife.ErrLimit, "a line takes no more")
}

// A Tick is for all whose time has come, though they have the same time.
func TestATickIsForAllJobsThatAreDueAtOnce(t *testing.T) {
	s := newSite(t, timed(), 8)
	s.hold["action"] = true
	s.step(joblife.Offline{Ranks: idset.Of(0, 1)})
	s.submit(jobspec.Job{Nodes: 1})
	s.submit(jobspec.Job{Nodes: 1})
	s.step(joblife.Offline{})
	require.Len(t, s.runs, 2)
	s.now = s.now.Add(10 * time.Second)
	s.feed(joblife.Tick{})
	require.True(t, s.m.Ready(&s.rd))
	require.Len(t, s.rd.Signal, 2)
}
