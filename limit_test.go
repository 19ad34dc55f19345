package joblife_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

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
			"update":        joblife.Update{ID: id, Updates: []jobstate.Update{{Path: "attributes.system.x", Value: []byte(`"` + text + `"`)}}},
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
				Dependency: func(*joblife.Event, jobspec.Dependency) (bool, error) { return true, refuse },
				Event: func(e *joblife.Event) {
					if e.Entry.Name == jobstate.EventSubmit {
						e.Post(joblife.DependencyAdd{ID: e.Job.ID(), Description: "x"})
					}
				},
			}}}, 8)
			id := s.add(needing(t, "a", "x", ""))
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
		line, err := r.MarshalText()
		require.NoError(s.t, err)
		var back joblife.Record
		require.NoError(s.t, back.UnmarshalText(line))
	}
	_, rec, err := joblife.Restore(s.now, s.cfg, all(s.store))
	require.NoError(s.t, err)
	require.Empty(s.t, rec.Quarantined)
}
