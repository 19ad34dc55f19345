package jsonobj

import (
	"bytes"
	"cmp"
)

// DefaultDepth is how deep values may be nested by default, as in the JSON library of Flux.
const DefaultDepth = 2048

// levels returns the depth in force where 0 and less mean DefaultDepth.
func levels(depth int) int { return cmp.Or(max(depth, 0), DefaultDepth) }

// Check returns nil if b is exactly one JSON value of at most depth levels, white
// space around it allowed. One level is a number, a string or an empty object, two an
// object with those in it; a depth of 0 is DefaultDepth. The error is a *[Fault]. An
// empty b ends too early. Check keeps nothing of b; it costs one pass and allocates
// only for an error, for objects of many keys and for deep nesting.
func Check(b []byte, depth int) error {
	if _, f := check(b, depth, nil); f != nil {
		return f
	}
	return nil
}

// check is Check on a tape, if there is one, and returns the value.
func check(b []byte, depth int, t *tape) (span, *Fault) {
	from := skipSpace(b, 0)
	to, f := scanValue(b, from, levels(depth), t)
	i := to
	if f == noDefect {
		if i = skipSpace(b, to); i < len(b) {
			f = defectTrailing
		}
	} else if i == from && bytes.HasPrefix(b[i:], []byte("\uFEFF")) {
		f = defectBOM
	}
	if f != noDefect {
		return span{}, syntaxFault(b, i, f)
	}
	return span{from: uint32(from), to: uint32(to)}, nil
}

// ValueEnd returns the offset after the value of at most depth levels that begins at
// b[i], and reports whether there is one. The text around it is the caller's to check.
func ValueEnd(b []byte, i, depth int) (end int, ok bool) {
	end, f := scanValue(b, i, levels(depth), nil)
	return end, f == noDefect
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

// KindOf returns the kind of the value that raw begins with, as its first byte tells.
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
