package eventlog

// frequent has the names of RFC 21, of the execution eventlog (RFC 50) and a few more that
// Flux writes, by length.
var frequent = [...][]string{
	4:  {"memo", "free", "init", "done"},
	5:  {"alloc", "start", "clean"},
	6:  {"submit", "depend", "finish"},
	7:  {"urgency", "release", "running"},
	8:  {"validate", "priority", "starting", "complete"},
	9:  {"set-flags", "exception"},
	10: {"invalidate", "shell.init", "shell-exit"},
	11: {"annotations", "recoverable", "re-starting", "shell.start"},
	12: {"flux-restart", "prolog-start", "epilog-start"},
	13: {"prolog-finish", "epilog-finish"},
	14: {"dependency-add", "jobspec-update", "epilog-release"},
	15: {"resource-update", "shell.task-exit"},
	17: {"dependency-remove"},
	19: {"debug.alloc-request", "debug.start-request"},
}

// known returns a frequent name without allocating it.
func known(name []byte) (string, bool) {
	if len(name) < len(frequent) {
		for _, s := range frequent[len(name)] {
			if s == string(name) {
				return s, true
			}
		}
	}
	return "", false
}

// names remembers the unknown names that an iterator met last, so that a log of
// few names takes one allocation a name, not one an entry. It is bounded: a name
// replaces another, and long names are not remembered.
type names struct {
	slots [32]string
}

// maxRemembered is the length of the longest name that is remembered.
const maxRemembered = 64

// intern returns a name that is not known as a string. A nil n remembers nothing.
func (n *names) intern(name []byte) string {
	if n == nil || len(name) == 0 || len(name) > maxRemembered {
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
