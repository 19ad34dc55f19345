package jsonobj

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendString appends s as a string token, as the JSON library of Flux prints it: a quote,
// a backslash and control characters are escaped, the latter in the short form where there
// is one and else as \u00 and two digits in upper case; anything else stands as it is, the
// slash, U+007F and all that is not ASCII. A byte of s that is not part of valid UTF-8
// becomes U+FFFD. It allocates only to grow dst.
func AppendString(dst []byte, s string) []byte {
	dst, _ = appendString(dst, s)
	return dst
}

// appendString is AppendString, and reports whether s is valid UTF-8.
func appendString(dst []byte, s string) (out []byte, valid bool) {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	valid = true
	plain := 0 // where the characters not yet appended begin
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[plain:i]...), "\uFFFD"...)
				plain, valid = i+1, false
			}
			i += size
			continue
		}
		i++
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[plain:i-1]...)
		plain = i
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[plain:]...), '"'), valid
}

// AppendFloat appends f as a real token, as the JSON library of Flux prints it: C's %.17g,
// ".0" after an integral number, an exponent without plus sign and leading zeros. It
// allocates only to grow dst. Panics if f is infinite or not a number.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		panic("jsonobj: AppendFloat of a number that is not finite")
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', 17, 64)
	exp := bytes.IndexByte(dst[from:], 'e') + 1
	switch {
	case exp > 0: // it has a sign, and two digits at least
		n, _ := strconv.Atoi(string(dst[from+exp:]))
		return strconv.AppendInt(dst[:from+exp], int64(n), 10)
	case bytes.IndexByte(dst[from:], '.') < 0:
		return append(dst, ".0"...)
	}
	return dst
}

// AppendCompact appends raw without the white space outside its strings. raw is JSON that
// was checked; of anything else it appends some part. It allocates only to grow dst.
func AppendCompact(dst, raw []byte) []byte {
	plain := 0
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i, _, _ = scanString(raw, i)
		case ' ', '\n', '\t', '\r':
			dst = append(dst, raw[plain:i]...)
			i = skipSpace(raw, i)
			plain = i
		default:
			i++
		}
	}
	return append(dst, raw[plain:]...)
}
