package pool_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/pool"
)

// How errors begin.
const (
	heldTwice  = "pool: resources are held twice"
	notInside  = "pool: resources are not in the inventory"
	notHeld    = "pool: resources are not held by the job"
	badArg     = "pool: invalid argument"
	badRequest = "pool: invalid request"
	badAcquire = "pool: invalid response to resource.acquire"
	tooMuch    = "pool: limit exceeded"
)

func TestCheckFindsWhatIsBroken(t *testing.T) {
	sound := upPool(t, "rank[0-1]/core[0-3] rank[2-3]/core[0-3],gpu0")
	require.NoError(t, sound.Update(pool.Change{Down: idset.Of(2, 3)}))
	require.ErrorContains(t, sound.Adopt(1, parseR(t, "rank[0,5]/core[0-3]"), nil), notInside)
	require.ErrorContains(t, sound.Adopt(2, parseR(t, "rank0/core[1-2]"), nil), heldTwice)
	require.NoError(t, sound.SetExpiration(2, 77))
	_, err := sound.Plan(8, byNode(t, "1", "1"), 50)
	require.NoError(t, err)
	require.NoError(t, sound.Check())
	for want, f := range pool.Breaks() {
		t.Run(want, func(t *testing.T) {
			broken := sound.Clone()
			f(broken)
			require.ErrorContains(t, broken.Check(), want)
		})
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
	require.NotZero(t, p.Known())
	require.Zero(t, p.Clone().Known(), "what it knows is a map of its own")
}
