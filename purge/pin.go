package purge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/jobstate/jobid"
)

const (
	// MaxPins is how many pins a job has at most.
	MaxPins = 1000
	// MaxPinner is the greatest length of Pin.By in bytes.
	MaxPinner = 256
)

// A PinKind says for what a job is kept. Any number is one; those without a name
// are the embedder's.
type PinKind uint8

// The kinds of pins.
const (
	Housekeeping PinKind = iota + 1 // its nodes are not all back
	Waiter                          // somebody has not yet been told its result
	Dependent                       // a job depends on it
)

// pinNames are the texts of the kinds.
var pinNames = [...]string{"", "housekeeping", "waiter", "dependency"}

// String returns the name of k, or text like "PinKind(200)".
func (k PinKind) String() string {
	if k == 0 || int(k) >= len(pinNames) {
		return "PinKind(" + strconv.Itoa(int(k)) + ")"
	}
	return pinNames[k]
}

// A Pin keeps a job from being purged. A job may have several, which differ in
// the kind or in whose they are; only when the last one is gone may the job go.
type Pin struct {
	Kind PinKind
	By   string // whose the pin is; may be empty
}

// String returns the kind and, quoted, whose the pin is.
func (p Pin) String() string {
	if p.By == "" {
		return p.Kind.String()
	}
	return p.Kind.String() + " " + quoted(p.By)
}

// comparePins is the order of the pins of a job.
func comparePins(a, b Pin) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.By, b.By))
}

// Pin puts a pin on a resident job, and reports whether the job did not have it
// before. A plan that was made before does not remove the job any more. It costs
// O(log n), and what copying the job's other pins does.
//
// An error is an *ExcessError, if that is one pin too many or By is too long, or
// a *JobError of category ErrUnknown, ErrActive, ErrPurged, or ErrLeaving: then
// the store is about to remove the job.
func (x *Index) Pin(id jobid.ID, p Pin) (bool, error) {
	if len(p.By) > MaxPinner {
		return false, &ExcessError{What: "bytes of a pinner", Got: len(p.By), Limit: MaxPinner}
	}
	at, err := x.find(id)
	if err != nil {
		return false, err
	}
	if x.jobs.where(at) == whereLeaving {
		return false, &JobError{ID: id, Err: ErrLeaving}
	}
	pins := x.pins[id]
	i, ok := slices.BinarySearchFunc(pins, p, comparePins)
	if ok {
		return false, nil
	}
	if len(pins) == MaxPins {
		return false, &ExcessError{What: "pins", Got: len(pins) + 1, Limit: MaxPins}
	}
	if x.pins == nil {
		x.pins = make(map[jobid.ID][]Pin)
	}
	p.By = strings.Clone(p.By)
	x.pins[id] = slices.Insert(pins, i, p)
	if len(pins) == 0 {
		x.free.remove(at)
		x.jobs.move(at, wherePinned)
		x.pinned.add(&x.jobs, at)
		x.gen++
	}
	return true, nil
}

// Unpin takes a pin off a resident job, and reports whether the job had it. An
// error is a *JobError of category ErrUnknown, ErrActive or ErrPurged.
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
	x.jobs.move(at, whereFree)
	x.free.add(&x.jobs, at)
	x.gen++
	return true, nil
}

// Pins returns the pins of a job in their order: by kind, then by name. It
// returns nil for a job that has none or is not resident.
func (x *Index) Pins(id jobid.ID) []Pin { return slices.Clone(x.pins[id]) }
