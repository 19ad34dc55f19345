package joblife_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// A service is an action of a job that somebody else runs, and that may begin before the
// job has its resources.
type service struct {
	key   perilog.Key
	ranks *idset.Set // that it names
	gone  *idset.Set // of them, what had left the job before, or what it released
	ended bool
}

// serve lets a service start an action of some job, or end one.
func (p *play) serve() {
	id := p.someJob()
	v, ok := p.m.Job(id)
	if !ok || v.Job() == nil {
		return
	}
	for _, s := range p.foreign[id] {
		if !s.ended {
			p.endService(id, s, []int{0, 0, 0, 256}[p.N(4)])
			return
		}
	}
	p.served++
	s := &service{key: perilog.Key{Kind: jobstate.ActionEpilog, Description: fmt.Sprintf("dws%d.", p.served)}, ranks: idset.Range(0, nodes-1), gone: new(idset.Set)}
	if p.P(0.3) && !v.Job().Started() && v.State() != jobstate.StateCleanup {
		s.key.Kind = jobstate.ActionProlog
	}
	text := fmt.Sprintf(`{"description":%q}`, s.key.Description)
	if p.P(0.5) {
		s.ranks = p.someRanks(0.5)
		text = fmt.Sprintf(`{"description":%q,"ranks":"%v"}`, s.key.Description, s.ranks)
	}
	if n := v.Nodes(); n != nil {
		s.gone.UnionWith(n.Released().Ranks)
	}
	if r := v.R(); r != nil { // not what was dropped
		s.gone.UnionWith(idset.Difference(idset.Range(0, nodes-1), r.Ranks()))
	}
	if p.post(id, s.key.Kind.String()+"-start", text) != nil {
		return
	}
	for a := range v.Job().Actions() {
		if a.Description == s.key.Description {
			p.foreign[id] = append(p.foreign[id], s)
		}
	}
}

func (p *play) post(id jobid.ID, name, context string) error {
	tag := p.newTag("service")
	return p.ask(tag, joblife.Post{Tag: tag, ID: id, Name: name, Context: json.RawMessage(context)})
}

func (p *play) endService(id jobid.ID, s *service, status int) {
	kind := s.key.Kind.String()
	if some := p.someRanks(0.5); p.rare(0.3) && p.post(id, kind+"-release", fmt.Sprintf(`{"description":%q,"ranks":"%v","status":0}`, s.key.Description, some)) == nil {
		s.gone.UnionWith(some)
		return
	}
	s.ended = p.post(id, kind+"-finish", fmt.Sprintf(`{"description":%q,"status":%d}`, s.key.Description, status)) == nil
}

// endServices lets each service end.
func (p *play) endServices() {
	var ids []jobid.ID
	for id := range p.foreign {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		for _, s := range p.foreign[id] {
			if !s.ended {
				p.endService(id, s, 0)
			}
		}
	}
}

// serviceLost forgets what services said that is not durable.
func (p *play) serviceLost() {
	for id, list := range p.foreign {
		p.foreign[id] = slices.DeleteFunc(list, func(s *service) bool {
			said := func(what string) bool {
				return bytes.Contains(p.logs[id], fmt.Appendf(nil, `"%v-%s","context":{"description":%q`, s.key.Kind, what, s.key.Description))
			}
			s.ended = said("finish")
			return !said("start")
		})
	}
}

// judgeServices judges that no service holds ranks that are freed.
func (p *play) judgeServices(id jobid.ID, ranks *idset.Set) {
	if !bytes.Contains(p.logs[id], []byte(`"name":"alloc"`)) {
		return // of an allocation that came too late
	}
	for _, s := range p.foreign[id] {
		if held := idset.Difference(idset.Intersect(s.ranks, ranks), s.gone); !s.ended && !held.IsEmpty() {
			p.Fail("I3: ranks %v of %v are freed, and %v holds them", held, id, s.key)
		}
	}
}
