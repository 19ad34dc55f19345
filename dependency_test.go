package joblife_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
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
