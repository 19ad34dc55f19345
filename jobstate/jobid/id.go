package jobid

import "time"

// Fields of an id, from the most significant bit: RFC 19, "Implementation".
const (
	timestampBits = 40
	generatorBits = 14
	sequenceBits  = 10

	generatorShift = sequenceBits
	timestampShift = sequenceBits + generatorBits

	maxTimestamp = 1<<timestampBits - 1
	maxGenerator = 1<<generatorBits - 1
	maxSequence  = 1<<sequenceBits - 1
)

// ID is a job id, a FLUID. The smaller one is the older one: exactly if one generator made
// both, and otherwise to the millisecond.
//
// Every value is an id. A [Generator] never makes the zero value, ƒ1, so that it can mean
// "none". The largest value means "any job" in Flux's own interfaces.
//
// The verb %d of package fmt prints an id as a decimal, %v and %s as F58.
type ID uint64

// millis returns when id was made, in milliseconds since the instance's epoch.
func (id ID) millis() uint64 { return uint64(id) >> timestampShift }

// generator returns the id of the generator that made id.
func (id ID) generator() uint16 { return uint16(uint64(id) >> generatorShift & maxGenerator) }

// sequence returns the place of id, from 0, among those that its generator made in one millisecond.
func (id ID) sequence() uint16 { return uint16(uint64(id) & maxSequence) }

// Time returns when id was made, to the millisecond, by its generator's epoch and in its location.
func (id ID) Time(epoch time.Time) time.Time {
	// 2^40 ms are 35 years and fit in a Duration, which holds 292.
	return epoch.Add(time.Duration(id.millis()) * time.Millisecond)
}
