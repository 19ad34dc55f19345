package archive

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/joblife/joblife/jobstate/jobid"
)

// Limits bounds what Read and Walk read and keep. A field of zero or less means the
// default.
type Limits struct {
	// Bytes is the maximum uncompressed size of the archive, 4 GiB by default.
	// It bounds the time that reading takes.
	Bytes int64
	// HeldBytes is the maximum size of all keys that are kept, with the paths of
	// other keys and of failures, and 256 bytes for each of Entries, 1 GiB by
	// default. It bounds the memory. Walk keeps the keys of one job at a time.
	HeldBytes int64
	// FileBytes is the maximum size of one key that is kept, 64 MiB by default. A
	// larger key is a Failure.
	FileBytes int64
	// Entries is the maximum number of jobs, failures and other keys together,
	// 2^20 by default.
	Entries int
	// Ratio is the maximum number of uncompressed bytes for each byte of the input,
	// 64 by default, beyond the first 8 MiB. Half as many may be kept. So a small
	// file that unpacks to a large one takes little time and memory.
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

// withDefaults returns the limits in force.
func (l Limits) withDefaults() Limits {
	for _, f := range [...]struct {
		field    *int64
		fallback int64
	}{
		{&l.Bytes, 4 << 30},
		{&l.HeldBytes, 1 << 30},
		{&l.FileBytes, 64 << 20},
		{&l.Ratio, 64},
	} {
		if *f.field <= 0 {
			*f.field = f.fallback
		}
	}
	if l.Entries <= 0 {
		l.Entries = 1 << 20
	}
	return l
}

// Job is one job of an archive. The slices belong to the caller.
type Job struct {
	ID jobid.ID
	// Eventlog begins with the event submit. [Archive] Failures says what else was
	// checked.
	Eventlog []byte
	// Jobspec is not checked. It is never nil, and may be empty.
	Jobspec []byte
	// R is the resource set, nil if there is none. The job got it only if its
	// eventlog has the event alloc.
	R []byte
	// ExecEventlog is the execution eventlog (RFC 50), nil if there is none.
	ExecEventlog []byte
}

// Archive is the contents of a dump archive.
type Archive struct {
	// Jobs are the jobs that can be used, by ascending id; none after Walk.
	Jobs []Job
	// Failures are the other jobs, one Failure each, and the keys that could not
	// be read, by path. A job fails if its id is malformed, its eventlog or
	// jobspec is missing or cannot be read, its log does not begin with submit,
	// or it was never validated: submit names a version of the log and no event
	// validate follows. Logs without a version are older than that event.
	Failures []*Failure

	others map[string][]byte
	maxID  jobid.ID
	hasMax bool
}

// Key returns the value of a key that is not a job's, such as "resource/R", and
// whether there is one. The slice belongs to the Archive; do not change it.
func (a *Archive) Key(path string) ([]byte, bool) {
	v, ok := a.others[path]
	return v, ok
}

// Keys yields the paths of the keys that are not a job's, sorted.
func (a *Archive) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, path := range slices.Sorted(maps.Keys(a.others)) {
			if !yield(path) {
				return
			}
		}
	}
}

// checkpointKey is where the job manager stores what is in no job's log.
const checkpointKey = "checkpoint/job-manager"

// MaxID returns the largest job id in the archive, in the checkpoint of the job
// manager or of a job, failed jobs included; false if there is none. An instance
// that continues from the archive must give out only larger ids (I9).
func (a *Archive) MaxID() (jobid.ID, bool) { return a.maxID, a.hasMax }

// note takes an id into account for MaxID.
func (a *Archive) note(id jobid.ID) {
	a.maxID, a.hasMax = max(a.maxID, id), true
}

// readCheckpoint takes the checkpoint into account for MaxID.
func (a *Archive) readCheckpoint() {
	b, ok := a.others[checkpointKey]
	if !ok {
		return
	}
	var checkpoint struct {
		MaxID json.RawMessage `json:"max_jobid"`
	}
	err := json.Unmarshal(b, &checkpoint)
	id, idErr := strconv.ParseUint(string(checkpoint.MaxID), 10, 64)
	if err == nil && idErr != nil {
		err = errNoMaxID
	}
	if err != nil {
		a.Failures = append(a.Failures, &Failure{Path: checkpointKey, Err: because(errCheckpoint, err)})
		return
	}
	a.note(jobid.ID(id))
}
