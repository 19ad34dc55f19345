package pool_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

// machine drives a pool and a naive one beside it, with planned jobs.
type machine struct {
	p       *pool.Pool
	fit     pool.Fit
	n       *naivePool
	ledgers map[jobid.ID]*rset.Ledger // of jobs that were freed by ranks alone
	asks    map[jobid.ID]ask          // of planned jobs
	next    jobid.ID
	now     float64
}

// drawNodes draws the children of ranks.
func drawNodes(t *rapid.T, ranks *idset.Set) []thing {
	var out []thing
	for rank := range ranks.All() {
		from := rapid.Uint32Range(0, 1).Draw(t, "from")
		for id := range rapid.Uint32Range(1, 4).Draw(t, "cores") {
			out = append(out, thing{rank, "core", from + id})
		}
		for id := range rapid.Uint32Range(0, 2).Draw(t, "gpus") {
			out = append(out, thing{rank, "gpu", id})
		}
		if rapid.IntRange(0, 4).Draw(t, "nic") == 0 {
			out = append(out, thing{rank, "nic", 7})
		}
		if rapid.IntRange(0, 4).Draw(t, "ssd") == 0 {
			out = append(out, thing{rank, "ssd", 0})
		}
	}
	return out
}

// withHosts gives resources their hosts.
func withHosts(t require.TestingT, r *rset.R) *rset.R {
	out, err := r.AssignHosts(hostsFor(r.Ranks()))
	require.NoError(t, err)
	return out
}

func newMachine(t *rapid.T, fit pool.Fit) *machine {
	m := &machine{ledgers: map[jobid.ID]*rset.Ledger{}, asks: map[jobid.ID]ask{}, fit: fit, now: rapid.SampledFrom([]float64{1000, 0}).Draw(t, "now")}
	ranks := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 9), 1, 7, rapid.ID).Draw(t, "ranks")
	slices.Sort(ranks)
	m.n = &naivePool{there: map[thing]bool{}, up: map[uint32]bool{}, props: map[string]map[uint32]bool{}, jobs: map[jobid.ID]*naiveJob{}}
	list := drawNodes(t, idset.Of(ranks...))
	if rapid.Bool().Draw(t, "equal") {
		list = nil
		for _, rank := range ranks {
			for id := range uint32(4) {
				list = append(list, thing{rank, "core", id})
			}
			list = append(list, thing{rank, "gpu", 0})
		}
	}
	for _, x := range list {
		m.n.there[x] = true
	}
	var err error
	m.p, err = pool.New(withHosts(t, bundle(t, list)), pool.Config{Fit: m.fit})
	require.NoError(t, err)
	m.update(t, pool.Change{Up: idset.Of(ranks...)})
	for _, rank := range ranks {
		m.n.up[rank] = true
	}
	return m
}

func (m *machine) update(t require.TestingT, c pool.Change) { require.NoError(t, m.p.Update(c)) }

// job draws a job that has resources. There is one.
func (m *machine) job(t *rapid.T) (jobid.ID, *naiveJob) {
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.n.jobs))).Draw(t, "job")
	return id, m.n.jobs[id]
}

// ask is a request as the model sees it.
type ask struct {
	nodes, slots string // counts; nodes may be ""
	cores, gpus  int
	whole        bool
	property     string
	duration     float64
}

func drawAsk(t *rapid.T) ask {
	a := ask{
		nodes:    rapid.SampledFrom([]string{"", "", "1", "1", "2", "3", "1+", "2-3", "1,3"}).Draw(t, "nodes"),
		slots:    rapid.SampledFrom([]string{"1", "1", "2", "3", "1+", "2-5", "1-4:2:*"}).Draw(t, "slots"),
		cores:    rapid.IntRange(1, 3).Draw(t, "cores"),
		gpus:     rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "gpus"),
		property: rapid.SampledFrom([]string{"", "", "", "odd", "+here", "^odd"}).Draw(t, "property"),
		duration: rapid.SampledFrom([]float64{0, 0.25, 10, 1e-9}).Draw(t, "duration"),
	}
	a.whole = a.nodes != "" && rapid.Bool().Draw(t, "whole")
	return a
}

// request returns what the pool takes.
func (a ask) request(t require.TestingT) *pool.Request {
	with := []string{vertex("core", fmt.Sprint(a.cores))}
	if a.gpus > 0 {
		with = append(with, vertex("gpu", fmt.Sprint(a.gpus)))
	}
	text := vertex("slot", a.slots, with...)
	if a.nodes != "" {
		text = vertex("node", a.nodes, text)
		if a.whole {
			text = whole(text)
		}
	}
	constraints := ""
	if a.property != "" {
		constraints = fmt.Sprintf(`{"properties":[%q]}`, a.property)
	}
	spec := strings.Replace(specText("["+text+"]", constraints), "90.5", fmt.Sprint(a.duration), 1)
	return requestOf(t, spec)
}

// granted returns how many of so many a count lets a job have.
func granted(t require.TestingT, text string, n int) (int, bool) {
	got, ok := countOf(t, text).Floor(int64(n))
	return int(got), ok
}

// A share is how many slots a job gets on a rank.
type share struct {
	rank  uint32
	slots int
}

// isFree reports whether a resource can be allocated now.
func (m *machine) isFree(x thing) bool { return m.n.up[x.rank] && len(m.n.owners(x)) == 0 }

// chosen returns where a job goes that gets so many nodes, or slots, with room for so many
// slots on each rank.
func (m *machine) chosen(t require.TestingT, a ask, want int, room func(uint32) int) (out []share) {
	idle := func(rank uint32) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(m.n.there)), func(x thing) bool { return x.rank == rank && !m.isFree(x) })
	}
	order := slices.Collect(m.n.ranks().All())
	slices.SortStableFunc(order, func(x, y uint32) int {
		use, more := 0, 0
		if idle(x) != idle(y) {
			if use = -1; idle(x) {
				use = 1
			}
		}
		for _, kind := range []string{"core", "gpu", "nic", "ssd"} {
			more = cmp.Or(more, cmp.Compare(m.n.count(x, kind, m.isFree), m.n.count(y, kind, m.isFree)))
		}
		if m.fit == pool.FitWorst {
			return cmp.Or(-more, -use)
		}
		return cmp.Or(use, more)
	})
	for _, rank := range order {
		out = append(out, share{rank, room(rank)})
	}
	most, _ := countOf(t, a.slots).Floor(jobspec.MaxCount)
	if a.nodes != "" {
		least := int(countOf(t, a.slots).Min())
		out = slices.DeleteFunc(out, func(s share) bool { return s.slots < least })[:want]
		each := int(most)
		for _, s := range out {
			each = min(each, s.slots)
		}
		each, _ = granted(t, a.slots, each)
		for i := range out {
			out[i].slots = each
		}
		return out
	}
	if i := slices.IndexFunc(out, func(s share) bool { return int64(s.slots) >= most }); i >= 0 {
		return []share{{out[i].rank, int(most)}} // one node has room for all
	}
	for i := range out {
		out[i].slots = min(out[i].slots, want)
		want -= out[i].slots
	}
	return slices.DeleteFunc(out, func(s share) bool { return s.slots == 0 })
}

// lowest returns the resources of shares: the lowest that are free, or the whole nodes.
func (m *machine) lowest(a ask, shares []share) (out []thing) {
	per := map[string]int{"core": a.cores, "gpu": a.gpus}
	for _, s := range shares {
		left := map[string]int{}
		for _, x := range slices.SortedFunc(maps.Keys(m.n.there), compareThings) {
			if x.rank == s.rank && m.isFree(x) && (a.whole || left[x.kind] < s.slots*per[x.kind]) {
				left[x.kind]++
				out = append(out, x)
			}
		}
	}
	slices.SortFunc(out, compareThings)
	return out
}

// Start: a job starts that is planned, or another one, if it delays no planned one.
func (m *machine) Start(t *rapid.T) {
	id, a := m.waiting(t)
	q := a.request(t)
	s := m.look()
	want, fits := s.granted(t, a, id, -1, a.until(m.now))
	_, could := m.lookAtAll().granted(t, a, id, 0, 0)
	before, claims := textOf(m.p), m.p.Claims()
	m.keeps(t, func() {
		r, err := m.p.Alloc(id, q, eventlog.Timestamp(m.now))
		require.Equal(t, could, m.p.Feasible(q) == nil)
		switch {
		case fits:
			require.NoError(t, err)
			room := func(rank uint32) int { return s.roomFrom(a, id, rank, -1, a.until(m.now)) }
			m.checkGrant(t, a, r, m.chosen(t, a, want, room))
			m.take(id, r, nil)
			return
		case could:
			require.ErrorIs(t, err, pool.ErrBusy)
		default:
			require.ErrorIs(t, err, pool.ErrInfeasible)
		}
		require.Equal(t, before, textOf(m.p))
		require.Equal(t, claims, m.p.Claims())
	})
}

// checkGrant checks an allocation (I7: it follows from the request and the state).
func (m *machine) checkGrant(t *rapid.T, a ask, r *rset.R, shares []share) {
	slots := 0
	for _, s := range shares {
		slots += s.slots
	}
	require.Equal(t, m.lowest(a, shares), things(r))
	require.EqualValues(t, slots, r.Slots())
	require.Equal(t, hostsFor(r.Ranks()).String(), r.Nodelist().String())
	require.Equal(t, eventlog.Timestamp(m.now), r.Start())
	if a.duration == 0 {
		require.Zero(t, r.Expiration())
	} else {
		require.Greater(t, r.Expiration(), r.Start())
		require.InDelta(t, m.now+a.duration, float64(r.Expiration()), 1e-9)
	}
	// RS-7: properties of this instance alone stay here.
	require.True(t, r.Property("+here").IsEmpty())
	for rank := range r.Ranks().All() {
		require.Equal(t, m.n.props["odd"][rank], r.Property("odd").Contains(rank))
	}
}

// waiting draws a job that has no resources, and what it asks for.
func (m *machine) waiting(t *rapid.T) (jobid.ID, ask) {
	if len(m.asks) > 0 && rapid.Bool().Draw(t, "planned") {
		id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.asks))).Draw(t, "which")
		return id, m.asks[id]
	}
	m.next++
	return m.next, drawAsk(t)
}

// take notes that a job has resources.
func (m *machine) take(id jobid.ID, r *rset.R, freed *idset.Set) {
	j := &naiveJob{r: r, held: map[thing]bool{}, since: float64(r.Start()), end: float64(r.Expiration())}
	for _, x := range things(r) {
		if !freed.Contains(x.rank) {
			j.held[x] = true
		}
	}
	m.n.jobs[id] = j
	delete(m.asks, id)
	if l, err := rset.Rebuild(r, rset.Released{Ranks: freed}); err == nil {
		m.ledgers[id] = l
	}
}

// Adopt: a hello of a job with any resources, there or not, of others or not. They may be
// in the way of a plan; the job itself is planned no more.
func (m *machine) Adopt(t *rapid.T) {
	var list []thing
	chosen := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 11), 1, 3, rapid.ID).Draw(t, "adopted ranks")
	for _, rank := range chosen {
		for id := range rapid.Uint32Range(1, 3).Draw(t, "adopted cores") {
			list = append(list, thing{rank, "core", id})
		}
		if rapid.IntRange(0, 3).Draw(t, "adopted gpu") == 0 {
			list = append(list, thing{rank, "gpu", 0})
		}
	}
	if rapid.Bool().Draw(t, "friendly") { // of what is there and free alone
		list = slices.DeleteFunc(list, func(x thing) bool { return !m.n.there[x] || len(m.n.owners(x)) > 0 })
	}
	id, _ := m.waiting(t)
	before := textOf(m.p)
	if len(list) == 0 {
		require.ErrorContains(t, m.p.Adopt(id, new(rset.R), nil), badArg)
		require.Equal(t, before, textOf(m.p))
		return
	}
	r, err := bundle(t, list).WithTimes(eventlog.Timestamp(m.now), eventlog.Timestamp(m.now+5))
	require.NoError(t, err)
	freed := new(idset.Set)
	for rank := range r.Ranks().All() {
		if rapid.IntRange(0, 3).Draw(t, "freed") == 0 {
			freed.Insert(rank)
		}
	}
	m.adopted(t, m.p, id, r, freed)
	m.take(id, r, freed)
	// Once more is the same.
	m.adopted(t, m.p, id, r, freed)
}

// adopted adopts a job that the model may have already, and checks what is reported.
func (m *machine) adopted(t *rapid.T, p *pool.Pool, id jobid.ID, r *rset.R, freed *idset.Set) {
	var missing []thing
	both := map[jobid.ID][]thing{}
	for _, x := range things(r) {
		if freed.Contains(x.rank) {
			continue
		}
		if !m.n.there[x] {
			missing = append(missing, x)
		}
		for _, other := range m.n.owners(x) {
			if _, ok := p.Allocation(other); ok && other != id {
				both[other] = append(both[other], x)
			}
		}
	}
	err := p.Adopt(id, r, freed)
	require.Equal(t, len(missing) > 0, strings.Contains(fmt.Sprint(err), notInside))
	require.Equal(t, len(both) > 0, strings.Contains(fmt.Sprint(err), heldTwice))
	h, ok := p.Allocation(id)
	require.True(t, ok)
	require.ElementsMatch(t, missing, things(h.Gone))
	n, first, overlap := p.Conflicts(id)
	require.Equal(t, len(both), n)
	if n > 0 {
		require.Equal(t, slices.Min(slices.Collect(maps.Keys(both))), first)
		require.Equal(t, both[first], things(overlap))
	}
	if len(missing)+len(both) == 0 {
		require.NoError(t, err)
	}
}

// free frees resources that a job holds, and checks what becomes of each.
func (m *machine) free(t *rapid.T, id jobid.ID, list []thing, final bool) {
	j := m.n.jobs[id]
	rest := map[thing]bool{}
	if final {
		maps.Copy(rest, j.held)
	}
	for _, x := range list {
		delete(rest, x)
	}
	all := append(slices.Clone(list), slices.Collect(maps.Keys(rest))...)
	also, err := m.p.Free(id, bundle(t, list), final)
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Collect(maps.Keys(rest)), things(also))
	for _, x := range all {
		delete(j.held, x)
	}
	if final {
		delete(m.n.jobs, id)
		delete(m.ledgers, id)
	}
}

// FreeRanks: a random group of ranks, as the manager's ledger gives it out.
func (m *machine) FreeRanks(t *rapid.T) {
	id, _ := m.job(t)
	l := m.ledgers[id]
	if l == nil {
		return // freed in parts of ranks
	}
	group := new(idset.Set)
	half := rapid.Bool().Draw(t, "half")
	for rank := range l.Held().All() {
		if half && group.Len() < (l.Held().Len()+1)/2 || !half && rapid.Bool().Draw(t, "this") {
			group.Insert(rank)
		}
	}
	part := rset.Fragment{R: new(rset.R), Final: true}
	if !l.IsFinal() {
		var err error
		part, err = l.Free(group)
		require.NoError(t, err)
	}
	// final may be late, or never come.
	m.free(t, id, things(part.R), part.Final && rapid.Bool().Draw(t, "final"))
}

// FreeParts: some cores of some ranks.
func (m *machine) FreeParts(t *rapid.T) {
	id, j := m.job(t)
	var list []thing
	for _, x := range slices.SortedFunc(maps.Keys(j.held), compareThings) {
		if rapid.Bool().Draw(t, "this") {
			list = append(list, x)
		}
	}
	delete(m.ledgers, id)
	m.free(t, id, list, rapid.IntRange(0, 2).Draw(t, "final") == 0)
}

// FreeWrongly: what was freed before, what others hold, and who knows what.
func (m *machine) FreeWrongly(t *rapid.T) {
	id, j := m.job(t)
	before := textOf(m.p)
	var list, excess []thing
	for rank := range uint32(12) {
		for _, kind := range []string{"core", "gpu"} {
			if x := (thing{rank, kind, rapid.Uint32Range(0, 4).Draw(t, "id")}); rapid.Bool().Draw(t, "this") {
				list = append(list, x)
				if !j.held[x] {
					excess = append(excess, x)
				}
			}
		}
	}
	if len(excess) == 0 {
		return // all held
	}
	_, err := m.p.Free(id, bundle(t, list), rapid.Bool().Draw(t, "final"))
	require.ErrorContains(t, err, notHeld)
	slices.SortFunc(excess, compareThings)
	text := bundle(t, excess).String()
	require.EqualError(t, err, fmt.Sprintf("%v: job %v: %s", notHeld, id, text[:min(len(text), 64)]))
	require.Equal(t, before, textOf(m.p))
	_, err = m.p.Free(m.next+1, nil, true)
	require.ErrorIs(t, err, pool.ErrNotFound)
}

func (m *machine) UpDown(t *rapid.T) {
	up, down := new(idset.Set), new(idset.Set)
	for rank := range m.n.ranks().All() {
		switch rapid.IntRange(0, 3).Draw(t, "to") {
		case 0, 1:
			up.Insert(rank)
			m.n.up[rank] = true
		case 2:
			down.Insert(rank)
			m.n.up[rank] = false
		}
	}
	m.update(t, pool.Change{Up: up, Down: down})
}

func (m *machine) Properties(t *rapid.T) {
	name := rapid.SampledFrom([]string{"odd", "+here"}).Draw(t, "name")
	add, remove := new(idset.Set), new(idset.Set)
	if m.n.props[name] == nil {
		m.n.props[name] = map[uint32]bool{}
	}
	for rank := range m.n.ranks().All() {
		switch rapid.IntRange(0, 2).Draw(t, "to") {
		case 0:
			add.Insert(rank)
			m.n.props[name][rank] = true
		case 1:
			remove.Insert(rank)
			m.n.props[name][rank] = false
		}
	}
	m.update(t, pool.Change{
		AddProperties:    map[string]*idset.Set{name: add},
		RemoveProperties: map[string]*idset.Set{name: remove},
	})
}

// ShrinkAndGrow: ranks go, others come, some that were there before.
func (m *machine) ShrinkAndGrow(t *rapid.T) {
	var c pool.Change
	c.Shrink = new(idset.Set)
	for rank := range m.n.ranks().All() {
		if rapid.IntRange(0, 3).Draw(t, "go") == 0 {
			c.Shrink.Insert(rank)
		}
	}
	for x := range m.n.there {
		if c.Shrink.Contains(x.rank) {
			delete(m.n.there, x)
			delete(m.n.up, x.rank)
			for _, p := range m.n.props {
				delete(p, x.rank)
			}
		}
	}
	come, have := new(idset.Set), m.n.ranks()
	for rank := range uint32(10) {
		if !have.Contains(rank) && rapid.IntRange(0, 2).Draw(t, "come") == 0 {
			come.Insert(rank)
		}
	}
	if list := drawNodes(t, come); len(list) > 0 {
		c.Grow = withHosts(t, bundle(t, list))
		for _, x := range list {
			m.n.there[x] = true
		}
		if rapid.Bool().Draw(t, "up") {
			c.Up = come
			for rank := range come.All() {
				m.n.up[rank] = true
			}
		}
	}
	m.update(t, c)
}

// Reload: a new scheduler learns all again, with what has been freed.
func (m *machine) Reload(t *rapid.T) {
	if len(m.ledgers) < len(m.n.jobs) || len(m.n.there) == 0 {
		return // a hello cannot tell parts of ranks
	}
	for id := range m.asks { // nor plans
		require.True(t, m.p.Unplan(id))
	}
	clear(m.asks)
	fresh, err := pool.New(m.p.Inventory(), pool.Config{Fit: m.fit})
	require.NoError(t, err)
	up := new(idset.Set)
	for rank, is := range m.n.up {
		if is {
			up.Insert(rank)
		}
	}
	require.NoError(t, fresh.Update(pool.Change{Up: up}))
	for _, id := range rapid.Permutation(slices.Sorted(maps.Keys(m.n.jobs))).Draw(t, "order") {
		j := m.n.jobs[id]
		m.adopted(t, fresh, id, j.r, m.ledgers[id].Freed())
		require.NoError(t, fresh.SetExpiration(id, eventlog.Timestamp(j.end)))
	}
	// What comes next does not follow from how it came to this.
	q := drawAsk(t).request(t)
	r, err := m.p.Alloc(m.next+1, q, eventlog.Timestamp(m.now))
	again, failed := fresh.Alloc(m.next+1, q, eventlog.Timestamp(m.now))
	require.Equal(t, err, failed)
	require.Equal(t, string(r.AppendJSON(nil)), string(again.AppendJSON(nil)))
	if m.p = fresh; err == nil {
		m.next++
		m.take(m.next, again, nil)
	}
}

func (m *machine) Expire(t *rapid.T) {
	id, j := m.job(t)
	j.end = max(m.now+float64(rapid.IntRange(-10, 40).Draw(t, "end")), 0.5)
	if rapid.IntRange(0, 5).Draw(t, "never") == 0 {
		j.end = 0
	}
	require.NoError(t, m.p.SetExpiration(id, eventlog.Timestamp(j.end)))
	m.now++
}

// Check: conservation and all else, after each step.
func (m *machine) Check(t *rapid.T) {
	require.NoError(t, m.p.Check())
	require.Equal(t, m.n.text(), textOf(m.p))
	var free, held []thing
	idle, spare, cores := map[uint32]bool{}, map[uint32]bool{}, 0
	for x := range m.n.there {
		idle[x.rank] = m.n.up[x.rank]
	}
	for x := range m.n.there {
		switch owned := len(m.n.owners(x)) > 0; {
		case owned:
			held = append(held, x)
			delete(idle, x.rank)
		case m.n.up[x.rank]:
			free = append(free, x)
			if x.kind == "core" {
				cores++
			}
		}
	}
	maps.DeleteFunc(idle, func(_ uint32, up bool) bool { return !up })
	maps.Copy(spare, idle)
	for _, c := range m.p.Claims() {
		delete(spare, c.Rank)
	}
	uniform, has, owners := true, map[uint32]map[string]int{}, map[uint32]string{}
	for x := range m.n.there {
		if has[x.rank] == nil {
			has[x.rank], owners[x.rank] = map[string]int{}, fmt.Sprint(m.n.owners(x))
		}
		has[x.rank][fmt.Sprint(x.kind, " ", x.id)]++
		uniform = uniform && owners[x.rank] == fmt.Sprint(m.n.owners(x)) && len(m.n.owners(x)) < 2
	}
	for rank := range has {
		for other := range has {
			uniform = uniform && maps.Equal(has[rank], has[other])
		}
	}
	require.Equal(t, uniform, m.p.Uniform())
	nodes, planless, count := m.p.Idle()
	require.Equal(t, []int64{int64(len(idle)), int64(len(spare)), int64(cores)}, []int64{nodes, planless, count})
	slices.SortFunc(free, compareThings)
	slices.SortFunc(held, compareThings)
	require.Equal(t, slices.Clip(held), slices.Clip(things(m.p.Allocated())))
	require.Equal(t, slices.Clip(free), slices.Clip(things(m.p.Available())))
	for _, c := range m.p.Claims() {
		require.Contains(t, m.asks, c.Job)
	}
	for id, l := range m.ledgers {
		held, err := m.n.jobs[id].r.Restrict(l.Held())
		require.NoError(t, err)
		h, _ := m.p.Allocation(id)
		sum, err := rset.UnionDisjoint(h.Held, h.Gone)
		require.NoError(t, err)
		require.True(t, rset.SameResources(held, sum), "the ledger and the pool differ")
	}
}

// poolProperty drives a pool and a naive one.
func poolProperty(t *rapid.T, fit pool.Fit) {
	m := newMachine(t, fit)
	// An action that skips is tried again, and an input whose bytes are all alike draws it
	// each time: so none skips.
	ofJob := func(action func(*rapid.T)) func(*rapid.T) {
		return func(t *rapid.T) {
			if len(m.n.jobs) == 0 {
				m.Start(t)
				return
			}
			action(t)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"":            m.Check,
		"start":       m.Start,
		"start2":      m.Start,
		"plan":        m.Plan,
		"plan2":       m.Plan,
		"unplan":      m.Unplan,
		"pass":        m.Pass,
		"adopt":       m.Adopt,
		"freeRanks":   ofJob(m.FreeRanks),
		"freeParts":   ofJob(m.FreeParts),
		"freeWrongly": ofJob(m.FreeWrongly),
		"upDown":      m.UpDown,
		"properties":  m.Properties,
		"shrinkGrow":  m.ShrinkAndGrow,
		"reload":      m.Reload,
		"expire":      ofJob(m.Expire),
	})
}

// PR-1, PR-3, PR-10, PR-11, PR-13: a pool against a naive one; and no job delays a planned
// one.
func TestAPoolIsWhatANaiveOneIs(t *testing.T) {
	for range map[bool]int{false: 1, true: 20}[os.Getenv("JOBLIFE_DEEP") != ""] {
		rapid.Check(t, anyPool)
	}
}

func FuzzPool(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyPool)) }

func anyPool(t *rapid.T) {
	poolProperty(t, rapid.SampledFrom([]pool.Fit{pool.FitBest, pool.FitWorst}).Draw(t, "fit"))
}
