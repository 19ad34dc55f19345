package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
)

// requestsPerSecond is how many requests of a user are served, but for the owner.
const requestsPerSecond = 200

// A list of jobs or nodes counts as so many requests. A request counts as one more for each so
// many bytes that it has, for each few jobs or nodes in its answer, for each so many jobs and
// holders looked at, and for each so many bytes of a job's log.
const (
	perList    = 20
	jobsInOne  = 25
	seenInOne  = 1000
	bytesInOne = 16 << 10
)

// maxReads is how many answers with jobs or nodes are made at once: each may have megabytes.
const maxReads = 8

// waitTime is how long a request waits for a job.
const waitTime = 3 * time.Second

// ErrTakeover is the cause of an orderly end: the next manager takes over at once.
var ErrTakeover = errors.New("manager: takeover")

var errDenied = errors.New("only the owner of the instance may do that")

// listen serves nodes and users, and returns a function that ends that.
func (a *manager) listen(ctx context.Context) (stop func(), err error) {
	if a.limit, err = auth.NewLimiter(requestsPerSecond, 2*requestsPerSecond, 1<<16); err != nil {
		return nil, err
	}
	a.reads = make(chan struct{}, maxReads)
	var subs []*nats.Subscription
	stop = func() {
		for _, s := range subs {
			_ = s.Drain() // what has come is answered
		}
	}
	for subject, handle := range map[string]func(*nats.Msg){
		a.Engine.Subject("up", "*"): a.up,
		a.Engine.Subject("req", "*", "*"): func(m *nats.Msg) {
			uid, ok := a.Engine.User(m.Subject, m.Reply)
			if !ok || uid != a.Manager.Owner && !a.limit.Allow(uid, time.Now()) {
				return // an answer would go to somebody else, or the user sends more than its limit
			}
			a.limit.Charge(uid, time.Now(), len(m.Data)/bytesInOne)
			if strings.HasSuffix(m.Subject, ".jobs") || strings.HasSuffix(m.Subject, ".nodes") {
				a.limit.Charge(uid, time.Now(), perList-1)
			}
			a.request(ctx, m, uid)
		},
	} {
		conn := a.Engine
		if strings.HasSuffix(subject, ".*.*") {
			conn = a.Users
		}
		s, err := conn.Subscribe(subject, handle)
		if err == nil {
			err = s.SetPendingLimits(-1, 256<<20)
		}
		if err != nil {
			stop()
			return nil, fmt.Errorf("manager: %w", err)
		}
		subs = append(subs, s)
	}
	return stop, nil
}

// request begins to serve a request. What is an input is answered when it is durable, and anything
// else by a goroutine of its own.
func (a *manager) request(ctx context.Context, m *nats.Msg, uid uint32) {
	verb := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	owner, known := wire.Verbs[verb]
	by := joblife.Cred{UserID: uid, Guest: uid != a.Manager.Owner}
	kept := request{by: by, sub: m.Sub, reply: m.Reply, verb: verb, bytes: len(m.Data), until: time.Now().Add(waitTime)}
	if verb == "wait" {
		kept.bytes = 0
	}
	tag, ok := a.requests.add(kept)
	if !ok {
		return // the sender tries again
	}
	var r wire.Request
	var in joblife.Input
	err := json.Unmarshal(m.Data, &r)
	switch {
	case err != nil:
	case r.Protocol != wire.Protocol:
		err = fmt.Errorf("protocol %d: this manager has %d", r.Protocol, wire.Protocol)
	case !known:
		err = fmt.Errorf("this manager has no request %.20q", verb)
	case owner && by.Guest:
		err = errDenied
	default:
		in, err = input(tag, by, verb, r)
	}
	switch {
	case err == nil && in == nil:
		go func() {
			if slices.Contains([]string{"job", "jobs", "nodes"}, verb) {
				a.reads <- struct{}{}
				defer func() { <-a.reads }()
			}
			answer, err := a.answer(ctx, by, verb, r)
			if ctx.Err() != nil {
				err = loop.ErrEnded
			}
			a.respond(tag, answer, err)
		}()
		return
	case err == nil:
		err = a.Do(func(*joblife.Manager) (durable func()) {
			if err := a.Step(in); err != nil { // what it is about may not be durable yet
				return func() { a.respond(tag, wire.Answer{}, err) }
			}
			return nil
		})
	}
	if err != nil {
		a.respond(tag, wire.Answer{}, err)
	}
}

// answered responds to requests that were inputs.
func (a *manager) answered(list []joblife.Answer) {
	for _, got := range list {
		a.respond(got.Tag, wire.Answer{ID: got.Job, Count: got.Count, Old: got.Old}, got.Err)
	}
}

// errGoesOn is what a wait gets that has taken long: its sender asks again, perhaps another manager.
var errGoesOn = errors.New("the job goes on")

// endWaits ends the waits that have taken long.
func (a *manager) endWaits() {
	now := time.Now()
	for _, tag := range a.requests.tags(func(r request) bool { return r.verb == "wait" && now.After(r.until) }) {
		a.put(joblife.WaitCancel{Tag: tag})
		a.respond(tag, wire.Answer{}, errGoesOn)
	}
}

// respond answers a request, once. If this manager has lost the lease meanwhile, what it saw may
// be old.
func (a *manager) respond(tag uint64, answer wire.Answer, err error) {
	r, ok := a.requests.end(tag)
	if !ok {
		return
	}
	switch {
	case errors.Is(err, loop.ErrEnded), a.held != nil && !a.held.Fresh():
		answer = wire.Answer{Error: "this manager is not active any more", Retry: true}
	case err != nil:
		answer = wire.Answer{Error: err.Error(), Retry: errors.Is(err, loop.ErrFull) || errors.Is(err, errGoesOn) || errors.Is(err, errEarly)}
	}
	text, err := wire.Marshal(answer)
	if err == nil && int64(len(text)) > a.Users.MaxPayload() {
		text, err = wire.Marshal(wire.Answer{Error: fmt.Sprintf("the answer has %d bytes, more than a message may have", len(text))})
	}
	if err == nil {
		err = (&nats.Msg{Sub: r.sub, Reply: r.reply}).Respond(text)
	}
	if err != nil {
		a.Log.Warn("answer", "verb", r.verb, "error", err)
	}
	if r.verb == "takeover" && answer.Error == "" {
		_ = a.Users.Flush()
		a.end(ErrTakeover)
	}
}

// input returns the input that a request is, or nil.
func input(tag uint64, by joblife.Cred, verb string, r wire.Request) (joblife.Input, error) {
	switch verb {
	case "submit":
		urgency := jobstate.UrgencyDefault
		if r.Urgency != nil {
			urgency = *r.Urgency
		}
		return joblife.Submit{Tag: tag, By: by, Key: r.Key, Jobspec: r.Jobspec, Urgency: urgency}, nil
	case "cancel":
		return joblife.Raise{Tag: tag, By: by, ID: r.ID, Type: "cancel", Note: r.Note}, nil
	case "urgency":
		if r.Urgency == nil {
			return nil, errors.New("the urgency is missing")
		}
		return joblife.SetUrgency{Tag: tag, By: by, ID: r.ID, Urgency: *r.Urgency}, nil
	case "wait":
		return joblife.Wait{Tag: tag, By: by, ID: r.ID, States: jobstate.StateInactive}, nil
	case "purge":
		p := joblife.Purge{Tag: tag, By: by, Force: r.Force}
		if r.MaxAge != nil {
			p.Limits.MaxAge = jobstate.Some(time.Duration(*r.MaxAge))
		}
		if r.MaxCount != nil {
			p.Limits.MaxCount = jobstate.Some(*r.MaxCount)
		}
		if r.All && (r.MaxAge != nil || r.MaxCount != nil) {
			return nil, errors.New("purge all, or what is beyond an age or a number: not both")
		}
		if r.All {
			p.Limits = purge.PurgeAll()
		}
		return p, nil
	}
	return nil, nil
}

// answer returns the answer to a request that is no input.
func (a *manager) answer(ctx context.Context, by joblife.Cred, verb string, r wire.Request) (answer wire.Answer, err error) {
	switch verb {
	case "drain", "resume":
		all := a.Nodes.Ranks()
		if verb == "resume" { // also what an earlier inventory had
			a.mu.Lock()
			all = idset.Union(all, a.drain.ranks())
			a.mu.Unlock()
		}
		err := known(r.Ranks, all)
		switch {
		case err != nil:
		case verb == "resume":
			err = a.resumed(r.Ranks)
		case len(r.Note) > maxReason:
			err = fmt.Errorf("the reason has %d bytes: want %d or fewer", len(r.Note), maxReason)
		default:
			err = a.drained(r.Ranks, r.Note, by.UserID)
		}
		if err == nil {
			a.refresh()
		}
		return answer, err
	case "lost":
		return answer, a.giveUp(ctx, r.Ranks, cmp.Or(r.Note, "the node is lost"))
	case "takeover":
		return answer, nil
	default:
		var seen int
		viewErr := a.View(ctx, func(m *joblife.Manager) { seen, err = a.read(m, by, verb, r, &answer) })
		a.limit.Charge(by.UserID, time.Now(), beyond(&answer, seen))
		if answer.Status != nil {
			answer.Status.Standbys = a.standbys(ctx)
		}
		return answer, cmp.Or(viewErr, err)
	}
}

// errEarly is what an operator gets who gives up a node that has had no time to say hello. The sender
// asks again.
var errEarly = errors.New("this manager does not know yet which nodes are up")

// giveUp ends what nodes hold, since an operator knows that nothing runs there any more. The nodes may
// be of an earlier inventory.
func (a *manager) giveUp(ctx context.Context, set *idset.Set, note string) error {
	all := a.Nodes.Ranks()
	if err := known(set, all); err != nil {
		held := new(idset.Set)
		viewErr := a.View(ctx, func(m *joblife.Manager) {
			for h := range m.Holders() {
				held.UnionWith(h.Ranks)
			}
		})
		if err := cmp.Or(viewErr, known(set, idset.Union(all, held))); err != nil {
			return err
		}
	}
	return a.Hear(func(x *exec.Executor) error {
		for rank := range set.All() {
			if l := a.links[rank]; l != nil && l.up {
				return fmt.Errorf("node %d is up: it can be lost only when it is down", rank)
			}
		}
		if time.Since(a.began) < a.DownTime {
			return errEarly
		}
		a.lost = idset.Union(a.lost, set)
		_ = a.Step(joblife.Offline{Ranks: a.lost}) // before what follows, so that no action is launched there
		a.change(idset.Intersect(set, all), false)
		for rank := range set.All() {
			x.Fail(rank, note)
		}
		return nil
	})
}

func known(set, all *idset.Set) error {
	if set.IsEmpty() {
		return errors.New("no ranks are named")
	}
	if other := idset.Difference(set, all); other.Len() > 0 {
		return fmt.Errorf("there is no node of rank %v: ranks are %v", other, all)
	}
	return nil
}

// beyond returns as how many more requests an answer counts, after a look at so much.
func beyond(answer *wire.Answer, seen int) int {
	more := (len(answer.Jobs)+len(answer.Nodes))/jobsInOne + seen/seenInOne
	for i := range answer.Jobs {
		more += len(answer.Jobs[i].Eventlog) / bytesInOne
	}
	return more
}

// read answers with what there is, and returns how many jobs and holders it looked at.
func (a *manager) read(m *joblife.Manager, by joblife.Cred, verb string, r wire.Request, answer *wire.Answer) (seen int, err error) {
	access := m.As(by)
	switch verb {
	case "job":
		v, ok := access.Job(r.ID)
		if !ok {
			return 0, fmt.Errorf("%w: %v", joblife.ErrUnknown, r.ID)
		}
		info := a.describe(v)
		if !by.Guest || by.UserID == v.UserID() {
			info.Eventlog = string(v.Eventlog())
		}
		if v.State().In(jobstate.StateRunning | jobstate.StateInactive) {
			stats := m.Stats() // Holders sorts all of these
			seen = stats.States[jobstate.StateRun] + stats.States[jobstate.StateCleanup] + stats.Housekeeping
			for h := range m.Holders() {
				if h.Job > r.ID { // they come by job
					break
				} else if h.Job == r.ID {
					info.Holders = append(info.Holders, holder(h))
				}
			}
		}
		answer.Jobs = []wire.JobInfo{info}
	case "jobs":
		limit := min(cmp.Or(max(r.Limit, 0), 100), maxJobs)
		mask := jobstate.StateNew | jobstate.StateActive
		if r.All {
			mask |= jobstate.StateInactive
		}
		for state, n := range m.Stats().States {
			if state.In(mask) {
				seen += n
			}
		}
		var over []joblife.View
		for v := range access.Jobs(mask) {
			if !r.All && v.UserID() != by.UserID && by.Guest || r.User != nil && v.UserID() != *r.User {
				continue
			}
			if v.State() != jobstate.StateInactive {
				answer.Jobs = append(answer.Jobs, a.describe(v))
			} else if over = append(over, v); len(over) >= 2*limit {
				over = slices.Delete(over, 0, limit)
			}
			if len(answer.Jobs) >= maxJobs {
				break
			}
		}
		for _, v := range over[max(0, len(over)-limit):] {
			answer.Jobs = append(answer.Jobs, a.describe(v))
		}
	case "nodes":
		answer.Nodes, seen = a.describeNodes(m, access)
	case "status":
		answer.Status = a.status(m)
	default:
		return 0, errors.ErrUnsupported
	}
	return seen, nil
}

// maxJobs is how many jobs are in one answer.
const maxJobs = 10_000

// maxRecent is how many jobs that are over this manager knows whole. The Manager keeps a
// summary of each.
const maxRecent = 4096

// recent are the jobs that ended last.
type recent struct {
	jobs map[jobid.ID]wire.JobInfo
	ring []jobid.ID
	next int
}

func newRecent(n int) *recent {
	return &recent{jobs: make(map[jobid.ID]wire.JobInfo, n), ring: make([]jobid.ID, n)}
}

// event is a hook: it keeps what is known of a job at its end.
func (r *recent) event(e *joblife.HookEvent) {
	if e.Entry.Name == jobstate.EventClean {
		delete(r.jobs, r.ring[r.next])
		r.ring[r.next], r.jobs[e.Job.ID()] = e.Job.ID(), describe(e.Job)
		r.next = (r.next + 1) % len(r.ring)
	}
}

func (a *manager) describe(v joblife.View) wire.JobInfo {
	if info, ok := a.ended.jobs[v.ID()]; ok && v.State() == jobstate.StateInactive {
		return info
	}
	return describe(v)
}

func describe(v joblife.View) wire.JobInfo { return wire.Describe(v.Job(), v.Jobspec(), v.R()) }

func holder(h joblife.Holder) wire.Holder {
	what := h.Kind.String()
	if h.Description != "" && h.Description != what {
		what += " " + h.Description
	}
	return wire.Holder{ID: h.Job, What: what, Since: h.Since, Ranks: h.Ranks}
}

// describeNodes tells of each node who holds it: jobs that run, and actions. It returns how many
// holders it looked at.
func (a *manager) describeNodes(m *joblife.Manager, access joblife.Access) (list []wire.Node, seen int) {
	list = make([]wire.Node, 0, a.Nodes.Ranks().Len())
	at := make(map[uint32]*wire.Node)
	a.mu.Lock()
	for rank := range a.Nodes.Ranks().All() {
		n := wire.Node{Rank: rank, Up: !a.out.Contains(rank)}
		if d, ok := a.drain.Ranks[rank]; ok {
			n.Drained, n.Since = d.Reason, d.Since
		}
		n.Host, _ = a.Nodes.Host(rank)
		list = append(list, n)
	}
	a.mu.Unlock()
	for i := range list {
		at[list[i].Rank] = &list[i]
	}
	for h := range m.Holders() {
		seen++
		if _, ok := access.Job(h.Job); !ok {
			continue
		}
		for rank := range h.Ranks.All() {
			if n := at[rank]; n != nil && h.Kind != perilog.HolderDrain {
				one := holder(h)
				one.Ranks = idset.Of(rank)
				n.Holders = append(n.Holders, one)
			}
		}
	}
	return list, seen
}

// standbys returns the managers that stand by and answer at once.
func (a *manager) standbys(ctx context.Context) (list []wire.Standby) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	inbox := a.Engine.NewRespInbox()
	sub, err := a.Engine.SubscribeSync(inbox)
	if err != nil {
		return nil
	}
	defer sub.Unsubscribe()
	if a.Engine.PublishRequest(a.Engine.Subject("ping", "all"), inbox, nil) != nil {
		return nil
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break
		}
		var s wire.Standby
		if json.Unmarshal(m.Data, &s) == nil && s.Name != "" {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b wire.Standby) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (a *manager) status(m *joblife.Manager) *wire.Status {
	stats, loopStats := m.Stats(), a.Stats()
	jobs := make(map[string]int)
	for state, n := range stats.States {
		jobs[state.String()] = n
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return &wire.Status{
		Holder: a.Engine.Name(), Epoch: a.epoch, Down: uint64(a.out.Len()), Up: uint64(a.Nodes.Ranks().Len() - a.out.Len()),
		Seq: a.last(), Drained: uint64(len(a.drain.Ranks)), Jobs: jobs, Inputs: loopStats.Inputs, Refused: loopStats.Refused, Commits: loopStats.Commits,
	}
}
