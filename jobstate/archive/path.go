package archive

import (
	"strings"

	"github.com/joblife/joblife/jobstate/jobid"
)

const jobRoot = "job/"

// idGroups and groupLen are the form of a job id as a path: 0000/0001/ce00/0000.
const (
	idGroups = 4
	groupLen = 4
)

// place is what a path names: a key of a job, a job itself (an empty key), or,
// where dir is empty, a key that is not a job's.
type place struct {
	dir string // such as job/0000/0001/ce00/0000
	key string // such as guest/exec/eventlog
	id  jobid.ID
	err error // why dir names no job
}

// locate says what a path of an archive names. A directory above those of jobs names nothing.
func locate(path string, isDir bool) (p place) {
	path = strings.TrimPrefix(path, "./")
	if isDir {
		path = strings.TrimRight(path, "/")
	}
	rest, isJob := strings.CutPrefix(path, jobRoot)
	if !isJob {
		return place{key: path}
	}
	end := 0
	for range idGroups {
		i := strings.IndexByte(rest[end:], '/')
		if i < 0 {
			end = len(rest) + 1
			break
		}
		end += i + 1
	}
	// Without its last slash, rest[:end] is the id, if there are as many groups.
	end--
	groups := 1 + strings.Count(rest[:end], "/")
	if isDir && groups < idGroups {
		return place{}
	}
	p.dir = path[:len(jobRoot)+end]
	if end < len(rest) {
		p.key = rest[end+1:]
	}
	p.id, p.err = parseID(rest[:end])
	return p
}

// parseID reads a job id in the one form of a path: another would name the same job again.
func parseID(path string) (jobid.ID, error) {
	if len(path) != idGroups*(groupLen+1)-1 {
		return 0, errLayout
	}
	for i := range len(path) {
		c := path[i]
		fits := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if i%(groupLen+1) == groupLen {
			fits = c == '/'
		}
		if !fits {
			return 0, errLayout
		}
	}
	// Sixteen digits in four groups are an id whatever they are.
	return jobid.Parse(strings.ReplaceAll(path, "/", "."))
}
