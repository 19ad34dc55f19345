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
	_, err := x.Plan(start+10, purge.Limits{Batch: -2})
	require.EqualError(t, err, "purge: invalid limits: Batch: must be 1 to 1000")
}
