package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/joblifetest"
)

// A stored is the log of an instance as a store: a life of it is an epoch.
type stored struct {
	*engine.Writer
	e     *engine.Engine
	epoch uint64
}

func (s stored) Records() iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stop := errors.New("stop")
		seq, err := s.e.Snapshot(ctx, func(r joblife.Record) error {
			if !yield(r, nil) {
				return stop
			}
			return nil
		})
		if err != nil {
			if !errors.Is(err, stop) {
				yield(joblife.Record{}, err)
			}
			return
		}
		batches := make(chan engine.Batch)
		go func() { _ = s.e.Follow(ctx, seq, batches) }()
		for seq < s.epoch {
			b := <-batches
			for _, r := range b.Records {
				if !yield(r, nil) {
					return
				}
			}
			seq = b.Seq
		}
	}
}

func (s stored) Close() error {
	s.e.Close()
	return nil
}

func serve(t *testing.T) string {
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s.ClientURL()
}

func open(t *testing.T, url, name string, life int) stored {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	e, err := engine.Make(ctx, engine.Config{URL: url, Instance: wire.Instance(name), Name: fmt.Sprint("life-", life)})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	epoch, err := e.Fence(ctx)
	require.NoError(t, err)
	return stored{e.Writer(epoch), e, epoch}
}

func TestTheLogIsAStore(t *testing.T) {
	url, life := serve(t), 0
	require.NoError(t, joblifetest.CheckStore(func(name string) (joblifetest.Store, error) {
		life++
		return open(t, url, fmt.Sprintf("%x", name), life), nil
	}))
}

// Who wrote before the last fence can append nothing, also when it repeats an append of which
// it did not hear.
func TestAFenceStopsWhoWroteBefore(t *testing.T) {
	url := serve(t)
	first := open(t, url, "main", 1)
	record := joblife.Record{Time: 1, Kind: joblife.RecordQueue, Data: []byte(`{"name":"","enable":true,"start":true}`)}
	require.NoError(t, first.Append([]joblife.Record{record}))
	second := open(t, url, "main", 2)
	require.ErrorIs(t, first.Append([]joblife.Record{record}), engine.ErrFenced)
	require.NoError(t, second.Append([]joblife.Record{record, record}))
	require.ErrorIs(t, first.Append([]joblife.Record{record}), engine.ErrFenced)
	n := 0
	for _, err := range open(t, url, "main", 3).Records() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 3, n)
}

// Who wrote before the last fence hears so at once, though the log was cut behind that.
func TestAFenceStopsWhoWroteBeforeTheLogBegins(t *testing.T) {
	url := serve(t)
	first := open(t, url, "main", 1)
	first.Patience = 10 * time.Second
	record := joblife.Record{Time: 1, Kind: joblife.RecordQueue, Data: []byte(`{"name":"","enable":true,"start":true}`)}
	only := iter.Seq[joblife.Record](func(yield func(joblife.Record) bool) { yield(record) })
	second := open(t, url, "main", 2)
	for range 2 {
		require.NoError(t, second.Append([]joblife.Record{record}))
		require.NoError(t, second.e.Compact(t.Context(), second.Last(), only))
	}
	require.ErrorIs(t, first.Append([]joblife.Record{record}), engine.ErrFenced)
}

// A snapshot replaces what it was made of, and the log is cut at the one before.
func TestASnapshotReplacesTheLog(t *testing.T) {
	url := serve(t)
	s := open(t, url, "main", 1)
	record := func(n int) joblife.Record {
		return joblife.Record{Time: 1, Kind: joblife.RecordQueue, Data: fmt.Appendf(nil, `{"name":"%d","enable":true,"start":true}`, n)}
	}
	only := func(n int) iter.Seq[joblife.Record] {
		return func(yield func(joblife.Record) bool) { yield(record(n)) }
	}
	ctx := t.Context()
	var seqs []uint64
	for n := range 6 {
		require.NoError(t, s.Append([]joblife.Record{record(n)}))
		seqs = append(seqs, s.Last())
	}
	require.NoError(t, s.e.Compact(ctx, seqs[1], only(100)))
	require.NoError(t, s.e.Compact(ctx, seqs[3], only(200)))
	require.NoError(t, s.e.Compact(ctx, seqs[2], only(300)), "an older one changes nothing")
	var got []string
	for r, err := range open(t, url, "main", 2).Records() {
		require.NoError(t, err)
		got = append(got, string(r.Data))
	}
	require.Equal(t, []string{string(record(200).Data), string(record(4).Data), string(record(5).Data)}, got)
	require.ErrorIs(t, s.e.Follow(ctx, 0, make(chan engine.Batch)), engine.ErrGap)
	require.ErrorIs(t, s.e.Follow(ctx, 1000, make(chan engine.Batch)), engine.ErrGap, "the log was restored")
	follow, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan engine.Batch)
	go func() { _ = s.e.Follow(follow, seqs[1], batches) }()
	require.Equal(t, seqs[2], (<-batches).Seq, "who reads the snapshot before goes on")
}

// One process at a time has the lease; it is free at once in an orderly end, or when nobody
// listens, and after its time when its holder hangs.
func TestALease(t *testing.T) {
	url := serve(t)
	a, b, c := open(t, url, "main", 1).e, open(t, url, "main", 2).e, open(t, url, "main", 3).e
	acquire := func(e *engine.Engine) (context.Context, *engine.Held, func()) {
		h, err := e.Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		return h.Hold(ctx), h, cancel
	}
	held, h, cancel := acquire(a)
	short, stop := context.WithTimeout(t.Context(), engine.TTL/2)
	defer stop()
	_, err := b.Acquire(short)
	require.ErrorIs(t, err, context.DeadlineExceeded, "a has it")
	require.True(t, h.Fresh())
	cancel()
	<-held.Done()
	require.NoError(t, h.Release(t.Context()))
	began := time.Now()
	_, _, _ = acquire(b)
	require.Less(t, time.Since(began), engine.TTL, "a gave it back")
	b.Close()
	began = time.Now()
	_, _, cancel = acquire(c)
	defer cancel()
	require.Less(t, time.Since(began), engine.TTL*3/4, "nobody listens for b")
	lease, _, err := c.Active(t.Context())
	require.NoError(t, err)
	require.Equal(t, "life-3", lease.Holder)
}

// A process that was stopped before it holds its lease, which another one has meanwhile, fences
// nobody.
func TestALeaseThatWasLostBeforeItIsHeld(t *testing.T) {
	t.Parallel()
	url := serve(t)
	a, b := open(t, url, "main", 1), open(t, url, "main", 2)
	h, err := a.e.Acquire(t.Context())
	require.NoError(t, err)
	_, err = b.e.Acquire(t.Context()) // a hangs meanwhile
	require.NoError(t, err)
	held := h.Hold(t.Context())
	require.False(t, h.Fresh())
	require.ErrorIs(t, context.Cause(held), engine.ErrLost)
	_, err = a.e.Fence(held)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, b.Append([]joblife.Record{{Time: 1, Kind: joblife.RecordQueue, Data: []byte(`{"name":"","enable":true,"start":true}`)}}))
	require.NoError(t, h.Release(t.Context()))
	now, _, err := b.e.Active(t.Context())
	require.NoError(t, err)
	require.Equal(t, "life-2", now.Holder)
}

// A process that was stopped before it holds its lease, and that nobody has yet, renews it at once,
// or has it no longer than TTL.
func TestALeaseThatIsHeldLate(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("renewals fail: ", fails), func(t *testing.T) {
			t.Parallel()
			e := open(t, serve(t), "main", 1).e
			began := time.Now()
			h, err := e.Acquire(t.Context())
			require.NoError(t, err)
			time.Sleep(engine.TTL * 8 / 10)
			if fails {
				js, err := jetstream.New(e.Conn)
				require.NoError(t, err)
				require.NoError(t, js.DeleteKeyValue(t.Context(), e.Bucket()))
			}
			held := h.Hold(t.Context())
			time.Sleep(engine.TTL*102/100 - time.Since(began))
			require.Equal(t, !fails, h.Fresh())
			if fails {
				<-held.Done()
				require.Less(t, time.Since(began), engine.TTL*5/4)
			}
		})
	}
}

// A renewal that was written, though its answer was lost, does not end a lease; that of another
// process does.
func TestARenewalWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	e := open(t, serve(t), "main", 1).e
	h, err := e.Acquire(t.Context())
	require.NoError(t, err)
	held := h.Hold(t.Context())
	write := func(text string) {
		for err := engine.ErrLost; err != nil; { // a renewal may come between
			_, revision, getErr := e.Get(t.Context(), "active")
			require.NoError(t, getErr)
			_, err = e.Update(t.Context(), "active", []byte(text), revision)
		}
	}
	write(`{"holder":"life-1","count":1000}`)
	select {
	case <-held.Done():
		require.Fail(t, "its own renewal ended it")
	case <-time.After(engine.TTL + engine.TTL/4): // it expires by then, unless it is renewed
	}
	require.True(t, h.Fresh())
	require.NoError(t, e.ForceReconnect())
	require.False(t, h.Fresh(), "another process may have got it before this one is connected again")
	require.Eventually(t, h.Fresh, 10*time.Second, time.Millisecond)
	require.NoError(t, held.Err())
	write(`{"holder":"other","count":1}`)
	<-held.Done()
	require.ErrorIs(t, context.Cause(held), engine.ErrLost)
}

// A value that no message can have is an error at once, and changes nothing.
func TestAValueThatIsTooLargeIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	e := open(t, serve(t), "main", 1).e
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := e.Update(ctx, "drain", make([]byte, e.MaxPayload()+1), 0)
	require.ErrorIs(t, err, nats.ErrMaxPayload)
	require.NoError(t, ctx.Err())
	value, _, err := e.Get(ctx, "drain")
	require.NoError(t, err)
	require.Nil(t, value)
}

// What the servers will never do is an error at once.
func TestAServerThatIsAloneHasOneReplica(t *testing.T) {
	url := serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, made := range []bool{false, true} {
		if made {
			open(t, url, "main", 1)
		}
		for n, want := range map[int]string{3: "replicas > 1 not supported", 7: "maximum replicas is 5"} {
			_, err := engine.Make(ctx, engine.Config{URL: url, Instance: "main", Name: "x", Replicas: n})
			require.ErrorContains(t, err, want)
			require.NoError(t, ctx.Err(), "it took all the time")
		}
	}
}
