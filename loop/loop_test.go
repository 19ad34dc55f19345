package loop_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
)

func TestACallIsAnsweredWhenTheAnswerIsDurable(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		d := &disk{takes: time.Second}
		s := newSite(t, time.Now(), d, config(), 0)
		stop := s.run(ctx)
		s.put(hello...)
		synctest.Wait()
		for _, c := range []struct {
			in   joblife.Input
			want joblife.Answer
			err  error
		}{
			{in: submit(1), want: joblife.Answer{Job: 1}},
			{in: joblife.SetUrgency{Tag: 7, ID: 99}, err: joblife.ErrUnknown},
			{in: submit(1), err: joblife.ErrInvalid},
			{in: joblife.DependencyAdd{ID: 99, Description: "x"}, err: joblife.ErrUnknown},
			{in: &joblife.Tick{}, err: joblife.ErrInvalid},
			{in: nil, err: joblife.ErrInvalid},
			{in: joblife.Reload{Config: config()}},
			{in: joblife.AcceptClock{}},
			{in: joblife.Wait{ID: 1, States: jobstate.StateInactive}, want: joblife.Answer{Job: 1, State: jobstate.StateInactive}},
			{in: joblife.Raise{ID: 1, Type: "cancel"}, err: joblife.ErrInactive},
			{in: joblife.WaitEmpty{States: jobstate.StateActive}},
			{in: joblife.Wait{ID: 99, States: jobstate.StateInactive}, want: joblife.Answer{Job: 99}, err: joblife.ErrUnknown},
		} {
			got, err := s.l.Call(ctx, c.in)
			require.ErrorIs(t, err, c.err, "%T", c.in)
			got.Err = nil
			require.Equal(t, c.want, got, "%T", c.in)
		}
		require.Empty(t, s.answers, "Effects has the answers to what was put alone")
		s.put(joblife.Raise{Tag: 7, ID: 1, Type: "cancel"}, joblife.WaitEmpty{Tag: 8, States: jobstate.StateActive})
		require.NoError(t, s.l.View(ctx, func(*joblife.Manager) {}))
		require.ErrorIs(t, stop(), context.Canceled)
		require.Len(t, s.refused, 1)
		require.ErrorIs(t, s.refused[0], joblife.ErrInactive)
		require.Equal(t, []joblife.Answer{{Tag: 8}}, s.answers)
		require.Equal(t, s.l.Stats().Commits, uint64(d.appends))
		require.Equal(t, s.l.Stats().Storing, time.Duration(d.appends)*time.Second)
		require.Equal(t, s.l.Stats().Refused, uint64(7))
	})
}

// What a caller hears is durable: answers, refusals, and what a View saw.
func TestNobodyHearsWhatIsNotDurable(t *testing.T) {
	for name, ask := range map[string]func(*site, context.Context) error{
		"an answer": func(s *site, ctx context.Context) error {
			_, err := s.l.Call(ctx, joblife.Memo{ID: 1, Values: []byte(`{"a":1}`)})
			return err
		},
		"no answer": func(s *site, ctx context.Context) error {
			_, err := s.l.Call(ctx, joblife.SetPriority{ID: 1, Priority: 5})
			return err
		},
		"a refusal": func(s *site, ctx context.Context) error {
			_, err := s.l.Call(ctx, submit(2))
			return err
		},
		"a view": func(s *site, ctx context.Context) error {
			return s.l.View(ctx, func(m *joblife.Manager) {
				v, _ := m.Job(1)
				require.Equal(t, 20, v.Job().Urgency(), "it sees what is accepted")
			})
		},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, ctx context.Context) {
					d := &disk{}
					s := newSite(t, time.Now(), d, config(), 0)
					s.mute = true
					ended := make(chan error, 1)
					ctx, cancel := context.WithCancel(ctx)
					defer cancel()
					go func() { ended <- s.l.Run(ctx) }()
					_, err := s.l.Call(ctx, submit(1))
					require.NoError(t, err)
					d.takes = time.Second
					if fails {
						d.fault = func(n int) error {
							if n == 3 {
								return errBroken
							}
							return nil
						}
					}
					before := time.Now()
					s.put(submit(3)) // with the store for a second
					synctest.Wait()
					s.put(joblife.SetUrgency{ID: 1, Urgency: 20}, submit(2))
					err = ask(s, ctx)
					require.Equal(t, 2*time.Second, time.Since(before), "it waited for both commits")
					if fails {
						require.ErrorIs(t, err, loop.ErrEnded)
						require.ErrorIs(t, err, errBroken)
						require.ErrorIs(t, <-ended, errBroken)
						require.ErrorIs(t, s.l.Put(hello...), loop.ErrEnded)
						require.ErrorIs(t, s.l.View(ctx, nil), errBroken)
						require.ErrorIs(t, s.l.Run(ctx), errBroken)
						require.NotContains(t, s.journal.String(), "urgency")
						return
					}
					if name == "a refusal" {
						require.ErrorIs(t, err, joblife.ErrInvalid)
					} else {
						require.NoError(t, err)
					}
					cancel()
					<-ended
				})
			})
		}
	}
}

func TestInputsShareTheNextCommit(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		d := &disk{takes: time.Millisecond}
		s := newSite(t, time.Now(), d, config(), 0)
		s.mute = true
		stop := s.run(ctx)
		s.put(submit(1))
		synctest.Wait()
		for id := range jobid.ID(1000) {
			s.put(submit(2 + id))
		}
		synctest.Wait()
		require.Zero(t, s.l.Stats().Waiting, "they are dispatched while the store works")
		require.NoError(t, s.l.View(ctx, func(m *joblife.Manager) { require.Len(t, m.Stats().States, 1) }))
		require.Equal(t, uint64(2), s.l.Stats().Commits)
		require.Equal(t, uint64(1001), s.l.Stats().Inputs)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

// What waits for a store that hangs is bounded: inputs and their bytes, what functions step,
// and those who ask.
func TestMemoryIsBoundedWhileTheStoreHangs(t *testing.T) {
	large := joblife.Raise{ID: 99, Type: "x", Note: string(make([]byte, 1<<20))} // refused: it takes no memory here
	for name, c := range map[string]struct {
		limit, each int // inputs that may wait, and how many asks come at once
		ask         func(s *site, ctx context.Context) error
		want, delta int
	}{
		"inputs": {100, 100, func(s *site, _ context.Context) error { return s.l.Put(joblife.SetPriority{ID: 1}) }, 1<<14 + 100, 228},
		"bytes":  {0, 1, func(s *site, _ context.Context) error { return s.l.Put(large) }, 64 + 64, 2},
		"functions": {100, 1, func(s *site, _ context.Context) error {
			return s.l.Do(func(*joblife.Manager) func() { _ = s.l.Step(large); return nil })
		}, 64 + 100, 2},
		"refusals": {100, 50, func(s *site, ctx context.Context) error {
			_, err := s.l.Call(ctx, submit(1))
			return err
		}, 1<<14 + 50, 200},
		"views": {100, 50, func(s *site, ctx context.Context) error { return s.l.View(ctx, func(*joblife.Manager) {}) }, 1<<14 + 50, 200},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				s := newSite(t, time.Now(), &disk{takes: time.Hour}, config(), c.limit)
				s.mute = true
				stop := s.run(ctx)
				s.put(submit(1))
				synctest.Wait()
				brief, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				var full atomic.Bool
				n := 0
				for ; n < 20000 && !full.Load(); n++ {
					go func() {
						if errors.Is(c.ask(s, brief), loop.ErrFull) {
							full.Store(true)
						}
					}()
					if n%c.each == c.each-1 {
						synctest.Wait()
					}
				}
				synctest.Wait()
				require.InDelta(t, c.want, n, float64(c.delta))
				require.ErrorIs(t, stop(), context.Canceled)
			})
		})
	}
}

func TestTheInboxIsBounded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // what has room does not wait
	d := &disk{}
	s := newSite(t, start, d, config(), 7)
	tick := joblife.Tick{}
	for range 4 {
		_, err := s.l.Call(ctx, tick)
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err := s.l.Call(ctx, tick)
	require.ErrorIs(t, err, loop.ErrFull, "half of it is full")
	require.ErrorIs(t, s.l.View(ctx, nil), loop.ErrFull)
	require.ErrorIs(t, s.l.Put(tick, tick, tick, tick), loop.ErrFull)
	require.Equal(t, 4, s.l.Stats().Waiting, "all of them, or none")
	s.put(tick, tick, tick)
	require.ErrorIs(t, s.l.Put(tick), loop.ErrFull)
	require.NoError(t, s.l.Advance(start))
	require.Zero(t, s.l.Stats().Waiting)
	require.Equal(t, uint64(3), s.l.Stats().Inputs, "a Call without a caller does not count")

	s = newSite(t, start, d, config(), 0)
	large := joblife.Submit{ID: 1, Jobspec: make([]byte, 65<<20)}
	s.put(large)
	require.ErrorIs(t, s.l.Put(submit(1)), loop.ErrFull)
	require.NoError(t, s.l.Put(tick))
	require.NoError(t, s.l.Advance(start))
	s.put(large)

	full := newSite(t, start, d, config(), 0)
	full.put(joblife.Raise{Note: "x"})
	require.ErrorIs(t, full.l.Put(joblife.Submit{Jobspec: make([]byte, 64<<20)}), loop.ErrFull, "a byte too much")
	full.put(joblife.Submit{Jobspec: make([]byte, 64<<20-1)})

	spec, err := jobspec.New(jobspec.Job{Command: []string{"x"}})
	require.NoError(t, err)
	for _, in := range []joblife.Input{
		submit(1), joblife.Submit{Spec: spec}, joblife.UpdateJobspec{Updates: []jobstate.Update{{Path: "x"}}}, joblife.Memo{Values: []byte("x")}, joblife.Post{Name: "x"},
		joblife.Raise{Note: "x"}, joblife.SchedResponse{Note: "x"}, joblife.ExecResponse{Exception: exec.Exception{Note: "x"}},
		joblife.Report{Report: perilog.Report{Line: []byte("x")}}, joblife.Report{Report: perilog.Report{Detail: "x"}},
		joblife.Report{Report: perilog.Report{Action: jobstate.ActionKey{Description: "x"}}}, joblife.Reports{List: make([]joblife.Report, 1)}, joblife.SetFlags{Flags: []string{"x"}},
		joblife.DependencyAdd{Description: "x"}, joblife.EnableQueue{Reason: "x"}, joblife.StartQueue{Queue: "x"},
		joblife.PurgeIDs{IDs: []jobid.ID{1}}, joblife.ExecRefused{Note: "x"}, joblife.ForceFinish{Operator: "x"},
		joblife.SchedResponse{R: s.node}, joblife.Drained{Ranks: idset.Of(1)}, joblife.Offline{Ranks: idset.Of(1)},
		joblife.Rerun{Action: joblife.Action{Ranks: idset.Of(1)}}, joblife.Reload{Config: joblife.Config{Queues: []string{"a"}}},
		joblife.Tagged{In: joblife.Drained{Ranks: idset.Of(1)}},
	} {
		require.ErrorIs(t, s.l.Put(in), loop.ErrFull, "%T", in)
	}

	var hosts strings.Builder
	hosts.WriteString("host")
	for i := range 100_000 {
		fmt.Fprintf(&hosts, ",host%d", 2*i) // no range of names
	}
	r, err := rset.Parse(fmt.Appendf(nil, `{"version":1,"execution":{"R_lite":[{"rank":"0-100000","children":{"core":"0"}}],"nodelist":[%q]}}`, hosts.String()))
	require.NoError(t, err)
	s = newSite(t, start, d, config(), 0)
	for err, n := error(nil), 1; err == nil; n++ {
		err = s.l.Put(joblife.SchedResponse{ID: 1, R: r})
		require.Less(t, n, 64<<20/hosts.Len(), "each is longer than the names of its hosts")
	}

	s = newSite(t, start, d, config(), 1)
	require.ErrorIs(t, s.l.View(ctx, nil), context.Canceled, "there is always room for one")
}

// A ring is an error that refers to itself, as one with a request and its answer may.
type ring struct{ next *ring }

func (*ring) Error() string { return "it is round" }

// What an error refers to has no end, perhaps, and is in use, perhaps.
func TestAnErrorIsNotMeasured(t *testing.T) {
	r := new(ring)
	r.next = r
	s := newSite(t, start, new(disk), config(), 0)
	s.put(joblife.Validated{ID: 1, Err: r})
	require.NoError(t, s.l.Advance(start))
	require.ErrorIs(t, s.refused[0], joblife.ErrUnknown)
}

func TestTagsOfTheLoopAreItsOwn(t *testing.T) {
	s := newSite(t, start, &disk{}, config(), 0)
	for _, in := range []joblife.Input{
		joblife.Raise{Tag: 1 << 63, ID: 1, Type: "cancel"}, joblife.Reports{List: []joblife.Report{{}, {Tag: 1 << 63}, {}}}, joblife.WaitEmpty{Tag: 1<<64 - 1, States: jobstate.StateActive},
		joblife.WaitCancel{Tag: 1<<63 + 1},
	} {
		require.ErrorIs(t, s.l.Put(joblife.Tick{}, in), joblife.ErrInvalid)
	}
	_, err := s.l.Call(context.Background(), joblife.WaitCancel{Tag: 1<<63 + 1})
	require.ErrorIs(t, err, joblife.ErrInvalid)
	require.Zero(t, s.l.Stats().Waiting)
	s.put(joblife.Wait{Tag: 1<<63 - 1, ID: 1, States: jobstate.StateInactive})
	require.NoError(t, s.l.Advance(start))
	require.Len(t, s.answers, 1)
}

func TestACallerThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		d := &disk{}
		s := newSite(t, time.Now(), d, config(), 0)
		s.mute = true
		stop := s.run(ctx)
		_, err := s.l.Call(ctx, submit(1))
		require.NoError(t, err)
		brief, cancel := context.WithTimeoutCause(ctx, time.Second, errBroken)
		defer cancel()
		_, err = s.l.Call(brief, joblife.Wait{ID: 1, States: jobstate.StateInactive})
		require.ErrorIs(t, err, errBroken)
		_, err = s.l.Call(brief, submit(2))
		require.ErrorIs(t, err, errBroken)
		require.ErrorIs(t, s.l.View(brief, func(*joblife.Manager) { t.Error("it is called") }), errBroken)
		require.NoError(t, s.l.View(ctx, func(m *joblife.Manager) {
			require.Zero(t, m.Stats().Waits, "the wait has ended")
			_, ok := m.Job(2)
			require.False(t, ok, "it was not dispatched")
		}))
		d.takes = time.Minute
		brief, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = s.l.Call(brief, submit(2))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, s.l.View(ctx, func(m *joblife.Manager) {}))
		require.NoError(t, s.l.View(ctx, func(m *joblife.Manager) {
			_, ok := m.Job(2)
			require.True(t, ok, "it counts")
		}))
		require.Empty(t, s.answers, "its answer is nobody's")
		synctest.Wait()
		require.Zero(t, s.l.Calls())
		brief, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = s.l.Call(brief, joblife.Wait{ID: 1, States: jobstate.StateInactive})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.ErrorIs(t, stop(), context.Canceled)
		require.Zero(t, s.m.Stats().Waits, "it has ended before the next input")
	})
}

func TestAView(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		s := newSite(t, time.Now(), &disk{}, config(), 0)
		s.mute = true
		stop := s.run(ctx)
		s.put(submit(1), submit(2))
		require.NoError(t, s.l.View(ctx, func(m *joblife.Manager) {
			require.Equal(t, 2, m.Stats().States[jobstate.StateSched], "it comes after what was put before")
			s.put(submit(3))
		}))
		require.Equal(t, "mine", panics(func() {
			_ = s.l.View(ctx, func(*joblife.Manager) { panic("mine") })
		}), "a panic is the caller's")
		done := make(chan bool)
		go func() {
			defer close(done)
			_ = s.l.View(ctx, func(*joblife.Manager) { runtime.Goexit() })
		}()
		<-done
		require.NoError(t, s.l.View(ctx, func(m *joblife.Manager) { require.Equal(t, 3, m.Stats().States[jobstate.StateSched]) }))
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestPanicsEndTheLoop(t *testing.T) {
	purgeAll := joblife.Purge{Force: true, Limits: purge.Limits{MaxCount: jobstate.Some(0)}}
	for name, c := range map[string]struct {
		harm func(s *site)
		want string
	}{
		"Append": {func(s *site) { s.disk.fault = func(int) error { panic("mine") } }, "loop: the store panics: mine\n\ngoroutine "},
		"Unlink": {func(s *site) {
			s.disk.unlink = func([]jobid.ID) (map[jobid.ID]error, error) { panic("mine") }
			s.effects = func(*joblife.Ready) { s.put(purgeAll) }
		}, "loop: the store panics: mine\n\ngoroutine "},
		"Effects": {func(s *site) { s.effects = func(*joblife.Ready) { panic("mine") } }, "mine"},
		"Refused": {func(s *site) {
			s.refuse = func() { panic("mine") }
			s.put(joblife.ExecResponse{ID: 99})
		}, "mine"},
		"Do": {func(s *site) { _ = s.l.Do(func(*joblife.Manager) func() { panic("mine") }) }, "mine"},
		"what a function of Do returns": {func(s *site) {
			_ = s.l.Do(func(*joblife.Manager) func() { return func() { panic("mine") } })
		}, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				s := newSite(t, time.Now(), &disk{takes: time.Second}, config(), 0)
				s.put(hello...)
				c.harm(s)
				got := make(chan string)
				go func() { got <- panics(func() { _ = s.l.Run(ctx) }) }()
				var err error
				for id := jobid.ID(1); err == nil; id++ {
					_, err = s.l.Call(ctx, submit(id))
				}
				require.ErrorIs(t, err, loop.ErrEnded)
				text := <-got
				require.Equal(t, c.want, text[:len(c.want)])
				require.ErrorIs(t, s.l.Put(), loop.ErrEnded)
			})
		})
	}
}

func TestAStoreThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(d *disk)
		want string
	}{
		"append":  {func(d *disk) { d.fault = func(int) error { return errBroken } }, "loop: store: broken"},
		"deserts": {func(d *disk) { d.fault = func(int) error { runtime.Goexit(); return nil } }, "loop: store: it ended its goroutine"},
		"unlink":  {func(d *disk) { d.unlink = func([]jobid.ID) (map[jobid.ID]error, error) { return nil, errBroken } }, "loop: store: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				d := new(disk)
				c.harm(d)
				s := newSite(t, time.Now(), d, config(), 0)
				s.put(append(hello, submit(1))...)
				var err error
				go func() {
					for err == nil {
						_, err = s.l.Call(ctx, joblife.Purge{Force: true, Limits: purge.Limits{MaxCount: jobstate.Some(0)}})
					}
				}()
				require.EqualError(t, s.l.Run(ctx), c.want)
				synctest.Wait()
				require.ErrorIs(t, err, loop.ErrEnded)
				require.ErrorIs(t, s.m.Step(time.Now(), joblife.Tick{}), joblife.ErrAbandoned)
			})
		})
	}
	s := newSite(t, start, &disk{}, config(), 0)
	s.l, _ = loop.New(s.m, loop.Config{Effects: s.act, Refused: func(joblife.Input, error) {}})
	s.put(submit(1))
	require.EqualError(t, s.l.Advance(start), "loop: store: there is none, and the Manager is not volatile: set Store or Begin of Config")
	require.ErrorIs(t, s.l.Advance(start), loop.ErrEnded)
}

func TestUnlinkIsReported(t *testing.T) {
	d := new(disk)
	var asked [][]jobid.ID
	d.unlink = func(ids []jobid.ID) (map[jobid.ID]error, error) {
		asked = append(asked, ids)
		return map[jobid.ID]error{2: errBroken}, nil
	}
	s := newSite(t, start, d, config(), 0)
	s.put(hello...)
	for i, id := range []jobid.ID{1, 3, 2} {
		s.put(submit(id))
		require.NoError(t, s.l.Advance(start.Add(time.Duration(i)*time.Second)))
	}
	s.put(joblife.Purge{Tag: 5, Force: true, Limits: purge.Limits{MaxCount: jobstate.Some(0)}})
	require.NoError(t, s.l.Advance(start.Add(time.Minute)))
	require.Equal(t, [][]jobid.ID{{1, 3, 2}}, asked)
	require.Equal(t, []joblife.Answer{{Tag: 5, Count: 2}}, s.answers)
	require.Equal(t, 1, s.m.Stats().States[jobstate.StateInactive])
}

func TestAnOrderlyStopHandsOutWhatIsDecided(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		d := &disk{takes: time.Second}
		s := newSite(t, time.Now(), d, config(), 0)
		s.mute = true
		stop := s.run(ctx)
		s.put(submit(1))
		synctest.Wait()
		var err error
		go func() { _, err = s.l.Call(ctx, submit(2)) }()
		synctest.Wait()
		before := time.Now()
		require.ErrorIs(t, stop(), context.Canceled)
		synctest.Wait()
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(before))
		require.Contains(t, s.journal.String(), "2 submit")
		require.ErrorIs(t, s.l.Put(submit(3)), context.Canceled)
		require.False(t, s.m.Ready(new(joblife.Ready)), "a Snapshot has all")
		short := new(disk)
		for r := range s.m.Snapshot() {
			short.records = append(short.records, r.Clone())
		}
		require.Equal(t, s.m.Stats().States, newSite(t, time.Now(), short, config(), 0).m.Stats().States)

		s = newSite(t, time.Now(), d, config(), 0) // what a restart decides is handed out too
		s.put(submit(4))
		stopped, cancel := context.WithCancelCause(ctx)
		cancel(errBroken)
		seen := make(chan error)
		go func() { seen <- s.l.View(ctx, nil) }()
		synctest.Wait()
		require.Equal(t, 2, s.l.Stats().Waiting)
		require.ErrorIs(t, s.l.Run(stopped), errBroken)
		require.ErrorIs(t, <-seen, loop.ErrEnded)
		require.Zero(t, s.l.Stats().Waiting)
		require.NotContains(t, d.text(t), `"job":"ƒ5"`, "what waits is lost")

		d = &disk{takes: time.Second}
		s = newSite(t, time.Now(), d, config(), 0)
		stop = s.run(ctx)
		s.put(append(hello, submit(1))...)
		_, err = s.l.Call(ctx, joblife.WaitEmpty{States: jobstate.StateActive})
		require.NoError(t, err)
		s.put(joblife.Purge{Force: true, Limits: purge.Limits{MaxCount: jobstate.Some(0)}})
		synctest.Wait()
		require.ErrorIs(t, stop(), context.Canceled)
		require.Contains(t, d.text(t), `"name":"tombstone"`)
		require.NotContains(t, d.text(t), `"name":"unlinked"`, "a long purge does not go on")

		s = newSite(t, time.Now(), d, config(), 0)
		d.fault = func(int) error { return errBroken }
		stop = s.run(ctx)
		s.put(submit(4))
		synctest.Wait()
		require.EqualError(t, stop(), "loop: store: broken")
	})
}

func TestAShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		at := func(after time.Duration) eventlog.Timestamp { return eventlog.FromTime(time.Now().Add(after)) }
		s := newSite(t, time.Now(), new(disk), config(), 0)
		s.put(append(hello, submit(1), joblife.Shutdown{})...)
		require.NoError(t, s.l.Run(ctx), "nothing runs")
		require.Equal(t, loop.ErrEnded, s.l.Put(joblife.Tick{}))
		require.Contains(t, s.disk.text(t), "submit", "all is durable")

		begin := func(d *disk, in joblife.Input) (*site, chan error) {
			s := newSite(t, time.Now(), d, config(), 0)
			var report joblife.Input
			s.effects = func(rd *joblife.Ready) {
				for _, l := range rd.Launch {
					report = joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited}}
					s.mute = true
				}
			}
			s.put(append(hello, submit(1))...)
			ended := make(chan error, 1)
			go func() { ended <- s.l.Run(ctx) }()
			synctest.Wait()
			require.NotNil(t, report)
			s.put(in)
			synctest.Wait()
			require.Empty(t, ended, "the epilog runs")
			s.effects = func(*joblife.Ready) { <-time.After(time.Second) }
			go func() {
				<-time.After(time.Minute)
				_ = s.l.Put(report, joblife.Tick{})
			}()
			return s, ended
		}
		before := time.Now()
		s, ended := begin(new(disk), joblife.Shutdown{})
		require.NoError(t, <-ended)
		require.Equal(t, time.Minute+time.Second, time.Since(before))
		require.Contains(t, s.journal.String(), "epilog-finish", "its end is handed out")

		before = time.Now()
		s, ended = begin(new(disk), joblife.Shutdown{Deadline: at(9 * time.Second)})
		require.NoError(t, <-ended)
		require.InDelta(t, 9, time.Since(before).Seconds(), 0.001)
		require.NotContains(t, s.journal.String(), "epilog-finish")
		<-time.After(time.Hour)
	})
}

func TestTimePasses(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		cfg := config()
		cfg.Actions.Epilogs[0].Timeout = fsd.Duration(10 * time.Minute)
		for _, c := range []struct {
			set time.Duration // how far the clock is set ahead when the epilog runs
			end float64       // when it gets a signal, in seconds
		}{{0, 600}, {time.Hour, 60}} { // it looks at the clock each minute
			var ahead atomic.Int64
			s := newSite(t, time.Now(), new(disk), cfg, 0)
			s.l.SetClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			var launched, signaled time.Time
			s.effects = func(rd *joblife.Ready) {
				if s.mute = len(rd.Launch) > 0; s.mute {
					launched = time.Now()
				}
				if len(rd.Signal) > 0 && signaled.IsZero() {
					signaled = time.Now()
				}
			}
			stop := s.run(ctx)
			s.put(append(hello, submit(1))...)
			synctest.Wait()
			ahead.Store(int64(c.set))
			<-time.After(time.Hour)
			require.ErrorIs(t, stop(), context.Canceled)
			require.InDelta(t, c.end, signaled.Sub(launched).Seconds(), 0.001)
			require.Less(t, s.l.Stats().Inputs, uint64(100), "it does not spin")
		}
	})
}

// A takeover by a host whose clock is behind goes on, and no event goes back.
func TestAClockThatIsBehindTheRecordsGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		d := new(disk)
		s := newSite(t, time.Now().Add(time.Hour), d, config(), 0)
		require.NoError(t, s.m.Step(time.Now().Add(time.Hour), submit(1)))
		stop := s.run(ctx)
		synctest.Wait()
		stop()
		last := d.records[len(d.records)-1].Time
		require.InDelta(t, 3600, time.Until(last.Time()).Seconds(), 1)

		s = newSite(t, time.Now(), d, config(), 0)
		stop = s.run(ctx)
		<-time.After(time.Minute)
		s.put(submit(2))
		synctest.Wait()
		stop()
		r := d.records[len(d.records)-1]
		require.Equal(t, jobid.ID(2), r.Job)
		require.InDelta(t, 60, float64(r.Time-last), 1, "its time passes as that of the clock does")
	})
}

func TestAdvanceIsNotForTwo(t *testing.T) {
	s := newSite(t, start, new(disk), config(), 0)
	s.effects = func(*joblife.Ready) {
		require.EqualError(t, s.l.Advance(start), "loop: it runs already")
		require.EqualError(t, s.l.Run(context.Background()), "loop: it runs already")
	}
	s.put(submit(1))
	require.NoError(t, s.l.Advance(start))
	require.ErrorIs(t, s.l.Advance(start.Add(-1)), joblife.ErrClock)
	require.NoError(t, s.l.Advance(start), "nothing has changed")
	s.put(joblife.Shutdown{})
	require.NoError(t, s.l.Advance(start))
	require.Equal(t, loop.ErrEnded, s.l.Advance(start))

	bubble(t, func(t *testing.T, ctx context.Context) {
		s := newSite(t, time.Now(), &disk{takes: time.Hour}, config(), 0)
		ended := make(chan error, 1)
		before := time.Now()
		s.put(submit(1))
		go func() { ended <- s.l.Run(ctx) }()
		synctest.Wait() // the job is with the store
		require.NoError(t, s.m.Step(time.Now().Add(time.Hour), joblife.Tick{}))
		s.put(joblife.Tick{})
		require.ErrorIs(t, <-ended, joblife.ErrClock, "the Manager is ahead")
		require.Equal(t, time.Hour, time.Since(before), "it leaves no goroutine")
	})

	s = newSite(t, start, new(disk), config(), 0)
	s.put(joblife.Tick{})
	require.ErrorIs(t, s.l.Advance(start.Add(-time.Hour)), joblife.ErrClock, "the Manager was there before")
	require.NoError(t, s.l.Advance(start), "nothing has changed")
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	m, err := joblife.New(joblife.Config{})
	require.NoError(t, err)
	good := loop.Config{Effects: func(*joblife.Manager, *joblife.Ready) {}, Refused: func(joblife.Input, error) {}}
	_, err = loop.New(nil, good)
	require.EqualError(t, err, "loop: the Manager is nil")
	_, err = loop.New(m, loop.Config{Effects: good.Effects})
	require.EqualError(t, err, "loop: Config needs Effects and Refused")
	good.MaxInputs = -1
	_, err = loop.New(m, good)
	require.ErrorContains(t, err, "MaxInputs is -1")
}

func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		cfg := config()
		cfg.Epoch = time.Unix(1_700_000_000, 0)
		s := newSite(t, time.Now(), new(disk), cfg, 0)
		stop := s.run(context.Background())
		s.put(hello...)
		for range 10 {
			a, err := s.l.Call(context.Background(), submit(0))
			require.NoError(t, err)
			_, err = s.l.Call(context.Background(), joblife.Wait{ID: a.Job, States: jobstate.StateInactive})
			require.NoError(t, err)
		}
		require.ErrorIs(t, stop(), context.Canceled)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1, "the last one may be about to go")
}

// A clock that is set back goes on, and follows one that is set ahead.
func TestTheClockDoesNotStepBack(t *testing.T) {
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var c loop.Clock
	for i, r := range []struct{ reads, elapsed, want int }{
		{0, 1 << 30, 0}, {1, 1, 1}, {-3600, 1, 2}, {-3540, 60, 62}, {62, 0, 62}, {100, 30, 100}, {7200, 1, 7200}, {101, 1, 7201},
	} {
		require.Equal(t, at(r.want), c.Next(at(r.reads), time.Duration(r.elapsed)*time.Second), "%d", i)
	}
}

// A hook that asks for more at once does not keep Advance from its end.
func TestAdvanceTicksOnce(t *testing.T) {
	cfg, n := config(), 1
	cfg.Hooks = []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
		if e.Entry.Name == "memo" {
			n++
			e.PostAt(e.Entry.Timestamp, joblife.Memo{ID: e.Job.ID(), Values: fmt.Appendf(nil, `{"n":%d}`, n)})
		}
	}}}
	s := newSite(t, start, new(disk), cfg, 0)
	s.put(submit(1))
	require.NoError(t, s.l.Advance(start))
	s.put(joblife.Memo{ID: 1, Values: []byte(`{"n":1}`)})
	for range 3 {
		require.NoError(t, s.l.Advance(start))
	}
	require.Equal(t, 4, strings.Count(s.journal.String(), "memo"), "one, and one for each Tick")
}

func TestAdvanceBesideRun(t *testing.T) {
	s := newSite(t, start, new(disk), config(), 0)
	stop := s.run(t.Context())
	for range 100 {
		_, err := s.l.Call(t.Context(), joblife.Tick{})
		require.NoError(t, err)
		require.EqualError(t, s.l.Advance(start), "loop: it runs already")
	}
	require.ErrorIs(t, stop(), context.Canceled)
	require.ErrorIs(t, s.l.Advance(start), loop.ErrEnded)
}

// Who recovers and restores has the store for itself.
func TestAPanicWaitsForTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		d := &disk{takes: time.Second}
		s := newSite(t, time.Now(), d, config(), 0)
		s.put(submit(1))
		s.refuse = func() { panic("mine") }
		got := make(chan string, 1)
		go func() { got <- panics(func() { _ = s.l.Run(ctx) }) }()
		synctest.Wait() // the job is with the store
		s.put(joblife.ExecResponse{ID: 99})
		require.Equal(t, "mine", <-got)
		require.False(t, d.busy)
	})
}

func TestAVolatileManagerNeedsNoStore(t *testing.T) {
	cfg := config()
	cfg.Volatile = true
	s := newSite(t, start, new(disk), config(), 0)
	var err error
	s.m, err = joblife.New(cfg)
	require.NoError(t, err)
	s.l, err = loop.New(s.m, loop.Config{Effects: s.act, Refused: func(in joblife.Input, err error) { t.Errorf("%T: %v", in, err) }})
	require.NoError(t, err)
	s.put(append(hello, submit(1))...)
	require.NoError(t, s.l.Advance(start))
	s.put(joblife.Purge{Tag: 5, Force: true, Limits: purge.Limits{MaxCount: jobstate.Some(0)}})
	require.NoError(t, s.l.Advance(start.Add(time.Second)))
	require.Equal(t, []joblife.Answer{{Tag: 5, Count: 1}}, s.answers)
	require.Zero(t, s.l.Stats().Commits)
}

// The Manager drops the memory of a large Ready, and so does the Loop.
func TestNoReadyIsKept(t *testing.T) {
	s := newSite(t, start, new(disk), config(), 0)
	var kept *joblife.Ready
	s.effects = func(rd *joblife.Ready) { kept = rd }
	s.put(submit(1))
	require.NoError(t, s.l.Advance(start))
	require.Zero(t, *kept)
}

// An input that was dispatched is not kept, even while many wait behind it, nor when none does.
func TestNoInputIsKept(t *testing.T) {
	s := newSite(t, start, new(disk), config(), 0)
	put := func() weak.Pointer[idset.Set] {
		ranks := idset.Of(1)
		s.put(joblife.Drained{Ranks: ranks})
		return weak.Make(ranks)
	}
	first := put()
	s.put(slices.Repeat([]joblife.Input{joblife.Tick{}}, 300)...)
	require.NoError(t, s.l.Do(func(*joblife.Manager) func() {
		runtime.GC()
		require.Nil(t, first.Value())
		return nil
	}))
	s.put(slices.Repeat([]joblife.Input{joblife.Tick{}}, 600)...)
	require.NoError(t, s.l.Advance(start))
	last := put()
	require.NoError(t, s.l.Advance(start))
	runtime.GC()
	require.Nil(t, last.Value())
	runtime.KeepAlive(s.l)
}

// A Shutdown comes from a hook, before the Loop was made, or is over when an input comes
// so shortly before its deadline that its time is rounded to it.
func TestAShutdownThatTheManagerKnows(t *testing.T) {
	for name, act := range map[string]func(s *site, set func(time.Time)){
		"of a hook": func(s *site, _ func(time.Time)) {
			s.mute = true
			s.put(submit(1))
			synctest.Wait()
			s.put(joblife.Memo{ID: 1, Values: []byte(`{"n":1}`)})
		},
		"before New": func(s *site, _ func(time.Time)) {
			require.NoError(s.t, s.m.Step(time.Now(), joblife.Shutdown{}))
		},
		"just before the deadline": func(s *site, set func(time.Time)) {
			s.effects = func(rd *joblife.Ready) { s.mute = s.mute || len(rd.Launch) > 0 }
			s.put(append(hello, submit(1))...)
			synctest.Wait()
			at := eventlog.FromTime(time.Now().Add(time.Minute))
			s.put(joblife.Shutdown{Deadline: at})
			synctest.Wait()
			now := at.Time()
			for eventlog.FromTime(now.Add(-1)) == at {
				now = now.Add(-1)
			}
			require.True(s.t, now.Before(at.Time()))
			set(now)
			s.put(joblife.Tick{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				cfg := config()
				cfg.Hooks = []joblife.Hooks{{Event: func(e *joblife.HookEvent) {
					if e.Entry.Name == "memo" {
						e.Post(joblife.Shutdown{})
					}
				}}}
				s := newSite(t, time.Now(), new(disk), cfg, 0)
				now := time.Now()
				s.l.SetClock(func() time.Time { return now })
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				ended := make(chan error, 1)
				begin := func() { ended <- s.l.Run(ctx) }
				if name == "before New" {
					act(s, nil)
					go begin()
				} else {
					go begin()
					act(s, func(t time.Time) { now = t })
				}
				synctest.Wait()
				if len(ended) == 0 {
					t.Fatal("it goes on")
				}
				require.NoError(t, <-ended)
			})
		})
	}
}

// A nil context is its caller's panic.
func TestACarelessCallerHarmsNobodyElse(t *testing.T) {
	s := newSite(t, start, new(disk), config(), 0)
	var none context.Context
	require.NotEmpty(t, panics(func() { _, _ = s.l.Call(none, submit(1)) }))
	require.NotEmpty(t, panics(func() { _ = s.l.View(none, func(*joblife.Manager) {}) }))
	require.NoError(t, s.l.Advance(start))
	require.Zero(t, s.l.Stats().Inputs)
}
