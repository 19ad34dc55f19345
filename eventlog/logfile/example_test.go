package logfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
)

// inTemp calls f with a name in a folder that is removed again.
func inTemp(f func(name string) error) {
	dir, err := os.MkdirTemp("", "logfile")
	if err == nil {
		err = f(filepath.Join(dir, "eventlog"))
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Println(err)
	}
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
	inTemp(func(name string) error {
		l, err := open(name)
		if err != nil {
			return err
		}
		batch, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1552593348, Name: "start"})
		if err != nil {
			return err
		}
		if err := l.Append(batch); err != nil {
			return err
		}
		fmt.Println(l.Size(), "bytes are durable")
		if err := l.Close(); err != nil {
			return err
		}

		// The process dies within a write.
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if _, err := f.WriteString(`{"timestamp":15525933`); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}

		_, err = logfile.Open(name, logfile.Options{})
		fmt.Println(errors.Is(err, logfile.ErrDamaged), errors.Is(err, eventlog.ErrTorn))
		if l, err = open(name); err != nil {
			return err
		}
		fmt.Println(l.Size(), "bytes are left")
		return l.Close()
	})
	// Output:
	// 42 bytes are durable
	// true true
	// set aside 21 bytes in eventlog.torn-1
	// 42 bytes are left
}

func ExampleOpenReader() {
	inTemp(func(name string) error {
		l, err := logfile.Create(name, logfile.Options{})
		if err != nil {
			return err
		}
		add := func(event string) error {
			line, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1552593348, Name: event})
			if err != nil {
				return err
			}
			return l.Append(line)
		}
		if err := errors.Join(add("submit"), add("validate")); err != nil {
			return err
		}
		r, err := logfile.OpenReader(name, logfile.ReaderOptions{})
		if err != nil {
			return err
		}
		for {
			e, err := r.Next()
			switch err {
			case nil:
				fmt.Println(e.Name)
				continue
			case logfile.ErrEndOfHistory:
				fmt.Println("-- what follows is new --")
				if err := add("depend"); err != nil {
					return err
				}
				continue
			case io.EOF: // for now; call Next again when there may be more
				return errors.Join(r.Close(), l.Close())
			}
			return err
		}
	})
	// Output:
	// submit
	// validate
	// -- what follows is new --
	// depend
}
