package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/joblife/joblife"
)

const snapshotKey = "snapshot"

// A snapshot says where the records are that replace those up to Seq.
type snapshot struct {
	Seq   uint64 `json:"seq"`
	Who   string `json:"who"`   // made it, as its messages say
	First uint64 `json:"first"` // of its messages
	Last  uint64 `json:"last"`
}

// Snapshot calls add with the records of the latest snapshot, and returns the sequence after which the
// log goes on: 0 if there is none.
func (e *Engine) Snapshot(ctx context.Context, add func(joblife.Record) error) (seq uint64, err error) {
	s, _, err := e.snapshot(ctx)
	if err != nil || s.Seq == 0 {
		return 0, err
	}
	defer within("snapshot", &err)
	stream, err := e.js.Stream(ctx, e.Snapshots())
	if err != nil {
		return 0, err
	}
	for n := s.First; n <= s.Last; n++ {
		msg, err := stream.GetMsg(ctx, n)
		if err != nil {
			return 0, fmt.Errorf("message %d: %w", n, err)
		}
		if msg.Subject != e.Subject("snap", s.Seq) || msg.Header.Get(headerWho) != s.Who {
			continue // of another that was being made
		}
		all, err := records(msg.Data)
		if err != nil {
			return 0, fmt.Errorf("message %d: %w", n, err)
		}
		for _, r := range all {
			if err := add(r); err != nil {
				return 0, fmt.Errorf("message %d: %w", n, err)
			}
		}
	}
	return s.Seq, nil
}

func (e *Engine) snapshot(ctx context.Context) (s snapshot, revision uint64, err error) {
	defer within("snapshot", &err)
	text, revision, err := e.Get(ctx, snapshotKey)
	if err == nil && text != nil {
		err = json.Unmarshal(text, &s)
	}
	return s, revision, err
}

// Compact stores records that replace those of the log up to seq, and removes those of the log
// up to the snapshot before: whoever reads that one now goes on without a gap. Several processes
// may do so: the error is ErrLost if another one has made a snapshot meanwhile, which counts then.
// It is ErrGap, and nothing is stored, if the log ends before seq.
func (e *Engine) Compact(ctx context.Context, seq uint64, all iter.Seq[joblife.Record]) (err error) {
	before, revision, err := e.snapshot(ctx)
	if err != nil {
		return err
	}
	if seq <= before.Seq {
		return nil
	}
	if err := e.has(ctx, seq); err != nil {
		return err
	}
	defer within("snapshot", &err)
	s, text := snapshot{Seq: seq, Who: e.name}, []byte(nil)
	flush := func() error {
		ack, err := e.js.PublishMsg(ctx, &nats.Msg{Subject: e.Subject("snap", seq), Data: text, Header: nats.Header{headerWho: {e.name}}})
		if err != nil {
			return err
		}
		s.First = cmp.Or(s.First, ack.Sequence)
		s.Last, text = ack.Sequence, text[:0]
		return nil
	}
	for r := range all {
		n := len(text)
		if text, err = joblife.AppendRecords(text, []joblife.Record{r}); err != nil {
			return err
		}
		if len(text) > e.max/4 && n > 0 {
			rest := append([]byte(nil), text[n:]...)
			text = text[:n]
			if err := flush(); err != nil {
				return err
			}
			text = append(text, rest...)
		}
	}
	if err := flush(); err != nil {
		return err
	}
	value, err := json.Marshal(s)
	if err == nil {
		_, err = e.Update(ctx, snapshotKey, value, revision)
	}
	if err == nil && before.Seq > 0 {
		err = e.stream.Purge(ctx, jetstream.WithPurgeSequence(before.Seq+1))
		if stream, openErr := e.js.Stream(ctx, e.Snapshots()); err == nil && openErr == nil {
			err = stream.Purge(ctx, jetstream.WithPurgeSequence(before.First))
		}
	}
	return err
}
