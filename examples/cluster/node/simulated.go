package node

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/joblife/joblife/perilog/exec"
)

// simulated is a runner whose tasks succeed at once.
type simulated struct {
	said  func(exec.Task)
	mu    sync.Mutex
	tasks map[exec.Task]exec.TaskStatus
}

func (s *simulated) List() []exec.TaskStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.tasks), func(a, b exec.TaskStatus) int { return strings.Compare(a.Task.String(), b.Task.String()) })
}

func (s *simulated) Last(task exec.Task) (exec.TaskStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ok := s.tasks[task]
	return st, ok
}

func (s *simulated) Do(c exec.Command, _ []string) error {
	s.mu.Lock()
	_, known := s.tasks[c.Task]
	switch {
	case c.Kind == exec.CommandStart && !known:
		s.tasks[c.Task] = exec.TaskStatus{Task: c.Task, State: exec.TaskReleased}
		defer s.said(c.Task)
	case c.Kind == exec.CommandForget:
		delete(s.tasks, c.Task)
	}
	s.mu.Unlock()
	return nil
}
