package purge_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/storetest"
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

func (m *memory) Stored() ([]jobid.ID, []jobstate.Summary, jobid.ID, error) {
	return slices.Collect(maps.Keys(m.jobs)), slices.Collect(maps.Values(m.tombs)), m.watermark, nil
}

func (m *memory) Reopen() error { return nil }

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

func TestAStoreInMemoryPassesTheSuite(t *testing.T) {
	storetest.Run(t, func() storetest.Subject { return newMemory() })
}

// broken is a store that breaks one promise.
type broken struct {
	*memory
	how string
}

func (b broken) Prepare(ctx context.Context, p purge.Plan) error {
	switch b.how {
	case "lowers the watermark":
		b.watermark = 0
	case "forgets the watermark":
		p.Watermark = 0
	case "keeps the first tombstone":
		p.Tombstones = slices.DeleteFunc(slices.Clone(p.Tombstones), func(j jobstate.Summary) bool { _, ok := b.tombs[j.ID]; return ok })
	case "forgets a result":
		p.Tombstones = slices.Clone(p.Tombstones)
		for i := range p.Tombstones {
			p.Tombstones[i].Result = jobstate.ResultCompleted
		}
	case "drops all tombstones":
		if len(p.Expired) > 0 {
			clear(b.tombs)
		}
	case "keeps no tombstone":
		p.Tombstones, p.Expired = nil, nil
	}
	return b.memory.Prepare(ctx, p)
}

func (b broken) Unlink(ctx context.Context, ids []jobid.ID) (map[jobid.ID]error, error) {
	switch b.how {
	case "refuses unknown jobs":
		for _, id := range ids {
			if b.jobs[id] == nil {
				return nil, errors.New("no such job")
			}
		}
	case "unlinks nothing":
		return nil, nil
	case "stops at a job that is stuck":
		for _, id := range ids {
			if b.stuck[id] {
				return nil, errStuck
			}
		}
	case "is silent of a job that is stuck":
		_, err := b.memory.Unlink(ctx, ids)
		return nil, err
	case "unlinks one too many":
		for id := range b.jobs {
			delete(b.jobs, id)
			break
		}
	case "buries the tombstone too":
		for _, id := range ids {
			delete(b.tombs, id)
		}
	case "changes the ids":
		defer clear(ids)
	case "has small batches":
		if len(ids) > 100 {
			return nil, errors.New("too many")
		}
	}
	return b.memory.Unlink(ctx, ids)
}

func (b broken) Reopen() error {
	if b.how == "forgets all at a crash" {
		*b.memory = *newMemory()
	}
	return nil
}

// verdict is a test that only notes that it failed.
type verdict struct{ text string }

func (*verdict) Helper() {}

func (v *verdict) Fatalf(format string, args ...any) { panic(v.fail(format)) }

func (v *verdict) fail(format string) *verdict { v.text = format; return v }

func TestTheSuiteFindsEachBrokenPromise(t *testing.T) {
	for _, how := range []string{
		"lowers the watermark", "forgets the watermark", "keeps the first tombstone", "forgets a result",
		"drops all tombstones", "keeps no tombstone", "refuses unknown jobs", "unlinks nothing", "unlinks one too many",
		"buries the tombstone too", "changes the ids", "has small batches", "forgets all at a crash",
		"stops at a job that is stuck", "is silent of a job that is stuck",
	} {
		v := &verdict{}
		func() {
			defer func() { _, _ = recover().(*verdict) }()
			storetest.Run(v, func() storetest.Subject { return broken{newMemory(), how} })
		}()
		require.NotEmpty(t, v.text, how)
	}
}
