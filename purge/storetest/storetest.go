package storetest

import (
	"context"
	"math"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// TB is what the suite needs from a test; *testing.T implements it.
type TB interface {
	// Helper marks its caller as a helper.
	Helper()
	// Fatalf reports a fault and ends the test.
	Fatalf(format string, args ...any)
}

// A Subject is a store under test.
type Subject interface {
	// Unlink is that of [purge.Store]. The suite tests the rest of a Subject that is one.
	Unlink(ctx context.Context, ids []jobid.ID) (failed map[jobid.ID]error, err error)
	// Create stores some data of jobs that became inactive.
	Create(jobs ...jobstate.Summary) error
	// Stored returns the jobs of which anything is stored and the tombstones, both
	// in any order, and the watermark, 0 if there is none. The watermark may be greater
	// than the one that was stored, but not than the ids that the store was given.
	Stored() (jobs []jobid.ID, tombstones []jobstate.Summary, watermark jobid.ID, err error)
	// Reopen opens the store again, as after a crash: changes that were not durable may be lost.
	Reopen() error
}

// An Obstructer is a [Subject] that can make Unlink of one job fail. For any other Subject
// the suite does not test that a job that cannot be removed does not stop the others.
type Obstructer interface {
	// Obstruct makes Unlink of a job fail until clear is called.
	Obstruct(id jobid.ID) (clear func(), err error)
}

// A Damager is a [Subject] that can damage what it has of a job. For any other Subject the
// suite does not test what becomes of such a job.
type Damager interface {
	// Damage changes what is stored of a job, such that the job cannot be read. Stored
	// returns it all the same: its nodes may be in use.
	Damage(id jobid.ID) error
}

// Run tests the stores that open returns; each must be empty. It ends at the
// first fault, and lists the calls before it.
func Run(t TB, open func() Subject) {
	t.Helper()
	for _, c := range checks {
		s := &suite{TB: t, Subject: open(), name: c.name, ctx: context.Background()}
		c.run(s)
		s.reopen()
	}
}

// A suite is one check of a subject, beside what should be in it.
type suite struct {
	TB
	Subject
	name string
	ctx  context.Context

	jobs      []jobid.ID
	tombs     map[jobid.ID]jobstate.Summary
	dropped   map[jobid.ID]bool // tombstones that may be there
	watermark jobid.ID          // the greatest that was stored
	greatest  jobid.ID          // the greatest id that the store was told
}

// job returns a job that differs from those with other numbers in everything.
func job(n int) jobstate.Summary {
	return jobstate.Summary{
		ID:       jobid.ID(1000 + 7*n),
		Inactive: 1_700_000_000.25 + 3*eventlog.Timestamp(n),
		Result:   jobstate.Result(1) << (n % 4),
		Ran:      n%3 > 0,

		Unstarted: n%6 == 3,
		Stopped:   n%6 == 4,
	}
}

func (s *suite) must(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("storetest: %s: %s: %v", s.name, what, err)
	}
}

func (s *suite) create(jobs ...jobstate.Summary) {
	s.Helper()
	s.must("create jobs", s.Create(jobs...))
	for _, j := range jobs {
		s.jobs = append(s.jobs, j.ID)
		s.greatest = max(s.greatest, j.ID)
	}
	slices.Sort(s.jobs)
}

// reopen opens the store again, which has then what it had.
func (s *suite) reopen() {
	s.Helper()
	s.look()
	s.must("open again", s.Reopen())
	s.look()
}

func (s *suite) mark(id jobid.ID) {
	s.Helper()
	s.prepare(purge.Plan{Watermark: id})
}

// tombstones stores and drops tombstones.
func (s *suite) tombstones(put []jobstate.Summary, drop ...jobid.ID) {
	s.Helper()
	s.prepare(purge.Plan{Tombstones: put, Expired: drop})
}

// prepare stores what is to remain of a plan, if the subject keeps that.
func (s *suite) prepare(p purge.Plan) {
	s.Helper()
	store, ok := s.Subject.(purge.Store)
	if !ok {
		return
	}
	s.must("prepare", store.Prepare(s.ctx, p))
	s.watermark, s.greatest = max(s.watermark, p.Watermark), max(s.greatest, p.Watermark)
	if s.tombs == nil {
		s.tombs, s.dropped = make(map[jobid.ID]jobstate.Summary), make(map[jobid.ID]bool)
	}
	for _, j := range p.Tombstones {
		s.tombs[j.ID] = j
		s.dropped[j.ID] = false
		s.greatest = max(s.greatest, j.ID)
	}
	for _, id := range p.Expired {
		s.dropped[id] = true
	}
}

func (s *suite) unlink(ids ...jobid.ID) {
	s.Helper()
	failed, err := s.Unlink(s.ctx, ids)
	s.must("unlink", err)
	for _, id := range ids {
		s.must("unlink a job", failed[id])
	}
	s.jobs = slices.DeleteFunc(s.jobs, func(id jobid.ID) bool { return slices.Contains(ids, id) })
}

// look fails the test unless what is stored is what should be.
func (s *suite) look() {
	s.Helper()
	jobs, tombs, watermark, err := s.Stored()
	s.must("look", err)
	jobs = slices.Clone(jobs)
	slices.Sort(jobs)
	if !slices.Equal(jobs, s.jobs) {
		s.Fatalf("storetest: %s: the jobs %d are stored, want %d", s.name, jobs, s.jobs)
	}
	if watermark < s.watermark || watermark > s.greatest {
		s.Fatalf("storetest: %s: the watermark is %d, want %d to %d", s.name, watermark, s.watermark, s.greatest)
	}
	seen := make(map[jobid.ID]bool)
	for _, j := range tombs {
		want, ok := s.tombs[j.ID]
		if !ok || seen[j.ID] || j != want && !s.dropped[j.ID] {
			s.Fatalf("storetest: %s: there is a tombstone %q, want %q, twice: %v", s.name, j, want, seen[j.ID])
		}
		seen[j.ID] = true
	}
	for id, j := range s.tombs {
		if !seen[id] && !s.dropped[id] {
			s.Fatalf("storetest: %s: the tombstone %q is not there", s.name, j)
		}
	}
}

// A check is one promise of a store.
type check struct {
	name string
	run  func(*suite)
}

var checks = [...]check{
	{"an empty store has nothing", func(*suite) {}},
	{"calls with nothing do nothing", func(s *suite) {
		s.create(job(1))
		s.tombstones([]jobstate.Summary{job(2)})
		s.tombstones(nil)
		s.unlink()
		s.mark(0)
	}},
	{"a watermark is kept, and never lowered", func(s *suite) {
		s.mark(77)
		s.reopen()
		s.look()
		s.mark(78)
		s.mark(78)
		s.mark(1 << 40)
		s.mark(5)
		s.reopen()
		s.mark(6)
	}},
	{"the greatest and the least id are ids", func(s *suite) {
		least, greatest := job(1), job(2)
		least.ID, greatest.ID = 0, math.MaxUint64
		s.create(least, greatest, job(3))
		s.look()
		s.tombstones([]jobstate.Summary{least, greatest})
		s.mark(math.MaxUint64)
		s.unlink(0, math.MaxUint64)
	}},
	{"unlink removes these jobs and no other", func(s *suite) {
		for n := range 20 {
			s.create(job(n))
		}
		s.mark(job(19).ID)
		s.unlink(job(3).ID, job(19).ID, job(0).ID)
		s.reopen()
		s.unlink(job(4).ID)
	}},
	{"unlink may be repeated", func(s *suite) {
		s.create(job(1), job(2), job(3))
		s.unlink(job(1).ID)
		s.unlink(job(1).ID, job(2).ID)
		s.unlink(job(50).ID)
		s.reopen()
		s.unlink(job(1).ID, job(2).ID)
		s.create(job(1)) // nothing of the first one is in the way
	}},
	{"a large batch is one call", func(s *suite) {
		var put []jobstate.Summary
		var ids []jobid.ID
		for n := range purge.MaxBatch {
			put = append(put, job(n))
			ids = append(ids, job(n).ID)
		}
		s.create(put...)
		s.create(job(purge.MaxBatch))
		s.tombstones(put)
		s.unlink(ids...)
	}},
	{"tombstones stay when jobs go", func(s *suite) {
		s.create(job(1), job(2))
		s.tombstones([]jobstate.Summary{job(1)})
		s.unlink(job(1).ID)
		s.reopen()
		s.tombstones([]jobstate.Summary{job(2)})
		s.unlink(job(2).ID)
	}},
	{"the last tombstone of an id stays", func(s *suite) {
		first, second := job(1), job(1)
		second.Result, second.Ran, second.Inactive = jobstate.ResultTimeout, !first.Ran, 1_800_000_000
		s.tombstones([]jobstate.Summary{first, job(2)})
		s.tombstones([]jobstate.Summary{first})
		s.tombstones([]jobstate.Summary{second})
		s.reopen()
		s.tombstones([]jobstate.Summary{second})
	}},
	{"a dropped tombstone harms no other", func(s *suite) {
		s.create(job(1))
		s.tombstones([]jobstate.Summary{job(1), job(2), job(3)})
		s.tombstones([]jobstate.Summary{job(4)}, job(2).ID, job(50).ID)
		s.look()
		s.tombstones(nil, job(3).ID)
		s.reopen()
		s.tombstones([]jobstate.Summary{job(2)}) // it is back
	}},
	{"slices are not kept", func(s *suite) {
		s.create(job(1), job(2))
		put, drop, ids := []jobstate.Summary{job(1)}, []jobid.ID{job(3).ID}, []jobid.ID{job(1).ID}
		s.tombstones([]jobstate.Summary{job(2), job(3)})
		s.tombstones(put, drop...)
		s.unlink(ids...)
		if put[0] != job(1) || drop[0] != job(3).ID || ids[0] != job(1).ID {
			s.Fatalf("storetest: %s: the store changed them", s.name)
		}
		put[0], drop[0], ids[0] = job(9), job(2).ID, job(2).ID
		s.mark(1)
	}},
	{"a context that is done harms nothing", func(s *suite) {
		s.create(job(1), job(2))
		s.tombstones([]jobstate.Summary{job(5), job(6)})
		s.mark(10)
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		if store, ok := s.Subject.(purge.Store); ok {
			_ = store.Prepare(ctx, purge.Plan{Watermark: 9, Tombstones: []jobstate.Summary{job(5)}})
		}
		_, _ = s.Unlink(ctx, []jobid.ID{job(1).ID})
		s.unlink(job(1).ID) // whether it was done or not
	}},
	{"a job that cannot be removed stops no other", stuckJob},
	{"a damaged job is there until it is unlinked", damagedJob},
	{"a purge in batches leaves the watermark and tombstones", purgedAll},
}

func stuckJob(s *suite) {
	o, ok := s.Subject.(Obstructer)
	if !ok {
		return
	}
	s.create(job(1), job(2), job(3))
	clear, err := o.Obstruct(job(2).ID)
	s.must("obstruct a job", err)
	ids := []jobid.ID{job(1).ID, job(2).ID, job(3).ID}
	for range 2 {
		failed, err := s.Unlink(s.ctx, ids)
		s.must("unlink with one that cannot go", err)
		if len(failed) != 1 || failed[job(2).ID] == nil {
			s.Fatalf("storetest: %s: %v failed, want %d", s.name, failed, job(2).ID)
		}
	}
	s.jobs = []jobid.ID{job(2).ID}
	clear()
	s.look()
	s.unlink(ids...)
}

func damagedJob(s *suite) {
	d, ok := s.Subject.(Damager)
	if !ok {
		return
	}
	s.create(job(1), job(2), job(3))
	s.must("damage a job", d.Damage(job(2).ID))
	for range 2 { // the second restart finds what the first did
		s.must("open again", s.Reopen())
		s.look()
	}
	s.unlink(job(2).ID)
}

// purgedAll opens the store anew after every batch.
func purgedAll(s *suite) {
	store, ok := s.Subject.(purge.Store)
	if !ok {
		return
	}
	const now = 1_800_000_000
	ev := purge.Snapshot{Now: now}
	for n := range 25 {
		s.create(job(n))
		ev.Jobs = append(ev.Jobs, job(n))
	}
	limits := purge.PurgeAll()
	limits.Batch = 10
	for range 3 {
		x, err := purge.Recover(purge.Config{TombstoneCount: jobstate.Some(15)}, ev)
		s.must("recover", err)
		if x.Watermark() != job(24).ID {
			s.Fatalf("storetest: %s: the watermark is %d, want %d", s.name, x.Watermark(), job(24).ID)
		}
		_, err = x.Claim(now, limits)
		s.must("claim", err)
		_, err = purge.CarryOut(s.ctx, x, store)
		s.must("carry out", err)
		s.must("open again", s.Reopen())
		jobs, tombs, watermark, err := s.Stored()
		s.must("look", err)
		ev = purge.Snapshot{Now: now, Tombstones: tombs, Watermark: watermark}
		for n := range 25 {
			if slices.Contains(jobs, job(n).ID) {
				ev.Jobs = append(ev.Jobs, job(n))
			}
		}
	}
	s.jobs, s.watermark = nil, job(24).ID
	s.tombs, s.dropped = make(map[jobid.ID]jobstate.Summary), make(map[jobid.ID]bool)
	for n := range 25 {
		s.tombs[job(n).ID] = job(n)
		s.dropped[job(n).ID] = n < 10 // 25 jobs, 15 tombstones
	}
}
