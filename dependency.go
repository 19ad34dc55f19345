package joblife

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// Dependencies returns hooks for the dependency schemes of flux-core (RFC 26), which
// it has in its own job manager:
//
//   - after and afterstart, afterok, afternotok, afterexcept and afterany wait for
//     another job of the same user, which may be active, inactive, or purged with a
//     tombstone; if a restart quarantines that one, they go on waiting;
//   - begin-time waits for a time in seconds;
//   - singleton waits until no other job of the same user and name is active, those excepted
//     that a restart quarantined; it needs a name while it waits.
//
// The descriptions are those of flux-core, such as "after-success=ƒ2Bp1fdH". A
// dependency that cannot be satisfied any more is a fatal exception of type
// "dependency". Refusals are in flux-core's words. Each Manager needs hooks of its own.
func Dependencies() Hooks {
	d := &dependencies{
		after: btree.NewG(16, dependent.less), of: make(map[jobid.ID][]dependent),
		named: btree.NewG(16, member.less), keys: make(map[jobid.ID]string),
	}
	return Hooks{
		Name: "dependencies", Restored: d.join, Validate: d.validate, Dependency: d.dependency, Event: d.event,
	}
}

// dependencies are the jobs that wait. A restart makes them again of the jobspecs and the logs.
type dependencies struct {
	after *btree.BTreeG[dependent] // by the job that they wait for
	of    map[jobid.ID][]dependent // the same by the job that waits
	named *btree.BTreeG[member]    // active jobs with a name
	keys  map[jobid.ID]string      // the key of each of those
	asked jobid.ID                 // the job that waits and is not accepted yet; 0: none
}

// validate drops what a job that was refused before left: this one may have its id.
func (d *dependencies) validate(*HookEvent) error {
	d.forget(d.asked)
	d.asked = 0
	return nil
}

// A dependent is a job that waits for another one.
type dependent struct {
	on, id      jobid.ID
	place       int // among what the job waits for
	scheme      scheme
	description string
}

func (w dependent) less(b dependent) bool {
	return cmp.Or(cmp.Compare(w.on, b.on), cmp.Compare(w.id, b.id), cmp.Compare(w.place, b.place)) < 0
}

// scheme is a way to wait for another job, as descriptions begin.
type scheme string

const (
	afterStart  scheme = "after-start"
	afterAny    scheme = "after-finish"
	afterOK     scheme = "after-success"
	afterNotOK  scheme = "after-failure"
	afterExcept scheme = "after-except"
)

var schemes = map[string]scheme{
	"after": afterStart, "afterstart": afterStart, "afterany": afterAny,
	"afterok": afterOK, "afternotok": afterNotOK, "afterexcept": afterExcept,
}

func (d *dependencies) dependency(e *HookEvent, dep jobspec.Dependency) (bool, error) {
	switch dep.Scheme {
	case "begin-time":
		return true, d.beginTime(e, dep.Value)
	case "singleton":
		return true, d.singleton(e)
	}
	s, ok := schemes[dep.Scheme]
	if !ok {
		return false, nil
	}
	return true, d.afterJob(e, s, dep)
}

// depend makes the job wait for something, and reports whether it does.
func depend(e *HookEvent, description string) bool {
	id := e.Job.ID()
	if job := e.Job.Job(); job.HasDependency(description) {
		return job.WaitsFor(description)
	}
	e.Post(DependencyAdd{ID: id, Description: description})
	return true
}

func (d *dependencies) beginTime(e *HookEvent, value string) error {
	at, err := strconv.ParseFloat(value, 64)
	if err != nil || at < 0 || math.IsInf(at, 0) || math.IsNaN(at) {
		return errors.New("Invalid begin-time=" + plain(value))
	}
	description := fmt.Sprintf("begin-time=%.3f", at)
	if depend(e, description) {
		e.PostAt(eventlog.Timestamp(at), DependencyRemove{ID: e.Job.ID(), Description: description})
	}
	return nil
}

func (d *dependencies) afterJob(e *HookEvent, s scheme, dep jobspec.Dependency) error {
	w := dependent{id: e.Job.ID(), scheme: s, description: string(s) + "=" + dep.Value}
	if satisfied(e.Job.Job(), w.description) { // the other job may be purged
		return nil
	}
	on, err := jobid.Parse(dep.Value)
	if err != nil {
		return fmt.Errorf("dependency: %s: %s is not a valid jobid", dep.Scheme, guard.Quote(dep.Value))
	}
	if dep.Scheme == "after" && !e.Job.Job().HasDependency(w.description) {
		e.Post(Raise{ID: w.id, Type: "dependency", Severity: 3, Note: "dependency scheme 'after' is deprecated, use 'afterstart'"})
	}
	v, live := e.Lookup(on)
	live = live && v.State() != jobstate.StateInactive && v.ID() != w.id
	rec, over := e.Ended(on)
	user := e.Job.UserID()
	by := Cred{UserID: user, Guest: user != e.m.cfg.Owner}
	live = live && e.m.cfg.sees(by, v.UserID()) // else an answer would say whose the id is
	over = over && e.m.cfg.sees(by, rec.UserID)
	switch {
	case !live && !over && e.Job.Job().HasDependency(w.description) && e.m.quarantine.has(on):
		return nil // it waits until the records are repaired
	case !live && !over:
		return fmt.Errorf("dependency: %s: id %s: job not found", dep.Scheme, dep.Value)
	case live && v.UserID() != user, !live && rec.UserID != user:
		return fmt.Errorf("%s: Permission denied for job %s", dep.Scheme, dep.Value)
	case !live:
		if why := unsatisfied(rec, s, dep.Value); why != "" {
			return errors.New("dependency: " + why)
		}
	}
	switch {
	case !depend(e, w.description):
	case !live || s == afterStart && v.Job().Started():
		e.Post(DependencyRemove{ID: w.id, Description: w.description})
	default:
		w.on, w.place = on, len(d.of[w.id])
		d.after.ReplaceOrInsert(w)
		d.of[w.id] = append(d.of[w.id], w)
		if _, accepted := e.Lookup(w.id); !accepted {
			d.asked = w.id
		}
	}
	return nil
}

// unsatisfied returns why a job that is over does not satisfy a scheme, "" if it does. All but
// afterany need a job that had resources (flux-core#6555), and afterexcept one that an
// exception ended, and no finish.
func unsatisfied(r jobstate.Summary, s scheme, id string) string {
	completed := r.Result == jobstate.ResultCompleted
	switch {
	case s == afterAny:
		return ""
	case !r.Ran && (s == afterStart || !r.Unstarted):
		return "after: " + id + " never started"
	case s == afterOK && !completed:
		return "afterok: job " + id + " failed or was canceled"
	case s == afterNotOK && completed:
		return "afternotok: job " + id + " succeeded"
	case s == afterExcept && !r.Unstarted && !r.Stopped:
		return "afterexcept: job " + id + ": no exception"
	}
	return ""
}

func (d *dependencies) event(e *HookEvent) {
	id := e.Job.ID()
	switch e.Entry.Name {
	case jobstate.EventSubmit:
		d.join(e)
		d.asked = 0
		return
	case jobstate.EventJobspecUpdate:
		k := key(e.Job)
		if k == d.keys[id] {
			break
		}
		d.leave(e)
		d.join(e)
		if d.next(e, k); k == "" && waitsAlone(e.Job) {
			e.Post(Raise{ID: id, Type: "dependency", Note: errNoName.Error()})
		}
	case jobstate.EventDependencyAdd, jobstate.EventDependencyRemove, jobstate.EventDepend:
		if k, ok := d.keys[id]; ok { // it may wait alone now, or no longer
			d.remove(e, k)
			d.put(e, k)
			d.next(e, k)
		}
	case jobstate.EventInvalidate:
		d.forget(id)
		d.release(e, func(dependent) bool { return false }, "job is invalid")
		d.leave(e)
		return
	case jobstate.EventStart:
		d.release(e, func(w dependent) bool { return w.scheme == afterStart }, "")
		return
	}
	if e.Job.State() == jobstate.StateCleanup && e.Prev != jobstate.StateCleanup {
		d.forget(id)
	}
	if e.Job.State() != jobstate.StateInactive || e.Prev == jobstate.StateInactive {
		return
	}
	j := e.Job.Job()
	note := "can never be satisfied"
	if !j.WasAllocated() {
		note = "job never started"
	}
	rec, _ := j.Summary()
	d.release(e, func(w dependent) bool { return unsatisfied(rec, w.scheme, "") == "" }, note)
	d.leave(e)
}

// release ends the waits that are satisfied. With a note it raises exceptions on the others.
func (d *dependencies) release(e *HookEvent, satisfied func(dependent) bool, note string) {
	on := e.Job.ID()
	var over []dependent
	var ended map[jobid.ID]bool // they may wait in more than one way
	d.after.AscendGreaterOrEqual(dependent{on: on}, func(w dependent) bool {
		switch {
		case w.on != on:
			return false
		case ended[w.id] || !w.waits(e):
		case satisfied(w):
			e.Post(DependencyRemove{ID: w.id, Description: w.description})
		case note != "":
			ended = put(ended, w.id, true)
			e.Post(Raise{ID: w.id, Type: "dependency", Note: "dependency " + w.description + " " + note})
		default:
			return true
		}
		over = append(over, w)
		return true
	})
	for _, w := range over {
		d.after.Delete(w)
	}
}

// waits reports whether the job still waits so. The event dependency-add may be to come.
func (w dependent) waits(e *HookEvent) bool {
	v, ok := e.Lookup(w.id)
	return ok && v.State().In(jobstate.StateNew|jobstate.StateDepend) && !satisfied(v.Job(), w.description)
}

// satisfied reports whether a job had a dependency, and waits for it no longer.
func satisfied(j *jobstate.Job, description string) bool {
	return j.HasDependency(description) && !j.WaitsFor(description)
}

// forget drops the waits of a job that ends before they do.
func (d *dependencies) forget(id jobid.ID) {
	for _, w := range d.of[id] {
		d.after.Delete(w)
	}
	delete(d.of, id)
}

// key stands for the user and the name of a job; it is "" without a name.
func key(v View) string {
	name, ok := v.Jobspec().Lookup("attributes.system.job.name")
	if !ok {
		return ""
	}
	digest := sha256.Sum256(name) // a name may be long, and is compared often
	return strconv.Itoa(int(v.UserID())) + ":" + string(digest[:])
}

// A member is one of the jobs with a key. Those that wait until they are the only one come last.
type member struct {
	key   string
	alone bool               // it waits so
	at    eventlog.Timestamp // of its submission
	id    jobid.ID
}

func memberOf(v View, k string) member {
	at, _ := v.Job().Entered(jobstate.StateNew)
	return member{k, waitsAlone(v), at, v.ID()}
}

func (a member) less(b member) bool {
	if a.alone != b.alone && a.key == b.key {
		return b.alone
	}
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) < 0
}

// waitsAlone reports whether a job waits until it is the only one of its name.
func waitsAlone(v View) bool {
	return v.State().In(jobstate.StateNew|jobstate.StateDepend) && v.Job().WaitsFor("singleton")
}

var errNoName = errors.New("singleton jobs require a job name")

// singleton makes a job wait until no other of its name is active.
func (d *dependencies) singleton(e *HookEvent) error {
	k := key(e.Job)
	switch {
	case satisfied(e.Job.Job(), "singleton"):
	case k == "":
		return errNoName
	case e.Job.Job().HasDependency("singleton"):
		d.next(e, k) // the one before ended, and a crash came
	case d.hasToWait(e, k):
		depend(e, "singleton")
	}
	return nil
}

// hasToWait reports whether a job has to wait for others of its name. After a restart it
// decides only for a job that is not validated: for others the log says it.
func (d *dependencies) hasToWait(e *HookEvent, k string) bool {
	if _, restored := e.Lookup(e.Job.ID()); !restored {
		_, others := d.first(k)
		return others
	}
	if e.Job.State() != jobstate.StateNew {
		return false
	}
	waits := false
	d.named.AscendGreaterOrEqual(member{key: k}, func(other member) bool {
		if other.key != k || other.alone {
			return false
		}
		v, _ := e.Lookup(other.id)
		waits = other.id != e.Job.ID() && (v.State() != jobstate.StateNew || other.less(memberOf(e.Job, k)))
		return !waits
	})
	return waits
}

// first returns the first member with a key.
func (d *dependencies) first(k string) (w member, ok bool) {
	d.named.AscendGreaterOrEqual(member{key: k}, func(first member) bool {
		w, ok = first, first.key == k
		return false
	})
	return w, ok
}

// next lets the first that waits go if all with the key wait.
func (d *dependencies) next(e *HookEvent, k string) {
	if w, ok := d.first(k); ok && w.alone {
		e.Post(DependencyRemove{ID: w.id, Description: "singleton"})
	}
}

func (d *dependencies) join(e *HookEvent) {
	if k := key(e.Job); k != "" {
		d.put(e, k)
		d.keys[e.Job.ID()] = k
	}
}

// leave notes that a job is over, or has another name.
func (d *dependencies) leave(e *HookEvent) {
	if k, ok := d.keys[e.Job.ID()]; ok {
		d.remove(e, k)
		delete(d.keys, e.Job.ID())
		d.next(e, k)
	}
}

func (d *dependencies) put(e *HookEvent, k string) { d.named.ReplaceOrInsert(memberOf(e.Job, k)) }

func (d *dependencies) remove(e *HookEvent, k string) {
	w := memberOf(e.Job, k)
	d.named.Delete(w)
	w.alone = !w.alone // it may have changed
	d.named.Delete(w)
}
