package perilog

import (
	"slices"
	"strconv"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/rset"
)

// A Verdict says how a run ended as a whole. The zero Verdict is invalid.
type Verdict uint8

// The verdicts.
const (
	VerdictSuccess   Verdict = 1 + iota // every rank is ok
	VerdictTolerated                    // not every rank is ok, and what failed is tolerated
	VerdictFailed                       // more failed than is tolerated
	VerdictCanceled                     // the run was canceled, whatever its ranks made of it
)

// String returns "success", "tolerated", "failed" or "canceled"; another value
// prints as Verdict(n).
func (v Verdict) String() string {
	switch v {
	case VerdictSuccess:
		return "success"
	case VerdictTolerated:
		return "tolerated"
	case VerdictFailed:
		return "failed"
	case VerdictCanceled:
		return "canceled"
	}
	return "Verdict(" + strconv.Itoa(int(v)) + ")"
}

// OK reports whether the job may go on: success, tolerated failures included.
func (v Verdict) OK() bool { return v == VerdictSuccess || v == VerdictTolerated }

// A CauseGroup is the ranks that ended the same way.
type CauseGroup struct {
	Cause Cause
	Code  int        // the exit code of CauseFailed, the signal of CauseSignalled, else 0
	Ranks *idset.Set // not empty
}

// An Outcome is how a run ended, in one piece however many ranks it had.
type Outcome struct {
	Verdict Verdict

	// Status is for the finish event: 0 if and only if Verdict is OK, otherwise
	// the worst wait status.
	Status int32
	Worst  int32 // the greatest wait status of all ranks

	Groups []CauseGroup // every rank is in one; in the order of causes and codes
	Failed *idset.Set   // the ranks that are not ok; empty after success
	Drop   bool         // Verdict is VerdictTolerated, and the job goes on without Failed

	// Note is one line for the job's user, such as "prolog exited with code=1 on
	// fluke3 (rank 3)": what happened where, at most MaxNote bytes; "" after
	// success. Detail is for administrators only: what the reports told of each
	// rank, a line each, at most MaxDetail bytes.
	Note   string
	Detail string

	Start, End eventlog.Timestamp

	kind     RunKind
	raise    bool
	nodelist string
}

// Limits of what an outcome says.
const (
	MaxNote   = 1 << 10 // the bytes of a note
	MaxDetail = 8 << 10 // the bytes of a detail
)

// severityNonFatal is that of an exception that tells something and changes
// nothing, as the reference has it for epilogs.
const severityNonFatal = 2

// Elapsed returns how long the run took, as for moving the job's expiration.
func (o *Outcome) Elapsed() fsd.Duration { return fsd.Duration(o.End - o.Start) }

// Exception returns the exception to raise on the job, which the run also asks
// for, or nil if there is none. That of a failed prolog is fatal, that of a
// failed epilog and that of tolerated failures are not; the latter is one that
// [ParseFailedRanks] reads. A run that an exception
// canceled raises no other, and housekeeping raises none: its job is no more.
func (o *Outcome) Exception() *jobstate.ExceptionContext {
	if !o.raise {
		return nil
	}
	x := &jobstate.ExceptionContext{Type: o.kind.String(), Severity: severityNonFatal, Note: o.Note}
	switch {
	case o.Verdict == VerdictTolerated:
		x.Extra = o.failedRanks()
	case o.kind == RunProlog:
		x.Severity = 0
	}
	return x
}

// failedRanks returns the keys that FailedRanks reads.
func (o *Outcome) failedRanks() []byte {
	action := FailedKeep
	if o.Drop {
		action = FailedDrop
	}
	var w members
	w.text(keyRanks, o.Failed.String())
	if o.nodelist != "" {
		w.text(keyNodelist, o.nodelist)
	}
	w.text(keyAction, action.String())
	return append(w.out, '}')
}

// AppendEnded appends the ranks that ended since the last call, in the order in
// which they did, and returns the extended slice.
func (r *Run) AppendEnded(dst []RankEnd) []RankEnd {
	for r.head >= 0 {
		s := &r.slots[r.head]
		dst = append(dst, RankEnd{Rank: r.rank(r.head), End: End{Cause: s.cause, Status: s.status}})
		r.head = s.next
	}
	r.tail = -1
	return dst
}

// EndOf returns how a rank ended: the zero End if it has not, or is not one of
// the run's.
func (r *Run) EndOf(rank uint32) End {
	i, ok := r.index(rank)
	if !ok {
		return End{}
	}
	return End{Cause: r.slots[i].cause, Status: r.slots[i].status}
}

// Outcome returns how the run ended, or nil if it is not done. It must not be
// changed.
func (r *Run) Outcome() *Outcome {
	if r.state != RunDone {
		return nil
	}
	if r.outcome == nil {
		r.outcome = r.conclude()
	}
	return r.outcome
}

// finishIfDone ends the run when every rank has ended, and asks for its
// exception.
func (r *Run) finishIfDone() {
	if r.open > 0 || r.state == RunDone {
		return
	}
	r.state, r.end, r.deadline = RunDone, r.now, 0
	if r.verdict() == VerdictSuccess {
		return // which needs no outcome yet
	}
	if x := r.Outcome().Exception(); x != nil {
		r.request(Request{Kind: RequestRaise, Exception: x})
	}
}

// verdict judges the run.
func (r *Run) verdict() Verdict {
	n := len(r.slots)
	switch {
	case r.canceled:
		return VerdictCanceled
	case r.bad == 0:
		return VerdictSuccess
	case r.bad < n && r.spec.Tolerate.allows(r.bad-r.spare, n):
		return VerdictTolerated
	}
	return VerdictFailed
}

// conclude makes the outcome.
func (r *Run) conclude() *Outcome {
	o := &Outcome{
		Verdict: r.verdict(), Worst: r.worst, Groups: r.groups(),
		Failed: r.ranks(func(s *slot) bool { return !s.cause.OK() }),
		Detail: r.details.String(),
		Start:  r.start, End: r.end, kind: r.spec.Kind,
	}
	if !o.Verdict.OK() {
		o.Status = o.Worst
	}
	o.Drop = o.Verdict == VerdictTolerated && r.spec.Tolerate.Drop
	o.Note = r.note(o)
	o.nodelist = hosts(r.spec.Hosts, o.Failed)
	o.raise = o.Verdict != VerdictSuccess && !(r.canceled && r.fatal) && r.spec.Kind != RunHousekeeping
	return o
}

// groups returns the ranks by cause and code.
func (r *Run) groups() []CauseGroup {
	var groups []CauseGroup
	for _, span := range r.spans {
		for rank := span.first; ; rank++ {
			s := &r.slots[span.base+int32(rank-span.first)]
			key := CauseGroup{Cause: s.cause, Code: s.code()}
			k, found := slices.BinarySearchFunc(groups, key, compareGroups)
			if !found {
				key.Ranks = new(idset.Set)
				groups = slices.Insert(groups, k, key)
			}
			groups[k].Ranks.Insert(rank)
			if rank == span.last {
				break
			}
		}
	}
	return groups
}

// code returns what tells ends of one cause apart.
func (s *slot) code() int {
	switch s.cause {
	case CauseFailed:
		code, _ := exitCode(s.status)
		return code
	case CauseSignalled:
		return signal(s.status)
	}
	return 0
}

// compareGroups orders groups by cause and code.
func compareGroups(a, b CauseGroup) int {
	if a.Cause != b.Cause {
		return int(a.Cause) - int(b.Cause)
	}
	return a.Code - b.Code
}

// maxPart is the number of bytes that the names of one group of ranks may take
// in a note; more are counted.
const maxPart = 256

// note returns the public line. The words for one cause are the reference's.
func (r *Run) note(o *Outcome) string {
	if o.Verdict == VerdictSuccess {
		return ""
	}
	note, sep := r.spec.title(), " "
	for i, g := range o.Groups {
		if g.Cause.OK() {
			continue
		}
		part := sep + g.words() + r.where(g)
		if len(note)+len(part) > MaxNote-32 {
			return note + "; and " + strconv.Itoa(len(o.Groups)-i) + " more causes"
		}
		note += part
		sep = "; "
	}
	return note
}

// words returns what happened to a group of ranks.
func (g CauseGroup) words() string {
	switch g.Cause {
	case CauseFailed:
		return "exited with code=" + strconv.Itoa(g.Code)
	case CauseSignalled:
		return g.Cause.String() + " " + strconv.Itoa(g.Code)
	case CauseUnreachable:
		return lostContact
	case CauseOffline:
		return "not run (offline)"
	}
	return g.Cause.String()
}

// where returns the hosts and ranks of a group, after " on ". If there was but
// one command, what became of it happened on the rank where it ran.
func (r *Run) where(g CauseGroup) string {
	ranks := g.Ranks
	if !r.spec.PerRank && g.Cause != CauseReported {
		ranks = idset.Of(r.spec.Leader)
	}
	names, text := hosts(r.spec.Hosts, ranks), ranks.String()
	if len(text) > maxPart {
		text = strconv.Itoa(ranks.Len()) + " in all"
	}
	switch {
	case names == "":
		return " on rank " + text
	case len(names) > maxPart:
		names = strconv.Itoa(ranks.Len()) + " nodes"
	}
	return " on " + names + " (rank " + text + ")"
}

// hosts returns the hosts of ranks, as far as they are known.
func hosts(r *rset.R, ranks *idset.Set) string {
	if r == nil || !r.HasHosts() {
		return ""
	}
	part, _ := r.Restrict(idset.Intersect(ranks, r.Ranks())) // which has all of them
	return part.Nodelist().String()
}

// details keeps what reports told, for administrators: the first ones, as far
// as there is room. The others are counted.
type details struct {
	text    []byte
	dropped int
}

// Limits of details: what is kept of one report, and room to count the others.
const (
	maxDetailText = 256
	detailRoom    = 32
)

// detail keeps what a report told of a rank.
func (r *Run) detail(rank uint32, cause Cause, status int32, text string) {
	d := &r.details
	if d.dropped > 0 {
		d.dropped++
		return
	}
	n := len(d.text)
	d.text = strconv.AppendUint(append(d.text, "rank "...), uint64(rank), 10)
	if r.spec.Hosts != nil {
		if host, ok := r.spec.Hosts.Host(rank); ok {
			d.text = append(append(append(d.text, " ("...), host...), ')')
		}
	}
	d.text = append(append(d.text, ": "...), cause.String()...)
	if status != 0 {
		d.text = strconv.AppendInt(append(d.text, ", status "...), int64(status), 10)
	}
	if text = text[:min(len(text), maxDetailText)]; text != "" {
		d.text = strconv.AppendQuote(append(d.text, ": "...), text)
	}
	d.text = append(d.text, '\n')
	if len(d.text) > MaxDetail-detailRoom {
		d.text = d.text[:n]
		d.dropped++
	}
}

// String returns the lines.
func (d *details) String() string {
	if d.dropped == 0 {
		return string(d.text)
	}
	return string(d.text) + "and " + strconv.Itoa(d.dropped) + " more\n"
}
