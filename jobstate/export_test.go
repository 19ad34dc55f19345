package jobstate

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/jsonobj"
)

// Check returns the first violation of a job's invariants.
func Check(j *Job) error {
	if !j.State().single() {
		return fmt.Errorf("state %v is no single state", j.State())
	}
	if r := j.rare; r != nil {
		if err := checkOrdered(&r.deps); err != nil {
			return fmt.Errorf("dependencies: %w", err)
		}
		if err := checkOrdered(&r.flags); err != nil {
			return fmt.Errorf("flags: %w", err)
		}
		if n := len(j.Dependencies()); uint32(n) != r.open {
			return fmt.Errorf("%d dependencies are open, counted %d", n, r.open)
		}
	}
	if j.actions == nil {
		return nil
	}
	if err := checkOrdered(&j.actions.ordered); err != nil {
		return fmt.Errorf("actions: %w", err)
	}
	if len(j.actions.items) == 0 {
		return errors.New("actions are kept for none")
	}
	var prologs, epilogs, failed int
	for key, a := range j.actions.all() {
		switch {
		case key.Kind == ActionEpilog:
			epilogs += a.live
		case a.failed:
			failed++
			fallthrough
		default:
			prologs += a.live
		}
	}
	if prologs != j.live(ActionProlog) || epilogs != j.live(ActionEpilog) || failed != j.failedPrologs() {
		return fmt.Errorf("actions: %d, %d, %d, counted %d, %d, %d", prologs, epilogs, failed, j.live(ActionProlog), j.live(ActionEpilog), j.failedPrologs())
	}
	for key, a := range j.actions.all() {
		if a.live < 0 || a.live == 0 && !a.failed {
			return fmt.Errorf("action %v is live %d times, failed: %v", key, a.live, a.failed)
		}
	}
	return nil
}

func checkOrdered[K comparable, V any](o *ordered[K, V]) error {
	live := 0
	for i := range o.items {
		if o.items[i].dead {
			continue
		}
		live++
		if o.index != nil {
			if at, ok := o.index[o.items[i].key]; !ok || at != i {
				return fmt.Errorf("index has %d for %v, which is at %d", at, o.items[i].key, i)
			}
		}
	}
	if live != o.live || o.index != nil && len(o.index) != live {
		return fmt.Errorf("%d are live, counted %d, indexed %d", live, o.live, len(o.index))
	}
	if len(o.items) > 0 && len(o.items) >= 2*o.live {
		return fmt.Errorf("%d items are kept for %d live ones", len(o.items), o.live)
	}
	for _, spare := range o.items[len(o.items):cap(o.items)] {
		if spare.key != *new(K) {
			return fmt.Errorf("spare capacity keeps %v", spare.key)
		}
	}
	return nil
}

// OnHold reports whether the job is on hold.
func (j *Job) OnHold() bool { return j.onHold() }

// IsSingle reports whether s is a single state.
func IsSingle(s State) bool { return s.single() }

// The outcomes that no caller tells apart.
const (
	IgnoredState      = ignoredState
	IgnoredDependency = ignoredDependency
	IgnoredAction     = ignoredAction
	IgnoredStarted    = ignoredStarted
	MaxFindings       = maxFindings
)

// ParseAny is ParseContext without the fast path for plain contexts.
func ParseAny(e eventlog.Entry) (Context, error) {
	k, action, _ := kindOf(e.Name)
	ev := &Event{kind: k, mem: scratch{action: action}}
	if ev.Context() == nil {
		return nil, nil
	}
	if len(e.Context) == 0 {
		return ParseContext(e)
	}
	if err := ev.decodeAny(&e); err != nil {
		return nil, err
	}
	return ev.Context(), nil
}

// IsPlain reports whether the fast path takes the context of an entry.
func IsPlain(e eventlog.Entry) bool {
	p := plain{rest: e.Context}
	k, _, _ := kindOf(e.Name)
	return p.decode(new(Event), k)
}

// MarkText returns the mark of an entry.
func MarkText(e eventlog.Entry) string {
	var ev Event
	if err := ev.Decode(e); err != nil {
		panic(err)
	}
	return fmt.Sprint(markOf(&ev))
}

// AnnotationsSize returns how many bytes a job holds for its annotations.
func AnnotationsSize(j *Job) int { return cap(j.notes) }

// AnnotationsLen returns how many of them are used.
func AnnotationsLen(j *Job) int { return len(j.notes) }

// AppendContext appends a context as EncodeEntry does.
func AppendContext(dst []byte, c Context) ([]byte, error) {
	_, out, err := EncodeEntry(dst, 1, c)
	return out, err
}

// EventName returns the name of the event whose context c is.
func EventName(c Context) string {
	w := jsonobj.Write(nil, 0)
	x := codec{w: &w}
	return x.members(new(jsonobj.Reader), c, nil)
}

// ParseContext returns the context of an entry, to keep it.
func ParseContext(e eventlog.Entry) (Context, error) {
	k, action, _ := kindOf(e.Name)
	ev := &Event{kind: k, mem: scratch{action: action}}
	if ev.Context() == nil {
		return nil, nil
	}
	e.Context = bytes.Clone(e.Context)
	if err := ev.decodeContext(ev.kind, &e); err != nil {
		return nil, err
	}
	return ev.Context(), nil
}

// The categories of errors on which only tests branch.
var (
	ErrClosed  = errClosed
	ErrContext = errContext
	ErrVersion = errVersion
)
