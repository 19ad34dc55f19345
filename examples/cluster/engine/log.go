package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
)

// The headers of a message of the log: its writer, and the number that the writer gave it.
const (
	headerWho    = "Jl-Who"
	headerSerial = "Jl-Serial"
)

var (
	// ErrFenced is returned when another manager has begun to write.
	ErrFenced = errors.New("engine: another manager writes the log")
	// ErrGap is returned when the log begins later than what was read, or ends before it, as one
	// that was restored from a backup: begin with a snapshot.
	ErrGap = errors.New("engine: the log begins later, or ends before what was read")
)

// Fence begins an epoch: nobody who began before can append any more. The epoch is the
// sequence of the fence.
func (e *Engine) Fence(ctx context.Context) (epoch uint64, err error) {
	defer within("fence", &err)
	w := &Writer{e: e} // its serial stays 0, which no append has: a fence that was repeated may come late
	err = e.retry(ctx, func(ctx context.Context) error {
		ack, err := e.js.PublishMsg(ctx, w.message(e.Subject("log", "fence"), nil), jetstream.WithRetryAttempts(0))
		if err == nil {
			epoch = ack.Sequence
		}
		return err
	})
	return epoch, err
}

// A Writer appends the records of one epoch: a loop.Store.
type Writer struct {
	Patience time.Duration // how long Append tries; 0 means a minute

	e      *Engine
	last   atomic.Uint64 // the sequence that is expected to be the last
	serial uint64
	text   []byte
}

// Writer returns the writer of an epoch.
func (e *Engine) Writer(epoch uint64) *Writer {
	w := &Writer{e: e}
	w.last.Store(epoch)
	return w
}

// Append appends records, in as many messages as they need. The error is ErrFenced, or that of
// the server after Writer.Patience.
func (w *Writer) Append(records []joblife.Record) (err error) {
	if w.text, err = joblife.AppendRecords(w.text[:0], records); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	for rest := w.text; len(rest) > 0; {
		part := rest
		if len(part) > w.e.max {
			n := bytes.LastIndexByte(part[:w.e.max], '\n') + 1
			if n == 0 {
				return fmt.Errorf("engine: a record is longer than %d bytes, the limit of the server", w.e.max)
			}
			part = part[:n]
		}
		if err := w.append(part); err != nil {
			return err
		}
		rest = rest[len(part):]
	}
	return nil
}

// append appends one message. An answer that was lost looks like another writer, so that the
// last message decides.
func (w *Writer) append(text []byte) (err error) {
	defer within("append", &err)
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(w.Patience, time.Minute))
	defer cancel()
	w.serial++
	var fenced bool
	err = w.e.retry(ctx, func(ctx context.Context) error {
		ack, err := w.e.js.PublishMsg(ctx, w.message(w.e.Subject("log", "rec"), text), jetstream.WithExpectLastSequence(w.last.Load()), jetstream.WithRetryAttempts(0))
		if err == nil {
			w.last.Store(ack.Sequence)
			return nil
		}
		last, readErr := w.e.stream.GetMsg(ctx, w.last.Load()+1)
		switch {
		case errors.Is(readErr, jetstream.ErrMsgNotFound):
			info, infoErr := w.e.stream.Info(ctx)
			if infoErr != nil || info.State.FirstSeq <= w.last.Load()+1 {
				return errors.Join(err, infoErr) // nobody has appended
			}
			fenced = true // and the log was cut after that
		case readErr != nil:
			return errors.Join(err, readErr)
		case last.Header.Get(headerWho) == w.e.name && last.Header.Get(headerSerial) == strconv.FormatUint(w.serial, 10):
			w.last.Store(last.Sequence)
		default:
			fenced = true
		}
		return nil
	})
	if fenced {
		err = ErrFenced
	}
	return err
}

func (w *Writer) message(subject string, text []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: text, Header: nats.Header{
		headerWho: {w.e.name}, headerSerial: {strconv.FormatUint(w.serial, 10)},
	}}
}

// Unlink removes nothing: what is removed is missing in the next snapshot.
func (w *Writer) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }

// A Batch is one message of the log.
type Batch struct {
	Seq     uint64
	Records []joblife.Record
}

// Follow sends the messages of the log to c, in order and without a gap, from the one after
// seq on, until ctx ends. Then it returns nil. It returns ErrGap if the log begins later, or ends
// before seq when Follow begins.
func (e *Engine) Follow(ctx context.Context, seq uint64, c chan<- Batch) error {
	if err := e.has(ctx, seq); err != nil {
		return err
	}
	consumer, err := e.js.OrderedConsumer(ctx, e.Log(), jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: seq + 1, MaxResetAttempts: -1,
	})
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		msg, err := messages.Next()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("engine: %w", err)
		}
		b, err := e.batch(msg, seq)
		if err != nil {
			return err
		}
		seq = b.Seq
		select {
		case c <- b:
		case <-ctx.Done():
			return nil
		}
	}
}

// has returns ErrGap if the log ends before seq.
func (e *Engine) has(ctx context.Context, seq uint64) error {
	last, _, err := e.Last(ctx)
	if err == nil && last < seq {
		err = fmt.Errorf("%w: message %d was read, and %d is the last one", ErrGap, seq, last)
	}
	return err
}

func (e *Engine) batch(msg jetstream.Msg, before uint64) (Batch, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return Batch{}, fmt.Errorf("engine: %w", err)
	}
	b := Batch{Seq: meta.Sequence.Stream}
	if b.Seq != before+1 {
		return b, fmt.Errorf("%w: after message %d comes %d", ErrGap, before, b.Seq)
	}
	b.Records, err = records(msg.Data())
	if err != nil {
		return b, fmt.Errorf("engine: message %d: %w", b.Seq, err)
	}
	return b, nil
}

func records(text []byte) (all []joblife.Record, err error) {
	for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Last returns the sequence of the last message that the Writer knows of. Any goroutine may ask.
func (w *Writer) Last() uint64 { return w.last.Load() }
