package archive

import (
	"cmp"
	"math"

	"github.com/joblife/joblife/jobstate/jobid"
)

// Limits bounds what Walk reads and keeps. A field of zero or less means the default.
type Limits struct {
	// Bytes is the maximum uncompressed size, 4 GiB by default. It bounds the time of reading.
	Bytes int64
	// HeldBytes is the maximum size of what is kept: the keys of one job, the paths of
	// failures, and 256 bytes for each of these, 1 GiB by default. Checkpoints of the job
	// manager count as if all were kept.
	HeldBytes int64
	// FileBytes is the maximum size of one key, 64 MiB by default. A larger one is a Failure.
	FileBytes int64
	// Entries is the maximum of jobs and of failures without one, together, 2^20 by default.
	Entries int
	// Ratio is the maximum number of uncompressed bytes for each byte of the input,
	// 64 by default, beyond the first 8 MiB. Half as many may be kept.
	Ratio int64
}

// freeBytes is what Ratio does not limit.
const freeBytes = 8 << 20

// backed returns how many bytes an input of so many bytes stands for.
func (l *Limits) backed(input int64) int64 {
	if input > (math.MaxInt64-freeBytes)/l.Ratio {
		return math.MaxInt64 - freeBytes
	}
	return input * l.Ratio
}

func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(max(l.Bytes, 0), 4<<30)
	l.HeldBytes = cmp.Or(max(l.HeldBytes, 0), 1<<30)
	l.FileBytes = cmp.Or(max(l.FileBytes, 0), 64<<20)
	l.Entries = cmp.Or(max(l.Entries, 0), 1<<20)
	l.Ratio = cmp.Or(max(l.Ratio, 0), 64)
	return l
}

// Job is one job of an archive. The slices belong to the caller.
type Job struct {
	ID jobid.ID
	// Eventlog begins with the event submit. [Archive] Failures says what else was checked.
	Eventlog []byte
	// Jobspec is not checked. It is never nil, and may be empty.
	Jobspec []byte
	// R is the resource set, nil if there is none. The job got it if its log has the event alloc.
	R []byte
	// ExecEventlog is the execution eventlog (RFC 50), nil if there is none.
	ExecEventlog []byte
}

// Archive is what Walk says of a dump archive, beside the jobs that it gave.
type Archive struct {
	// Failures are the jobs that cannot be used, one Failure each, and the keys that
	// could not be read, by path. A job fails if its id is malformed, its eventlog or
	// jobspec is missing or cannot be read, its log does not begin with submit,
	// or it was never validated: submit names a version of the log and no event
	// validate follows. Logs without a version are older than that event.
	Failures []*Failure

	maxID  jobid.ID
	hasMax bool
}

// MaxID returns the largest job id in the archive, in the checkpoint of the job
// manager or of a job, failed jobs included; false if there is none. An instance
// that continues from the archive must give out only larger ids.
func (a *Archive) MaxID() (jobid.ID, bool) { return a.maxID, a.hasMax }

// note takes an id into account for MaxID.
func (a *Archive) note(id jobid.ID) {
	a.maxID, a.hasMax = max(a.maxID, id), true
}
