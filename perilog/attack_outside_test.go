package perilog_test

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// What comes from outside the Job: services with actions of their own, configurations,
// an executor that does not start the job.

// A service is an action that somebody else runs.
type service struct {
	key   jobstate.ActionKey
	ranks *idset.Set // what it holds
	named []string
	ended bool
}

// serve lets a service start an action, end it on ranks, or end it.
func (w *world) serve() {
	active := w.active()
	if len(active) == 3 || len(active) > 0 && w.P(0.4) {
		w.endService(active[w.N(len(active))], w.P(0.8))
		return
	}
	w.served++
	s := &service{key: jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: fmt.Sprintf("dws%d.", w.served)}, ranks: w.all()}
	if w.P(0.3) {
		s.key.Kind = jobstate.ActionProlog
	}
	if r := w.job.R(); r != nil {
		s.ranks = r.Ranks().Clone() // not what was dropped
	}
	context := fmt.Sprintf(`{"description":%q`, s.key.Description)
	if w.P(0.5) {
		s.ranks = w.someRanks(0.5)
		context += fmt.Sprintf(`,"ranks":"%v"`, s.ranks)
	}
	if w.P(0.5) && w.named != nil {
		if len(w.job.Holds().Released().Named) == 0 {
			s.named = w.named
		}
		context += fmt.Sprintf(`,"resources":[%q]`, w.named[0])
	}
	s.ranks.SubtractWith(w.job.Holds().Released().Ranks)
	if w.apply(s.key.Kind.String()+"-start", context+"}") && slices.ContainsFunc(slices.Collect(w.job.State().Actions()), func(a jobstate.ActiveAction) bool {
		return a.Description == s.key.Description
	}) {
		w.services = append(w.services, s)
	}
}

// endService ends an action of a service, or a part of it.
func (w *world) endService(s *service, well bool) {
	kind := s.key.Kind.String()
	if some := w.someRanks(0.5); w.P(0.3) && w.apply(kind+"-release", fmt.Sprintf(`{"description":%q,"ranks":"%v","status":0}`, s.key.Description, some)) {
		s.ranks.SubtractWith(some)
		return
	}
	status := 256
	if well {
		status = 0
	}
	s.ended = w.apply(kind+"-finish", fmt.Sprintf(`{"description":%q,"status":%d}`, s.key.Description, status))
}

// active returns the actions of services that have not ended.
func (w *world) active() []*service {
	return slices.DeleteFunc(slices.Clone(w.services), func(s *service) bool { return s.ended })
}

// serviceLost forgets what services said that is not durable.
func (w *world) serviceLost() {
	w.services = slices.DeleteFunc(w.services, func(s *service) bool {
		said := func(what string) bool {
			return bytes.Contains(w.log, fmt.Appendf(nil, `"%v-%s","context":{"description":%q`, s.key.Kind, what, s.key.Description))
		}
		s.ended = said("finish")
		return !said("start")
	})
}

func (w *world) all() *idset.Set { return idset.Range(0, w.n-1) }

// reload gives a job that lives another configuration.
func (w *world) reload() {
	w.configure()
	w.Say("reload")
	w.Must(w.job.SetConfig(w.cfg))
}

// always yields the actions of a kind that each configuration since alloc has for a
// rank: whenever their phase began, they were due.
func (w *world) always(k jobstate.ActionKind, rank uint32) (keys []jobstate.ActionKey) {
	for i, c := range w.cfgs {
		var has []jobstate.ActionKey
		list := c.Epilogs
		if k == jobstate.ActionProlog {
			list = c.Prologs
		}
		for _, a := range list {
			key := jobstate.ActionKey{Kind: k, Description: a.Description}
			if key.Description == "" {
				key.Description = "job-manager." + k.String()
			}
			if a.Ranks == nil || a.Ranks.Contains(rank) {
				has = append(has, key)
			}
		}
		if i == 0 {
			keys = has
		}
		keys = slices.DeleteFunc(keys, func(key jobstate.ActionKey) bool { return !slices.Contains(has, key) })
	}
	return keys
}

// every reports whether all configurations since alloc have something.
func (w *world) every(has func(*perilog.Config) bool) bool {
	return !slices.ContainsFunc(w.cfgs, func(c *perilog.Config) bool { return !has(c) })
}

// judgePrologs judges that each rank on which the job starts was prepared, or that its
// own failure is tolerated.
func (w *world) judgePrologs(rank uint32) {
	if w.forced.Contains(rank) || w.told.Contains(rank) || w.wasOffline.Contains(rank) || !w.every(func(c *perilog.Config) bool { return !c.Tolerate.AnyFailure }) {
		return
	}
	for _, key := range w.always(jobstate.ActionProlog, rank) {
		if !w.good[place{key, rank}] {
			w.fail("I11: the job starts on rank %d, which %v has not prepared", rank, key)
		}
	}
}

// unstarted lets the executor say something else of a job that it was asked for than
// that it starts, and reports whether it did.
func (w *world) unstarted() bool {
	x := w.N(12)
	if w.job.State().Finished() {
		x %= 2 // it has run, and did not say so
	}
	switch x {
	case 0:
		w.Say("the executor refuses")
		w.job.NotStarted(w.now)
	case 1:
		if !w.apply("release", `{"ranks":"all","final":true}`) {
			return false
		}
	case 2:
		return w.job.State().State() == jobstate.StateRun && w.apply("finish", `{"status":0}`)
	default:
		return false
	}
	w.asked, w.started = false, false
	clear(w.shells)
	return true
}

// unasked says that a job has started that nobody was asked for.
func (w *world) unasked() {
	if w.asked || w.job.Starting() || w.job.State().Started() || !w.apply("start", "") {
		return
	}
	if w.job.State().State() != jobstate.StateRun {
		w.fail("I11: a start that nobody was asked for was accepted in %v", w.job.State().State())
	}
	w.job.Take(w.now) // and it is forgotten, as nothing of it is durable
	w.crash()
}
