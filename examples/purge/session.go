package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// A session is an instance with inactive jobs, and somebody who looks at it.
type session struct {
	out    *bufio.Writer
	stderr io.Writer

	index  *purge.Index
	store  purge.Store
	close  func() error        // of the store
	active map[jobid.ID]string // the states of the jobs that have not ended
	limits purge.Limits
	typed  bool // somebody gives commands
	now    eventlog.Timestamp
	heap   int64 // the memory that was in use without the index

	first purge.Job             // that was ever purged
	gone  map[outcome]purge.Job // the last with each outcome that was purged
}

// An outcome is how a job ended.
type outcome struct {
	result purge.Result
	ran    bool
}

// newSession makes up the jobs, in memory or in a new directory, or takes those
// of a directory. From there on it is a restart: the index is made of what the
// store has, and whoever had pins puts them on again.
func newSession(o options, out *bufio.Writer, stderr io.Writer) (*session, error) {
	s := &session{out: out, stderr: stderr, limits: o.limits, typed: o.interactive, gone: map[outcome]purge.Job{}}
	started := time.Now()
	s.heap = heap()
	f, err := openStore(o, stderr)
	if err != nil {
		return nil, err
	}
	s.store, s.active, s.close = f.store, f.active, f.close
	s.index, err = purge.Recover(purge.Config{
		Active: func(id jobid.ID) (string, bool) { state, ok := s.active[id]; return state, ok },
		Purged: s.purged,
	}, f.evidence)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	// The latest time that the index knows of is that of the newest job, which may
	// be long ago. At its start a daemon has nothing better than its clock.
	s.now = eventlog.FromTime(now)
	for _, j := range f.evidence.Jobs {
		s.now = max(s.now, j.Inactive) // others may have used the directory
	}
	if err := s.index.AcceptClock(s.now); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := s.pinOldest(o.pin); err != nil {
		return nil, errors.Join(err, s.close())
	}
	f.evidence = purge.Evidence{} // the index has its own copy
	s.measured(f.how, s.index.Len(), started)
	return s, nil
}

// measured tells on standard error what differs from run to run.
func (s *session) measured(done string, n int, started time.Time) {
	took := time.Since(started).Round(time.Millisecond)
	st := s.index.Stats()
	fmt.Fprintf(s.stderr, "purge: %s %s in %v; the index of %d and %d tombstones takes %d kB\n",
		plural(n), done, took, s.index.Len(), st.Tombstones, max(0, heap()-s.heap)/1000)
}

// heap returns how much memory is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// purged is told of each batch: whoever keeps anything by job drops it here.
func (s *session) purged(n purge.Notice) {
	if s.first.ID == 0 {
		s.first = n.Jobs[0].Job
	}
	for _, c := range n.Jobs {
		s.gone[outcome{c.Result, c.Ran}] = c.Job
	}
}

// pinOldest pins the n oldest jobs, each for one of the three reasons.
func (s *session) pinOldest(n int) error {
	if n == 0 {
		return nil
	}
	waiting := s.index.Watermark()
	for _, id := range slices.Sorted(maps.Keys(s.active)) {
		if s.active[id] == activeStates[0].name {
			waiting = id
		}
	}
	for i, k := range s.oldest(n) {
		pin := purge.Pin{Kind: purge.Housekeeping, By: fmt.Sprintf("node%d", i)}
		switch i % 3 {
		case 1:
			pin = purge.Pin{Kind: purge.Waiter, By: fmt.Sprintf("user%d", i)}
		case 2:
			pin = purge.Pin{Kind: purge.Dependent, By: waiting.String()}
		}
		if _, err := s.index.Pin(k.ID, pin); err != nil {
			return err
		}
	}
	return nil
}

// oldest returns the n oldest jobs, 1 to purge.MaxBatch, with their pins. The
// index has no list of its jobs, but the dry run of a purge of all is one.
func (s *session) oldest(n int) []purge.Kept {
	p := s.everything(n)
	all := p.Pinned
	for _, c := range p.Jobs {
		all = append(all, purge.Kept{Job: c.Job})
	}
	slices.SortFunc(all, func(a, b purge.Kept) int { return compare(a.Job, b.Job) })
	return all[:min(n, len(all))]
}

// everything is the dry run of a purge of all jobs.
func (s *session) everything(batch int) purge.Plan {
	l := purge.PurgeAll()
	l.Batch = batch
	p, err := s.index.Plan(s.now, l)
	if err != nil {
		panic(err) // the index accepted s.now
	}
	return p
}

// ends returns the oldest and the newest job.
func (s *session) ends() (oldest, newest purge.Job, ok bool) {
	p := s.everything(purge.NoBatch)
	var ends []purge.Job
	if n := len(p.Jobs); n > 0 {
		ends = append(ends, p.Jobs[0].Job, p.Jobs[n-1].Job)
	}
	if n := len(p.Pinned); n > 0 {
		ends = append(ends, p.Pinned[0].Job, p.Pinned[n-1].Job)
	}
	if len(ends) == 0 {
		return oldest, newest, false
	}
	return slices.MinFunc(ends, compare), slices.MaxFunc(ends, compare), true
}

// compare is the order in which jobs go.
func compare(a, b purge.Job) int {
	return cmp.Or(cmp.Compare(a.Inactive, b.Inactive), cmp.Compare(a.ID, b.ID))
}

// demonstrate is the command without -i.
func (s *session) demonstrate(o options) error {
	s.table("BEFORE")
	if o.step != 0 {
		fmt.Fprintln(s.out)
		s.step(o.step)
	}
	fmt.Fprintln(s.out)
	switch {
	case len(o.ids) > 0 && o.force:
		fmt.Fprintln(s.out, "PURGE by id")
		if refused := s.purgeIDs(o.ids); refused > 0 {
			return fmt.Errorf("%d of %d jobs did not go", refused, len(o.ids))
		}
		fmt.Fprintln(s.out)
		s.table("AFTER")
		return nil
	case len(o.ids) > 0:
		return s.dryRunIDs(o.ids)
	}
	if err := s.dryRun("use -force"); err != nil || !o.force {
		return err
	}
	fmt.Fprintln(s.out, "\nPURGE")
	if err := s.purgeByLimits(); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	s.table("AFTER")
	s.tombstones()
	if o.dir == "" { // files are not removed for show
		s.everyRefusal()
	}
	return nil
}

// dryRun tells what a purge by the limits would do. The first plan is what the
// next batch removes, the second has no bound and is only for show.
func (s *session) dryRun(how string) error {
	fmt.Fprintln(s.out, "DRY RUN  limits:", describe(s.limits))
	batch, err := s.index.Plan(s.now, s.limits)
	if err != nil {
		return err
	}
	l := s.limits
	l.Batch = purge.NoBatch
	whole, err := s.index.Plan(s.now, l)
	if err != nil {
		return err
	}
	if len(batch.Jobs) > 0 {
		more := "and nothing follows"
		if batch.More {
			more = fmt.Sprintf("and %d more to follow", len(whole.Jobs)-len(batch.Jobs))
		}
		fmt.Fprintf(s.out, "%s would go with the next batch, %s; oldest first:\n", plural(len(batch.Jobs)), more)
		s.print(batch.Jobs)
	}
	s.printPinned(whole)
	fmt.Fprintf(s.out, "%s to purge %s\n", how, plural(len(whole.Jobs)))
	return nil
}

// dryRunIDs tells what a purge of jobs by id would do.
func (s *session) dryRunIDs(ids []jobid.ID) error {
	fmt.Fprintln(s.out, "DRY RUN  by id")
	refused := 0
	for _, id := range ids {
		p, err := s.index.PlanIDs(s.now, id)
		if err != nil {
			s.refuse(err)
			refused++
		}
		s.print(p.Jobs)
	}
	fmt.Fprintf(s.out, "use -force to purge %s\n", plural(len(ids)-refused))
	if refused > 0 {
		return fmt.Errorf("%d of %d jobs would not go", refused, len(ids))
	}
	return nil
}

// purgeByLimits purges batch by batch until nothing follows. In a daemon each of
// these ticks is a heartbeat.
func (s *session) purgeByLimits() error {
	runner, err := purge.NewRunner(s.index, s.store, s.limits)
	if err != nil {
		return err
	}
	l := s.limits
	l.Batch = purge.NoBatch
	whole, err := s.index.Plan(s.now, l)
	if err != nil {
		return err
	}
	total, purged, batches := len(whole.Jobs), 0, 0
	_ = s.out.Flush() // what was said stands before the bar; run reports the error
	started := time.Now()
	bar := newProgress(s.stderr, "purging", total)
	defer bar.done()
	for more := true; more; {
		p, err := runner.Tick(context.Background(), s.now)
		if err != nil {
			return err
		}
		if purged += len(p.Jobs); len(p.Jobs) > 0 {
			batches++
		}
		more = p.More
		bar.show(purged)
	}
	bar.done()
	s.measured("purged", purged, started)
	fmt.Fprintf(s.out, "purged %s, batches: %d\n", plural(purged), batches)
	return nil
}

// purgeIDs purges jobs one by one, and returns how many were refused.
func (s *session) purgeIDs(ids []jobid.ID) (refused int) {
	runner, err := purge.NewRunner(s.index, s.store, purge.Limits{})
	for _, id := range ids {
		var p purge.Plan
		if err == nil {
			p, err = runner.PurgeIDs(context.Background(), s.now, id)
		}
		if err != nil {
			s.refuse(err)
			refused++
			err = nil
			continue
		}
		s.print(p.Jobs)
	}
	fmt.Fprintf(s.out, "purged %s\n", plural(len(ids)-refused))
	return refused
}

// step shows what a clock that steps does: the dry run is refused. What it would
// have been if the time were believed shows why.
func (s *session) step(d time.Duration) {
	stepped := s.now + eventlog.Timestamp(d.Seconds())
	fmt.Fprintf(s.out, "CLOCK  it is %s, after a step to %s:\n", at(s.now), at(stepped))
	l := s.limits
	l.Batch = purge.NoBatch
	p, err := s.index.Plan(stepped, l)
	if err == nil {
		fmt.Fprintf(s.out, "  a jump of up to %v is believed: %s would go\n", purge.DefaultMaxJump, plural(len(p.Jobs)))
		return
	}
	fmt.Fprintf(s.out, "  %s\n", explain(err))
	for _, t := range []eventlog.Timestamp{stepped, s.now} { // there, and back
		if err := s.index.AcceptClock(t); err != nil {
			fmt.Fprintf(s.out, "  %s\n", explain(err))
			return
		}
		if p, err = s.index.Plan(t, l); t == stepped && err == nil {
			fmt.Fprintf(s.out, "  nothing goes by that time; had somebody said AcceptClock, %s of %d would\n",
				plural(len(p.Jobs)), s.index.Len())
		}
	}
}

// advance lets time pass, as a heartbeat tells it.
func (s *session) advance(d time.Duration, accept bool) error {
	t := s.now + eventlog.Timestamp(d.Seconds())
	tell := s.index.Observe
	if accept {
		tell = s.index.AcceptClock
	}
	if err := tell(t); err != nil {
		return err
	}
	s.now = t
	fmt.Fprintf(s.out, "it is %s\n", at(t))
	return nil
}

func (s *session) pin(id jobid.ID, p purge.Pin) error {
	added, err := s.index.Pin(id, p)
	switch {
	case err != nil:
		return err
	case !added:
		fmt.Fprintf(s.out, "%v had that pin before\n", id)
		return nil
	}
	fmt.Fprintf(s.out, "%v is pinned by: %s\n", id, join(s.index.Pins(id)))
	return nil
}

func (s *session) unpin(id jobid.ID, p purge.Pin) error {
	removed, err := s.index.Unpin(id, p)
	rest := s.index.Pins(id)
	switch {
	case err != nil:
		return err
	case len(rest) > 0 && !removed:
		return fmt.Errorf("%v has no pin %v, but: %s", id, p, join(rest))
	case len(rest) > 0:
		fmt.Fprintf(s.out, "%v is still pinned by: %s\n", id, join(rest))
	case !removed:
		return fmt.Errorf("%v has no pins: nothing keeps it", id)
	default:
		fmt.Fprintf(s.out, "%v may go\n", id)
	}
	return nil
}

// ask tells whether a dependency on a job holds, be it resident or gone.
func (s *session) ask(id jobid.ID) error {
	j, ok := s.index.Ended(id)
	if !ok {
		_, err := s.index.Lookup(id) // tells an active job from an unknown one
		return err
	}
	text := j.Result.String()
	if !j.Ran {
		text += ", never ran"
	}
	if _, err := s.index.Lookup(id); errors.Is(err, purge.ErrPurged) {
		text += ", purged"
	}
	fmt.Fprintf(s.out, "  %-14v %-28s", id, text)
	for _, d := range []purge.Dependency{purge.After, purge.AfterAny, purge.AfterOK, purge.AfterNotOK} {
		answer := "no"
		if j.Satisfies(d) {
			answer = "yes"
		}
		fmt.Fprintf(s.out, " %v: %s", d, answer)
	}
	fmt.Fprintln(s.out)
	return nil
}

// tombstones asks for a purged job of each outcome, and for the first that went.
func (s *session) tombstones() {
	if len(s.gone) == 0 {
		return
	}
	fmt.Fprintln(s.out, "\nTOMBSTONES answer dependencies on jobs that are gone")
	outcomes := slices.SortedFunc(maps.Keys(s.gone), func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.result, b.result), strings.Compare(fmt.Sprint(b.ran), fmt.Sprint(a.ran)))
	})
	for _, o := range outcomes {
		if err := s.ask(s.gone[o].ID); err != nil {
			s.refuse(err)
		}
	}
	if _, ok := s.index.Ended(s.first.ID); !ok {
		fmt.Fprintf(s.out, "  %v was the first to go: only the last %d have tombstones\n", s.first.ID, s.index.Stats().Tombstones)
	}
}

// everyRefusal shows how purges by id are told apart.
func (s *session) everyRefusal() {
	fmt.Fprintln(s.out, "\nBY ID each refusal is an error of its own")
	var ids []jobid.ID
	all := s.everything(purge.NoBatch)
	if n := len(all.Jobs); n > 0 {
		ids = append(ids, all.Jobs[n-1].ID, all.Jobs[n-1].ID) // it goes, but once
	}
	if len(all.Pinned) > 0 {
		ids = append(ids, all.Pinned[0].ID)
	}
	for _, id := range slices.Sorted(maps.Keys(s.active)) {
		if s.active[id] == "RUN" {
			ids = append(ids, id)
		}
	}
	s.purgeIDs(append(ids, s.index.Watermark()+1)) // nobody had this id
}
