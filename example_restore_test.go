package joblife_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/purge"
)

// recordsOf returns what a dump archive of a Flux instance has, as records for Restore.
func recordsOf(r io.Reader) (list []joblife.Record, a *archive.Archive, err error) {
	a, err = archive.Walk(r, archive.Limits{}, func(j archive.Job) error {
		list = append(list, joblife.Record{Job: j.ID, Kind: joblife.RecordJobspec, Data: j.Jobspec})
		if j.R != nil {
			list = append(list, joblife.Record{Job: j.ID, Kind: joblife.RecordR, Data: j.R})
		}
		for line := range bytes.Lines(j.Eventlog) {
			list = append(list, joblife.Record{Job: j.ID, Kind: joblife.RecordEvent, Data: line})
		}
		return nil
	})
	if id, ok := a.MaxID(); ok {
		list = append(list, joblife.Record{Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, id)})
	}
	return list, a, err
}

// dump returns an archive of jobs: the bodies of their logs, from ƒuZZybuNNy on.
func dump(spec string, logs ...string) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(name, text string) {
		_ = w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600})
		_, _ = io.WriteString(w, text)
	}
	put("checkpoint/job-manager", `{"max_jobid":6731191091817600}`)
	for i, names := range logs {
		dir := strings.ReplaceAll((6731191091817518 + jobid.ID(i)).KVSPath(), ".", "/")
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
	records, _, err := recordsOf(dump(string(text),
		"submit validate depend priority",
		"submit validate depend priority alloc start",
		"submit validate depend priority clean",
		"submit validate exception clean",
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	m, left, err := joblife.Restore(time.Unix(1_700_000_000, 0), joblife.Config{}, func(yield func(joblife.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("jobs", left.Jobs, "running", left.Running, "inactive", m.Stats().States[jobstate.StateInactive])
	for _, q := range left.Quarantined {
		fmt.Println(q.Job, q.Err)
	}
	var rd joblife.Ready
	fmt.Println("something to do before a hello:", m.Ready(&rd))
	fmt.Println(m.Step(time.Unix(1_700_000_001, 0), joblife.Submit{ID: 6731191091817599, Jobspec: text}))
	// Output:
	// jobs [ƒuZZybuNNy ƒuZZybuNNz] running [ƒuZZybuNNz] inactive 1
	// ƒuZZybuNP1 jobstate: job ƒuZZybuNP1: line 5: offset 260: "clean" in SCHED: event is not legal in this state
	// something to do before a hello: false
	// joblife: invalid request: id ƒuZZybuNQN may have been given before: ids up to ƒuZZybuNQP are not given again
}
