package joblifetest

import (
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

// first is a scheduler that gives each job the first resources that fit.
type first struct {
	nodes   *rset.R
	pool    *pool.Pool
	waiting map[jobid.ID]alloc.Request
	out     []alloc.Response
}

func newFirst(nodes *rset.R) *first { return &first{nodes: nodes} }

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

func (f *first) Take(msg alloc.Message) (err error) {
	switch msg := msg.(type) {
	case alloc.Request:
		f.waiting[msg.ID] = msg
	case alloc.Cancel:
		if _, ok := f.waiting[msg.ID]; ok {
			delete(f.waiting, msg.ID)
			f.out = append(f.out, alloc.Response{ID: msg.ID, Type: alloc.ResponseCancel})
		}
	case alloc.Free:
		_, err = f.pool.Free(msg.ID, msg.R, msg.Final)
	}
	return err
}

func (f *first) Decide(now eventlog.Timestamp) []alloc.Response {
	out := f.out
	f.out = nil
	for _, id := range slices.Sorted(maps.Keys(f.waiting)) {
		spec, err := jobspec.Parse(f.waiting[id].Jobspec)
		if err != nil {
			continue
		}
		q, err := pool.NewRequest(spec)
		var r *rset.R
		if err == nil {
			r, err = f.pool.Alloc(id, q, now)
		}
		switch {
		case err == nil:
			out = append(out, alloc.Response{ID: id, Type: alloc.ResponseSuccess, R: r})
		case errors.Is(err, pool.ErrBusy):
			continue
		default:
			out = append(out, alloc.Response{ID: id, Type: alloc.ResponseDeny, Note: err.Error()})
		}
		delete(f.waiting, id)
	}
	return out
}
