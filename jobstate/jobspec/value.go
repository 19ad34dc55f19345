package jobspec

import (
	"github.com/joblife/joblife/internal/jsonscan"
)

// value is a JSON value of a text that was checked: its bytes, and where they
// are in the text. The zero value is one that is absent.
type value struct {
	raw    []byte
	offset int
}

// members calls f for each member of an object, and puts the member's key
// before the path of an error of f.
func (v value) members(f func(key []byte, m value) *Error) *Error {
	if jsonscan.KindOf(v.raw) != jsonscan.KindObject {
		return fail(v.offset, "", ErrInvalid, errObject)
	}
	c := jsonscan.Object(v.raw)
	for c.Next() {
		if err := f(c.Key(), value{c.Raw(), v.offset + c.Offset()}); err != nil {
			return err.in(string(c.Key()))
		}
	}
	if err := c.Err(); err != nil {
		return syntax(err, v.offset)
	}
	return nil
}

// elements calls f for each element of an array, and puts the element's index
// before the path of an error of f.
func (v value) elements(f func(i int, e value) *Error) *Error {
	if jsonscan.KindOf(v.raw) != jsonscan.KindArray {
		return fail(v.offset, "", ErrInvalid, errArray)
	}
	c := jsonscan.Array(v.raw)
	for i := 0; c.Next(); i++ {
		if err := f(i, value{c.Raw(), v.offset + c.Offset()}); err != nil {
			return err.at(i)
		}
	}
	if err := c.Err(); err != nil {
		return syntax(err, v.offset)
	}
	return nil
}

// object returns an error unless v is an object.
func (v value) object() *Error {
	if jsonscan.KindOf(v.raw) != jsonscan.KindObject {
		return fail(v.offset, "", ErrInvalid, errObject)
	}
	return nil
}

// text returns a string.
func (v value) text() (string, *Error) {
	s, ok := jsonscan.String(v.raw)
	if !ok {
		return "", fail(v.offset, "", ErrInvalid, errString)
	}
	return s, nil
}

// bool returns true or false.
func (v value) bool() (bool, *Error) {
	b, ok := jsonscan.Bool(v.raw)
	if !ok {
		return false, fail(v.offset, "", ErrInvalid, errBool)
	}
	return b, nil
}

// count returns an integer of 1 to MaxCount.
func (v value) count() (int64, *Error) {
	n, ok := jsonscan.Int64(v.raw)
	switch {
	case !ok || n < 1:
		return 0, fail(v.offset, "", ErrInvalid, errInteger)
	case n > MaxCount:
		return 0, fail(v.offset, "", ErrLimit, errHuge)
	}
	return n, nil
}

// seconds returns a number of at least 0.
func (v value) seconds() (float64, *Error) {
	f, ok := jsonscan.Float64(v.raw)
	if !ok || f < 0 {
		return 0, fail(v.offset, "", ErrInvalid, errSeconds)
	}
	return f, nil
}

// member returns the member of an object that has the key; absent, if v is no
// object or has no such key.
func (v value) member(key string) value {
	if jsonscan.KindOf(v.raw) != jsonscan.KindObject {
		return value{}
	}
	c := jsonscan.Object(v.raw)
	for c.Next() {
		if string(c.Key()) == key {
			return value{c.Raw(), v.offset + c.Offset()}
		}
	}
	return value{}
}

// absent reports whether there is no value.
func (v value) absent() bool { return v.raw == nil }
