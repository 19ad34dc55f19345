package boltstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/purge/boltstore"
)

var _ loop.Store = (*boltstore.Store)(nil)

// epoch is when ids begin. A program restores at time.Now.
var epoch = time.Unix(1_700_000_000, 0)

// manage runs a manager on a file while do works with it.
func manage(path string, do func(context.Context, *loop.Loop, *boltstore.Store) error) (err error) {
	store, err := boltstore.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	m, left, err := joblife.Restore(epoch, joblife.Config{Epoch: epoch}, store.Records())
	if err != nil {
		return err
	}
	fmt.Println("jobs that are not over:", len(left.Jobs))
	l, err := loop.New(m, loop.Config{
		Store:   store,
		Effects: func(*joblife.Manager, *joblife.Ready) {}, // no scheduler, no nodes
		Refused: func(in joblife.Input, err error) { fmt.Printf("%T: %v\n", in, err) },
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	go func() { stop(do(ctx, l, store)) }()
	if err := l.Run(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// A manager whose jobs outlive it.
func Example() {
	dir, err := os.MkdirTemp("", "boltstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "jobs.db")
	spec, _ := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"sleep"}})
	var id jobid.ID
	err = manage(path, func(ctx context.Context, l *loop.Loop, _ *boltstore.Store) error {
		job, err := l.Call(ctx, joblife.Submit{Spec: spec, Urgency: jobstate.UrgencyDefault})
		id = job.Job
		return err
	})
	fmt.Println("submitted:", err)
	err = manage(path, func(ctx context.Context, l *loop.Loop, store *boltstore.Store) error {
		_, err := l.Call(ctx, joblife.Raise{ID: id, Type: "cancel"})
		if err == nil {
			_, err = l.Call(ctx, joblife.Wait{ID: id, States: jobstate.StateInactive})
		}
		stored, readErr := store.Read(id)
		job, replayErr := jobstate.Replay(id, stored.Eventlog)
		result, _ := job.Result()
		fmt.Println(job.State(), result)
		return errors.Join(err, readErr, replayErr)
	})
	fmt.Println("canceled:", err)
	// Output:
	// jobs that are not over: 0
	// submitted: <nil>
	// jobs that are not over: 1
	// INACTIVE CANCELED
	// canceled: <nil>
}

// A tool reads the jobs when no manager has the file open.
func ExampleOpenReadOnly() {
	dir, err := os.MkdirTemp("", "boltstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "jobs.db")
	spec, _ := jobspec.New(jobspec.Job{Nodes: 1, Command: []string{"sleep"}})
	err = manage(path, func(ctx context.Context, l *loop.Loop, _ *boltstore.Store) error {
		_, err := l.Call(ctx, joblife.Submit{Spec: spec, Urgency: jobstate.UrgencyDefault})
		return err
	})
	fmt.Println("submitted:", err)
	store, err := boltstore.OpenReadOnly(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	for record, err := range store.Records() {
		fmt.Println(record.Kind, err)
	}
	// Output:
	// jobs that are not over: 0
	// submitted: <nil>
	// jobspec <nil>
	// event <nil>
	// event <nil>
	// event <nil>
	// event <nil>
}
