package joblifetest

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// first is a scheduler that serves jobs in order, on a pool. With a depth it is backfill:
// so many jobs that have to wait get a plan, and those behind them what is left.
type first struct {
	nodes   *rset.R
	depth   int
	pool    *pool.Pool
	waiting map[jobid.ID]alloc.Request
	out     []alloc.Response
}

func (f *first) Hello(a alloc.Announcement) (err error) {
	f.waiting, f.out = make(map[jobid.ID]alloc.Request), nil
	if f.pool, err = pool.New(f.nodes, pool.Config{}); err != nil {
		return err
	}
	err = f.pool.Update(pool.Change{Up: f.nodes.Ranks()})
	for _, h := range a.Responses {
		err = errors.Join(err, f.pool.Adopt(h.ID, h.R, h.Free))
	}
	return err
}

func (f *first) Update(c pool.Change) error { return f.pool.Update(c) }

func (f *first) Take(msg alloc.Message) (err error) {
	switch msg := msg.(type) {
	case alloc.Request:
		f.waiting[msg.ID] = msg
	case alloc.Prioritize:
		for _, p := range msg.Jobs {
			if q, ok := f.waiting[p.ID]; ok {
				q.Priority = p.Priority
				f.waiting[p.ID] = q
			}
		}
	case alloc.Cancel:
		if _, ok := f.waiting[msg.ID]; ok {
			delete(f.waiting, msg.ID)
			f.pool.Unplan(msg.ID)
			f.out = append(f.out, alloc.Response{ID: msg.ID, Type: alloc.ResponseCancel})
		}
	case alloc.Free:
		_, err = f.pool.Free(msg.ID, msg.R, msg.Final)
	case alloc.Expiration:
		err = f.pool.SetExpiration(msg.ID, msg.Expiration)
	}
	return err
}

func (f *first) Decide(now eventlog.Timestamp) []alloc.Response {
	out := f.out
	f.out = nil
	for id := range f.waiting {
		f.pool.Unplan(id)
	}
	planned := 0
	for _, q := range slices.SortedFunc(maps.Values(f.waiting), func(a, b alloc.Request) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	}) {
		spec, err := jobspec.Parse(q.Jobspec)
		var need *pool.Request
		if err == nil {
			need, err = pool.NewRequest(spec)
		}
		resp := alloc.Response{ID: q.ID, Type: alloc.ResponseSuccess}
		if err == nil {
			resp.R, err = f.pool.Alloc(q.ID, need, now)
		}
		if errors.Is(err, pool.ErrBusy) {
			if f.depth == 0 {
				break
			}
			if planned < f.depth {
				if _, err := f.pool.Plan(q.ID, need, now); err == nil {
					planned++
				}
			}
			continue
		}
		if err != nil {
			resp.Type, resp.Note = alloc.ResponseDeny, err.Error()
		}
		out = append(out, resp)
		delete(f.waiting, q.ID)
	}
	return out
}
