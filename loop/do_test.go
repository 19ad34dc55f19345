package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
)

// do has a function called, and waits for it.
func (s *site) do(f func(m *joblife.Manager) func()) {
	s.t.Helper()
	done := make(chan bool)
	require.NoError(s.t, s.l.Do(func(m *joblife.Manager) func() {
		defer close(done)
		return f(m)
	}))
	<-done
}

// A function reads the Manager, and steps what it chooses. What follows comes when that is
// durable, and before the effects.
func TestDoStepsWhatItChooses(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := newSite(t, time.Now(), &disk{takes: time.Second}, config(), 0)
		s.mute = true
		stop := s.run(ctx)
		s.put(submit(1), submit(2), submit(3))
		require.NoError(t, s.l.View(ctx, func(*joblife.Manager) {}))
		var told []string
		s.effects = func(rd *joblife.Ready) {
			for _, a := range rd.Answers {
				told = append(told, "answer")
				require.EqualValues(t, 7, a.Tag)
			}
			if len(rd.Raised) > 0 {
				told = append(told, "effects")
			}
		}
		s.put(submit(4)) // the store is busy with it
		s.do(func(m *joblife.Manager) func() {
			var ids []jobid.ID
			for v := range m.Jobs(jobstate.StateSched) {
				ids = append(ids, v.ID())
			}
			require.Len(t, ids, 3, "it sees what is durable, and comes after what was put")
			for _, id := range ids {
				require.NoError(t, s.l.Step(joblife.Raise{ID: id, Type: "cancel", Tag: 7}))
			}
			require.ErrorIs(t, s.l.Step(joblife.Raise{ID: 9, Type: "cancel"}), joblife.ErrUnknown)
			require.ErrorIs(t, s.l.Step(joblife.Raise{ID: 4, Type: "cancel", Tag: 1 << 63}), joblife.ErrInvalid)
			require.Equal(t, time.Now().Round(0), s.l.Now())
			before := len(s.disk.records)
			return func() {
				told = append(told, "durable")
				require.GreaterOrEqual(t, len(s.disk.records)-before, 6, "two events of each job")
			}
		})
		require.Empty(t, told)
		require.NoError(t, s.l.View(ctx, func(*joblife.Manager) {}))
		require.Equal(t, []string{"durable", "answer", "answer", "answer", "effects"}, told)
		require.EqualValues(t, 1, s.l.Stats().Refused, "that of job 9")
		require.Zero(t, s.empty)
		require.ErrorIs(t, stop(), context.Canceled)
		require.ErrorIs(t, s.l.Do(func(*joblife.Manager) func() { return nil }), loop.ErrEnded)
	})
}

// Where nothing is to be stored, Effects gets an empty Ready after what follows.
func TestDoWithNothingToStore(t *testing.T) {
	s := newSite(t, start, new(disk), config(), 1)
	var n int
	require.NoError(t, s.l.Do(func(*joblife.Manager) func() {
		require.ErrorIs(t, s.l.Put(), nil)
		_ = s.l.Do(func(*joblife.Manager) func() { return nil }) // of a function, for the next turn
		return func() { n++; require.Zero(t, s.empty) }
	}))
	require.ErrorIs(t, s.l.Do(func(*joblife.Manager) func() { return nil }), loop.ErrFull)
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, 1, n)
	require.Equal(t, 1, s.empty, "once, and not for one without anything that follows")

	// What Effects steps then follows at once.
	s.did = func() {
		s.did = nil
		require.NoError(t, s.l.Step(submit(1)))
	}
	require.NoError(t, s.l.Do(func(*joblife.Manager) func() { return func() {} }))
	require.NoError(t, s.l.Advance(start))
	require.EqualValues(t, 1, s.seq)
}

// A Manager that others moved ahead ends the Loop, also where a function finds it.
func TestAFunctionFindsThatTheClockIsWrong(t *testing.T) {
	ahead := func() *site {
		s := newSite(t, start, new(disk), config(), 0)
		require.NoError(t, s.m.Step(start.Add(time.Hour), joblife.Tick{}))
		return s
	}
	s := ahead()
	require.NoError(t, s.l.Do(func(*joblife.Manager) func() {
		require.ErrorIs(t, s.l.Step(submit(1)), joblife.ErrClock)
		return nil
	}))
	require.NoError(t, s.l.Do(func(*joblife.Manager) func() { panic("the Loop has ended") }))
	require.ErrorIs(t, s.l.Advance(start), joblife.ErrClock)
	require.ErrorIs(t, s.l.Put(), loop.ErrEnded)

	s = ahead()
	s.did = func() { require.ErrorIs(t, s.l.Step(submit(1)), joblife.ErrClock) } // of Effects
	require.NoError(t, s.l.Do(func(*joblife.Manager) func() { return func() {} }))
	require.ErrorIs(t, s.l.Advance(start), joblife.ErrClock)
}

// messages is a store that works by messages.
type messages struct {
	s     *site
	done  func(map[jobid.ID]error, error)
	begun int
}

func newMessages(t *testing.T, now time.Time, hooks ...joblife.Hooks) *messages {
	cfg := config()
	cfg.Hooks = hooks
	s := newSite(t, now, new(disk), cfg, 0)
	k := &messages{s: s}
	var err error
	s.l, err = loop.New(s.m, loop.Config{
		Effects: s.act, Refused: func(joblife.Input, error) {},
		Begin: func(rd *joblife.Ready, done func(map[jobid.ID]error, error)) {
			k.begun++
			k.done = func(failed map[jobid.ID]error, err error) {
				if err == nil {
					err = s.disk.Append(rd.Append)
				}
				done(failed, err)
				done(failed, errBroken) // which is too late
			}
		},
	})
	require.NoError(t, err)
	return k
}

// commit says that the store is done, as an input does.
func (k *messages) commit(err error) {
	k.s.t.Helper()
	require.NoError(k.s.t, k.s.l.Do(func(*joblife.Manager) func() { k.done(nil, err); return nil }))
}

// Advance does what can be done while the store works.
func TestBeginUnderAdvance(t *testing.T) {
	k := newMessages(t, start)
	s := k.s
	s.put(submit(1))
	require.NoError(t, s.l.Advance(start))
	s.put(submit(2))
	require.NoError(t, s.l.Advance(start))
	s.put(submit(3))
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, 1, k.begun)
	require.Zero(t, s.seq, "nothing is handed out that is not durable")
	k.commit(nil)
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, 2, k.begun, "those that came meanwhile share a commit")
	require.EqualValues(t, 1, s.seq)
	k.commit(errBroken)
	require.ErrorIs(t, s.l.Advance(start), errBroken)
	require.EqualValues(t, 1, s.seq)
	require.ErrorIs(t, s.l.Put(), loop.ErrEnded)
}

func TestBeginIsForWhatIsToStore(t *testing.T) {
	k := newMessages(t, start)
	k.s.put(joblife.WaitEmpty{Tag: 7, States: jobstate.StateActive})
	require.NoError(t, k.s.l.Advance(start))
	require.Equal(t, []joblife.Answer{{Tag: 7}}, k.s.answers)
	require.Zero(t, k.begun)
}

// Run takes what comes while the store works, however much, since the store may wait for it,
// also when the context has ended.
func TestBeginUnderRun(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		k := newMessages(t, time.Now())
		s := k.s
		stop := s.run(ctx)
		s.put(submit(1))
		for range 1<<14 + 100 { // more than share a commit
			s.do(func(*joblife.Manager) func() { return nil })
		}
		k.commit(nil)
		for seq := uint64(0); seq != 1; {
			s.do(func(*joblife.Manager) func() { seq = s.seq; return nil })
		}
		s.put(submit(2))
		s.do(func(*joblife.Manager) func() { return nil })
		ended := make(chan error)
		go func() { ended <- stop() }()
		time.Sleep(time.Minute)
		s.do(func(*joblife.Manager) func() { require.Equal(t, 2, k.begun); return nil })
		s.put(submit(3)) // lost
		k.commit(nil)
		require.ErrorIs(t, <-ended, context.Canceled)
		require.EqualValues(t, 2, s.seq)
		require.Equal(t, 2, k.begun)
	})
}

// The store may be done in a goroutine of its own, when nothing else happens.
func TestBeginIsDoneWhenNothingElseHappens(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		k := newMessages(t, time.Now())
		stop := k.s.run(ctx)
		k.s.put(submit(1))
		synctest.Wait()
		k.done(nil, nil)
		synctest.Wait()
		require.EqualValues(t, 1, k.s.seq)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestABeginThatFailsOrPanics(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		k := newMessages(t, time.Now())
		k.s.put(submit(1))
		ended := make(chan error)
		go func() { ended <- k.s.l.Run(ctx) }()
		time.Sleep(time.Second)
		k.commit(errBroken)
		require.EqualError(t, <-ended, "loop: store: broken")

		s := newSite(t, time.Now(), new(disk), config(), 0)
		var err error
		s.l, err = loop.New(s.m, loop.Config{
			Effects: s.act, Refused: func(joblife.Input, error) {},
			Begin: func(*joblife.Ready, func(map[jobid.ID]error, error)) { panic("mine") },
		})
		require.NoError(t, err)
		s.put(submit(1))
		require.Equal(t, "mine", panics(func() { _ = s.l.Run(ctx) }))
		require.ErrorIs(t, s.l.Put(), loop.ErrEnded)
	})
	m, err := joblife.New(joblife.Config{})
	require.NoError(t, err)
	_, err = loop.New(m, loop.Config{
		Effects: func(*joblife.Manager, *joblife.Ready) {}, Refused: func(joblife.Input, error) {}, Store: new(disk),
		Begin: func(*joblife.Ready, func(map[jobid.ID]error, error)) {},
	})
	require.EqualError(t, err, "loop: Config has both Store and Begin")
}

// A clock that is set back before Run has no consequence.
func TestAClockThatIsSetBackBeforeRun(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := newSite(t, time.Now(), new(disk), config(), 0)
		before := time.Now().Add(-time.Hour)
		s.l.SetClock(func() time.Time { return before })
		stop := s.run(ctx)
		_, err := s.l.Call(ctx, submit(1))
		require.NoError(t, err)
		require.True(t, errors.Is(stop(), context.Canceled))
	})
}

// What Effects steps at the end is handed out, too.
func TestTheEndHandsOutWhatFollowsAFunction(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := newSite(t, time.Now(), &disk{takes: time.Second}, config(), 0)
		s.mute = true
		stop := s.run(ctx)
		s.put(submit(1))
		time.Sleep(time.Second / 2) // the store is busy
		s.do(func(*joblife.Manager) func() {
			return func() {
				s.did = func() {
					s.did = nil
					require.NoError(t, s.l.Step(submit(2)))
				}
			}
		})
		require.ErrorIs(t, stop(), context.Canceled)
		require.Equal(t, 1, s.empty)
		require.EqualValues(t, 2, s.seq)
	})
}

// At the end the Loop takes all that comes, since what Begin waits for may be behind it.
func TestTheEndWaitsForWhatIsFarBehind(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		k := newMessages(t, time.Now())
		s := k.s
		s.put(submit(1))
		ctx, cancel := context.WithCancel(ctx)
		var err error
		require.NoError(t, s.l.Do(func(*joblife.Manager) func() {
			require.NoError(t, s.l.Do(func(*joblife.Manager) func() {
				cancel()
				for range 300 { // more than are taken at once
					s.put(joblife.Tick{})
				}
				k.commit(nil)
				return nil
			}))
			return nil
		}))
		ended := make(chan bool)
		go func() { err = s.l.Run(ctx); close(ended) }()
		select {
		case <-ended:
			require.ErrorIs(t, err, context.Canceled)
			require.EqualValues(t, 1, s.seq)
		case <-time.After(time.Hour):
			t.Error("it hangs")
			_ = s.l.Do(func(*joblife.Manager) func() { return nil }) // wakes it
			<-ended
		}
	})
}

// It does so if what was told before it looked.
func TestTheEndLooksAtFirst(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		k := newMessages(t, time.Now(), joblife.Hooks{Event: func(e *joblife.HookEvent) {
			if e.Entry.Name == "submit" {
				e.PostAt(e.Entry.Timestamp+3600, joblife.Tick{}) // a deadline to wait for
			}
		}})
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		reads, last := 0, 0
		k.s.l.SetClock(func() time.Time {
			if reads++; k.begun > 0 && ctx.Err() == nil && reads == last+2 { // in wait
				cancel()
				time.Sleep(time.Second)
				k.commit(nil)
			} else if k.begun > 0 && last == 0 {
				last = reads
			}
			return time.Now()
		})
		k.s.put(submit(1))
		ended := make(chan error, 1)
		go func() { ended <- k.s.l.Run(ctx) }()
		time.Sleep(time.Minute)
		require.Error(t, ctx.Err())
		if len(ended) == 0 {
			t.Error("it hangs")
			k.done(nil, nil)
		}
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A panic ends the Loop also while a store works that waits for a function of Do.
func TestAPanicDoesNotWaitForMessages(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		k := newMessages(t, time.Now())
		k.s.put(submit(1))
		var text string
		ended := make(chan bool)
		go func() { text = panics(func() { _ = k.s.l.Run(ctx) }); close(ended) }()
		synctest.Wait()
		require.Equal(t, 1, k.begun)
		require.NoError(t, k.s.l.Do(func(*joblife.Manager) func() { panic("mine") }))
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("it hangs")
			k.done(nil, nil)
			<-ended
		}
		require.Equal(t, "mine", text)
		require.ErrorIs(t, k.s.l.Put(), loop.ErrEnded)
		k.done(nil, nil) // too late, and harms nobody
	})
}

// A Shutdown is complete when what was decided is durable.
func TestAShutdownWhileTheStoreWorks(t *testing.T) {
	k := newMessages(t, start)
	k.s.put(submit(1), joblife.Shutdown{})
	require.NoError(t, k.s.l.Advance(start))
	require.Equal(t, 1, k.begun)
	k.commit(nil)
	require.NoError(t, k.s.l.Advance(start))
	require.EqualValues(t, 1, k.s.seq)
	require.ErrorIs(t, k.s.l.Put(), loop.ErrEnded)
}

// Functions that never end do not keep the Loop from its end.
func TestTheEndDoesNotWaitForEver(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := newSite(t, time.Now(), &disk{takes: time.Second}, config(), 0)
		s.mute = true
		id := jobid.ID(1)
		var next func(*joblife.Manager) func()
		next = func(*joblife.Manager) func() {
			if id++; id < 50 {
				require.NoError(t, s.l.Step(submit(id)))
				time.AfterFunc(time.Second/10, func() { _ = s.l.Do(next) })
			}
			return nil
		}
		s.put(submit(1))
		require.NoError(t, s.l.Do(next))
		stop := s.run(ctx)
		time.Sleep(time.Second / 2)
		require.ErrorIs(t, stop(), context.Canceled)
		require.Less(t, id, jobid.ID(10))
	})
}
