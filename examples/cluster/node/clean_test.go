package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
)

// quiet runs nothing. Who asks it for a task holds no lock of the node.
type quiet struct {
	t  *testing.T
	mu *sync.Mutex
}

func (quiet) List() []exec.TaskStatus         { return nil }
func (quiet) Do(exec.Command, []string) error { return nil }

func (q quiet) Last(exec.Task) (exec.TaskStatus, bool) {
	require.True(q.t, q.mu.TryLock(), "a beat waits")
	q.mu.Unlock()
	return exec.TaskStatus{}, false
}

// A node keeps the output of a job for a day after its task was forgotten, however long before
// that it was written, and then removes it.
func TestOutputIsKeptForADay(t *testing.T) {
	n := &node{Config: Config{Dir: t.TempDir(), Log: slog.Default()}, jobs: make(map[jobid.ID]*wire.Job)}
	n.runner = quiet{t, &n.mu}
	require.NoError(t, os.MkdirAll(filepath.Join(n.Dir, "output"), 0o700))
	for id, age := range map[jobid.ID]time.Duration{1: KeepOutput - time.Minute, 2: KeepOutput + time.Minute, 3: 2 * KeepOutput} {
		require.NoError(t, n.note(id, &wire.Job{UserID: 7}))
		for _, suffix := range []string{".job", ".out"} {
			require.NoError(t, os.WriteFile(n.path(id, suffix), []byte(`{"userid":7}`), 0o600))
			require.NoError(t, os.Chtimes(n.path(id, suffix), time.Time{}, time.Now().Add(-age)))
		}
	}
	require.NoError(t, n.obeyOne(wire.Order{Kind: exec.CommandForget, Task: exec.Task{Job: 3}}))
	n.clean()
	require.Contains(t, n.jobs, jobid.ID(1))
	require.Contains(t, n.jobs, jobid.ID(3))
	require.NotContains(t, n.jobs, jobid.ID(2))
	names, err := filepath.Glob(n.path(2, "*"))
	require.NoError(t, err)
	require.Empty(t, names)
}

// Output is removed though it is not known whose it is, such as after a loss of power, and until then
// the owner reads it.
func TestOutputOfNobodyIsNotKeptForEver(t *testing.T) {
	n := &node{Config: Config{Dir: t.TempDir(), Log: slog.Default(), Owner: 1000}, jobs: make(map[jobid.ID]*wire.Job)}
	n.runner = quiet{t, &n.mu}
	require.NoError(t, os.MkdirAll(filepath.Join(n.Dir, "output"), 0o700))
	require.NoError(t, os.WriteFile(n.path(1, ".job"), nil, 0o600))
	require.NoError(t, os.WriteFile(n.path(1, ".out"), []byte("x"), 0o600))
	require.NoError(t, n.readJobs())
	_, err := n.read(7, []byte(`{"id":1}`))
	require.Error(t, err)
	out, err := n.read(1000, []byte(`{"id":1}`))
	require.NoError(t, err)
	require.Equal(t, "x", string(out.Data))
	require.NoError(t, os.Chtimes(n.path(1, ".job"), time.Time{}, time.Now().Add(-2*KeepOutput)))
	n.clean()
	names, err := filepath.Glob(n.path(1, "*"))
	require.NoError(t, err)
	require.Empty(t, names)
}

// The output of a job is for its user and for the owner of the instance.
func TestTheOwnerReadsTheOutputOfAGuest(t *testing.T) {
	n := &node{Config: Config{Dir: t.TempDir(), Owner: 1000}, jobs: map[jobid.ID]*wire.Job{1: {UserID: 7}}}
	n.runner = quiet{t, &n.mu}
	require.NoError(t, os.MkdirAll(filepath.Join(n.Dir, "output"), 0o700))
	require.NoError(t, os.WriteFile(n.path(1, ".out"), []byte("hi"), 0o600))
	for uid, ok := range map[uint32]bool{7: true, 1000: true, 8: false, 0: false} {
		out, err := n.read(uid, []byte(`{"id":1}`))
		require.Equal(t, ok, err == nil && string(out.Data) == "hi", "user %d: %v", uid, err)
	}
	_, err := n.read(1000, []byte(`{"id":2}`))
	require.Error(t, err)
}
