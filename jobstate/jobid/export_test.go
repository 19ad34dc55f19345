package jobid

import "strconv"

// FormatKVS is the form of KVSPath.
const FormatKVS = formatKVS

// String tells the formats apart in the names of tests.
func (f Format) String() string { return "format " + strconv.Itoa(int(f)) }

// Timestamp returns the milliseconds of an id.
func (id ID) Timestamp() uint64 { return id.millis() }

// Generator returns the id of the generator of an id.
func (id ID) Generator() uint16 { return id.generator() }

// Sequence returns the place of an id in its millisecond.
func (id ID) Sequence() uint16 { return id.sequence() }
