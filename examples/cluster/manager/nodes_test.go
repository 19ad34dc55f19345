package manager

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/rset"
)

// One goroutine sees a node go, and another that it has come back. Whoever notes it last, the
// node is there.
func TestALateWordOfANodeChangesNothing(t *testing.T) {
	m, err := joblife.New(joblife.Config{Epoch: time.Unix(1_700_000_000, 0)})
	require.NoError(t, err)
	l, err := loop.New(m, loop.Config{Store: new(Local), Effects: func(*joblife.Manager, *joblife.Ready) {}, Refused: func(joblife.Input, error) {}})
	require.NoError(t, err)
	nodes, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(0), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	a := &manager{Config: Config{Nodes: nodes, Log: slog.Default()}, Loop: l, links: map[uint32]*link{0: {up: true}}, out: idset.Of(0), lost: idset.Of(0)}
	a.end = func(err error) { t.Error(err) }
	a.change(0)
	a.change(0)
	require.True(t, a.out.IsEmpty())
	require.True(t, a.lost.IsEmpty())
	a.links[0].up = false
	a.change(0)
	require.Equal(t, "0", a.out.String())
}
