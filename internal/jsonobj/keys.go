package jsonobj

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/joblife/joblife/internal/guard"
)

type key struct {
	// print is equal for equal keys, and seldom for others, apart from the bit hasEscapes.
	print uint64
	// off is the offset of the opening quote.
	off int
}

// hasEscapes is the bit of a print that tells that the key has escapes.
const hasEscapes = 1 << 62

// linearKeys is up to how many keys of an object each is compared with all
// before it. Beyond, they are sorted when the object ends.
const linearKeys = 16

// scanKey scans a key that begins at b[i], the colon and the white space after
// it, and adds it to the keys of its object, which begin at keys[base].
func scanKey(b []byte, i int, keys []key, base int) ([]key, int, defect) {
	k, end, f := readKey(b, i)
	if f != noDefect {
		return keys, end, f
	}
	if len(keys)-base < linearKeys && contains(b, keys[base:], k) {
		return keys, k.off, defectDuplicate
	}
	keys = append(keys, k)
	if end = skipSpace(b, end); end >= len(b) || b[end] != ':' {
		end, f = stop(b, end)
		return keys, end, f
	}
	return keys, skipSpace(b, end+1), noDefect
}

// readKey scans the key that begins at b[i].
func readKey(b []byte, i int) (key, int, defect) {
	if i >= len(b) || b[i] != '"' {
		end, f := stop(b, i)
		return key{}, end, f
	}
	if len(b)-i > 8 {
		// A key of up to seven plain characters is its own fingerprint.
		w := binary.LittleEndian.Uint64(b[i+1:])
		if m := stopAt(w); m != 0 {
			n := bits.TrailingZeros64(m) >> 3
			if b[i+1+n] == '"' {
				return key{shortPrint(w&(1<<(8*n)-1), n), i}, i + n + 2, noDefect
			}
		}
	}
	end, flags, f := scanString(b, i)
	switch {
	case f != noDefect:
		return key{}, end, f
	case flags&flagNUL != 0:
		return key{}, i, defectNUL
	case flags&flagEscape != 0:
		return key{escapedPrint(b[i:end]), i}, end, noDefect
	}
	return key{fingerprint(b[i+1 : end-1]), i}, end, noDefect
}

// shortPrint is the fingerprint of n bytes, at most seven, in w.
func shortPrint(w uint64, n int) uint64 { return w | uint64(n+1)<<56 }

// fingerprint returns a number other than zero that depends on the length and the
// outermost 16 bytes of s. Of keys made to have one, at most linearKeys are compared one by one.
func fingerprint(s []byte) uint64 {
	n := len(s)
	if n >= 8 {
		head := binary.LittleEndian.Uint64(s)
		tail := binary.LittleEndian.Uint64(s[n-8:])
		return (head^bits.RotateLeft64(tail, 23)+uint64(n)*0x9E3779B97F4A7C15)&^hasEscapes | 1<<63
	}
	var w uint64
	for i, c := range s {
		w |= uint64(c) << (8 * i)
	}
	return shortPrint(w, n)
}

// escapedPrint is the fingerprint of a key with escapes, given with its quotes.
func escapedPrint(raw []byte) uint64 {
	var buf [guard.MaxQuoted]byte
	return fingerprint(unescaped(buf[:0], raw, 0)) | hasEscapes
}

func contains(b []byte, keys []key, k key) bool {
	for _, o := range keys {
		if (o.print^k.print)&^hasEscapes == 0 && compareKeys(b, o, k) == 0 {
			return true
		}
	}
	return false
}

// findDuplicate returns the offset of the first repeated key of an object, or -1. It sorts keys.
func findDuplicate(b []byte, keys []key) int {
	compare := func(x, y key) int {
		if p, q := x.print&^hasEscapes, y.print&^hasEscapes; p != q {
			return cmp.Compare(p, q)
		}
		return compareKeys(b, x, y)
	}
	slices.SortFunc(keys, func(x, y key) int {
		if c := compare(x, y); c != 0 {
			return c
		}
		return cmp.Compare(x.off, y.off)
	})
	first := -1
	for i := 1; i < len(keys); i++ {
		if (first < 0 || keys[i].off < first) && compare(keys[i-1], keys[i]) == 0 {
			first = keys[i].off
		}
	}
	return first
}

// compareKeys compares two keys of b by their bytes when unescaped.
func compareKeys(b []byte, x, y key) int {
	var room [2][guard.MaxQuoted]byte
	return bytes.Compare(unescaped(room[0][:0], b, x.off), unescaped(room[1][:0], b, y.off))
}
