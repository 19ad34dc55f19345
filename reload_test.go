package joblife_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// A Reload reaches each live job, as a restart with that configuration does, whatever the
// job does at that moment (I5).
func TestAReloadAndARestartHaveTheSameActionsBegin(t *testing.T) {
	act := []perilog.ActionConfig{{PerRank: true}}
	all1 := perilog.Config{Prologs: act, Epilogs: act, Housekeeping: &perilog.HousekeepingConfig{}}
	for _, before := range []perilog.Config{{}, all1, {Prologs: act}, {Epilogs: act}} {
		for _, after := range []perilog.Config{{}, all1, {Epilogs: act}} {
			for n := range 12 { // after that many inputs
				t.Run(fmt.Sprintf("%d %d %t after %d inputs", len(before.Prologs), len(after.Epilogs), after.Housekeeping != nil, n), func(t *testing.T) {
					live := newReloading(t, before)
					restarts := newReloading(t, before)
					for range n {
						require.Equal(t, live.next(), restarts.next())
					}
					live.cfg.Actions, restarts.cfg.Actions = after, after
					live.step(joblife.Reload{Config: live.cfg})
					restarts.restart()
					m, err := joblife.Load(live.now, live.cfg, all(live.store))
					require.NoError(t, err)
					require.Equal(t, joblife.Describe(m), joblife.Describe(live.m))
					for range 20 {
						live.next()
						restarts.next()
					}
					require.Equal(t, jobstate.StateInactive, live.state(live.id))
					_, one, _ := strings.Cut(live.events(live.id), "alloc")
					_, other, _ := strings.Cut(restarts.events(live.id), "alloc")
					require.Equal(t, one, other)
					if before.Housekeeping == nil || after.Housekeeping != nil { // else only the live job knows the command
						require.Equal(t, live.kept(), restarts.kept(), "the log of housekeeping")
					}
				})
			}
		}
	}
}

// reloading is a site with one job, which does one thing after the other.
type reloading struct {
	*site
	id   jobid.ID
	said int // what the executor has said
	runs int // of site.runs, what has ended
}

func newReloading(t *testing.T, actions perilog.Config) *reloading {
	s := newSite(t, joblife.Config{Actions: actions}, 2)
	for _, name := range []string{"sched", "exec", "action", "pool"} {
		s.hold[name] = true
	}
	return &reloading{site: s, id: s.submit(jobspec.Job{Nodes: 1})}
}

// next does the next thing that is to do, and returns what.
func (r *reloading) next() string {
	r.t.Helper()
	if r.state(r.id) == jobstate.StateSched {
		r.step(success(r.t, r.id, 0))
		return "alloc"
	}
	if r.runs < len(r.site.runs) {
		l := r.site.runs[r.runs]
		r.runs++
		_ = r.try(joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Kind: perilog.ReportExited, Attempt: l.Attempt, Rank: 0}})
		return l.Action.String()
	}
	for u := range r.m.Unresolved() {
		if u.Reason == perilog.ReasonRemoved {
			r.step(joblife.ForceFinish{Action: joblife.Action{Job: u.Job, Key: u.Action, Ranks: u.Ranks}, Who: "root"})
			return "force"
		}
	}
	asked := false
	for _, msg := range r.exec {
		_, ok := msg.(exec.Start)
		asked = asked || ok
	}
	kinds := []exec.ResponseType{exec.ResponseStart, exec.ResponseFinish, exec.ResponseRelease}
	if !asked || r.said == len(kinds) {
		return ""
	}
	r.said++
	r.step(said(r.id, kinds[r.said-1]))
	return fmt.Sprint(kinds[r.said-1])
}

// kept returns the names in the log of housekeeping.
func (r *reloading) kept() (names []string) {
	for _, rec := range r.store {
		if rec.Kind == joblife.RecordHousekeeping {
			e, err := eventlog.Parse(rec.Data)
			require.NoError(r.t, err)
			names = append(names, e.Name)
		}
	}
	return names
}
