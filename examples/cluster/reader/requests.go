package reader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
)

const (
	defaultJobs = 100
	maxJobs     = 10_000 // in one answer
	maxAnswer   = 4 << 20
	perSecond   = 50              // requests of a user that are served, but for the owner
	jobsInOne   = 25              // jobs in an answer that count as one request more
	seenInOne   = 1000            // jobs looked at, as well
	bytesInOne  = 16 << 10        // bytes of an answer with a log, as well
	readTime    = 2 * time.Second // for one job of the archive
)

// listen serves users, and returns a function that ends that. Readers share the requests.
func (r *reader) listen(ctx context.Context) (stop func(), err error) {
	limit, err := auth.NewLimiter(perSecond, 2*perSecond, 1<<16)
	if err != nil {
		return nil, err
	}
	sub, err := r.Users.QueueSubscribe(r.Engine.Subject("req", "*", wire.ReaderVerb, "*"), "reader", func(m *nats.Msg) {
		uid, ok := r.Engine.User(m.Subject, m.Reply)
		if ok && (uid == r.Owner || limit.Allow(uid, time.Now())) { // else there is no answer
			limit.Charge(uid, time.Now(), r.request(ctx, m, uid))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reader: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// An answer is a wire.Answer whose jobs are JSON already.
type answer struct {
	Error string            `json:"error,omitempty"`
	Retry bool              `json:"retry,omitempty"`
	Jobs  []json.RawMessage `json:"jobs,omitempty"`
}

// request answers a request, and returns how many more it counts as.
func (r *reader) request(ctx context.Context, m *nats.Msg, uid uint32) (more int) {
	var q wire.Request
	var a answer
	err := json.Unmarshal(m.Data, &q)
	if err == nil && q.Protocol != wire.Protocol {
		err = fmt.Errorf("protocol %d: this reader has %d", q.Protocol, wire.Protocol)
	}
	if uid != r.Owner { // a guest sees its own
		if q.User != nil && *q.User != uid {
			err = errors.New("only the owner of the instance may see jobs of others")
		}
		q.User = &uid
	}
	if err == nil {
		switch verb := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]; verb {
		case wire.VerbHistory:
			var seen int
			a.Jobs, seen, err = r.history(&q)
			more = len(a.Jobs)/jobsInOne + seen/seenInOne
		case wire.VerbArchived:
			if a, err = r.one(ctx, &q); len(a.Jobs) > 0 {
				more = len(a.Jobs[0]) / bytesInOne
			}
		default:
			err = fmt.Errorf("a reader does not know the verb %q", verb)
		}
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	text, err := wire.Marshal(a)
	if err == nil {
		err = m.Respond(text)
	}
	if err != nil {
		r.Log.Warn("answer", "error", err)
	}
	return more
}

func (r *reader) history(q *wire.Request) (list []json.RawMessage, seen int, err error) {
	limit, size := q.Limit, 0
	if limit <= 0 {
		limit = defaultJobs
	}
	seen = r.list(q, func(j *wire.JobInfo) bool {
		var text []byte
		if text, err = wire.Marshal(j); err != nil || len(list) >= min(limit, maxJobs) || size+len(text) > maxAnswer {
			return false
		}
		list, size = append(list, text), size+len(text)
		return true
	})
	return list, seen, err
}

// one returns a job that is over, with its eventlog. One that is not known may be soon.
func (r *reader) one(ctx context.Context, q *wire.Request) (answer, error) {
	info, ok := r.get(q.ID)
	if !ok || !q.Matches(info) {
		return answer{Error: fmt.Sprintf("job %v is not over, or is not known", q.ID), Retry: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	j := wire.Archived{JobInfo: *info}
	got, err := r.Engine.Archived(ctx, info.UserID, q.ID)
	if err == nil {
		j = got
	} else if !errors.Is(err, engine.ErrNotArchived) {
		return answer{}, err
	}
	text, err := wire.Marshal(j.JobInfo)
	return answer{Jobs: []json.RawMessage{text}}, err
}
