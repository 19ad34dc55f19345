package dirstore

import (
	"strconv"
	"strings"

	"github.com/joblife/joblife/jobstate/jobid"
)

// The keys of a job, as in RFC 16, and the file of their check digits.
const (
	eventlogKey = "eventlog"
	jobspecKey  = "jobspec"
	rKey        = "R"
	sumsKey     = "crc32c"
)

const nameLen = len("job.0000.0000.0000.0000")

// maxAgain is how many directories of one job there may be in the trash: more than one only
// if something of the name of a job with foreign files came and went.
const maxAgain = 100

// againMark separates the name of a job from the number of a further directory in the trash.
const againMark = "~"

// isJob reports whether a name is exactly what the store writes as that of a job's directory;
// in the trash a number may follow.
func isJob(name string, trash bool) bool {
	if len(name) < nameLen {
		return false
	}
	id, err := jobid.Parse(name[:nameLen])
	rest := name[nameLen:]
	return err == nil && id.KVSPath() == name[:nameLen] && (rest == "" || trash && isNumbered(rest, againMark))
}

// isNumbered reports whether name is prefix and a number from 1.
func isNumbered(name, prefix string) bool {
	digits, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.Atoi(digits)
	return ok && err == nil && n > 0 && strconv.Itoa(n) == digits
}

// isJobFile reports whether the store writes files of that name into a job's directory.
func isJobFile(name string) bool {
	switch name {
	case eventlogKey, jobspecKey, rKey, sumsKey, rKey + tempSuffix:
		return true
	}
	return isNumbered(name, eventlogKey+sideSuffix)
}
