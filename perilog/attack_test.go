package perilog_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// The adversary: random embedders that are careless. They batch events, skip
// Takes, apply events in any order, report late, twice and of old attempts, crash
// between any two of their steps, within recovery too, and change the
// configuration between lives. A table of processes, which knows nothing of the
// library, is the judge: see attack_world_test.go.

// TestAttack runs fresh seeds for a second, or as long as JOBLIFE_SOAK says.
// JOBLIFE_SEED repeats one. JOBLIFE_COMMIT, a commit's hash, is where CI begins, so
// that each commit meets seeds of its own and a red run can be repeated.
func TestAttack(t *testing.T) {
	if text := os.Getenv("JOBLIFE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		attack(t, seed, true)
		return
	}
	length := time.Second
	if testing.Short() {
		length /= 10
	}
	if text := os.Getenv("JOBLIFE_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	if text := os.Getenv("JOBLIFE_COMMIT"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text[:min(len(text), 15)], 16, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("first seed %d; JOBLIFE_SEED=n go test -run TestAttack repeats seed n", seed)
	var steps, crashes, jobs int
	for end := time.Now().Add(length); time.Now().Before(end) || crashes == 0 || steps < 1000; jobs++ {
		s, c := attack(t, seed, false)
		steps, crashes = steps+s, crashes+c
		if t.Failed() {
			return
		}
		seed++
	}
	t.Logf("%d jobs, %d steps, %d crashes", jobs, steps, crashes)
}

// TestAttackSeeds repeats seeds that once found a fault.
func TestAttackSeeds(t *testing.T) {
	seeds := uint64(500)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		attack(t, seed, false)
		if t.Failed() {
			return
		}
	}
}

// attack plays one job from submit to its end.
func attack(t *testing.T, seed uint64, verbose bool) (steps, crashes int) {
	w := newWorld(seed)
	w.verbose = verbose
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(violation); !ok {
				w.trace = append(w.trace, fmt.Sprintf("panic: %v", p))
			}
			for _, line := range w.trace {
				t.Log(line)
			}
			t.Errorf("seed %d: %v", seed, p)
			if _, ok := p.(violation); !ok {
				panic(p)
			}
		}
		steps, crashes = w.steps, w.crashes
	}()
	w.play()
	return w.steps, w.crashes
}
