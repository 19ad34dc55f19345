package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/joblife/joblife"
)

// The errors of this package.
var (
	// ErrFull is returned by Put, Call and View when the inbox has no room. Try later. A peer
	// that cannot wait has to end its session, and to repeat in the next what it said.
	ErrFull = errors.New("loop: the inbox is full")
	// ErrEnded is returned when the Loop has ended, with the cause if there is one.
	// Whether the input of a Call counts then shows after a restart.
	ErrEnded = errors.New("loop: ended")
	errPanic = errors.New("loop: panic") // the cause when what the Loop calls panics
)

// The limits of inputs that wait.
const (
	maxInputs = 1 << 18
	maxBytes  = 64 << 20
)

// ownTags are the tags of the Loop.
const ownTags = 1 << 63

// A request is an input that waits, a function of Do or Hear, or a View.
type request struct {
	in   joblife.Input
	do   func(m *joblife.Manager) func()
	hear func()
	size int   // in bytes
	call *call // nil: of Put, Do or Hear
}

// A call is somebody who waits for a request.
type call struct {
	then   func()          // of Do; it has nothing else
	gone   <-chan struct{} // closed when its context ends
	tag    uint64
	view   chan struct{} // of a View: its turn
	back   chan struct{} // closed when a View is over
	done   chan struct{} // closed when the call is answered
	answer joblife.Answer
	err    error
}

var inputPath = reflect.TypeFor[joblife.Tick]().PkgPath()

// tagOf returns the Tag of an input; it is not valid if its type has none. A type that embeds an
// input, which the Manager refuses, may embed a nil pointer, or have a Tag of its own.
func tagOf(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Struct || v.Type().PkgPath() != inputPath {
		return reflect.Value{}
	}
	return v.FieldByName("Tag")
}

// setTag returns an input with a tag, and whether its type has an Answer.
func setTag(in joblife.Input, tag uint64) (joblife.Input, bool) {
	if _, ok := in.(joblife.WaitCancel); ok || !tagOf(reflect.ValueOf(in)).IsValid() {
		return in, false
	}
	v := reflect.New(reflect.TypeOf(in)).Elem() // the caller's is not changed
	v.Set(reflect.ValueOf(in))
	tagOf(v).SetUint(tag)
	return v.Interface().(joblife.Input), true
}

// measure returns how many bytes an input has. It refuses a tag of the Loop: its answer would
// be somebody else's. It refuses a session of another executor beside that of the Loop.
func (l *Loop) measure(in joblife.Input) (int, error) {
	tag, size := uint64(0), 0
	switch in := in.(type) { // most inputs are reports, and reflection costs as much as the rest of Put
	case joblife.Report:
		tag, size = in.Tag, sizeOfReport(&in)
	case joblife.Reports:
		size = len(in.List) * int(reflect.TypeFor[joblife.Report]().Size())
		for i := range in.List {
			tag, size = max(tag, in.List[i].Tag), size+sizeOfReport(&in.List[i])
		}
	default:
		if f := tagOf(reflect.ValueOf(in)); f.IsValid() {
			tag = f.Uint()
		}
		if t, ok := in.(joblife.Tagged); ok {
			in = t.In
		}
		switch size = sizeOf(reflect.ValueOf(in)); in.(type) {
		case joblife.ExecHello, joblife.ExecLost:
			if l.cfg.Executor != nil {
				return 0, fmt.Errorf("loop: %w: %T: the session of the Executor is the Loop's", joblife.ErrInvalid, in)
			}
		}
	}
	if tag >= ownTags {
		return 0, fmt.Errorf("loop: %w: %T with Tag %d: those from 2^63 on are the Loop's", joblife.ErrInvalid, in, tag)
	}
	return size, nil
}

func sizeOfReport(r *joblife.Report) int {
	return len(r.Action.Description) + len(r.Detail) + len(r.Line)
}

// sizeOf returns how many bytes an input refers to. What it refers to twice counts twice. Maps
// and errors do not count: no peer sets them, and an error may refer to anything, even to itself.
func sizeOf(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Struct:
		for i := range v.NumField() {
			n += sizeOf(v.Field(i))
		}
	case reflect.Pointer, reflect.Interface: // a large set of ids has its parts behind interfaces
		if !v.IsNil() && v.Type() != reflect.TypeFor[error]() {
			n = int(v.Elem().Type().Size()) + sizeOf(v.Elem())
		}
	case reflect.Slice:
		elem := v.Type().Elem()
		n = v.Len() * int(elem.Size())
		if elem.Kind() > reflect.Complex128 { // it may refer to more
			for i := range v.Len() {
				n += sizeOf(v.Index(i))
			}
		}
	}
	return n
}

// Put has inputs dispatched in this order, after those that were put before. All of them
// fit, or the error is [ErrFull] and none counts; more than MaxInputs never fit, so put them
// in parts. It never waits, and any goroutine may call it, Effects included. It retains what
// the inputs refer to, which must not change. Config's Refused gets an input that the Manager
// refuses, and Effects the answers to inputs with a Tag. A Tag from 2^63 on is
// joblife.ErrInvalid: those are the Loop's.
func (l *Loop) Put(inputs ...joblife.Input) error {
	list := make([]request, 0, 8) // on the stack
	for _, in := range inputs {
		list = append(list, request{in: in})
	}
	return l.admit(1, list...)
}

// Call has an input dispatched, and returns the answer when it is durable and Effects has
// seen its Ready. It sets the Tag itself; to an input that has none the answer is the zero
// Answer. The error is why the Manager refuses the input, that of the answer, ErrFull,
// ErrEnded, or that of ctx. When ctx ends, an input that was not dispatched does not count
// any more, and a Wait ends; another input may count.
func (l *Loop) Call(ctx context.Context, in joblife.Input) (joblife.Answer, error) {
	c := &call{gone: ctx.Done(), done: make(chan struct{})}
	if err := l.admit(2, request{in: in, call: c}); err != nil {
		return joblife.Answer{}, err
	}
	return l.await(ctx, c)
}

// View calls f with the Manager, after the inputs that were put before. f must not change the
// Manager nor keep it, and inputs wait while it runs. To act on what f sees, use [Loop.Do] with
// [Loop.Step]. View returns when all that f saw is durable. After an error tell nobody what f saw,
// if it was called at all: ErrFull, ErrEnded, or that of ctx.
func (l *Loop) View(ctx context.Context, f func(m *joblife.Manager)) error {
	c := &call{gone: ctx.Done(), done: make(chan struct{}), view: make(chan struct{}), back: make(chan struct{})}
	if err := l.admit(2, request{call: c}); err != nil {
		return err
	}
	if err := l.until(ctx, c.view); err != nil {
		return err
	}
	func() {
		defer close(c.back) // even if f panics
		f(l.m)
	}()
	_, err := l.await(ctx, c)
	return err
}

// Do has f called after the inputs that were put before, with the Manager to itself, so that f may
// choose inputs and [Loop.Step] them, change the inventory of the Scheduler, or use the Executor.
// Inputs wait until f returns. When what f saw and did is durable, the function that f returns
// is called, and then Effects; if nothing had to be stored it gets a Ready with Seq 0, unless f
// returned nil and there is no Scheduler. Do never waits, and any goroutine may call it, Effects
// and f included. The error is ErrFull or ErrEnded. The end of the Loop loses functions that wait.
func (l *Loop) Do(f func(m *joblife.Manager) (durable func())) error {
	return l.admit(1, request{do: f})
}

// Step dispatches an input at once, and returns why the Manager refuses it. Only Effects and
// functions of Do and Hear may call it. An answer to a Tag is in a Ready to come, as for Put.
func (l *Loop) Step(in joblife.Input) error {
	size, err := l.measure(in)
	if err != nil {
		return err
	}
	l.steps++
	l.size += size
	return l.step(in)
}

// admit puts requests into the inbox, of which they may use a part.
func (l *Loop) admit(part int, list ...request) (err error) {
	size := 0
	for i, r := range list {
		if list[i].size, err = l.measure(r.in); err != nil {
			return err
		}
		size += list[i].size
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch waiting := len(l.inbox) - l.head; {
	case l.over:
		return l.endError()
	case waiting+len(list) > (l.cfg.MaxInputs-1)/part+1:
		return fmt.Errorf("%w: inputs that wait: %d, and %d more come; MaxInputs is %d", ErrFull, waiting, len(list), l.cfg.MaxInputs)
	case size > 0 && l.bytes > 0 && l.bytes+size > maxBytes/part:
		return fmt.Errorf("%w: inputs with %d bytes wait", ErrFull, l.bytes)
	}
	for i, r := range list {
		if r.call == nil {
			continue
		}
		l.lastTag++
		if in, ok := setTag(r.in, ownTags|l.lastTag); ok {
			list[i].in, r.call.tag = in, ownTags|l.lastTag
		}
	}
	l.inbox = append(l.inbox, list...)
	l.bytes += size
	l.signal()
	return nil
}

func (l *Loop) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // it will look
	}
}

func (l *Loop) await(ctx context.Context, c *call) (joblife.Answer, error) {
	err := l.until(ctx, c.done)
	if err == nil {
		return c.answer, c.err
	}
	if c.tag != 0 && ctx.Err() != nil { // nobody waits for it any more
		l.mu.Lock()
		defer l.mu.Unlock()
		l.left = append(l.left, c)
		l.signal()
	}
	return joblife.Answer{}, err
}

// endError returns ErrEnded with its cause.
func (l *Loop) endError() error {
	if l.cause == nil {
		return ErrEnded
	}
	return fmt.Errorf("%w: %w", ErrEnded, l.cause)
}
