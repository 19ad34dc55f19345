package purge

import (
	"strconv"
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
