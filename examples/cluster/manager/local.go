package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/purge/boltstore"
)

// A Local keeps the records of an instance in a bbolt file of one machine, without JetStream.
type Local struct {
	*boltstore.Store
	path string
}

// OpenLocal opens the file, or makes it. It is locked against other managers.
func OpenLocal(path string) (*Local, error) {
	s, err := boltstore.Open(path)
	if err != nil {
		return nil, err
	}
	return &Local{s, path}, nil
}

// Get returns the value of a key: a file beside that of the records.
func (l *Local) Get(_ context.Context, key string) (value []byte, revision uint64, err error) {
	value, err = os.ReadFile(l.path + "." + key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	return value, 1, err
}

// Update sets the value of a key, durably. There are no revisions, since nobody else writes.
func (l *Local) Update(_ context.Context, key string, value []byte, _ uint64) (uint64, error) {
	if err := files.Write(l.path+"."+key, value); err != nil {
		return 0, fmt.Errorf("manager: key %s: %w", key, err)
	}
	return 1, nil
}

// Epoch begins an epoch, durably: it is after the one before, also if the clock was set back.
// Without its key it is that of the clock.
func (l *Local) Epoch(ctx context.Context, now time.Time) (uint64, error) {
	text, _, err := l.Get(ctx, "epoch")
	if err != nil {
		return 0, err
	}
	before, _ := strconv.ParseUint(string(text), 10, 64)
	epoch := max(before+1, uint64(now.UnixNano()))
	_, err = l.Update(ctx, "epoch", strconv.AppendUint(nil, epoch, 10), 0)
	return epoch, err
}
