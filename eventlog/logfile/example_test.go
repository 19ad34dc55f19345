package logfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
)

// must ends an example that fails.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// temp returns a name in a new folder.
func temp() string {
	dir, err := os.MkdirTemp("", "logfile")
	must(err)
	return filepath.Join(dir, "eventlog")
}

// add appends an event.
func add(l *logfile.Log, event string) {
	line, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1552593348, Name: event})
	must(err)
	must(l.Append(line))
}

// open is what a program does that wants the log whether or not there was one.
// It repairs what a crash left torn, and stops where entries would be cut off.
func open(name string) (*logfile.Log, error) {
	done, err := logfile.Repair(name, logfile.RepairOptions{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return logfile.Create(name, logfile.Options{})
	case err != nil:
		return nil, err
	case done.Side != "":
		fmt.Println("set aside", done.Size, "bytes in", filepath.Base(done.Side))
	}
	return logfile.Open(name, logfile.Options{})
}

func Example() {
	name := temp()
	defer os.RemoveAll(filepath.Dir(name))
	l, err := open(name)
	must(err)
	add(l, "start")
	fmt.Println(l.Size(), "bytes are durable")
	must(l.Close())

	// The process dies within a write.
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	must(err)
	_, err = f.WriteString(`{"timestamp":15525933`)
	must(errors.Join(err, f.Close()))

	_, err = logfile.Open(name, logfile.Options{})
	fmt.Println(errors.Is(err, logfile.ErrDamaged), errors.Is(err, eventlog.ErrTorn))
	l, err = open(name)
	must(err)
	fmt.Println(l.Size(), "bytes are left")
	must(l.Close())
	// Output:
	// 42 bytes are durable
	// true true
	// set aside 21 bytes in eventlog.torn-1
	// 42 bytes are left
}

// A damaged line in the middle of a log is not what a crash leaves. Look at it before you cut.
func ExampleRepair() {
	name := temp()
	defer os.RemoveAll(filepath.Dir(name))
	l, err := logfile.Create(name, logfile.Options{})
	must(err)
	add(l, "submit")
	add(l, "validate")
	add(l, "depend")
	must(l.Close())
	text, err := os.ReadFile(name)
	must(err)
	must(os.WriteFile(name, bytes.ReplaceAll(text, []byte("validate"), []byte("v\x00lidate")), 0o600))

	_, err = logfile.Repair(name, logfile.RepairOptions{})
	var damage *logfile.DamageError
	if errors.As(err, &damage) {
		fmt.Println(filepath.Base(damage.Name), "is good up to", damage.Offset, "of", damage.Size, "bytes,", damage.Entries, "entry follows:", damage.Err)
	}
	done, err := logfile.Repair(name, logfile.RepairOptions{Cut: true})
	must(err)
	fmt.Println(done.Offset, "bytes stay,", done.Size, "with", done.Entries, "entry are in", filepath.Base(done.Side))
	// Output:
	// eventlog is good up to 43 of 131 bytes, 1 entry follows: eventlog: line 2: offset 78: control character "\x00" in a string
	// 43 bytes stay, 88 with 1 entry are in eventlog.torn-1
}

func ExampleOpenReader() {
	name := temp()
	defer os.RemoveAll(filepath.Dir(name))
	l, err := logfile.Create(name, logfile.Options{})
	must(err)
	add(l, "submit")
	add(l, "validate")
	r, err := logfile.OpenReader(name, logfile.ReaderOptions{})
	must(err)
	for err != io.EOF { // for now; call Next again when there may be more
		var e eventlog.Entry
		switch e, err = r.Next(); err {
		case nil:
			fmt.Println(e.Name)
		case logfile.ErrEndOfHistory:
			fmt.Println("-- what follows is new --")
			add(l, "depend")
		case io.EOF:
		default:
			panic(err)
		}
	}
	// What comes from now on, and what comes after the last entry that r returned.
	for _, at := range []int64{logfile.End, r.Offset()} {
		later, err := logfile.OpenReader(name, logfile.ReaderOptions{Offset: at})
		must(err)
		_, err = later.Next()
		fmt.Println(err)
		must(later.Close())
	}
	must(errors.Join(r.Close(), l.Close()))
	// Output:
	// submit
	// validate
	// -- what follows is new --
	// depend
	// logfile: end of history
	// logfile: end of history
}
