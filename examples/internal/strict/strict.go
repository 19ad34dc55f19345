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
		s := scanner{text: text}
		if s.space(); s.peek() == '{' || s.peek() == '[' {
			s.members(1, yield)
		}
	}
}

// Name returns the key of a member.
func (m Member) Name(text []byte) (name string) {
	s := scanner{text, m.Key}
	if !s.quoted() {
		return ""
	}
	key := text[m.Key:s.at]
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key[1 : len(key)-1])
	}
	_ = json.Unmarshal(key, &name) // which is a string
	return name
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
func check(text []byte, open byte, err error) error {
	switch s := (scanner{text: text}); {
	case !s.whole():
		return malformed(text)
	case bytes.TrimLeft(text, " \n\t\r")[0] != open:
		return err
	}
	return nil
}

func malformed(text []byte) error {
	var syntax *json.SyntaxError
	errors.As(json.Unmarshal(text, new(any)), &syntax)
	return fmt.Errorf("offset %d: %w", syntax.Offset, syntax)
}

// A named is a member of an object: the first of its name.
type named struct {
	name  string
	value json.RawMessage
}

// read returns the members of an object, and how often it has each key. More than once is an
// error, and the only one with which it returns anything.
func read(text []byte) (list []named, keys map[string]int, err error) {
	s := scanner{text: text}
	if s.space(); s.peek() != '{' {
		return nil, nil, check(text, '{', errObject)
	}
	keys = make(map[string]int)
	whole := s.members(1, func(m Member) bool {
		name := m.Name(text)
		switch keys[name]++; {
		case keys[name] == 1:
			list = append(list, named{name, text[m.Value:m.End]})
		case err == nil:
			err = fmt.Errorf("%.64q: %w", name, errTwice)
		}
		return len(list) <= maxKeys
	})
	s.space()
	switch {
	case len(list) > maxKeys:
		return nil, nil, errKeys
	case !whole || s.at < len(text):
		return nil, nil, malformed(text)
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
