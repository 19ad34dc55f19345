package pool_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

// A Flux instance whose nodes are all excluded has such an inventory.
func TestAnEmptyInventoryWaitsForResources(t *testing.T) {
	for _, r := range []*rset.R{nil, new(rset.R)} {
		p, err := pool.New(r, pool.Config{})
		require.NoError(t, err)
		require.NoError(t, p.Check())
		q := byNode(t, "1", "1")
		require.ErrorIs(t, p.Feasible(q), pool.ErrInfeasible)
		_, err = p.Alloc(1, q, 100)
		require.ErrorIs(t, err, pool.ErrInfeasible)
		_, err = p.Earliest(q, 100)
		require.ErrorIs(t, err, pool.ErrInfeasible)
		held := parseR(t, "rank0/core0 n0")
		require.ErrorContains(t, p.Adopt(2, held, nil), notInside)

		require.NoError(t, p.Update(pool.Change{Grow: parseR(t, "rank[0-1]/core0 n[0-1]"), Up: idset.Of(0, 1)}))
		require.NoError(t, p.Check())
		require.Equal(t, "rank1/core0", alloc(t, p, 1, q).String(), "job 2 has rank 0")
	}
}

// RFC 28: the resources are down until they are said to be up.
func TestANewPoolIsDownAndFree(t *testing.T) {
	p := newPool(t, "rank[0,2-3]/core[0-3] rank7/core0,gpu0 n[0-3]")
	require.NoError(t, p.Check())
	require.Equal(t, "rank[0,2-3]/core[0-3] rank7/core0,gpu0", p.Down().String())
	require.True(t, p.Available().IsEmpty())
	require.NoError(t, p.Update(pool.Change{Up: idset.Of(2, 7)}))
	require.Equal(t, "rank2/core[0-3] rank7/core0,gpu0", p.Available().String())
	require.Equal(t, "n[1,3]", p.Available().Nodelist().String())
	require.Equal(t, "n[0,2]", p.Down().Nodelist().String())
	require.NoError(t, p.Update(pool.Change{})) // changes nothing
	require.Equal(t, "rank[0,2-3]/core[0-3] rank7/core0,gpu0", p.Inventory().String())
}

func TestAChangeIsMadeWholeOrNotAtAll(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	alloc(t, p, 1, byNode(t, "2", "2"))
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"a": idset.Of(0)}}))
	bad := eventlog.Timestamp(math.NaN())
	good := eventlog.Timestamp(1)
	set := func(ranks ...uint32) map[string]*idset.Set { return map[string]*idset.Set{"x": idset.Of(ranks...)} }
	before, was := textOf(p), string(p.Inventory().AppendJSON(nil))
	for want, c := range map[string]pool.Change{
		"pool: invalid argument: up: ranks 4-5 are not in the inventory":                          {Up: idset.Of(3, 4, 5)},
		"pool: invalid argument: down: ranks 9 are not in the inventory":                          {Down: idset.Of(0, 9)},
		"pool: invalid argument: shrink: ranks 4 are not in the inventory":                        {Shrink: idset.Of(1, 4)},
		"pool: invalid argument: up: ranks 1 are not in the inventory":                            {Shrink: idset.Of(1), Up: idset.Of(1)},
		"pool: invalid argument: up and down: ranks 2 are named both ways":                        {Up: idset.Of(1, 2), Down: idset.Of(2)},
		"pool: invalid argument: grow: ranks 3 are in the inventory already":                      {Grow: parseR(t, "rank[3-4]/core0 n[3-4]")},
		"pool: invalid argument: property x: ranks 4 are not in the inventory":                    {AddProperties: set(0, 4)},
		"pool: invalid argument: property x: ranks 1 are named both ways":                         {AddProperties: set(0, 1), RemoveProperties: set(1)},
		"pool: invalid argument: property x: ranks 7 are not in the inventory":                    {RemoveProperties: set(7)},
		"pool: invalid argument: expiration of the pool must be a finite time of 0 or later: NaN": {Expiration: &bad},
	} {
		c.Down = idset.Union(c.Down, idset.Of(0))
		if c.Expiration == nil {
			c.Expiration = &good
		}
		require.EqualError(t, p.Update(c), want)
		require.Equal(t, before, textOf(p))
	}
	require.ErrorContains(t, p.Update(pool.Change{Grow: parseR(t, "rank4/core0"), Down: idset.Of(0)}), "rset: hosts do not match")
	require.ErrorContains(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"a b^": idset.Of(1)}, Down: idset.Of(0)}), "rset: invalid R")
	require.ErrorContains(t, p.Update(pool.Change{Up: idset.Of(9)}), badArg)
	require.Equal(t, before, textOf(p))
	require.Equal(t, was, string(p.Inventory().AppendJSON(nil)))
	require.NoError(t, p.Check())
}

func TestARankThatGoesAwayMayBeToldToGoDown(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	require.NoError(t, p.Update(pool.Change{
		Down: idset.Of(0, 3), Shrink: idset.Of(3), RemoveProperties: map[string]*idset.Set{"a": idset.Of(3)},
	}))
	require.Equal(t, "rank[1-2]/core[0-3]", p.Available().String())
	require.Equal(t, "rank0/core[0-3]", p.Down().String(), "it is gone, and not down")
	require.Equal(t, "rank[0-2]/core[0-3]", p.Inventory().String())
	require.ErrorContains(t, p.Update(pool.Change{Up: idset.Of(3)}), badArg)
	require.NoError(t, p.Check())
}

func TestARankMayBeReplaced(t *testing.T) {
	p := upPool(t, "rank[0-1]/core[0-3] n[0-1]")
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"a": idset.Of(0, 1)}}))
	alloc(t, p, 1, byNode(t, "2", "3"))
	// What the job held of the rank is held on the new one, as far as it goes.
	require.NoError(t, p.Update(pool.Change{
		Shrink: idset.Of(1), Grow: parseR(t, "rank1/core[2-7] rank2/core0 m[1-2]"), Up: idset.Of(1),
	}))
	require.NoError(t, p.Check())
	require.Equal(t, "rank0/core3 rank1/core[3-7]", p.Available().String())
	require.Equal(t, "rank2/core0", p.Down().String())
	require.Equal(t, "n0,m[1-2]", p.Inventory().Nodelist().String())
	require.Equal(t, "0", p.Inventory().Property("a").String())
	h, _ := p.Allocation(1)
	require.Equal(t, "rank0/core[0-2] rank1/core2", h.Held.String())
	require.Equal(t, "rank1/core[0-1]", h.Gone.String())
	rest, err := p.Free(1, h.R, true)
	require.NoError(t, err)
	require.Equal(t, "rank0/core[0-3] rank1/core[2-7]", p.Available().String())
	require.True(t, rest.IsEmpty())
	require.NoError(t, p.Check())
}

func TestPropertiesComeAndGo(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	change := func(add, remove map[string]*idset.Set) {
		require.NoError(t, p.Update(pool.Change{AddProperties: add, RemoveProperties: remove}))
		require.NoError(t, p.Check())
	}
	change(map[string]*idset.Set{"a": idset.Of(0, 1), "none": nil}, map[string]*idset.Set{"b": idset.Of(0)})
	change(map[string]*idset.Set{"a": idset.Of(1, 2), "b": idset.Of(3)}, nil)
	require.Equal(t, "0-2", p.Inventory().Property("a").String())
	change(map[string]*idset.Set{"a": idset.Of(3)}, map[string]*idset.Set{"a": idset.Of(0, 1), "b": idset.Of(2, 3)})
	require.Equal(t, "2-3", p.Inventory().Property("a").String())
	names := ""
	for name := range p.Inventory().Properties() {
		names += name
	}
	require.Equal(t, "a", names)
}

func TestLimitsAreTold(t *testing.T) {
	p, err := pool.New(parseR(t, "rank[0-3]/core[0-3] n[0-3]"), pool.Config{MaxJobs: 2, MaxProperties: 1})
	require.NoError(t, err)
	require.NoError(t, p.Update(pool.Change{Up: idset.Of(0, 1, 2, 3), AddProperties: map[string]*idset.Set{"a": idset.Of(0)}}))
	alloc(t, p, 1, bySlot(t, "1", "1"))
	require.NoError(t, p.Adopt(2, parseR(t, "rank3/core[0-3]"), nil))
	before := textOf(p)
	_, err = p.Alloc(3, bySlot(t, "1", "1"), 100)
	require.EqualError(t, err, "pool: limit exceeded: 3 jobs, at most 2 are allowed")
	require.ErrorContains(t, err, tooMuch)
	require.ErrorContains(t, p.Adopt(3, parseR(t, "rank2/core0"), nil), tooMuch)
	require.NoError(t, p.Adopt(2, parseR(t, "rank3/core[0-3]"), nil)) // is there already
	err = p.Update(pool.Change{AddProperties: map[string]*idset.Set{"b": idset.Of(0)}})
	require.EqualError(t, err, "pool: limit exceeded: 2 properties, at most 1 are allowed")
	require.Equal(t, before, textOf(p))
	_, err = pool.New(p.Inventory(), pool.Config{MaxProperties: 1})
	require.NoError(t, err)
	two := upPool(t, "rank0/core0 n0")
	require.NoError(t, two.Update(pool.Change{AddProperties: map[string]*idset.Set{"a": idset.Of(0), "b": idset.Of(0)}}))
	_, err = pool.New(two.Inventory(), pool.Config{MaxProperties: 1})
	require.ErrorContains(t, err, tooMuch)
}

func TestANegativeLimitIsTheDefault(t *testing.T) {
	p, err := pool.New(parseR(t, "rank0/core0 n0"), pool.Config{MaxJobs: -2, MaxProperties: -2})
	require.NoError(t, err)
	require.NoError(t, p.Adopt(1, parseR(t, "rank0/core0"), nil))
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"b": idset.Of(0)}}))
}

func TestAJobHasResourcesOnce(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	alloc(t, p, 1, bySlot(t, "1", "1"))
	before := textOf(p)
	_, err := p.Alloc(1, bySlot(t, "1", "1"), 100)
	require.EqualError(t, err, "pool: job has resources already: "+jobid.ID(1).String())
	require.ErrorIs(t, err, pool.ErrExists)
	_, err = p.Plan(1, bySlot(t, "1", "1"), 100)
	require.ErrorIs(t, err, pool.ErrExists)
	require.ErrorIs(t, p.Adopt(1, parseR(t, "rank1/core0"), nil), pool.ErrExists)
	require.ErrorIs(t, p.SetExpiration(2, 5), pool.ErrNotFound)
	require.ErrorContains(t, p.SetExpiration(1, -5), badArg)
	_, ok := p.Allocation(2)
	require.False(t, ok)
	require.Equal(t, before, textOf(p))
}

func TestFreedRanksThatAJobNeverHadAreToldAndTheRestIsHeld(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3]")
	err := p.Adopt(1, parseR(t, "rank[1-2,4]/core[0-3]"), idset.Of(0, 2))
	require.EqualError(t, err, "pool: resources are not in the inventory: job "+jobid.ID(1).String()+": rank4/core[0-3]\n"+
		"pool: invalid argument: freed: ranks 0 are not in the allocation")
	require.ErrorContains(t, err, notInside)
	require.ErrorContains(t, err, badArg)
	h, ok := p.Allocation(1)
	require.True(t, ok)
	require.Equal(t, "rank1/core[0-3]", h.Held.String())
	require.Equal(t, "rank4/core[0-3]", h.Gone.String())
	require.NoError(t, p.Check())
}

func TestConflictsOfSeveralJobsAreCounted(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3]")
	require.NoError(t, p.Adopt(1, parseR(t, "rank0/core[0-3]"), nil))
	require.NoError(t, p.Adopt(2, parseR(t, "rank1/core[0-3]"), nil))
	err := p.Adopt(3, parseR(t, "rank[0-2]/core[2-3]"), nil)
	require.EqualError(t, err, "pool: resources are held twice: jobs "+jobid.ID(3).String()+" and "+jobid.ID(1).String()+" both hold rank0/core[2-3], 2 conflicts in all")
	require.NoError(t, p.Check())
	// Two claims of a rank that is not there become a conflict as it comes.
	require.ErrorContains(t, p.Adopt(4, parseR(t, "rank9/core[0-3]"), nil), notInside)
	err = p.Adopt(5, parseR(t, "rank9/core[3-5]"), nil)
	require.NotContains(t, err.Error(), heldTwice)
	require.NoError(t, p.Update(pool.Change{Grow: parseR(t, "rank9/core[0-3]")}))
	require.NoError(t, p.Check())
	h, _ := p.Allocation(5)
	_, other, both := p.Conflicts(5)
	require.Equal(t, jobid.ID(4), other)
	require.Equal(t, "rank9/core3", both.String())
	require.Equal(t, "rank9/core[4-5]", h.Gone.String())
	// The iteration may end early.
	for h := range p.Allocations() {
		require.Equal(t, jobid.ID(1), h.ID)
		break
	}
}

func TestLongListsAreCutInErrors(t *testing.T) {
	p := upPool(t, "rank[0-200]/core[0-3]")
	odd := new(idset.Set)
	for rank := uint32(201); rank < 600; rank += 2 {
		odd.Insert(rank)
	}
	require.Less(t, len(p.Update(pool.Change{Up: odd}).Error()), 150)
}

func TestOtherHostsAreToldAndTheRanksAreHeld(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	r := parseR(t, "rank[1-2,7]/core[0-3] n[1,3,9]")
	err := p.Adopt(1, r, idset.Of(7))
	require.ErrorContains(t, err, "rset: hosts do not match")
	require.EqualError(t, err, "pool: job "+jobid.ID(1).String()+`: rset: hosts do not match: rank 2 is on two hosts: "n2" and "n3"`)
	require.Equal(t, "rank[0,3]/core[0-3]", p.Available().String())
	require.EqualError(t, p.Adopt(1, r, idset.Of(7)), err.Error())
	// What was freed before may be anywhere.
	require.NoError(t, p.Adopt(2, parseR(t, "rank[0,3]/core[0-3] n[0-1]"), idset.Of(3)))
	require.NoError(t, p.Check())
}

// What jobs get has the key scheduling of the inventory, until ranks join that it does not tell of.
func TestTheSchedulingOfTheInventory(t *testing.T) {
	inventory, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-2","children":{"core":"0"}}],"properties":{"+a":"0","b":"0-2"}},"scheduling":{"a":1}}`))
	require.NoError(t, err)
	p, err := pool.New(inventory, pool.Config{})
	require.NoError(t, err)
	joins, err := inventory.Restrict(idset.Of(2))
	require.NoError(t, err)
	for id, c := range []pool.Change{{Up: idset.Of(0, 1, 2)}, {RemoveProperties: map[string]*idset.Set{"b": idset.Of(1)}}, {Shrink: idset.Of(2)}, {Grow: joins}} {
		require.NoError(t, p.Update(c))
		r, err := p.Alloc(jobid.ID(id+1), bySlot(t, "1", "1"), 1)
		require.NoError(t, err)
		want := `{"a":1}`
		if c.Grow != nil {
			want = ""
		}
		require.Equal(t, want, string(r.Scheduling()))
		require.Equal(t, want, string(p.Inventory().Scheduling()))
		require.Empty(t, p.Available().Scheduling())
		require.Empty(t, r.Property("+a"))
		_, err = p.Free(jobid.ID(id+1), r, true)
		require.NoError(t, err)
	}
}
