package jsonscan

// DefaultDepth is how deep values may be nested where nothing else is said: as
// deep as the JSON library of Flux lets them.
const DefaultDepth = 2048

// Limits bounds what a text may hold. The zero value is the default.
type Limits struct {
	// Depth is how many levels values may have: 1 allows a number, a string, an
	// empty object, 2 an object with those in it. 0 and less mean DefaultDepth.
	Depth int
}

// depth returns the limit in force.
func (l Limits) depth() int {
	if l.Depth <= 0 {
		return DefaultDepth
	}
	return l.Depth
}

// Check returns nil if b is exactly one JSON value, white space around it
// allowed, as this package reads JSON: see the package comment. The error is a
// *[SyntaxError]. An empty b ends too early. Check keeps nothing of b; it costs
// one pass and allocates only for an error, for objects of many keys and for
// deep nesting.
func Check(b []byte, l Limits) error {
	_, _, err := check(b, l, nil)
	return err
}

// check is Check on a Tape, if there is one, and returns where the value begins
// and ends.
func check(b []byte, l Limits, t *Tape) (from, to int, err error) {
	from = skipSpace(b, 0)
	to, f := scanValue(b, from, l.depth(), t)
	i := to
	if f == noFault {
		i, f = scanEnd(b, to)
	} else if i == from && hasBOM(b, i) {
		f = faultBOM
	}
	if f != noFault {
		return from, to, newError(b, i, f)
	}
	return from, to, nil
}

// ValueEnd returns the offset after the value that begins at b[i] and reports
// whether there is one: the text around it is the caller's to check, and i is
// in b. It is for callers who know what they expect and turn to Check for the
// error when they do not find it.
func (l Limits) ValueEnd(b []byte, i int) (end int, ok bool) {
	end, f := scanValue(b, i, l.depth(), nil)
	return end, f == noFault
}

// scanEnd scans the white space after the last value of a text.
func scanEnd(b []byte, i int) (int, fault) {
	if i = skipSpace(b, i); i < len(b) {
		return i, faultTrailing
	}
	return i, noFault
}

// hasBOM reports whether b[i:] begins with a byte order mark.
func hasBOM(b []byte, i int) bool {
	return len(b)-i >= 3 && b[i] == 0xEF && b[i+1] == 0xBB && b[i+2] == 0xBF
}

// Kind is the kind of a JSON value. The zero Kind is none.
type Kind uint8

// The kinds of JSON values.
const (
	KindInvalid Kind = iota // no value
	KindNull
	KindBool
	KindNumber
	KindString
	KindObject
	KindArray
)

// KindOf returns the kind of the value that raw begins with, as its first byte
// that is no white space tells: what follows may be invalid all the same. No
// value is KindInvalid.
func KindOf(raw []byte) Kind {
	i := skipSpace(raw, 0)
	if i == len(raw) {
		return KindInvalid
	}
	switch raw[i] {
	case 'n':
		return KindNull
	case 't', 'f':
		return KindBool
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return KindNumber
	case '"':
		return KindString
	case '{':
		return KindObject
	case '[':
		return KindArray
	}
	return KindInvalid
}
