package perilog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/idset"
)

// A group is a Group before its cause is named.
type group struct {
	cause endCause
	code  int
	ranks *idset.Set
}

// An outcome says how an action ended on all of its ranks.
type outcome struct {
	ActionResult      // without Tolerated
	reported     bool // every failure was reported; none is the command's own
	mayRun       bool // the command may still run on some rank
}

func (g group) compare(h group) int {
	return cmp.Or(cmp.Compare(g.cause, h.cause), cmp.Compare(g.code, h.code))
}

// Limits of what an outcome says.
const (
	maxRunNote = 1 << 10 // bytes of ActionResult.Note, such as "prolog exited with code=1 on fluke3 (rank 3)"
	maxDetail  = 8 << 10 // bytes of ActionResult.Detail

	maxDetailText = 256 // bytes of one report
	detailRoom    = 32  // to count the rest

	maxPart  = 256 // bytes of the names of one group of ranks, beyond which they are counted
	maxNote  = 256 // bytes of a control line's note
	maxNotes = 16  // that are kept
)

// Outcome returns how the action ended. The run must be done.
func (r *run) Outcome() outcome {
	o := outcome{reported: true, mayRun: r.orphaned}
	o.Action, o.Status, o.Failed = r.spec.ActionKey, r.lead.status, r.ranks(func(s *slot) bool { return s.status != 0 })
	o.Start, o.End = r.start, r.end
	if o.Detail = string(r.details); r.dropped > 0 {
		o.Detail += "and " + strconv.Itoa(r.dropped) + " more\n"
	}
	r.each(r.spec.Ranks, func(_ uint32, s *slot) { o.Status = max(o.Status, s.status) })
	groups := r.groups()
	for _, g := range groups {
		o.Groups = append(o.Groups, Group{g.cause.name(), g.code, g.ranks})
		o.reported = o.reported && (g.cause == causeOK || causes[g.cause].reported && r.isOf(g))
		o.mayRun = o.mayRun || causes[g.cause].mayRun
	}
	if o.Status != 0 {
		o.Note = r.summary(groups)
	}
	return o
}

// isOf reports whether a cause is of each rank of a group, not of the node of a single command alone.
func (r *run) isOf(g group) bool {
	return r.spec.PerRank || g.cause != causeOffline && g.cause != causeUnreachable || g.ranks.Len() == 1 && g.ranks.Contains(r.spec.Leader.Value)
}

// groups has the leader of a single command too if the ranks do not show how it ended.
func (r *run) groups() []group {
	var groups []group
	at := 0 // the group of the rank before
	add := func(rank uint32, s *slot) {
		if key := (group{cause: s.cause, code: s.code()}); len(groups) == 0 || groups[at].compare(key) != 0 {
			var found bool
			if at, found = slices.BinarySearchFunc(groups, key, group.compare); !found {
				key.ranks = new(idset.Set)
				groups = slices.Insert(groups, at, key)
			}
		}
		groups[at].ranks.Insert(rank)
	}
	known := r.spec.PerRank || r.lead.status == 0 && len(r.slots) > 0
	r.each(r.spec.Ranks, func(rank uint32, s *slot) {
		add(rank, s)
		known = known || s.cause == r.lead.cause || s.status != 0 && r.lead.cause == causeCanceled
	})
	if !known {
		for i := range groups {
			groups[i].ranks.Remove(r.spec.Leader.Value)
		}
		groups, at = slices.DeleteFunc(groups, func(g group) bool { return g.ranks.IsEmpty() }), 0
		add(r.spec.Leader.Value, &r.lead)
	}
	return groups
}

// code returns what distinguishes ends of one cause.
func (s *slot) code() int {
	switch {
	case s.cause == causeFailed && s.status&0x7f == 0:
		return int(s.status >> 8 & 0xff)
	case s.cause == causeSignaled:
		return signalOf(s.status)
	}
	return 0
}

// summary returns the public line. The words for one cause are flux-core's.
func (r *run) summary(groups []group) string {
	text, sep, more := title(r.spec.ActionKey), " ", 0
	for _, g := range groups {
		for _, part := range r.parts(g) {
			if more > 0 || len(text)+len(sep)+len(part) > maxRunNote-32 {
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
func (r *run) parts(g group) []string {
	if g.cause == causeOK {
		return nil
	}
	var parts []string
	rest := g.ranks.Clone()
	for _, n := range r.notes {
		if some := idset.Intersect(n.ranks, rest); !some.IsEmpty() {
			parts = append(parts, g.words()+r.place(g.cause, some)+": "+n.text)
			rest.SubtractWith(some)
		}
	}
	if !rest.IsEmpty() {
		parts = append(parts, g.words()+r.place(g.cause, rest))
	}
	return parts
}

func (g group) words() string {
	switch g.cause {
	case causeFailed:
		return "exited with code=" + strconv.Itoa(g.code)
	case causeSignaled:
		return g.cause.String() + " " + strconv.Itoa(g.code)
	case causeUnreachable:
		return causes[g.cause].drain
	case causeOffline:
		return "not run (offline)"
	}
	return g.cause.String()
}

// place returns the hosts and ranks of a group; of a single command, where it ran.
func (r *run) place(c endCause, ranks *idset.Set) string {
	if !r.spec.PerRank && c != causeReported && c != causeForced {
		ranks = idset.Of(r.spec.Leader.Value)
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

func (r *run) note(text string, rank uint32) {
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

// detail keeps what a report said of a rank, as far as there is room.
func (r *run) detail(rank uint32, cause endCause, status int32, text string) {
	if r.dropped > 0 {
		r.dropped++
		return
	}
	line := fmt.Appendf(nil, "rank %d", rank)
	if host := r.spec.Hosts(idset.Of(rank)); host != "" {
		line = fmt.Appendf(line, " (%s)", host)
	}
	line = fmt.Appendf(line, ": %v", cause)
	if status != 0 {
		line = fmt.Appendf(line, ", status %d", status)
	}
	if text != "" {
		line = fmt.Appendf(line, ": %q", clip(text, maxDetailText))
	}
	if len(r.details)+len(line) >= maxDetail-detailRoom {
		r.dropped++
		return
	}
	r.details = append(append(r.details, line...), '\n')
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
