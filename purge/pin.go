package purge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate/jobid"
)

const (
	maxPins   = 1000 // of a job
	maxPinner = 256  // the greatest length of Pin.By in bytes
)

// A PinKind says why a job is kept. A caller may use other numbers for its own kinds.
type PinKind uint8

// The kinds of pins.
const (
	PinHousekeeping PinKind = iota + 1 // not all of its nodes are free
	PinWaiter                          // a client waits for its result
	PinDependency                      // another job depends on it
)

// String returns the name of k, or text like "PinKind(200)".
func (k PinKind) String() string {
	return guard.Name("PinKind", k, "housekeeping", "waiter", "dependency")
}

// A Pin keeps a job from being purged. A job may have up to 1000 different pins.
type Pin struct {
	Kind PinKind
	By   string // its owner, at most 256 bytes; may be empty
}

// String returns the kind and, quoted, the owner.
func (p Pin) String() string {
	if p.By == "" {
		return p.Kind.String()
	}
	return p.Kind.String() + " " + guard.Quote(p.By)
}

func comparePins(a, b Pin) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.By, b.By))
}

// Pin puts a pin on a resident job, and reports whether the job did not have it. It
// takes O(log n) and a copy of the job's pins.
//
// It returns an error if the job would have too many pins or By is too long, or of
// category ErrUnknown, ErrActive, ErrPurged or ErrLeaving.
func (x *Index) Pin(id jobid.ID, p Pin) (bool, error) {
	if len(p.By) > maxPinner {
		return false, excess("bytes in Pin.By", len(p.By), maxPinner)
	}
	at, err := x.find(id)
	if err != nil {
		return false, err
	}
	if where := x.jobs.where(at); where == whereLeaving || where == whereAnswered {
		return false, jobError(id, ErrLeaving, "")
	}
	pins := x.pins[id]
	i, ok := slices.BinarySearchFunc(pins, p, comparePins)
	if ok {
		return false, nil
	}
	if len(pins) == maxPins {
		return false, excess("pins", len(pins)+1, maxPins)
	}
	if x.pins == nil {
		x.pins = make(map[jobid.ID][]Pin)
	}
	p.By = strings.Clone(p.By)
	x.pins[id] = slices.Insert(pins, i, p)
	if len(pins) == 0 {
		x.withdraw(at)
		delete(x.retries, id)
		x.jobs.move(at, wherePinned)
		x.pinned.add(&x.jobs, at)
	}
	return true, nil
}

// withdraw takes a job out of those that are free or wait.
func (x *Index) withdraw(at slot) {
	switch x.jobs.where(at) {
	case whereFree:
		x.free.remove(at)
	case whereWaiting:
		x.waiting.Delete(x.retries[x.jobs.record(at).ID])
	}
}

// Unpin takes a pin off a resident job, and reports whether the job had it. The
// error has category ErrUnknown, ErrActive or ErrPurged.
func (x *Index) Unpin(id jobid.ID, p Pin) (bool, error) {
	at, err := x.find(id)
	if err != nil {
		return false, err
	}
	pins := x.pins[id]
	i, ok := slices.BinarySearchFunc(pins, p, comparePins)
	if !ok {
		return false, nil
	}
	if len(pins) > 1 {
		x.pins[id] = slices.Delete(pins, i, i+1)
		return true, nil
	}
	delete(x.pins, id)
	x.pinned.remove(at)
	x.setFree(id)
	return true, nil
}

// Pins returns the pins of a job, sorted by kind and owner; nil for a job that has none or
// is not resident.
func (x *Index) Pins(id jobid.ID) []Pin { return slices.Clone(x.pins[id]) }
