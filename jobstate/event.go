package jobstate

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/jsonscan"
)

// Event is one entry of a log, decoded and checked once: whatever folds the log
// takes the Event. The zero Event is ready for Decode. It holds the memory of
// one event, and one Event can decode a whole log.
//
// An Event belongs to one goroutine at a time and must not be copied.
type Event struct {
	_ noCopy

	entry eventlog.Entry
	kind  kind
	mem   scratch

	submit         SubmitContext
	jobspecUpdate  JobspecUpdateContext
	resourceUpdate ResourceUpdateContext
	setFlags       SetFlagsContext
	dependencyAdd  DependencyAddContext
	dependencyRem  DependencyRemoveContext
	priority       PriorityContext
	urgency        UrgencyContext
	alloc          AllocContext
	start          ActionStartContext
	launch         ActionLaunchContext
	fail           ActionFailContext
	actionRelease  ActionReleaseContext
	actionFinish   ActionFinishContext
	finish         FinishContext
	release        ReleaseContext
	exception      ExceptionContext
	drained        DrainedContext
	memo           MemoContext
}

// Decode reads an entry and replaces what the Event held. It checks all of the
// entry: the time, the name, and the context by the grammar of the event, which
// for an unknown name is any JSON object. The check is the same in every state
// of a job.
//
// The Event aliases e until the next Decode. After an error it holds no entry.
// The error wraps ErrTime, ErrContext, or eventlog.ErrEntry for a name that no
// log can hold. Decode allocates nothing for the events of actions once it has
// met their descriptions, if ranks are few ranges; it allocates the strings of
// other contexts.
func (ev *Event) Decode(e eventlog.Entry) error {
	k := kindOf(e.Name)
	err := ev.decode(k, e)
	if err != nil {
		ev.entry, ev.kind = eventlog.Entry{}, kUnknown
		return err
	}
	ev.entry, ev.kind = e, k
	return nil
}

func (ev *Event) decode(k kind, e eventlog.Entry) error {
	if !validTime(e.Timestamp) {
		return ErrTime
	}
	if k == kUnknown && (e.Name == "" || !utf8.ValidString(e.Name) || strings.IndexByte(e.Name, 0) >= 0) {
		return eventlog.ErrEntry
	}
	return ev.decodeContext(k, e)
}

// Entry returns the entry that was decoded, and the zero Entry if there is
// none.
func (ev *Event) Entry() eventlog.Entry { return ev.entry }

// Context returns the typed context, and nil for an event that has none and for
// a name that this package does not know. Its Extra is nil: ParseContext keeps
// unknown keys. The Event owns the context, which is valid until the next
// Decode and must not be changed.
func (ev *Event) Context() Context {
	switch ev.kind {
	case kSubmit:
		return &ev.submit
	case kJobspecUpdate:
		return &ev.jobspecUpdate
	case kResourceUpdate:
		return &ev.resourceUpdate
	case kSetFlags:
		return &ev.setFlags
	case kDependencyAdd:
		return &ev.dependencyAdd
	case kDependencyRemove:
		return &ev.dependencyRem
	case kPriority:
		return &ev.priority
	case kUrgency:
		return &ev.urgency
	case kAlloc:
		return &ev.alloc
	case kPrologStart, kEpilogStart, kHousekeepingStart:
		return &ev.start
	case kPrologLaunch, kEpilogLaunch, kHousekeepingLaunch:
		return &ev.launch
	case kPrologFail, kEpilogFail, kHousekeepingFail:
		return &ev.fail
	case kPrologRelease, kEpilogRelease, kHousekeepingRelease:
		return &ev.actionRelease
	case kPrologFinish, kEpilogFinish, kHousekeepingFinish:
		return &ev.actionFinish
	case kFinish:
		return &ev.finish
	case kRelease:
		return &ev.release
	case kException:
		return &ev.exception
	case kDrained:
		return &ev.drained
	case kMemo:
		return &ev.memo
	default:
		return nil
	}
}

// decodeContext reads the context of an entry of kind k.
func (ev *Event) decodeContext(k kind, e eventlog.Entry) error {
	raw := []byte(e.Context)
	if len(raw) == 0 {
		if k.needsContext() {
			return contextError(e.Name, errAbsent)
		}
		ev.alloc = AllocContext{}
		return nil
	}
	d := jsonobj.NewDoc(raw, contextLimits())
	o := d.Object()
	m := &ev.mem
	switch k {
	case kSubmit:
		ev.submit.decode(&o, m)
	case kJobspecUpdate:
		ev.jobspecUpdate.decode(&o, raw)
	case kResourceUpdate:
		ev.resourceUpdate.decode(&o, m)
	case kSetFlags:
		ev.setFlags.decode(&o, m)
	case kDependencyAdd:
		ev.dependencyAdd.decode(&o, m)
	case kDependencyRemove:
		ev.dependencyRem.decode(&o, m)
	case kPriority:
		ev.priority.decode(&o, m)
	case kUrgency:
		ev.urgency.decode(&o, m)
	case kAlloc:
		ev.alloc.decode(&o, m, raw)
	case kFinish:
		ev.finish.decode(&o, m)
	case kRelease:
		ev.release.decode(&o, m)
	case kException:
		ev.exception.decode(&o, m)
	case kDrained:
		ev.drained.decode(&o, m)
	case kMemo:
		ev.memo.decode(&o, raw)
	default:
		ev.decodeAction(k, &o)
	}
	if f := d.Fault(); f != nil {
		return contextError(e.Name, f)
	}
	return nil
}

// decodeAction reads the context of an event of an action, and checks that of
// an event that has none.
func (ev *Event) decodeAction(k kind, o *jsonobj.Reader) {
	m := &ev.mem
	switch k {
	case kPrologStart, kEpilogStart, kHousekeepingStart:
		ev.start.Kind = k.action()
		ev.start.decode(o, m)
	case kPrologLaunch, kEpilogLaunch, kHousekeepingLaunch:
		ev.launch.Kind = k.action()
		ev.launch.decode(o, m)
	case kPrologFail, kEpilogFail, kHousekeepingFail:
		ev.fail.Kind = k.action()
		ev.fail.decode(o, m)
	case kPrologRelease, kEpilogRelease, kHousekeepingRelease:
		ev.actionRelease.Kind = k.action()
		ev.actionRelease.decode(o, m)
	case kPrologFinish, kEpilogFinish, kHousekeepingFinish:
		ev.actionFinish.Kind = k.action()
		ev.actionFinish.decode(o, m)
	default:
		for o.Next() { // which checks
		}
	}
}

// needsContext reports whether the event has keys that are required.
func (k kind) needsContext() bool {
	switch k {
	case kUnknown, kValidate, kInvalidate, kDepend, kFluxRestart, kStart, kFree, kClean, kAlloc:
		return false
	default:
		return true
	}
}

// ParseContext decodes the context of e alone, with the keys that this package
// does not know in Extra. It returns nil for an event that has no context and
// for an unknown name; neither is checked. The error wraps ErrContext. The
// result keeps no reference to e.
func ParseContext(e eventlog.Entry) (Context, error) {
	ev := Event{kind: kindOf(e.Name), mem: scratch{extra: true}}
	if ev.Context() == nil {
		return nil, nil
	}
	if err := ev.decodeContext(ev.kind, e); err != nil {
		return nil, err
	}
	return ev.detach(), nil
}

// detach returns the context in memory of its own, but for what ev has
// allocated for it.
func (ev *Event) detach() Context {
	switch c := ev.Context().(type) {
	case *SubmitContext:
		return copyOf(c)
	case *JobspecUpdateContext:
		for i := range c.Updates {
			c.Updates[i].Value = bytes.Clone(c.Updates[i].Value)
		}
		return copyOf(c)
	case *ResourceUpdateContext:
		return copyOf(c)
	case *SetFlagsContext:
		return copyOf(c)
	case *DependencyAddContext:
		return copyOf(c)
	case *DependencyRemoveContext:
		return copyOf(c)
	case *PriorityContext:
		return copyOf(c)
	case *UrgencyContext:
		return copyOf(c)
	case *AllocContext:
		c.Annotations = bytes.Clone(c.Annotations)
		return copyOf(c)
	case *ActionStartContext:
		return copyOf(c)
	case *ActionLaunchContext:
		return copyOf(c)
	case *ActionFailContext:
		return copyOf(c)
	case *ActionReleaseContext:
		return copyOf(c)
	case *ActionFinishContext:
		return copyOf(c)
	case *FinishContext:
		return copyOf(c)
	case *ReleaseContext:
		return copyOf(c)
	case *ExceptionContext:
		return copyOf(c)
	case *DrainedContext:
		return copyOf(c)
	case *MemoContext:
		c.Values = bytes.Clone(c.Values)
		return copyOf(c)
	default:
		return nil
	}
}

func copyOf[T any](c *T) *T {
	v := *c
	return &v
}

// maxInterned is how long a text may be, in bytes, that a scratch remembers.
const maxInterned = 64

// scratch is what decoding reuses.
type scratch struct {
	extra  bool       // unknown keys are wanted
	ranks  *idset.Set // what the key ranks names
	failed *FailedRanks
	texts  [8]string // the last texts met
	next   uint8     // which of texts is replaced next
}

// other keeps the member that o is at, if unknown keys are wanted.
func (m *scratch) other(o *jsonobj.Reader, extra []byte) []byte {
	if m.extra {
		return o.Keep(extra)
	}
	return nil
}

// member is other for a member that was read before.
func (m *scratch) member(key string, v jsonobj.Value, extra []byte) []byte {
	if !m.extra || v.Absent() {
		return extra
	}
	o := jsonobj.Write(nil, contextLimits())
	o.Keep(extra)
	o.Raw(key, v.Raw())
	out, _ := o.End(nil)
	return out
}

// text reads a string, and allocates it unless it is one of the last that were
// met.
func (m *scratch) text(v jsonobj.Value) string {
	b := v.TextBytes()
	if len(b) > maxInterned {
		return string(b)
	}
	for i := range m.texts {
		if m.texts[i] == string(b) {
			return m.texts[i]
		}
	}
	s := string(b)
	m.texts[m.next] = s
	m.next = (m.next + 1) % uint8(len(m.texts))
	return s
}

// texts reads an array of strings into list[:0].
func (m *scratch) list(v jsonobj.Value, list []string) []string {
	list = list[:0]
	for a := v.Array(); a.Next(); {
		list = append(list, m.text(a.Value()))
	}
	return list
}

// set reads an idset. The set is reused.
func (m *scratch) set(v jsonobj.Value) *idset.Set {
	text := v.TextBytes()
	if m.ranks == nil {
		m.ranks = new(idset.Set)
	} else {
		m.ranks.SubtractWith(m.ranks)
	}
	if plainSet(m.ranks, text) {
		return m.ranks
	}
	set, err := idset.Parse(string(text))
	if err != nil {
		v.Fail(err)
		return m.ranks
	}
	m.ranks = set
	return set
}

// plainSet adds ids and ranges that ascend to an empty set, and returns false
// for any other text, which is idset.Parse's to judge. It gives up on a long
// one: Parse is made for that.
func plainSet(s *idset.Set, text []byte) bool {
	if len(text) > 64 {
		return false
	}
	next, i := uint64(0), 0 // next: the smallest id that may come
	for i < len(text) {
		first, n := plainID(text[i:])
		i += n
		last := first
		if n > 0 && i < len(text) && text[i] == '-' {
			var m int
			if last, m = plainID(text[i+1:]); m == 0 || last <= first {
				return false
			}
			i += 1 + m
		}
		if n == 0 || first < next || last > idset.MaxID {
			return false
		}
		s.InsertRange(uint32(first), uint32(last))
		next = last + 1
		switch {
		case i == len(text):
			return true
		case text[i] != ',' || i+1 == len(text):
			return false
		}
		i++
	}
	return true // empty
}

// plainID reads an id of up to ten digits and returns how many there are, 0 if
// there is no id.
func plainID(text []byte) (id uint64, n int) {
	for n < len(text) && n < 10 && text[n] >= '0' && text[n] <= '9' {
		id = id*10 + uint64(text[n]-'0')
		n++
	}
	if n > 1 && text[0] == '0' {
		return 0, 0
	}
	return id, n
}

// names reads an array of names, each once and none empty, into list[:0].
func (m *scratch) names(v jsonobj.Value, list []string) []string {
	list = m.list(v, list)
	if err := checkNames(list); err != nil {
		v.Fail(err)
	}
	return list
}

// fewNames is up to how many names are compared each with each.
const fewNames = 8

// checkNames returns what is wrong with a list of named resources.
func checkNames(list []string) error {
	for i, name := range list {
		if name == "" || len(list) <= fewNames && slices.Contains(list[:i], name) {
			return errNames
		}
	}
	if len(list) > fewNames {
		sorted := slices.Clone(list)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(list) {
			return errNames
		}
	}
	return nil
}

// contextLimits are those of a context in an entry, which is one level more.
func contextLimits() jsonscan.Limits { return jsonscan.Limits{Depth: jsonscan.DefaultDepth - 1} }

func validTime(t eventlog.Timestamp) bool { return t > 0 && !math.IsInf(float64(t), 0) }
