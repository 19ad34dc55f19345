package pool_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/pool"
)

// What copies of a pool share, none of them writes to. The race detector sees
// whether that is so.
func TestCopiesMayBeUsedByDifferentGoroutines(t *testing.T) {
	p := upPool(t, "rank[0-31]/core[0-7],gpu[0-1] n[0-31]")
	narrow, wide := bySlot(t, "1", "3"), byNode(t, "2", "8")
	for id := range jobid.ID(12) {
		alloc(t, p, id, narrow)
	}
	require.ErrorContains(t, p.Adopt(100, parseR(t, "rank[0-3,40]/core[2-5]"), nil), heldTwice)
	use := func(p *pool.Pool) (text string, err error) {
		for i := range jobid.ID(20) {
			_, err1 := p.Alloc(1000+i, wide, 100)
			_, err2 := p.Earliest(wide, 100)
			freed, err3 := p.Free(i%12, nil, i%3 == 0)
			err4 := p.Update(pool.Change{Down: idset.Of(uint32(i)), AddProperties: map[string]*idset.Set{"a": idset.Of(uint32(i))}})
			err5 := p.Clone().Update(pool.Change{Shrink: idset.Of(uint32(i), 31)})
			text += fmt.Sprintln(err1, err2, freed, err3, err4, err5, textOf(p))
		}
		return text, p.Check()
	}
	type result struct {
		text string
		err  error
	}
	results := make(chan result)
	for range 3 {
		c := p.Clone()
		go func() {
			text, err := use(c)
			results <- result{text, err}
		}()
	}
	want, err := use(p)
	require.NoError(t, err)
	require.NotZero(t, p.Len())
	for range 3 {
		r := <-results
		require.NoError(t, r.err)
		require.Equal(t, want, r.text)
	}
}

// Whatever can change is a tree of the clone's own.
func TestACloneSharesNoTree(t *testing.T) {
	p := upPool(t, "rank[0-1]/core[0-3]")
	a, b := reflect.ValueOf(p).Elem(), reflect.ValueOf(p.Clone()).Elem()
	trees := 0
	for i := range a.NumField() {
		name := a.Type().Field(i).Name
		if strings.Contains(a.Type().Field(i).Type.String(), "BTree") && name != "whole" {
			require.NotEqual(t, a.Field(i).Pointer(), b.Field(i).Pointer(), name)
			trees++
		} else if kind := a.Field(i).Kind(); kind == reflect.Pointer || kind == reflect.Map {
			require.Equal(t, a.Field(i).Pointer(), b.Field(i).Pointer(), name)
		}
	}
	require.Equal(t, 6, trees)
	require.NoError(t, p.Feasible(byNode(t, "1", "1")))
	_, requests := p.Known()
	require.Equal(t, 1, requests)
	_, requests = p.Clone().Known()
	require.Zero(t, requests, "what it knows is a map of its own")
}
