package joblife

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
)

// Load is Restore without what follows: the Manager as the records tell. If it is cold, each
// log is folded at the end, and not as the records come.
func Load(now time.Time, cfg Config, cold bool, records iter.Seq2[Record, error]) (*Manager, error) {
	f := new(Follower)
	for r, err := range records {
		if err == nil {
			err = f.Add(r)
		}
		if err != nil {
			return nil, err
		}
		if s := f.jobs[r.Job]; s != nil && cold {
			s.cool()
		}
	}
	m, _, _, err := f.load(now, cfg)
	return m, err
}

// Warm returns how many jobs of a Follower, that are not over, need no fold at a takeover.
func (f *Follower) Warm() (n int) {
	for _, s := range f.jobs {
		if s.life != nil {
			n++
		}
	}
	return n
}

// Held returns how many entries a Follower has.
func (f *Follower) Held() int {
	return len(f.jobs) + len(f.over) + len(f.tombs) + len(f.queues) + len(f.keys.of)
}

// Describe returns in text all of a Manager that is in the records.
func Describe(m *Manager) string {
	var b strings.Builder
	fmt.Fprintf(&b, "watermark %v floor %v\n", m.index.Watermark(), m.purger.idFloor)
	for _, name := range slices.Sorted(maps.Keys(m.queues)) {
		fmt.Fprintf(&b, "queue %q %+v\n", name, m.queues[name].kept)
	}
	for _, id := range slices.Sorted(maps.Keys(m.keys.of)) {
		fmt.Fprintf(&b, "key %+v of %v %v\n", m.keys.of[id], id, m.keys.jobs[m.keys.of[id]])
	}
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[id]
		fmt.Fprintf(&b, "job %v %v: %v\nfreed %v done %v draining %v\n%s%s%s\n", id, j.state, j.life.Holds(), j.life.Freed(), j.life.Done(), j.life.Draining(), m.pending(j, RecordEvent), m.pending(j, RecordHousekeeping), j.request())
		if j.r != nil {
			fmt.Fprintf(&b, "%s\n", j.r)
		}
	}
	for rec := range m.index.All() {
		fmt.Fprintf(&b, "inactive %s\n", textOf(rec))
	}
	var tombs []string
	for rec := range m.index.Tombstones() {
		tombs = append(tombs, string(textOf(rec)))
	}
	if m.cfg.TombstoneCount.Set {
		tombs = nil // which of them are left depends on when batches ended
	}
	fmt.Fprintf(&b, "tombstones %q\n", tombs)
	return b.String()
}

// pending returns a log of a job, what is not durable included.
func (m *Manager) pending(j *job, kind RecordKind) []byte {
	log := bytes.Clone(*m.logOf(j.id, kind))
	for _, r := range slices.Concat(m.sent.Append, m.out.Append) {
		if r.Job == j.id && r.Kind == kind {
			log = append(log, r.Data...)
		}
	}
	return log
}

// DescribeAll is Describe and what is not in the records: what a refusal must not
// change.
func DescribeAll(m *Manager) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%v exec %v waits %d dead %v stopping %v %v timers %d posts %d dirty %d\n", Describe(m), m.now, m.exec.on, m.waits.len(), m.dead,
		m.shutdown.begun, m.shutdown.at, m.timers.tree.Len(), m.posts.len(), m.dirty.len())
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[id]
		fmt.Fprintf(&b, "job %v: %v start %v queued %v later %v priority %d %v notes %s\n", id, j.life, j.start, j.queued, j.later, j.computed, j.ranked, j.rareCopy().notes)
	}
	for _, name := range slices.Sorted(maps.Keys(m.queues)) {
		fmt.Fprintf(&b, "queue %q %+v\n", name, m.queues[name].now)
	}
	fmt.Fprintf(&b, "queue %+v\n", m.sched.queue.Stats())
	for info := range m.sched.queue.All() {
		fmt.Fprintf(&b, "queued %v\n", info)
	}
	p := &m.purger
	_, busy := m.index.Claimed()
	fmt.Fprintf(&b, "%v %d offline %v purges %d %v %v %d %v\n", m.sched.queue.Phase(), len(m.out.Append), m.offline, p.asked.len(), busy, p.asking, p.gone, p.limits)
	m.allocations.Each(func(job jobid.ID, rank uint32, kind string, id uint32) {
		fmt.Fprintf(&b, "%v has rank%d/%s%d\n", job, rank, kind, id)
	})
	return b.String()
}

// Audit returns what is wrong with the indexes of a Manager between Steps.
func Audit(m *Manager) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	n, acting := 0, 0
	for i, l := range m.lists {
		for pos, j := range l {
			n++
			if j.acting {
				acting++
			}
			if j.acting != j.life.Running() {
				bad("%v acts: %v", j.id, j.acting)
			}
			if int(j.pos) != pos || stateIndex(j.state) != i || m.jobs[j.id] != j {
				bad("list %d: %v is at %d, and says %d of %v", i, j.id, pos, j.pos, j.state)
			}
		}
	}
	if acting != m.acting {
		bad("%d jobs act, and the count is %d", acting, m.acting)
	}
	if n != len(m.jobs) {
		bad("%d jobs in lists, %d in all", n, len(m.jobs))
	}
	queued := make(map[jobid.ID]bool)
	for info := range m.sched.queue.All() {
		queued[info.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[id]
		if j.job().State() != j.state {
			bad("%v is in %v, and the list says %v", id, j.job().State(), j.state)
		}
		if n := len(m.pending(j, RecordEvent)); int(j.size) != n && !m.volatile {
			bad("%v has a log of %d bytes, and says %d", id, n, j.size)
		}
		if j.queued != queued[id] {
			bad("%v queued: %v, and the queue says %v", id, j.queued, queued[id])
		}
		delete(queued, id)
		at, ok := j.life.Deadline()
		if ok != (j.rareCopy().timer.at != 0) || ok && at != j.rareCopy().timer.at {
			bad("%v: deadline %v, timer %v", id, at, j.rareCopy().timer.at)
		}
		_, inactive := m.index.Lookup(id)
		if inactive != (j.state == jobstate.StateInactive) {
			bad("%v in %v: the index has it: %v", id, j.state, inactive)
		}
		if pins := m.index.Pins(id); inactive && !slices.Contains(pins, purge.Pin{Kind: purge.PinHousekeeping}) {
			bad("%v has no pin", id)
		}
	}
	for id := range queued {
		bad("%v is queued, and is no job", id)
	}
	m.auditAllocations(bad)
	if m.dirty.len()+m.posts.len() > 0 {
		bad("%d jobs and %d posts are not settled", m.dirty.len(), m.posts.len())
	}
	m.waits.byJob.Ascend(func(w wait) bool {
		if w.ID != 0 && m.jobs[w.ID] == nil {
			bad("there are waits for %v, which is no job", w.ID)
		}
		if !m.waits.byTag.Has(w) {
			bad("the wait %+v is not found by its tag", w)
		}
		return true
	})
	if n := m.waits.byTag.Len(); n != m.waits.len() {
		bad("%d waits, %d by their tags", m.waits.len(), n)
	}
	return errors.Join(errs...)
}

// auditAllocations tells where the allocations are not what jobs hold, resource by resource, and
// where two hold the same.
func (m *Manager) auditAllocations(bad func(format string, args ...any)) {
	type place struct {
		rank, id uint32
		kind     string
	}
	holds := make(map[place]jobid.ID)
	for _, h := range m.quarantine.allHoldings(&m.jobTable) {
		for e := range heldOf(h).Entries() {
			for rank := range e.Ranks.All() {
				for kind, ids := range e.Children {
					for id := range ids.All() {
						p := place{rank, id, kind}
						if holds[p] != 0 {
							bad("I1: %v and %v hold %v", holds[p], h.ID, p)
						}
						holds[p] = h.ID
					}
				}
			}
		}
	}
	next := uint32(0)
	m.allocations.tree.Ascend(func(s stretch) bool {
		if s.first < next || s.last < s.first {
			bad("ranks %d to %d are booked, and those up to %d before", s.first, s.last, next)
		}
		next = s.last + 1
		return true
	})
	m.allocations.Each(func(job jobid.ID, rank uint32, kind string, id uint32) {
		p := place{rank, id, kind}
		if holds[p] != job {
			bad("%v is booked for %v, and %v holds it", p, job, holds[p])
		}
		delete(holds, p)
	})
	for p, id := range holds {
		bad("%v holds %v, which is not booked", id, p)
	}
}

// NewAllocations returns an index of who holds what, for tests of it alone.
func NewAllocations() *allocations { b := newAllocations(); return &b }

func (b *allocations) Add(id jobid.ID, r *rset.R)            { b.add(id, r) }
func (b *allocations) Remove(id jobid.ID, r *rset.R)         { b.remove(id, r) }
func (b *allocations) Conflict(id jobid.ID, r *rset.R) error { return b.conflict(id, r) }

// Each calls f with all that is booked.
func (b *allocations) Each(f func(job jobid.ID, rank uint32, kind string, id uint32)) {
	b.tree.Ascend(func(s stretch) bool {
		for h := s.held; h != nil; h = h.next {
			for _, k := range h.what.Kinds() {
				for id := range k.IDs.All() {
					for rank := s.first; rank <= s.last; rank++ {
						f(h.job, rank, k.Name, id)
					}
				}
			}
		}
		return true
	})
}

// Idle reports whether all that a Manager decided was handed out and done.
func Idle(m *Manager) bool { return !m.busy && m.out.isEmpty() }

// HasJobspec reports whether the jobspec is in memory, and not its text alone.
func (v View) HasJobspec() bool { return v.j.spec != nil }

// Lines returns entries as the Manager writes them, and how eventlog does.
func Lines(list []eventlog.Entry) (fast, plain []byte, same []bool) {
	var f frame
	for _, e := range list {
		n := len(fast)
		var ok bool
		var err error
		if fast, ok, err = f.line(fast, &e); err != nil {
			fast = fast[:n]
		}
		if end := len(fast) - len("}\n"); ok && err == nil && !bytes.Equal(fast[end-len(e.Context):end], e.Context) {
			panic("the context is not where it is said to be")
		}
		plain, _ = eventlog.AppendEntry(plain, e)
		same = append(same, ok)
	}
	return fast, plain, same
}
