package archive_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"

	"github.com/joblife/joblife/jobstate/archive"
)

// exampleDump is a small archive: a good job and one without a jobspec.
func exampleDump() io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range [][2]string{
		{"checkpoint/job-manager", `{"max_jobid": 8069840896}`},
		{"job/0000/0001/ce00/0000/eventlog", `{"timestamp":1657302164.7,"name":"submit","context":{"userid":5588,"urgency":16,"flags":0}}` + "\n"},
		{"job/0000/0001/e100/0000/eventlog", `{"timestamp":1657302164.7,"name":"submit","context":{"userid":5588,"urgency":16,"flags":0}}` + "\n"},
		{"job/0000/0001/e100/0000/jobspec", `{"version":1}`},
	} {
		_ = w.WriteHeader(&tar.Header{Name: e[0], Size: int64(len(e[1])), Mode: 0o600})
		_, _ = io.WriteString(w, e[1])
	}
	_ = w.Close()
	return &b
}

func Example() {
	// An upload of a few megabytes has no more than that. The zero Limits suit a dump of one's own.
	limits := archive.Limits{Bytes: 1 << 30, HeldBytes: 1 << 20, FileBytes: 1 << 20, Entries: 1000, Ratio: 16}
	a, err := archive.Walk(exampleDump(), limits, func(j archive.Job) error {
		fmt.Printf("%d: %d bytes of log, jobspec %s, allocated %t, ran %t\n", j.ID, len(j.Eventlog), j.Jobspec, j.R != nil, j.ExecEventlog != nil)
		return nil
	})
	for _, f := range a.Failures {
		fmt.Println(f)
		fmt.Println(f.ID, f.Path, f.Line, f.Err)
	}
	id, _ := a.MaxID()
	fmt.Println(uint64(id), err)
	// Output:
	// 8069840896: 92 bytes of log, jobspec {"version":1}, allocated false, ran false
	// archive: job ƒCowHCK: "job/0000/0001/ce00/0000": no jobspec
	// ƒCowHCK job/0000/0001/ce00/0000 0 no jobspec
	// 8069840896 <nil>
}
