// Package schedule is a scheduler of a cluster in a process of its own: package sched, which has
// no input and output, in a session with the active manager as that of a node. Who has another
// scheduler replaces this package.
package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// A Config says what a scheduler is.
type Config struct {
	Engine *engine.Engine
	Sched  sched.Config
	Log    *slog.Logger
}

type scheduler struct {
	Config
	wire.Peer
	sched *sched.Scheduler
}

// Run is a scheduler until ctx ends. One that is not the first waits until that is silent.
func Run(ctx context.Context, cfg Config) error {
	s, e := &scheduler{Config: cfg}, cfg.Engine
	said := make(chan *nats.Msg, 1<<14) // one that has no room is missed: another session begins
	for _, subject := range []string{e.Subject("do", "sched"), e.Subject("epoch")} {
		sub, err := e.ChanSubscribe(subject, said)
		if err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
		defer sub.Unsubscribe()
	}
	tick := time.NewTicker(wire.BeatEvery)
	defer tick.Stop()
	for {
		var due <-chan time.Time
		if s.Open() {
			if at, ok := s.sched.Deadline(); ok {
				due = time.After(time.Until(at.Time()))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case m := <-said:
			s.hear(m)
		case <-due:
		case <-tick.C:
			if s.Open() {
				s.say(wire.Up{})
			}
		}
		if s.Greet {
			s.sched = sched.New(s.Config.Sched)
			s.say(s.Begin())
		}
		if s.Open() {
			s.decide()
		}
	}
}

func (s *scheduler) say(u wire.Up) {
	u.Node = s.Engine.Name()
	s.Says(&u)
	text, err := wire.Marshal(u)
	if err == nil {
		err = s.Engine.Publish(s.Engine.Subject("up", "sched"), text)
	}
	if err != nil { // the manager asks for another session
		s.Log.Warn("not sent", "error", err)
	}
}

// hear hears a beat of the manager, or takes what it says.
func (s *scheduler) hear(m *nats.Msg) {
	var b wire.Beat
	if m.Subject == s.Engine.Subject("epoch") {
		if json.Unmarshal(m.Data, &b) == nil {
			s.Beat(b)
		}
		return
	}
	var d wire.Do
	err := json.Unmarshal(m.Data, &d)
	next := false
	if err == nil {
		next, err = s.Do(&d)
	}
	if next {
		for line := range strings.Lines(d.Lines) {
			if err := s.take([]byte(line)); err != nil {
				s.Log.Warn("the manager's line", "error", err)
			}
		}
	}
	if err != nil {
		s.Log.Warn("session", "error", err)
	}
}

// take takes a line of the manager. If it is not known what is held, another session begins.
func (s *scheduler) take(text []byte) error {
	line, m, err := alloc.ParseFromManager(text)
	switch {
	case err != nil:
		s.sched.Missed(line)
		return err
	case line.Topic == pool.TopicAcquire:
		a, err := pool.ParseAcquire(line.Payload)
		if err == nil {
			err = s.sched.Acquire(a)
		}
		return err
	case line.Topic == alloc.TopicHello && line.Errnum == alloc.NoData:
		if _, err = s.sched.EndHello(); err != nil {
			s.Restart()
		}
		return err
	case m == nil:
		return fmt.Errorf("what is %q?", line.Topic)
	}
	return s.sched.Handle(m)
}

// decide says what the scheduler decides.
func (s *scheduler) decide() {
	var lines []byte
	flush := func() {
		if len(lines) > 0 {
			s.say(wire.Up{Lines: string(lines)})
			lines = lines[:0]
		}
	}
	for _, r := range s.sched.Decide(eventlog.FromTime(time.Now())) {
		next, err := alloc.AppendMessage(lines, alloc.TopicAlloc, r)
		if err != nil {
			s.Log.Error("response", "error", err)
		}
		if lines = next; len(lines) > 1<<20 {
			flush()
		}
	}
	flush()
}
