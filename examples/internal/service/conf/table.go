package conf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// A fault is the first thing that is wrong. What is read after it does not count.
type fault struct{ err error }

func (f *fault) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// A table reads the keys of an object, each once. Its errors have the words of the library that
// flux-core reads with.
type table struct {
	of    *fault
	where string                     // the format of its errors
	rest  map[string]json.RawMessage // what was not read
}

func (t *table) fail(format string, args ...any) { t.of.fail(t.where, fmt.Errorf(format, args...)) }

// read returns the table in a value. No value is an empty one.
func (f *fault) read(where string, value json.RawMessage) *table {
	t := &table{of: f, where: where}
	if k := kind(value); value != nil && k != "object" {
		t.fail("Expected object, got %s", k)
	} else if rest, err := members(value); err != nil {
		t.fail("%w", err)
	} else {
		t.rest = rest
	}
	return t
}

// members returns what is in an object. No value is an empty one.
func members(value json.RawMessage) (map[string]json.RawMessage, error) {
	rest := make(map[string]json.RawMessage)
	if value == nil {
		return rest, nil
	}
	return rest, strict.Members(value, func(key string, value json.RawMessage) error {
		rest[key] = value
		return nil
	})
}

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
func (t *table) expect(key string, kinds ...string) json.RawMessage {
	v := t.take(key)
	if v == nil {
		return nil
	}
	if k := kind(v); !slices.Contains(kinds, k) {
		t.fail("Expected %s, got %s", strings.Join(kinds, " or "), k)
		return nil
	}
	return v
}

func (t *table) table(key string) *table { return t.of.read(t.where, t.take(key)) }

func (t *table) string(key string) (s string) {
	if v := t.expect(key, "string"); v != nil {
		_ = json.Unmarshal(v, &s) // which is one
	}
	return s
}

func (t *table) bool(key string) (b jobstate.Optional[bool]) {
	if v := t.expect(key, "true", "false"); v != nil {
		b = jobstate.Some(string(v) == "true")
	}
	return b
}

func (t *table) int(key string) (n jobstate.Optional[int]) {
	if v := t.expect(key, "integer"); v != nil {
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
	if v := t.expect(key, "real", "integer"); v != nil && v[0] != '-' {
		d, _ = fsd.Parse(string(v))
	}
	return d
}

// end refuses keys that were not read.
func (t *table) end() {
	if names := slices.Sorted(maps.Keys(t.rest)); len(names) > 0 {
		t.fail("%d object item(s) left unpacked: %s", len(names), strings.Join(names, ", "))
	}
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

// fsdOf returns the duration in a string, and fails in these words if there is none.
func fsdOf(value json.RawMessage, fail func(string, ...any), words string) (d jobstate.Optional[fsd.Duration]) {
	if value == nil {
		return d
	}
	var text string
	err := json.Unmarshal(value, &text)
	if err == nil {
		d.Value, err = fsd.Parse(text)
	}
	if d.Set = err == nil; !d.Set {
		fail("%s", words)
	}
	return d
}
