package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/purge/boltstore"
)

// A store keeps records. One write goes on at a time.
type store interface {
	// load gives all records to f, now or later.
	load(f func(iter.Seq2[joblife.Record, error]))
	// serve sets the store of a service.
	serve(cfg *service.Config)
	// lookup returns what there is of a job.
	lookup(jobid.ID) (service.Stored, error)
	// putAside removes a job from those that load finds, keeps it for people, and calls
	// done, now or later. It is called after load, before the first write.
	putAside(id jobid.ID, done func(error))
	close() error
}

// openStore opens the store that the command line names.
func openStore(p *process) (store, error) {
	kind, path, _ := strings.Cut(p.o.store, ":")
	switch kind {
	case "memory":
		return make(memory), nil
	case "lines":
		p.kvs = &kvs{memory: make(memory), p: p, queues: make(map[string]json.RawMessage)}
		return p.kvs, nil
	}
	d, err := lines.Open(func() (disk, error) { return openDisk(kind, path, p.warnf) })
	if err != nil {
		return nil, err
	}
	return local{d}, nil
}

func openDisk(kind, path string, warn func(string, ...any)) (disk, error) {
	if kind == "dir" {
		return openDir(path, warn)
	}
	s, err := boltstore.Open(path)
	return boltDisk{s}, err
}

// memory is the store that ends with the process.
type memory map[jobid.ID]*service.Stored

func (memory) load(f func(iter.Seq2[joblife.Record, error])) {
	f(func(func(joblife.Record, error) bool) {})
}

func (m memory) serve(cfg *service.Config) {
	cfg.Begin = func(rd *joblife.Ready, done func(map[jobid.ID]error, error)) {
		m.keep(rd)
		done(nil, nil)
	}
}

// keep keeps what is to be looked up.
func (m memory) keep(rd *joblife.Ready) {
	for _, r := range rd.Append {
		m.add(r)
	}
	for _, id := range rd.Unlink {
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
func (memory) close() error                          { return nil }

// A disk keeps records in files. Read may be called while another call goes on.
type disk interface {
	loop.Store
	Records() iter.Seq2[joblife.Record, error]
	Read(jobid.ID) (service.Stored, error)
	PutAside(jobid.ID) error
	Close() error
}

// local is a store on a disk.
type local struct{ disk }

func (s local) load(f func(iter.Seq2[joblife.Record, error])) { f(s.Records()) }
func (s local) serve(cfg *service.Config)                     { cfg.Store = s.disk }

func (s local) lookup(id jobid.ID) (service.Stored, error) {
	j, err := s.Read(id)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return j, err
}

func (s local) putAside(id jobid.ID, done func(error)) { done(s.PutAside(id)) }
func (s local) close() error                           { return s.Close() }

// boltDisk is the disk of -store bolt.
type boltDisk struct{ *boltstore.Store }

func (d boltDisk) Read(id jobid.ID) (service.Stored, error) {
	j, err := d.Store.Read(id)
	return service.Stored{Eventlog: j.Eventlog, Jobspec: j.Jobspec, R: j.R}, err
}
