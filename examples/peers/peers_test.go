package peers

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/bomb"
)

var update = flag.Bool("update", false, "with -bench .: rewrite the table that ends MEASURED.md")

// A task is work that each side does in its way, joblife first.
type task struct {
	name  string
	sides []side
}

// A side does the work once per call of run. What run returns is its answer, which
// show makes comparable outside the time that is measured; nil prints it.
type side struct {
	name string
	run  func() any
	show func(any) string
}

// us is joblife's name as a side.
const us = "joblife"

// tasks returns all tasks; scale divides their sizes.
func tasks(scale int) []task {
	return append(slices.Concat(jsonTasks(scale), setTasks(scale)), task{"fold", machines(1000 / scale)})
}

// least is the least CPU time of a task by a side.
var least = make(map[string]time.Duration)

func BenchmarkPeers(b *testing.B) {
	for _, t := range tasks(1) {
		for _, s := range t.sides {
			name := t.name + "/side=" + s.name
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				start := bomb.ProcessorTime()
				for b.Loop() {
					s.run()
				}
				if d := (bomb.ProcessorTime() - start) / time.Duration(b.N); least[name] == 0 || d < least[name] {
					least[name] = d
				}
			})
		}
	}
}

const measured, head = "../../MEASURED.md", "| task | CPU, where joblife's is 1 |\n|---|---|\n"

// rows are those of the table, of what was measured.
func rows() string {
	var out strings.Builder
	for _, t := range tasks(50) {
		var ratios []string
		for _, s := range t.sides[1:] {
			ratios = append(ratios, fmt.Sprintf("%s %.1f", s.name, float64(least[t.name+"/side="+s.name])/float64(least[t.name+"/side="+us])))
		}
		fmt.Fprintf(&out, "| %s | %s |\n", t.name, strings.Join(ratios, ", "))
	}
	return out.String()
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *update && code == 0 {
		text, err := os.ReadFile(measured)
		must(err)
		before, _, _ := strings.Cut(string(text), head)
		must(os.WriteFile(measured, []byte(before+head+rows()), 0o666))
	}
	os.Exit(code)
}

// The table has each task and each side.
func TestTheTableIsOfTheseTasks(t *testing.T) {
	text, err := os.ReadFile(measured)
	must(err)
	_, table, found := strings.Cut(string(text), head)
	got, want := regexp.MustCompile(` [0-9.]+`).ReplaceAllString(table, " NaN"), rows() // nothing is measured yet
	if !found || strings.Contains(table, "NaN") || got != want {
		t.Errorf("go test -run '^$' -bench . -update; it has\n%s\nwant, with numbers,\n%s", table, want)
	}
}

func TestSidesAgree(t *testing.T) {
	for _, task := range tasks(50) {
		var want string
		for i, s := range task.sides {
			answer := s.run()
			got := fmt.Sprint(answer)
			if s.show != nil {
				got = s.show(answer)
			}
			if i == 0 {
				want = got
			} else if got != want {
				t.Errorf("%s: %s answers %.100q, %s %.100q", task.name, us, want, s.name, got)
			}
		}
	}
}
