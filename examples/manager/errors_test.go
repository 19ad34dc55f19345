package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errpage"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/boltstore"
)

// file has a file of that name.
func file(name, text string) func(*testing.T) {
	return func(t *testing.T) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
}

// stored has a store of the kind, with job 1, which change damages.
func stored(store string, change func(t *testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		status, _, stderr := prog.Run(strings.NewReader(submit(1, 1)), "-now=1", "-store="+store)
		require.Zero(t, status, stderr)
		change(t)
	}
}

func TestErrorsAreLessons(t *testing.T) {
	cut := func(name string, size int64) func(*testing.T) {
		return func(t *testing.T) { require.NoError(t, os.Truncate(name, size)) }
	}
	eventlog := filepath.Join("d/jobs", jobid.ID(1).KVSPath(), "eventlog")
	open := func(t *testing.T) {
		s, err := boltstore.Open("jobs.db")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	listen := func(t *testing.T) {
		l, err := net.Listen("unix", "s")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
	}
	noFlux := func(t *testing.T) { t.Setenv("FLUX_URI", "") }
	errpage.Page{
		Name: "manager", Run: prog.Run, Sources: []string{"."},
		Elsewhere: map[string][]string{
			"flux_test.go and keeper_test.go, on the other side of a broker": {
				"this is the broker of rank %s: a job manager belongs on rank 0", "the instance has a job manager: remove its module first (%w)",
				"the module is %s: name it %s, by --name or in os.execv", "the manager ended before it served requests: %w",
				"the manager ended %d times in less than %v: %w", "manager: the worker has ended (%v), and another one begins\n", "status 0",
				"manager: the worker does not read:", "manager: error: the worker hangs: it said nothing for %v\n",
				"manager: error: the configuration stays as it was:", "manager: warning: flux-core %s: this was made for 0.88, and may run no epilogs\n",
				"manager: error: process %d on rank %d does not end, and its rerun may run beside it\n",
			},
			"kvs_test.go: what a peer may have in its KVS": {
				"want a value, and not the type %.64q", "want a folder, and not the type %.64q", "version %d is not known", "nothing is at %s",
				"job %v has no eventlog: it was not submitted to its end", "%.256s is the key of no job", "the expiration of the instance is not known: %v",
				"-store: put job %v aside: %w", "-store: the client that has the KVS is gone, and no other can know what is in it: start again when it is back",
			},
			"store_test.go: a damaged job that holds nodes": {"job %v keeps %v: look after its nodes first"},
			"session_test.go and attack_test.go: clients that misbehave": {
				"this is from somebody else than the one who was asked", "the store is not read yet", "too many requests while the store is busy",
			},
			"linestest: streams that break": {"line %d: input: %w", "output: %w"},
		},
		Cases: []errpage.Case{
			{When: "a flag that is not there", Args: "-stor=memory", Status: 2},
			{When: "a file without <", Args: "input.txt", Status: 2},
			{When: "a store that is not there", Args: "-store=tape", Status: 2},
			{When: "a store without its file", Args: "-store=bolt:", Status: 2},
			{When: "no user", Args: "-owner=root", Status: 2},
			{When: "no job", Args: "-put-aside=job", Status: 2},
			{When: "no way to go on", Args: "-lost=found", Status: 2},
			{When: "no time", Args: "-now=today", Status: 2},
			{When: "two inputs", Args: "-sample -listen=unix:s", Status: 2},
			{When: "a configuration that is not there", Args: "-config=none.toml", Status: 1},
			{When: "a configuration that is a folder", Args: "-config=.", Status: 1},
			{When: "a configuration that is no TOML", Args: "-config=x.toml", Prepare: file("x.toml", "[policy\n"), Status: 1},
			{When: "a configuration that is no JSON", Args: "-config=x.conf", Prepare: file("x.conf", "{policy}\n"), Status: 1},
			{When: "a configuration with an unknown queue", Args: "-config=x.toml", Prepare: file("x.toml", "[policy.jobspec.defaults.system]\nqueue = \"none\"\n"), Status: 1},
			{When: "a configuration with a limit that is none", Args: "-config=x.toml", Prepare: file("x.toml", "[policy.limits]\nduration = \"soon\"\n"), Status: 1},
			{When: "too long a configuration", Args: "-config=x.toml", Prepare: file("x.toml", strings.Repeat("#", maxConfig+1)), Status: 1},
			{When: "a socket that is in use", Args: "-listen=unix:s", Prepare: listen, Status: 1},
			{When: "no Flux", Args: "-flux", Prepare: noFlux, Status: 1},
			{When: "an instance that is not there", Args: "-flux=local://s", Status: 1},
			{When: "a store that is in use", Args: "-store=bolt:jobs.db", Prepare: open, Status: 1},
			{When: "a store that is a text", Args: "-store=bolt:x", Prepare: file("x", "{}\n"), Status: 1},
			{When: "a store that is a folder", Args: "-store=bolt:.", Status: 1},
			{When: "a folder that is a file", Args: "-store=dir:x", Prepare: file("x", ""), Status: 1},
			{When: "a store in a folder that is not there", Args: "-store=bolt:none/jobs.db", Status: 1},
			{When: "a store of plain files whose last line was cut", Args: "-now=1 -store=dir:d", Prepare: stored("dir:d", cut("d/records", 10))},
			{When: "a store of plain files whose records are no records", Args: "-now=1 -store=dir:d", Prepare: stored("dir:d", file("d/records", "x\nx\n")), Status: 1},
			{When: "a job whose log was cut", Args: "-now=1 -store=dir:d", Prepare: stored("dir:d", cut(eventlog, 10))},
			{When: "the same, put aside", Args: "-now=1 -store=dir:d -put-aside=1", Prepare: stored("dir:d", cut(eventlog, 10))},
			{When: "a job that is whole, put aside", Args: "-now=1 -store=dir:d -put-aside=1", Prepare: stored("dir:d", func(*testing.T) {})},
			{When: "a line that is no JSON", Args: "-now=1", Stdin: "{\n", Status: 1},
			{When: "a line without a topic", Args: "-now=1", Stdin: "{}\n", Status: 1},
			{When: "a line that is no text", Args: "-now=1", Stdin: "{\"topic\":\"\xff\"}\n", Status: 1},
			{When: "a line of the past", Args: "-now=1", Stdin: `{"topic":"job-manager.raise","time":-1}` + "\n", Status: 1},
			{When: "an answer to no call", Args: "-now=1", Stdin: `{"topic":"kvs.commit","matchtag":3}` + "\n", Status: 1},
			{When: "an error of the peer", Args: "-now=1", Stdin: `{"topic":"job-manager.error","errnum":22,"errstr":"no"}` + "\n", Status: 1},
			{When: "a peer that fails to commit", Args: "-now=1 -store=lines", Stdin: `{"topic":"kvs.lookup","matchtag":1,"errnum":1,"errstr":"no"}` + "\n", Status: 1},
			{When: "a peer with a broken KVS", Args: "-now=1 -store=lines", Stdin: `{"topic":"kvs.lookup","matchtag":1,"payload":{"val":{"ver":2}}}` + "\n", Status: 1},
			{When: "a peer that goes", Args: "-now=1 -store=lines", Status: 1},
		},
	}.Check(t, *update)
}
