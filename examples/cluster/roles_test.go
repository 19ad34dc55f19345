package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/internal/proctest"
)

// Another user may have put its own keys into a folder that others can make or write. Only a user's
// command goes by what it finds there, and only if somebody has named the folder.
func TestAFolderOfOthersIsRefused(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("CLUSTER_DIR", "")
	dir, other := usual(), filepath.Join(t.TempDir(), "other")
	for _, name := range []string{dir, other} {
		status, _, stderr := execute("init", "-dir", name, "-nodes=1")
		require.Zero(t, status, stderr)
		require.NoError(t, os.Chmod(name, 0o777))
	}
	refused := func(want string) {
		for _, args := range [][]string{{"sched"}, {"sched", "-dir", dir + "/"}, {"up"}, {"up", "-dir", other}, {"user", "add", "7"}, {"jobs"}} {
			status, _, stderr := execute(args...)
			require.Equal(t, 1, status, args)
			require.Contains(t, stderr, want, args)
		}
		_, _, stderr := execute("sched", "-dir", other)
		require.Contains(t, stderr, "the active manager schedules")
	}
	refused("others may write")
	if os.Geteuid() != 0 {
		t.Skip("only root gives folders away")
	}
	for _, name := range []string{dir, other} {
		require.NoError(t, os.Chmod(name, 0o700))
		require.NoError(t, os.Chown(name, 65534, 65534))
	}
	refused("belongs to user 65534")
}

// The file of an instance is written whole or not at all: nobody sees half of it.
func TestTheFileOfAnInstanceIsReplacedWhole(t *testing.T) {
	p := &program{dir: t.TempDir()}
	p.URL = "a"
	require.NoError(t, p.write())
	old := filepath.Join(p.dir, "old")
	require.NoError(t, os.Link(p.path(), old))
	p.URL = "b"
	require.NoError(t, p.write())
	for name, want := range map[string]string{old: "a", p.path(): "b"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Contains(t, string(text), `"url": "`+want+`"`)
	}
}

// The records are where -store says: below the folder, unless it is an absolute path.
func TestAStoreMayBeElsewhere(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for file, name := range map[string]string{"jobs.db": dir + "/a/jobs.db", other + "/jobs.db": other + "/jobs.db"} {
		status, _, stderr := execute("init", "-dir", dir+"/a", "-nodes=1", "-store=bbolt:"+file)
		require.Zero(t, status, stderr)
		require.NoError(t, os.WriteFile(name, []byte("{}\n"), 0o600))
		status, _, stderr = execute("manager", "-dir", dir+"/a")
		require.Equal(t, 1, status)
		require.Contains(t, stderr, name+": damaged")
		require.NoError(t, os.RemoveAll(dir+"/a"))
	}
}

// A role that no server serves, since none is there or it trusts other keys, says why and tries on
// until it is asked to end.
func TestARoleThatNoServerServesSaysWhy(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"/a", "/b"} {
		status, _, stderr := execute("init", "-dir", dir+name, "-nodes=1", "-nats=nats://127.0.0.1:1")
		require.Zero(t, status, stderr)
	}
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: dir}, dir+"/b/keys")
	require.NoError(t, err)
	defer s.Shutdown()
	for url, want := range map[string]string{"nats://127.0.0.1:1": "connection refused", s.ClientURL(): "Authorization Violation"} {
		for _, role := range [][]string{{"manager"}, {"node", "0"}} {
			log := t.TempDir() + "/log"
			cmd := proctest.Start(t, log, append([]string{role[0], "-dir", dir + "/a", "-nats", url}, role[1:]...)...)
			proctest.Await(t, log, want, 1)
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			require.NoError(t, cmd.Wait())
		}
	}
}

// A manager that is asked to end has no fault: systemd takes another status for one.
func TestAManagerThatIsAskedToEndHasNoFault(t *testing.T) {
	dir := t.TempDir()
	status, _, stderr := execute("init", "-dir", dir+"/a", "-nodes=1", "-store=bbolt:jobs.db")
	require.Zero(t, status, stderr)
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: dir}, dir+"/a/keys")
	require.NoError(t, err)
	defer s.Shutdown()
	cmd := proctest.Start(t, dir+"/log", "manager", "-dir", dir+"/a", "-nats", s.ClientURL())
	proctest.Await(t, dir+"/log", "active", 1)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	said, err := os.ReadFile(dir + "/log")
	require.NoError(t, err)
	require.NotContains(t, string(said), "ERROR")
}

// Readers of one folder have one token, though they begin at once.
func TestReadersThatBeginAtOnceHaveOneToken(t *testing.T) {
	for range 20 {
		p := &program{dir: t.TempDir()}
		tokens := make(chan string, 8)
		for range cap(tokens) {
			go func() {
				token, _ := p.token()
				tokens <- token
			}()
		}
		want := <-tokens
		require.NotEmpty(t, want)
		for range cap(tokens) - 1 {
			require.Equal(t, want, <-tokens)
		}
	}
}
