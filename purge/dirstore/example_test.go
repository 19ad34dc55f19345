package dirstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// first is the first id of the examples.
const first jobid.ID = 6731191091817518

// must ends an example that fails.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// temp returns a new store, and its directory in a new folder.
func temp() (s *dirstore.Store, dir string) {
	folder, err := os.MkdirTemp("", "dirstore")
	must(err)
	dir = filepath.Join(folder, "store")
	s, err = dirstore.Create(dir)
	must(err)
	return s, dir
}

// event returns the line of an event.
func event(name string) []byte {
	text, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1699996421.5, Name: name})
	must(err)
	return text
}

func Example() {
	s, dir := temp()
	defer os.RemoveAll(filepath.Dir(dir))
	const id = first
	must(s.Add(dirstore.Stored{ID: id, Eventlog: event("submit"), Jobspec: []byte(`{"version":1}`)}))
	must(s.PutR(id, []byte(`{"version":1}`)))
	must(s.Append(id, event("clean")))
	names, err := filepath.Glob(filepath.Join(dir, id.KVSPath(), "*"))
	must(err)
	for _, name := range names {
		fmt.Println(id.KVSPath(), filepath.Base(name))
	}

	_, err = s.Unlink(context.Background(), []jobid.ID{id})
	must(err)
	_, err = s.Read(id)
	fmt.Println(errors.Is(err, os.ErrNotExist))
	must(s.Close())
	// Output:
	// job.0017.e9fb.8df1.6c2e R
	// job.0017.e9fb.8df1.6c2e crc32c
	// job.0017.e9fb.8df1.6c2e eventlog
	// job.0017.e9fb.8df1.6c2e jobspec
	// true
}

// A job that cannot be read does not hide the others.
func ExampleStore_Jobs() {
	s, dir := temp()
	defer os.RemoveAll(filepath.Dir(dir))
	for i := range jobid.ID(3) {
		must(s.Add(dirstore.Stored{ID: first + i, Eventlog: event("submit")}))
	}
	must(os.Remove(filepath.Join(dir, (first + 1).KVSPath(), "eventlog")))
	log, err := os.OpenFile(filepath.Join(dir, (first+2).KVSPath(), "eventlog"), os.O_APPEND|os.O_WRONLY, 0)
	must(err)
	_, err = log.WriteString(`{"timestamp":16999`) // and the machine crashed
	must(errors.Join(err, log.Close()))
	for j, err := range s.Jobs() {
		var broken *dirstore.JobError
		if errors.As(err, &broken) {
			fmt.Println("quarantine:", broken.ID, broken.Err, errors.Is(err, dirstore.ErrDamaged))
			continue
		}
		must(err)
		fmt.Print(j.ID, " ", j.Torn, " torn: ", string(j.Eventlog))
	}
	must(s.Close())
	// Output:
	// ƒuZZybuNNy 0 torn: {"timestamp":1699996421.5,"name":"submit"}
	// quarantine: ƒuZZybuNNz damaged: it has no eventlog true
	// ƒuZZybuNP1 18 torn: {"timestamp":1699996421.5,"name":"submit"}
}

// A store is locked by one process at a time.
func ExampleOpen() {
	s, dir := temp()
	defer os.RemoveAll(filepath.Dir(dir))
	_, err := dirstore.Open(dir)
	fmt.Println(errors.Is(err, logfile.ErrLocked))
	must(s.Close())
	s, err = dirstore.Open(dir)
	must(err)
	must(s.Close())
	// Output: true
}
