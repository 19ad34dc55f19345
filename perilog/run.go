package perilog

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// Limits of a [Spec].
const (
	MaxRunRanks    = 1 << 20 // the number of ranks
	MaxDescription = 256     // the bytes of a description
)

// DefaultKillTimeout is the kill timeout where a [Spec] names none. A shorter
// one drains nodes that are only slow.
const DefaultKillTimeout = 60 * fsd.Second

// A RunKind says what a run is for. The zero RunKind is invalid.
type RunKind uint8

// The kinds of runs.
const (
	RunProlog       RunKind = 1 + iota // before the job starts
	RunEpilog                          // after it, while it still holds its resources
	RunHousekeeping                    // after it has released them
)

// String returns "prolog", "epilog" or "housekeeping"; another value prints as
// RunKind(n).
func (k RunKind) String() string {
	switch k {
	case RunProlog:
		return "prolog"
	case RunEpilog:
		return "epilog"
	case RunHousekeeping:
		return "housekeeping"
	}
	return "RunKind(" + strconv.Itoa(int(k)) + ")"
}

// A CancelPolicy says whether a fatal exception of the job cancels a run.
type CancelPolicy uint8

// The policies.
const (
	CancelDefault     CancelPolicy = iota // CancelOnException for a prolog, CancelNever for the others
	CancelOnException                     // a fatal exception cancels the run
	CancelNever                           // no exception does: users can raise them on their jobs
)

// A Spec says what a [Run] runs, where, and for how long.
type Spec struct {
	Kind RunKind

	// Description is the action's name in the job's log; "" means
	// "job-manager.prolog" or "job-manager.epilog", as in the reference, and
	// "housekeeping".
	// It has at most MaxDescription bytes of UTF-8 and no control characters.
	Description string

	Job    jobid.ID
	UserID uint32 // the user of the job

	// Ranks are those that the command prepares or cleans up: at least one, at
	// most MaxRunRanks.
	Ranks *idset.Set

	// Offline are ranks that are known to be offline: nothing is launched on
	// them. Ranks that are not to run the command are ignored. nil is none.
	Offline *idset.Set

	// Hosts gives the ranks their names, for notes; nil if they are not known.
	Hosts *rset.R

	Command []string // may be empty, where the embedder knows what to run

	// PerRank runs the command on every rank. Otherwise it runs once, on rank
	// Leader, which need not be one of Ranks: it ends for all ranks at once, and
	// as it tells nothing of any node but by [Control] lines, only nodes that
	// those name are drained, and that of Leader where the command may run on
	// after it was given up or lost.
	PerRank bool
	Leader  uint32

	Timeout     fsd.Duration // counted from the launch; 0 and infinite: none
	KillTimeout fsd.Duration // from SIGTERM to giving up; 0: DefaultKillTimeout; not infinite

	// Kill sends SIGKILL to what is deaf to SIGTERM when it is given up. That
	// can leave orphans of the command behind, and so is not the default.
	Kill bool

	Cancel   CancelPolicy
	Tolerate Tolerate
}

// title returns the words that notes and reasons begin with: the kind, and the
// description where it tells more than the kind.
func (s *Spec) title() string {
	if s.Description == s.Kind.description() {
		return s.Kind.String()
	}
	return s.Kind.String() + " " + s.Description
}

// description returns the description of runs without one of their own.
func (k RunKind) description() string {
	if k == RunHousekeeping {
		return "housekeeping"
	}
	return "job-manager." + k.String()
}

// describes reports whether a text can be a description.
func describes(s string) bool {
	return len(s) <= MaxDescription && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// clone returns a copy that shares nothing with s but Hosts, which is immutable.
func (s Spec) clone() Spec {
	s.Ranks = s.Ranks.Clone()
	s.Offline = s.Offline.Clone()
	s.Command = slices.Clone(s.Command)
	s.Tolerate = s.Tolerate.clone()
	return s
}

// complete fills in the defaults.
func (s *Spec) complete() {
	if s.Description == "" {
		s.Description = s.Kind.description()
	}
	if s.Timeout.IsInfinite() {
		s.Timeout = 0
	}
	if s.KillTimeout == 0 {
		s.KillTimeout = DefaultKillTimeout
	}
	if s.Cancel == CancelDefault {
		s.Cancel = CancelNever
		if s.Kind == RunProlog {
			s.Cancel = CancelOnException
		}
	}
}

// check returns what is wrong with s as it was given, or nil.
func (s *Spec) check() error {
	bad := func(field, reason string) error { return &SpecError{Field: field, Reason: reason} }
	switch n := s.Ranks.Len(); {
	case s.Kind < RunProlog || s.Kind > RunHousekeeping:
		return bad("Kind", "is none of the kinds")
	case !describes(s.Description):
		return bad("Description", "is too long, or has control characters or invalid UTF-8")
	case n == 0:
		return bad("Ranks", "is empty")
	case n > MaxRunRanks:
		return bad("Ranks", "has more than "+strconv.Itoa(MaxRunRanks)+" ranks")
	case !s.PerRank && s.Leader > idset.MaxID:
		return bad("Leader", "is no rank")
	case !s.Timeout.IsValid():
		return bad("Timeout", "is not a duration")
	case !s.KillTimeout.IsValid() || s.KillTimeout.IsInfinite():
		return bad("KillTimeout", "is not a finite duration")
	case s.Cancel > CancelNever:
		return bad("Cancel", "is none of the policies")
	}
	return s.Tolerate.check()
}

// A RunState says how far a run is.
type RunState uint8

// The states of a run. The zero RunState is invalid.
const (
	RunReady     RunState = 1 + iota // not started
	RunRunning                       // launched
	RunCanceling                     // canceled: SIGTERM was sent, the kill timeout runs
	RunTimingOut                     // past its timeout: SIGTERM was sent, the kill timeout runs
	RunDone                          // every rank has ended
)

// String returns "ready", "running", "canceled", "timeout" or "done", of which
// the middle three are the reference's words; another value prints as
// RunState(n).
func (s RunState) String() string {
	switch s {
	case RunReady:
		return "ready"
	case RunRunning:
		return "running"
	case RunCanceling:
		return "canceled"
	case RunTimingOut:
		return "timeout"
	case RunDone:
		return "done"
	}
	return "RunState(" + strconv.Itoa(int(s)) + ")"
}

// A Run is one action, the command of a prolog, an epilog or housekeeping, on
// the ranks of one job. It does nothing itself: what it wants done comes out of
// [Run.Requests], what happened goes in by [Run.Report] and the like, and time
// passes by [Run.Tick]. NewRun makes one.
//
// Each rank ends exactly once, with one [End], and the run is done when all
// have: whatever is reported, in whatever order, twice, late or never. A run
// with a timeout is done at the latest when the timeout and the kill timeout
// have passed, if Tick is called at every [Run.Deadline].
//
// Times are those of the caller. One that is before the latest, or no time at
// all, is taken as the latest: a report counts whatever the clock does, and a
// clock that steps back delays timers until it has caught up.
//
// A Run must not be copied, and one goroutine at a time may use it.
type Run struct {
	spec  Spec
	state RunState

	now, start, end eventlog.Timestamp
	deadline        eventlog.Timestamp // 0: none

	spans []span
	slots []slot // of spec.Ranks, in their order
	lead  slot   // of the one process, unless spec.PerRank

	alive int // processes that may be running
	open  int // ranks that have not ended
	bad   int // ranks that ended, not ok
	spare int // of those, ranks that are tolerated by name
	worst int32

	canceled bool // state was RunCanceling
	fatal    bool // the job has a fatal exception

	head, tail int32 // of the ranks ended and not yet told, as a list in slots; -1: none

	requests, out []Request
	details       details
	outcome       *Outcome // once it was asked for
}

// span is a range of consecutive ranks: the slot of rank first+i is base+i.
type span struct {
	first, last uint32
	base        int32
}

// slot is what is known of one rank, or of the one process.
type slot struct {
	next     int32 // in the list of ended ranks
	status   int32
	cause    Cause // 0: not ended
	launched bool  // a process may be running
	started  bool  // and said so
	reported bool  // a control line named the node as failed
	drained  bool
}

// sigterm and sigkill are the signals that a run asks for.
const (
	sigkill = 9
	sigterm = 15
)

// NewRun returns a run that is not started. It copies the spec, defaults filled
// in: what becomes of a configuration later changes nothing. The error is a
// *SpecError.
func NewRun(spec Spec) (*Run, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	r := &Run{spec: spec.clone(), state: RunReady, head: -1, tail: -1}
	r.spec.complete()
	base := int32(0)
	for first, last := range r.spec.Ranks.Ranges() {
		r.spans = append(r.spans, span{first: first, last: last, base: base})
		base += int32(last - first + 1)
	}
	r.slots = make([]slot, base)
	r.open = int(base)
	return r, nil
}

// Spec returns a copy of what the run was made of, defaults filled in.
func (r *Run) Spec() Spec { return r.spec.clone() }

// State returns how far the run is.
func (r *Run) State() RunState { return r.state }

// Done reports whether every rank has ended.
func (r *Run) Done() bool { return r.state == RunDone }

// Start launches the run: the timeout counts from now on, whether any rank ever
// says that it started. Ranks that are offline end at once, and if all are the
// run is done. The error is a *SpecError if now is not finite and greater than
// 0, ErrStarted if the run was started before; after an error nothing has
// changed.
func (r *Run) Start(now eventlog.Timestamp) error {
	ranks, err := r.begin(now, now)
	if err == nil && !ranks.IsEmpty() {
		r.request(Request{Kind: RequestLaunch, Ranks: ranks, Command: slices.Clone(r.spec.Command)})
	}
	return err
}

// Reattach is Start of what was launched before, at since, and may be running
// still, as after a restart: nothing is launched, and the timeout counts from
// since. A since after now is taken as now. If the timeout has passed, SIGTERM is
// asked for at once, perhaps for the second time, and what ends from now on timed
// out, for it may have been told to stop before.
func (r *Run) Reattach(since, now eventlog.Timestamp) error {
	_, err := r.begin(since, now)
	if err == nil {
		r.Tick(now)
	}
	return err
}

// begin starts the run and returns where processes are expected.
func (r *Run) begin(since, now eventlog.Timestamp) (*idset.Set, error) {
	for _, t := range []eventlog.Timestamp{since, now} {
		if !(t > 0) || math.IsInf(float64(t), 0) {
			return nil, &SpecError{Field: "now", Reason: "is not finite and greater than 0"}
		}
	}
	if r.state != RunReady {
		return nil, ErrStarted
	}
	r.state, r.now, r.start = RunRunning, now, min(since, now)
	if r.spec.Timeout > 0 {
		r.deadline = after(r.start, r.spec.Timeout)
	}
	ranks := r.launchAll()
	r.finishIfDone()
	return ranks, nil
}

// launchAll marks every process as launched but those of offline ranks, which
// end, and returns where they are.
func (r *Run) launchAll() *idset.Set {
	if !r.spec.PerRank {
		if r.spec.Offline.Contains(r.spec.Leader) {
			r.endAll(CauseOffline, statusUnreachable)
			return new(idset.Set)
		}
		r.lead.launched, r.alive = true, 1
		return idset.Of(r.spec.Leader)
	}
	ranks := idset.Difference(r.spec.Ranks, r.spec.Offline)
	i := int32(0)
	for rank := range r.spec.Ranks.All() {
		if r.spec.Offline.Contains(rank) {
			r.endRank(i, rank, CauseOffline, statusUnreachable)
		} else {
			r.slots[i].launched = true
			r.alive++
		}
		i++
	}
	return ranks
}

// index returns the slot of a rank, or false if it is not one of the run's.
func (r *Run) index(rank uint32) (int32, bool) {
	k := sort.Search(len(r.spans), func(k int) bool { return r.spans[k].last >= rank })
	if k == len(r.spans) || rank < r.spans[k].first {
		return 0, false
	}
	return r.spans[k].base + int32(rank-r.spans[k].first), true
}

// rank returns the rank of a slot.
func (r *Run) rank(i int32) uint32 {
	k := sort.Search(len(r.spans), func(k int) bool { return r.spans[k].base > i }) - 1
	return r.spans[k].first + uint32(i-r.spans[k].base)
}

// process returns the slot of the process on a rank, or nil if there is none.
func (r *Run) process(rank uint32) (*slot, int32) {
	if !r.spec.PerRank {
		if rank != r.spec.Leader {
			return nil, 0
		}
		return &r.lead, 0
	}
	i, ok := r.index(rank)
	if !ok {
		return nil, 0
	}
	return &r.slots[i], i
}

// after returns the time that is d after t, which must be finite.
func after(t eventlog.Timestamp, d fsd.Duration) eventlog.Timestamp {
	return min(t+eventlog.Timestamp(d), math.MaxFloat64)
}

// advance makes now the latest time.
func (r *Run) advance(now eventlog.Timestamp) {
	r.now = r.latest(now)
}

// latest returns now if it is a time and not before the latest, or else that.
func (r *Run) latest(now eventlog.Timestamp) eventlog.Timestamp {
	if now > r.now && !math.IsInf(float64(now), 0) {
		return now
	}
	return r.now
}
