package reader

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/google/btree"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// over reports whether nothing is left to do for a job, and folds it then: its log ends with
// clean, and its housekeeping, which begins before that, has freed everything.
func (t *texts) over(id jobid.ID) bool {
	if !t.clean || t.spec == nil || len(t.keep) > 0 && !t.final {
		return false
	}
	if len(t.keep) == 0 {
		job, err := jobstate.Replay(id, t.log)
		t.job = job
		return err == nil && job.State() == jobstate.StateInactive
	}
	set, err := rset.Parse(t.r)
	if err != nil {
		return false
	}
	life, err := perilog.RecoverJob(0, new(perilog.Config), perilog.JobConfig{ID: id, R: set}, t.log, t.keep)
	if err != nil || !life.Done() {
		return false
	}
	t.job = life.State()
	return true
}

// archived returns what is archived of jobs, in the order of their ids.
func archived(jobs map[jobid.ID]*texts, log *slog.Logger) []wire.Archived {
	list := make([]wire.Archived, 0, len(jobs))
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		t := jobs[id]
		spec, err := jobspec.Parse(t.spec)
		if err == nil {
			spec, err = spec.UpdateAll(t.job.Updates())
		}
		var set *rset.R
		if err == nil && t.r != nil {
			set, err = rset.Parse(t.r)
		}
		if err != nil {
			log.Warn("archive", "job", id, "error", err)
		}
		j := wire.Archived{JobInfo: wire.Describe(t.job, spec, set), Jobspec: t.spec, R: t.r}
		j.Eventlog = string(t.log)
		list = append(list, j)
	}
	return list
}

// An index has the jobs that are over, by their end. Any goroutine may use it.
type index struct {
	mu   sync.RWMutex
	jobs map[jobid.ID]*wire.JobInfo
	all  *tree
	of   map[uint32]*tree // by user
}

type tree = btree.BTreeG[*wire.JobInfo]

func newTree() *tree {
	return btree.NewG(32, func(a, b *wire.JobInfo) bool {
		return cmp.Or(cmp.Compare(a.Inactive, b.Inactive), cmp.Compare(a.ID, b.ID)) < 0
	})
}

func (x *index) reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.jobs, x.all, x.of = make(map[jobid.ID]*wire.JobInfo), newTree(), make(map[uint32]*tree)
}

// put notes that a job is in the archive.
func (x *index) put(j wire.Archived) {
	info := j.JobInfo
	info.Eventlog, info.Holders = "", nil
	x.set(&info)
}

func (x *index) set(info *wire.JobInfo) {
	x.remove(info.ID)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.jobs[info.ID] = info
	x.all.ReplaceOrInsert(info)
	if x.of[info.UserID] == nil {
		x.of[info.UserID] = newTree()
	}
	x.of[info.UserID].ReplaceOrInsert(info)
}

// summary notes a job of a snapshot. One that is not in the archive was lost there, since a
// snapshot is made after that.
func (r *reader) summary(rec joblife.Record) {
	var s jobstate.Summary
	if err := s.UnmarshalText(rec.Data); err != nil {
		r.Log.Warn("summary", "job", rec.Job, "error", err)
		return
	}
	if _, ok := r.get(s.ID); !ok {
		r.Log.Warn("the archive lacks a job", "job", s.ID)
		info := wire.Describe(s.Job(), nil, nil)
		r.set(&info)
	}
}

func (x *index) remove(id jobid.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	info, ok := x.jobs[id]
	if !ok {
		return
	}
	delete(x.jobs, id)
	x.all.Delete(info)
	if t := x.of[info.UserID]; t != nil {
		if t.Delete(info); t.Len() == 0 {
			delete(x.of, info.UserID)
		}
	}
}

func (x *index) get(id jobid.ID) (*wire.JobInfo, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	info, ok := x.jobs[id]
	return info, ok
}

// Len returns how many jobs there are.
func (x *index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.jobs)
}

// list calls f with the jobs that a request asks for, the last one first, until it returns
// false. f must not change them. It returns how many jobs it looked at.
func (x *index) list(q *wire.Request, f func(*wire.JobInfo) bool) (seen int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := x.all
	if q.User != nil {
		t = x.of[*q.User]
	}
	if t == nil {
		return 0
	}
	t.Descend(func(j *wire.JobInfo) bool {
		seen++
		return j.Inactive >= q.Since && (!q.Matches(j) || f(j))
	})
	return seen
}
