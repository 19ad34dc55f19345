package pool_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

// flux-sched issue 1558, flux-core issue 7794: a node was in housekeeping for a
// week. After a change of the configuration and a reload, the ranks of the job
// that were free already were taken for an error, so that the rank still held
// was not marked, and another job got it. Then one conflict made every query
// fail.
func TestReenact1558WhatIsStillHeldIsMarkedAndAConflictIsListed(t *testing.T) {
	const inventory = `rank[0-3]/core[0-7],gpu[0-1] n[0-3]`
	old := upPool(t, inventory)
	r := alloc(t, old, 1, requestOf(t, specText("["+wholeNodes("4")+"]", "")))
	free(t, old, 1, r, "0-2", false)

	p := upPool(t, inventory)
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"new": idset.Of(0, 3)}}))
	require.NoError(t, p.Adopt(1, r, idset.Of(0, 1, 2)))
	require.NoError(t, p.Check())
	require.Equal(t, "rank[0-2]/core[0-7],gpu[0-1]", p.Available().String())
	_, err := p.Alloc(2, byNode(t, "4", "1"), 100)
	require.ErrorIs(t, err, pool.ErrBusy)
	require.Equal(t, "0-2", alloc(t, p, 2, requestOf(t, specText("["+wholeNodes("3")+"]", ""))).Ranks().String())

	// The rank was given to another job before.
	other := parseR(t, "rank3/core[0-3] n3")
	err = p.Adopt(3, other, nil)
	require.ErrorContains(t, err, heldTwice)
	require.EqualError(t, err, "pool: resources are held twice: jobs "+jobid.ID(3).String()+" and "+jobid.ID(1).String()+" both hold rank3/core[0-3]")
	var seen []string
	for h := range p.Allocations() {
		if n, other, both := p.Conflicts(h.ID); n > 0 {
			seen = append(seen, fmt.Sprintf("%d with %d: %s", h.ID, other, both))
		}
	}
	require.Equal(t, []string{"1 with 3: rank3/core[0-3]", "3 with 1: rank3/core[0-3]"}, seen)
	require.Equal(t, 3, p.Len())
	require.True(t, p.Available().IsEmpty())
	require.NoError(t, p.Check())

	// Neither of the two frees what the other one holds.
	free(t, p, 1, nil, "", true)
	require.Equal(t, "rank3/core[4-7],gpu[0-1]", p.Available().String())
	n, _, _ := p.Conflicts(3)
	require.Zero(t, n)
	free(t, p, 3, other, "3", true)
	require.Equal(t, "rank3/core[0-7],gpu[0-1]", p.Available().String())
}

// flux-sched commit 26eef394: a job on two racks freed two of its three nodes.
// Both racks lost the count of both, and nodes could not be allocated any more.
func TestReenact26eef394PartialFreeOverTwoRacks(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	require.NoError(t, p.Update(pool.Change{AddProperties: map[string]*idset.Set{"rack0": idset.Of(0, 1), "rack1": idset.Of(2, 3)}}))
	r := alloc(t, p, 1, byNode(t, "3", "4"))
	require.Equal(t, "0-2", r.Ranks().String())
	free(t, p, 1, r, "1-2", false)
	onRack := func(rack, nodes string) *pool.Request {
		return requestOf(t, specText(shape("node", nodes, vertex("slot", "1", vertex("core", "4"))), `{"properties":["`+rack+`"]}`))
	}
	_, err := p.Alloc(2, onRack("rack0", "2"), 100)
	require.ErrorIs(t, err, pool.ErrBusy)
	require.Equal(t, "1", alloc(t, p, 2, onRack("rack0", "1")).Ranks().String())
	require.Equal(t, "2-3", alloc(t, p, 3, onRack("rack1", "2")).Ranks().String())
	free(t, p, 1, r, "0", true)
	require.Equal(t, "rank0/core[0-3]", p.Available().String())
}

// flux-sched issue 1170: cores 80 to 95 of a node were given to two jobs. One
// method had served for the cancel of a request and for the free of resources.
func TestReenact1170CancelIsNotFreeAndTheOverlapIsNamed(t *testing.T) {
	t.Log("PR-8")
	p := upPool(t, "rank[0-1]/core[0-95] n[0-1]")
	require.NoError(t, p.Adopt(1, parseR(t, "rank0/core[80-95] n0"), nil))
	err := p.Adopt(2, parseR(t, "rank0/core[0-95] n0"), nil)
	require.EqualError(t, err, "pool: resources are held twice: jobs ƒ3 and ƒ2 both hold rank0/core[80-95]")
	n, other, both := p.Conflicts(2)
	require.Equal(t, 1, n)
	require.Equal(t, jobid.ID(1), other)
	require.Equal(t, "rank0/core[80-95]", both.String())
	require.NoError(t, p.Check())

	// PR-8: there is no cancel, and a request that holds nothing frees nothing.
	methods := reflect.TypeFor[*pool.Pool]()
	for i := range methods.NumMethod() {
		require.NotContains(t, strings.ToLower(methods.Method(i).Name), "cancel")
	}
	before := textOf(p)
	for _, final := range []bool{false, true} {
		_, err = p.Free(7, parseR(t, "rank0/core[0-95] n0"), final)
		require.ErrorIs(t, err, pool.ErrNotFound)
	}
	require.EqualError(t, err, "pool: job has no resources: "+jobid.ID(7).String())
	require.Equal(t, before, textOf(p))
}

// flux-sched issue 1301, commit 2b4b6ff9: of an R with several entries only the
// last one was freed.
func TestReenact1301And2b4b6ff9EveryEntryComesBack(t *testing.T) {
	p := upPool(t, "rank0/core[0-47] rank1/core[0-23] rank2/core[24-47] n[0-2]")
	whole := p.Available().String()
	r := alloc(t, p, 1, requestOf(t, specText("["+wholeNodes("3")+"]", "")))
	require.Len(t, slices.Collect(r.Entries()), 3)
	require.True(t, p.Available().IsEmpty())
	require.True(t, free(t, p, 1, r, "0-2", true).IsEmpty())
	require.Equal(t, whole, p.Available().String())
}

// flux-sched issue 1043, flux-core issue 5300: a job past its time limit lost
// its nodes while its epilog was running (PR-7).
func TestReenact1043AJobPastItsExpirationHoldsWhatItHeld(t *testing.T) {
	p := upPool(t, "rank0/core[0-3] n0")
	r := alloc(t, p, 1, byNode(t, "1", "4"))
	require.Equal(t, eventlog.Timestamp(190.5), r.Expiration())
	late := eventlog.Timestamp(100000)
	_, err := p.Alloc(2, byNode(t, "1", "1"), late)
	require.ErrorIs(t, err, pool.ErrBusy)
	at, err := p.Earliest(byNode(t, "1", "1"), late)
	require.NoError(t, err)
	require.Equal(t, late, at) // the job may end at any moment
	_, err = p.Alloc(2, byNode(t, "1", "1"), at)
	require.ErrorIs(t, err, pool.ErrBusy)
	h, ok := p.Allocation(1)
	require.True(t, ok)
	require.True(t, rset.SameResources(r, h.Held))
}

// flux-sched issue 1266: final came with fragments that did not add up.
func TestReenact1266FinalReleasesWhatNoFragmentNamed(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	r := alloc(t, p, 1, byNode(t, "4", "4"))
	require.Equal(t, "rank[0,2-3]/core[0-3]", free(t, p, 1, r, "1", true).String())
	require.Equal(t, "rank[0-3]/core[0-3]", p.Available().String())
	require.Zero(t, p.Len())

	// The other way round: all is freed, and final comes later, with nothing.
	r = alloc(t, p, 2, byNode(t, "4", "4"))
	rest, err := p.Free(2, r, false)
	require.NoError(t, err)
	require.Nil(t, rest)
	h, ok := p.Allocation(2)
	require.True(t, ok)
	require.True(t, h.Held.IsEmpty())
	rest, err = p.Free(2, new(rset.R), true)
	require.NoError(t, err)
	require.True(t, rest.IsEmpty())
	_, err = p.Free(2, nil, true)
	require.ErrorIs(t, err, pool.ErrNotFound)
}

// volcano issue 3392: a node shrank below what was used of it, and the
// arithmetic panicked. flux-core commit 701aac7f2: the free of ranks that were
// gone killed the scheduler (PR-13, PR-14).
func TestReenact3392ShrinkBelowWhatIsUsed(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	r := alloc(t, p, 1, byNode(t, "3", "4"))
	require.NoError(t, p.Update(pool.Change{Shrink: idset.Of(1, 2, 3)}))
	require.NoError(t, p.Check())
	h, _ := p.Allocation(1)
	require.Equal(t, "rank0/core[0-3]", h.Held.String())
	require.Equal(t, "rank[1-2]/core[0-3]", h.Gone.String())
	require.ErrorIs(t, p.Feasible(byNode(t, "2", "1")), pool.ErrInfeasible)
	free(t, p, 1, r, "0-1", false)
	h, _ = p.Allocation(1)
	require.Equal(t, "rank2/core[0-3]", h.Gone.String())
	require.Equal(t, "rank2/core[0-3]", free(t, p, 1, nil, "", true).String())
	require.Equal(t, "rank0/core[0-3]", p.Available().String())

	// All ranks may go.
	require.NoError(t, p.Update(pool.Change{Shrink: idset.Of(0)}))
	require.True(t, p.Inventory().IsEmpty())
	require.ErrorIs(t, p.Feasible(byNode(t, "1", "1")), pool.ErrInfeasible)
	require.NoError(t, p.Check())
}

// flux-core issue 6294: a reload repeated "jobid with matching R exists" for
// every job.
func TestReenact6294HelloMayBeRepeated(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	r := parseR(t, "rank[0-4]/core[0-3] n[0-4]")
	first := p.Adopt(1, r, idset.Of(2))
	require.EqualError(t, first, "pool: resources are not in the inventory: job "+jobid.ID(1).String()+": rank4/core[0-3]")
	before := textOf(p)
	for range 10 {
		require.EqualError(t, p.Adopt(1, r, idset.Of(2)), first.Error())
	}
	require.Equal(t, before, textOf(p))
	// Another allocation, or another part of it, is not a repetition.
	for _, freed := range []*idset.Set{nil, idset.Of(1, 2), idset.Of(3)} {
		require.ErrorIs(t, p.Adopt(1, r, freed), pool.ErrExists)
	}
	require.ErrorIs(t, p.Adopt(1, parseR(t, "rank[0-3]/core[0-3] n[0-3]"), idset.Of(2)), pool.ErrExists)
	require.ErrorIs(t, p.Adopt(1, parseR(t, "rank[0-5]/core[0-3] n[0-5]"), idset.Of(2, 5)), pool.ErrExists) // which leaves the same
	require.Equal(t, before, textOf(p))
}

// The manager may tell R as it was made or with the expiration that the job has
// got since, and both are what is known.
func TestHelloMayBeRepeatedAfterTheExpirationChanged(t *testing.T) {
	p := upPool(t, "rank[0-3]/core[0-3] n[0-3]")
	r := alloc(t, p, 1, byNode(t, "2", "2"))
	require.NoError(t, p.SetExpiration(1, 5000))
	updated, err := r.WithTimes(r.Start(), 5000)
	require.NoError(t, err)
	before := textOf(p)
	require.NoError(t, p.Adopt(1, r, nil))
	require.NoError(t, p.Adopt(1, updated, nil))
	require.Equal(t, before, textOf(p))
	h, _ := p.Allocation(1)
	require.EqualValues(t, 5000, h.Expiration)
	// Another time is neither.
	other, err := r.WithTimes(r.Start(), 6000)
	require.NoError(t, err)
	require.ErrorIs(t, p.Adopt(1, other, nil), pool.ErrExists)
	// No R has an expiration before its start; one may be set all the same.
	require.NoError(t, p.SetExpiration(1, 1))
	require.NoError(t, p.Adopt(1, r, nil))
	require.ErrorIs(t, p.Adopt(1, updated, nil), pool.ErrExists)
}
