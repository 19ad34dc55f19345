package dirstore

import (
	"path/filepath"
	"slices"
	"strings"
)

// FS is what a Store needs of a file system.
type FS = folder

// Wrap returns options with a file system in the place of that of the store.
func Wrap(wrap func(FS) FS) Options { return Options{wrap: wrap} }

// CompactNext makes the next PutTombstones write the log anew.
func (s *Store) CompactNext() { s.tombs.compactAt = 0 }

// ParseRecord, AppendRecord and the like are for tests.
var (
	ParseRecord  = parseRecord
	AppendRecord = appendRecord
	ParseMark    = parseMark
	AppendMark   = appendMark
)

// Foreign returns the names in the store that it did not make, and all in its folders
// trash and new: sorted, with slashes.
func (s *Store) Foreign() ([]string, error) {
	var out []string
	for _, dir := range []string{newName, trashName, "."} {
		list, err := s.fs.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if dir != "." || !isStoreName(e.Name(), e.IsDir()) {
				out = append(out, strings.ReplaceAll(filepath.Join(dir, e.Name()), string(filepath.Separator), "/"))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// isStoreName reports whether the store makes files or directories of that name.
func isStoreName(name string, dir bool) bool {
	switch name {
	case trashName, newName:
		return dir
	case tombsName, lockName, tombsName + tempSuffix:
		return !dir
	}
	_, job := parseName(name, false)
	return job && dir || !dir && (isMark(strings.TrimSuffix(name, tempSuffix)) ||
		isNumbered(name, tombsName+sideSuffix) || isNumbered(name, ballastPrefix))
}
