package dirstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// inTemp calls f with a new store in a folder that is removed again.
func inTemp(f func(s *dirstore.Store, dir string) error) {
	temp, err := os.MkdirTemp("", "dirstore")
	if err == nil {
		var s *dirstore.Store
		dir := filepath.Join(temp, "store")
		if s, err = dirstore.Create(dir); err == nil {
			err = f(s, dir)
			_ = s.Close() // it may be closed
		}
		_ = os.RemoveAll(temp)
	}
	if err != nil {
		fmt.Println(err)
	}
}

// event returns the line of an event.
func event(name string) []byte {
	text, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1699996421.5, Name: name})
	if err != nil {
		fmt.Println(err)
	}
	return text
}

func Example() {
	inTemp(func(s *dirstore.Store, dir string) error {
		const id jobid.ID = 6731191091817518
		err := s.Add(dirstore.Stored{ID: id, Eventlog: event("submit"), Jobspec: []byte(`{"version":1}`)})
		if err != nil {
			return err
		}
		if err := errors.Join(s.PutR(id, []byte(`{"version":1}`)), s.Append(id, event("clean"))); err != nil {
			return err
		}
		names, err := filepath.Glob(filepath.Join(dir, id.KVSPath(), "*"))
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Println(id.KVSPath(), filepath.Base(name))
		}

		if _, err := s.Unlink(context.Background(), []jobid.ID{id}); err != nil {
			return err
		}
		_, err = s.Read(id)
		fmt.Println(errors.Is(err, os.ErrNotExist))
		return nil
	})
	// Output:
	// job.0017.e9fb.8df1.6c2e R
	// job.0017.e9fb.8df1.6c2e crc32c
	// job.0017.e9fb.8df1.6c2e eventlog
	// job.0017.e9fb.8df1.6c2e jobspec
	// true
}

// A job that cannot be read does not hide the others.
func ExampleStore_Jobs() {
	inTemp(func(s *dirstore.Store, dir string) error {
		for id := range jobid.ID(3) {
			if err := s.Add(dirstore.Stored{ID: id + 1, Eventlog: event("submit")}); err != nil {
				return err
			}
		}
		if err := os.Remove(filepath.Join(dir, jobid.ID(2).KVSPath(), "eventlog")); err != nil {
			return err
		}
		for j, err := range s.Jobs() {
			var broken *dirstore.JobError
			switch {
			case errors.As(err, &broken):
				fmt.Println("quarantine:", broken.ID, broken.Err)
			case err != nil:
				return err
			default:
				fmt.Print(j.ID, " ", string(j.Eventlog))
			}
		}
		return nil
	})
	// Output:
	// ƒ2 {"timestamp":1699996421.5,"name":"submit"}
	// quarantine: ƒ3 damaged: it has no eventlog
	// ƒ4 {"timestamp":1699996421.5,"name":"submit"}
}
