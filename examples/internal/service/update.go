package service

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset/alloc"
)

// The values of a jobspec that an update may change.
const (
	pathDuration    = "attributes.system.duration"
	pathQueue       = "attributes.system.queue"
	pathConstraints = "attributes.system.constraints"
)

// The limits of updates that wait for others, of guests, and as many of the owner. They are lower
// than what these may be behind with reading, so that no user can get the scheduler cut off.
const (
	maxUpdates = 1 << 12
	maxOfUser  = 1 << 6
	maxChecked = 8 << 20 // bytes of jobspecs
	maxNumber  = 64      // bytes of a duration
)

// flagImmutable is the flag of a job that only the owner may update.
const flagImmutable = "immutable"

// An update is a request to change the jobspec of a job.
type update struct {
	r       *Request
	id      jobid.ID
	updates []jobstate.Update                     // as asked
	size    int                                   // bytes that were sent to others
	agreed  jobstate.Optional[eventlog.Timestamp] // the expiration that the scheduler has

	// checkUpdate sets these.
	all        []jobstate.Update // with what follows from those asked
	spec       *jobspec.Spec     // after all
	above      bool              // the owner is above the limits
	feasible   bool              // others must say whether the job can run
	running    bool
	expiration jobstate.Optional[eventlog.Timestamp] // of a running job
}

// update changes the duration or the queue of a job. First it asks others whether the job can
// still run, and the scheduler whether it lets the job run for longer.
func (s *Service) update(r *Request, p struct {
	ID      jobid.ID        `json:"id"`
	Updates json.RawMessage `json:"updates"`
}) (any, error) {
	u := &update{r: r, id: p.ID, updates: readUpdates(p.Updates)}
	if u.updates == nil {
		return nil, fail(errno.Invalid, "one or more jobspec updates are invalid")
	}
	if err := s.checkUpdate(u); err != nil || len(u.all) == 0 {
		return nil, err
	}
	switch {
	case u.feasible:
		text, err := u.spec.MarshalJSON()
		if err != nil {
			return nil, err
		}
		text = redactSpec(text)
		u.size = len(text)
		return nil, s.askFirst(u, "feasibility.check", map[string]any{"jobspec": json.RawMessage(text)}, func(a Response) error {
			if a.Errnum != 0 {
				return fail(a.Errnum, "%s", a.Errstr)
			}
			return nil
		})
	case u.expiration.Set:
		return nil, s.askFirst(u, "sched.expiration", map[string]any{"id": u.id, "expiration": u.expiration.Value}, func(a Response) error {
			if a.Errnum == 0 || a.Errnum == errno.TimedOut { // it may take that up late
				u.agreed = u.expiration
			}
			if a.Errnum != 0 && a.Errnum != errno.NoSys {
				return fail(a.Errnum, "scheduler refused expiration update")
			}
			return nil
		})
	}
	return nil, s.applyUpdate(u)
}

// askFirst sends a Call, and updates the job if the response allows it. The error is errLater
// if it sent one.
func (s *Service) askFirst(u *update, topic string, payload any, allows func(Response) error) error {
	n, ofUser, size := 0, 0, u.size
	for _, o := range s.updates {
		if o.r.owner() != u.r.owner() {
			continue
		}
		n, size = n+1, size+o.size
		if o.r.UserID == u.r.UserID {
			ofUser++
		}
	}
	if n >= maxUpdates || ofUser >= maxOfUser || size > maxChecked {
		return fail(errno.Again, "too many updates are being checked")
	}
	s.updates = append(s.updates, u)
	c := Call{Topic: topic, To: s.sched.sender, Session: s.sched.mark(), Nodeid: 0, Payload: payload}
	s.send(&s.quick, c, func(a Response) error {
		i := slices.Index(s.updates, u)
		if i < 0 {
			return nil // Stop has answered
		}
		s.updates = slices.Delete(s.updates, i, i+1)
		err := allows(a)
		if err == nil {
			err = s.checkUpdate(u) // the job went on meanwhile
		}
		if err == nil {
			err = s.applyUpdate(u)
		}
		s.recall(u)
		if err != nil {
			s.quick.fail(u.r, err)
		} else {
			s.open.answer(u.r, nil)
		}
		return nil
	})
	return errLater
}

// recall tells the scheduler the expiration of a job that has another than it agreed to: the update
// was refused, or the job has ended.
func (s *Service) recall(u *update) {
	v, ok := s.m.Job(u.id)
	if !ok || !u.agreed.Set || !v.State().In(jobstate.StateRunning) {
		return
	}
	if r := v.R(); r != nil && r.Expiration() != u.agreed.Value {
		s.sched.expire(alloc.Expiration{ID: u.id, Expiration: r.Expiration()})
	}
}

// readUpdates returns the updates of a request in their order, and nil if one of them is
// malformed.
func readUpdates(text json.RawMessage) []jobstate.Update {
	list := []jobstate.Update{}
	err := strict.Members(text, func(path string, value json.RawMessage) error {
		if root, _, _ := strings.Cut(path, "."); root != "attributes" && root != "resources" && root != "tasks" {
			return errProtocol
		}
		list = append(list, jobstate.Update{Path: path, Value: bytes.Clone(value)})
		return nil
	})
	if err != nil {
		return nil
	}
	return list
}

// checkUpdate returns an error if an update is not allowed. It may be called again.
func (s *Service) checkUpdate(u *update) error {
	v, ok := s.m.Job(u.id)
	if !ok || !s.knows(u.r) && !u.r.mayAct(v.UserID()) {
		return fail(errno.NoEntry, "unknown job id")
	}
	guest := !u.r.owner()
	switch {
	case v.State() == jobstate.StateInactive:
		return fail(errno.Invalid, "job is inactive")
	case !u.r.mayAct(v.UserID()):
		return fail(errno.Perm, "guests may only update their own jobs")
	case guest && v.Job().HasFlag(flagImmutable):
		return fail(errno.Perm, "job is immutable due to previous instance owner update")
	}
	u.running = v.State().In(jobstate.StateRunning)
	equal := guest || s.plugins.equal
	u.all, u.above, u.feasible, u.expiration = nil, !equal, false, jobstate.Optional[eventlog.Timestamp]{}
	var duration jobstate.Optional[float64]
	var constraints json.RawMessage
	for _, c := range u.updates {
		var err error
		switch {
		case c.Path == pathDuration && s.plugins.serves(durationPlugin):
			duration, err = toDuration(c.Value, u.running && equal)
		case c.Path == pathQueue && s.plugins.serves(queuePlugin):
			constraints, err = s.toQueue(u, v, c.Value)
			u.above, u.feasible = false, true
		default:
			err = fail(errno.Invalid, "update of %s not supported", c.Path)
		}
		if err != nil {
			return err
		}
		u.all = append(u.all, c)
	}
	if constraints != nil {
		u.all = append(u.all, jobstate.Update{Path: pathConstraints, Value: constraints})
	}
	u.spec = v.Jobspec()
	for _, c := range u.all {
		var err error
		if u.spec, err = u.spec.Update(c.Path, c.Value); err != nil {
			return err
		}
	}
	if !u.above {
		if err := s.limits.check(u.spec); err != nil {
			return err
		}
	}
	if !u.running || !duration.Set {
		return nil
	}
	if duration.Value == 0 {
		u.expiration = jobstate.Some[eventlog.Timestamp](0)
		return nil
	}
	begin := v.R().Start()
	if begin <= 0 {
		return fail(errno.Invalid, "unable to get job starttime")
	}
	u.expiration = jobstate.Some(begin + eventlog.Timestamp(duration.Value))
	if u.expiration.Value <= eventlog.FromTime(s.now()) {
		return fail(errno.Invalid, "requested duration places job expiration in the past")
	}
	return nil
}

func toDuration(value json.RawMessage, denied bool) (d jobstate.Optional[float64], err error) {
	var seconds *float64
	switch {
	case len(value) > maxNumber, json.Unmarshal(value, &seconds) != nil, seconds == nil:
		return d, fail(errno.Invalid, "plugin args unpack failed")
	case *seconds < 0:
		return d, fail(errno.Invalid, "duration must not be negative")
	case denied:
		return d, fail(errno.Invalid, "duration update of running job requires instance owner privileges")
	}
	return jobstate.Some(*seconds), nil
}

// toQueue checks a new queue, and returns the constraints that come with it.
func (s *Service) toQueue(u *update, v joblife.View, value json.RawMessage) (json.RawMessage, error) {
	var name *string
	if json.Unmarshal(value, &name) != nil || name == nil {
		return nil, fail(errno.Invalid, "plugin args unpack failed")
	}
	old := v.Jobspec().Queue()
	switch {
	case u.running:
		return nil, fail(errno.Invalid, "update of queue for running job not supported")
	case *name == old && old != "":
		return nil, fail(errno.Invalid, "job queue is already set to %s", *name)
	}
	q, err := s.queueOf(name)
	if err != nil {
		return nil, err
	}
	if !q.Enabled {
		return nil, fail(errno.Invalid, "queue %s is currently disabled", *name)
	}
	if _, err := s.queueState(old); err != nil {
		return nil, err
	}
	// The constraints of the old queue are replaced. Any others would be lost.
	if !equalConstraints(v.Jobspec().Constraints(), s.cfg.Queues[old].constraints()) {
		return nil, fail(errno.Invalid, "job appears to have non-queue constraints, unable to update queue to %s", old) // as flux-core has it
	}
	return s.cfg.Queues[*name].constraints(), nil
}

// constraints returns the constraints of jobs in the queue (RFC 31).
func (q Queue) constraints() json.RawMessage {
	if q.Requires == nil {
		return json.RawMessage("{}")
	}
	text, _ := json.Marshal(map[string][]string{"properties": q.Requires}) // of words
	return text
}

// equalConstraints reports whether two objects say the same; none is {}.
func equalConstraints(a, b json.RawMessage) bool {
	var x, y map[string]any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return len(x)+len(y) == 0 || reflect.DeepEqual(x, y)
}

func (s *Service) applyUpdate(u *update) error {
	v, _ := s.m.Job(u.id)
	if err := s.step(joblife.UpdateJobspec{By: u.r.cred(), ID: u.id, Updates: u.all}); err != nil {
		return err
	}
	if u.above && u.r.UserID != v.UserID() { // the limits may not hold for a later update
		if err := s.step(joblife.SetFlags{By: u.r.cred(), ID: u.id, Flags: []string{flagImmutable}}); err != nil {
			return err
		}
	}
	if v, ok := s.m.Job(u.id); ok && u.expiration.Set && v.State() == jobstate.StateRun {
		return s.limits.expire(u.id, u.expiration.Value)
	}
	return nil
}
