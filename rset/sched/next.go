package sched

import (
	"errors"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// Next returns the Scheduler of the next session with a manager in the same program, which
// has said hello already: with the configuration and the inventory as they are, and with the
// jobs of the hello alone. It ends this session. The error joins what Handle and EndHello
// return; if EndHello failed, nothing starts, and the manager has to say hello again. Without
// an inventory it is ErrNotReady, and the Scheduler is the same.
func (s *Scheduler) Next(hello alloc.Announcement) (*Scheduler, error) {
	s.enter()
	if s.pool == nil {
		return s, errNoInventory()
	}
	s.End()
	next := New(s.cfg)
	next.quiet = s.quiet
	all := s.pool.Inventory()
	err := next.Acquire(pool.Acquire{Resources: all, Change: pool.Change{
		Up: idset.Difference(all.Ranks(), s.pool.Down().Ranks()),
	}})
	next.now, next.scheduling = s.now, s.scheduling
	for _, h := range hello.Responses {
		err = errors.Join(err, next.Handle(h))
	}
	_, fault := next.EndHello()
	return next, errors.Join(err, fault)
}

// End ends the session, such as when the manager refuses a response: from then on Handle drops
// messages, EndHello fails, and Decide returns nothing. It reports whether the session had not
// ended.
func (s *Scheduler) End() bool {
	s.enter()
	ended := s.ended
	s.ended, s.ready, s.out = true, false, nil
	return !ended
}
