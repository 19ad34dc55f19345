package perilog_test

import (
	"os"
	"testing"

	"github.com/joblife/joblife/internal/attack"
)

// The adversary: random embedders that are careless. They batch events, skip
// Takes, apply events in any order, report late, twice and of old attempts, crash
// between any two of their steps, within recovery too, and change the
// configuration between lives. A table of processes, which knows nothing of the
// library, is the judge: see attack_world_test.go.

// TestAttack runs fresh seeds for a second, or as long as JOBLIFE_SOAK says. Package
// attack has the other variables.
func TestAttack(t *testing.T) {
	attack.Soak(t, os.Getenv("JOBLIFE_SOAK"), func(t *attack.Tape) { newWorld(t).play() })
}

// TestAttackSeeds runs the same seeds each time.
func TestAttackSeeds(t *testing.T) {
	seeds := uint64(250)
	if testing.Short() {
		seeds = 100
	}
	attack.Seeds(t, seeds, func(t *attack.Tape) { newWorld(t).play() })
}
