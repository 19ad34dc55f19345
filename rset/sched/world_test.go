package sched_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// judged is a scheduler as joblifetest.RunScheduler drives it.
type judged struct {
	*sched.Scheduler
	t      *rapid.T
	cfg    sched.Config
	nodes  *rset.R
	starts map[jobid.ID]eventlog.Timestamp // that jobs which wait were told
}

func (j *judged) Hello(a alloc.Announcement) error {
	if j.starts = make(map[jobid.ID]eventlog.Timestamp); j.Scheduler == nil {
		j.Scheduler = sched.New(j.cfg)
		require.NoError(j.t, j.Acquire(pool.Acquire{Resources: j.nodes, Change: pool.Change{Up: j.nodes.Ranks()}}))
	}
	return errors.Join(j.Scheduler.Hello(a), j.Check())
}

func (j *judged) Update(c pool.Change) error { return j.Acquire(pool.Acquire{Change: c}) }

func (j *judged) Handle(m alloc.Message) error {
	err := j.Scheduler.Handle(m)
	return errors.Join(err, j.Check())
}

// Decide also checks annotations, which the world does not judge.
func (j *judged) Decide(now eventlog.Timestamp) []alloc.Response {
	list := j.Scheduler.Decide(now)
	require.NoError(j.t, j.Check())
	require.Empty(j.t, j.Scheduler.Decide(now), "nothing has changed")
	for _, a := range list {
		var m struct {
			Sched struct {
				Start  *eventlog.Timestamp `json:"t_estimate"`
				Behind string              `json:"backfill"`
			}
		}
		if a.Annotations == nil {
			require.False(j.t, j.cfg.Annotate && a.Type <= alloc.ResponseAnnotate)
			delete(j.starts, a.ID)
			continue
		}
		require.True(j.t, j.cfg.Annotate)
		require.NoError(j.t, json.Unmarshal(a.Annotations, &m))
		_, told := j.starts[a.ID]
		delete(j.starts, a.ID)
		switch {
		case a.Type == alloc.ResponseSuccess:
			require.Equal(j.t, told, bytes.Contains(a.Annotations, []byte(`"t_estimate":null`)), "an estimate is taken back")
			require.Equal(j.t, strings.Contains(string(a.Annotations), "backfill"), m.Sched.Behind != "")
		case m.Sched.Start != nil:
			j.starts[a.ID] = *m.Sched.Start
		}
		if _, ok := j.cfg.Policy.(sched.EASY); ok {
			require.LessOrEqual(j.t, len(j.starts), 1, "the head before is told first")
		}
	}
	waiting := make(map[jobid.ID]bool)
	for w := range j.Jobs() {
		waiting[w.ID] = true
	}
	for id, at := range j.starts {
		require.True(j.t, waiting[id], "only jobs that wait have an estimate")
		require.Positive(j.t, at)
	}
	most := 8
	if _, ok := j.cfg.Policy.(sched.EASY); ok {
		most = 1
	}
	require.LessOrEqual(j.t, len(j.starts), most)
	return list
}

// The world finds nothing wrong with any policy.
func TestTheWorldIsContent(t *testing.T) {
	configs := []sched.Config{
		{Policy: sched.FIFO{}, Annotate: true, Forecast: time.Second},
		{Policy: sched.EASY{}, Annotate: true}, {Policy: sched.EASY{Depth: 1}, Fit: pool.FitWorst},
		{Policy: sched.Conservative{}, Annotate: true},
		{Policy: definition{reserves: 1}, Annotate: true},
	}
	for range map[bool]int{false: 1, true: 20}[os.Getenv("JOBLIFE_DEEP") != ""] {
		rapid.Check(t, func(t *rapid.T) {
			cfg := configs[rapid.IntRange(0, len(configs)-1).Draw(t, "config")]
			joblifetest.RunScheduler(t, func(nodes *rset.R) joblifetest.Scheduler {
				return &judged{t: t, cfg: cfg, nodes: nodes}
			}, joblifetest.SchedulerConfig{})
		})
	}
}
