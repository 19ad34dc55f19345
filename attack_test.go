package joblife_test

import (
	"os"
	"testing"

	"github.com/joblife/joblife/internal/attack"
)

// The harness: random embedders, users, schedulers, executors and nodes around a
// Manager, with faults in every place where the protocols allow them, and a crash
// between any two lines of the embedder's loop. A joblifetest.World judges.

// TestAttack runs fresh seeds for a second, or as long as JOBLIFE_SOAK says. Package
// attack has the other variables.
func TestAttack(t *testing.T) {
	attack.Soak(t, os.Getenv("JOBLIFE_SOAK"), func(t *attack.Tape) { newPlay(t).run() })
}

// TestAttackSeeds runs the same seeds each time.
func TestAttackSeeds(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 8
	}
	panics := 0
	attack.Seeds(t, seeds, func(t *attack.Tape) {
		p := newPlay(t)
		defer func() { panics += p.panics }()
		p.run()
	})
	if panics == 0 {
		t.Fatal("no hook has panicked")
	}
}
