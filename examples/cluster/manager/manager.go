// Package manager is the active manager of a cluster, or one that stands by.
//
// It follows the log until it has the lease, begins an epoch, and goes on from where the log
// ends: with joblife's Manager, its loop, a scheduler and the executor in one program. When it
// loses the lease, or somebody else writes, it ends, and Run begins again as a standby.
package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/sched"
)

// A Config configures a manager. All managers of an instance have the same.
type Config struct {
	Engine   *engine.Engine
	Users    *engine.Engine // hears requests; nil: Engine does
	Manager  joblife.Config // Hooks is of one life: see NewHooks
	NewHooks func() []joblife.Hooks
	Policy   sched.Policy
	Remote   bool          // another process schedules, as package schedule does; Policy is not used
	Nodes    *rset.R       // the inventory
	DownTime time.Duration // after which a node that says nothing is down; 0 means 5 seconds
	Log      *slog.Logger
	// Local, if set, has the records, in place of the Engine's log. No other manager has it.
	Local *Local
	// Metrics, if set, is called with what happens.
	Metrics Metrics
}

// Metrics counts what happens.
type Metrics interface {
	Active(epoch uint64) // this manager is active; 0: it is not
	Appended(records, bytes int, took time.Duration)
	Fenced()           // an append was refused, since another manager writes
	Ended(rank uint32) // a session of a node, by what it said or missed
}

// Run is a manager until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	cfg.Users = cmp.Or(cfg.Users, cfg.Engine)
	cfg.DownTime = cmp.Or(cfg.DownTime, 5*time.Second)
	for pause := 100 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		began := time.Now()
		life := once
		if cfg.Local != nil {
			life = local
		}
		err := life(ctx, cfg)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errUsage):
			return err
		}
		level := slog.LevelError
		if errors.Is(err, ErrTakeover) {
			level = slog.LevelInfo
		}
		cfg.Log.Log(ctx, level, "manager ended, and stands by again", "error", err)
		if time.Since(began) > time.Minute {
			pause = 100 * time.Millisecond
		}
		_ = wire.Pause(ctx, pause)
	}
	return nil
}

var errUsage = errors.New("configuration")

// once is one life of a manager, from standby to its end.
func once(ctx context.Context, cfg Config) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var f joblife.Follower
	seq, err := cfg.Engine.Snapshot(ctx, f.Add)
	if err != nil {
		return err
	}
	batches := make(chan engine.Batch, 256)
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	go func() {
		if err := cfg.Engine.Follow(following, seq, batches); err != nil {
			end(err)
		}
	}()
	lease := make(chan *engine.Held, 1)
	go func() {
		if h, err := cfg.Engine.Acquire(ctx); err == nil {
			lease <- h
		}
	}()
	var at atomic.Uint64
	at.Store(seq)
	ping, err := cfg.Engine.Subscribe(cfg.Engine.Subject("ping", "all"), func(m *nats.Msg) {
		if text, err := wire.Marshal(wire.Standby{Name: cfg.Engine.Name(), Seq: at.Load()}); err == nil {
			_ = m.Respond(text)
		}
	})
	if err != nil {
		return err
	}
	defer ping.Unsubscribe()
	add := func(b engine.Batch) error {
		for _, r := range b.Records {
			if err := f.Add(r); err != nil {
				return fmt.Errorf("message %d of the log: %w", b.Seq, err)
			}
		}
		seq = b.Seq
		at.Store(seq)
		return nil
	}
	cfg.Log.Info("standby", "from", seq)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case b := <-batches:
			if err := add(b); err != nil {
				return err
			}
		case h := <-lease:
			held := h.Hold(ctx)
			defer func() {
				end(nil)
				release, cancel := context.WithTimeout(context.Background(), engine.TTL)
				defer cancel()
				_ = h.Release(release) // else it expires
			}()
			epoch, err := cfg.Engine.Fence(held)
			if err == nil && epoch <= seq {
				err = fmt.Errorf("%w: message %d was read, and the fence is %d", engine.ErrGap, seq, epoch)
			}
			if err != nil {
				return err
			}
			for seq < epoch {
				select {
				case <-held.Done():
					return context.Cause(held)
				case b := <-batches:
					if err := add(b); err != nil {
						return err
					}
				}
			}
			unfollow()
			_ = ping.Unsubscribe()
			return active(held, cfg, h, epoch, f.Restore, cfg.Engine.Writer(epoch), cfg.Engine)
		}
	}
}

// local is the life of a manager whose records are its own.
func local(ctx context.Context, cfg Config) error {
	restore := func(now time.Time, mc joblife.Config) (*joblife.Manager, joblife.Recovered, error) {
		return joblife.Restore(now, mc, cfg.Local.Records())
	}
	epoch, err := cfg.Local.Epoch(ctx, time.Now())
	if err != nil {
		return err
	}
	return active(ctx, cfg, nil, epoch, restore, cfg.Local, cfg.Local)
}

// keys keep values over the end of a manager.
type keys interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (next uint64, err error)
}

type restorer func(time.Time, joblife.Config) (*joblife.Manager, joblife.Recovered, error)

// active is the active manager of an epoch.
func active(ctx context.Context, cfg Config, h *engine.Held, epoch uint64, restore restorer, records loop.Store, keys keys) (err error) {
	began := time.Now()
	mc := cfg.Manager
	if cfg.NewHooks != nil {
		mc.Hooks = cfg.NewHooks()
	}
	ended := newRecent(maxRecent)
	mc.Hooks = append(mc.Hooks, joblife.Hooks{Name: "recent", Event: ended.event})
	m, left, err := restore(time.Now(), mc)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &manager{Config: cfg, epoch: epoch, held: h, keys: keys, last: func() uint64 { return 0 }, end: end, ended: ended, events: make(map[uint32][]byte), links: make(map[uint32]*link), out: cfg.Nodes.Ranks(), lost: new(idset.Set)}
	if w, ok := records.(*engine.Writer); ok {
		a.last = w.Last
	}
	if err := a.openDrains(ctx); err != nil {
		return err
	}
	var inside loop.Scheduler
	if cfg.Remote {
		a.other = &remote{a: a, down: cfg.Nodes.Ranks()}
	} else {
		a.sched = &scheduler{Scheduler: sched.New(sched.Config{Policy: cfg.Policy}), a: a}
		if err := a.acquire(); err != nil {
			return errors.Join(errUsage, err)
		}
		inside = a.sched
	}
	warn := func(err error) { cfg.Log.Warn("executor", "error", err) }
	for _, q := range left.Quarantined {
		warn(fmt.Errorf("job %v cannot be read, and keeps its nodes: %w", q.Job, q.Err))
	}
	a.Loop, err = loop.New(m, loop.Config{
		Store:     store{records, cfg.Metrics},
		Scheduler: inside,
		Executor:  new(exec.Executor),
		Commands:  a.command,
		Recovered: left,
		Effects: func(_ *joblife.Manager, rd *joblife.Ready) {
			if a.other != nil {
				a.other.effects(rd)
			}
			for _, d := range rd.Drain {
				warn(fmt.Errorf("out of service: rank %v: %s", d.Ranks, d.Reason))
			}
			for _, f := range rd.Faults {
				warn(f)
			}
			a.publish(rd.Journal)
			a.answered(rd.Answers)
		},
		Refused: func(in joblife.Input, err error) {
			warn(err)
			if a.other != nil {
				a.other.refused(in, err)
			}
		},
	})
	if err != nil {
		return err
	}
	if cfg.Metrics != nil {
		cfg.Metrics.Active(epoch)
		defer cfg.Metrics.Active(0)
	}
	ran := make(chan error, 1)
	go func() {
		err := a.Loop.Run(ctx)
		end(err)
		ran <- err
	}()
	a.began = time.Now()
	stop, err := a.listen(ctx)
	if err == nil {
		cfg.Log.Info("active", "epoch", epoch, "jobs", len(left.Jobs), "took", time.Since(began))
		a.beat(ctx)
		err = context.Cause(ctx)
	}
	end(err)
	if loopErr := <-ran; loopErr != nil && !errors.Is(loopErr, context.Canceled) {
		err = loopErr
	}
	for _, tag := range a.requests.tags(func(request) bool { return true }) {
		a.respond(tag, wire.Answer{}, loop.ErrEnded)
	}
	if stop != nil {
		stop()
	}
	return err
}

func (a *manager) put(inputs ...joblife.Input) {
	if err := a.Put(inputs...); err != nil {
		a.end(err) // the next life repairs it
	}
}

// A store counts what is appended.
type store struct {
	loop.Store
	m Metrics
}

func (s store) Append(records []joblife.Record) error {
	began, n := time.Now(), 0
	err := s.Store.Append(records)
	if s.m != nil && err == nil {
		for _, r := range records {
			n += len(r.Data)
		}
		s.m.Appended(len(records), n, time.Since(began))
	}
	if s.m != nil && errors.Is(err, engine.ErrFenced) {
		s.m.Fenced()
	}
	return err
}

// maxEvents is how many bytes of events are in a message, and perhaps one event more.
const maxEvents = 64 << 10

// publish publishes events for those who watch, in few messages for each user. Nothing is lost by
// one that is: the log has them.
func (a *manager) publish(events []joblife.JournalEntry) {
	send := func(uid uint32) {
		if err := a.Engine.Publish(a.Engine.Subject("event", uid), a.events[uid]); err != nil {
			a.Log.Warn("events", "user", uid, "error", err)
		}
		delete(a.events, uid)
	}
	for _, ev := range events {
		text, err := wire.AppendEvent(a.events[ev.UserID], ev.Job, ev.Entry)
		if err != nil {
			a.Log.Warn("event", "job", ev.Job, "error", err)
		}
		if a.events[ev.UserID] = text; len(text) > maxEvents {
			send(ev.UserID)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(a.events)) {
		send(uid)
	}
}
