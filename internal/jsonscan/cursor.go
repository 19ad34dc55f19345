package jsonscan

// Cursor walks the members of a JSON object or the elements of an array:
//
//	c := jsonscan.Object(b)
//	for c.Next() {
//		use(c.Key(), c.Raw())
//	}
//	if err := c.Err(); err != nil {
//		return err
//	}
//
// It checks as it goes, each value wholly before Next hands it out. The rest of
// the text may turn out to be invalid: look at Err before acting on a value. A key that appears twice among the first 16 of the
// object ends the walk there; among more, the walk ends with that error.
//
// A Cursor is a value to keep in a local variable. It aliases its text, which
// must not change meanwhile, and belongs to one goroutine. The zero Cursor has
// no members and the error that the text ended too early. It must not be
// copied once Next was called.
type Cursor struct {
	b     []byte
	i     int // what Next looks at
	depth int // how many levels a value may have
	end   byte
	phase phase

	w Walk // what Next came to

	n    int      // keys in head; all keys are in more if that is not nil
	head [8]key   // so that small objects need no allocation
	more *keyList // behind a pointer, so that what embeds a Cursor need not escape
	err  *SyntaxError
}

// phase is how far a Cursor came.
type phase uint8

const (
	phaseStart  phase = iota // before the opening bracket
	phaseInside              // after a value
	phaseDone                // Next is false for good
)

// Object returns a Cursor over b, one JSON object, white space around it
// allowed. Any other text is an error of the Cursor. Values are nested
// at most DefaultDepth deep, the object included.
func Object(b []byte) Cursor { return Limits{}.Object(b) }

// Array returns a Cursor over b, one JSON array, white space around it allowed.
// Its Key is nil; otherwise it is as [Object] says.
func Array(b []byte) Cursor { return Limits{}.Array(b) }

// Object is the function Object with these limits.
func (l Limits) Object(b []byte) Cursor {
	return Cursor{b: b, depth: l.depth() - 1, end: '}'}
}

// Array is the function Array with these limits.
func (l Limits) Array(b []byte) Cursor {
	return Cursor{b: b, depth: l.depth() - 1, end: ']'}
}

// Reset makes c the Cursor that l.Object(b) is, or l.Array(b).
func (c *Cursor) Reset(b []byte, l Limits, array bool) {
	c.b, c.depth, c.phase, c.n, c.more, c.err = b, l.depth()-1, phaseStart, 0, nil, nil
	if c.end = '}'; array {
		c.end = ']'
	}
}

// Next advances to the next member or element and reports whether there is
// one. It is false at the end and at an error, and stays so.
func (c *Cursor) Next() bool { return c.NextOn(&c.w, nil) }

// NextOn is Next for a Walk instead of c itself, which has no members then. It notes
// on a Tape, unless that is nil, what the text is and what is in the value. It begins
// with an empty Tape.
func (c *Cursor) NextOn(w *Walk, t *Tape) bool {
	w.key, w.keyEnd, w.escaped, w.value = 0, 0, false, Span{}
	switch c.phase {
	case phaseStart:
		i := skipSpace(c.b, 0)
		if i == len(c.b) || c.b[i] != c.end-2 {
			return c.refuse(i)
		}
		c.phase = phaseInside
		if t != nil {
			t.reset()
			t.open(0)
		}
		if c.i = skipSpace(c.b, i+1); c.i < len(c.b) && c.b[c.i] == c.end {
			return c.finish()
		}
	case phaseInside:
		if c.i = skipSpace(c.b, c.i); c.i == len(c.b) || c.b[c.i] != ',' {
			if c.i < len(c.b) && c.b[c.i] == c.end {
				return c.finish()
			}
			return c.fail(stop(c.b, c.i))
		}
		c.i = skipSpace(c.b, c.i+1)
	case phaseDone:
		return false
	}
	if c.depth <= 0 && c.i < len(c.b) {
		return c.fail(c.i, faultDepth)
	}
	key, keyEnd, escaped := 0, 0, false
	if c.end == '}' {
		var ok bool
		if key, keyEnd, escaped, ok = c.member(); !ok {
			return false
		}
	}
	w.value.From = c.i
	if t != nil {
		w.value.Place = t.n
	}
	end, f := scanValue(c.b, c.i, c.depth, t)
	if f != noFault {
		w.value = Span{}
		return c.fail(end, f)
	}
	w.key, w.keyEnd, w.escaped, w.value.To = key, keyEnd, escaped, end
	c.i = end
	return true
}

// member reads a key and its colon, and returns the content of the key.
func (c *Cursor) member() (from, to int, escaped, ok bool) {
	k, end, f := readKey(c.b, c.i)
	if f != noFault {
		return 0, 0, false, c.fail(end, f)
	}
	if !c.remember(k) {
		return 0, 0, false, c.fail(k.off, faultDuplicate)
	}
	if c.i = skipSpace(c.b, end); c.i == len(c.b) || c.b[c.i] != ':' {
		return 0, 0, false, c.fail(stop(c.b, c.i))
	}
	c.i = skipSpace(c.b, c.i+1)
	return k.off + 1, end - 1, k.print&hasEscapes != 0, true
}

// keyList is the keys of an object that has many.
type keyList struct{ keys []key }

// seen returns the keys that there were.
func (c *Cursor) seen() []key {
	if c.more != nil {
		return c.more.keys
	}
	return c.head[:c.n]
}

// remember adds a key, unless it is found to be a duplicate at once.
func (c *Cursor) remember(k key) bool {
	if c.more != nil || c.n == len(c.head) {
		return c.rememberMany(k)
	}
	for _, o := range c.head[:c.n] {
		if o.mayEqual(k) && compareKeys(c.b, o, k) == 0 {
			return false
		}
	}
	c.head[c.n] = k
	c.n++
	return true
}

// rememberMany is remember once the head is full.
func (c *Cursor) rememberMany(k key) bool {
	seen := c.seen()
	if len(seen) < linearKeys && contains(c.b, seen, k) {
		return false
	}
	if c.more == nil {
		c.more = &keyList{append(make([]key, 0, 4*len(c.head)), seen...)}
	}
	c.more.keys = append(c.more.keys, k)
	return true
}

// finish ends the walk at the closing bracket.
func (c *Cursor) finish() bool {
	if keys := c.seen(); len(keys) > linearKeys {
		if dup := findDuplicate(c.b, keys); dup >= 0 {
			return c.fail(dup, faultDuplicate)
		}
	}
	if i, f := scanEnd(c.b, c.i+1); f != noFault {
		return c.fail(i, f)
	}
	return c.stop()
}

// refuse ends the walk at a text that does not begin with the bracket of c at i:
// it is of another kind, or no JSON at all.
func (c *Cursor) refuse(i int) bool {
	if err := Check(c.b, Limits{Depth: c.depth + 1}); err != nil {
		c.err = err.(*SyntaxError)
		return c.stop()
	}
	if c.end == '}' {
		return c.fail(i, faultObject)
	}
	return c.fail(i, faultArray)
}

// fail ends the walk with an error.
func (c *Cursor) fail(i int, f fault) bool {
	c.err = newError(c.b, i, f)
	return c.stop()
}

// stop ends the walk.
func (c *Cursor) stop() bool {
	c.phase = phaseDone
	return false
}

// Key returns the key of the member that Next came to, unescaped. It aliases
// the text, or, where the key has escapes, is a copy. It is nil in an array,
// before the first Next and after the last.
func (c *Cursor) Key() []byte {
	if c.w.key == 0 {
		return nil
	}
	return c.w.Key(c.b)
}

// Raw returns the bytes of the value that Next came to, without white space
// around it. It aliases the text. It is empty before the first Next and after
// the last.
func (c *Cursor) Raw() []byte { return c.b[c.w.value.From:c.w.value.To:c.w.value.To] }

// Offset returns where in the text the value is, in bytes from 0.
func (c *Cursor) Offset() int { return c.w.value.From }

// KeyOffset returns where in the text the key of the member is, in bytes
// from 0: its opening quote. It means nothing in an array.
func (c *Cursor) KeyOffset() int { return c.w.key - 1 }

// Err returns the error that ended the walk, a *[SyntaxError], nil if it came
// to the end of the text or goes on.
func (c *Cursor) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// Missing returns the index of the first of some keys that Next came to no
// member of, -1 if it came to all. It costs time in proportion to the members
// that there were, for each key that is not in their order.
func (c *Cursor) Missing(keys []string) int {
	seen := c.seen()
	i := 0
next:
	for j, key := range keys {
		for range seen {
			if i == len(seen) {
				i = 0
			}
			i++
			if c.isKey(seen[i-1], key) {
				continue next
			}
		}
		return j
	}
	return -1
}

// isKey reports whether k reads as key.
func (c *Cursor) isKey(k key, key string) bool {
	if k.print&hasEscapes != 0 {
		r := keyReader{b: c.b, i: k.off + 1}
		for i := range len(key) {
			if r.next() != int(key[i]) {
				return false
			}
		}
		return r.next() < 0
	}
	from, to := k.off+1, k.off+1+len(key)
	return to < len(c.b) && c.b[to] == '"' && string(c.b[from:to]) == key
}
