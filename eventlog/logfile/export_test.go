package logfile

// Op, Name and Offset are what an error of an operation tells.
func (e *opError) Op() string    { return e.op }
func (e *opError) Name() string  { return e.name }
func (e *opError) Offset() int64 { return e.offset }

// Error is what every error of an operation is.
type Error = opError

// DefaultMaxBatch is the default of Options.MaxBatch.
const DefaultMaxBatch = defaultMaxBatch

// ErrCount is the cause of a count that cannot be.
var ErrCount = errCount
