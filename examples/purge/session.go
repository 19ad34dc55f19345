package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// A session is a store, and the index of what it has.
type session struct {
	out    *bufio.Writer
	stderr io.Writer
	store  jobStore
	index  *purge.Index
	now    eventlog.Timestamp
	last   []purge.Record // of the last batch that went
}

// show is a whole session: a restart, and what the options ask for.
func show(o options, out *bufio.Writer, stderr io.Writer) (err error) {
	s := &session{out: out, stderr: stderr, now: eventlog.FromTime(now)}
	if s.store, err = openStore(o, stderr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	if err := s.restart(o.pin); err != nil {
		return err
	}
	s.table("BEFORE")
	if o.step != 0 {
		s.step(o.step, o.limits)
	}
	switch {
	case len(o.ids) > 0:
		err = s.purgeIDs(o.ids, o.force)
	case o.force:
		err = s.purge(o.limits)
	default:
		return s.dryRun(o.limits)
	}
	if o.force {
		fmt.Fprintln(out)
		s.table("AFTER")
		s.tombstones()
	}
	return err
}

// restart makes the index of what the store has. Pins are not stored: their owners
// put them on again.
func (s *session) restart(pins int) error {
	ev, damaged, err := s.store.Evidence()
	if err != nil {
		return err
	}
	for _, err := range damaged {
		fmt.Fprintln(s.stderr, "purge: passed over:", err)
	}
	ev.Now = s.now
	s.index, err = purge.Recover(purge.Config{Purged: s.purged}, ev)
	if err != nil {
		return err
	}
	oldest := make([]purge.Record, 0, pins)
	for r := range s.index.All() {
		if len(oldest) == pins {
			break
		}
		oldest = append(oldest, r)
	}
	for i, r := range oldest {
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

// purged is called for each batch: a cache drops what it keeps of these jobs.
func (s *session) purged(p purge.Plan) { s.last = p.Tombstones }

// dryRun tells what a purge by the limits would do. Its plan is the one that a
// purge would go by, so what is announced and what goes cannot differ.
func (s *session) dryRun(l purge.Limits) error {
	whole, err := s.whole(s.now, l)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n%d jobs would go by %s:\n", len(whole.Jobs), describe(l))
	s.jobs(whole)
	fmt.Fprintln(s.out, "\nuse -force to purge them")
	return nil
}

// whole returns a plan of all jobs that go by the limits, in any number of batches.
func (s *session) whole(now eventlog.Timestamp, l purge.Limits) (purge.Plan, error) {
	l.Batch = purge.NoBatch
	return s.index.Plan(now, l)
}

// purge purges batch by batch until nothing follows. In a daemon each Tick is a
// heartbeat, with other work in between.
func (s *session) purge(l purge.Limits) error {
	runner, err := purge.NewRunner(s.index, s.store, l)
	if err != nil {
		return err
	}
	whole, err := s.whole(s.now, l)
	if err != nil {
		return err
	}
	step, done := bar(s.stderr, "purging", len(whole.Jobs))
	defer done()
	for more := true; more; {
		p, err := runner.Tick(context.Background(), s.now)
		if err != nil {
			return err
		}
		step(len(p.Jobs))
		more = p.More
	}
	return nil
}

// purgeIDs purges jobs one by one, and tells why one does not go.
func (s *session) purgeIDs(ids []jobid.ID, force bool) error {
	runner, err := purge.NewRunner(s.index, s.store, purge.Limits{})
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	refused := 0
	for _, id := range ids {
		if force {
			_, err = runner.PurgeIDs(context.Background(), s.now, id)
		} else {
			_, err = s.index.PlanIDs(s.now, id)
		}
		switch {
		case err != nil:
			refused++
			fmt.Fprintf(s.out, "%v: it stays: %v\n", id, errors.Unwrap(err))
		case force:
			fmt.Fprintf(s.out, "%v: it went\n", id)
		default:
			fmt.Fprintf(s.out, "%v: it would go with -force\n", id)
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d jobs stay", refused, len(ids))
	}
	return nil
}

// step shows what a clock that steps does: nothing.
func (s *session) step(d time.Duration, l purge.Limits) {
	p, err := s.whole(s.now+eventlog.Timestamp(d.Seconds()), l)
	if err != nil {
		fmt.Fprintf(s.out, "\nafter a step by %v:\n%v\n", d, err)
		return
	}
	fmt.Fprintf(s.out, "\nafter a step by %v, which is believed: %d jobs would go\n", d, len(p.Jobs))
}

// tombstones shows what the last jobs that went still answer.
func (s *session) tombstones() {
	if len(s.last) > 0 {
		fmt.Fprintln(s.out, "\nTOMBSTONES still answer dependencies:")
	}
	for i, r := range s.last {
		if i == 3 {
			return
		}
		answers := ""
		for d := purge.DependencyAfter; d <= purge.DependencyAfterNotOK; d++ {
			if r.Satisfies(d) {
				answers += " " + d.String()
			}
		}
		fmt.Fprintf(s.out, "%v %v:%s\n", r.ID, r.Result, answers)
	}
}
