package jobspec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/internal/jsonobj"
)

// What a jobspec may hold.
const (
	maxBytes    = 16 << 20
	maxVertices = 1024
	maxTasks    = 1024
	maxNesting  = 32  // levels of vertices
	maxWord     = 256 // bytes of a type or a label
)

// Spec is a jobspec. It is immutable. The zero Spec is not valid.
type Spec struct {
	raw      []byte // the text
	original *Spec  // the one without updates, nil if this is it

	vertices []Vertex
	tasks    []task

	duration     time.Duration
	name         string
	cwd          string
	queue        string
	bank         string
	project      string
	constraints  []byte // nil: none
	dependencies []byte // nil: none
	perResource  perResource
	named        bool // there is a name
}

// Parse reads a jobspec of version 1 in JSON. It copies what it keeps of b. The
// error names the path of the value at fault and its offset in bytes from 0.
func Parse(b []byte) (*Spec, error) {
	if fault := tooLong(b); fault != nil {
		return nil, refuse(fault)
	}
	s := newSpec(bytes.Clone(b))
	if fault := s.read(); fault != nil {
		return nil, refuse(fault)
	}
	return s, nil
}

// newSpec returns a Spec to be read, with room for RFC 25 and one task in one piece of memory.
func newSpec(raw []byte) *Spec {
	room := new(struct {
		Spec
		vertices [4]Vertex
		tasks    [1]task
	})
	room.raw, room.Spec.vertices, room.Spec.tasks = raw, room.vertices[:0], room.tasks[:0]
	return &room.Spec
}

// tooLong returns a fault if b has too many bytes.
func tooLong(b []byte) *jsonobj.Fault {
	if len(b) > maxBytes {
		return &jsonobj.Fault{Offset: maxBytes, Err: errBytes}
	}
	return nil
}

// read checks the text of s and sets the other fields from it.
func (s *Spec) read() *jsonobj.Fault {
	d := jsonobj.NewDoc(s.raw)
	var version, resources, tasks, attributes jsonobj.Value
	o := d.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "version":
			version = o.Value()
		case "resources":
			resources = o.Value()
		case "tasks":
			tasks = o.Value()
		case "attributes":
			attributes = o.Value()
		}
	}
	// The version decides how to read the rest.
	if o.Require("version"); version.Int(math.MinInt64, math.MaxInt64) != 1 {
		version.Fail(errNotRead)
	}
	if o.Require("resources"); !d.Failed() {
		s.readResources(resources)
	}
	if o.Require("tasks"); !d.Failed() {
		s.readTasks(tasks)
	}
	if o.Require("attributes"); !d.Failed() {
		s.readAttributes(attributes)
	}
	return d.Fault()
}

func (s *Spec) readAttributes(v jsonobj.Value) {
	var system jsonobj.Value
	o := v.Object()
	for o.Next() {
		switch m := o.Value(); string(o.Key()) {
		case "user":
			m.IsObject()
		case "system":
			system = m
		default:
			m.Fail(errUnknown)
		}
	}
	if o.Require("system"); !v.Failed() {
		s.readSystem(system)
	}
}

// readSystem reads attributes.system. Keys that the RFCs do not name are free for all.
func (s *Spec) readSystem(v jsonobj.Value) {
	o := v.Object()
	for o.Next() {
		switch m := o.Value(); string(o.Key()) {
		case "duration":
			s.duration = guard.Duration(m.Float(0, math.MaxFloat64))
		case "preemptible-after":
			m.Float(0, math.MaxFloat64)
		case "cwd":
			s.cwd = m.Text()
		case "queue":
			s.queue = m.Text()
		case "bank":
			s.bank = m.Text()
		case "project":
			s.project = m.Text()
		case "environment", "files":
			m.IsObject()
		case "constraints":
			s.constraints = m.Raw()
			m.IsObject()
		case "dependencies":
			s.dependencies = m.Raw()
			a := m.Array()
			for a.Next() {
				readDependency(a.Value())
			}
		case "job":
			m.IsObject()
			if name := m.Member("name"); !name.Absent() {
				s.name, s.named = name.Text(), true
			}
		case "shell":
			s.perResource = readPerResource(m)
		}
	}
	o.Require("duration")
}

// Text returns the text, updates applied: as Parse read it, or the canonical form. It is nil for
// the zero Spec. It takes constant time, and the caller must not change the text.
func (s *Spec) Text() json.RawMessage { return s.raw }

// GoString returns the text, for %#v, with which tests print what failed.
func (s *Spec) GoString() string { return string(s.raw) }

// Original returns the Spec before the updates that led to this one, or the Spec itself.
func (s *Spec) Original() *Spec {
	return cmp.Or(s.original, s)
}

// Duration returns the time limit, 0 for none: a site's default is for you to put into the
// jobspec. It is rounded to a nanosecond, and at most the longest time.Duration.
func (s *Spec) Duration() time.Duration { return s.duration }

// Name returns what a listing shows: attributes.system.job.name, or the first command's file name.
func (s *Spec) Name() string {
	if s.named {
		return s.name
	}
	d := jsonobj.NewDoc(s.tasks[0].command)
	a := d.Array()
	a.Next()
	path := a.Text()
	if i := strings.LastIndexByte(path, '/') + 1; i < len(path) {
		return path[i:]
	}
	return path
}

// Cwd returns the working directory, empty if there is none.
func (s *Spec) Cwd() string { return s.cwd }

// Queue returns the name of the queue, empty if there is none.
func (s *Spec) Queue() string { return s.queue }

// Bank returns the name of the accounting bank, empty if there is none.
func (s *Spec) Bank() string { return s.bank }

// Project returns the name of the accounting project, empty if there is none.
func (s *Spec) Project() string { return s.project }

// Constraints returns a copy of the constraints (RFC 31), a JSON object, or nil.
func (s *Spec) Constraints() json.RawMessage { return bytes.Clone(s.constraints) }

// Lookup returns a copy of the value at a dotted path from the root, such as
// "attributes.system.shell.options.verbose", and whether there is one. Paths lead
// through objects only. Each element of the path takes one pass over the jobspec.
func (s *Spec) Lookup(path string) (json.RawMessage, bool) {
	d := jsonobj.NewDoc(s.raw)
	v := d.Root()
	for key := range strings.SplitSeq(path, ".") {
		if v = v.Member(key); v.Absent() {
			return nil, false
		}
	}
	return bytes.Clone(v.Raw()), true
}

// Dependency is what must happen before the job may run (RFC 26).
type Dependency struct {
	// Scheme says what Value means.
	Scheme, Value string
	// JSON is the whole object, with the keys that the scheme adds. The caller owns it.
	JSON json.RawMessage
}

// Dependencies yields the dependencies of the job, in the order of the jobspec.
func (s *Spec) Dependencies() iter.Seq[Dependency] {
	return func(yield func(Dependency) bool) {
		if s.dependencies == nil {
			return
		}
		doc := jsonobj.NewDoc(s.dependencies)
		a := doc.Array()
		for a.Next() {
			d := readDependency(a.Value()) // which Parse has read before
			d.JSON = bytes.Clone(a.Value().Raw())
			if !yield(d) {
				return
			}
		}
	}
}

func readDependency(v jsonobj.Value) (d Dependency) {
	o := v.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "scheme":
			d.Scheme = o.Text()
		case "value":
			d.Value = o.Text()
		}
	}
	o.Require("scheme", "value")
	return d
}
