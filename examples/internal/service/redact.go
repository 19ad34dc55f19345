package service

import (
	"bytes"
	"encoding/json"

	"github.com/joblife/joblife/examples/internal/strict"
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
			from, to = from+m.Value, from+m.End
			continue
		}
		start, end := from+m.Key, from+m.End
		switch rest := bytes.TrimLeft(text[end:], " \t\r\n"); {
		case bytes.HasPrefix(rest, []byte(",")):
			end = len(text) - len(rest) + 1
		case m.Comma > 0:
			start = from + m.Comma
		}
		return append(append(make([]byte, 0, len(text)), text[:start]...), text[end:]...)
	}
	return text
}

// find returns the member of an object with a name. Text that is no object has none.
func find(text []byte, name string) (strict.Member, bool) {
	for m := range strict.All(text) {
		if m.Value > m.Key && m.Name(text) == name {
			return m, true
		}
	}
	return strict.Member{}, false
}
