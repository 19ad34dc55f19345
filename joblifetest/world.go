package joblifetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// A World owns every node: it knows what runs where, and which job holds what. Tell it what
// happens, in that order; [World.Err] returns the first violation. NewWorld makes one.
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
	final   bool
	asked   bool // the executor was asked to start it
	freed   idset.Set
	shells  idset.Set // where its own processes run
	excused idset.Set
	procs   map[place]*process // the latest attempts
	ran     map[place]bool     // what ran on a rank, or served it, in whatever attempt
	good    map[place]bool     // and ended well there, in the latest attempt
}

// place is where a process of an action runs, or which rank it served.
type place struct {
	key  jobstate.ActionKey
	rank uint32
}

// A Process is a process of an action that was launched.
type Process struct {
	Job     jobid.ID
	Action  jobstate.ActionKey
	Attempt uint32   // of its Launch
	Rank    uint32   // where it runs
	Running bool     // it has not ended
	Signal  bool     // it was told to end
	Status  int32    // once it has ended: a wait status
	Serves  []uint32 // the ranks of a single command
}

type process struct {
	Process
	single bool
	let    idset.Set // ranks that it said it is done with
	bad    idset.Set // ranks that it said have failed
}

// NewWorld returns a world without jobs. The actions are those of the Manager's Config.
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
// resources is then judged by the actions that all configurations have since it got them.
func (w *World) Configure(actions perilog.Config) {
	w.actions = &actions
	for _, j := range w.jobs {
		j.actions = append(j.actions, w.actions)
	}
}

// cores returns the resources of some ranks of an R, in order: an R may have them in any.
func cores(r *rset.R, ranks *idset.Set) []core {
	var list []core
	for e := range r.Entries() {
		for rank := range idset.Intersect(e.Ranks, ranks).All() {
			for kind, ids := range e.Children {
				for id := range ids.All() {
					list = append(list, core{rank, kind, id})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b core) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
	})
	return list
}

func (w *World) holder(id jobid.ID) *worldJob {
	if j := w.jobs[id]; j != nil && !j.final {
		return j
	}
	return nil
}

// Allocated reports that the scheduler gave resources to a job. Call it when the scheduler
// decides, before the Manager learns of it.
func (w *World) Allocated(id jobid.ID, r *rset.R) {
	if w.holder(id) != nil {
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
		id: id, r: r, actions: []*perilog.Config{w.actions},
		procs: make(map[place]*process), ran: make(map[place]bool), good: make(map[place]bool),
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
			if w.holder(msg.ID) != nil {
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

// input reports what an input tells the Manager.
func (w *World) input(in joblife.Input) {
	switch in := in.(type) {
	case joblife.Report:
		p := Process{Job: in.Job, Action: in.Action, Attempt: in.Attempt, Rank: in.Rank}
		switch in.Kind {
		case perilog.ReportExited:
			w.Exit(p, in.Status)
		case perilog.ReportLaunchFailed, perilog.ReportUnreachable:
			w.Exit(p, -1) // whatever the status says
		}
	case joblife.Drained:
		w.Excuse(0, in.Ranks)
	case joblife.ForceFinish:
		w.Excuse(in.Job, in.Ranks)
	}
}

// Ended reports that the job's own processes have ended on ranks; nil is all.
func (w *World) Ended(id jobid.ID, ranks *idset.Set) {
	if j := w.jobs[id]; j != nil {
		j.shells.SubtractWith(cmp.Or(ranks, j.r.Ranks()))
	}
}

// Runs reports whether the job's own processes run on a rank.
func (w *World) Runs(id jobid.ID, rank uint32) bool {
	j := w.jobs[id]
	return j != nil && j.shells.Contains(rank)
}

// process returns a process, and nil if there is a later attempt or none.
func (w *World) process(p Process) (*worldJob, *process) {
	if j := w.jobs[p.Job]; j != nil {
		if own := j.procs[place{p.Action, p.Rank}]; own != nil && own.Attempt == p.Attempt {
			return j, own
		}
	}
	return nil, nil
}

// Exit ends a process with a wait status, and reports whether it was running.
func (w *World) Exit(p Process, status int32) bool {
	j, own := w.process(p)
	if own == nil || !own.Running {
		return false
	}
	own.Running, own.Status = false, status
	if status == 0 {
		for _, rank := range own.Serves {
			j.good[place{p.Action, rank}] = !own.bad.Contains(rank)
		}
	}
	return true
}

// Released reports that a process wrote a control line that releases ranks.
func (w *World) Released(p Process, ranks *idset.Set) {
	if j, own := w.process(p); own != nil {
		own.let.UnionWith(ranks)
		for rank := range ranks.All() {
			if rank != p.Rank { // there it goes on
				j.good[place{p.Action, rank}] = !own.bad.Contains(rank)
			}
		}
	}
}

// Failed reports that a process wrote a control line that names failed ranks. Call it when
// the Manager has answered.
func (w *World) Failed(p Process, ranks *idset.Set) {
	if j, own := w.process(p); own != nil {
		own.bad.UnionWith(ranks)
		for rank := range ranks.All() {
			delete(j.good, place{p.Action, rank})
		}
	}
}

// Excuse reports that ranks were drained, or an action ended there by force: what is left
// there is no violation. A job of 0 is all jobs, nil is all ranks.
func (w *World) Excuse(id jobid.ID, ranks *idset.Set) {
	for _, j := range w.jobs {
		if id == 0 || j.id == id {
			j.excused.UnionWith(cmp.Or(ranks, j.r.Ranks()))
		}
	}
}

// Processes returns the processes that were launched, by job, action and rank.
func (w *World) Processes() []Process {
	var list []Process
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		for _, p := range w.jobs[id].processes() {
			list = append(list, p.Process)
		}
	}
	return list
}

// End is Err when all jobs should be over: a job that still holds something is a violation.
func (w *World) End() error {
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		j := w.jobs[id]
		if !j.final {
			w.fail(id, "I2: all is over, and the final fragment did not come")
		}
		if left := idset.Difference(&j.shells, &j.excused); !left.IsEmpty() {
			w.fail(id, "all is over, and it runs on rank %v", left)
		}
	}
	if len(w.booked) > 0 {
		w.fail(0, "I1: all is over, and %d resources are held", len(w.booked))
	}
	return w.err
}

func (j *worldJob) processes() []*process {
	return slices.SortedFunc(maps.Values(j.procs), func(a, b *process) int {
		return cmp.Or(cmp.Compare(a.Action.String(), b.Action.String()), cmp.Compare(a.Rank, b.Rank))
	})
}

func (w *World) start(id jobid.ID, r *rset.R) {
	j := w.holder(id)
	if j == nil {
		w.fail(id, "it starts, and holds nothing")
		return
	}
	if j.asked {
		return // it is repeated, and the executor knows
	}
	j.asked = true
	j.shells.UnionWith(r.Ranks())
	if not := idset.Difference(r.Ranks(), idset.Difference(j.r.Ranks(), &j.freed)); !not.IsEmpty() {
		w.fail(id, "it starts on rank %v, which it does not have", not)
	}
	failed := idset.Difference(r.Ranks(), &j.excused)
	for rank := range r.Ranks().All() {
		if !slices.ContainsFunc(j.due(rank, jobstate.ActionProlog), func(key jobstate.ActionKey) bool { return !j.good[place{key, rank}] }) {
			failed.Remove(rank)
		}
	}
	tolerated := func(c *perilog.Config) bool {
		most := max(c.Tolerate.Count, int(c.Tolerate.Fraction*float64(j.r.Ranks().Len())+1e-9)) // 0.29 of 100 is 29
		return !c.Tolerate.Drop && idset.Difference(failed, c.Tolerate.Ranks).Len() <= most
	}
	if !failed.IsEmpty() && !slices.ContainsFunc(j.actions, tolerated) {
		w.fail(id, "I11: it starts on rank %v, where a prolog did not succeed", failed)
	}
}

// due returns the prologs, or what follows the job, on a rank by all configurations.
func (j *worldJob) due(rank uint32, kind jobstate.ActionKind) (keys []jobstate.ActionKey) {
	for i, c := range j.actions {
		var has []jobstate.ActionKey
		list := c.Prologs
		if kind == jobstate.ActionEpilog {
			if list = c.Epilogs; c.Housekeeping != nil {
				has = append(has, perilog.Housekeeping())
			}
		}
		for n := range list {
			a := &list[n]
			canceled := kind == jobstate.ActionEpilog && a.CancelOnException != nil && *a.CancelOnException // perhaps before it ran
			if (a.Ranks == nil || a.Ranks.Contains(rank)) && !canceled {
				has = append(has, jobstate.ActionKey{Kind: kind, Description: cmp.Or(a.Description, "job-manager."+kind.String())})
			}
		}
		if i > 0 {
			has = slices.DeleteFunc(has, func(key jobstate.ActionKey) bool { return !slices.Contains(keys, key) })
		}
		keys = has
	}
	return keys
}

func (w *World) launch(l joblife.Launch) {
	j := w.jobs[l.Job]
	nothing := l.Serves != nil && l.Serves.IsEmpty() // a single command for no ranks of the job
	if j == nil || j.final && !nothing {
		w.fail(l.Job, "%v is launched, and the job has no resources", l.Action)
		return
	}
	for rank := range l.Ranks.All() {
		p := &process{Process: Process{l.Job, l.Action, l.Attempt, rank, true, false, 0, []uint32{rank}}, single: l.Serves != nil}
		if p.single {
			p.Serves = slices.Collect(l.Serves.All())
		}
		at := place{l.Action, rank}
		if old := j.procs[at]; old != nil && old.Attempt >= l.Attempt {
			w.fail(l.Job, "I10: attempt %d of %v on rank %d after attempt %d", l.Attempt, l.Action, rank, old.Attempt)
		}
		j.procs[at] = p
		if l.Action.Kind == jobstate.ActionProlog && j.asked && (len(j.actions) == 1 || j.shells.Contains(rank)) {
			w.fail(l.Job, "I11: %v is launched after the job", l.Action)
		}
		for _, r := range p.Serves {
			if j.freed.Contains(r) {
				w.fail(l.Job, "I3: %v is launched on rank %d, which was freed", l.Action, r)
			}
			if l.Action.Kind != jobstate.ActionProlog && j.shells.Contains(r) && !j.excused.Contains(r) {
				w.fail(l.Job, "%v is launched on rank %d, where the job runs", l.Action, r)
			}
			j.ran[place{l.Action, r}] = true
			delete(j.good, place{l.Action, r})
		}
	}
}

func (w *World) signal(s joblife.Signal) {
	for rank := range s.Ranks.All() {
		if _, p := w.process(Process{Job: s.Job, Action: s.Action, Attempt: s.Attempt, Rank: rank}); p != nil && p.Running {
			p.Signal = true
			if s.Signal.Signal == 9 {
				p.Running, p.Status = false, 9
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
			case j.freed.Contains(rank) && !freed:
				w.fail(h.ID, "I1: hello says that it holds rank %d, which was freed", rank)
			case freed:
				w.give(j, rank)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.jobs)) {
		if j := w.holder(id); j != nil && !held[id] {
			for rank := range j.r.Ranks().All() {
				w.give(j, rank)
			}
			j.final = true
		}
	}
}

func (w *World) free(f alloc.Free) {
	j := w.holder(f.ID)
	if j == nil {
		w.fail(f.ID, "I2: resources are freed, and it holds nothing")
		return
	}
	for rank := range f.R.Ranks().All() {
		if j.freed.Contains(rank) || !j.r.Ranks().Contains(rank) {
			w.fail(f.ID, "I1: rank %d is freed, and it does not hold it", rank)
		}
		if !slices.Equal(cores(f.R, idset.Of(rank)), cores(j.r, idset.Of(rank))) {
			w.fail(f.ID, "I1: of rank %d not all is freed", rank)
		}
		w.give(j, rank)
	}
	j.final = f.Final
	if held := idset.Difference(j.r.Ranks(), &j.freed); f.Final && !held.IsEmpty() {
		w.fail(f.ID, "I1: the final fragment came, and rank %v is held", held)
	}
}

// give gives a rank back, and judges that nothing holds it.
func (w *World) give(j *worldJob, rank uint32) {
	if !j.freed.Insert(rank) {
		return
	}
	for _, c := range cores(j.r, idset.Of(rank)) {
		if w.booked[c] != j.id {
			w.fail(j.id, "I1: %s %d of rank %d is not booked for it", c.kind, c.id, rank)
		}
		delete(w.booked, c)
	}
	if j.excused.Contains(rank) {
		return
	}
	if j.shells.Contains(rank) {
		w.fail(j.id, "I3: rank %d is freed, and the job runs there", rank)
	}
	prepared := j.asked
	for _, p := range j.processes() {
		prepared = prepared || p.Action.Kind == jobstate.ActionProlog
		if p.Running && slices.Contains(p.Serves, rank) && !p.let.Contains(rank) && !j.gaveUp(p) {
			w.fail(j.id, "I3: rank %d is freed, and %v runs there", rank, p.Action)
		}
	}
	if !prepared {
		return // the Manager may not even know of the allocation
	}
	for _, key := range j.due(rank, jobstate.ActionEpilog) {
		if !j.ran[place{key, rank}] {
			w.fail(j.id, "I3: rank %d is freed, and %v did not run there", rank, key)
		}
	}
}

// gaveUp reports whether a process may be left behind without a drain of the rank.
func (j *worldJob) gaveUp(p *process) bool {
	lets := func(c *perilog.Config) bool { return c.Housekeeping != nil && c.Housekeeping.OnFailure == "release" }
	return p.Action == perilog.Housekeeping() && (p.Signal || slices.ContainsFunc(j.actions, lets)) || p.Signal && p.single
}
