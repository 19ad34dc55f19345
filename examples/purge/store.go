package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/joblife/joblife/examples/boltstore"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
)

// A jobStore is what the example needs of a store. Both that it knows have it.
type jobStore interface {
	purge.Store
	Evidence() (purge.Evidence, []error, error)
	Close() error
}

// openStore opens the store that the options name, or a bbolt file that goes with
// the process. One that is new gets made-up jobs.
func openStore(o options, stderr io.Writer) (jobStore, error) {
	if o.dir != "" {
		return openDir(o, stderr)
	}
	path, temporary := o.store, ""
	if path == "" {
		var err error
		if temporary, err = os.MkdirTemp("", "purge"); err != nil {
			return nil, err
		}
		path = filepath.Join(temporary, "jobs.db")
	}
	if _, err := os.Stat(path); err == nil {
		open := boltstore.OpenReadOnly
		if o.force {
			open = boltstore.Open
		}
		bolt, err := open(path)
		return boltFile{bolt, ""}, err
	}
	bolt, err := boltstore.Open(path)
	if err != nil {
		return nil, err
	}
	return fill(boltFile{bolt, temporary}, o, stderr, func(jobs []madeUp) error {
		batch := make([]boltstore.Job, len(jobs))
		for i, j := range jobs {
			batch[i] = boltstore.Job{ID: j.id, Eventlog: j.log}
		}
		return bolt.Add(batch...)
	})
}

// A boltFile is a bolt store, perhaps in a directory that goes when it is closed.
type boltFile struct {
	*boltstore.Store
	temporary string
}

func (b boltFile) Close() error {
	err := b.Store.Close()
	if b.temporary != "" {
		err = errors.Join(err, os.RemoveAll(b.temporary))
	}
	return err
}

// openDir opens or makes a directory of plain files. A dry run only looks: it works
// beside a process that has the directory open.
func openDir(o options, stderr io.Writer) (s jobStore, err error) {
	if o.force {
		s, _, err = dirstore.Open(o.dir, dirstore.Options{})
	} else {
		s, err = dirstore.OpenReadOnly(o.dir, dirstore.Options{})
	}
	if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, dirstore.ErrNotStore) {
		return s, err
	}
	fresh, err := dirstore.Create(o.dir, dirstore.Options{})
	if err != nil {
		return nil, err
	}
	return fill(fresh, o, stderr, func(jobs []madeUp) error {
		for _, j := range jobs {
			if err := fresh.Add(dirstore.Stored{ID: j.id, Eventlog: j.log}); err != nil {
				return err
			}
		}
		return nil
	})
}

// fill makes up jobs and adds them to a store in batches. It closes the store after an
// error.
func fill(s jobStore, o options, stderr io.Writer, add func([]madeUp) error) (jobStore, error) {
	jobs, err := draw(o.jobs, o.seed)
	step, done := bar(stderr, "writing", len(jobs))
	defer done()
	for batch := range slices.Chunk(jobs, 1000) {
		if err == nil {
			err = add(batch)
		}
		step(len(batch))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
