package eventlog

// known returns a name that logs are full of without allocating it: those of
// RFC 21, of the execution eventlog (RFC 50) and a few that Flux writes besides.
func known(name []byte) (string, bool) {
	list := "" // the names of this length
	switch len(name) {
	case 4:
		list = "memo free init done"
	case 5:
		list = "alloc start clean"
	case 6:
		list = "submit depend finish"
	case 7:
		list = "release urgency running"
	case 8:
		list = "priority validate starting complete"
	case 9:
		list = "exception set-flags"
	case 10:
		list = "invalidate shell.init shell-exit"
	case 11:
		list = "annotations shell.start recoverable re-starting"
	case 12:
		list = "prolog-start epilog-start flux-restart"
	case 13:
		list = "prolog-finish epilog-finish"
	case 14:
		list = "dependency-add jobspec-update epilog-release"
	case 15:
		list = "resource-update shell.task-exit"
	case 17:
		list = "dependency-remove"
	case 19:
		list = "debug.alloc-request debug.start-request"
	}
	for n := len(name); len(list) >= n && n > 0; list = list[n+1:] {
		if list[:n] == string(name) {
			return list[:n], true
		}
		if len(list) == n {
			break
		}
	}
	return "", false
}

// names remembers the unknown names that an iterator met last, so that a log of
// few names costs as many allocations, not one an entry. It is bounded: a name
// takes the place of another, and long ones are not remembered.
type names struct {
	slots [32]string
}

// maxRemembered is the length of the longest name that is remembered.
const maxRemembered = 64

// intern returns name as a string. A nil n remembers nothing.
func (n *names) intern(name []byte) string {
	if s, ok := known(name); ok {
		return s
	}
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
