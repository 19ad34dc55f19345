package purge_test

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

var (
	errDead  = errors.New("the process is dead")
	errStuck = errors.New("input/output error")
)

// memory is a store of which every change is durable at once, and which can die
// before any change.
type memory struct {
	jobs      map[jobid.ID]*jobstate.Summary // nil of an active job
	tombs     map[jobid.ID]jobstate.Summary
	watermark jobid.ID
	stuck     map[jobid.ID]bool // Unlink cannot remove them

	steps  int                   // changes that were made or died at
	diesAt int                   // the change that it dies at, from 1; 0: none
	fails  func(op string) error // called before a call
	calls  []string
}

func newMemory() *memory {
	return &memory{jobs: map[jobid.ID]*jobstate.Summary{}, tombs: map[jobid.ID]jobstate.Summary{}, stuck: map[jobid.ID]bool{}}
}

// step reports whether the next change is made.
func (m *memory) step() error {
	m.steps++
	if m.diesAt > 0 && m.steps >= m.diesAt {
		return errDead
	}
	return nil
}

func (m *memory) call(op string) error {
	m.calls = append(m.calls, op)
	if m.fails != nil {
		return m.fails(op)
	}
	return nil
}

func (m *memory) Prepare(_ context.Context, p purge.Plan) error {
	if err := errors.Join(m.call("prepare"), m.step()); err != nil {
		return err
	}
	m.watermark = max(m.watermark, p.Watermark)
	for _, j := range p.Tombstones {
		if err := m.step(); err != nil {
			return err
		}
		m.tombs[j.ID] = j
	}
	for _, id := range p.Expired {
		if err := m.step(); err != nil {
			return err
		}
		delete(m.tombs, id)
	}
	return nil
}

func (m *memory) Unlink(_ context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error) {
	if err := m.call("unlink"); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := m.step(); err != nil {
			return nil, err
		}
		if m.stuck[id] {
			if failed == nil {
				failed = map[jobid.ID]error{}
			}
			failed[id] = errStuck
			continue
		}
		delete(m.jobs, id)
	}
	return failed, nil
}

// Obstruct makes Unlink of a job fail.
func (m *memory) Obstruct(id jobid.ID) (func(), error) {
	m.stuck[id] = true
	return func() { delete(m.stuck, id) }, nil
}

func (m *memory) Create(jobs ...jobstate.Summary) error {
	for _, j := range jobs {
		if err := m.step(); err != nil {
			return err
		}
		m.jobs[j.ID] = &j
	}
	return nil
}

// snapshot is what a restart finds.
func (m *memory) snapshot() purge.Snapshot {
	ev := purge.Snapshot{Watermark: m.watermark, Tombstones: slices.Collect(maps.Values(m.tombs))}
	for id, j := range m.jobs {
		if j == nil {
			ev.Active = append(ev.Active, id)
		} else {
			ev.Jobs = append(ev.Jobs, *j)
		}
	}
	return ev
}
