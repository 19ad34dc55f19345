package joblife_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// The harness: random embedders, users, schedulers, executors and nodes around a
// Manager, with faults in every place where the protocols allow them, and a crash
// between any two lines of the embedder's loop. A joblifetest.World judges.

// TestAttack runs fresh seeds for a second, or as long as JOBLIFE_SOAK says.
// JOBLIFE_SEED repeats one, and shrinks it. JOBLIFE_COMMIT, a commit's hash, is where
// CI begins, so that each commit meets seeds of its own and a red run can be repeated.
func TestAttack(t *testing.T) {
	if text := os.Getenv("JOBLIFE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		report(t, seed)
		return
	}
	length := time.Second
	if testing.Short() {
		length /= 4
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
	start := time.Now()
	var steps, crashes, jobs, runs int
	for ; time.Since(start) < length || crashes == 0 || steps < 500; runs++ {
		p := attempt(fresh(seed))
		steps, crashes, jobs = steps+p.steps, crashes+p.crashes, jobs+len(p.known)
		if p.failed != "" {
			report(t, seed)
			return
		}
		seed++
	}
	took := time.Since(start).Seconds()
	t.Logf("%d runs, %d jobs, %d steps and %d crashes survived: %.0f and %.0f a second", runs, jobs, steps, crashes, float64(steps)/took, float64(crashes)/took)
}

// TestAttackSeeds runs the same seeds each time, and the first of them twice: the
// same inputs give the same records (I7).
func TestAttackSeeds(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 8
	}
	panics := 0
	for seed := range seeds {
		p := attempt(fresh(seed))
		panics += p.panics
		if p.failed != "" {
			report(t, seed)
			return
		}
		if seed > 5 {
			continue
		}
		if q := attempt(fresh(seed)); fmt.Sprint(p.hash.Sum64(), p.steps) != fmt.Sprint(q.hash.Sum64(), q.steps) {
			t.Fatalf("I7: seed %d gives other records the second time", seed)
		}
	}
	if panics == 0 {
		t.Fatal("no hook has panicked")
	}
}

// report repeats a seed, makes its run as short as it finds, and fails.
func report(t *testing.T, seed uint64) {
	p := attempt(fresh(seed))
	if p.failed == "" {
		t.Logf("seed %d: %d steps, %d crashes survived", seed, p.steps, p.crashes)
		return
	}
	p = attempt(&tape{made: shrink(p).made, traced: true})
	for _, line := range p.trace {
		t.Log(line)
	}
	t.Errorf("seed %d: %s", seed, p.failed)
}

// A tape is the choices of a run. Without more of them every choice is 0, which is
// the dullest.
type tape struct {
	rng    *rand.Rand // nil: it is replayed
	made   []uint32
	next   int
	traced bool // what happens is noted
}

func fresh(seed uint64) *tape { return &tape{rng: rand.New(rand.NewPCG(seed, 2))} }

// n chooses a number below n.
func (t *tape) n(n int) int {
	v := uint32(0)
	switch {
	case t.rng != nil:
		v = uint32(t.rng.IntN(n))
		t.made = append(t.made, v)
	case t.next < len(t.made):
		v = t.made[t.next] % uint32(n)
	}
	t.next++
	return int(v)
}

// p chooses whether something rare happens.
func (t *tape) p(x float64) bool { return t.n(1000) >= 1000-int(x*1000) }

// attempt plays a run to its end, or to its failure.
func attempt(t *tape) (p *play) {
	p = newPlay(t)
	defer func() {
		if r := recover(); r != nil {
			p.failed = fmt.Sprint(r)
			if _, ok := r.(violation); !ok {
				p.failed = fmt.Sprintf("panic: %v\n%s", r, stack())
			}
		}
	}()
	p.run()
	return p
}

// shrink looks for a shorter run that fails too.
func shrink(p *play) *play {
	end := time.Now().Add(8 * time.Second)
	try := func(made []uint32) bool {
		q := attempt(&tape{made: made})
		if q.failed == "" || time.Now().After(end) {
			return false
		}
		q.made = made[:min(len(made), q.next)]
		p = q
		return true
	}
	for size := len(p.made); size > 0 && time.Now().Before(end); {
		found := false
		for at := 0; at < len(p.made); {
			cut := append(append([]uint32(nil), p.made[:at]...), p.made[min(at+size, len(p.made)):]...)
			if try(cut) {
				found = true
			} else {
				at += size
			}
		}
		if !found || size > 1 {
			size /= 2
		}
	}
	return p
}
