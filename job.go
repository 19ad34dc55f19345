package joblife

import (
	"cmp"
	"encoding/json"
	"math/bits"
	"slices"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// job is one job that is not over, or whose housekeeping is not. Millions of them may wait,
// so what only few have is in rare.
type job struct {
	id    jobid.ID
	life  *perilog.Job
	text  []byte        // the jobspec as it was submitted
	spec  *jobspec.Spec // with its updates; nil while nobody asks for it and there are none
	queue string        // that it names
	r     *rset.R       // the allocation
	log   []byte        // its eventlog, as far as it is durable
	rare  *rare         // nil: it has nothing of that

	pos       int32          // in the list of its state
	size      uint32         // bytes of its log, durable or not
	noted     uint32         // bytes of the annotations of its log, or more, for fitMemo
	computed  uint32         // the priority that a hook gave
	state     jobstate.State // of the list that has it
	start     start
	ranked    bool // there is a computed priority
	dirty     bool
	acting    bool // an action of it runs
	housekept bool // it has housekeeping
	public    bool // its submit was handed out and done, or comes from a restart
	later     bool // a hook validates it later
	queued    bool // m.sched.queue has it
	handed    bool // a Start of it was handed out once, perhaps before a restart
	hidden    bool // the scheduler does not know of it: it held nothing at hello, or bypasses it
	reranks   bool // it was in SCHED at a restart, and its priority is to be computed again
}

type rare struct {
	keep   []byte // the log of its housekeeping, as far as it is durable
	notes  []byte // all annotations, unless they are those of the log, which nil means
	alarms []due  // what hooks asked for a later time; some of it has come
	doomed *Raise // what a hook raised while the job was in NEW
	timer  due
}

// ensureRare returns the rare of a job, to change it.
func (j *job) ensureRare() *rare {
	if j.rare == nil {
		j.rare = new(rare)
	}
	return j.rare
}

// rareCopy returns the rare of a job, to read it.
func (j *job) rareCopy() rare {
	if j.rare == nil {
		return rare{}
	}
	return *j.rare
}

// flagBypass says that the resources of a job do not come from the scheduler.
const flagBypass = "alloc-bypass"

// start is how far the request to start a job is.
type start uint8

const (
	startNone   start = iota
	startWanted       // to be sent when the executor says hello
	startSent         // sent, perhaps before a restart
	startAsk          // perhaps sent before a restart: the executor has to say, and must not start it now
)

func (j *job) job() *jobstate.Job { return j.life.State() }

// current returns the allocation without dropped ranks, as the last update extends it; nil: none.
func (j *job) current() *rset.R { return j.expiring(j.life.R()) }

// expiring returns r with the expiration of the latest update, unless that is before r's
// start, as in a log that somebody else wrote.
func (j *job) expiring(r *rset.R) *rset.R {
	at, ok := j.job().Expiration()
	if !ok || r == nil || r.Expiration() == at {
		return r
	}
	if updated, err := r.WithTimes(r.Start(), at); err == nil {
		return updated
	}
	return r
}

func infoOf(s *jobstate.Job) alloc.JobInfo {
	p, _ := s.Priority()
	submit, _ := s.Entered(jobstate.StateNew)
	return alloc.JobInfo{ID: s.ID(), Priority: p, UserID: s.UserID(), Submit: submit}
}

// jobTable has all jobs, and what is to be done before a Step ends.
type jobTable struct {
	jobs    map[jobid.ID]*job // those that are not inactive, or whose housekeeping goes on
	lists   [8][]*job         // the same by the bit of their state
	invalid map[jobid.ID]*job // those that were invalidated and are in the store
	index   *purge.Index      // the inactive ones; its watermark is the greatest id that was given
	parsed  []jobid.ID        // those whose jobspec was read from its text, in this order, perhaps more than once

	posts fifo[post] // inputs to dispatch
	dirty fifo[*job] // then, jobs for which to decide
}

// view returns a job, durable or not.
func (t *jobTable) view(id jobid.ID) (View, bool) {
	if j := t.jobs[id]; j != nil && j.state != jobstate.StateInactive {
		return View{table: t, j: j}, true
	}
	rec, ok := t.index.Lookup(id)
	return View{rec: rec}, ok
}

// debug logs an event of a job that has the flag debug.
func (t *jobTable) debug(j *job, name string) {
	if j.job().HasFlag("debug") {
		t.posts.push(post{in: Post{ID: j.id, Name: name}, job: j.id})
	}
}

// maxParsed is how many jobspecs are kept, or up to twice as many: a job that is short is read once.
const maxParsed = 1 << 10

// spec returns the jobspec of a job, with its updates.
func (t *jobTable) spec(j *job) *jobspec.Spec {
	if j.spec == nil {
		spec, err := jobspec.Parse(j.text)
		must("a jobspec that was checked", err)
		j.spec = spec
		t.parsed = append(t.parsed, j.id)
	}
	return j.spec
}

// forgetSpecs drops jobspecs that the text of the job has, when a Ready is done: all but the last,
// so that a job that waits is small.
func (t *jobTable) forgetSpecs() {
	n := len(t.parsed) - maxParsed
	if n < maxParsed {
		return // to move the rest takes time
	}
	for _, id := range t.parsed[:n] {
		if j := t.jobs[id]; j != nil {
			j.forgetSpec()
		}
	}
	t.parsed = slices.Delete(t.parsed, 0, n)
}

// forgetSpec drops the jobspec if the text has it.
func (j *job) forgetSpec() {
	if j.spec != nil && j.spec.Original() == j.spec {
		j.spec = nil
	}
}

func stateIndex(s jobstate.State) int { return bits.TrailingZeros8(uint8(s)) }

// touch notes that decisions for a job are due before the Step ends.
func (t *jobTable) touch(j *job) {
	if !j.dirty {
		j.dirty = true
		t.dirty.push(j)
	}
}

// move puts a job in the list of a state; for 0, in none.
func (t *jobTable) move(j *job, to jobstate.State) {
	if j.state != 0 {
		from := &t.lists[stateIndex(j.state)]
		last := len(*from) - 1
		(*from)[j.pos] = (*from)[last]
		(*from)[j.pos].pos = j.pos
		(*from)[last] = nil
		*from = (*from)[:last]
	}
	if j.state = to; to != 0 {
		l := &t.lists[stateIndex(to)]
		j.pos = int32(len(*l))
		*l = append(*l, j)
	}
}

// sorted returns the jobs in some states, by id.
func (t *jobTable) sorted(mask jobstate.State) []*job {
	var out []*job
	for i := range t.lists {
		if mask&(1<<i) != 0 {
			out = append(out, t.lists[i]...)
		}
	}
	slices.SortFunc(out, byID)
	return out
}

func (t *jobTable) count(mask jobstate.State) int {
	n := 0
	for i := range t.lists {
		if mask&(1<<i) != 0 {
			n += len(t.lists[i])
		}
	}
	return n
}

func byID(a, b *job) int { return cmp.Compare(a.id, b.id) }

// timers are what is due later: deadlines of jobs, and what hooks have asked for.
type timers struct {
	tree   *btree.BTreeG[timer]
	serial uint64 // of the last
}

func newTimers() timers { return timers{tree: btree.NewG(16, timer.less)} }

type timer struct {
	due
	job  *job // of a job's own deadline; else nil
	post post
}

func (a timer) less(b timer) bool {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.serial, b.serial)) < 0
}

// due is the place of a timer among all.
type due struct {
	at     eventlog.Timestamp
	serial uint64
}

type post struct {
	in   Input
	hook string // its name; "": the Manager's own
	job  jobid.ID
}

// add adds an alarm of a job. Those that came stay in its list until that is full: to look for
// each when it comes would take too long if many do.
func (t *timers) add(j *job, a timer) {
	t.tree.ReplaceOrInsert(a)
	more := j.ensureRare()
	if list := more.alarms; len(list) == cap(list) {
		list = slices.DeleteFunc(list, func(d due) bool { return !t.tree.Has(timer{due: d}) })
		more.alarms = slices.Grow(list, len(list)+1)
	}
	more.alarms = append(more.alarms, a.due)
}

func (t *timers) pop(now eventlog.Timestamp) (timer, bool) {
	first, ok := t.tree.Min()
	if !ok || first.at > now {
		return timer{}, false
	}
	return t.tree.DeleteMin()
}

// schedule keeps the deadline of a job among the timers.
func (t *timers) schedule(j *job) {
	at, _ := j.life.Deadline() // 0: none
	have := j.rareCopy().timer
	if at == have.at {
		return
	}
	t.tree.Delete(timer{due: have})
	if have = (due{}); at != 0 {
		t.serial++
		have = due{at, t.serial}
		t.tree.ReplaceOrInsert(timer{due: have, job: j})
	}
	j.ensureRare().timer = have
}

func (t *timers) silence(j *job) {
	for _, a := range j.rareCopy().alarms {
		t.tree.Delete(timer{due: a})
	}
}

// A fifo is a queue. The zero fifo is empty.
type fifo[T any] struct {
	list []T
	head int
}

func (q *fifo[T]) len() int { return len(q.list) - q.head }

func (q *fifo[T]) cut(n int) {
	clear(q.list[q.head+n:])
	q.list = q.list[:q.head+n]
}

func (q *fifo[T]) push(v T) { q.list = append(q.list, v) }

func (q *fifo[T]) first() T { return q.list[q.head] }

func (q *fifo[T]) pop() T {
	var none T
	v := q.list[q.head]
	q.list[q.head] = none
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return v
}

func (j *job) annotations() json.RawMessage {
	switch notes := j.rareCopy().notes; {
	case notes == nil:
		return j.job().Annotations()
	case len(notes) > 0:
		return notes
	}
	return nil
}

// merge returns annotations after an update by a valid object, or that they are too long. What is
// too long already may not get longer.
func merge(notes json.RawMessage, patch []byte) (json.RawMessage, error) {
	most := max(maxData, len(notes)+aroundNotes)
	notes, err := jobstate.MergeAnnotations(notes, patch)
	if err == nil {
		err = fitNotes(most, notes, 0)
	}
	return notes, err
}

const aroundNotes = len(`{"annotations":}`) // of an event that has them

func fitNotes(most int, notes []byte, more int) error {
	return fitsIn(most, maxDepth-1, "annotations", notes, more+aroundNotes)
}

// fitMemo returns an error if a memo makes the annotations too long, with or without volatile ones.
// It merges only if it has to, so that many memos of a job do not take the time of each other.
func (j *job) fitMemo(values []byte) error {
	patch := userNotes(values)
	if j.rareCopy().notes != nil {
		if _, err := merge(j.annotations(), patch); err != nil {
			return err
		}
	}
	if fitNotes(maxData, patch, int(j.noted)) == nil {
		j.noted += uint32(len(patch))
		return nil
	}
	notes, err := merge(j.job().Annotations(), patch)
	if err == nil {
		j.noted = uint32(len(notes))
	}
	return err
}

// setNotes sets annotations that are not in the log.
func (j *job) setNotes(notes json.RawMessage) {
	if notes == nil {
		notes = json.RawMessage{}
	}
	j.ensureRare().notes = notes
}

// memoed merges a memo of the log, which fits.
func (j *job) memoed(values []byte) {
	if j.rareCopy().notes == nil {
		return
	}
	notes, err := merge(j.annotations(), userNotes(values))
	must(notLegal, err)
	j.setNotes(notes)
}

// userNotes returns a memo as an update of annotations.
func userNotes(values []byte) []byte {
	return slices.Concat([]byte(`{"user":`), values, []byte("}"))
}

func (j *job) request() []byte {
	if j.spec == nil {
		return j.text
	}
	return j.spec.Text()
}

// A View shows a job until the next Step; the zero View is invalid. What it returns must not be
// changed. Of an inactive job it has what a jobstate.Summary has; the store has the rest.
type View struct {
	table *jobTable
	j     *job             // nil: the job is inactive
	rec   jobstate.Summary // of an inactive job
}

// ID returns the id.
func (v View) ID() jobid.ID {
	if v.j == nil {
		return v.rec.ID
	}
	return v.j.id
}

// UserID returns the user whose job it is.
func (v View) UserID() uint32 {
	if v.j == nil {
		return v.rec.UserID
	}
	return v.j.job().UserID()
}

// State returns the state.
func (v View) State() jobstate.State {
	switch {
	case v.j == nil:
		return jobstate.StateInactive
	case v.j.state == 0: // being submitted, or invalid
		return v.j.job().State()
	}
	return v.j.state
}

// Result returns how the job ended, and false before CLEANUP.
func (v View) Result() (jobstate.Result, bool) {
	if v.j == nil {
		return v.rec.Result, v.rec.Result != 0
	}
	return v.j.job().Result()
}

// Job returns the job as its log says, never nil.
func (v View) Job() *jobstate.Job {
	if v.j == nil {
		return v.rec.Job()
	}
	return v.j.job()
}

// Holds returns the holds on the job's nodes, never nil. An inactive job has none;
// [Manager.Holders] has those of its housekeeping.
func (v View) Holds() *perilog.Holds {
	if v.j == nil {
		return perilog.EndedHolds(v.Job())
	}
	return v.j.life.Holds()
}

// Jobspec returns the jobspec with its updates; nil for an inactive job.
func (v View) Jobspec() *jobspec.Spec {
	if v.j == nil {
		return nil
	}
	return v.table.spec(v.j)
}

// R returns the allocation, without dropped ranks and with the present expiration; nil if
// there is none, and for an inactive job.
func (v View) R() *rset.R {
	if v.j == nil {
		return nil
	}
	return v.j.current()
}

// Annotations returns all annotations as RFC 27 merges them: of the log, of the scheduler while the
// job waits, and volatile memos; nil if there are none, and for an inactive job.
func (v View) Annotations() json.RawMessage {
	if v.j == nil {
		return nil
	}
	return v.j.annotations()
}

// Eventlog returns the job's durable log; nil for an inactive job and in a volatile Manager.
func (v View) Eventlog() []byte {
	if v.j == nil {
		return nil
	}
	return v.j.log[:len(v.j.log):len(v.j.log)]
}

func clearTo[T any](s []T) []T {
	clear(s)
	return s[:0]
}
