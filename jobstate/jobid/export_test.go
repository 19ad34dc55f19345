package jobid

// The errors of a generator that a caller can wait out.
var (
	ErrExhausted = errExhausted
	ErrClock     = errClock
)

// FormatKVS is the form of KVSPath.
const FormatKVS = formatKVS

// String returns the name that Flux's tools have for f.
func (f Format) String() string {
	return [...]string{"f58", "f58plain", "dec", "hex", "dothex", "kvs"}[f]
}

// Timestamp returns the milliseconds of an id.
func (id ID) Timestamp() uint64 { return id.millis() }

// Generator returns the id of the generator of an id.
func (id ID) Generator() uint16 { return id.generator() }

// Sequence returns the place of an id in its millisecond.
func (id ID) Sequence() uint16 { return id.sequence() }
