// Package attack drives harnesses that play random runs: it chooses their seeds, repeats
// one, and makes a run that failed as short as it finds.
//
//   - JOBLIFE_SOAK, which the harness reads, is how long it plays fresh seeds.
//   - JOBLIFE_SEED repeats a seed.
//   - JOBLIFE_COMMIT, a commit's hash, is where CI begins, so that each commit meets seeds
//     of its own and a red run can be repeated.
//
// Only tests import this package.
package attack

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A Tape is the choices of a run, and what came of them. Without more choices every one
// is 0, which is the dullest.
type Tape struct {
	Clock  func() string // the time of what is said
	Traced bool          // what happens is noted
	Hash   hash.Hash64   // of what a run writes: the same choices write the same

	Steps, Crashes, Jobs int
	Failed               string // what the judge said

	rng   *rand.Rand // nil: the choices are replayed
	made  []uint32
	next  int
	trace []string
}

type violation string

// N chooses a number below n.
func (t *Tape) N(n int) int {
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

// P chooses whether something happens that has a probability.
func (t *Tape) P(x float64) bool { return t.N(1000) >= 1000-int(x*1000) }

// Say notes what happens, for the people who read a failed run.
func (t *Tape) Say(format string, args ...any) {
	if !t.Traced {
		return
	}
	t.trace = append(t.trace, t.Clock()+" "+fmt.Sprintf(format, args...))
	if len(t.trace) > 3000 {
		t.trace = t.trace[1000:]
	}
}

// Fail ends the run: the judge has found a fault.
func (t *Tape) Fail(format string, args ...any) { panic(violation(fmt.Sprintf(format, args...))) }

// Must ends the run at an error.
func (t *Tape) Must(err error) {
	if err != nil {
		t.Fail("%v", err)
	}
}

// Play plays a seed to its end, or to its failure.
func Play(seed uint64, play func(*Tape)) *Tape {
	return attempt(&Tape{rng: rand.New(rand.NewPCG(seed, 2))}, play)
}

func attempt(t *Tape, play func(*Tape)) (same *Tape) {
	t.Hash = fnv.New64a()
	defer func() {
		same = t
		switch r := recover().(type) {
		case nil:
		case violation:
			t.Failed = string(r)
		default:
			t.Failed = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	play(t)
	return t
}

// Soak plays fresh seeds for the time that soak says, or else for a quarter of a second.
func Soak(t *testing.T, soak string, play func(*Tape)) {
	t.Helper()
	if text := os.Getenv("JOBLIFE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		report(t, seed, play)
		return
	}
	length, seed, err := time.Second/4, rand.Uint64(), error(nil)
	if soak != "" {
		if length, err = time.ParseDuration(soak); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("JOBLIFE_COMMIT"); text != "" {
		if seed, err = strconv.ParseUint(text[:min(len(text), 15)], 16, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("first seed %d; JOBLIFE_SEED=n go test -run %s repeats seed n", seed, t.Name())
	start := time.Now()
	var all Tape
	runs := 0
	for ; time.Since(start) < length || all.Crashes == 0 || all.Steps < 1000; runs++ {
		p := Play(seed, play)
		all.Steps, all.Crashes, all.Jobs = all.Steps+p.Steps, all.Crashes+p.Crashes, all.Jobs+p.Jobs
		if p.Failed != "" {
			report(t, seed, play)
			return
		}
		seed++
	}
	took := time.Since(start).Seconds()
	t.Logf("%d runs, %d jobs, %d steps and %d crashes survived: %.0f and %.0f a second", runs, all.Jobs, all.Steps, all.Crashes, float64(all.Steps)/took, float64(all.Crashes)/took)
}

// Seeds plays the same seeds each time, and the first of them twice: the same inputs give
// the same records (I7).
func Seeds(t *testing.T, seeds uint64, play func(*Tape)) {
	t.Helper()
	for seed := range seeds {
		p := Play(seed, play)
		if p.Failed != "" {
			report(t, seed, play)
			return
		}
		if seed > 5 {
			continue
		}
		if q := Play(seed, play); p.Hash.Sum64() != q.Hash.Sum64() || p.Steps != q.Steps {
			t.Fatalf("I7: seed %d gives other records the second time", seed)
		}
	}
}

// report repeats a seed, makes its run as short as it finds, and fails.
func report(t *testing.T, seed uint64, play func(*Tape)) {
	t.Helper()
	p := Play(seed, play)
	if p.Failed == "" {
		t.Logf("seed %d: %d steps, %d crashes survived", seed, p.Steps, p.Crashes)
		return
	}
	p = attempt(&Tape{made: shrink(p.made, play), Traced: true}, play)
	for _, line := range p.trace {
		t.Log(line)
	}
	t.Errorf("seed %d: %s", seed, p.Failed)
}

func shrink(made []uint32, play func(*Tape)) []uint32 {
	end := time.Now().Add(8 * time.Second)
	for size := len(made); size > 0 && time.Now().Before(end); {
		found := false
		for at := 0; at < len(made); {
			q := attempt(&Tape{made: slices.Concat(made[:at], made[min(at+size, len(made)):])}, play)
			if q.Failed != "" && time.Now().Before(end) {
				made, found = q.made[:min(len(q.made), q.next)], true
			} else {
				at += size
			}
		}
		if !found || size > 1 {
			size /= 2
		}
	}
	return made
}
