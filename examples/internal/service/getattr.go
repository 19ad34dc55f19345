package service

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
)

var errUnknown = fail(errno.Invalid, "unknown job")

// getattr returns what the service knows of a job: R and jobspec with their updates, the
// jobspec without the environment, and the eventlog as a list of events.
func (c *core) getattr(r *Request, p struct {
	ID    jobid.ID        `json:"id"`
	Attrs json.RawMessage `json:"attrs"`
}) (any, error) {
	v, ok := c.m.Job(p.ID)
	switch {
	case !ok && !c.knows(r), ok && c.cfg.Manager.Private && !r.mayAct(v.UserID()):
		return nil, errHidden
	case !ok:
		return nil, errUnknown
	case !r.mayAct(v.UserID()):
		return nil, fail(errno.Perm, "guests can only access their own jobs")
	}
	names, err := attrNames(p.Attrs)
	if err != nil {
		return nil, err
	}
	if _, ends := c.ending[p.ID]; !ends {
		return c.answerAttrs(r, v, names)
	}
	id := p.ID
	c.then = append(c.then, func() {
		c.later(func() {
			payload, err := any(nil), errUnknown
			if v, ok := c.m.Job(id); ok { // or it was purged at once
				payload, err = c.answerAttrs(r, v, names)
			}
			if err != nil {
				c.quick.fail(r, err)
			} else {
				c.open.answer(r, payload)
			}
		})
	})
	return nil, errLater
}

// answerAttrs returns the attributes of a job by their names. It holds their length.
func (c *core) answerAttrs(r *Request, v joblife.View, names []string) (any, error) {
	job, err := c.attributes(r, v, names)
	if err != nil {
		return nil, err
	}
	answer := make(map[string]any)
	size := 0
	for _, name := range names {
		if answer[name], err = job.get(name); err != nil {
			return nil, err
		}
		switch text := answer[name].(type) {
		case json.RawMessage:
			size += len(text)
		case []json.RawMessage:
			size += 24 * len(text) // beside the log
		}
	}
	return answer, c.hold(r, &c.answers, size)
}

// attrNames returns the names in a list of attributes, each once.
func attrNames(text json.RawMessage) (names []string, err error) {
	var failed error
	if strict.Elements(text, func(attr json.RawMessage) error {
		var name string
		switch {
		case json.Unmarshal(attr, &name) != nil || string(attr) == "null":
			failed = fail(errno.Protocol, "attribute list contains non-string")
		case name != attrEventlog && name != attrJobspec && name != attrR:
			failed = fail(errno.NoEntry, "unknown attr %.64s", name)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
		return failed
	}) != nil {
		return nil, cmp.Or(failed, errProtocol)
	}
	return names, nil
}

// attributes are what getattr knows of a job. What is not known is nil.
type attributes struct {
	spec *jobspec.Spec
	r    *rset.R
	log  []byte
}

// The names of attributes.
const (
	attrEventlog = "eventlog"
	attrJobspec  = "jobspec"
	attrR        = "R"
)

func (a *attributes) get(name string) (any, error) {
	switch {
	case name == attrEventlog:
		return events(a.log), nil
	case name == attrJobspec && a.spec != nil:
		text, err := a.spec.MarshalJSON()
		return redactSpec(text), err
	case name == attrR && a.r != nil:
		return json.RawMessage(a.r.AppendJSON(nil)), nil // as text, so that its length counts
	}
	return nil, fail(errno.NoEntry, "%s is NULL", name)
}

// attributes returns those of an active job from memory, and those of an inactive one
// from the store, as far as they are asked for. It holds the length of a log that it reads.
func (c *core) attributes(by *Request, v joblife.View, names []string) (a attributes, err error) {
	if v.State() != jobstate.StateInactive {
		a = attributes{v.Jobspec(), v.R(), nil}
		if slices.Contains(names, attrEventlog) {
			a.log = v.Eventlog()
		}
		return a, c.hold(by, &c.answers, len(a.log))
	}
	if c.cfg.Lookup == nil || len(names) == 0 {
		return a, nil
	}
	found, err := c.cfg.Lookup(v.ID())
	if err != nil {
		return a, err
	}
	if len(found.Eventlog) == 0 { // it is being purged
		return a, errUnknown
	}
	a.log = found.Eventlog
	if err := c.hold(by, &c.answers, len(a.log)); err != nil || len(names) == 1 && names[0] == attrEventlog {
		return a, err
	}
	job, err := jobstate.Replay(v.ID(), a.log)
	if err != nil {
		return a, err
	}
	if found.Jobspec != nil && slices.Contains(names, attrJobspec) {
		if a.spec, err = jobspec.Parse(found.Jobspec); err != nil {
			return a, err
		}
		if a.spec, err = a.spec.UpdateAll(job.Updates()); err != nil {
			return a, err
		}
	}
	if found.R == nil || !slices.Contains(names, attrR) {
		return a, nil
	}
	r, err := rset.Parse(found.R)
	if err != nil {
		return a, err
	}
	a.r = r.WithoutLocal()
	if at, ok := job.Expiration(); ok {
		a.r, err = a.r.WithTimes(a.r.Start(), at)
	}
	return a, err
}

// events returns the entries of a log that was read before.
func events(log []byte) []json.RawMessage {
	list := []json.RawMessage{}
	for line := range bytes.Lines(log) {
		list = append(list, bytes.TrimSuffix(line, []byte("\n")))
	}
	return list
}
