package archive

import (
	"strings"

	"github.com/joblife/joblife/jobstate/jobid"
)

const jobRoot = "job/"

// idGroups is how many groups a job id has as a path: 0000/0001/ce00/0000.
const idGroups = 4

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
	elements := strings.SplitN(rest, "/", idGroups+1)
	if isDir && len(elements) < idGroups {
		return place{}
	}
	p.dir = path
	if len(elements) > idGroups {
		p.key = elements[idGroups]
		p.dir = path[:len(path)-len("/")-len(p.key)]
	}
	p.id, p.err = parseID(p.dir[len(jobRoot):])
	return p
}

// parseID reads a job id in the one form of a path.
func parseID(path string) (jobid.ID, error) {
	dotted := strings.ReplaceAll(path, "/", ".")
	id, err := jobid.Parse(dotted)
	if err != nil || id.Format(jobid.FormatDotHex) != dotted || strings.Contains(path, ".") {
		return 0, errLayout
	}
	return id, nil
}
