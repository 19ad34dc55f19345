package strict

import "strings"

// A scanner checks JSON from left to right. After false its position means nothing.
type scanner struct {
	text []byte
	at   int
}

// maxDepth is how deep values may be nested, as for encoding/json.
const maxDepth = 10000

// peek returns the next byte, 0 at the end, which is no byte of JSON.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// skip skips white space and then c, or reports that c is not there.
func (s *scanner) skip(c byte) bool {
	s.space()
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// whole reports whether the text is one value.
func (s *scanner) whole() bool {
	s.space()
	if !s.value(0) {
		return false
	}
	s.space()
	return s.at == len(s.text)
}

// value skips a value that stands in so many others.
func (s *scanner) value(depth int) bool {
	switch s.peek() {
	case '"':
		return s.quoted()
	case '{', '[':
		return depth < maxDepth && s.members(depth+1, nil)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// members skips an object or an array. It calls each for what is in it until that returns
// false; nil: nobody asks.
func (s *scanner) members(depth int, each func(Member) bool) bool {
	object, end := s.text[s.at] == '{', s.text[s.at]+2 // } or ]
	s.at++
	if s.skip(end) {
		return true
	}
	for m := (Member{}); ; {
		s.space()
		m.Key = s.at
		if object {
			if !s.quoted() || !s.skip(':') {
				return false
			}
			s.space()
		}
		m.Value = s.at
		if !s.value(depth) {
			return false
		}
		m.End = s.at
		if each != nil && !each(m) {
			return false
		}
		s.space()
		m.Comma = s.at
		if !s.skip(',') {
			return s.skip(end)
		}
	}
}

func (s *scanner) word(w string) bool {
	if !strings.HasPrefix(string(s.text[s.at:min(len(s.text), s.at+len(w))]), w) {
		return false
	}
	s.at += len(w)
	return true
}

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

func (s *scanner) quoted() bool {
	if s.peek() != '"' {
		return false
	}
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			n := escape(s.text[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		}
	}
	return false
}

// escape returns the length of the escape that a text begins with, 0 if it is none.
func escape(text []byte) int {
	switch {
	case len(text) < 2:
		return 0
	case text[1] != 'u':
		if strings.IndexByte(`"\/bfnrt`, text[1]) < 0 {
			return 0
		}
		return 2
	case len(text) < 6:
		return 0
	}
	for _, c := range text[2:6] {
		if strings.IndexByte("0123456789abcdefABCDEF", c) < 0 {
			return 0
		}
	}
	return 6
}
