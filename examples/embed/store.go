package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A store keeps records as lines of a file.
type store struct{ *logfile.Log }

func open(name string) (store, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return store{}, err
	}
	log, err := logfile.Create(name, logfile.Options{})
	if errors.Is(err, fs.ErrExist) {
		var torn logfile.Repaired
		if torn, err = logfile.Repair(name, logfile.RepairOptions{}); torn.Side != "" {
			warn(fmt.Errorf("the last line was cut short by a crash; it is in %s", torn.Side))
		}
		if err == nil {
			log, err = logfile.Open(name, logfile.Options{})
		}
	}
	return store{log}, err
}

// Append makes records durable.
func (s store) Append(records []joblife.Record) error {
	batch, err := joblife.AppendRecords(nil, records)
	if err != nil {
		return err
	}
	return s.Log.Append(batch)
}

// Unlink has nothing to remove: a record says that a job is gone.
func (s store) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }
