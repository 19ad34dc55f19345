package joblife_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// The clauses of RFC 14, "Jobspec and Program Life Cycle".

func TestRFC14AJobspecIsRefusedAtOnceOrWaitsForTheScheduler(t *testing.T) {
	var tested []string
	hook := func(name, refuses string) joblife.Hooks {
		return joblife.Hooks{Name: name, Validate: func(e *joblife.HookEvent) error {
			tested = append(tested, name)
			if e.Job.Jobspec().Name() == refuses {
				return errors.New("no")
			}
			return nil
		}}
	}
	s := silent(t, joblife.Config{Hooks: []joblife.Hooks{hook("a", "one"), hook("b", "two")}})
	ok := text(t, jobspec.Job{Nodes: 1})
	for _, malformed := range [][]byte{nil, []byte("{}"), ok[1:], ok[:len(ok)-1], append([]byte(`{"version":1,`), ok[1:]...)} {
		require.Error(t, s.try(joblife.Submit{Jobspec: malformed, Urgency: 16}), "%s", malformed)
	}
	require.Empty(t, tested, "nobody is asked")
	for name, asked := range map[string][]string{"one": {"a"}, "two": {"a", "b"}} {
		tested = nil
		require.ErrorIs(t, s.try(joblife.Submit{Jobspec: text(t, jobspec.Job{Nodes: 1, Name: name}), Urgency: 16}), joblife.ErrRefused)
		require.Equal(t, asked, tested)
	}
	require.Empty(t, s.store)
	tested = nil
	id := s.submit(jobspec.Job{Nodes: 1})
	require.Equal(t, []string{"a", "b"}, tested)
	requests := sent[alloc.Request](s)
	require.Len(t, requests, 1)
	require.Equal(t, id, requests[0].ID)
	require.JSONEq(t, string(ok), string(requests[0].Jobspec))
}

func TestRFC14AJobThatCannotStartFailsAndGivesItsResourcesBack(t *testing.T) {
	s := silent(t, joblife.Config{})
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	s.step(success(t, id, 0, 1))
	s.step(joblife.ExecResponse{ID: id, Type: exec.ResponseException, Exception: exec.Exception{Type: "exec", Note: "no slots"}})
	require.Empty(t, sent[alloc.Free](s), "before the executor lets go of them")
	s.step(said(id, exec.ResponseRelease))
	frees := sent[alloc.Free](s)
	require.Len(t, frees, 1)
	require.True(t, frees[0].Final)
	require.Equal(t, "0-1", frees[0].R.Ranks().String())
	result, _ := must(s.m.Job(id)).Result()
	require.Equal(t, jobstate.ResultFailed, result)
}
