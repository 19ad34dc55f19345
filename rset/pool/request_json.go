package pool

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

// jsonValue is a JSON value: its bytes, and where they are in the text. Its
// methods return an error of the category that they are given.
type jsonValue struct {
	raw    []byte
	offset int
}

// fail returns an error about the value.
func (v jsonValue) fail(category, cause error) *InputError {
	return fail(category, "", v.offset, cause)
}

// tooMany returns an error about a text that is too large as a whole.
func tooMany(what string, got, most int) *InputError {
	return fail(ErrLimit, "", 0, fmt.Errorf("%d %s, at most %d are allowed", got, what, most))
}

// wrap returns an error about the value for one of another package. Where
// that found a limit exceeded, so does this.
func (v jsonValue) wrap(category, err error) *InputError {
	offset := v.offset
	if syntax := (*jsonscan.SyntaxError)(nil); errors.As(err, &syntax) {
		offset, err = offset+syntax.Offset, syntax.Err
	}
	for _, limit := range [...]error{rset.ErrLimit, hostlist.ErrLimit, idset.ErrLimit, jsonscan.ErrDepth} {
		if errors.Is(err, limit) {
			category = ErrLimit
		}
	}
	return fail(category, "", offset, err)
}

// object calls f with each member of an object, and puts the key before the
// path of its error. f does not keep the key.
func (v jsonValue) object(category error, f func(key []byte, m jsonValue) *InputError) *InputError {
	if jsonscan.KindOf(v.raw) != jsonscan.KindObject {
		return v.fail(category, errObject)
	}
	c := jsonscan.Object(v.raw)
	for c.Next() {
		if err := f(c.Key(), jsonValue{c.Raw(), v.offset + c.Offset()}); err != nil {
			return err.in(named(string(c.Key())))
		}
	}
	if err := c.Err(); err != nil {
		return v.wrap(category, err)
	}
	return nil
}

// array calls f with each element of an array, and puts the index before the
// path of its error.
func (v jsonValue) array(category error, f func(e jsonValue) *InputError) *InputError {
	if jsonscan.KindOf(v.raw) != jsonscan.KindArray {
		return v.fail(category, errArray)
	}
	c := jsonscan.Array(v.raw)
	for i := 0; c.Next(); i++ {
		if err := f(jsonValue{c.Raw(), v.offset + c.Offset()}); err != nil {
			return err.at(i)
		}
	}
	if err := c.Err(); err != nil {
		return v.wrap(category, err)
	}
	return nil
}

// text returns the content of a string.
func (v jsonValue) text(category error) (string, *InputError) {
	s, ok := jsonscan.String(v.raw)
	if !ok {
		return "", v.fail(category, errString)
	}
	return s, nil
}

// ids returns the set that a string names.
func (v jsonValue) ids(category error, most uint32) (*idset.Set, *InputError) {
	s, fail := v.text(category)
	if fail != nil {
		return nil, fail
	}
	set, err := idset.ParseLimit(s, most)
	if err != nil {
		return nil, v.wrap(category, err)
	}
	return set, nil
}
