package run

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
)

// A Group is the ranks on which an action ended the same way.
type Group struct {
	Cause Cause
	Code  int        // the exit code of CauseFailed, the signal of CauseSignaled, else 0
	Ranks *idset.Set // not empty
}

// An Outcome says how an action ended on all of its ranks.
type Outcome struct {
	Status   int32      // the worst wait status; 0: it succeeded on every rank
	Groups   []Group    // in the order of causes and codes; a rank is in one
	Failed   *idset.Set // the ranks with a status other than 0
	Reported bool       // every failure was reported; none is the command's own
	MayRun   bool       // the command may still run on some rank

	// Note is one line for the job's user, of at most MaxNote bytes, such as "prolog exited
	// with code=1 on fluke3 (rank 3)"; "" after success. Detail is for administrators: what
	// was reported of each rank, a line each, at most MaxDetail bytes.
	Note   string
	Detail string

	Start, End eventlog.Timestamp
}

// Limits of what an outcome says.
const (
	MaxNote   = 1 << 10
	MaxDetail = 8 << 10
)

// Outcome returns how the action ended. The run must be done. It takes time in
// proportion to the ranks.
func (r *Run) Outcome() Outcome {
	o := Outcome{
		Status: r.lead.status, Groups: r.groups(), Failed: r.ranks(func(s *slot) bool { return s.status != 0 }),
		Reported: true, MayRun: r.orphaned, Detail: r.details.String(), Start: r.start, End: r.end,
	}
	r.each(r.spec.Ranks, func(_ uint32, s *slot) { o.Status = max(o.Status, s.status) })
	for _, g := range o.Groups {
		o.Reported = o.Reported && (g.Cause == CauseOK || causes[g.Cause].reported && r.isOf(g))
		o.MayRun = o.MayRun || causes[g.Cause].mayRun
	}
	o.Note = r.summary(&o)
	return o
}

// isOf reports whether the cause of a group concerns each of its ranks. If the node of a
// single command is offline or lost, that is not a fault of the other ranks.
func (r *Run) isOf(g Group) bool {
	return r.spec.PerRank || g.Cause != CauseOffline && g.Cause != CauseUnreachable || g.Ranks.Len() == 1 && g.Ranks.Contains(r.spec.Leader)
}

// groups has the leader of a single command too if the ranks do not show how it ended.
func (r *Run) groups() []Group {
	var groups []Group
	add := func(rank uint32, s *slot) {
		key := Group{Cause: s.cause, Code: s.code()}
		k, found := slices.BinarySearchFunc(groups, key, func(a, b Group) int {
			return cmp.Or(cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Code, b.Code))
		})
		if !found {
			key.Ranks = new(idset.Set)
			groups = slices.Insert(groups, k, key)
		}
		groups[k].Ranks.Insert(rank)
	}
	known := r.spec.PerRank || r.lead.status == 0 && len(r.slots) > 0
	r.each(r.spec.Ranks, func(rank uint32, s *slot) {
		add(rank, s)
		known = known || s.cause == r.lead.cause || s.status != 0 && r.lead.cause == CauseCanceled
	})
	if !known {
		for i := range groups {
			groups[i].Ranks.Remove(r.spec.Leader)
		}
		groups = slices.DeleteFunc(groups, func(g Group) bool { return g.Ranks.IsEmpty() })
		add(r.spec.Leader, &r.lead)
	}
	return groups
}

// code returns what distinguishes ends of one cause.
func (s *slot) code() int {
	switch s.cause {
	case CauseFailed:
		code, _ := exitCode(s.status)
		return code
	case CauseSignaled:
		return signalOf(s.status)
	}
	return 0
}

const (
	maxPart  = 256 // bytes of the names of one group of ranks, beyond which they are counted
	maxNote  = 256 // bytes of a control line's note
	maxNotes = 16  // that are kept
)

// summary returns the public line. The words for one cause are flux-core's.
func (r *Run) summary(o *Outcome) string {
	if o.Status == 0 {
		return ""
	}
	text, sep, more := r.spec.Title, " ", 0
	for _, g := range o.Groups {
		for _, part := range r.parts(g) {
			if more > 0 || len(text)+len(sep)+len(part) > MaxNote-32 {
				more++
				continue
			}
			text += sep + part
			sep = "; "
		}
	}
	if more > 0 {
		text += "; and " + strconv.Itoa(more) + " more"
	}
	return text
}

// parts returns what happened to a group, once for each note of a control line.
func (r *Run) parts(g Group) []string {
	if g.Cause == CauseOK {
		return nil
	}
	var parts []string
	rest := g.Ranks.Clone()
	for _, n := range r.notes {
		if some := idset.Intersect(n.ranks, rest); !some.IsEmpty() {
			parts = append(parts, g.words()+r.place(g.Cause, some)+": "+n.text)
			rest.SubtractWith(some)
		}
	}
	if !rest.IsEmpty() {
		parts = append(parts, g.words()+r.place(g.Cause, rest))
	}
	return parts
}

func (g Group) words() string {
	switch g.Cause {
	case CauseFailed:
		return "exited with code=" + strconv.Itoa(g.Code)
	case CauseSignaled:
		return g.Cause.String() + " " + strconv.Itoa(g.Code)
	case CauseUnreachable:
		return lostContact
	case CauseOffline:
		return "not run (offline)"
	}
	return g.Cause.String()
}

// place returns the hosts and ranks of a group, after " on ". What became of a
// single command happened on the rank where it ran.
func (r *Run) place(c Cause, ranks *idset.Set) string {
	if !r.spec.PerRank && c != CauseReported && c != CauseForced {
		ranks = idset.Of(r.spec.Leader)
	}
	names, text := r.spec.Hosts(ranks), ranks.String()
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

// A note is what control lines said of ranks.
type note struct {
	text  string
	ranks *idset.Set
}

func (r *Run) note(text string, rank uint32) {
	if text == "" {
		return
	}
	for _, n := range r.notes {
		if n.text == text {
			n.ranks.Insert(rank)
			return
		}
	}
	if len(r.notes) < maxNotes {
		r.notes = append(r.notes, note{text, idset.Of(rank)})
	}
}

// details are what reports said, for administrators, as far as there is room.
type details struct {
	text    []byte
	dropped int // reports that found no room
}

const (
	maxDetailText = 256 // bytes of one report
	detailRoom    = 32  // to count the rest
)

// detail keeps what a report said of a rank.
func (r *Run) detail(rank uint32, cause Cause, status int32, text string) {
	d := &r.details
	if d.dropped > 0 {
		d.dropped++
		return
	}
	n := len(d.text)
	d.text = strconv.AppendUint(append(d.text, "rank "...), uint64(rank), 10)
	if host := r.spec.Hosts(idset.Of(rank)); host != "" {
		d.text = append(append(append(d.text, " ("...), host...), ')')
	}
	d.text = append(append(d.text, ": "...), cause.String()...)
	if status != 0 {
		d.text = strconv.AppendInt(append(d.text, ", status "...), int64(status), 10)
	}
	if text != "" {
		d.text = strconv.AppendQuote(append(d.text, ": "...), clip(text, maxDetailText))
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

// clip returns the first n bytes of text that are whole characters, in one line.
func clip(text string, n int) string {
	text = strings.ToValidUTF8(text[:min(len(text), n)], "")
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, text)
}
