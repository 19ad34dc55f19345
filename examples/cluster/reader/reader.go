// Package reader follows the log of a cluster and decides nothing: it writes the archive of the
// jobs that have ended, makes snapshots of the log, and answers who asks for jobs that are over,
// by requests, on a web page and as metrics.
//
// Several readers of an instance may run, and share the requests. Each keeps all texts of the
// jobs that are not over, and some 500 bytes of each one that is over and was not purged.
//
// The web page shows jobs and nodes to who has its token. Others see counts, at any address:
// whoever has an account on this machine can reach what listens on loopback. /metrics has
// counts, and the names of managers. HTTP is plain, so put a proxy with TLS before an address
// that is not on loopback.
package reader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/metrics"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// A Config configures a reader.
type Config struct {
	Engine *engine.Engine
	Users  *engine.Engine // hears requests; nil: Engine does
	Owner  uint32         // of the instance
	Log    *slog.Logger

	// A snapshot is made after so many messages or bytes of records, whichever comes first; 0
	// means 100 000 messages and 64 MiB. One of more bytes than that is made when the log has
	// grown by as much.
	SnapshotMessages, SnapshotBytes uint64

	// The web page, without a Listener none. Client asks the manager as the owner. Token shows
	// all; who does not have it sees counts. Nodes is the inventory.
	Listener net.Listener
	Client   *client.Client
	Token    string
	Nodes    *rset.R
	Metrics  *metrics.Set
}

const (
	archiveEvery = 100 * time.Millisecond
	archiveTime  = time.Minute // until it is an error
	maxEnded     = 1000        // how many jobs wait for that
	maxRemoved   = 100         // how many are removed at once: the log has most of the time
	pause        = 5 * time.Second
)

type reader struct {
	Config
	index
	web

	// What one goroutine follows the log with.
	follower *joblife.Follower
	open     map[jobid.ID]*texts
	ended    map[jobid.ID]*texts // to be archived
	purged   map[jobid.ID]bool   // to be removed from the archive
	since    struct{ messages, bytes uint64 }
	snapshot uint64    // its bytes
	retry    time.Time // not to make one before

	seq   atomic.Uint64 // of the last message that was read
	ready atomic.Bool   // all is read that was there in the beginning
}

// Run is a reader until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	cfg.Users = cmp.Or(cfg.Users, cfg.Engine)
	cfg.SnapshotMessages = cmp.Or(cfg.SnapshotMessages, 100_000)
	cfg.SnapshotBytes = cmp.Or(cfg.SnapshotBytes, 64<<20)
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New()
	}
	r := &reader{Config: cfg}
	if cfg.Listener != nil {
		defer r.serve(ctx)()
	}
	for {
		err := r.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		cfg.Log.Error("reader begins again", "error", err)
		if wire.Pause(ctx, pause) != nil {
			return nil
		}
	}
}

// forget begins with nothing.
func (r *reader) forget() {
	r.index.reset()
	r.follower, r.open, r.ended, r.purged = new(joblife.Follower), make(map[jobid.ID]*texts), make(map[jobid.ID]*texts), make(map[jobid.ID]bool)
	r.since.messages, r.since.bytes, r.snapshot = 0, 0, 0
}

// once reads all there is, and follows the log until something is wrong.
func (r *reader) once(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.forget()
	defer r.ready.Store(false)
	if err := r.Engine.ReadArchive(ctx, r.put); err != nil {
		return err
	}
	seq, err := r.Engine.Snapshot(ctx, func(rec joblife.Record) error {
		r.snapshot += sizeOf(rec)
		return r.add(rec)
	})
	if err != nil {
		return err
	}
	r.seq.Store(seq)
	last, _, err := r.Engine.Last(ctx)
	if err != nil {
		return err
	}
	batches := make(chan engine.Batch, 256)
	go func() { end(r.Engine.Follow(ctx, seq, batches)) }()
	tick := time.NewTicker(archiveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case b := <-batches:
			for _, rec := range b.Records {
				if err := r.add(rec); err != nil {
					return fmt.Errorf("message %d of the log: %w", b.Seq, err)
				}
				r.since.bytes += sizeOf(rec)
			}
			r.since.messages++
			r.seq.Store(b.Seq)
			if len(r.ended) < maxEnded {
				continue
			}
		case <-tick.C:
		}
		if err := r.archive(ctx); err != nil {
			return err
		}
		tick.Reset(archiveEvery) // what took longer leaves no tick behind: the log is next
		if r.grown() {
			if err := r.compact(ctx); err != nil {
				return err
			}
		}
		if r.seq.Load() >= last && !r.ready.Load() {
			r.missed()
			stop, err := r.listen(ctx)
			if err != nil {
				return err
			}
			defer stop()
			r.ready.Store(true)
			r.Log.Info("reader", "read to", r.seq.Load(), "jobs that are over", r.Len())
		}
	}
}

func sizeOf(rec joblife.Record) uint64 { return uint64(len(rec.Data)) + 100 }

// archive brings the archive to where the log is read. Of many jobs that were purged it removes
// some, and the next call the others.
func (r *reader) archive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, archiveTime)
	defer cancel()
	list := archived(r.ended, r.Log)
	if err := r.Engine.Archive(ctx, list); err != nil {
		return err
	}
	for _, j := range list {
		r.put(j)
	}
	r.Metrics.Archived.Add(float64(len(list)))
	clear(r.ended)
	removed := 0
	for id := range r.purged {
		if info, ok := r.get(id); ok {
			if removed++; removed > maxRemoved {
				return nil
			}
			if err := r.Engine.Unarchive(ctx, info.UserID, id); err != nil {
				return err
			}
			r.remove(id)
			r.Metrics.Purged.Inc()
		}
		delete(r.purged, id)
	}
	return nil
}

// missed has what was purged removed from the archive though this reader has not read that: one
// that was behind may have stored it after another one had removed it. All is read that the log
// had when the archive was read, so the records have each job that is there.
func (r *reader) missed() {
	there := make(map[jobid.ID]bool)
	for rec := range r.follower.Snapshot() {
		there[rec.Job] = there[rec.Job] || rec.Kind != joblife.RecordTombstone && rec.Kind != joblife.RecordUnlinked
	}
	r.list(&wire.Request{}, func(j *wire.JobInfo) bool {
		if !there[j.ID] {
			r.purged[j.ID] = true
		}
		return true
	})
}

// grown reports whether a snapshot is due. The archive has all that is over.
func (r *reader) grown() bool {
	return (r.since.messages >= r.SnapshotMessages || r.since.bytes >= max(r.SnapshotBytes, r.snapshot)) && time.Now().After(r.retry)
}

// compact makes a snapshot, in which a job that is over has lost its text. If it fails, the log
// grows: that is no reason to end, but that the log is another one than was read.
func (r *reader) compact(ctx context.Context) error {
	began, size := time.Now(), uint64(0)
	err := func() error {
		for rec := range r.follower.Snapshot() {
			if size += sizeOf(rec); rec.Kind == joblife.RecordInactive {
				if _, ok := r.get(rec.Job); !ok {
					return fmt.Errorf("job %v is over, and not in the archive", rec.Job)
				}
			}
		}
		return r.Engine.Compact(ctx, r.seq.Load(), r.follower.Snapshot())
	}()
	switch {
	case errors.Is(err, engine.ErrGap):
		return err
	case errors.Is(err, engine.ErrLost):
		r.Log.Info("another reader has made a snapshot")
	case err != nil:
		r.Log.Error("snapshot", "error", err)
		r.retry = time.Now().Add(time.Minute)
		return nil
	default:
		r.Log.Info("snapshot", "of", r.seq.Load(), "bytes", size, "took", time.Since(began))
		r.Metrics.Snapshots.Inc()
	}
	r.snapshot, r.since.messages, r.since.bytes = size, 0, 0
	return nil
}

// texts is what the records have of a job that is not over.
type texts struct {
	spec, r, log, keep []byte
	clean, final       bool          // log has that event, and keep the last release
	job                *jobstate.Job // it is over
}

// add folds a record.
func (r *reader) add(rec joblife.Record) error {
	if err := r.follower.Add(rec); err != nil {
		return err
	}
	switch rec.Kind {
	case joblife.RecordInactive:
		r.summary(rec)
	case joblife.RecordTombstone, joblife.RecordUnlinked:
		delete(r.open, rec.Job)
		delete(r.ended, rec.Job)
		r.purged[rec.Job] = true
	case joblife.RecordEvent, joblife.RecordJobspec, joblife.RecordR, joblife.RecordHousekeeping:
		t := r.open[rec.Job]
		if t == nil {
			t = new(texts)
			r.open[rec.Job] = t
		}
		switch rec.Kind {
		case joblife.RecordJobspec:
			t.spec = bytes.Clone(rec.Data)
		case joblife.RecordR:
			t.r = bytes.Clone(rec.Data)
		case joblife.RecordHousekeeping:
			t.keep = append(t.keep, rec.Data...)
			t.final = t.final || bytes.Contains(rec.Data, []byte(`"final":true`))
		default:
			t.log = append(t.log, rec.Data...)
			t.clean = t.clean || bytes.Contains(rec.Data, []byte(`"name":"clean"`))
		}
		if t.over(rec.Job) {
			delete(r.open, rec.Job)
			if _, ok := r.get(rec.Job); !ok {
				r.ended[rec.Job] = t
			}
		}
	}
	return nil
}
