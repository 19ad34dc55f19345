package disk

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/joblife/joblife/internal/attack"
	"github.com/joblife/joblife/internal/race"
)

// Cuts have processes work on real files, one after the other, while the power fails amid
// each: so the next one finds what that left.
type Cuts struct {
	// Sector and Ordered are as of Disk.
	Sector  int
	Ordered bool
	// Soak is how long Run goes on, as JOBLIFE_SOAK has it. By default it takes some runs.
	Soak string
	// Work opens a store in a folder, perhaps for the first time, and changes it as a seed
	// says. It says what the store has when it is open, and each time that a change is
	// acknowledged.
	Work func(dir string, seed uint64, say func(has string)) error
	// Read opens the store, and returns what it has. That must be what was said last, or
	// what would have been said next: a change is there as a whole, or not at all. In a
	// new folder it may be "".
	Read func(dir string) (has string, err error)
}

// CutsOf returns Cuts of a store that a process opens and changes so many times.
func CutsOf[S io.Closer](changes int, open func(dir string) (S, error), has func(S) (string, error), change func(s S, has string, random *rand.Rand) error) Cuts {
	return Cuts{
		Work: func(dir string, seed uint64, say func(string)) error {
			s, err := open(dir)
			if err != nil {
				return err
			}
			random := rand.New(rand.NewPCG(seed, 1))
			for n := 0; ; n++ {
				text, err := has(s)
				if err != nil {
					return err
				}
				if say(text); n == changes {
					return s.Close()
				}
				if err := change(s, text, random); err != nil {
					return err
				}
			}
		},
		Read: func(dir string) (string, error) {
			s, err := open(dir)
			if err != nil {
				return "", err
			}
			text, err := has(s)
			return text, errors.Join(err, s.Close())
		},
	}
}

// Run chooses in each process several points at which the power fails, and what that leaves of
// what was not synced. Or the process is killed at the last point, and the power fails under
// the next one.
func (c Cuts) Run(t *testing.T) {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // what survives is for the Disk to say, so memory will do
	}
	if race.Enabled {
		t.Skip("one goroutine works here, and is recorded")
	}
	if c.Soak == "" {
		c.Soak = "1ms"
	}
	attack.Soak(t, c.Soak, func(tape *attack.Tape) { c.play(t, tape) })
}

func (c Cuts) play(t *testing.T, tape *attack.Tape) {
	tape.Clock = func() string { return "" }
	d, may := New(), []string{""}
	d.Sector, d.Ordered = c.Sector, c.Ordered
	const cuts = 6 // of each process; the next one goes on from the last
	for range 1 + tape.N(3) {
		calls := d.Record(t, strconv.Itoa(tape.N(1<<30)), func(dir, arg string, say func(string)) error {
			seed, err := strconv.ParseUint(arg, 10, 64)
			if err != nil {
				return err
			}
			return c.Work(dir, seed, say)
		})
		for n := range cuts {
			last := n == cuts-1
			k := tape.N(len(calls) + 1)
			if !last && tape.P(0.5) { // the first calls, which repair, more often
				k = tape.N(1 + k/4)
			}
			after := d.Clone()
			after.Coin = Coins(uint64(tape.N(1 << 30)))
			has := after.do(tape, calls, k, may)
			if !last || tape.P(0.5) { // else only the process is killed
				after.Crash()
			}
			tape.Steps, tape.Crashes = tape.Steps+k, tape.Crashes+1
			dir := filepath.Join(t.TempDir(), "cut")
			tape.Must(after.Save(dir))
			found, err := c.Read(dir)
			if err != nil || !slices.Contains(has, found) {
				for _, c := range calls[:k] {
					tape.Say("%s %s %s %d: %d bytes", c.Op, c.Name, c.To, c.At, len(c.Data))
				}
				tape.Fail("after call %d: %v: it has %.2000q, and may have %.2000q", k, err, found, has)
			}
			tape.Must(os.RemoveAll(dir))
			if last {
				d, may = after, has
			}
		}
	}
}

// do does the first k calls, and returns what the store may have then.
func (d *Disk) do(tape *attack.Tape, calls []Call, k int, may []string) (has []string) {
	has = slices.Clone(may)
	said := 0
	for n, c := range calls {
		if n < k {
			tape.Must(d.Do(c))
		}
		if c.Op != opSay {
			continue
		}
		if said++; said == 1 && !slices.Contains(may, string(c.Data)) {
			tape.Fail("it has %.2000q, and may have %.2000q", c.Data, may)
		}
		if n < k {
			has = []string{string(c.Data)}
		} else if said > 1 {
			return append(has, string(c.Data))
		}
	}
	return has
}
