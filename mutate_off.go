//go:build !joblife_mutations

package joblife

import "github.com/joblife/joblife/perilog"

// mutated reports whether the code has a deliberate fault. It has none: the compiler
// removes what depends on it. See mutate_on.go.
func (m *Manager) mutated(mutation) bool { return false }

func (m *Manager) mutate(*job, *perilog.Effects) {}
