package joblife_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/purge"
)

// recordsOf yields what a dump archive of a Flux instance has, as records for Restore.
func recordsOf(a *archive.Archive) iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		if id, ok := a.MaxID(); ok && !yield(joblife.Record{
			Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, id),
		}, nil) {
			return
		}
		for _, j := range a.Jobs {
			list := []joblife.Record{{Job: j.ID, Kind: joblife.RecordJobspec, Data: j.Jobspec}}
			if j.R != nil {
				list = append(list, joblife.Record{Job: j.ID, Kind: joblife.RecordR, Data: j.R})
			}
			for line := range bytes.Lines(j.Eventlog) {
				list = append(list, joblife.Record{Job: j.ID, Kind: joblife.RecordEvent, Data: line})
			}
			for _, r := range list {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// dump returns an archive of jobs: the bodies of their logs, from id 1 on.
func dump(spec string, logs ...string) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(name, text string) {
		_ = w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600})
		_, _ = io.WriteString(w, text)
	}
	put("checkpoint/job-manager", `{"max_jobid":1000}`)
	for i, names := range logs {
		dir := strings.ReplaceAll(jobid.ID(i+1).KVSPath(), ".", "/")
		var log strings.Builder
		for n, name := range strings.Fields(names) {
			context := map[string]string{
				"submit":    `,"context":{"userid":5,"urgency":16,"flags":0,"version":1}`,
				"priority":  `,"context":{"priority":16}`,
				"exception": `,"context":{"type":"cancel","severity":0,"note":""}`,
			}[name]
			fmt.Fprintf(&log, "{\"timestamp\":%d.5,\"name\":%q%s}\n", 1_600_000_000+n, name, context)
		}
		put(dir+"/eventlog", log.String())
		put(dir+"/jobspec", spec)
		put(dir+"/R", `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["a"],"starttime":0,"expiration":0}}`)
	}
	_ = w.Close()
	return &b
}

// A Manager takes over the jobs of a Flux instance from its dump.
func ExampleRestore() {
	spec, _ := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"true"}})
	text, _ := spec.MarshalJSON()
	a, err := archive.Read(dump(string(text),
		"submit validate depend priority",
		"submit validate depend priority alloc start",
		"submit validate depend priority clean",
		"submit validate exception clean",
	), archive.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, left, err := joblife.Restore(time.Unix(1_700_000_000, 0), joblife.Config{}, recordsOf(a))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("jobs", left.Jobs, "running", left.Running, "inactive", m.Stats().States[jobstate.StateInactive])
	for _, q := range left.Quarantined {
		fmt.Println(q.Job, q.Err)
	}
	var rd joblife.Ready
	m.Ready(&rd)
	for _, r := range rd.Append {
		fmt.Printf("%v %s", r.Job, r.Data)
	}
	_ = m.Done(rd.Seq)
	fmt.Println(m.Step(time.Unix(1_700_000_001, 0), joblife.Submit{ID: 999, Jobspec: text}))
	// Output:
	// jobs [ƒ2 ƒ3] running [ƒ3] inactive 1
	// ƒ4 jobstate: job ƒ4: line 5: offset 260: "clean" in SCHED: event is not legal in this state
	// ƒ2 {"timestamp":1700000000.0,"name":"flux-restart"}
	// ƒ2 {"timestamp":1700000000.0,"name":"priority","context":{"priority":16}}
	// joblife: invalid request: id ƒJE was given before
}

// EL-4, SM-5: what an instance has dumped goes on, or is listed.
func TestAManagerTakesOverTheDumpsOfFlux(t *testing.T) {
	const good, bad = 7, 5
	names, err := filepath.Glob(filepath.Join(filepath.Dir(refdata.Path(t, "dumps/dump-0-40-0.tar.bz2")), "dump-*.tar.bz2"))
	require.NoError(t, err)
	require.Len(t, names, good+bad)
	jobs, failures := 0, 0
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := os.Open(name)
			require.NoError(t, err)
			defer f.Close()
			a, err := archive.Read(f, archive.Limits{})
			require.NoError(t, err)
			jobs, failures = jobs+len(a.Jobs), failures+len(a.Failures)
			s := newSite(t, joblife.Config{Queues: []string{"batch", "debug"}}, 8)
			s.now = time.Unix(1_800_000_000, 0)
			for r, err := range recordsOf(a) {
				require.NoError(t, err)
				s.store = append(s.store, r)
			}
			s.restart()
			require.Empty(t, s.rec.Quarantined)
			require.Equal(t, len(a.Jobs), s.inactive())
			id := s.submit(jobspec.Job{Nodes: 1, Queue: "debug"})
			last, _ := a.MaxID()
			require.Greater(t, id, last, "I9")
			require.Equal(t, jobstate.StateInactive, s.state(id))
			s.restore(slices.Collect(s.m.Snapshot()))
			require.Equal(t, len(a.Jobs)+1, s.inactive())
			s.step(joblife.Purge{Limits: purge.PurgeAll(), Force: true})
			require.Zero(t, s.inactive())
		})
	}
	require.Equal(t, []int{good, bad}, []int{jobs, failures})
}
