package joblifetest

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// setFlags sets flags of rapid until the test ends.
func setFlags(t *testing.T, values map[string]string) {
	for name, value := range values {
		old := flag.Lookup(name).Value.String()
		require.NoError(t, flag.Set(name, value))
		t.Cleanup(func() { require.NoError(t, flag.Set(name, old)) })
	}
}

// find returns the first error of random runs, which are the same each time.
func find(t *testing.T, run func(*rapid.T) error) (found error) {
	t.Helper()
	runs := 0
	old := flag.Lookup("rapid.seed").Value.String()
	defer func() { require.NoError(t, flag.Set("rapid.seed", old)) }()
	for seed := 1; found == nil && runs < 3000; seed++ {
		require.NoError(t, flag.Set("rapid.seed", strconv.Itoa(seed)))
		rapid.Check(t, func(t *rapid.T) {
			if found == nil {
				found = run(t)
				runs++
			}
		})
	}
	require.Error(t, found, "nothing found in %d runs", runs)
	t.Logf("found in %d runs: %.300v", runs, found)
	return found
}

// bad is a scheduler with a fault.
type bad struct {
	*session
	fault   string
	nodes   *rset.R
	waiting map[jobid.ID]alloc.Request
	out     []alloc.Response
}

func newBad(fault string) func(*rset.R) Scheduler {
	cfg := sched.Config{Policy: sched.EASY{}}
	switch fault {
	case "lets all start that fit":
		cfg.Policy = policy(func(p *sched.Pass) {
			for j := range p.Jobs() {
				p.Start(j.ID)
			}
		})
	case "limits the jobs of a user":
		cfg.Policy = policy(func(p *sched.Pass) {
			runs := make(map[uint32]bool)
			for j := range p.Running() {
				runs[j.UserID] = true
			}
			for j := range p.Jobs() {
				runs[j.UserID] = runs[j.UserID] || p.Start(j.ID)
			}
		})
	case "never answers but cancels":
		cfg.Policy = policy(func(*sched.Pass) {})
	case "gives whole nodes": // to one job at a time, as the pool gives less
		cfg.Policy = policy(func(p *sched.Pass) {
			for j := range p.Jobs() {
				p.Start(j.ID)
				break
			}
		})
	}
	return func(nodes *rset.R) Scheduler {
		has := nodes
		if fault == "takes all nodes for equal" {
			first, _ := nodes.Ranks().Min()
			children := map[string]*idset.Set{"core": nodes.Children(first, "core"), "gpu": nodes.Children(first, "gpu")}
			has, _ = rset.New(rset.Config{Entries: []rset.Entry{{Ranks: nodes.Ranks(), Children: children}}})
			has, _ = has.AssignHosts(nodes.Nodelist())
		}
		return &bad{session: NewScheduler(cfg)(has).(*session), fault: fault, nodes: nodes}
	}
}

type policy func(*sched.Pass)

func (f policy) Schedule(p *sched.Pass) { f(p) }

func (b *bad) Hello(a alloc.Announcement) error {
	said := func(id jobid.ID) bool {
		return slices.ContainsFunc(a.Responses, func(h alloc.HelloResponse) bool { return h.ID == id })
	}
	asked := b.waiting
	b.waiting, b.out = make(map[jobid.ID]alloc.Request), nil
	switch b.fault {
	case "forgets who holds what":
		a.Responses = nil
	case "hands out what hello says is held", "never hands out what hello says is free":
		for i := range a.Responses {
			h := &a.Responses[i]
			if b.fault[0] == 'n' {
				h.Free = nil
			} else if !h.Free.IsEmpty() {
				h.Free = h.R.Ranks()
			}
		}
	case "keeps what was lost on its way":
		for h := range b.Pool().Allocations() {
			if !said(h.ID) {
				a.Responses = append(a.Responses, alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: h.ID}, R: h.R})
			}
		}
	}
	_ = b.session.Hello(a) // it is careless, too
	if b.fault == "answers what an earlier session asked" {
		for _, id := range slices.Sorted(maps.Keys(asked)) {
			_ = b.Handle(asked[id])
		}
	}
	return nil
}

func (b *bad) Update(c pool.Change) error {
	switch b.fault {
	case "gives nodes that are down":
		return nil
	case "does not see nodes come back":
		c.Up = nil
	}
	return b.session.Update(c)
}

func (b *bad) Handle(msg alloc.Message) error {
	switch m := msg.(type) {
	case alloc.Free:
		if b.fault == "keeps what is freed" || b.fault == "ignores frees that are not final" && !m.Final {
			return nil
		}
		if b.fault == "frees all at once" {
			msg = alloc.Free{ID: m.ID, Final: true}
		}
	case alloc.Request:
		if b.fault == "forgets a request" && len(b.waiting) > 0 {
			return nil
		}
		if b.fault == "keeps 32 bits of ids" {
			m.ID = jobid.ID(uint32(m.ID))
			msg = m
		}
		if b.waiting[m.ID] = m; b.fault == "ignores constraints" {
			m.Jobspec = bytes.Replace(m.Jobspec, []byte(`"constraints":`), []byte(`"wishes":`), 1)
			msg = m
		}
	case alloc.Prioritize:
		if b.fault == "ignores prioritize" {
			return nil
		}
	case alloc.Expiration:
		if b.fault == "ignores expiration" {
			return nil
		}
	case alloc.Cancel:
		_, waits := b.waiting[m.ID]
		switch {
		case b.fault == "ignores cancel":
			return nil
		case b.fault == "answers a cancel that comes too late" && !waits:
			b.out = append(b.out, alloc.Response{ID: m.ID, Type: alloc.ResponseCancel})
		case b.fault == "gives to a canceled job" && waits:
			delete(b.waiting, m.ID)
			b.out = append(b.out, alloc.Response{ID: m.ID, Type: alloc.ResponseSuccess, R: b.nodes})
			return nil
		}
	}
	_ = b.session.Handle(msg)
	return nil
}

func without(r *rset.R, keep func(rank uint32, kind string, id, last uint32) bool) *rset.R {
	var c rset.Config
	for e := range r.Entries() {
		for rank := range e.Ranks.All() {
			one := rset.Entry{Ranks: idset.Of(rank), Children: make(map[string]*idset.Set)}
			for kind, ids := range e.Children {
				last, _ := ids.Max()
				set := new(idset.Set)
				for id := range ids.All() {
					if keep(rank, kind, id, last) {
						set.Insert(id)
					}
				}
				if !set.IsEmpty() {
					one.Children[kind] = set
				}
			}
			if len(one.Children) > 0 {
				c.Entries = append(c.Entries, one)
			}
		}
	}
	c.Start, c.Expiration = r.Start(), r.Expiration()
	less, err := rset.New(c)
	if err != nil || less.IsEmpty() {
		return r
	}
	var hosts []string
	for rank := range less.Ranks().All() {
		host, _ := r.Host(rank)
		hosts = append(hosts, host)
	}
	less, _ = less.AssignHosts(hostlist.Of(hosts...))
	return less
}

func (b *bad) Decide(now eventlog.Timestamp) []alloc.Response {
	if b.fault == "never answers" {
		return nil
	}
	out := append(b.out, b.session.Decide(now)...)
	b.out = nil
	for i := range out {
		delete(b.waiting, out[i].ID)
		r := out[i].R
		if r == nil {
			continue
		}
		switch last, _ := r.Ranks().Max(); b.fault {
		case "gives what does not exist":
			r, _ = rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(99), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
		case "gives fewer nodes":
			r = without(r, func(rank uint32, _ string, _, _ uint32) bool { return rank != last })
		case "gives fewer cores":
			r = without(r, func(rank uint32, kind string, id, lastID uint32) bool {
				return rank != last || kind != "core" || id != lastID
			})
		case "gives no gpus":
			r = without(r, func(_ uint32, kind string, _, _ uint32) bool { return kind != "gpu" })
		case "gives more than asked":
			r, _ = b.nodes.Restrict(r.Ranks())
			r, _ = r.WithTimes(out[i].R.Start(), out[i].R.Expiration())
		case "numbers the nodes from 0":
			var entries []rset.Entry
			for rank := range r.Ranks().All() {
				n := idset.Intersect(b.nodes.Ranks(), idset.Range(0, rank)).Len() - 1
				entries = append(entries, rset.Entry{Ranks: idset.Of(uint32(n)), Children: map[string]*idset.Set{"core": r.Children(rank, "core")}})
			}
			r, _ = rset.New(rset.Config{Entries: entries, Start: r.Start(), Expiration: r.Expiration()})
			r, _ = r.AssignHosts(out[i].R.Nodelist())
		case "responds twice":
			return append(out, out[i])
		case "denies what is feasible":
			out[i] = alloc.Response{ID: out[i].ID, Type: alloc.ResponseDeny}
			continue
		case "has a clock of its own":
			r, _ = r.WithTimes(now+1, 0)
		case "starts jobs in 1970":
			r, _ = r.WithTimes(0, max(0, r.Expiration()-r.Start()))
		case "names no hosts":
			c := rset.Config{Entries: slices.Collect(r.Entries()), Start: r.Start(), Expiration: r.Expiration()}
			r, _ = rset.New(c)
		case "names other hosts":
			r, _ = r.AssignHosts(hostlist.Of([]string{"a", "b", "c", "d", "e", "f"}[:r.Len()]...))
		case "gives too little time":
			if r.Expiration() > 0 {
				r, _ = r.WithTimes(now, (now+r.Expiration())/2)
			}
		case "gives whole nodes":
			r, _ = b.nodes.Restrict(r.Ranks())
			r, _ = r.WithTimes(out[i].R.Start(), out[i].R.Expiration())
			if len(cores(r, r.Ranks())) == len(cores(out[i].R, r.Ranks())) {
				continue // which is no fault, and the hello would forget other jobs
			}
			_ = b.session.Handle(alloc.Free{ID: out[i].ID, Final: true})
			_ = b.session.Handle(alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: out[i].ID}, R: r})
			_, _ = b.EndHello()
			out[i].R = r
			return append(out, b.Decide(now)...)
		case "gives a node twice":
			if i > 0 && out[i-1].R != nil {
				r = out[i-1].R
			}
		}
		out[i].R = r
	}
	return out
}

// stories are messages that a story has, in this order: those that it is about.
var stories = map[string]string{
	"gives fewer nodes":                 "submit.*sched: request.*response: SUCCESS",
	"ignores frees that are not final":  "response: SUCCESS.*the executor says release.*sched: free.*final=false",
	"ignores cancel":                    "sched: request.*sched: cancel",
	"ignores prioritize":                "sched: request.*prioritize",
	"gives nodes that are down":         "rank .*: d.*response: SUCCESS",
	"hands out what hello says is held": `sched: ƒ.* of which ".*" is free.*response: SUCCESS`,
}

func TestABadSchedulerIsFound(t *testing.T) {
	const waits = "comes first|does not respond|is left in SCHED"
	for fault, want := range map[string]string{
		"gives fewer nodes":                       `gives it \d+ (nodes|slots).* it asks for`,
		"gives fewer cores":                       `gives it \d+ (nodes|slots).* it asks for|a part of a node`,
		"gives no gpus":                           `gives it \d+ slots.* gpus|a part of a node`,
		"gives more than asked":                   "more than it asks for",
		"gives whole nodes":                       "more than it asks for",
		"gives what does not exist":               "what does not exist: rank 99 has no core 0",
		"takes all nodes for equal":               "what does not exist: rank . has no [cg]",
		"numbers the nodes from 0":                "what does not exist: rank . has no core|and those of rank|its constraints do not allow|double booking",
		"keeps 32 bits of ids":                    "responds .*, and has no request for it in this session",
		"gives a node twice":                      "double booking: core . of rank . is held by ƒ",
		"gives nodes that are down":               "gives it rank .*, which is down or drained",
		"does not see nodes come back":            waits,
		"gives too little time":                   "gives it resources from .* to .*: it asks for",
		"has a clock of its own":                  "take the time from Decide",
		"starts jobs in 1970":                     "take the time from Decide",
		"names no hosts":                          `gives it the hosts "", and those of rank .* are "n`,
		"names other hosts":                       `gives it the hosts "[[]?a.*", and those of rank .* are "n`,
		"ignores constraints":                     "gives it rank .*, which its constraints do not allow",
		"ignores frees that are not final":        waits,
		"keeps what is freed":                     waits + "|denies it",
		"frees all at once":                       "double booking",
		"ignores cancel":                          "does not respond to its request, which was canceled",
		"answers a cancel that comes too late":    "responds CANCEL, and has responded (SUCCESS|DENY) before",
		"gives to a canceled job":                 "responds SUCCESS to a request that was canceled",
		"ignores prioritize":                      "comes first",
		"lets all start that fit":                 "and so delays job .* which comes first and could start at",
		"ignores expiration":                      "and so delays job .* which comes first and could start at",
		"responds twice":                          "responds .*, and has responded .* before",
		"denies what is feasible":                 "denies it, and it fits",
		"never answers":                           waits,
		"forgets a request":                       waits,
		"answers what an earlier session asked":   waits + "|and has no request for it in this session",
		"forgets who holds what":                  "double booking",
		"hands out what hello says is held":       "double booking",
		"never hands out what hello says is free": waits,
		"keeps what was lost on its way":          waits + "|denies it",
	} {
		t.Run(fault, func(t *testing.T) {
			found := find(t, func(t *rapid.T) error { return runScheduler(t, newBad(fault), SchedulerConfig{}) })
			first, story, _ := strings.Cut(found.Error(), "\n")
			require.Regexp(t, want, first)
			require.Contains(t, story, "the nodes are rank")
			require.Contains(t, story, "sched: request ")
			require.Regexp(t, "(?s)"+stories[fault], story)
		})
	}
}

// An expiration matters in many runs: a scheduler that ignores them is found in 1 of 40.
func TestAnIgnoredExpirationIsFoundSoon(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("it takes seconds")
	}
	setFlags(t, map[string]string{"rapid.seed": "1", "rapid.checks": "200"})
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		if runScheduler(t, newBad("ignores expiration"), SchedulerConfig{}) != nil {
			found++
		}
	})
	require.GreaterOrEqual(t, found, 5, "in 200 runs")
}

// What is legal for some schedulers, and found in others, the option allows.
func TestAnyOrderAllowsWhatItSays(t *testing.T) {
	for range map[bool]int{false: 1, true: 20}[os.Getenv("JOBLIFE_DEEP") != ""] {
		rapid.Check(t, func(t *rapid.T) {
			fault := rapid.SampledFrom([]string{"ignores prioritize", "lets all start that fit", "ignores expiration"}).Draw(t, "fault")
			RunScheduler(t, newBad(fault), SchedulerConfig{AnyOrder: true})
		})
	}
}

// A limit is no fault where jobs may wait, and found elsewhere. What is not safe is found there too.
func TestMayWaitAllowsWhatItSays(t *testing.T) {
	const limit = "limits the jobs of a user"
	rapid.Check(t, func(t *rapid.T) { RunScheduler(t, newBad(limit), SchedulerConfig{MayWait: true}) })
	rapid.Check(t, func(t *rapid.T) { RunScheduler(t, newBad("never answers but cancels"), SchedulerConfig{MayWait: true}) })
	for _, c := range []struct {
		fault string
		cfg   SchedulerConfig
		want  string
	}{
		{limit, SchedulerConfig{}, "comes first and fits"},
		{limit, SchedulerConfig{AnyOrder: true}, "no job starts, and each job that waits fits, such as job ƒ"},
		{"gives a node twice", SchedulerConfig{MayWait: true}, "double booking"},
		{"frees all at once", SchedulerConfig{MayWait: true}, "double booking"},
		{"gives nodes that are down", SchedulerConfig{MayWait: true}, "which is down or drained"},
		{"ignores cancel", SchedulerConfig{MayWait: true}, "does not respond to its request, which was canceled"},
		{"denies what is feasible", SchedulerConfig{MayWait: true}, "denies it, and it fits"},
	} {
		t.Run(fmt.Sprintf("%s %+v", c.fault, c.cfg), func(t *testing.T) {
			found := find(t, func(t *rapid.T) error { return runScheduler(t, newBad(c.fault), c.cfg) })
			first, _, _ := strings.Cut(found.Error(), "\n")
			require.Regexp(t, c.want, first)
		})
	}
}

// late is a policy that forgets a job which has waited for an hour.
type late struct{}

func (late) Schedule(p *sched.Pass) {
	for job := range p.Jobs() {
		if p.Now()-job.Submit > 3600 || !p.Start(job.ID) {
			return
		}
	}
}

// Workloads last long enough for a rule about an hour.
func TestARuleAboutAnHourIsTried(t *testing.T) {
	found := find(t, func(t *rapid.T) error {
		return runScheduler(t, NewScheduler(sched.Config{Policy: late{}}), SchedulerConfig{})
	})
	require.Regexp(t, "comes first|is left in SCHED", found.Error())
}
