package dirstore_test

import (
	"io/fs"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/dirstore"
)

// A folder is a directory of a disk.
type folder struct {
	*disk.Disk
	dir string
}

func (f folder) in(name string) string { return path.Join(f.dir, name) }

func (f folder) OpenFile(name string, flag int, perm fs.FileMode) (logfile.File, error) {
	return f.Disk.OpenFile(f.in(name), flag, perm)
}
func (f folder) Lstat(name string) (fs.FileInfo, error)     { return f.Disk.Lstat(f.in(name)) }
func (f folder) ReadDir(name string) ([]fs.DirEntry, error) { return f.Disk.ReadDir(f.in(name)) }
func (f folder) Remove(name string) error                   { return f.Disk.Remove(f.in(name)) }
func (f folder) Sub(name string) (dirstore.FS, error) {
	return folder{f.Disk, f.in(name)}, f.OpenDir(f.in(name))
}
func (f folder) Close() error { return nil }

// newDisk returns a disk of which a crash leaves all.
func newDisk() *disk.Disk {
	d := disk.New()
	d.Ordered, d.Coin = true, func() bool { return true }
	return d
}

// createOn returns a new store on a disk.
func createOn(t testing.TB, d *disk.Disk) *dirstore.Store {
	s, err := dirstore.CreateOn(folder{d, "."})
	require.NoError(t, err)
	return s
}

// tryOpenOn opens the store on a disk, after the process that had it open ended.
func tryOpenOn(d *disk.Disk) (*dirstore.Store, error) {
	d.Kill()
	return dirstore.OpenOn(folder{d, "."})
}

func openOn(t testing.TB, d *disk.Disk) *dirstore.Store {
	s, err := tryOpenOn(d)
	require.NoError(t, err)
	return s
}

// add adds jobs with the ids from first to last.
func add(t testing.TB, s *dirstore.Store, first, last jobid.ID) {
	for id := first; id <= last; id++ {
		require.NoError(t, s.Add(job(id)))
	}
}
