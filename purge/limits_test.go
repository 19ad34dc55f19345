package purge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/purge"
)

func TestLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	x, _ := populated(t, purge.Config{}, 3)
	for key, l := range map[string]purge.Limits{
		"MaxAge":   {MaxAge: jobstate.Some(time.Duration(-1))},
		"MinAge":   {MinAge: jobstate.Some(time.Duration(-1))},
		"MaxCount": {MaxCount: jobstate.Some(-42)},
		"Batch":    {Batch: 10000},
	} {
		_, err := x.Plan(start+10, l)
		require.ErrorContains(t, err, "purge: invalid limits: "+key+": must be ")
	}
	for batch, want := range map[int]string{
		-2: "must be 1 to 1000", purge.MaxBatch + 1: "must be 1 to 1000", purge.NoBatch: "must not be NoBatch",
	} {
		_, err := x.Claim(start+10, purge.Limits{Batch: batch})
		require.EqualError(t, err, "purge: invalid limits: Batch: "+want)
	}
}
