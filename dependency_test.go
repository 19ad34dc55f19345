package joblife_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

func TestADependencyThatWasRemovedByHandDoesNotEndTheJob(t *testing.T) {
	for _, test := range []struct {
		by, waits string
		want      jobstate.State
	}{
		{"remove", "", jobstate.StateRun},
		{"remove", "begin-time", jobstate.StateDepend},
		{"depend", "", jobstate.StateRun},
	} {
		for _, restart := range []bool{false, true} {
			s := depending(t)
			first := s.add(needing("a"))
			deps := []string{"afterok", first.String()}
			if test.waits != "" {
				deps = append(deps, test.waits, fmt.Sprint(s.now.Add(time.Hour).Unix()))
			}
			second := s.add(needing("b", deps...))
			if test.by == "remove" {
				s.step(joblife.DependencyRemove{ID: second, Description: "after-success=" + first.String()})
			} else {
				s.step(joblife.Post{ID: second, Name: jobstate.EventDepend})
			}
			if restart {
				s.restartDepending()
			}
			s.finish(first, 256)
			require.Equal(t, test.want, s.state(second), "%v, restarted: %v: %s", test, restart, s.events(second))
			require.Empty(t, s.faults())
		}
	}
}

func TestASatisfiedDependencyIsNotAskedForAgainAfterARestart(t *testing.T) {
	for _, scheme := range []string{"afterok", "after"} {
		s := newSite(t, joblife.Config{TombstoneCount: jobstate.Some(0), Hooks: []joblife.Hooks{joblife.Dependencies()}}, 8)
		s.hold["finish"] = true
		first, at := s.add(needing("a")), s.now.Add(time.Hour)
		second := s.add(needing("b", scheme, first.String(), "begin-time", fmt.Sprint(at.Unix())))
		s.finish(first, 0)
		require.NoError(t, s.ask(joblife.PurgeIDs{Tag: 7, IDs: []jobid.ID{first}, Force: true}).Err)
		s.restartDepending()
		require.Equal(t, jobstate.StateDepend, s.state(second), s.events(second))
		s.now = at
		s.step(joblife.Tick{})
		require.Equal(t, jobstate.StateRun, s.state(second))
	}
}
