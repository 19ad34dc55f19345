package loop_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
)

var errCrash = errors.New("crash")

// embedder is a Loop as joblifetest tests it.
type embedder struct {
	m           *joblife.Manager
	l           *loop.Loop
	site        *joblifetest.Site
	refused     error
	sched, exec int // the connections
}

func newEmbedder(site *joblifetest.Site) (joblifetest.Embedder, error) {
	m, _, err := joblife.Restore(site.Now, site.Config, site.Records())
	if err != nil {
		return nil, err
	}
	e := &embedder{m: m, site: site}
	e.l, err = loop.New(m, loop.Config{Store: storeOf{site}, Effects: e.act, Refused: func(_ joblife.Input, err error) { e.refused = err }})
	return e, err
}

// act crashes where the site does.
func (e *embedder) act(_ *joblife.Manager, rd *joblife.Ready) {
	if err := e.site.Do(rd); err != nil {
		panic(err)
	}
}

type storeOf struct{ *joblifetest.Site }

func (storeOf) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }

func (e *embedder) Manager() *joblife.Manager { return e.m }

func (e *embedder) Handle(now time.Time, connection int, in joblife.Input) (err error) {
	switch in.(type) {
	case joblife.SchedHello:
		e.sched = connection
	case joblife.ExecHello:
		e.exec = connection
	}
	if connection != 0 && connection != e.sched && connection != e.exec {
		return nil // it comes too late
	}
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	e.refused = nil
	if err := errors.Join(e.l.Put(in), e.l.Advance(now)); err != nil {
		return err
	}
	return e.refused
}

func TestTheWorldIsContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { joblifetest.RunEmbedder(t, newEmbedder) })
}

// work is what users ask for, in the order of time.
func work(now time.Time, s *site) {
	for _, in := range append(slices.Clone(hello), submit(1), submit(2), joblife.SetUrgency{ID: 2, Urgency: 31}, joblife.Raise{ID: 99, Type: "cancel"},
		submit(3), joblife.Raise{ID: 3, Type: "cancel"}, joblife.Memo{ID: 2, Values: []byte(`{"a":1}`)}) {
		s.put(in)
		if err := s.l.Advance(now); err != nil {
			return
		}
	}
}

// The Loop dies at each Append and around each of its Effects. What is durable is restored,
// and the jobs go on to their end.
func TestACrashAtEachPointLosesNothing(t *testing.T) {
	const (
		before = iota // nothing is stored
		part
		stored // and the store says that it failed
		after
		done // with the effects
		points
	)
	for n := 1; ; n++ {
		reached := false
		for point := range points {
			d := new(disk)
			s := newSite(t, start, d, config(), 0)
			crashes := func(at int) bool {
				here := at == point && d.appends == n
				reached = reached || here
				return here
			}
			d.fault = func(int) error {
				if d.stores = float64(point) / 2; crashes(before) || crashes(part) || crashes(stored) {
					return errCrash
				}
				return nil
			}
			s.effects = func(*joblife.Ready) {
				if crashes(after) {
					panic(errCrash)
				}
			}
			s.did = func() {
				if crashes(done) {
					panic(errCrash)
				}
			}
			text := panics(func() { work(start, s) })
			require.True(t, text == "" || text == errCrash.Error(), text)

			told := s.journal.String()
			d.fault, d.busy = nil, false
			s = newSite(t, start.Add(time.Second), d, config(), 0)
			s.put(hello...)
			require.NoError(t, s.l.Advance(start.Add(time.Second)))
			for id := range jobid.ID(4) {
				v, ok := s.m.Job(id)
				if ok {
					require.Equal(t, jobstate.StateInactive, v.State(), "%v after a crash at %d, %d", id, n, point)
				} else {
					require.NotContains(t, told, id.Format(jobid.FormatDec)+" submit", "it is lost, after a crash at %d, %d", n, point)
				}
			}
		}
		if !reached {
			require.Greater(t, n, 10)
			return
		}
	}
}

// What callers and Effects saw is a prefix of what is durable, and Restore agrees with it.
func TestWhatIsHandedOutIsDurable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fails := rapid.IntRange(1, 40).Draw(rt, "the store fails at")
		callers := rapid.IntRange(1, 6).Draw(rt, "callers")
		jobs := rapid.IntRange(1, 6).Draw(rt, "jobs of each")
		stops := rapid.Bool().Draw(rt, "it is stopped")
		d := new(disk)
		d.fault = func(n int) error {
			if n == fails {
				return errBroken
			}
			return nil
		}
		s := newSite(t, time.Now(), d, config(), 0)
		events := make(map[jobid.ID][]string) // handed out
		s.effects = func(rd *joblife.Ready) {
			for _, e := range rd.Journal {
				events[e.Job] = append(events[e.Job], e.Entry.Name)
			}
		}
		s.hold = rapid.Bool().Draw(rt, "jobs do not end")
		stop := s.run(t.Context())
		_ = s.l.Put(hello...)
		var all sync.WaitGroup
		var mu sync.Mutex
		said := make(map[jobid.ID]jobstate.State) // to a caller
		for c := range callers {
			all.Go(func() {
				for i := range jobs {
					id := jobid.ID(1 + i*callers + c)
					note := func(state jobstate.State, err error) {
						if err == nil {
							mu.Lock()
							said[id] = state
							mu.Unlock()
						} else if !errors.Is(err, loop.ErrEnded) {
							t.Error(err)
						}
					}
					if _, err := s.l.Call(t.Context(), submit(id)); err != nil {
						note(0, err)
						return
					}
					note(jobstate.StateNew, nil)
					_, err := s.l.Call(t.Context(), joblife.Raise{ID: id, Type: "cancel"})
					if !errors.Is(err, joblife.ErrInactive) {
						note(jobstate.StateNew, err)
					}
					var state jobstate.State
					err = s.l.View(t.Context(), func(m *joblife.Manager) {
						v, ok := m.Job(id)
						if state = v.State(); !ok {
							t.Errorf("job %v is gone", id)
						}
					})
					note(state, err)
				}
			})
		}
		if stops {
			_ = stop()
		}
		all.Wait()
		err := stop()
		if len(d.records) > 0 && !errors.Is(err, errBroken) {
			require.ErrorIs(t, err, context.Canceled)
		}
		m, _, err := joblife.Restore(time.Now(), config(), d.all)
		require.NoError(t, err)
		for id, state := range said {
			v, ok := m.Job(id)
			require.True(t, ok, "a caller heard of %v", id)
			require.GreaterOrEqual(t, v.State(), state, "of %v", id)
		}
		for id, list := range events {
			var stored []string
			for _, r := range d.records {
				if r.Job == id && r.Kind == joblife.RecordEvent {
					e, err := eventlog.Parse(r.Data)
					require.NoError(t, err)
					stored = append(stored, e.Name)
				}
			}
			require.LessOrEqual(t, len(list), len(stored))
			require.Equal(t, stored[:len(list)], list, "of %v", id)
		}
	})
}

// I7.
func TestTheSameCallsGiveTheSameBytes(t *testing.T) {
	var texts []string
	for range 3 {
		d := new(disk)
		s := newSite(t, start, d, config(), 0)
		work(start, s)
		for at, ok := s.m.Deadline(); ok; at, ok = s.m.Deadline() {
			require.NoError(t, s.l.Advance(at))
		}
		texts = append(texts, d.text(t)+s.journal.String())
	}
	require.Equal(t, texts[0], texts[1])
	require.Equal(t, texts[0], texts[2])
}

// What could not be removed is tried again, when there is nothing to append.
func TestUnlinkIsTriedAgain(t *testing.T) {
	asked := 0
	d := &disk{unlink: func(ids []jobid.ID) (map[jobid.ID]error, error) {
		asked++
		return map[jobid.ID]error{1: errBroken}, nil
	}}
	cfg := config()
	cfg.Hooks = []joblife.Hooks{{Name: "later", Validate: func(*joblife.HookEvent) error { return joblife.ErrLater }}}
	s := newSite(t, start, d, cfg, 0)
	s.put(submit(1))
	require.NoError(t, s.l.Advance(start))
	s.put(joblife.Validated{ID: 1, Err: errBroken})
	require.NoError(t, s.l.Advance(start))
	require.NoError(t, s.l.Advance(start.Add(time.Hour)))
	require.Equal(t, 2, asked)
}
