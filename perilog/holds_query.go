package perilog

import (
	"fmt"
	"iter"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/rset"
)

// A HolderKind says what holds ranks. The zero HolderKind is invalid.
type HolderKind uint8

// The kinds of holders.
const (
	HolderJob          HolderKind = 1 + iota // from alloc until CLEANUP begins
	HolderExecutor                           // from start until it releases the rank
	HolderProlog                             // from its start until it releases the rank, or its finish
	HolderEpilog                             // in the same way
	HolderDrain                              // of ranks that failed; it ends when the drain is confirmed
	HolderHousekeeping                       // of a [Job] only
)

// String returns a word such as "executor"; another value prints as HolderKind(n).
func (k HolderKind) String() string {
	return guard.Name("HolderKind", k, "job", "executor", "prolog", "epilog", "drain", "housekeeping")
}

// A Holder holds ranks or named resources of the job. It can hold nothing and still keep the job
// from being freed: an action that has ended on all its ranks does so until its finish.
type Holder struct {
	Kind        HolderKind
	Description string             // of a prolog or epilog, else ""
	Since       eventlog.Timestamp // when the hold began; 0 for a drain
	Ranks       *idset.Set         // the ranks that it still holds; a copy, not nil
	Named       []string           // the named resources that it still holds, sorted; a copy
}

// Job returns the job's state. The caller must not change it.
func (h *Holds) Job() *jobstate.Job { return h.job }

// Holders yields the holders: the job, the executor, the actions in the order of their starts,
// drains. Before alloc none has ranks. They overlap, such as the job and the executor: do not
// add up their times. Do not change the Holds during the iteration.
func (h *Holds) Holders() iter.Seq[Holder] {
	return func(yield func(Holder) bool) {
		show := func(x Holder, ranks *idset.Set, names []string) bool {
			if !h.job.WasAllocated() {
				ranks, names = nil, nil
			}
			x.Ranks, x.Named = ranks.Clone(), names
			return yield(x)
		}
		if h.job.WasAllocated() && !h.ending() {
			if !show(Holder{Kind: HolderJob, Since: h.allocTime}, idset.Difference(&h.all, &h.dropped), h.names(false)) {
				return
			}
		}
		if h.executing() && !show(Holder{Kind: HolderExecutor, Since: h.startTime}, &h.executor, h.names(false)) {
			return
		}
		for _, a := range h.actions {
			var names []string
			for _, i := range a.names {
				names = append(names, h.named[i].name)
			}
			x := Holder{Kind: HolderProlog, Description: a.Description, Since: a.since}
			if a.Kind == jobstate.ActionEpilog {
				x.Kind = HolderEpilog
			}
			if !show(x, &a.ranks, names) {
				return
			}
		}
		if !h.draining.IsEmpty() {
			show(Holder{Kind: HolderDrain}, &h.draining, nil)
		}
	}
}

// names returns the named resources that have left, or those that have not.
func (h *Holds) names(left bool) []string {
	var names []string
	for _, n := range h.named {
		if n.left == left {
			names = append(names, n.name)
		}
	}
	return names
}

func (h *Holds) allNames() []string { return append(h.names(false), h.names(true)...) }

// Held returns a new set of the ranks that have a holder. A rank can be neither held nor have
// left: it then waits for the event free. So busy for the job are, from alloc on, the ranks of R
// that are not in Released().Ranks. For the time that a node was busy at all, merge the spans of
// jobs that shared it; [rset.R.Host] names it.
func (h *Holds) Held() *idset.Set {
	held := new(idset.Set)
	for x := range h.Holders() {
		held.UnionWith(x.Ranks)
	}
	return held
}

// Released returns the ranks and resources that have left. They never become fewer.
// [rset.Rebuild] turns it into a ledger that frees each rank when it leaves. It is final if
// the log has the event free and nothing is held.
func (h *Holds) Released() rset.Released {
	return rset.Released{Ranks: h.left.Clone(), Named: h.names(true), Final: h.over}
}

// String returns one line: the job's state, its holders, and what left, failed and was dropped.
func (h *Holds) String() string {
	dst := fmt.Appendf(nil, "%v; ", h.job.State())
	for x := range h.Holders() {
		dst = append(dst, x.Kind.String()...)
		if x.Kind == HolderProlog || x.Kind == HolderEpilog {
			dst = fmt.Appendf(dst, " %q", x.Description)
		}
		dst = appendNames(fmt.Appendf(dst, " %v", x.Ranks), x.Named)
		dst = fmt.Appendf(dst, " @%v; ", x.Since)
	}
	dst = appendNames(fmt.Appendf(dst, "left %v", &h.left), h.names(true))
	for _, s := range []struct {
		word string
		is   bool
	}{
		{"failed " + h.failed.String(), !h.failed.IsEmpty()}, {"dropped " + h.dropped.String(), !h.dropped.IsEmpty()},
		{"allocated", h.job.HasResources()}, {"revoked", h.revoked}, {"started", h.job.Started()},
		{"finished", h.job.Finished()}, {"released", h.job.Released()}, {"over", h.over},
	} {
		if s.is {
			dst = append(append(dst, "; "...), s.word...)
		}
	}
	return string(dst)
}

func appendNames(dst []byte, names []string) []byte {
	for _, name := range names {
		dst = fmt.Appendf(dst, " %q", name)
	}
	return dst
}
