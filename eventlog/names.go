package eventlog

import "github.com/joblife/joblife/internal/logline"

// frequent has the names of RFC 21, of the execution eventlog (RFC 50) and a few more that
// Flux writes: an entry takes them without allocating.
var frequent = logline.NewNames(
	"submit", "validate", "invalidate", "set-flags", "dependency-add", "dependency-remove", "depend",
	"priority", "urgency", "jobspec-update", "resource-update", "annotations", "memo", "flux-restart",
	"alloc", "prolog-start", "prolog-finish", "start", "exception", "finish", "release", "epilog-start",
	"perilog-release", "epilog-finish", "free", "clean", "debug.alloc-request", "debug.start-request",
	"init", "starting", "running", "complete", "done", "re-starting", "recoverable",
	"shell.init", "shell.start", "shell.task-exit", "shell-exit",
)

// names remembers the unknown names that an iterator read last, so that a log of few names
// takes one allocation a name, not one an entry.
type names struct {
	slots [32]string
}

const maxRemembered = 64 // bytes of a name

// intern returns a name that is not frequent as a string. A nil n remembers nothing.
func (n *names) intern(name []byte) string {
	if n == nil || len(name) > maxRemembered {
		return string(name)
	}
	// Names of a family differ at their end.
	h := uint(len(name))
	for _, c := range name[max(0, len(name)-8):] {
		h = h*31 + uint(c)
	}
	slot := &n.slots[h%uint(len(n.slots))]
	if *slot != string(name) {
		*slot = string(name)
	}
	return *slot
}
