package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// What became of a mutant. The compiler refuses an invalid one.
const killed, hung, invalid, equivalent, survives = "killed", "hung", "invalid", "equivalent", "survives"

const (
	module   = "github.com/joblife/joblife"
	listFile = "internal/mutants/equivalent.txt"
	doneFile = "mutants.out"
)

var (
	sample = flag.Int("sample", 0, "try `n` mutants of each package, chosen by -seed; 0: all")
	seed   = flag.Uint64("seed", 1, "chooses the sample")
	own    = flag.Bool("own", false, "run no tests but those of the mutant's own package")

	reasons = make(map[string]string)    // of the mutants that are listed, by key
	done    = make(map[string][2]string) // what became of a mutant, and the state of its package then
	tests   [][]string                   // a package and what its tests link; those that link least come first
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	out := must(os.OpenFile(doneFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))
	for line := range strings.Lines(string(must(os.ReadFile(doneFile)))) {
		if f := strings.SplitN(strings.TrimSpace(line), "\t", 3); len(f) == 3 {
			done[f[2]] = [2]string{f[0], f[1]}
		}
	}
	readReasons()
	for line := range strings.Lines(command("go", "list", "-test", "-f", `{{.ImportPath}},{{join .Deps ","}}`, "./...")) {
		f := strings.Split(strings.TrimSpace(line), ",")
		for i := range f {
			f[i], _, _ = strings.Cut(f[i], " ")
		}
		if p, ok := strings.CutSuffix(f[0], ".test"); ok {
			tests = append(tests, append(f[1:], p))
		}
	}
	slices.SortStableFunc(tests, func(a, b []string) int { return len(a) - len(b) })
	bad := 0
	for _, dir := range flag.Args() {
		bad += mutate(dir, out)
	}
	if bad > 0 {
		log.Fatalf("%d to look at", bad)
	}
}

func readReasons() {
	for line := range strings.Lines(string(must(os.ReadFile(listFile)))) {
		if at := strings.LastIndex(line, "\t"); at > 0 {
			reasons[line[:at]] = line[at:]
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func command(name string, args ...string) string {
	return string(must(exec.Command(name, args...).Output()))
}

// all returns the mutants of a folder, and the state of its files.
func all(dir string) (list []mutant, state string) {
	for _, name := range strings.Fields(command("go", "list", "-f", `{{join .GoFiles "\n"}}`, "./"+dir)) {
		name = filepath.Join(dir, name)
		list = append(list, mutants(dir, name, string(must(os.ReadFile(name))))...)
	}
	seen := make(map[string]int)
	for i := range list {
		key := list[i].key()
		if seen[key]++; seen[key] > 1 {
			list[i].change += fmt.Sprintf(" #%d", seen[key])
		}
	}
	digest := sha256.New()
	for _, name := range must(filepath.Glob(filepath.Join(dir, "*.go"))) {
		digest.Write(must(os.ReadFile(name)))
	}
	return list, fmt.Sprintf("%x own=%v", digest.Sum(nil)[:6], *own)
}

// mutate tries the mutants of a package and returns how many need a person's eyes.
func mutate(dir string, out *os.File) (bad int) {
	list, state := all(dir)
	total := len(list)
	if *sample > 0 && *sample < total {
		rng := rand.New(rand.NewPCG(*seed, 0))
		rng.Shuffle(total, func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = list[:*sample]
	}
	status, output := test("./"+dir, nil, 5*time.Minute)
	if status != survives {
		log.Fatalf("%s: its tests fail without a mutant:\n%s", dir, output)
	}
	limit := 10*time.Second + 10*must(time.ParseDuration(strings.Fields(output)[2]))
	var mutex sync.Mutex
	var wait sync.WaitGroup
	count, ended, start, said := make(map[string]int), 0, time.Now(), time.Now()
	next := make(chan mutant)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for m := range next {
				status := done[m.key()][0]
				stale := status == "" || status == survives && done[m.key()][1] != state
				by := ""
				if stale {
					status, by = try(m, limit)
				}
				mutex.Lock()
				if stale {
					fmt.Fprintf(out, "%s\t%s%s\t%s\n", status, state, by, m.key())
				}
				bad += judge(m, status, count)
				if ended++; time.Since(said) > 30*time.Second {
					said = time.Now()
					left := said.Sub(start) / time.Duration(ended) * time.Duration(len(list)-ended)
					log.Printf("%s: %d of %d, %v left", dir, ended, len(list), left.Round(time.Second))
				}
				mutex.Unlock()
			}
		})
	}
	for _, m := range list {
		next <- m
	}
	close(next)
	wait.Wait()
	fmt.Printf("%s: %d mutants of %d: %d killed, %d of them by a hang, %d equivalent, %d survive\n", dir,
		len(list)-count[invalid], total, count[killed]+count[hung], count[hung], count[equivalent], count[survives])
	return bad
}

// judge counts what became of a mutant. It prints one that somebody has to look at, and
// returns 1 for it.
func judge(m mutant, status string, count map[string]int) int {
	listed := reasons[m.key()] != ""
	if listed && status == survives {
		status = equivalent
	}
	if count[status]++; status == survives || listed && status != equivalent {
		after := lineAt(m.apply(string(must(os.ReadFile(m.file)))), m.from)
		fmt.Printf("%s:%d: %s, listed as equivalent: %v\n%s\n- %s\n+ %s\n", m.file, m.row, status, listed, m.key(), m.line, after)
		return 1
	}
	return 0
}

// try returns what became of a mutant, and which test has killed it.
func try(m mutant, limit time.Duration) (status, by string) {
	status, output := test("./"+m.pkg, &m, limit)
	for _, deps := range tests {
		p, changed := deps[len(deps)-1], path.Join(module, m.pkg)
		if status == survives && !*own && p != changed && slices.Contains(deps, changed) {
			status, output = test("./"+strings.TrimPrefix(p, module), &m, 5*time.Minute)
		}
	}
	if _, failed, ok := strings.Cut(output, "--- FAIL: "); ok && status == killed {
		by = " by=" + strings.Fields(failed)[0]
	}
	return status, by
}

// test runs the tests of a package, without a mutant if m is nil.
func test(dir string, m *mutant, limit time.Duration) (status, output string) {
	args := []string{"test", "-vet=off", "-ldflags=-s -w", "-short", "-failfast", "-count=1", "-timeout", limit.String(), dir}
	if m != nil {
		temp := must(os.MkdirTemp("", "mutant"))
		defer os.RemoveAll(temp)
		changed, overlay := filepath.Join(temp, "changed.go"), filepath.Join(temp, "overlay.json")
		replace := map[string]map[string]string{"Replace": {must(filepath.Abs(m.file)): changed}}
		must(0, os.WriteFile(changed, []byte(m.apply(string(must(os.ReadFile(m.file))))), 0o600))
		must(0, os.WriteFile(overlay, must(json.Marshal(replace)), 0o600))
		args = slices.Insert(args, 1, "-overlay", overlay)
	}
	for _, deps := range tests {
		if deps[len(deps)-1] == path.Join(module, dir) && slices.Contains(deps, "pgregory.net/rapid") {
			args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "JOBLIFE_COMMIT=0")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return survives, string(out)
	case bytes.Contains(out, []byte("[build failed]")):
		return invalid, string(out)
	case bytes.Contains(out, []byte("panic: test timed out")):
		return hung, string(out)
	}
	return killed, string(out)
}
