// Package strict reads JSON objects of known keys, as the peers of a program write them. Keys
// are what they are: one in another case is another key, and one that comes twice has no
// meaning. Package encoding/json takes both.
package strict

import (
	"bytes"
	"cmp"
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

// All yields the members of an object or the elements of an array. Of a text that is not JSON
// it yields some part.
func All(text []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		var m Member
		at := func(i int, c byte) bool { return i < len(text) && text[i] == c }
		i := skip(text, 0)
		object := at(i, '{')
		for more := object || at(i, '['); more; more = at(i, ',') {
			m.Key = skip(text, i+1)
			m.Value = m.Key
			if object {
				colon := skip(text, valueEnd(text, m.Key))
				if !at(colon, ':') {
					return
				}
				m.Value = skip(text, colon+1)
			}
			m.End = valueEnd(text, m.Value)
			if m.End == m.Value || !yield(m) {
				return
			}
			i = skip(text, m.End)
			m.Comma = i
		}
	}
}

// skip returns where the white space at i ends.
func skip(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// valueEnd returns where the value at i ends, in a text that is JSON.
func valueEnd(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 { // of what the value is in
				return i
			}
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 { // behind a word or a number
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return min(i+1, len(text))
		}
	}
	return len(text)
}

// Name returns the key of a member.
func (m Member) Name(text []byte) (name string) {
	key := text[m.Key:valueEnd(text, m.Key)]
	if len(key) < 2 || bytes.IndexByte(key, '\\') >= 0 {
		_ = json.Unmarshal(key, &name)
		return name
	}
	return string(key[1 : len(key)-1])
}

// Members calls f for each member of an object, and returns its first error. A text that is
// no object, or has a key twice, is an error before. The values alias the text.
func Members(text []byte, f func(key string, value json.RawMessage) error) error {
	list, _, err := read(text)
	for i := 0; err == nil && i < len(list); i++ {
		err = f(list[i].name, list[i].value)
	}
	return err
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
func check(text []byte, open byte, kind error) error {
	if !json.Valid(text) {
		var syntax *json.SyntaxError
		errors.As(json.Unmarshal(text, new(any)), &syntax)
		return fmt.Errorf("offset %d: %w", syntax.Offset, syntax)
	}
	if text[skip(text, 0)] != open {
		return kind
	}
	return nil
}

// A named is a member of an object: the first of its name.
type named struct {
	name  string
	value json.RawMessage
}

// read returns the members of an object, and how often it has each key. More than once is an
// error, and the only one with which it returns anything.
func read(text []byte) (list []named, keys map[string]int, err error) {
	if err := check(text, '{', errObject); err != nil {
		return nil, nil, err
	}
	keys = make(map[string]int)
	for m := range All(text) {
		name := m.Name(text)
		switch keys[name]++; {
		case keys[name] > 1:
			err = cmp.Or(err, fmt.Errorf("%.64q: %w", name, errTwice))
		case len(list) == maxKeys:
			return nil, nil, errKeys
		default:
			list = append(list, named{name, text[m.Value:m.End]})
		}
	}
	return list, keys, err
}

// Unmarshal reads an object into the struct that a pointer points to. A field without
// omitempty is required, and keys of no field are ignored. Only a json.RawMessage takes null.
// After an error the struct has what could be read.
func Unmarshal(text []byte, into any) error {
	list, keys, first := read(text)
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
	for _, m := range list {
		if f, ok := fields[m.name]; ok {
			note(m.name, set(f, m.value))
		}
	}
	return first
}

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
