package peers

import (
	"fmt"
	"slices"
	"testing"
)

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

func BenchmarkPeers(b *testing.B) {
	for _, t := range tasks(1) {
		for _, s := range t.sides {
			b.Run(t.name+"/side="+s.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.run()
				}
			})
		}
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
