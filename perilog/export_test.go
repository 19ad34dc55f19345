package perilog

import (
	"errors"
	"reflect"
)

// Check is check, for tests of other packages' view.
func (j *Job) Check() error { return errors.Join(j.check(), j.holds.scratch.check()) }

// Check is check.
func (h *Holds) Check() error { return errors.Join(h.check(), h.scratch.check()) }

// check returns an error if what Jobs without an allocation share was changed.
func (s *Scratch) check() error {
	if !reflect.ValueOf(&s.nothing).Elem().IsZero() || !reflect.ValueOf(&s.unused).Elem().IsZero() || !reflect.ValueOf(&s.unharmed).Elem().IsZero() {
		return errors.New("perilog: a job changed what it shares with others")
	}
	return nil
}
