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

// first is a scheduler that serves jobs in order, on a pool. What it has can be made wrong.
type first struct {
	nodes   *rset.R
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

func (f *first) Handle(msg alloc.Message) (err error) {
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
	return f.decide(now, func(jobid.ID, *pool.Request) bool { return false })
}

// decide serves jobs in order. One that has to wait ends that, unless it may be passed.
func (f *first) decide(now eventlog.Timestamp, pass func(jobid.ID, *pool.Request) bool) []alloc.Response {
	out := f.out
	f.out = nil
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
			if pass(q.ID, need) {
				continue
			}
			break
		}
		if err != nil {
			resp.Type, resp.Note = alloc.ResponseDeny, err.Error()
		}
		out = append(out, resp)
		delete(f.waiting, q.ID)
	}
	return out
}
