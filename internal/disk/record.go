package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Call is what a process did to files, or what it said.
type Call struct {
	Op       string
	Name, To string // To is of a rename or a link
	At       int    // of a write, or the new size
	Data     []byte // of a write, or what was said
}

// The operations.
const (
	opCreate   = "create"
	opWrite    = "write"
	opTruncate = "truncate"
	opSync     = "sync"
	opSyncDir  = "syncdir"
	opMkdir    = "mkdir"
	opLink     = "link"
	opRename   = "rename"
	opRemove   = "remove"
	opSay      = "say"
)

// childName is the variable that makes a test the process that is recorded.
const childName = "JOBLIFE_RECORDED"

// Record runs f in a process of its own, in a folder with the files of the disk, and returns
// its calls that changed them, and what it said. Where processes cannot be traced it skips
// the test. A test may call Record with one function only: in the process that is recorded,
// Record calls it and ends.
func (d *Disk) Record(t *testing.T, arg string, f func(dir, arg string, say func(text string)) error) (list []Call) {
	if text, ok := os.LookupEnv(childName); ok {
		dir, arg, _ := strings.Cut(text, "\n")
		said := os.NewFile(3, "said")
		err := f(dir, arg, func(text string) {
			if _, err := said.WriteString(text); err != nil {
				panic(err)
			}
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = d.Save(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) // a test may record many
	said, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close() // nothing was written
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childName+"="+dir+"\n"+arg, "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	cmd.ExtraFiles = []*os.File{said}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err = trace(cmd, dir, func(c Call) { list = append(list, c) })
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		t.Skipf("a process cannot be traced here: %v", err)
	}
	if err != nil {
		t.Fatalf("the process that is recorded: %v: %s", err, stderr.String())
	}
	return list
}

// Do does what a process did that was recorded.
func (d *Disk) Do(c Call) error {
	_, _, n := d.find(c.Name)
	switch {
	case c.Op == opCreate:
		f, err := d.OpenFile(c.Name, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return f.Close()
	case c.Op == opMkdir:
		return d.Mkdir(c.Name, 0o700)
	case c.Op == opLink:
		dir, base, _ := d.find(c.To)
		d.move(move{to: dir, toName: base, what: n})
	case c.Op == opRename:
		return d.Rename(c.Name, c.To)
	case c.Op == opRemove:
		return d.Remove(c.Name)
	case c.Op == opSyncDir:
		return d.SyncDir(c.Name)
	case n == nil: // it has no name any more
	case c.Op == opWrite:
		n.write(c.At, c.Data)
	case c.Op == opTruncate:
		n.truncate(c.At)
	case c.Op == opSync:
		n.sync()
	}
	return nil
}

// Save writes the files of a disk to a folder, which is empty or not there.
func (d *Disk) Save(dir string) error { return d.root.save(dir) }

func (n *node) save(name string) error {
	if !n.mode.IsDir() {
		return os.WriteFile(name, n.cache, 0o600)
	}
	err := os.MkdirAll(name, 0o700)
	for base, below := range n.names {
		err = errors.Join(err, below.save(filepath.Join(name, base)))
	}
	return err
}
