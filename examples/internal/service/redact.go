package service

import (
	"bytes"
	"encoding/json"
)

// redactSpec returns a jobspec without the environment of its tasks: it is large, and only
// the one who starts them needs it.
func redactSpec(text []byte) json.RawMessage { return cut(text, "attributes", "system", "environment") }

// redactR returns an R without what is for the scheduler alone.
func redactR(text []byte) json.RawMessage { return cut(text, "scheduling") }

// cut returns a JSON object without the member at a path. It is the text itself if there is
// no such member.
func cut(text []byte, path ...string) []byte {
	from, to := 0, len(text)
	for i, name := range path {
		m, ok := find(text[from:to], name)
		switch {
		case !ok:
			return text
		case i < len(path)-1:
			from, to = from+m.value, from+m.end
			continue
		}
		start, end := from+m.key, from+m.end
		switch next := space(text, end); {
		case next < len(text) && text[next] == ',':
			end = next + 1
		case m.comma > 0:
			start = from + m.comma
		}
		return append(append(make([]byte, 0, len(text)), text[:start]...), text[end:]...)
	}
	return text
}

// A member is where a member of an object is in its text.
type member struct {
	comma           int // before it; 0: it is the first
	key, value, end int
}

// find returns the member of an object with a name. Text that is no object has none.
func find(text []byte, name string) (m member, ok bool) {
	i := space(text, 0)
	if i == len(text) || text[i] != '{' {
		return m, false
	}
	for {
		m.key = space(text, i+1)
		colon := space(text, skip(text, m.key))
		if colon >= len(text) || text[m.key] != '"' || text[colon] != ':' {
			return m, false
		}
		m.value = space(text, colon+1)
		m.end = skip(text, m.value)
		if named(bytes.TrimSpace(text[m.key:colon]), name) {
			return m, true
		}
		if i = space(text, m.end); i == len(text) || text[i] != ',' {
			return m, false
		}
		m.comma = i
	}
}

func named(key []byte, name string) bool {
	if !bytes.ContainsRune(key, '\\') {
		return len(key) == len(name)+2 && string(key[1:len(key)-1]) == name
	}
	var s string
	return json.Unmarshal(key, &s) == nil && s == name
}

// space returns where the white space from i on ends.
func space(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// skip returns where the value that begins at i ends.
func skip(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(text))
			}
		}
	}
	return len(text)
}
