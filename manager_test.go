package joblife_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
)

func TestAJobLivesFromSubmitToClean(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	id := s.submit(jobspec.Job{Nodes: 2})
	require.Equal(t, "submit validate depend priority alloc start finish release free clean", s.events(id))
	v, ok := s.m.Job(id)
	require.True(t, ok)
	require.Equal(t, jobstate.StateInactive, v.State())
	result, _ := v.Result()
	require.Equal(t, jobstate.ResultCompleted, result)
	require.Equal(t, []string{"free 0-1 final=true"}, s.log)
	require.NoError(t, s.pool.Check())
	require.Equal(t, 0, s.pool.Len())
}

func TestPrologsEpilogsAndHousekeepingRun(t *testing.T) {
	zero := perilog.HousekeepingConfig{}
	s := newSite(t, joblife.Config{Actions: perilog.Config{
		Prologs: []perilog.ActionConfig{{PerRank: true}}, Epilogs: []perilog.ActionConfig{{PerRank: true}},
		Housekeeping: &zero,
	}}, 8)
	id := s.submit(jobspec.Job{Nodes: 2})
	require.Equal(t, "submit validate depend priority alloc prolog-start prolog-finish start finish epilog-start release epilog-release epilog-finish free clean", s.events(id))
	require.Equal(t, []string{
		"launch prolog job-manager.prolog on 0-1",
		"launch epilog job-manager.epilog on 0-1",
		"launch housekeeping housekeeping on 0",
		"launch housekeeping housekeeping on 1",
		"free 0-1 final=true",
	}, s.log)
	require.Equal(t, 0, s.m.Stats().Housekeeping)
}

func TestARestartGoesOn(t *testing.T) {
	s := newSite(t, joblife.Config{Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}, 8)
	s.hold["exec"] = true
	id := s.submit(jobspec.Job{Nodes: 2})
	waiting := s.submit(jobspec.Job{Nodes: 8, Exclusive: true})
	require.Equal(t, "submit validate depend priority alloc", s.events(id))

	m, rec, err := joblife.Restore(s.now, s.cfg, all(s.store))
	require.NoError(t, err)
	require.Empty(t, rec.Quarantined)
	require.Equal(t, []jobid.ID{id, waiting}, rec.Jobs)
	require.Empty(t, rec.Running)
	s.m = m
	s.hold["exec"] = false
	s.hello()
	require.Equal(t, "submit validate depend priority alloc start finish epilog-start release epilog-release epilog-finish free clean", s.events(id))
	require.Equal(t, "submit validate depend priority flux-restart priority", s.events(waiting))
}
