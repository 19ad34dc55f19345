// Package logline takes a line of an event log (RFC 18) apart, in the form in which every writer
// puts it: the keys timestamp, name and perhaps context, in this order, without white space
// between them. It is the first step of packages eventlog and jobstate, each of which checks the
// context in its own way, and only once. Both find the names of events by Names.
package logline

import (
	"bytes"
	"unicode/utf8"

	"github.com/joblife/joblife/internal/jsonobj"
)

// Line is a line of the usual form.
type Line struct {
	Time    float64
	Integer int64  // the time, if it is written as an integer; else 0
	Name    []byte // has no quote; nothing else is checked
	Context []byte // begins with a brace; nothing else is checked. nil: none
}

// BeforeTime begins a line of the usual form.
const BeforeTime = `{"timestamp":`

const (
	beforeName    = `,"name":"`
	beforeContext = `","context":`
)

// IsPlain reports whether a name is its own JSON text, between quotes, as nearly all are.
func IsPlain[T string | []byte](name T) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return len(name) > 0
}

// Cut takes apart a line without its newline, which the result aliases. It reports
// false for any other form, valid or not. If the name is the content of a JSON string
// and the context one JSON object, the line is one too.
func Cut(line []byte) (l Line, ok bool) {
	i := len(BeforeTime)
	if len(line) < i || string(line[:i]) != BeforeTime {
		return Line{}, false
	}
	time, integer, end, ok := jsonobj.FloatAt(line, i)
	if ok && integer {
		l.Integer, ok = jsonobj.Int64(line[i:end])
	}
	i = end + len(beforeName)
	if !ok || len(line) < i || string(line[end:i]) != beforeName {
		return Line{}, false
	}
	size := bytes.IndexByte(line[i:], '"')
	if size < 0 {
		return Line{}, false
	}
	end = i + size
	l.Time, l.Name = time, line[i:end:end]
	if string(line[end:]) == `"}` {
		return l, true
	}
	i = end + len(beforeContext)
	end = len(line) - 1
	if end <= i || string(line[i-len(beforeContext):i]) != beforeContext || line[i] != '{' || line[end] != '}' {
		return Line{}, false
	}
	l.Context = line[i:end:end]
	return l, true
}
