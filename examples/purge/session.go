package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/bar"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/boltstore"
)

// A session is a store, and the index of what it has.
type session struct {
	out    *bufio.Writer
	stderr io.Writer
	store  *boltstore.Store
	index  *purge.Index
	now    eventlog.Timestamp
	last   []jobstate.Summary // of the last batch that went
}

// show is a whole session: a restart, and what the options ask for.
func show(o options, out *bufio.Writer, stderr io.Writer) (err error) {
	if o.store == "" {
		dir, err := os.MkdirTemp("", "purge")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.store = filepath.Join(dir, "jobs.db")
	}
	s := &session{out: out, stderr: stderr, now: eventlog.FromTime(now)}
	if err := s.open(o); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if err := s.restart(o.pin); err != nil {
		return err
	}
	s.printStats("BEFORE")
	fmt.Fprintln(out)
	switch {
	case len(o.ids) > 0:
		err = s.purgeIDs(o.ids, o.force)
	case o.force:
		err = s.purge(o.limits)
	default:
		err = s.dryRun(o.limits)
	}
	if o.force {
		s.printStats("AFTER")
		s.tombstones()
	}
	return err
}

// open opens the store. One that is new gets made-up jobs. A dry run only reads.
func (s *session) open(o options) (err error) {
	_, err = os.Stat(o.store)
	if err == nil && !o.force {
		s.store, err = boltstore.OpenReadOnly(o.store)
		return err
	}
	isNew := errors.Is(err, fs.ErrNotExist)
	if s.store, err = boltstore.Open(o.store); err != nil || !isNew {
		return err
	}
	jobs, err := draw(o.jobs, o.seed)
	step, done := bar.Start(s.stderr, "writing", len(jobs))
	defer done()
	for batch := range slices.Chunk(jobs, 1000) {
		if err == nil {
			err = s.store.Append(batch)
		}
		step(len(batch))
	}
	if err != nil {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

// restart makes the index of what the store has. Pins are not stored: their owners
// put them on again.
func (s *session) restart(pins int) error {
	ev, damaged, err := s.store.Snapshot()
	if err != nil {
		return err
	}
	for _, err := range damaged {
		if stop := (*jobstate.EventError)(nil); errors.As(err, &stop) {
			err = fmt.Errorf("job %v, %s", stop.ID, lines.Why(stop))
		}
		fmt.Fprintf(s.stderr, "purge: skipped: %s\n", strings.TrimPrefix(err.Error(), "boltstore: "))
	}
	ev.Now = s.now
	if s.index, err = purge.Recover(purge.Config{}, ev); err != nil {
		return err
	}
	oldest := slices.Collect(s.index.All())
	for i, r := range oldest[:min(pins, len(oldest))] {
		pin := [...]purge.Pin{
			{Kind: purge.PinHousekeeping, By: fmt.Sprintf("node%d", i)},
			{Kind: purge.PinWaiter, By: fmt.Sprintf("user%d", i)},
			{Kind: purge.PinDependency, By: s.index.Watermark().String()},
		}[i%3]
		if _, err := s.index.Pin(r.ID, pin); err != nil {
			return err
		}
	}
	return nil
}

// whole returns a plan of all jobs that the limits purge, in one batch.
func (s *session) whole(l purge.Limits) (purge.Plan, error) {
	l.Batch = purge.NoBatch
	return s.index.Plan(s.now, l)
}

// dryRun prints what a purge by the limits would do. A purge starts from the same
// plan, so what is printed and what is purged cannot differ.
func (s *session) dryRun(l purge.Limits) error {
	whole, err := s.whole(l)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%d jobs would be purged by %s:\n", len(whole.Jobs), describe(l))
	s.printPlan(whole)
	fmt.Fprintln(s.out, "\nuse -force to purge them")
	return nil
}

// purge purges batch by batch until nothing follows. A daemon does other work in between.
func (s *session) purge(l purge.Limits) error {
	whole, err := s.whole(l)
	if err != nil {
		return err
	}
	step, done := bar.Start(s.stderr, "purging", len(whole.Jobs))
	defer done()
	for more := true; more; {
		p, err := s.index.Claim(s.now, l)
		if err == nil {
			more, err = p.More, s.carryOut()
		}
		if err != nil {
			return err
		}
		step(len(p.Jobs))
	}
	return nil
}

// carryOut has the store remove the batch. A cache would drop what it keeps of these jobs.
func (s *session) carryOut() error {
	p, err := purge.CarryOut(context.Background(), s.index, s.store)
	if len(p.Jobs) > 0 {
		s.last = p.Tombstones
	}
	return err
}

// purgeIDs purges jobs one by one, and prints why one stays.
func (s *session) purgeIDs(ids []jobid.ID, force bool) error {
	refused := 0
	for _, id := range ids {
		what, plan := "would be purged with -force", s.index.PlanIDs
		if force {
			what = "purged"
			plan = func(ids ...jobid.ID) (purge.Plan, error) { return s.index.ClaimIDs(s.now, ids...) }
		}
		_, err := plan(id)
		if err == nil {
			err = s.carryOut() // of nothing in a dry run
		}
		if err != nil {
			refused++
			what = fmt.Sprint("stays: ", errors.Unwrap(err))
		}
		fmt.Fprintf(s.out, "%v: %s\n", id, what)
	}
	if force {
		fmt.Fprintln(s.out)
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d jobs stay: standard output says why", refused, len(ids))
	}
	return nil
}

// tombstones shows what the last jobs that went still answer.
func (s *session) tombstones() {
	if len(s.last) > 0 {
		fmt.Fprintln(s.out, "\nTOMBSTONES still answer dependencies:")
	}
	for _, r := range s.last[:min(3, len(s.last))] {
		fmt.Fprintf(s.out, "%v %v, started: %v\n", r.ID, r.Result, r.Ran)
	}
}
