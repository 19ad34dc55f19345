package main

import (
	"strings"
	"unicode/utf8"
)

// scanRecording reads a line as parseRecording does, in one pass. It reports
// false for a line that it leaves to parseRecording: one that is not valid JSON
// or nested deeply, and one in which a wanted key is there twice, in other
// letters or with a value of another kind. The eventlog is in log, which grows
// to the longest; the rest of the input is in the line.
func scanRecording(line []byte, log *[]byte) (in input, ok bool) {
	in.noID, in.eventlog = true, (*log)[:0]
	s := scanner{text: line}
	if !s.take('{') {
		return in, false
	}
	seen := false
	for more := !s.take('}'); more; more = !s.take('}') {
		if seen && !s.take(',') {
			return in, false
		}
		seen = true
		key, ok := s.key()
		if !ok {
			return in, false
		}
		start := s.at
		switch key {
		case "id":
			if !in.noID || !s.number() || in.id.UnmarshalJSON(line[start:s.at]) != nil {
				return in, false
			}
			in.noID = false
		case "eventlog":
			if len(in.eventlog) > 0 || !s.unquote(log) {
				return in, false
			}
			in.eventlog = *log
		case "R", "jobspec":
			raw := &in.r
			if key == "jobspec" {
				raw = &in.jobspec
			}
			if *raw != nil || !s.value(0) {
				return in, false
			}
			if *raw = line[start:s.at:s.at]; string(*raw) == "null" {
				*raw = nil
			}
		default:
			if !s.value(0) {
				return in, false
			}
		}
	}
	s.space()
	return in, s.at == len(line)
}

// scanner checks JSON from left to right. After false its position means nothing.
type scanner struct {
	text []byte
	at   int
}

// maxScanDepth is how deep scanRecording follows arrays and objects.
const maxScanDepth = 100

// peek returns the next byte, 0 at the end, which is no byte of JSON.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// space skips white space.
func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// take skips white space and then c, or reports that c is not there.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// key reads a key of the outer object up to its value. It is "" for one that is not
// wanted, and false for one that only folding or unquoting can tell from
// those, as encoding/json does.
func (s *scanner) key() (string, bool) {
	s.space()
	start := s.at + 1
	if !s.quoted() {
		return "", false
	}
	key := s.text[start : s.at-1]
	if !s.take(':') {
		return "", false
	}
	s.space()
	for _, name := range [...]string{"id", "eventlog", "R", "jobspec"} {
		if string(key) == name {
			return name, true
		}
		if len(key) == len(name) && strings.EqualFold(string(key), name) {
			return "", false
		}
	}
	for _, c := range key {
		if c == '\\' || c >= utf8.RuneSelf {
			return "", false
		}
	}
	return "", true
}

// value skips a value.
func (s *scanner) value(depth int) bool {
	switch c := s.peek(); c {
	case '"':
		return s.quoted()
	case '{', '[':
		s.at++
		return depth < maxScanDepth && s.members(c, depth+1)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// members skips what is in an object or array, and its end.
func (s *scanner) members(open byte, depth int) bool {
	end := open + 2 // } or ]
	if s.take(end) {
		return true
	}
	for {
		s.space()
		if open == '{' {
			if !s.quoted() || !s.take(':') {
				return false
			}
			s.space()
		}
		if !s.value(depth) {
			return false
		}
		if !s.take(',') {
			return s.take(end)
		}
	}
}

// word skips a literal.
func (s *scanner) word(w string) bool {
	if len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// number skips a number.
func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c = s.peek(); c == '+' || c == '-' {
			s.at++
		}
		return s.digits()
	}
	return true
}

// digits skips one digit or more.
func (s *scanner) digits() bool {
	start := s.at
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > start
}

// special tells the bytes that end a plain part of a string.
var special = func() (t [256]bool) {
	for c := range t {
		t[c] = c < ' ' || c == '"' || c == '\\'
	}
	return t
}()

// quoted skips a string.
func (s *scanner) quoted() bool {
	text, i := s.text, s.at+1
	if s.peek() != '"' {
		return false
	}
	for i < len(text) {
		if !special[text[i]] {
			i++
			continue
		}
		switch text[i] {
		case '"':
			s.at = i + 1
			return true
		case '\\':
			n, _ := unescape(text[i:])
			if n == 0 {
				return false
			}
			i += n
		default:
			return false
		}
	}
	return false
}

// unquote reads a string of valid UTF-8 into dst.
func (s *scanner) unquote(dst *[]byte) bool {
	text, i := s.text, s.at+1
	if s.peek() != '"' {
		return false
	}
	if left := len(text) - i; cap(*dst) < left {
		*dst = make([]byte, left+left/4) // no escape is shorter than what it means
	}
	out, n, high := (*dst)[:cap(*dst)], 0, byte(0)
	for i < len(text) {
		c := text[i]
		if !special[c] {
			out[n] = c
			high |= c
			n++
			i++
			continue
		}
		switch c {
		case '"':
			s.at, *dst = i+1, out[:n]
			return high < utf8.RuneSelf || utf8.Valid(out[:n])
		case '\\':
			length, r := unescape(text[i:])
			if length == 0 || r < 0 {
				return false
			}
			i += length
			n += utf8.EncodeRune(out[n:], r)
		default:
			return false
		}
	}
	return false
}

// unescape returns the length of the escape that text begins with, 0 if it is
// none, and what it means, -1 for half of a pair.
func unescape(text []byte) (int, rune) {
	if len(text) < 2 {
		return 0, 0
	}
	switch text[1] {
	case '"', '\\', '/':
		return 2, rune(text[1])
	case 'b':
		return 2, '\b'
	case 'f':
		return 2, '\f'
	case 'n':
		return 2, '\n'
	case 'r':
		return 2, '\r'
	case 't':
		return 2, '\t'
	case 'u':
		if len(text) < 6 {
			return 0, 0
		}
		r := rune(0)
		for _, c := range text[2:6] {
			digit := strings.IndexByte("0123456789abcdefABCDEF", c)
			if digit < 0 {
				return 0, 0
			}
			if digit > 15 {
				digit -= 6
			}
			r = r<<4 | rune(digit)
		}
		if utf8.ValidRune(r) {
			return 6, r
		}
		return 6, -1
	}
	return 0, 0
}
