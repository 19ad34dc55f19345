package jobstate

import (
	"bytes"
	"math"

	"github.com/joblife/joblife/internal/jsonobj"
)

// plain reads a context in the form that flux-core and this package write: known keys in one
// order, no white space, no escapes. It gives up on any other text, and then reads zero.
type plain struct {
	rest []byte
	bad  bool
}

// decode sets ev to a context of the plain form, and reports whether it is. If not, ev may have parts.
func (p *plain) decode(ev *Event, k kind) bool {
	m := &ev.mem
	switch k {
	case kSubmit:
		ev.submit = SubmitContext{}
		p.skip(`{"userid":`)
		ev.submit.UserID = uint32(p.number(math.MaxUint32))
		p.skip(`,"urgency":`)
		ev.submit.Urgency = uint8(p.number(UrgencyExpedite))
		p.skip(`,"flags":`)
		ev.submit.Flags = Flags(p.number(math.MaxUint32))
		p.skip(`,"version":`)
		ev.submit.Version = int(p.number(LogVersion))
		p.bad = p.bad || ev.submit.Version == 0
	case kDependencyAdd:
		p.skip(`{"description":`)
		ev.dependencyAdd = DependencyAddContext{Description: m.intern(p.text())}
	case kDependencyRemove:
		p.skip(`{"description":`)
		ev.dependencyRem = DependencyRemoveContext{Description: m.intern(p.text())}
	case kPriority:
		p.skip(`{"priority":`)
		ev.priority = PriorityContext{Priority: uint32(p.number(MaxPriority))}
	case kUrgency:
		p.skip(`{"userid":`)
		ev.urgency = UrgencyContext{UserID: uint32(p.number(math.MaxUint32))}
		p.skip(`,"urgency":`)
		ev.urgency.Urgency = uint8(p.number(UrgencyExpedite))
	case kAlloc:
		p.skip(`{"annotations":`)
		ev.alloc = AllocContext{Annotations: p.annotations()}
	case kPrologStart, kEpilogStart:
		p.skip(`{"description":`)
		ev.start = ActionStartContext{ActionKey: ActionKey{m.action, m.intern(p.text())}, Ranks: Ranks{All: true}}
	case kPrologFinish, kEpilogFinish:
		p.skip(`{"description":`)
		ev.actionFinish = ActionFinishContext{ActionKey: ActionKey{m.action, m.intern(p.text())}}
		p.skip(`,"status":`)
		ev.actionFinish.Status = int32(p.number(math.MaxInt32))
	case kFinish:
		p.skip(`{"status":`)
		ev.finish = FinishContext{Status: int32(p.number(math.MaxInt32))}
	case kRelease:
		p.release(ev)
	case kException:
		p.exception(&ev.exception, m)
	case kMemo:
		ev.memo.Values = p.value('{', contextDepth)
		return !p.bad && len(p.rest) == 0
	default:
		return false
	}
	p.skip("}")
	return !p.bad && len(p.rest) == 0
}

func (p *plain) release(ev *Event) {
	ev.release = ReleaseContext{}
	p.skip(`{"ranks":`)
	if text := p.text(); string(text) == "all" {
		ev.release.Ranks.All = true
	} else {
		p.bad = ev.mem.readRanks(text) != nil || p.bad
		ev.release.Ranks.Set = ev.mem.ranks
	}
	p.skip(`,"final":`)
	if ev.release.Final = p.next("true"); !ev.release.Final {
		p.skip("false")
	}
}

// annotations reads those of alloc. Most have one member, known to be no deeper.
func (p *plain) annotations() []byte {
	all := *p
	if p.next(`{"sched":{"resource_summary":`) {
		p.text()
		p.skip("}}")
		if n := len(all.rest) - len(p.rest); !p.bad {
			return all.rest[:n:n]
		}
		*p = all
	}
	return p.value('{', contextDepth-1)
}

// exception reads the note and the user in flux-core's order or in that of this package.
func (p *plain) exception(c *ExceptionContext, m *scratch) {
	*c = ExceptionContext{}
	p.skip(`{"type":`)
	c.Type = m.intern(p.text())
	p.skip(`,"severity":`)
	c.Severity = uint8(p.number(MaxSeverity))
	if p.next(`,"userid":`) {
		c.UserID = Some(uint32(p.number(math.MaxUint32)))
	}
	p.skip(`,"note":`)
	c.Note = m.intern(p.text())
	if !c.UserID.Set && p.next(`,"userid":`) {
		c.UserID = Some(uint32(p.number(math.MaxUint32)))
	}
}

// next skips s if it comes next, and reports whether it does.
func (p *plain) next(s string) bool {
	if len(p.rest) < len(s) || string(p.rest[:len(s)]) != s {
		return false
	}
	p.rest = p.rest[len(s):]
	return true
}

// skip skips s, which must come next.
func (p *plain) skip(s string) {
	if !p.next(s) {
		p.bad = true
	}
}

// number reads an integer that is not negative and at most limit.
func (p *plain) number(limit uint64) uint64 {
	n, i := uint64(0), 0
	for i < len(p.rest) && i < 10 && p.rest[i]-'0' <= 9 {
		n = n*10 + uint64(p.rest[i]-'0')
		i++
	}
	if i == 0 || i > 1 && p.rest[0] == '0' || n > limit {
		p.bad = true
		return 0
	}
	p.rest = p.rest[i:]
	return n
}

// text reads a string without escapes and returns its content, which aliases the context.
func (p *plain) text() []byte {
	raw := p.value('"', 1)
	if p.bad || bytes.IndexByte(raw, '\\') >= 0 {
		p.bad = true
		return nil
	}
	return raw[1 : len(raw)-1 : len(raw)-1]
}

// value reads a value whose first byte is given.
func (p *plain) value(first byte, depth int) []byte {
	if p.bad || len(p.rest) == 0 || p.rest[0] != first {
		p.bad = true
		return nil
	}
	end, ok := jsonobj.ValueEnd(p.rest, 0, depth)
	if !ok {
		p.bad = true
		return nil
	}
	raw := p.rest[:end:end]
	p.rest = p.rest[end:]
	return raw
}
