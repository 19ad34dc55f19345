package eventlog

// frequent has the names of RFC 21, of the execution eventlog (RFC 50) and a few more that
// Flux writes, each in a place of its own.
var frequent = placed(
	"submit", "validate", "invalidate", "set-flags", "dependency-add", "dependency-remove", "depend",
	"priority", "urgency", "jobspec-update", "resource-update", "annotations", "memo", "flux-restart",
	"alloc", "prolog-start", "prolog-finish", "start", "exception", "finish", "release", "epilog-start",
	"epilog-release", "epilog-finish", "free", "clean", "debug.alloc-request", "debug.start-request",
	"init", "starting", "running", "complete", "done", "re-starting", "recoverable",
	"shell.init", "shell.start", "shell.task-exit", "shell-exit",
)

func placed(names ...string) (table [128]string) {
	for _, name := range names {
		table[place(name)] = name
	}
	return table
}

// place tells the names in frequent apart. If a new name takes the place of another, find
// other factors.
func place[T string | []byte](name T) uint8 {
	n := uint8(len(name))
	return (name[0] + 5*name[n/2] + 15*n) % 128
}

// known returns a frequent name without allocating it.
func known(name []byte) (string, bool) {
	if len(name) == 0 {
		return "", false
	}
	s := frequent[place(name)]
	return s, s == string(name)
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
