package disk_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/internal/disk"
)

func open(t *testing.T, d *disk.Disk, name string, flag int) logfile.File {
	f, err := d.OpenFile(name, os.O_RDWR|flag, 0o600)
	require.NoError(t, err)
	return f
}

// listFolder returns what the files of a folder have.
func listFolder(dir string) (text string, err error) {
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		inside, _ := filepath.Rel(dir, name)
		text += fmt.Sprintf("%s %q\n", inside, data)
		return err
	})
	return text, err
}

// coins returns a coin that falls as the text says, and then as its last letter.
func coins(text string) func() bool {
	return func() bool {
		head := text[0] == '1'
		text = text[min(1, len(text)-1):]
		return head
	}
}

func TestACrashLeavesWhatWasSyncedAndPartsOfTheRest(t *testing.T) {
	for _, tt := range []struct {
		coins   string
		ordered bool
		want    string
	}{
		{"0", false, "synced, "},
		{"1", false, "synced, and 16 more bytes."},
		{"01", false, "synced, \x00\x00\x00\x00\x00\x00\x00\x00ore bytes."},
		{"010", false, "synced, \x00\x00\x00\x00\x00\x00\x00\x00ore byte"},
		{"0101", false, "synced, \x00\x00\x00\x00\x00\x00\x00\x00ore byte\x00\x00"},
		{"01", true, "synced, "},
		{"10", true, "synced, and 16 m"},
	} {
		d := disk.New()
		d.Ordered = tt.ordered
		f := open(t, d, "log", os.O_CREATE|os.O_APPEND)
		_, err := f.Write([]byte("synced, "))
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		require.NoError(t, d.SyncDir("."))
		_, err = f.Write([]byte("and 16 more bytes."))
		require.NoError(t, err)
		d.Coin = coins(tt.coins)
		require.Equal(t, "synced, and 16 more bytes.", d.Read("log"))
		d.Crash()
		require.Equal(t, tt.want, d.Read("log"), tt.coins)
		_, err = f.Write(nil)
		require.ErrorIs(t, err, disk.ErrDown, "it was open before the crash")
	}
}

func TestNamesAreDurableWhenTheirDirectoryIsSynced(t *testing.T) {
	for _, synced := range []string{"", "a", "b"} {
		d := disk.New()
		d.PutDir("a")
		d.PutDir("b")
		d.Put("a/1", "x")
		require.NoError(t, d.Rename("a/1", "b/2"))
		require.Equal(t, []string{"b/2"}, d.Files())
		if synced != "" {
			require.NoError(t, d.SyncDir(synced))
		}
		d.Crash()
		require.Equal(t, []string{map[bool]string{true: "a/1", false: "b/2"}[synced == ""]}, d.Files(), "both names or none are gone")
	}
}

// As PostgreSQL learned in 2018: the next fsync succeeds, and the bytes are lost.
func TestASyncThatFailedForgets(t *testing.T) {
	d := disk.New()
	d.Put("log", "")
	f := open(t, d, "log", os.O_APPEND)
	_, err := f.Write([]byte("lost"))
	require.NoError(t, err)
	d.Fail("sync", disk.Fault{Err: syscall.EIO})
	require.ErrorIs(t, f.Sync(), syscall.EIO)
	require.NoError(t, f.Sync())
	require.Equal(t, "lost", d.Read("log"))
	d.Crash()
	require.Empty(t, d.Read("log"))
}

// What a process does to real files, a disk does too.
func TestARecordedProcess(t *testing.T) {
	d := disk.New()
	d.Put("old", "old")
	list := func(d *disk.Disk) (text string) {
		for _, name := range d.Files() {
			text += fmt.Sprintf("%s %q\n", name, d.Read(name))
		}
		return text
	}
	calls := d.Record(t, "x", func(dir, arg string, say func(string)) error {
		in := func(name string) string { return filepath.Join(dir, name) }
		f, err := os.OpenFile(in("old"), os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(" text")
		err = errors.Join(err, f.Sync(), f.Close(), os.Mkdir(in("dir"), 0o700), os.WriteFile(in("dir/new"), []byte("new"), 0o600),
			os.Rename(in("dir/new"), in("dir/there")), os.Link(in("dir/there"), in("same")), os.Truncate(in("old"), 7), os.WriteFile(in("dir/there"), []byte("x"), 0o600))
		root, err2 := os.OpenRoot(dir)
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		g, err := root.Create("dir/file")
		if err != nil {
			return err
		}
		_, err = g.WriteAt([]byte("at 5"), 5)
		_, err2 = g.WriteString("seek")
		err = errors.Join(err, err2, g.Truncate(20), g.Sync(), g.Close(), root.Rename("dir/file", "file"), root.Mkdir("gone", 0o700), root.Remove("gone"))
		folder, err2 := root.Open(".")
		has, err3 := listFolder(dir)
		err = errors.Join(err, err2, folder.Sync(), folder.Close(), root.Close(), err3)
		say(arg)
		say(has)
		return err
	})
	var said []string
	for _, c := range calls {
		require.NoError(t, d.Do(c))
		if c.Op == "say" {
			said = append(said, string(c.Data))
		}
	}
	require.Equal(t, []string{"x", list(d)}, said)
	require.Len(t, d.Files(), 4)
	d.Crash()
	require.Equal(t, []string{"file", "old", "same"}, d.Files(), "the folder was synced, and not dir")
	require.Equal(t, "seek\x00at 5"+strings.Repeat("\x00", 11), d.Read("file"))
	require.Equal(t, "old text", d.Read("old"), "it was cut after the sync")
}
