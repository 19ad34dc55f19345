package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate"
)

// follow prints the events of a job's log, those that are there and those that come, until
// the job is inactive or invalid. It waits where there are none.
func follow(name string, w io.Writer, wait func()) (err error) {
	r, err := logfile.OpenReader(name, logfile.ReaderOptions{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("-follow: %s: %w", name, fs.ErrNotExist)
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	in := input{label: name}
	id, ok := idOf(name)
	in.id, in.noID = id, !ok
	t := timeline{name: in.name(), job: jobstate.NewJob(id)}
	for !t.job.Closed() {
		e, err := r.Next()
		switch {
		case err == io.EOF: // for now
			wait()
			continue
		case err == logfile.ErrEndOfHistory:
			continue // what has happened and what happens print alike
		case err != nil:
			return err
		case r.Duplicate():
			continue // its writer did not know whether the first one was stored
		}
		if err := t.print(w, e); err != nil {
			return fmt.Errorf("%s: %w", name, in.stopped(err))
		}
	}
	return nil
}
