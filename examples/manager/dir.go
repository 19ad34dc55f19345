package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

// The names in the folder of -store dir.
const (
	jobsName   = "jobs"       // the folder of package dirstore
	logName    = "records"    // a log of all other records
	asideName  = "lost+found" // jobs that an operator put aside
	newLogName = logName + ".new"
)

// dirDisk is the disk of -store dir: plain files for people to read. It writes the records
// one after the other, so that after a crash those before any that is there are there too.
type dirDisk struct {
	path string
	log  *logfile.Log

	mu   sync.Mutex // guards jobs, since Read comes from another goroutine
	jobs *dirstore.Store
}

// openDir opens the folder, or makes it.
func openDir(path string, warn func(string, ...any)) (*dirDisk, error) {
	if err := files.MakeDir(path); err != nil {
		return nil, err
	}
	d := &dirDisk{path: path}
	jobs := filepath.Join(path, jobsName)
	var err error
	if d.jobs, err = dirstore.Open(jobs); errors.Is(err, fs.ErrNotExist) || errors.Is(err, dirstore.ErrNotStore) {
		d.jobs, err = dirstore.Create(jobs)
	}
	if err != nil {
		return nil, err
	}
	if err = d.openLog(warn); err != nil {
		return nil, errors.Join(err, d.jobs.Close())
	}
	return d, nil
}

// openLog writes the log anew, without what is of no use, and opens it. The lock of the
// jobs is the lock of the log.
func (d *dirDisk) openLog(warn func(string, ...any)) error {
	name, next := filepath.Join(d.path, logName), filepath.Join(d.path, newLogName)
	switch done, err := logfile.Repair(name, logfile.RepairOptions{}); {
	case errors.Is(err, fs.ErrNotExist):
		d.log, err = logfile.Create(name, logfile.Options{})
		return err
	case err != nil:
		return err
	case done.Side != "": // of a crash, or damage to the last line
		warn("-store: %s: the last line was not whole; it is in %s", name, done.Side)
	}
	records, err := d.useful(name)
	if err != nil {
		return err
	}
	text, err := joblife.AppendRecords(nil, records)
	if err != nil {
		return err
	}
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // of a start that did not come to its end
	}
	log, err := logfile.Create(next, logfile.Options{MaxBatch: max(len(text), 1)})
	if err != nil {
		return err
	}
	if len(text) > 0 {
		err = log.Append(text)
	}
	if err = errors.Join(err, log.Close()); err == nil {
		err = os.Rename(next, name)
	}
	if err == nil {
		d.log, err = logfile.Open(name, logfile.Options{}) // makes the name durable
	}
	return err
}

// useful returns the records of the log that a restart needs: the last of each queue,
// the greatest watermark, tombstones that have not expired, and the housekeeping of jobs that are there.
func (d *dirDisk) useful(name string) (list []joblife.Record, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	last := make(map[string]joblife.Record) // by what it replaces
	expired := make(map[jobid.ID]bool)
	for r, err := range joblife.ReadRecords(f) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch r.Kind {
		case joblife.RecordHousekeeping:
			if _, err := os.Lstat(filepath.Join(d.path, jobsName, r.Job.KVSPath())); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return nil, err
			}
		case joblife.RecordQueue:
			var queue struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal(r.Data, &queue); err != nil {
				return nil, err
			}
			last["queue "+queue.Name] = r
			continue
		case joblife.RecordTombstone:
			expired[r.Job] = len(r.Data) == 0
		case joblife.RecordWatermark:
			if string(r.Data) > string(last["watermark"].Data) { // they have one length
				last["watermark"] = r
			}
			continue
		}
		list = append(list, r)
	}
	list = slices.DeleteFunc(list, func(r joblife.Record) bool { return expired[r.Job] && r.Kind != joblife.RecordHousekeeping })
	for _, key := range slices.Sorted(maps.Keys(last)) {
		list = append(list, last[key])
	}
	return list, nil
}

func (d *dirDisk) Records() iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		f, err := os.Open(filepath.Join(d.path, logName))
		if err != nil {
			yield(joblife.Record{}, err)
			return
		}
		defer f.Close()
		for r, err := range joblife.ReadRecords(f) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		for j, err := range d.jobs.Jobs() {
			if err != nil {
				var bad *dirstore.JobError
				if !errors.As(err, &bad) {
					yield(joblife.Record{}, err)
					return
				}
				text := strings.TrimPrefix(err.Error(), fmt.Sprintf("dirstore: %v: ", bad.ID))
				// A record that cannot be read has the job quarantined, with what is whole of it.
				if !yield(joblife.Record{Job: bad.ID, Kind: joblife.RecordInactive, Data: []byte(text)}, nil) {
					return
				}
			}
			if !yieldJob(j.ID, service.Stored{Eventlog: j.Eventlog, Jobspec: j.Jobspec, R: j.R}, yield) {
				return
			}
		}
	}
}

// yieldJob yields the records of a job, and reports whether to go on.
func yieldJob(id jobid.ID, j service.Stored, yield func(joblife.Record, error) bool) bool {
	give := func(kind joblife.RecordKind, data []byte) bool {
		return yield(joblife.Record{Job: id, Kind: kind, Data: data}, nil)
	}
	if j.Jobspec != nil && !give(joblife.RecordJobspec, j.Jobspec) || j.R != nil && !give(joblife.RecordR, j.R) {
		return false
	}
	for line := range bytes.Lines(j.Eventlog) {
		if !give(joblife.RecordEvent, line) {
			return false
		}
	}
	return true
}

func (d *dirDisk) Append(records []joblife.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(records) > 0 {
		n := 1
		for n < len(records) && records[n].Job == records[0].Job && ofJob(records[n]) == ofJob(records[0]) {
			n++
		}
		do := d.appendLog
		if ofJob(records[0]) {
			do = d.putJob
		}
		if err := do(records[:n]); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// ofJob reports whether the files of a job have the record.
func ofJob(r joblife.Record) bool {
	return r.Kind == joblife.RecordEvent || r.Kind == joblife.RecordJobspec || r.Kind == joblife.RecordR
}

// appendLog stores records in the log.
func (d *dirDisk) appendLog(list []joblife.Record) error {
	text, err := joblife.AppendRecords(nil, list)
	if err != nil {
		return err
	}
	return d.log.Append(text)
}

// putJob stores records of one job. Its R comes before its events.
func (d *dirDisk) putJob(list []joblife.Record) error {
	j := dirstore.Stored{ID: list[0].Job}
	for _, r := range list {
		switch r.Kind {
		case joblife.RecordJobspec:
			j.Jobspec = r.Data
		case joblife.RecordR:
			j.R = r.Data
		default:
			j.Eventlog = append(j.Eventlog, r.Data...)
		}
	}
	if j.Jobspec != nil { // it comes with the first event
		return d.jobs.Add(j)
	}
	if j.R != nil {
		if err := d.jobs.PutR(j.ID, j.R); err != nil {
			return err
		}
	}
	if len(j.Eventlog) == 0 {
		return nil
	}
	return d.jobs.Append(j.ID, j.Eventlog)
}

func (d *dirDisk) Unlink(ctx context.Context, ids []jobid.ID) (map[jobid.ID]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.jobs.Unlink(ctx, ids)
}

func (d *dirDisk) Read(id jobid.ID) (service.Stored, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j, err := d.jobs.Read(id)
	return service.Stored{Eventlog: j.Eventlog, Jobspec: j.Jobspec, R: j.R}, err
}

// PutAside moves the files of a job. Its id is among those that are gone.
func (d *dirDisk) PutAside(id jobid.ID) error {
	mark := joblife.Record{Time: 1, Kind: joblife.RecordWatermark, // a restart does not ask when
		Data: purge.AppendWatermark(nil, id)}
	if err := d.appendLog([]joblife.Record{mark}); err != nil {
		return err
	}
	aside, name := filepath.Join(d.path, asideName), id.KVSPath()
	if err := files.MakeDir(aside); err != nil {
		return err
	}
	to := filepath.Join(aside, name)
	for n := 1; ; n++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = filepath.Join(aside, fmt.Sprintf("%s.%d", name, n))
	}
	return errors.Join(os.Rename(filepath.Join(d.path, jobsName, name), to), files.SyncDir(aside), files.SyncDir(filepath.Join(d.path, jobsName)))
}

func (d *dirDisk) Close() error { return errors.Join(d.log.Close(), d.jobs.Close()) }
