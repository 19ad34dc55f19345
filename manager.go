package joblife

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset/alloc"
)

// The errors of this package. After an error nothing has changed (I6). An event that
// a job's state does not allow is an error of package jobstate or perilog; what the
// scheduler may not say is one of package alloc.
var (
	// ErrClock is returned for a time that no event can have, or one before the
	// last.
	ErrClock = errors.New("joblife: clock stepped")
	// ErrUnknown is returned for a job that the Manager does not have, that a guest may
	// not see, or whose submission is not durable yet.
	ErrUnknown = errors.New("joblife: unknown job")
	// ErrInactive is returned for a change of a job that is over.
	ErrInactive = errors.New("joblife: job is inactive")
	// ErrDenied is returned when a guest asks for what only the job's user or the
	// instance's owner may do.
	ErrDenied = errors.New("joblife: permission denied")
	// ErrInvalid is returned for an input that is wrong in itself. The text says why.
	ErrInvalid = errors.New("joblife: invalid request")
	// ErrLimit is returned for a request beyond a limit of Config, or a fixed one: 2^20
	// waits, 1024 purges that wait for the store, 64 MiB of quarantined jobs, and as many
	// updates of a guest as a restart can apply: about 1000, or 60 of a jobspec of 1 MiB.
	ErrLimit = errors.New("joblife: limit reached")
	// ErrConflict is returned for resources that another job holds. The text has both jobs
	// and what they share.
	ErrConflict = errors.New("joblife: double booking")
	// ErrRefused is returned when a hook refuses a job. The text is the hook's.
	ErrRefused = errors.New("joblife: job refused")
	// ErrOffline is returned for a message of an executor that has not said hello. For
	// a scheduler the error is alloc.ErrProtocol.
	ErrOffline = errors.New("joblife: not connected")
	// ErrAbandoned is returned after Abandon: only [Restore] helps.
	ErrAbandoned = errors.New("joblife: the manager was abandoned")
)

// Defaults and limits of a [Config].
const (
	// DefaultMaxActive is how many jobs may be active by default.
	DefaultMaxActive = 1 << 22
	// DefaultMaxLog is up to how many bytes guests may fill the log of a job by default.
	DefaultMaxLog = 8 << 20

	maxPosts       = 1 << 12 // inputs that hooks may queue in one Step, and for each job
	maxPostsPerJob = 8
	never          = 1 << 40 // seconds: what is due later is never due, and time.Time ends some time after
)

// A Config configures a [Manager]. The zero Config is valid: one queue, no actions, no
// hooks, no purge, and each [Submit] names its ID.
type Config struct {
	// Owner is the user id of the instance; 0 is root. The Manager raises exceptions in
	// its name.
	Owner uint32
	// Private hides the jobs of other users from guests: see [Manager.As].
	Private bool
	// Epoch is the time at which ids begin; Generator is the number of the generator in
	// each id. With a zero Epoch each Submit names its ID.
	Epoch     time.Time
	Generator uint16
	// Queues are the named queues, one of which each job has to name. Without them there
	// is the anonymous queue "". A queue takes and starts jobs until it is told not to.
	// A queue that a Reload adds takes jobs but is stopped, as in flux-core, even if there
	// was one of that name before.
	Queues []string
	// QueuesStopped says that a named queue without a record begins stopped, as in flux-core.
	QueuesStopped bool
	// Offline are the ranks that are offline until the first input Offline; nil is none.
	// Restore decides by them. The set is retained, and must not change.
	Offline *idset.Set
	// Actions are the prologs, epilogs and housekeeping of all jobs.
	Actions perilog.Config
	// Limits say which inactive jobs are purged. The zero Limits purge nothing.
	Limits purge.Limits
	// TombstoneCount and TombstoneAge say how long a purged job still answers
	// dependencies: see [purge.Config].
	TombstoneCount jobstate.Optional[int]
	TombstoneAge   jobstate.Optional[time.Duration]
	// MaxActive limits the number of active jobs at a Submit; 0 means DefaultMaxActive.
	MaxActive int
	// MaxLog limits the bytes of a job's log: the Manager refuses a guest's request that
	// would make it longer. The owner and hooks have room for twice as much. 0 means
	// DefaultMaxLog. What ends a job and what the Manager itself logs comes on top, about 1
	// KiB for each node. The store needs room for that; dirstore has 64 MiB.
	MaxLog int
	// Volatile keeps no records: Ready.Append and the logs of jobs stay empty.
	// It is for simulations that never restart.
	Volatile bool
	// Hooks are called for each event, in this order.
	Hooks []Hooks
}

// A Manager takes in what happens, one Step at a time, and returns what is to be stored
// and done, as a [Ready]. It does no I/O, starts no goroutine and reads no clock. The
// package documentation shows the loop and its duties.
//
// New and Restore make a Manager; the zero Manager is invalid. One goroutine at a time
// uses it. It must not be copied.
type Manager struct {
	_ guard.NoCopy
	outbox

	cfg   Config
	clock time.Time // as the caller said now
	dead  bool      // abandoned

	jobs  map[jobid.ID]*job // those that are not inactive, or whose housekeeping goes on
	lists [8][]*job         // the jobs of m.jobs by the bit of their state
	dirty fifo[*job]        // what is to be settled
	inbox inbox             // what hooks asked for

	index   *purge.Index // its watermark is the greatest id that was given
	purger  purger
	timers  timers
	waits   waits
	invalid map[jobid.ID]*job // jobs that were invalidated and are in the store
	queues  queues

	queue *alloc.Queue
	freed []alloc.Free // what was freed since hello
	sends []alloc.Send // scratch

	exec    bool // an executor said hello
	offline *idset.Set
	scratch perilog.Scratch
	text    []byte         // scratch of apply
	decoded jobstate.Event // scratch of applyEntry
	drains  []*job         // those that wait for drains

	actions    *perilog.Config // of the jobs that are submitted now
	floor      jobid.ID        // ids up to it do not come back: all that are not known any more, as is recorded
	shutdown   shutdown
	quarantine quarantine
	bookings   bookings
}

// New returns a Manager without jobs. It keeps the slices and sets of cfg, which
// must not change. The error names what is wrong with cfg.
func New(cfg Config) (*Manager, error) {
	m := &Manager{
		outbox:   newOutbox(cfg.Volatile),
		cfg:      cfg,
		jobs:     make(map[jobid.ID]*job),
		invalid:  make(map[jobid.ID]*job),
		timers:   newTimers(),
		bookings: newBookings(),
		queue:    alloc.NewQueue(alloc.Config{MaxJobs: cfg.maxActive()}),
		offline:  cfg.Offline,
	}
	if err := m.configure(cfg); err != nil {
		return nil, err
	}
	index, err := purge.New(m.purgeConfig())
	if err != nil {
		return nil, fmt.Errorf("joblife: %w", err)
	}
	m.index = index
	if !cfg.Epoch.IsZero() {
		if _, err := jobid.NewGenerator(cfg.Generator, cfg.Epoch); err != nil {
			return nil, fmt.Errorf("joblife: %w", err)
		}
	}
	return m, nil
}

func (c *Config) maxActive() int {
	if c.MaxActive <= 0 {
		return DefaultMaxActive
	}
	return c.MaxActive
}

// maxLog returns how long the log of a job may get by a request.
func (c *Config) maxLog(by Cred) int {
	n := c.MaxLog
	if n <= 0 {
		n = DefaultMaxLog
	}
	if !by.Guest {
		n *= 2 // what services report of a job must not depend on its user
	}
	return n
}

func (c *Config) check() error {
	if err := c.Actions.Check(); err != nil {
		return err
	}
	if err := c.Limits.Check(); err != nil {
		return fmt.Errorf("joblife: %w", err)
	}
	for i, name := range c.Queues {
		if name == "" || slices.Contains(c.Queues[:i], name) {
			return fmt.Errorf("%w: queue %s: empty, or named twice", ErrInvalid, guard.Quote(name))
		}
	}
	return nil
}

// configure sets what a reload may change.
func (m *Manager) configure(cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	list, added := m.queues.named(cfg.Queues, m.queues == nil && !cfg.QueuesStopped)
	if m.queues != nil { // earlier ones of these names may be in the records
		for _, name := range added {
			m.record(list.record(name))
		}
	}
	m.queues = list
	actions := cfg.Actions
	m.actions = &actions
	m.cfg.Actions, m.cfg.Limits, m.cfg.Queues, m.cfg.Private = cfg.Actions, cfg.Limits, cfg.Queues, cfg.Private
	return nil
}

// Step takes in one input at the time now, and decides what follows. An error refuses the
// input, and nothing has changed. Without an error the input is accepted, but tell nobody
// before the next Ready is done. That Ready has the answer if the input has a Tag.
//
// Now may be the time of the last Step, and is rounded to an [eventlog.Timestamp]. After
// the deadline of a Shutdown the error is perilog.ErrStopped. Panics if a hook calls Step.
func (m *Manager) Step(now time.Time, in Input) error {
	if m.inbox.running != nil {
		panic("joblife: a hook calls Step: it must use Event.Post")
	}
	if m.dead {
		return ErrAbandoned
	}
	t := eventlog.FromTime(now)
	if !guard.IsTime(t) || t < m.now {
		return fmt.Errorf("%w: %v is before %v", ErrClock, t, m.now)
	}
	if m.shutdown.over(t) {
		m.shutdown.at = min(m.shutdown.at, m.now) // for good, whatever the clock says later
		return perilog.ErrStopped
	}
	last := m.now
	m.now = t
	if err := m.dispatch(in); err != nil {
		m.now = last
		return err
	}
	m.clock = now
	m.run()
	return nil
}

// A shutdown has begun or not, and ends at a time; 0: at none.
type shutdown struct {
	begun bool
	at    eventlog.Timestamp
}

func (s shutdown) over(now eventlog.Timestamp) bool { return s.begun && s.at != 0 && now >= s.at }

// stage takes over the timers that hooks have asked for.
func (m *Manager) stage() {
	for _, t := range m.inbox.staged {
		if j := m.jobs[t.post.job]; j != nil && !j.job().Closed() {
			more := j.more()
			more.alarms = append(more.alarms, t)
			m.timers.tree.ReplaceOrInsert(t)
		}
	}
	m.inbox.staged = m.inbox.staged[:0]
}

// run decides until nothing follows. What hooks ask for comes first, so that every
// decision is taken on an empty queue.
func (m *Manager) run() {
	limit := maxPosts + m.inbox.posts.len() + maxPostsPerJob*len(m.jobs)
	for done := 0; ; {
		m.stage()
		switch {
		case m.inbox.posts.len() > 0:
			p := m.inbox.posts.pop()
			err := fmt.Errorf("%w: hooks asked for more than %d inputs in one Step", ErrLimit, limit)
			if done++; done <= limit {
				err = m.dispatchPost(p.in)
			}
			if err != nil {
				m.fault(p.hook, p.job, err)
			}
		case m.dirty.len() > 0:
			if j := m.dirty.first(); !m.settle(j) {
				m.dirty.pop()
				j.dirty = false
			}
		default:
			m.waits.answer(&m.outbox, m.count)
			return
		}
	}
}

// dispatchPost dispatches what a hook has posted.
func (m *Manager) dispatchPost(in Input) error {
	m.inbox.posting = true
	defer func() { m.inbox.posting = false }()
	return m.dispatch(in)
}

func (m *Manager) dispatch(in Input) error {
	// A pointer to an input, or what embeds one, has its methods and may be nil.
	if t := reflect.TypeOf(in); t == nil || t.Kind() != reflect.Struct || t.PkgPath() != inputPath {
		return fmt.Errorf("%w: input %T", ErrInvalid, in)
	}
	return in.dispatch(m)
}

// inputPath is the package of all inputs.
var inputPath = reflect.TypeFor[Tick]().PkgPath()

// Deadline returns the time at which to call Step with a [Tick], and false if there is
// none, as after Abandon and after the deadline of a Shutdown. The time of the last Step
// means at once.
func (m *Manager) Deadline() (time.Time, bool) {
	if m.dead || m.shutdown.over(m.now) {
		return time.Time{}, false
	}
	at := m.purger.due(m.index, m.now, m.cfg.Limits)
	if t, ok := m.timers.tree.Min(); ok {
		at = min(at, t.at)
	}
	switch {
	case at > never:
		return time.Time{}, false
	case at <= m.now: // which may be later than the caller's clock, by its rounding
		return m.clock, true
	}
	t := at.Time()
	if eventlog.FromTime(t) < at { // rounded down, as near the epoch
		t = t.Add(time.Nanosecond)
	}
	return t, true
}

// A timer is something that is due at a time.
type timer struct {
	at     eventlog.Timestamp
	serial uint64
	job    *job // of a job's own deadline; else nil
	post   post
}

func (a timer) less(b timer) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.serial < b.serial
}

// timers are what is due later: deadlines of jobs, and what hooks have asked for.
type timers struct {
	tree   *btree.BTreeG[timer]
	serial uint64 // of the last
}

func newTimers() timers { return timers{tree: btree.NewG(16, timer.less)} }

// alarm returns a timer for a post, which is not among the timers yet.
func (t *timers) alarm(at eventlog.Timestamp, p post) timer {
	t.serial++
	return timer{at: at, serial: t.serial, post: p}
}

// pop returns the first timer that is due, and takes it out.
func (t *timers) pop(now eventlog.Timestamp) (timer, bool) {
	first, ok := t.tree.Min()
	if !ok || first.at > now {
		return timer{}, false
	}
	return t.tree.DeleteMin()
}

// schedule keeps the deadline of a job among the timers.
func (t *timers) schedule(j *job) {
	at, ok := j.nodes.Deadline()
	if !ok {
		at = 0
	}
	have := j.has().timer
	if at == have.at {
		return
	}
	if have.at != 0 {
		t.tree.Delete(timer{at: have.at, serial: have.serial})
	}
	if have = (due{}); at != 0 {
		t.serial++
		have = due{at, t.serial}
		t.tree.ReplaceOrInsert(timer{at: at, serial: t.serial, job: j})
	}
	j.more().timer = have
}

// silence drops what hooks have asked for a later time of a job that is over.
func (t *timers) silence(j *job) {
	for _, a := range j.has().alarms {
		t.tree.Delete(a)
	}
}

// due is where the deadline of a job is among the timers.
type due struct {
	at     eventlog.Timestamp
	serial uint64
}

// signaled has kill timeouts count from now: their signals were not handed out before.
func (m *Manager) signaled() {
	for _, s := range m.out.Signal {
		if j := m.jobs[s.Job]; j != nil {
			j.nodes.Signaled(m.now, s.Signal)
			m.timers.schedule(j)
		}
	}
}

func (Tick) dispatch(m *Manager) error {
	m.signaled()
	for {
		t, ok := m.timers.pop(m.now)
		if !ok {
			break
		}
		if t.job == nil {
			j := m.jobs[t.post.job]
			j.rare.alarms = slices.DeleteFunc(j.rare.alarms, func(a timer) bool { return a.serial == t.serial })
			m.inbox.posts.push(t.post)
			continue
		}
		t.job.rare.timer = due{}
		t.job.nodes.Tick(m.now)
		m.touch(t.job)
	}
	m.purgeByLimits()
	return nil
}

// A fifo is a queue. The zero fifo is empty.
type fifo[T any] struct {
	list []T
	head int
}

func (q *fifo[T]) len() int { return len(q.list) - q.head }

// cut drops all but the first n.
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
