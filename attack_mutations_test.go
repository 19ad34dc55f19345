//go:build joblife_mutations

package joblife_test

import (
	"fmt"
	"testing"

	"github.com/joblife/joblife"
)

// TestMutations makes deliberate faults, one after the other, and fails if the harness
// does not find one. Run it with -tags joblife_mutations.
func TestMutations(t *testing.T) {
	for n := 1; n <= joblife.Mutations; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			joblife.Mutate(n)
			defer joblife.Mutate(0)
			for seed := range uint64(3000) {
				if p := attempt(fresh(seed)); p.failed != "" {
					t.Logf("found by seed %d: %.200s", seed, p.failed)
					return
				}
			}
			t.Errorf("mutation %d survives", n)
		})
	}
}
