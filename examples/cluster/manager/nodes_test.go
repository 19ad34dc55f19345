package manager

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/sched"
)

// While the store of drains is away, nodes come and go, and the manager tells of them.
func TestADrainThatIsBeingStoredKeepsNobodyWaiting(t *testing.T) {
	a, away := idle(t), make(absent)
	a.keys = away
	done := make(chan error)
	go func() { done <- a.drained(idset.Of(0), "bad", 0) }()
	<-away
	require.NoError(t, a.Do(func(*joblife.Manager) func() {
		a.change(idset.Of(0), true)
		return nil
	}))
	require.NoError(t, a.Advance(time.Unix(1_700_000_000, 0)))
	require.True(t, a.out.IsEmpty())
	require.True(t, a.lost.IsEmpty())
	require.Zero(t, a.status(a.m).Drained)
	<-away
	require.NoError(t, <-done)
	require.Equal(t, uint64(1), a.status(a.m).Drained)
}

// A node is not down because the Loop had no time to hear it.
func TestANodeThatTheLoopKeptWaitingIsNotDown(t *testing.T) {
	a := idle(t)
	for _, down := range []bool{false, true} {
		if a.waited = time.Now(); down {
			a.waited = a.waited.Add(-2 * time.Hour)
		}
		a.DownTime = time.Hour
		require.NoError(t, a.Do(func(*joblife.Manager) func() {
			a.part(new(exec.Executor))
			return nil
		}))
		require.NoError(t, a.Advance(time.Unix(1_700_000_000, 0)))
		require.Equal(t, !down, a.links[0].up)
	}
}

// An absent store waits for two reads of it before it has a key.
type absent chan struct{}

func (c absent) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, nil }
func (c absent) Update(context.Context, string, []byte, uint64) (uint64, error) {
	c <- struct{}{}
	c <- struct{}{}
	return 1, nil
}

// An idler is a manager of one node that does nothing but what a test does.
type idler struct {
	*manager
	m *joblife.Manager
}

func idle(t *testing.T) idler {
	m, err := joblife.New(joblife.Config{Epoch: time.Unix(1_700_000_000, 0)})
	require.NoError(t, err)
	l, err := loop.New(m, loop.Config{Store: new(Local), Effects: func(*joblife.Manager, *joblife.Ready) {}, Refused: func(joblife.Input, error) {}})
	require.NoError(t, err)
	nodes, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(0), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	a := &manager{Config: Config{Nodes: nodes, Log: slog.Default(), Engine: new(engine.Engine)}, Loop: l, links: map[uint32]*link{0: {up: true}}, out: idset.Of(0), lost: idset.Of(0)}
	a.end, a.last = func(err error) { t.Error(err) }, func() uint64 { return 0 }
	a.sched = &scheduler{Scheduler: sched.New(sched.Config{}), a: a}
	require.NoError(t, a.acquire())
	return idler{a, m}
}
