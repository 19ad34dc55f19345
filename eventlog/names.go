package eventlog

// known returns a frequent name without allocating it: the names of RFC 21, of the
// execution eventlog (RFC 50) and a few more that Flux writes. A table would be
// shorter, and decoding a log 10 % slower.
func known(name []byte) (string, bool) {
	switch string(name) {
	case "submit":
		return "submit", true
	case "validate":
		return "validate", true
	case "invalidate":
		return "invalidate", true
	case "set-flags":
		return "set-flags", true
	case "dependency-add":
		return "dependency-add", true
	case "dependency-remove":
		return "dependency-remove", true
	case "depend":
		return "depend", true
	case "priority":
		return "priority", true
	case "urgency":
		return "urgency", true
	case "jobspec-update":
		return "jobspec-update", true
	case "resource-update":
		return "resource-update", true
	case "annotations":
		return "annotations", true
	case "memo":
		return "memo", true
	case "flux-restart":
		return "flux-restart", true
	case "alloc":
		return "alloc", true
	case "prolog-start":
		return "prolog-start", true
	case "prolog-finish":
		return "prolog-finish", true
	case "start":
		return "start", true
	case "exception":
		return "exception", true
	case "finish":
		return "finish", true
	case "release":
		return "release", true
	case "epilog-start":
		return "epilog-start", true
	case "epilog-release":
		return "epilog-release", true
	case "epilog-finish":
		return "epilog-finish", true
	case "free":
		return "free", true
	case "clean":
		return "clean", true
	case "debug.alloc-request":
		return "debug.alloc-request", true
	case "debug.start-request":
		return "debug.start-request", true
	case "init":
		return "init", true
	case "starting":
		return "starting", true
	case "recoverable":
		return "recoverable", true
	case "re-starting":
		return "re-starting", true
	case "running":
		return "running", true
	case "shell.init":
		return "shell.init", true
	case "shell.start":
		return "shell.start", true
	case "shell.task-exit":
		return "shell.task-exit", true
	case "shell-exit":
		return "shell-exit", true
	case "complete":
		return "complete", true
	case "done":
		return "done", true
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
