package logline

// Names finds names of a fixed list, most with one comparison. The zero Names is empty.
type Names struct {
	slots [256]slot // a name is at its hash or behind
}

// slot is a name and its place in the list; the zero slot is free.
type slot struct {
	name  string
	place int
}

// NewNames returns the Names of a list of far fewer than 256. It leaves out empty ones.
func NewNames(list ...string) (x Names) {
	for place, name := range list {
		if name == "" {
			continue
		}
		at := hash(name)
		for x.slots[at].name != "" {
			at++
		}
		x.slots[at] = slot{name, place}
	}
	return x
}

// Find returns a name as the list has it, and its place there; false if it is not in the list.
func Find[T string | []byte](x *Names, name T) (same string, place int, ok bool) {
	if len(name) == 0 {
		return "", 0, false
	}
	for at := hash(name); x.slots[at].name != ""; at++ {
		if s := &x.slots[at]; s.name == string(name) {
			return s.name, s.place, true
		}
	}
	return "", 0, false
}

// hash tells the names of events apart, by length, first byte and the one in the middle.
func hash[T string | []byte](name T) uint8 {
	n := uint8(len(name))
	return name[0] + 5*name[len(name)/2] + 15*n
}
