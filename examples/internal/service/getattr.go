package service

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
)

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
		return nil, fail(errno.Invalid, "unknown job")
	case !r.mayAct(v.UserID()):
		return nil, fail(errno.Perm, "guests can only access their own jobs")
	}
	job, err := c.attributes(v)
	if err != nil {
		return nil, err
	}
	answer := make(map[string]any)
	var failed error
	size := 0
	if strict.Elements(p.Attrs, func(attr json.RawMessage) error {
		var name string
		if json.Unmarshal(attr, &name) != nil || string(attr) == "null" {
			failed = fail(errno.Protocol, "attribute list contains non-string")
		} else if answer[name] == nil {
			answer[name], failed = job.get(name)
			switch text := answer[name].(type) {
			case json.RawMessage:
				size += len(text)
			case []json.RawMessage:
				size += len(job.log) + 24*len(text)
			}
		}
		return failed
	}) != nil {
		return nil, cmp.Or(failed, errProtocol)
	}
	return answer, c.hold(&c.answers, size)
}

// attributes are what getattr knows of a job. What is not known is nil.
type attributes struct {
	spec *jobspec.Spec
	r    *rset.R
	log  []byte
}

func (a *attributes) get(name string) (any, error) {
	switch {
	case name == "jobspec" && a.spec != nil:
		text, err := a.spec.MarshalJSON()
		return redactSpec(text), err
	case name == "R" && a.r != nil:
		return a.r, nil
	case name == "jobspec" || name == "R":
		return nil, fail(errno.NoEntry, "%s is NULL", name)
	case name == "eventlog":
		return events(a.log), nil
	}
	return nil, fail(errno.NoEntry, "unknown attr %.64s", name)
}

// attributes returns those of an active job from memory, and those of an inactive one
// from the store.
func (c *core) attributes(v joblife.View) (a attributes, err error) {
	if v.State() != jobstate.StateInactive {
		return attributes{v.Jobspec(), v.R(), v.Eventlog()}, nil
	}
	if c.cfg.Lookup == nil {
		return a, nil
	}
	found, err := c.cfg.Lookup(v.ID())
	if err != nil {
		return a, err
	}
	a.log = found.Eventlog
	job, err := jobstate.Replay(v.ID(), a.log)
	if err != nil {
		return a, err
	}
	if found.Jobspec != nil {
		if a.spec, err = jobspec.Parse(found.Jobspec); err != nil {
			return a, err
		}
		if a.spec, err = a.spec.UpdateAll(job.Updates()); err != nil {
			return a, err
		}
	}
	if found.R == nil {
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
