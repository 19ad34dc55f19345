package perilog

import (
	"strconv"

	"github.com/joblife/joblife/eventlog"
)

// AppendText appends the state in words and returns the extended slice:
//
//	prolog job-manager.prolog: timeout; active 2-3; ok 0; exited with code=1 1; untold 1; signal 2-3; since 1.0; at 5.0; deadline 9.0
//
// untold are the ends that AppendEnded has not told, in their order; after them
// come the requests that were not fetched, and times. Runs of one spec in one
// state have the same text; what reports told in words is not in it. It costs
// by ranks. The error is always nil.
func (r *Run) AppendText(dst []byte) ([]byte, error) {
	dst = append(append(append(dst, r.spec.Kind.String()...), ' '), r.spec.Description...)
	dst = append(append(dst, ": "...), r.state.String()...)
	dst = r.appendRanks(dst, "active", func(s *slot) bool { return s.launched })
	if r.lead.launched {
		dst = strconv.AppendUint(append(dst, "; active "...), uint64(r.spec.Leader), 10)
	}
	dst = r.appendRanks(dst, "started", func(s *slot) bool { return s.launched && s.started })
	if r.lead.launched && r.lead.started {
		dst = strconv.AppendUint(append(dst, "; started "...), uint64(r.spec.Leader), 10)
	}
	dst = r.appendRanks(dst, "reported", func(s *slot) bool { return s.cause == 0 && s.reported })
	for _, g := range r.groups() {
		if g.Cause != 0 {
			dst = append(append(append(dst, "; "...), g.words()...), ' ')
			dst, _ = g.Ranks.AppendText(dst)
		}
	}
	if r.worst != 0 {
		dst = strconv.AppendInt(append(dst, "; worst "...), int64(r.worst), 10)
	}
	if r.fatal {
		dst = append(dst, "; fatal exception"...)
	}
	if r.state == RunDone {
		dst = append(append(dst, "; "...), r.verdict().String()...)
	}
	for i := r.head; i >= 0; i = r.slots[i].next {
		if i == r.head {
			dst = append(dst, "; untold"...)
		}
		dst = strconv.AppendUint(append(dst, ' '), uint64(r.rank(i)), 10)
	}
	for _, q := range r.requests {
		dst = append(append(dst, "; "...), q.Kind.String()...)
		if q.Ranks != nil {
			dst, _ = q.Ranks.AppendText(append(dst, ' '))
		}
	}
	dst = appendTime(dst, "since", r.start)
	dst = appendTime(dst, "at", r.now)
	return appendTime(dst, "deadline", r.deadline), nil
}

// String returns the text that AppendText appends.
func (r *Run) String() string {
	text, _ := r.AppendText(nil)
	return string(text)
}

// appendRanks appends a name and the ranks whose slots match, if there are any.
func (r *Run) appendRanks(dst []byte, name string, match func(*slot) bool) []byte {
	ranks := r.ranks(match)
	if ranks.IsEmpty() {
		return dst
	}
	dst, _ = ranks.AppendText(append(append(append(dst, "; "...), name...), ' '))
	return dst
}

// appendTime appends a name and a time, if there is one.
func appendTime(dst []byte, name string, t eventlog.Timestamp) []byte {
	if t == 0 {
		return dst
	}
	dst, _ = t.AppendText(append(append(append(dst, "; "...), name...), ' '))
	return dst
}
