package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
)

// A node fails between its own prolog and that of the other node of the job.
func TestAJobDoesNotRunOnANodeThatFailedSinceItsProlog(t *testing.T) {
	o, err := parse(strings.Fields("-nodes 2 -prolog 1000 -epilog 0 -trim 0 -html= -mtbf 30000d -repair 30d"), io.Discard)
	require.NoError(t, err)
	c, err := newCluster(o, []arrival{{run: 500, limit: 500, size: 2}}, partialRelease, 1)
	require.NoError(t, err)
	takes := slices.Clone(c.takes(1, jobstate.ActionProlog, 2))
	require.Greater(t, max(takes[0], takes[1])-min(takes[0], takes[1]), seconds(1))
	c.after(slices.Min(takes)+1, func() { c.failed(uint32(slices.Index(takes, slices.Min(takes)))) })
	require.NoError(t, c.play(context.Background(), func(int) {}))
	require.Equal(t, jobstate.ResultFailed, c.jobs[1].result)
	require.Equal(t, c.jobs[1].began, c.jobs[1].ended)
}

// A node fails while it is out of service: its repair begins anew.
func TestTheRepairOfANodeThatFailsWhileItIsDrained(t *testing.T) {
	o, err := parse(strings.Fields("-nodes 4 -max-size 1 -repair 1000 -mtbf 36500d -html="), io.Discard)
	require.NoError(t, err)
	c, err := newCluster(o, []arrival{{run: 5000, limit: 5000, size: 1}}, wholeJob, 1)
	require.NoError(t, err)
	c.drain(idset.Of(2, 3))
	c.after(900, func() { c.failed(3) })
	for now, down := range map[seconds]string{999: "2-3", 1000: "3", 1899: "3", 1900: ""} {
		c.after(now, func() { c.after(0, func() { require.Equal(t, down, idset.Union(c.offline, c.drained).String(), now) }) })
	}
	require.NoError(t, c.play(context.Background(), func(int) {}))
}
