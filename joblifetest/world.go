package joblifetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A World owns every node: it knows what runs where, and which job holds what. Tell it
// what happens, in that order; [World.Err] returns the first violation. NewWorld makes
// one.
type World struct {
	actions *perilog.Config
	booked  map[core]jobid.ID
	jobs    map[jobid.ID]*worldJob
	err     error
}

// A core is a resource of a node.
type core struct {
	rank uint32
	kind string
	id   uint32
}

// worldJob is a job that got resources.
type worldJob struct {
	id      jobid.ID
	r       *rset.R
	actions []*perilog.Config // since it got resources
	freed   map[uint32]bool
	final   bool
	asked   bool // the executor was asked to start it
	shells  map[uint32]bool
	procs   map[place]*process
	ran     map[place]bool // what ran on a rank, or served it, in whatever attempt
	good    map[place]bool // and ended well there, in the latest attempt
	excused map[uint32]bool
}

// place is where a process of an action runs, or which rank it served.
type place struct {
	key  perilog.Key
	rank uint32
}

// process is a process of an action.
type process struct {
	attempt uint32
	serves  []uint32
	single  bool
	running bool
	signal  bool
	status  int32
	let     map[uint32]bool // ranks that it said it is done with
	bad     map[uint32]bool // ranks that it said have failed
}

// A Process is a process of an action that was launched.
type Process struct {
	Job     jobid.ID
	Action  perilog.Key
	Attempt uint32
	Rank    uint32
	Running bool
	Signal  bool  // it was told to end
	Status  int32 // once it has ended: a wait status
	Serves  []uint32
}

// NewWorld returns a world without jobs. The actions are those that the Manager is
// configured with.
func NewWorld(actions perilog.Config) *World {
	return &World{actions: &actions, booked: make(map[core]jobid.ID), jobs: make(map[jobid.ID]*worldJob)}
}

// Err returns the first violation, or nil.
func (w *World) Err() error { return w.err }

func (w *World) fail(id jobid.ID, format string, args ...any) {
	if w.err != nil {
		return
	}
	w.err = fmt.Errorf("joblifetest: "+format, args...)
	if id != 0 {
		w.err = fmt.Errorf("joblifetest: job %v: "+format, append([]any{id}, args...)...)
	}
}

// Configure reports other actions, by a [joblife.Reload] or a Restore. A job that has
// resources is then judged by the actions that all configurations have since it got them,
// whenever those began.
func (w *World) Configure(actions perilog.Config) {
	w.actions = &actions
	for _, j := range w.jobs {
		j.actions = append(j.actions, w.actions)
	}
}

// cores returns the resources of some ranks of an R, by rank: an R may have its ranks
// in any order.
func cores(r *rset.R, ranks *idset.Set) []core {
	var list []core
	for e := range r.Entries() {
		for rank := range e.Ranks.All() {
			if !ranks.Contains(rank) {
				continue
			}
			for _, kind := range slices.Sorted(maps.Keys(e.Children)) {
				for id := range e.Children[kind].All() {
					list = append(list, core{rank, kind, id})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b core) int { return cmp.Compare(a.rank, b.rank) })
	return list
}

// Allocated reports that the scheduler gave resources to a job. Call it when the scheduler
// decides, before the Manager learns of it.
func (w *World) Allocated(id jobid.ID, r *rset.R) {
	if j := w.jobs[id]; j != nil && !j.final {
		w.fail(id, "it is given resources twice")
		return
	}
	for _, c := range cores(r, r.Ranks()) {
		if other, ok := w.booked[c]; ok {
			w.fail(id, "double booking: %s %d of rank %d is held by %v", c.kind, c.id, c.rank, other)
			return
		}
		w.booked[c] = id
	}
	w.jobs[id] = &worldJob{
		id: id, r: r, actions: []*perilog.Config{w.actions}, freed: make(map[uint32]bool), shells: make(map[uint32]bool),
		procs: make(map[place]*process), ran: make(map[place]bool), good: make(map[place]bool), excused: make(map[uint32]bool),
	}
}

// Do reports that the effects of a Ready are carried out; its records must be durable. To
// carry out effects one by one, pass each in a Ready of its own. A job that Exec starts
// runs on all its ranks until [World.Ended].
func (w *World) Do(rd *joblife.Ready) {
	for _, s := range rd.Signal {
		w.signal(s) // what was given up before it was told to stop
	}
	if rd.Hello != nil {
		w.hello(rd.Hello)
	}
	for _, msg := range rd.Sched {
		switch msg := msg.(type) {
		case alloc.Free:
			w.free(msg)
		case alloc.Request:
			if j := w.jobs[msg.ID]; j != nil && !j.final {
				w.fail(msg.ID, "resources are asked for, and it has some")
			}
		}
	}
	for _, msg := range rd.Exec {
		if s, ok := msg.(exec.Start); ok && !s.Reattach {
			w.start(s.ID, s.R)
		}
	}
	for _, l := range rd.Launch {
		w.launch(l)
	}
}

// Ended reports that the job's own processes have ended on ranks; nil is all.
func (w *World) Ended(id jobid.ID, ranks *idset.Set) {
	j := w.jobs[id]
	if j == nil {
		return
	}
	for rank := range j.shells {
		if ranks == nil || ranks.Contains(rank) {
			j.shells[rank] = false
		}
	}
}

// Runs reports whether the job's own processes run on a rank.
func (w *World) Runs(id jobid.ID, rank uint32) bool {
	j := w.jobs[id]
	return j != nil && j.shells[rank]
}

// Exit ends a process with a wait status, and reports whether it was running.
func (w *World) Exit(p Process, status int32) bool {
	j := w.jobs[p.Job]
	if j == nil {
		return false
	}
	own := j.procs[place{p.Action, p.Rank}]
	if own == nil || own.attempt != p.Attempt || !own.running {
		return false
	}
	own.running, own.status = false, status
	if status == 0 {
		for _, rank := range own.serves {
			j.good[place{p.Action, rank}] = !own.bad[rank]
		}
	}
	return true
}

// Released reports that a process wrote a control line that releases ranks.
func (w *World) Released(p Process, ranks *idset.Set) {
	if j := w.jobs[p.Job]; j != nil {
		if own := j.procs[place{p.Action, p.Rank}]; own != nil && own.attempt == p.Attempt {
			for rank := range ranks.All() {
				own.let[rank] = true
				if rank != p.Rank { // there it goes on
					j.good[place{p.Action, rank}] = !own.bad[rank]
				}
			}
		}
	}
}

// Failed reports that a process wrote a control line that names failed ranks. Call it when
// the Manager has answered.
func (w *World) Failed(p Process, ranks *idset.Set) {
	if j := w.jobs[p.Job]; j != nil {
		if own := j.procs[place{p.Action, p.Rank}]; own != nil && own.attempt == p.Attempt {
			for rank := range ranks.All() {
				own.bad[rank] = true
				delete(j.good, place{p.Action, rank})
			}
		}
	}
}

// Excuse reports that ranks were drained, or that an operator ended an action there by
// force: what is left there is no violation. A job of 0 is all jobs, nil is all ranks.
func (w *World) Excuse(id jobid.ID, ranks *idset.Set) {
	for _, j := range w.jobs {
		if id != 0 && j.id != id {
			continue
		}
		for rank := range j.r.Ranks().All() {
			if ranks == nil || ranks.Contains(rank) {
				j.excused[rank] = true
			}
		}
	}
}

// Processes returns the processes that were launched, by job, action and rank.
func (w *World) Processes() []Process {
	var list []Process
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		j := w.jobs[id]
		for _, at := range j.places() {
			p := j.procs[at]
			list = append(list, Process{id, at.key, p.attempt, at.rank, p.running, p.signal, p.status, p.serves})
		}
	}
	return list
}

// End returns the first violation. Call it when all jobs should be over: a job that still
// holds something is one.
func (w *World) End() error {
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		j := w.jobs[id]
		if !j.final {
			w.fail(id, "I2: all is over, and the final fragment did not come")
		}
		for rank, runs := range j.shells {
			if runs && !j.excused[rank] {
				w.fail(id, "all is over, and it runs on rank %d", rank)
			}
		}
	}
	if len(w.booked) > 0 {
		w.fail(0, "I1: all is over, and %d resources are held", len(w.booked))
	}
	return w.err
}

// places returns where processes are, in order.
func (j *worldJob) places() []place {
	return slices.SortedFunc(maps.Keys(j.procs), func(a, b place) int {
		if c := strings.Compare(a.key.String(), b.key.String()); c != 0 {
			return c
		}
		return int(a.rank) - int(b.rank)
	})
}

// start judges that a job may start, and starts it.
func (w *World) start(id jobid.ID, r *rset.R) {
	j := w.jobs[id]
	switch {
	case j == nil:
		w.fail(id, "it starts, and was given nothing")
		return
	case j.final:
		w.fail(id, "it starts, and has nothing any more")
		return
	case j.asked:
		return // it is repeated, and the executor knows
	}
	j.asked = true
	var failed []uint32
	for rank := range r.Ranks().All() {
		if !j.r.Ranks().Contains(rank) || j.freed[rank] {
			w.fail(id, "it starts on rank %d, which it does not have", rank)
		}
		j.shells[rank] = true
		if !j.excused[rank] && !j.prepared(rank) {
			failed = append(failed, rank)
			if !slices.ContainsFunc(j.actions, func(c *perilog.Config) bool { return tolerates(&c.Tolerate, failed, j.r.Ranks().Len()) }) {
				w.fail(id, "I11: it starts on rank %d, where a prolog did not succeed", rank)
			}
		}
	}
}

// tolerates reports whether a job may start on ranks that failed.
func tolerates(t *perilog.Tolerate, failed []uint32, of int) bool {
	n := 0
	for _, rank := range failed {
		if !t.Ranks.Contains(rank) {
			n++
		}
	}
	return !t.Drop && n <= max(t.Count, int(t.Fraction*float64(of)))
}

// prepared reports whether the prologs have succeeded on a rank.
func (j *worldJob) prepared(rank uint32) bool {
	return !slices.ContainsFunc(j.due(jobstate.ActionProlog, rank), func(key perilog.Key) bool { return !j.good[place{key, rank}] })
}

// due returns the actions on a rank that all configurations have.
func (j *worldJob) due(kind jobstate.ActionKind, rank uint32) (keys []perilog.Key) {
	for i, c := range j.actions {
		list := c.Prologs
		if kind == jobstate.ActionEpilog {
			list = c.Epilogs
		}
		var has []perilog.Key
		for n := range list {
			canceled := kind == jobstate.ActionEpilog && list[n].CancelOnException != nil && *list[n].CancelOnException // perhaps before it ran
			if (list[n].Ranks == nil || list[n].Ranks.Contains(rank)) && !canceled {
				has = append(has, keyOf(kind, &list[n]))
			}
		}
		if i == 0 {
			keys = has
		}
		keys = slices.DeleteFunc(keys, func(key perilog.Key) bool { return !slices.Contains(has, key) })
	}
	return keys
}

// keyOf returns the key of an action.
func keyOf(kind jobstate.ActionKind, a *perilog.ActionConfig) perilog.Key {
	if a.Description == "" {
		return perilog.Key{Kind: kind, Description: "job-manager." + kind.String()}
	}
	return perilog.Key{Kind: kind, Description: a.Description}
}

// launch starts processes.
func (w *World) launch(l joblife.Launch) {
	j := w.jobs[l.Job]
	nothing := l.Serves != nil && l.Serves.IsEmpty() // a single command for no ranks of the job
	if j == nil || j.final && !nothing {
		w.fail(l.Job, "%v is launched, and the job has no resources", l.Action)
		return
	}
	for rank := range l.Ranks.All() {
		at := place{l.Action, rank}
		p := &process{attempt: l.Attempt, serves: []uint32{rank}, single: l.Serves != nil, running: true, let: make(map[uint32]bool), bad: make(map[uint32]bool)}
		if p.single {
			p.serves = slices.Collect(l.Serves.All())
		}
		if old := j.procs[at]; old != nil && old.attempt >= l.Attempt {
			w.fail(l.Job, "I10: attempt %d of %v on rank %d after attempt %d", l.Attempt, l.Action, rank, old.attempt)
		}
		if l.Action.Kind == jobstate.ActionProlog && j.asked && (len(j.actions) == 1 || j.shells[rank]) {
			w.fail(l.Job, "I11: %v is launched after the job", l.Action)
		}
		for _, r := range p.serves {
			if j.freed[r] {
				w.fail(l.Job, "I3: %v is launched on rank %d, which was freed", l.Action, r)
			}
			if l.Action.Kind != jobstate.ActionProlog && j.shells[r] && !j.excused[r] {
				w.fail(l.Job, "%v is launched on rank %d, where the job runs", l.Action, r)
			}
			j.ran[place{l.Action, r}] = true
			delete(j.good, place{l.Action, r})
		}
		j.procs[at] = p
	}
}

func (w *World) signal(s joblife.Signal) {
	j := w.jobs[s.Job]
	if j == nil {
		return
	}
	for rank := range s.Ranks.All() {
		if p := j.procs[place{s.Action, rank}]; p != nil && p.attempt == s.Attempt && p.running {
			p.signal = true
			if s.Signal.Signal == 9 {
				p.running, p.status = false, 9
			}
		}
	}
}

// hello tells a new scheduler: what it is not told of is free.
func (w *World) hello(a *alloc.Announcement) {
	held := make(map[jobid.ID]bool)
	for _, h := range a.Responses {
		j := w.jobs[h.ID]
		if j == nil || h.R == nil || !slices.Equal(cores(h.R, h.R.Ranks()), cores(j.r, h.R.Ranks())) {
			w.fail(h.ID, "I1: hello tells of resources that it was not given")
			continue
		}
		if j.final {
			w.fail(h.ID, "I2: hello tells of resources, and the final fragment was sent")
		}
		held[h.ID] = true
		for rank := range j.r.Ranks().All() {
			// A scheduler that takes no partial allocation is told of what is held alone.
			switch freed := h.Free.Contains(rank) || !h.R.Ranks().Contains(rank); {
			case j.freed[rank] && !freed:
				w.fail(h.ID, "I1: hello says that it holds rank %d, which was freed", rank)
			case freed:
				w.give(j, rank)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if j := w.jobs[id]; !j.final && !held[id] {
			for rank := range j.r.Ranks().All() {
				w.give(j, rank)
			}
			j.final = true
		}
	}
}

// free takes a fragment back.
func (w *World) free(f alloc.Free) {
	j := w.jobs[f.ID]
	switch {
	case j == nil:
		w.fail(f.ID, "resources are freed that were never given")
		return
	case j.final:
		w.fail(f.ID, "I2: a fragment after the final one")
		return
	}
	if f.R != nil {
		for rank := range f.R.Ranks().All() {
			if j.freed[rank] || !j.r.Ranks().Contains(rank) {
				w.fail(f.ID, "I1: rank %d is freed, and it does not hold it", rank)
			}
			if !slices.Equal(cores(f.R, idset.Of(rank)), cores(j.r, idset.Of(rank))) {
				w.fail(f.ID, "I1: of rank %d not all is freed", rank)
			}
			w.give(j, rank)
		}
	}
	if !f.Final {
		return
	}
	j.final = true
	for rank := range j.r.Ranks().All() {
		if !j.freed[rank] {
			w.fail(f.ID, "I1: the final fragment came, and rank %d is held", rank)
		}
	}
}

// give gives a rank back, and judges that nothing holds it.
func (w *World) give(j *worldJob, rank uint32) {
	if j.freed[rank] {
		return
	}
	j.freed[rank] = true
	for _, c := range cores(j.r, idset.Of(rank)) {
		if w.booked[c] != j.id {
			w.fail(j.id, "I1: %s %d of rank %d is not booked for it", c.kind, c.id, rank)
		}
		delete(w.booked, c)
	}
	if j.excused[rank] {
		return
	}
	if j.shells[rank] {
		w.fail(j.id, "I3: rank %d is freed, and the job runs there", rank)
	}
	prepared := j.asked
	for _, at := range j.places() {
		p := j.procs[at]
		prepared = prepared || at.key.Kind == jobstate.ActionProlog
		if !p.running || !slices.Contains(p.serves, rank) || p.let[rank] || j.gaveUp(at.key, p) {
			continue
		}
		w.fail(j.id, "I3: rank %d is freed, and %v runs there", rank, at.key)
	}
	if !prepared {
		return // the Manager may not even know of the allocation
	}
	for _, key := range j.due(jobstate.ActionEpilog, rank) {
		if !j.ran[place{key, rank}] {
			w.fail(j.id, "I3: rank %d is freed, and %v did not run there", rank, key)
		}
	}
	kept := !slices.ContainsFunc(j.actions, func(c *perilog.Config) bool { return c.Housekeeping == nil })
	if kept && !j.ran[place{perilog.Housekeeping(), rank}] {
		w.fail(j.id, "I3: rank %d is freed, and housekeeping did not run there", rank)
	}
}

// gaveUp reports whether a process that was told to end may be left behind without a
// drain of the rank.
func (j *worldJob) gaveUp(key perilog.Key, p *process) bool {
	lets := func(c *perilog.Config) bool { return c.Housekeeping != nil && c.Housekeeping.OnFailure == "release" }
	return key == perilog.Housekeeping() && (p.signal || slices.ContainsFunc(j.actions, lets)) || p.signal && p.single
}
