package perilog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/jobstate"
)

// The events that RFC 21 does not define: the end of a prolog or epilog on some
// of its ranks. The action goes on, and its finish still comes. To a tool that
// knows RFC 21 alone they are unknown events, which are legal.
const (
	EventPrologRelease = "prolog-release"
	EventEpilogRelease = "epilog-release"
)

// MemoDataOut is the key of a memo that says that the user's data is safe,
// though named resources may still be out. Its value is true.
const MemoDataOut = "data-out"

// The keys that the dialect adds to contexts of RFC 21.
const (
	keyRanks     = "ranks"
	keyResources = "resources"
	keyNodelist  = "nodelist"
	keyAction    = "action"
)

// ActionStart is the context of prolog-start and epilog-start. RFC 21 knows the
// description alone.
type ActionStart struct {
	Kind        jobstate.ActionKind
	Description string
	// Ranks are those that the action holds. All of the job's is what an event
	// without the key ranks means, and is written so; the zero value is none.
	Ranks jobstate.Ranks
	// Resources are the named resources that the action holds, each once and
	// none empty. An event without the key holds none.
	Resources []string
	Extra     json.RawMessage // other keys, a JSON object; nil: none
}

// ParseActionStart decodes a prolog-start or an epilog-start. The error is a
// jobstate.ErrContext. The result keeps no reference to e.
func ParseActionStart(e eventlog.Entry) (ActionStart, error) {
	c, err := jobstate.ParseContext(e)
	if err != nil {
		return ActionStart{}, err
	}
	start, ok := c.(*jobstate.ActionStartContext)
	if !ok {
		return ActionStart{}, contextError(e.Name, "", -1, errKeyEvent)
	}
	a := ActionStart{Kind: start.Kind, Description: start.Description, Ranks: start.Ranks, Resources: start.Resources, Extra: start.Extra}
	return a, nil
}

// Entry encodes the event at time t. The error is a jobstate.ErrContext.
func (a *ActionStart) Entry(t eventlog.Timestamp) (eventlog.Entry, error) {
	return jobstate.NewEntry(t, &jobstate.ActionStartContext{
		Kind: a.Kind, Description: a.Description, Ranks: a.Ranks, Resources: a.Resources, Extra: a.Extra,
	})
}

// ActionRelease is the context of prolog-release and epilog-release: the action
// has ended on some ranks, or needs some named resources no more.
type ActionRelease struct {
	Kind        jobstate.ActionKind
	Description string
	Ranks       *idset.Set // nil is none
	Status      int32      // the worst wait status on these ranks; 0 is success
	Resources   []string   // each once, none empty
	Extra       json.RawMessage
}

// ParseActionRelease decodes a prolog-release or an epilog-release. The error
// is a jobstate.ErrContext. The result keeps no reference to e.
func ParseActionRelease(e eventlog.Entry) (ActionRelease, error) {
	a := ActionRelease{}
	switch e.Name {
	case EventPrologRelease:
		a.Kind = jobstate.ActionProlog
	case EventEpilogRelease:
		a.Kind = jobstate.ActionEpilog
	default:
		return a, contextError(e.Name, "", -1, errKeyEvent)
	}
	var s scanner
	if err := s.scan(e.Name, e.Context, sayRelease); err != nil {
		return ActionRelease{}, err
	}
	a.Description, a.Status, a.Resources = string(s.description), s.status, s.names
	a.Ranks = s.ranks.Clone()
	a.Extra = without(e.Context, "description", "status", keyRanks, keyResources)
	return a, nil
}

// Entry encodes the event at time t. The error is a jobstate.ErrContext, or
// an *eventlog.EntryError for a time that no event can have.
func (a *ActionRelease) Entry(t eventlog.Timestamp) (eventlog.Entry, error) {
	e := eventlog.Entry{Timestamp: t}
	switch a.Kind {
	case jobstate.ActionProlog:
		e.Name = EventPrologRelease
	case jobstate.ActionEpilog:
		e.Name = EventEpilogRelease
	default:
		return eventlog.Entry{}, contextError(a.Kind.String(), "", -1, errKeyKind)
	}
	var w members
	w.text("description", a.Description)
	w.text(keyRanks, a.Ranks.String())
	w.key("status")
	w.out = strconv.AppendInt(w.out, int64(a.Status), 10)
	w.names(keyResources, a.Resources)
	var err error
	if e.Context, err = w.end(e.Name, a.Extra, "description", "status", keyRanks, keyResources); err != nil {
		return eventlog.Entry{}, err
	}
	var s scanner
	if err = s.scan(e.Name, e.Context, sayRelease); err == nil {
		_, err = eventlog.AppendEntry(nil, e)
	}
	if err != nil {
		return eventlog.Entry{}, err
	}
	return e, nil
}

// FailedAction says what becomes of ranks that failed. The zero value is
// invalid.
type FailedAction uint8

// The values of the key action.
const (
	FailedKeep FailedAction = 1 + iota // they stay with the job, which is to know of them
	FailedDrop                         // the job and the executor hold them no more
)

// String returns "keep" or "drop"; another value prints as FailedAction(n).
func (a FailedAction) String() string {
	switch a {
	case FailedKeep:
		return "keep"
	case FailedDrop:
		return "drop"
	default:
		return "FailedAction(" + strconv.Itoa(int(a)) + ")"
	}
}

// FailedRanks is the context of an exception that does not end the job and
// names the ranks that failed.
type FailedRanks struct {
	Exception jobstate.ExceptionContext // Severity is at least 1; Extra is other keys
	Ranks     *idset.Set                // not empty
	Nodelist  string                    // their hosts in rank order, RFC 29; "": not said
	Action    FailedAction
}

// ParseFailedRanks decodes an exception. It returns false for one that is not
// of this dialect: of severity 0, or without one of the keys ranks and action.
// The error is a jobstate.ErrContext. The result keeps no reference to e.
func ParseFailedRanks(e eventlog.Entry) (FailedRanks, bool, error) {
	c, err := jobstate.ParseContext(e)
	if err != nil {
		return FailedRanks{}, false, err
	}
	x, ok := c.(*jobstate.ExceptionContext)
	if !ok {
		return FailedRanks{}, false, contextError(e.Name, "", -1, errKeyEvent)
	}
	if x.Failed == nil {
		return FailedRanks{}, false, nil
	}
	f := FailedRanks{Exception: *x, Ranks: x.Failed.Ranks, Nodelist: x.Failed.Nodelist, Action: FailedAction(x.Failed.Action)}
	f.Exception.Failed = nil
	return f, true, nil
}

// Entry encodes the event at time t. The error is a jobstate.ErrContext.
func (f *FailedRanks) Entry(t eventlog.Timestamp) (eventlog.Entry, error) {
	c := f.Exception
	c.Failed = &jobstate.FailedRanks{Ranks: f.Ranks, Nodelist: f.Nodelist, Action: jobstate.FailedAction(f.Action)}
	return jobstate.NewEntry(t, &c)
}

// members writes the members of an object.
type members struct {
	out []byte
	bad string // the key of the first text that is not UTF-8
}

func (w *members) key(k string) {
	if len(w.out) == 0 {
		w.out = append(w.out, '{')
	} else {
		w.out = append(w.out, ',')
	}
	w.out = append(jsonscan.AppendString(w.out, k), ':')
}

func (w *members) text(k, s string) {
	if !utf8.ValidString(s) && w.bad == "" {
		w.bad = k
	}
	w.key(k)
	w.out = jsonscan.AppendString(w.out, s)
}

// names writes an array of names, and nothing where there are none.
func (w *members) names(k string, list []string) {
	for i, s := range list {
		if !utf8.ValidString(s) && w.bad == "" {
			w.bad = k
		}
		if i == 0 {
			w.key(k)
			w.out = append(w.out, '[')
		} else {
			w.out = append(w.out, ',')
		}
		w.out = jsonscan.AppendString(w.out, s)
	}
	if len(list) > 0 {
		w.out = append(w.out, ']')
	}
}

// end adds the extra members, none of which may be one of the dialect's own, and
// closes the object: nil if it has none.
func (w *members) end(event string, extra json.RawMessage, own ...string) (json.RawMessage, error) {
	if w.bad != "" {
		return nil, contextError(event, w.bad, -1, errKeyUTF8)
	}
	if len(extra) > 0 {
		cur := jsonscan.Object(extra)
		for cur.Next() {
			key := string(cur.Key())
			if slices.Contains(own, key) {
				return nil, contextError(event, key, -1, errKeyExtra)
			}
			w.key(key)
			w.out = jsonscan.AppendCompact(w.out, cur.Raw())
		}
		if cur.Err() != nil {
			return nil, contextError(event, "", cur.Offset(), cur.Err())
		}
	}
	if len(w.out) == 0 {
		return nil, nil
	}
	return append(w.out, '}'), nil
}

// without returns the members of an object that was checked but for some keys,
// nil if none is left.
func without(object json.RawMessage, keys ...string) json.RawMessage {
	if len(object) == 0 {
		return nil
	}
	var w members
	cur := contextLimits().Object(object)
next:
	for cur.Next() {
		for _, k := range keys {
			if string(cur.Key()) == k {
				continue next
			}
		}
		w.key(string(cur.Key()))
		w.out = jsonscan.AppendCompact(w.out, cur.Raw())
	}
	if len(w.out) == 0 {
		return nil
	}
	return append(w.out, '}')
}

// hasKeys reports whether an object that was checked has all the keys.
func hasKeys(object json.RawMessage, keys ...string) bool {
	if len(object) == 0 {
		return false
	}
	n := 0
	cur := contextLimits().Object(object)
	for cur.Next() {
		for _, k := range keys {
			if string(cur.Key()) == k {
				n++
			}
		}
	}
	return n == len(keys)
}

func contextError(event, key string, offset int, err error) error {
	s := ""
	if key != "" {
		s = ": key " + strconv.Quote(key)
	}
	if offset >= 0 {
		s += ": offset " + strconv.Itoa(offset)
	}
	return fmt.Errorf("%w: context of %s%s: %w", jobstate.ErrContext, clip(event), s, err)
}
