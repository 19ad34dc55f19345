// Package strict reads JSON objects of known keys, as the peers of a program write them. Keys
// are what they are: one in another case is another key, and one that comes twice has no
// meaning. Package encoding/json takes both.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
)

// maxKeys is how many keys an object may have that is read.
const maxKeys = 1 << 16

var (
	errObject = errors.New("must be an object")
	errArray  = errors.New("must be an array")
	errKeys   = fmt.Errorf("has more than %d keys", maxKeys)
	errTwice  = errors.New("key comes twice")
	errNull   = errors.New("must not be null")
	errAbsent = errors.New("key is missing")
)

// A Member is where a member of an object, or an element of an array, is in its text.
type Member struct {
	Comma int // before it; 0: it is the first
	Key   int // for an element: its value
	Value int
	End   int
}

// All yields the members of an object or the elements of an array, as far as the text is one.
func All(text []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		i := space(text, 0)
		if i == len(text) || text[i] != '{' && text[i] != '[' {
			return
		}
		for object, m := text[i] == '{', (Member{}); ; m.Comma = i {
			m.Key = space(text, i+1)
			if m.Key == len(text) || text[m.Key] == '}' || text[m.Key] == ']' {
				return
			}
			m.Value = m.Key
			if object {
				colon := space(text, skip(text, m.Key))
				if text[m.Key] != '"' || colon == len(text) || text[colon] != ':' {
					return
				}
				m.Value = space(text, colon+1)
			}
			m.End = skip(text, m.Value)
			if !yield(m) {
				return
			}
			if i = space(text, m.End); i == len(text) || text[i] != ',' {
				return
			}
		}
	}
}

// Name returns the key of a member.
func (m Member) Name(text []byte) (name string) {
	key := text[m.Key:skip(text, m.Key)]
	if len(key) > 1 && bytes.IndexByte(key, '\\') < 0 {
		return string(key[1 : len(key)-1])
	}
	_ = json.Unmarshal(key, &name) // what is no string has no name
	return name
}

// Members calls f for each member of an object, and returns its first error. A text that is
// no object, or has a key twice, is an error before. The values alias the text.
func Members(text []byte, f func(key string, value json.RawMessage) error) error {
	if _, err := count(text); err != nil {
		return err
	}
	for m := range All(text) {
		if err := f(m.Name(text), text[m.Value:m.End]); err != nil {
			return err
		}
	}
	return nil
}

// Elements is Members for an array.
func Elements(text []byte, f func(value json.RawMessage) error) error {
	if err := check(text, '[', errArray); err != nil {
		return err
	}
	for m := range All(text) {
		if err := f(text[m.Value:m.End]); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless a text is JSON that begins so.
func check(text []byte, open byte, err error) error {
	if !json.Valid(text) {
		var syntax *json.SyntaxError
		errors.As(json.Unmarshal(text, new(any)), &syntax)
		return fmt.Errorf("offset %d: %w", syntax.Offset, syntax)
	}
	if text[space(text, 0)] != open {
		return err
	}
	return nil
}

// count returns how often an object has each key. More than once is an error.
func count(text []byte) (map[string]int, error) {
	if err := check(text, '{', errObject); err != nil {
		return nil, err
	}
	var err error
	keys := make(map[string]int)
	for m := range All(text) {
		name := m.Name(text)
		if keys[name]++; keys[name] == 2 && err == nil {
			err = fmt.Errorf("%.64q: %w", name, errTwice)
		}
		if len(keys) > maxKeys {
			return nil, errKeys
		}
	}
	return keys, err
}

// Unmarshal reads an object into the struct that a pointer points to. A field without
// omitempty is required, and keys of no field are ignored. Only a json.RawMessage takes null.
// After an error the struct has what could be read.
func Unmarshal(text []byte, into any) error {
	keys, first := count(text)
	note := func(key string, err error) {
		if first == nil && err != nil {
			first = fmt.Errorf("%.64q: %w", key, err)
		}
	}
	v := reflect.ValueOf(into).Elem()
	fields := make(map[string]reflect.Value)
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "": // it is embedded
		case keys[name] == 1:
			fields[name] = v.FieldByIndex(f.Index)
		case keys[name] == 0 && option != "omitempty":
			note(name, errAbsent)
		}
	}
	if keys == nil {
		return first
	}
	for m := range All(text) {
		name := m.Name(text)
		if f, ok := fields[name]; ok {
			note(name, set(f, text[m.Value:m.End]))
		}
	}
	return first
}

// set reads a value into a field.
func set(v reflect.Value, text json.RawMessage) error {
	switch _, own := v.Addr().Interface().(json.Unmarshaler); {
	case string(text) == "null" && v.Type() != reflect.TypeFor[json.RawMessage]():
		return errNull
	case v.Kind() == reflect.Pointer && !own:
		p := reflect.New(v.Type().Elem())
		if err := set(p.Elem(), text); err != nil {
			return err
		}
		v.Set(p)
		return nil
	case v.Kind() == reflect.Struct && !own:
		return Unmarshal(text, v.Addr().Interface())
	}
	err := json.Unmarshal(text, v.Addr().Interface())
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("must not be %.64s", kind.Value)
	}
	return err
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
