package main

import (
	"encoding/json"
	"fmt"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

const (
	lookupsAtOnce = 64
	commitSize    = 1 << 20 // bytes of the R in one commit, if there are several
)

// A start is an allocation that is not stored.
type start struct {
	alloc.Response
	op op
}

// An op puts a value into the KVS.
type op struct {
	Key    string  `json:"key"`
	Flags  int     `json:"flags"`
	Dirent treeObj `json:"dirent"`
}

// A treeObj is an object of RFC 11; that of a value has its bytes.
type treeObj struct {
	Version int    `json:"ver"`
	Type    string `json:"type"`
	Data    []byte `json:"data"` // json has it in base64
}

func keyOf(id jobid.ID) string { return id.KVSPath() + ".R" }

// later keeps an allocation until it is stored: who learns of it may look its R up at once.
func (b *broker) later(r alloc.Response) {
	text := r.R.AppendJSON(nil)
	b.starts = append(b.starts, start{r, op{keyOf(r.ID), 0, treeObj{1, "val", text}}})
	if b.size += len(text); b.size >= commitSize {
		b.store()
	}
}

// store stores the allocations that wait for it, and then answers.
func (b *broker) store() {
	if len(b.starts) == 0 {
		return
	}
	starts, era := b.starts, b.era
	b.starts, b.size = nil, 0
	ops := make([]op, len(starts))
	for i, s := range starts {
		ops[i] = s.op
	}
	q, err := requestOf("kvs.commit", struct {
		Namespace string `json:"namespace"`
		Flags     int    `json:"flags"`
		Ops       []op   `json:"ops"`
	}{"primary", 0, ops})
	if err == nil {
		err = b.call(q, func(_ *flux.Message, err error) error { return b.stored(era, starts, err) })
	}
	if err != nil {
		b.broken = b.stored(era, starts, err)
	}
}

// stored answers. If the R are not stored, no job may start with them: the failure tells the
// manager that the session is over, and the jobs wait for the next.
func (b *broker) stored(era int, starts []start, err error) error {
	switch {
	case era != b.era:
		return nil
	case err != nil:
		for _, s := range starts {
			if q := b.waits[s.ID]; q != nil {
				_ = b.tell(q.RespondError(max(flux.Errnum(err), errno.Perm), "the R of the job cannot be stored"))
			}
		}
		return fmt.Errorf("%w: R is not stored: %w", errOver, err)
	}
	b.failed = 0
	for _, s := range starts {
		b.respond(s.Response)
	}
	return nil
}

// A hello is what the manager tells of a job that holds resources.
type hello struct {
	line alloc.Line
	alloc.HelloResponse
	err error // why it cannot be read, or its R
}

// lookUp looks up the R of those that have none. The error is one that ends the session: nobody
// knows what is held.
func (b *broker) lookUp(list []hello) error {
	open, failed := 0, error(nil)
	next := func() bool {
		for ; len(list) > 0 && open < lookupsAtOnce && failed == nil; list = list[1:] {
			h := &list[0]
			if h.err != nil || h.R != nil {
				continue
			}
			q, err := requestOf("kvs.lookup", map[string]any{"namespace": "primary", "key": keyOf(h.ID), "flags": 0})
			if err == nil {
				err = b.call(q, func(m *flux.Message, err error) error {
					open--
					if h.R, h.err = found(m, err); h.err != nil && err != nil && flux.Errnum(err) != errno.NoEntry {
						failed = fmt.Errorf("%w: R of job %v: %w", errOver, h.ID, err)
					}
					return nil
				})
			}
			if err != nil {
				failed = ofManager(err)
				return true
			}
			open++
		}
		return open == 0
	}
	if err := b.run(next); err != nil {
		return err
	}
	return failed
}

// found returns the R of a response.
func found(m *flux.Message, err error) (*rset.R, error) {
	if err != nil {
		return nil, err
	}
	var answer struct {
		Value treeObj `json:"val"`
	}
	text, err := m.JSON()
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		return nil, err
	}
	return rset.Parse(answer.Value.Data)
}

// requestOf returns a request with JSON.
func requestOf(topic string, payload any) (flux.Message, error) {
	text, err := json.Marshal(payload)
	if err != nil {
		return flux.Message{}, err
	}
	return flux.NewRequest(topic, flux.Text(text)), nil
}
