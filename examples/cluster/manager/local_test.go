package manager

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A clock that was set back begins no earlier epoch, which nodes would ignore.
func TestALocalEpochGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	var before uint64
	for _, now := range []time.Duration{time.Hour, 0, 2 * time.Hour, time.Hour} {
		l, err := OpenLocal(path)
		require.NoError(t, err)
		epoch, err := l.Epoch(t.Context(), time.Unix(1_700_000_000, 0).Add(now))
		require.NoError(t, err)
		require.Greater(t, epoch, before)
		before = epoch
		require.NoError(t, l.Close())
	}
}

// A manager that is asked to end between two lives begins no other: that reads all of the records.
func TestNoLifeBeginsAfterTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	l, err := OpenLocal(path)
	require.NoError(t, err)
	defer l.Close()
	ctx, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, Run(ctx, Config{Local: l}))
	require.NoFileExists(t, path+".epoch")
}
