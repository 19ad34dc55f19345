package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
)

// ErrNotArchived is returned for a job that is not in the archive.
var ErrNotArchived = errors.New("engine: the job is not in the archive")

// The limits of what is archived at once: the server stores it as one batch, or nothing of it.
const (
	maxBatch      = 1000
	maxBatchBytes = 16 << 20
)

// Archive stores jobs that have ended, each in place of an earlier text of it. It tries again
// until all are stored or ctx ends. The middle of an eventlog that the server refuses as too
// long is left out.
func (e *Engine) Archive(ctx context.Context, jobs []wire.Archived) (err error) {
	defer within("archive", &err)
	texts := make([]*nats.Msg, 0, min(len(jobs), maxBatch))
	size := 0
	flush := func() error {
		err := e.retry(ctx, func(ctx context.Context) error { return e.storeBatch(ctx, texts) })
		texts, size = texts[:0], 0
		return err
	}
	for _, j := range jobs {
		text, err := e.archived(j)
		if err != nil {
			return fmt.Errorf("job %v: %w", j.ID, err)
		}
		if len(texts) == maxBatch || len(texts) > 0 && size+len(text) > maxBatchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		texts = append(texts, &nats.Msg{Subject: e.archiveSubject(j.UserID, j.ID), Data: text})
		size += len(text)
	}
	if len(texts) == 0 {
		return nil
	}
	return flush()
}

func (e *Engine) archiveSubject(uid uint32, id jobid.ID) string {
	return e.Subject("archive", uid, uint64(id))
}

// archived returns the text of a job, which is not longer than the server allows.
func (e *Engine) archived(j wire.Archived) ([]byte, error) {
	limit := int(e.MaxPayload()) - 4<<10 // for headers
	text, err := wire.Marshal(j)
	for keep := limit / 4; err == nil && len(text) > limit && keep > 0; keep /= 2 { // JSON needs more room than the text
		j.Cut(keep)
		text, err = wire.Marshal(j)
	}
	if err == nil && len(text) > limit { // the ranks are known without it
		j.R = nil
		text, err = wire.Marshal(j)
	}
	return text, err
}

// storeBatch stores messages, or none of them. One does not need a batch.
func (e *Engine) storeBatch(ctx context.Context, texts []*nats.Msg) error {
	id := rand.Text()
	for i, m := range texts {
		if m.Header = nil; len(texts) > 1 {
			m.Header = nats.Header{"Nats-Batch-Id": {id}, "Nats-Batch-Sequence": {strconv.Itoa(i + 1)}}
		}
		if i < len(texts)-1 {
			if err := e.PublishMsg(m); err != nil {
				return err
			}
			continue
		}
		if m.Header != nil {
			m.Header["Nats-Batch-Commit"] = []string{"1"}
		}
		if _, err := e.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0)); err != nil {
			return err
		}
	}
	return nil
}

// Unarchive removes a job from the archive. There need not be one.
func (e *Engine) Unarchive(ctx context.Context, uid uint32, id jobid.ID) (err error) {
	defer within(fmt.Sprintf("archive: job %v", id), &err)
	return e.retry(ctx, func(ctx context.Context) error {
		stream, err := e.js.Stream(ctx, e.Instance.Archive())
		if err != nil {
			return err
		}
		return stream.Purge(ctx, jetstream.WithPurgeSubject(e.archiveSubject(uid, id)))
	})
}

// Archived returns a job of the archive. The error may be ErrNotArchived.
func (e *Engine) Archived(ctx context.Context, uid uint32, id jobid.ID) (j wire.Archived, err error) {
	stream, err := e.js.Stream(ctx, e.Instance.Archive())
	if err != nil {
		return j, fmt.Errorf("engine: archive: %w", err)
	}
	msg, err := stream.GetLastMsgForSubject(ctx, e.archiveSubject(uid, id))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return j, fmt.Errorf("%w: %v", ErrNotArchived, id)
	case err == nil:
		err = json.Unmarshal(msg.Data, &j)
	}
	if err != nil {
		return j, fmt.Errorf("engine: archive: job %v: %w", id, err)
	}
	return j, nil
}

// ReadArchive calls f with each job of the archive.
func (e *Engine) ReadArchive(ctx context.Context, f func(wire.Archived)) (err error) {
	defer within("archive", &err)
	consumer, err := e.js.OrderedConsumer(ctx, e.Instance.Archive(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	if info, err := consumer.Info(ctx); err != nil || info.NumPending == 0 {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		msg, err := messages.Next(jetstream.NextMaxWait(time.Second))
		if errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil { // the last ones may have been removed meanwhile
			if info, err := consumer.Info(ctx); err != nil || info.NumPending == 0 {
				return err
			}
			continue
		}
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		var j wire.Archived
		if err := json.Unmarshal(msg.Data(), &j); err != nil {
			return fmt.Errorf("message %d: %w", meta.Sequence.Stream, err)
		}
		if f(j); meta.NumPending == 0 {
			return nil
		}
	}
}

// Last returns the sequence of the last message of the log, and how many bytes the log has.
func (e *Engine) Last(ctx context.Context) (seq, size uint64, err error) {
	info, err := e.stream.Info(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("engine: %w", err)
	}
	return info.State.LastSeq, info.State.Bytes, nil
}
