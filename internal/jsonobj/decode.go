package jsonobj

import (
	"unicode/utf8"

	"github.com/joblife/joblife/internal/guard"
)

// String returns a copy of the content of a string token; ok is false for any other raw.
func String(raw []byte) (value string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	if end, _, f := scanString(raw, 0); f != noDefect || end != len(raw) {
		return "", false
	}
	var room [guard.MaxQuoted]byte
	return string(unescaped(room[:0], raw, 0)), true
}

// unescaped returns the content of the string that begins at b[i] and was scanned before:
// a part of b, or, where there are escapes, appended to dst.
func unescaped(dst, b []byte, i int) []byte {
	end, escaped := skipString(b, i)
	raw := b[i+1 : end-1 : end-1]
	if !escaped {
		return raw
	}
	for i := 0; i < len(raw); {
		plain := i
		for i < len(raw) && raw[i] != '\\' {
			i++
		}
		dst = append(dst, raw[plain:i]...)
		if i < len(raw) {
			dst, i = appendEscape(dst, raw, i)
		}
	}
	return dst
}

// appendEscape appends what the scanned escape at b[i] stands for, and returns the offset after it.
func appendEscape(dst, b []byte, i int) ([]byte, int) {
	switch c := b[i+1]; c {
	case 'b':
		return append(dst, '\b'), i + 2
	case 'f':
		return append(dst, '\f'), i + 2
	case 'n':
		return append(dst, '\n'), i + 2
	case 'r':
		return append(dst, '\r'), i + 2
	case 't':
		return append(dst, '\t'), i + 2
	case 'u':
	default:
		return append(dst, c), i + 2
	}
	r := hex4(b, i+2)
	if r < 0xD800 || r > 0xDFFF {
		return utf8.AppendRune(dst, r), i + 6
	}
	low := lowSurrogate(b, i+6)
	return utf8.AppendRune(dst, (r-0xD800)<<10|(low-0xDC00)+0x10000), i + 12
}
