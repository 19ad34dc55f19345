package conf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// A table reads the keys of an object, each once. Its first error stays, in the words of
// the library that flux-core reads with.
type table struct {
	rest map[string]json.RawMessage // what was not read
	err  error
}

func (t *table) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// read returns the table in a value. No value is an empty one.
func read(value json.RawMessage) *table {
	t := new(table)
	if value == nil {
		return t
	}
	if k := kind(value); k != "object" {
		t.fail("Expected object, got %s", k)
		return t
	}
	t.rest = make(map[string]json.RawMessage)
	t.err = strict.Members(value, func(key string, value json.RawMessage) error {
		t.rest[key] = value
		return nil
	})
	return t
}

// kind returns the type of a JSON value.
func kind(value json.RawMessage) string {
	value = bytes.TrimLeft(value, " \t\r\n")
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f', 'n':
		return string(value)
	}
	if bytes.ContainsAny(value, ".eE") {
		return "real"
	}
	return "integer"
}

// take returns the value of a key, and nil if there is none.
func (t *table) take(key string) json.RawMessage {
	v := t.rest[key]
	delete(t.rest, key)
	return v
}

// expect is take for a value of one of these types.
func (t *table) expect(key, what string, kinds ...string) json.RawMessage {
	v := t.take(key)
	if v == nil || t.err != nil {
		return nil
	}
	if k := kind(v); !slices.Contains(kinds, k) {
		t.fail("Expected %s, got %s", what, k)
		return nil
	}
	return v
}

// table returns the table below a key.
func (t *table) table(key string) *table {
	below := read(t.take(key))
	if t.err == nil {
		t.err = below.err
	}
	return below
}

// string returns the text of a key.
func (t *table) string(key string) (s jobstate.Optional[string]) {
	if v := t.expect(key, "string", "string"); v != nil {
		s.Set = json.Unmarshal(v, &s.Value) == nil
	}
	return s
}

// bool returns the truth of a key.
func (t *table) bool(key string) (b jobstate.Optional[bool]) {
	if v := t.expect(key, "true or false", "true", "false"); v != nil {
		b = jobstate.Some(string(v) == "true")
	}
	return b
}

// int returns the number of a key.
func (t *table) int(key string) (n jobstate.Optional[int]) {
	if v := t.expect(key, "integer", "integer"); v != nil {
		i, err := strconv.ParseInt(string(v), 10, 32)
		if err != nil {
			t.fail("%s: the number is too large", key)
			return n
		}
		n = jobstate.Some(int(i))
	}
	return n
}

// seconds returns the number of seconds of a key.
func (t *table) seconds(key string) (d fsd.Duration) {
	if v := t.expect(key, "real or integer", "real", "integer"); v != nil && v[0] != '-' {
		d, _ = fsd.Parse(string(v))
	}
	return d
}

// end refuses keys that were not read.
func (t *table) end() error {
	if len(t.rest) > 0 {
		var names []string
		for name := range t.rest {
			names = append(names, name)
		}
		slices.Sort(names)
		t.fail("%d object item(s) left unpacked: %s", len(names), strings.Join(names, ", "))
	}
	return t.err
}

// stringsOf returns the elements of a list of strings without any of the characters, and
// false for something else.
func stringsOf(value json.RawMessage, banned string) (list []string, ok bool) {
	var elements []*string
	if kind(value) != "array" || json.Unmarshal(value, &elements) != nil {
		return nil, false
	}
	list = []string{}
	for _, s := range elements {
		if s == nil || strings.ContainsAny(*s, banned) {
			return nil, false
		}
		list = append(list, *s)
	}
	return list, true
}
