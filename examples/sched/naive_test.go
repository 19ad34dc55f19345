package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// This file is the machine as a child would keep it: every core and gpu of
// every node is in a map by itself, with the job that owns it. It shares no
// code with the pool and knows nothing of ranges.

// unit is one core or gpu.
type unit struct {
	rank uint32
	kind string
	id   uint32
}

// node is what is known of a rank.
type node struct {
	cores, gpus int
	big         bool // has a property
	down        bool
}

// wish is what a job asks for.
type wish struct {
	nodes       int64 // the least; 0: not by node
	mostNodes   int64 // 0: as nodes; -1: any number
	slots       int64 // on each node, or in all
	cores, gpus int64 // for each slot
	whole       bool  // nodes for itself
	constraint  int   // index of constraints
	duration    float64
}

// constraints are those that jobs have, in the form of RFC 31 and in Go.
var constraints = []struct {
	json  string
	allow func(rank uint32, n node) bool
}{
	{"", func(uint32, node) bool { return true }},
	{`{"properties":["big"]}`, func(_ uint32, n node) bool { return n.big }},
	{`{"properties":["^big"]}`, func(_ uint32, n node) bool { return !n.big }},
	{`{"ranks":["4-11"]}`, func(r uint32, _ node) bool { return r >= 4 && r <= 11 }},
	{`{"or":[{"hostlist":["n[0-2]"]},{"properties":["big"]}]}`, func(r uint32, n node) bool { return r <= 2 || n.big }},
	{`{"not":[{"hostlist":["n[0-2],n7"]}]}`, func(r uint32, _ node) bool { return r > 2 && r != 7 }},
}

// jobspec returns the wish as a manager would send it.
func (w wish) jobspec() string {
	var b strings.Builder
	with := fmt.Sprintf(`{"type":"core","count":%d}`, w.cores)
	if w.gpus > 0 {
		with += fmt.Sprintf(`,{"type":"gpu","count":%d}`, w.gpus)
	}
	slot := fmt.Sprintf(`{"type":"slot","count":%d,"label":"task","with":[%s]}`, w.slots, with)
	if w.nodes > 0 {
		count := fmt.Sprint(w.nodes)
		switch {
		case w.mostNodes < 0:
			count = fmt.Sprintf(`{"min":%d}`, w.nodes)
		case w.mostNodes > 0:
			count = fmt.Sprintf(`{"min":%d,"max":%d,"operator":"+","operand":1}`, w.nodes, w.mostNodes)
		}
		slot = fmt.Sprintf(`{"type":"node","count":%s,"exclusive":%t,"with":[%s]}`, count, w.whole, slot)
	}
	fmt.Fprintf(&b, `{"version":1,"resources":[%s],"tasks":[{"command":["a"],"slot":"task","count":{"per_slot":1}}]`, slot)
	fmt.Fprintf(&b, `,"attributes":{"system":{"duration":%v`, w.duration)
	if c := constraints[w.constraint].json; c != "" {
		b.WriteString(`,"constraints":` + c)
	}
	b.WriteString(`}}}`)
	return b.String()
}

// naiveJob is a job as the machine knows it.
type naiveJob struct {
	id       jobid.ID
	priority uint32
	wish     wish
	running  bool
	canceled bool
	units    []unit             // that it still holds
	r        *rset.R            // as it got it
	expires  eventlog.Timestamp // 0: never
	estimate eventlog.Timestamp // that it was told; 0: none
}

// before is the order of the queue.
func (j *naiveJob) before(k *naiveJob) bool {
	return j.priority > k.priority || j.priority == k.priority && j.id < k.id
}

// machine is all there is.
type machine struct {
	nodes  []node
	owners map[unit]jobid.ID
	jobs   map[jobid.ID]*naiveJob
}

// units returns all of a node.
func (m *machine) units(rank uint32) (out []unit) {
	n := m.nodes[rank]
	for i := range n.cores {
		out = append(out, unit{rank, "core", uint32(i)})
	}
	for i := range n.gpus {
		out = append(out, unit{rank, "gpu", uint32(i)})
	}
	return out
}

// first returns the job that is to start next, nil if none waits.
func (m *machine) first() (first *naiveJob) {
	for _, j := range m.jobs {
		if !j.running && (first == nil || j.before(first)) {
			first = j
		}
	}
	return first
}

// fits reports whether a wish can be met where owned tells what is taken.
func (m *machine) fits(w wish, owned func(unit) bool, downToo bool) bool {
	var nodes, slots int64
	for r, n := range m.nodes {
		rank := uint32(r)
		if n.down && !downToo || !constraints[w.constraint].allow(rank, n) {
			continue
		}
		free := map[string]int64{}
		all := m.units(rank)
		for _, u := range all {
			if !owned(u) {
				free[u.kind]++
			}
		}
		if w.whole && free["core"]+free["gpu"] < int64(len(all)) {
			continue
		}
		room := free["core"] / w.cores
		if w.gpus > 0 {
			room = min(room, free["gpu"]/w.gpus)
		}
		slots += room
		if room >= w.slots {
			nodes++
		}
	}
	if w.nodes > 0 {
		return nodes >= w.nodes
	}
	return slots >= w.slots
}

// fitsAt is fits at a time at which what expires until then has ended.
func (m *machine) fitsAt(w wish, at eventlog.Timestamp) bool {
	return m.fits(w, func(u unit) bool {
		id, owned := m.owners[u]
		if !owned {
			return false
		}
		e := m.jobs[id].expires
		return e == 0 || e > at
	}, false)
}

// fitsNow is fits with what is free now.
func (m *machine) fitsNow(w wish) bool {
	return m.fits(w, func(u unit) bool { _, owned := m.owners[u]; return owned }, false)
}

// possible is fits on a machine that is up and idle.
func (m *machine) possible(w wish) bool {
	return m.fits(w, func(unit) bool { return false }, true)
}

// earliest returns when a wish fits, if all end when they expire; false if it
// never does.
func (m *machine) earliest(w wish, now eventlog.Timestamp) (eventlog.Timestamp, bool) {
	times := []eventlog.Timestamp{now}
	for _, j := range m.jobs {
		if j.running && j.expires > now {
			times = append(times, j.expires)
		}
	}
	slices.Sort(times)
	for _, t := range times {
		if m.fitsAt(w, t) {
			return t, true
		}
	}
	return 0, false
}

// give hands resources to a job, and says what is wrong with that.
func (m *machine) give(j *naiveJob, r *rset.R) error {
	perRank := make(map[uint32]map[string]int64)
	for e := range r.Entries() {
		for rank := range e.Ranks.All() {
			if int(rank) >= len(m.nodes) {
				return fmt.Errorf("rank %d is not there", rank)
			}
			n := m.nodes[rank]
			if n.down {
				return fmt.Errorf("rank %d is down", rank)
			}
			if !constraints[j.wish.constraint].allow(rank, n) {
				return fmt.Errorf("rank %d is not for the job", rank)
			}
			perRank[rank] = map[string]int64{}
			for _, kind := range slices.Sorted(maps.Keys(e.Children)) {
				for id := range e.Children[kind].All() {
					u := unit{rank, kind, id}
					if !slices.Contains(m.units(rank), u) {
						return fmt.Errorf("%v is not there", u)
					}
					if other, owned := m.owners[u]; owned {
						return fmt.Errorf("%v is job %d's", u, uint64(other))
					}
					m.owners[u] = j.id
					j.units = append(j.units, u)
					perRank[rank][kind]++
				}
			}
		}
	}
	j.running, j.r, j.expires = true, r, r.Expiration()
	return m.grants(j.wish, perRank)
}

// grants says what is wrong with resources that a wish got.
func (m *machine) grants(w wish, perRank map[uint32]map[string]int64) error {
	nodes := int64(len(perRank))
	most := max(w.nodes, w.mostNodes)
	if w.mostNodes < 0 {
		most = math.MaxInt64
	}
	if w.nodes > 0 && (nodes < w.nodes || nodes > most) {
		return fmt.Errorf("%d nodes for %+v", nodes, w)
	}
	var slots int64
	for rank, got := range perRank {
		n := m.nodes[rank]
		room := got["core"] / w.cores
		if w.whole {
			if got["core"] != int64(n.cores) || got["gpu"] != int64(n.gpus) {
				return fmt.Errorf("rank %d is not whole", rank)
			}
			continue
		}
		if got["core"] != room*w.cores || got["gpu"] != room*w.gpus || w.nodes > 0 && room != w.slots {
			return fmt.Errorf("%v at rank %d for %+v", got, rank, w)
		}
		slots += room
	}
	if w.nodes == 0 && slots != w.slots {
		return fmt.Errorf("%d slots for %+v", slots, w)
	}
	return nil
}

// take takes units from a job that has them, all if it is final.
func (m *machine) take(j *naiveJob, fragment []unit, final bool) {
	if final {
		fragment = j.units
	}
	for _, u := range fragment {
		delete(m.owners, u)
	}
	j.units = slices.DeleteFunc(slices.Clone(j.units), func(u unit) bool { return slices.Contains(fragment, u) })
	if final {
		delete(m.jobs, j.id)
	}
}

// resources returns units as a fragment of an allocation.
func resources(units []unit) (*rset.R, error) {
	return rset.New(rset.Config{Entries: entries(units)})
}

// entries returns units by rank.
func entries(units []unit) (out []rset.Entry) {
	nodes := make(map[uint32]map[string]*idset.Set)
	for _, u := range units {
		if nodes[u.rank] == nil {
			nodes[u.rank] = make(map[string]*idset.Set)
			out = append(out, rset.Entry{Ranks: idset.Of(u.rank), Children: nodes[u.rank]})
		}
		nodes[u.rank][u.kind] = idset.Union(nodes[u.rank][u.kind], idset.Of(u.id))
	}
	return out
}
