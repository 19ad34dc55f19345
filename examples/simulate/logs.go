package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
)

// logs writes the log of each job that is over as a JSON line, with its R and jobspec.
// The program replay reads such lines.
type logs struct {
	f    *os.File
	w    *bufio.Writer
	jobs map[jobid.ID]*recording // not over
}

// A recording is what a line has.
type recording struct {
	ID       uint64          `json:"id"`
	Eventlog string          `json:"eventlog"`
	R        json.RawMessage `json:"R,omitempty"`
	Jobspec  json.RawMessage `json:"jobspec"`
	log      []byte
}

// newLogs makes the file for one way in a folder.
func newLogs(dir string, w way) (*logs, error) {
	f, err := os.Create(filepath.Join(dir, w.file()+".jsonl"))
	if err != nil {
		return nil, err
	}
	return &logs{f, bufio.NewWriter(f), make(map[jobid.ID]*recording)}, nil
}

func (l *logs) add(r joblife.Record) {
	j := l.jobs[r.Job]
	if j == nil {
		j = &recording{ID: uint64(r.Job)}
		l.jobs[r.Job] = j
	}
	switch r.Kind {
	case joblife.RecordEvent:
		j.log = append(j.log, r.Data...)
	case joblife.RecordR:
		j.R = r.Clone().Data
	case joblife.RecordJobspec:
		j.Jobspec = r.Clone().Data
	}
}

func (l *logs) over(id jobid.ID) error {
	j := l.jobs[id]
	delete(l.jobs, id)
	j.Eventlog = string(j.log)
	line, err := json.Marshal(j)
	if err != nil {
		return err
	}
	_, err = l.w.Write(append(line, '\n'))
	return err
}

func (l *logs) close() error { return errors.Join(l.w.Flush(), l.f.Close()) }
