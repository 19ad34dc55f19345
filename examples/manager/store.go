package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/boltstore"
)

// A store keeps records. One write goes on at a time.
type store interface {
	// load gives all records to f, now or later.
	load(f func(iter.Seq2[joblife.Record, error]))
	// write makes what is in Append durable, removes the jobs in Unlink, and calls
	// done, now or later.
	write(out *service.Out, done func(failed map[jobid.ID]error, err error))
	// lookup returns what there is of a job.
	lookup(jobid.ID) (service.Stored, error)
	// putAside removes a job from those that load finds, keeps it for people, and calls
	// done, now or later. It is called after load, before the first write.
	putAside(id jobid.ID, done func(error))
	// isLocal reports whether the store works without a client.
	isLocal() bool
	close() error
}

// openStore opens the store that the command line names.
func openStore(p *process) (store, error) {
	kind, path, _ := strings.Cut(p.o.store, ":")
	switch kind {
	case "bolt":
		s, err := boltstore.Open(path)
		if err != nil {
			return nil, err
		}
		return &local{disk: boltDisk{s}, results: p.results}, nil
	case "dir":
		d, err := openDir(path, p.warn)
		if err != nil {
			return nil, err
		}
		return &local{disk: d, results: p.results}, nil
	case "lines":
		return &kvs{memory: make(memory), p: p, queues: make(map[string]json.RawMessage)}, nil
	}
	return make(memory), nil
}

// memory is the store that ends with the process.
type memory map[jobid.ID]*service.Stored

func (memory) load(f func(iter.Seq2[joblife.Record, error])) {
	f(func(func(joblife.Record, error) bool) {})
}

func (m memory) write(out *service.Out, done func(map[jobid.ID]error, error)) {
	m.keep(out)
	done(nil, nil)
}

// keep keeps what is to be looked up.
func (m memory) keep(out *service.Out) {
	for _, r := range out.Append {
		m.add(r)
	}
	for _, id := range out.Unlink {
		delete(m, id)
	}
}

// add keeps a record.
func (m memory) add(r joblife.Record) {
	j := m[r.Job]
	if j == nil {
		j = new(service.Stored)
	}
	switch r.Kind {
	case joblife.RecordJobspec:
		j.Jobspec = r.Clone().Data
	case joblife.RecordR:
		j.R = r.Clone().Data
	case joblife.RecordEvent:
		j.Eventlog = append(j.Eventlog, r.Data...)
	default:
		return
	}
	m[r.Job] = j
}

func (m memory) lookup(id jobid.ID) (service.Stored, error) {
	if j := m[id]; j != nil {
		return *j, nil
	}
	return service.Stored{}, nil
}

func (memory) putAside(_ jobid.ID, done func(error)) { done(nil) }
func (memory) isLocal() bool                         { return true }
func (memory) close() error                          { return nil }

// A disk keeps records in files. Read may be called while another call goes on.
type disk interface {
	Records() iter.Seq2[joblife.Record, error]
	Commit([]joblife.Record) error
	Unlink(context.Context, []jobid.ID) (failed map[jobid.ID]error, err error)
	Read(jobid.ID) (service.Stored, error)
	PutAside(jobid.ID) error
	Close() error
}

// local is a store on a disk. It writes in a goroutine of its own, so that more requests
// share the next commit.
type local struct {
	disk
	results chan<- func()
}

func (s *local) load(f func(iter.Seq2[joblife.Record, error])) { f(s.Records()) }

func (s *local) write(out *service.Out, done func(map[jobid.ID]error, error)) {
	go func() {
		var failed map[jobid.ID]error
		err := s.Commit(out.Append)
		if err == nil && len(out.Unlink) > 0 {
			failed, err = s.Unlink(context.Background(), out.Unlink)
		}
		s.results <- func() { done(failed, err) }
	}()
}

func (s *local) lookup(id jobid.ID) (service.Stored, error) {
	j, err := s.Read(id)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return j, err
}

func (s *local) putAside(id jobid.ID, done func(error)) { done(s.PutAside(id)) }
func (*local) isLocal() bool                            { return true }
func (s *local) close() error                           { return s.Close() }

// boltDisk is the disk of -store bolt.
type boltDisk struct{ *boltstore.Store }

func (d boltDisk) Commit(records []joblife.Record) error { return d.Append(records) }

func (d boltDisk) Read(id jobid.ID) (service.Stored, error) {
	j, err := d.Store.Read(id)
	return service.Stored{Eventlog: j.Eventlog, Jobspec: j.Jobspec, R: j.R}, err
}
