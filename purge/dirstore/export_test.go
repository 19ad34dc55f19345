package dirstore

import (
	"path/filepath"
	"slices"
	"strings"
)

// FS is what a Store needs of a file system.
type FS = folder

// CreateOn and OpenOn are Create and Open on another file system.
func CreateOn(fs FS) (*Store, error) { return create(".", on(fs)) }
func OpenOn(fs FS) (*Store, error)   { return open(".", on(fs)) }

func on(fs FS) func(string) (folder, error) { return func(string) (folder, error) { return fs, nil } }

// SetMax sets the maximum number of bytes in a file.
func (s *Store) SetMax(n int64) { s.max = n }

// Foreign returns the names in the store that it did not make, and all in its folders
// trash and new: sorted, with slashes.
func (s *Store) Foreign() (out []string) {
	for _, dir := range []string{newName, trashName, "."} {
		list, err := s.fs.ReadDir(dir)
		if err != nil {
			panic(err)
		}
		for _, e := range list {
			if dir != "." || !isStoreName(e.Name(), e.IsDir()) {
				out = append(out, strings.ReplaceAll(filepath.Join(dir, e.Name()), string(filepath.Separator), "/"))
			}
		}
	}
	slices.Sort(out)
	return out
}

// isStoreName reports whether the store makes files or directories of that name.
func isStoreName(name string, dir bool) bool {
	if dir {
		return name == trashName || name == newName || isJob(name, false)
	}
	return name == lockName || isNumbered(name, ballastPrefix)
}
