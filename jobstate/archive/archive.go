package archive

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/joblife/joblife/jobstate/jobid"
)

// Limits bounds what is read of an archive. A field of zero, or less, means
// the default.
type Limits struct {
	// Bytes is the size of the archive, uncompressed, 4 GiB by default. It
	// bounds the time that reading takes.
	Bytes int64
	// HeldBytes is the size of all keys that are held, with the paths of other
	// keys and of failures, 1 GiB by default. It bounds the memory.
	HeldBytes int64
	// FileBytes is the size of one key that is held, 64 MiB by default. A
	// larger one is a Failure.
	FileBytes int64
	// Entries is how many jobs, failures and other keys there may be together,
	// 2^20 by default.
	Entries int
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

// Job is what an archive holds of a job. The slices are the caller's.
type Job struct {
	ID jobid.ID
	// Eventlog begins with the event submit. It is checked no further than
	// Failures tells.
	Eventlog []byte
	// Jobspec is not looked at. It is never nil, and may be empty.
	Jobspec []byte
	// R is the resource set, nil if there is none. That there is one does not
	// tell that the job got it: only the event alloc does.
	R []byte
	// ExecEventlog is the execution eventlog (RFC 50), nil if there is none.
	ExecEventlog []byte
}

// Archive is what a dump archive holds.
type Archive struct {
	// Jobs are those that a loader can go on with, by ascending id.
	Jobs []Job
	// Failures are the others, one each, and the keys that could not be read,
	// by path. A job is here whose id, eventlog or jobspec is missing or not to
	// be had, whose log does not begin with submit, or that was never validated:
	// submit names a version of the log and no event validate follows. (Logs
	// without a version are from before there was that event.)
	Failures []*Failure

	others map[string][]byte
	maxID  jobid.ID
	hasMax bool
}

// Key returns the value of a key that is no job's, such as "resource/R", and
// whether there is one. The slice is the Archive's, not to be changed.
func (a *Archive) Key(path string) ([]byte, bool) {
	v, ok := a.others[path]
	return v, ok
}

// Keys yields the paths of the keys that are no job's, sorted.
func (a *Archive) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, path := range slices.Sorted(maps.Keys(a.others)) {
			if !yield(path) {
				return
			}
		}
	}
}

// checkpointKey is where the job manager stores what no job's log tells.
const checkpointKey = "checkpoint/job-manager"

// MaxID returns the greatest job id that the archive tells of, in the
// checkpoint of the job manager or as a job, failed ones too; false if there
// is none. An instance that goes on from the archive must give out none that
// is not greater (I9).
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
		a.Failures = append(a.Failures, &Failure{Path: checkpointKey, Category: ErrCheckpoint, Err: err})
		return
	}
	a.note(jobid.ID(id))
}
