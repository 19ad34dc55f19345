package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// site is an embedder with epilogs and housekeeping that crashes after a number
// of steps: of what it makes durable, launches and gives back.
type site struct {
	t        *testing.T
	spec     perilog.JobSpec
	jobLog   []byte
	hkLog    []byte
	job      *perilog.Job
	hk       *perilog.Housekeeping
	now      eventlog.Timestamp
	fuse     int
	epilogs  *idset.Set // where one runs
	cleaners *idset.Set // where housekeeping runs
	cleaned  *idset.Set // where it ended
	freed    *idset.Set
	over     bool
}

type crashed struct{}

func (s *site) step() {
	if s.fuse--; s.fuse == 0 {
		panic(crashed{})
	}
}

func (s *site) log(e eventlog.Entry) {
	s.jobLog, _ = eventlog.AppendEntry(s.jobLog, e)
	s.step()
	_, err := s.job.Apply(s.now, e)
	require.NoError(s.t, err)
}

// settle does all that follows, as the example does.
func (s *site) settle() {
	for e := s.job.Take(); !e.IsEmpty(); e = s.job.Take() {
		for _, event := range e.Post {
			s.log(event)
		}
		for _, q := range e.Requests {
			require.Equal(s.t, perilog.RequestLaunch, q.Kind)
			s.epilogs.UnionWith(q.Ranks)
			s.step()
		}
	}
	if ready := s.job.Holds().Ready(s.hk.Status(s.now).Waiting); !ready.IsEmpty() {
		_, err := s.hk.Start(s.now, perilog.Spec{Ranks: ready})
		require.NoError(s.t, err)
	}
	e := s.hk.Take()
	s.hkLog = append(s.hkLog, e.Log...)
	s.step()
	for _, q := range e.Requests {
		require.False(s.t, s.epilogs.Intersects(q.Ranks), "housekeeping beside an epilog")
		s.cleaners.UnionWith(q.Ranks)
		s.step()
	}
	for _, f := range e.Free {
		s.give(f.R.Ranks())
		s.over = s.over || f.Final
		s.step()
	}
}

// give tells the scheduler that ranks are free.
func (s *site) give(ranks *idset.Set) {
	require.False(s.t, s.over, "a fragment after the final one")
	require.False(s.t, ranks.Intersects(s.freed), "freed twice")
	require.True(s.t, s.cleaned.ContainsAll(ranks), "freed before it was clean")
	require.False(s.t, ranks.Intersects(idset.Union(s.epilogs, s.cleaners)))
	s.freed.UnionWith(ranks)
}

func (s *site) event(name, context string) {
	s.now++
	e := eventlog.Entry{Timestamp: s.now, Name: name, Context: []byte(context)}
	s.log(e)
	s.settle()
}

// run lives one life of the site, and reports whether it crashed.
func (s *site) run() (crash bool) {
	defer func() {
		if x := recover(); x != nil {
			if _, ok := x.(crashed); !ok {
				panic(x)
			}
			crash = true
		}
	}()
	s.settle()
	for _, e := range []struct{ name, context string }{
		{"alloc", ""}, {"start", ""}, {"finish", `{"status":0}`}, {"release", `{"ranks":"all","final":true}`},
	} {
		seen := false
		for old, err := range eventlog.Entries(s.jobLog) {
			require.NoError(s.t, err)
			seen = seen || old.Name == e.name
		}
		if !seen {
			s.event(e.name, e.context)
		}
	}
	ended := func(rank uint32) perilog.Report { return perilog.Report{Kind: perilog.ReportExited, Rank: rank} }
	for !s.epilogs.IsEmpty() || !s.cleaners.IsEmpty() {
		s.now++
		if rank, ok := s.epilogs.Min(); ok {
			s.epilogs.Remove(rank)
			s.job.Report(s.now, epilogKey, ended(rank))
			s.settle()
		}
		if rank, ok := s.cleaners.Max(); ok {
			s.cleaners.Remove(rank)
			s.cleaned.Insert(rank)
			s.hk.Report(s.now, ended(rank))
			s.settle()
		}
	}
	return false
}

// restart is a life after a crash, in which the nodes' processes died as well.
func (s *site) restart(config perilog.Config) {
	var err error
	s.now++
	s.epilogs, s.cleaners = new(idset.Set), new(idset.Set)
	s.job, err = perilog.RecoverJob(s.now, config, s.spec, s.jobLog)
	require.NoError(s.t, err)
	s.hk, err = perilog.ReplayHousekeeping(s.hkLog, perilog.HousekeepingOptions{})
	require.NoError(s.t, err)
	for _, u := range s.job.Unresolved() {
		require.NoError(s.t, s.job.Rerun(s.now, u.Action))
	}
	if again := s.hk.Unresolved(); !again.IsEmpty() {
		_, err = s.hk.Start(s.now, perilog.Spec{Ranks: again})
		require.NoError(s.t, err)
	}
	// The scheduler says hello, and is told what is free by now.
	free := s.hk.Status(s.now).Free
	require.True(s.t, free.ContainsAll(s.freed), "what went back stays so")
	require.True(s.t, s.cleaned.ContainsAll(free))
	s.freed, s.over = free, s.hk.Done()
}

// Wherever the site crashes, and wherever it crashes once more after that, no
// rank goes back that is not clean, none twice, and all in the end.
func TestEpilogsAndHousekeepingFreeEachRankOnceWhereverACrashComes(t *testing.T) {
	r := hostsR(t, 3)
	config := perRank()
	config.Prologs = nil
	each := fsd.Duration(0)
	lives, crashes := 0, 0
	for first, more := 1, true; more; first++ {
		for second, again := 1, true; again; second++ {
			s := &site{
				t: t, spec: perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, R: r}}, now: 1, fuse: first,
				epilogs: new(idset.Set), cleaners: new(idset.Set), cleaned: new(idset.Set), freed: new(idset.Set),
			}
			var err error
			s.job, err = perilog.NewJob(config, s.spec)
			require.NoError(t, err)
			s.hk, err = perilog.NewHousekeeping(1, perilog.HousekeepingJob{Job: 1, R: r, ReleaseAfter: &each}, perilog.HousekeepingOptions{})
			require.NoError(t, err)
			more = s.run()
			again = false
			lives++
			if more {
				crashes++
				s.restart(config)
				s.fuse = second
				if again = s.run(); again {
					crashes++
					s.restart(config)
					s.fuse = 0
					require.False(t, s.run())
				}
			}
			require.Equal(t, "0-2", s.freed.String())
			require.True(t, s.over && s.hk.Done())
			require.True(t, s.job.MayFree())
			require.NoError(t, s.job.Check())
			require.NoError(t, s.hk.Check())
		}
	}
	t.Logf("%d histories, %d crashes", lives, crashes)
	require.Equal(t, 383, lives)
	require.Equal(t, 738, crashes)
}
