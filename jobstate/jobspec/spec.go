package jobspec

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/joblife/joblife/internal/jsonscan"
)

// Limits bounds what a jobspec may hold. A field of zero means the default.
type Limits struct {
	Bytes    int // of the text, 16 MiB by default
	Depth    int // levels of JSON values, 2048 by default, which is the most
	Vertices int // resource vertices, 1024 by default
	Tasks    int // task descriptors, 1024 by default
}

// withDefaults returns the limits in force.
func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field    *int
		fallback int
	}{
		{&l.Bytes, 16 << 20},
		{&l.Depth, jsonscan.DefaultDepth},
		{&l.Vertices, 1024},
		{&l.Tasks, 1024},
	} {
		if *f.field <= 0 {
			*f.field = f.fallback
		}
	}
	l.Depth = min(l.Depth, jsonscan.DefaultDepth)
	return l
}

// Spec is a jobspec. It is immutable: an update returns another Spec. The zero
// Spec is not valid; Parse makes one.
type Spec struct {
	raw      []byte // the text
	original *Spec  // the one without updates, nil if this is it
	limits   Limits

	vertices []Vertex
	tasks    []task

	duration         float64
	preemptibleAfter float64
	preemptible      bool
	name             string
	cwd              string
	queue            string
	bank             string
	project          string
	constraints      value
	dependencies     value
	perResource      perResource
}

// Parse reads a jobspec of version 1 in JSON, with the default limits. It
// copies what it keeps of b. The error is an *[Error] that says which key is
// wrong; an empty b is one too.
func Parse(b []byte) (*Spec, error) { return ParseLimits(b, Limits{}) }

// ParseLimits is Parse with limits. They hold for updates too.
func ParseLimits(b []byte, l Limits) (*Spec, error) {
	s := &Spec{limits: l.withDefaults()}
	if err := s.limits.size(b); err != nil {
		return nil, err
	}
	s.raw = append([]byte(nil), b...)
	if err := s.read(); err != nil {
		return nil, err
	}
	return s, nil
}

// size returns an error if b has too many bytes.
func (l *Limits) size(b []byte) *Error {
	if len(b) > l.Bytes {
		return fail(l.Bytes, "", ErrLimit, errBytes)
	}
	return nil
}

// check returns an error unless b is JSON within the limits.
func (l *Limits) check(b []byte) *Error {
	if err := l.size(b); err != nil {
		return err
	}
	if err := jsonscan.Check(b, jsonscan.Limits{Depth: l.Depth}); err != nil {
		return syntax(err, 0)
	}
	return nil
}

// topKeys are the values of the keys that every jobspec has.
type topKeys struct{ version, resources, tasks, attributes value }

// read checks the text of s and sets the other fields from it.
func (s *Spec) read() *Error {
	if jsonscan.KindOf(s.raw) != jsonscan.KindObject {
		if err := s.limits.check(s.raw); err != nil {
			return err
		}
		return value{s.raw, 0}.object()
	}
	var top topKeys
	// This walk is what checks that the whole text is JSON: nothing is read of
	// it before the end.
	c := jsonscan.Limits{Depth: s.limits.Depth}.Object(s.raw)
	for c.Next() {
		m := value{c.Raw(), c.Offset()}
		switch string(c.Key()) {
		case "version":
			top.version = m
		case "resources":
			top.resources = m
		case "tasks":
			top.tasks = m
		case "attributes":
			top.attributes = m
		}
	}
	if err := c.Err(); err != nil {
		return syntax(err, 0)
	}
	for _, k := range [...]struct {
		name string
		v    value
	}{{"version", top.version}, {"resources", top.resources}, {"tasks", top.tasks}, {"attributes", top.attributes}} {
		if k.v.absent() {
			return fail(0, k.name, ErrInvalid, errMissing)
		}
		if err := s.readTop(k.name, k.v); err != nil {
			return err.in(k.name)
		}
	}
	return nil
}

// readTop reads the value of a key of the top level. Those before it in RFC 14
// were read.
func (s *Spec) readTop(key string, v value) *Error {
	switch key {
	case "version":
		return readVersion(v)
	case "resources":
		return s.readResources(v)
	case "tasks":
		return s.readTasks(v)
	}
	return s.readAttributes(v)
}

// readVersion returns an error unless v is 1.
func readVersion(v value) *Error {
	n, ok := jsonscan.Int64(v.raw)
	switch {
	case !ok:
		return fail(v.offset, "", ErrInvalid, errInteger)
	case n != 1:
		return fail(v.offset, "", ErrVersion, errNotRead)
	}
	return nil
}

// readAttributes reads the value of the key attributes.
func (s *Spec) readAttributes(v value) *Error {
	var system value
	err := v.members(func(key []byte, m value) *Error {
		switch string(key) {
		case "user":
			return m.object()
		case "system":
			system = m
			return nil
		}
		return fail(m.offset, "", ErrInvalid, errUnknown)
	})
	if err != nil {
		return err
	}
	if system.absent() {
		return fail(v.offset, "system", ErrInvalid, errMissing)
	}
	if err := s.readSystem(system); err != nil {
		return err.in("system")
	}
	return nil
}

// readSystem reads the value of the key attributes.system. What the RFCs do
// not name is anyone's to use.
func (s *Spec) readSystem(v value) *Error {
	hasDuration, hasName := false, false
	err := v.members(func(key []byte, m value) (err *Error) {
		switch string(key) {
		case "duration":
			hasDuration = true
			s.duration, err = m.seconds()
		case "preemptible-after":
			s.preemptible = true
			s.preemptibleAfter, err = m.seconds()
		case "cwd":
			s.cwd, err = m.text()
		case "queue":
			s.queue, err = m.text()
		case "bank":
			s.bank, err = m.text()
		case "project":
			s.project, err = m.text()
		case "environment", "files":
			err = m.object()
		case "constraints":
			s.constraints = m
			err = m.object()
		case "dependencies":
			s.dependencies = m
			err = m.elements(func(_ int, e value) *Error {
				_, err := readDependency(e)
				return err
			})
		case "job":
			if err = m.object(); err != nil {
				return err
			}
			if name := m.member("name"); !name.absent() {
				hasName = true
				if s.name, err = name.text(); err != nil {
					return err.in("name")
				}
			}
		case "shell":
			s.perResource = readPerResource(m)
		}
		return err
	})
	if err == nil && !hasDuration {
		err = fail(v.offset, "duration", ErrInvalid, errMissing)
	}
	if !hasName {
		s.name = basename(s.tasks[0].arg0)
	}
	return err
}

// basename returns what follows the last slash of a path, the path itself if
// that is nothing.
func basename(path string) string {
	if i := strings.LastIndexByte(path, '/'); i+1 < len(path) {
		return path[i+1:]
	}
	return path
}

// Original returns the Spec without the updates that led to this one, which is
// the Spec itself if there were none.
func (s *Spec) Original() *Spec {
	if s.original == nil {
		return s
	}
	return s.original
}

// Duration returns the time limit in seconds; 0 is none.
func (s *Spec) Duration() float64 { return s.duration }

// PreemptibleAfter returns after how many seconds of running the job may be
// canceled to make way for others, and false if it never may.
func (s *Spec) PreemptibleAfter() (seconds float64, ok bool) {
	return s.preemptibleAfter, s.preemptible
}

// Name returns the name that a listing shows: attributes.system.job.name, or
// else the last element of the path of the first task's command.
func (s *Spec) Name() string { return s.name }

// Cwd returns the working directory, empty if there is none.
func (s *Spec) Cwd() string { return s.cwd }

// Queue returns the name of the queue, empty if there is none.
func (s *Spec) Queue() string { return s.queue }

// Bank returns the name of the accounting bank, empty if there is none.
func (s *Spec) Bank() string { return s.bank }

// Project returns the name of the accounting project, empty if there is none.
func (s *Spec) Project() string { return s.project }

// Constraints returns a copy of the job's constraints (RFC 31), a JSON object;
// nil if there are none.
func (s *Spec) Constraints() json.RawMessage { return s.constraints.clone() }

// Lookup returns a copy of the value at a dotted path from the root, such as
// "attributes.system.shell.options.verbose", and whether there is one. Paths
// lead through objects alone. It costs the size of the jobspec for each element
// of the path that is there.
func (s *Spec) Lookup(path string) (json.RawMessage, bool) {
	v := value{s.raw, 0}
	for key := range strings.SplitSeq(path, ".") {
		if v = v.member(key); v.absent() {
			return nil, false
		}
	}
	return v.clone(), true
}

// clone returns a copy of the value's bytes, nil if it is absent.
func (v value) clone() json.RawMessage {
	if v.absent() {
		return nil
	}
	return append(json.RawMessage{}, v.raw...)
}

// Dependency is what must come about before the job may run (RFC 26).
type Dependency struct {
	// Scheme says how Value is to be understood.
	Scheme, Value string
	// JSON is the whole object, with the keys that the scheme adds. It is the
	// caller's to keep.
	JSON json.RawMessage
}

// Dependencies yields what the job depends on, in the order of the jobspec.
func (s *Spec) Dependencies() iter.Seq[Dependency] {
	return func(yield func(Dependency) bool) {
		if s.dependencies.absent() {
			return
		}
		c := jsonscan.Array(s.dependencies.raw)
		for c.Next() {
			// Parse has read it before.
			d, _ := readDependency(value{c.Raw(), 0})
			d.JSON = value{c.Raw(), 0}.clone()
			if !yield(d) {
				return
			}
		}
	}
}

// readDependency reads an element of attributes.system.dependencies.
func readDependency(v value) (Dependency, *Error) {
	var d Dependency
	if err := v.object(); err != nil {
		return d, err
	}
	for _, k := range [...]struct {
		name string
		to   *string
	}{{"scheme", &d.Scheme}, {"value", &d.Value}} {
		m := v.member(k.name)
		if m.absent() {
			return d, fail(v.offset, k.name, ErrInvalid, errMissing)
		}
		var err *Error
		if *k.to, err = m.text(); err != nil {
			return d, err.in(k.name)
		}
	}
	return d, nil
}
