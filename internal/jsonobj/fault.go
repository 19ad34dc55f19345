package jsonobj

import (
	"errors"
	"strconv"
	"strings"

	"github.com/joblife/joblife/internal/guard"
)

// NoOffset is the Offset of a Fault that is about no text.
const NoOffset = -1

// The causes of faults.
var (
	// ErrSyntax is wrapped by the fault of a text that is not one JSON value.
	ErrSyntax = errors.New("invalid JSON")
	// ErrDepth is the cause where values are nested deeper than the limit.
	ErrDepth = errors.New("nested too deep")
	// ErrMissing is the cause where an object lacks a required key.
	ErrMissing = errors.New("key is missing")
	// ErrKind is wrapped by the cause where a value is of another kind than it must be.
	ErrKind = errors.New("wrong kind of value")
	// ErrRange is wrapped by the cause where a number is out of range.
	ErrRange = errors.New("value out of range")
	// ErrUTF8 is the cause where a text to be written is not valid UTF-8.
	ErrUTF8 = errors.New("text is not valid UTF-8")
)

var (
	errObject  = guard.Cause(ErrKind, "must be an object")
	errArray   = guard.Cause(ErrKind, "must be an array")
	errString  = guard.Cause(ErrKind, "must be a string")
	errBool    = guard.Cause(ErrKind, "must be true or false")
	errInteger = guard.Cause(ErrKind, "must be an integer")
	errNumber  = guard.Cause(ErrKind, "must be a number")
	errText    = guard.Cause(ErrRange, "must be less than 4 GiB of text")
	errFinite  = guard.Cause(ErrRange, "must be a finite number")
)

func outside(lo, hi string) error { return guard.Cause(ErrRange, "must be from "+lo+" to "+hi) }

// Fault says what is wrong in a text, and where.
type Fault struct {
	// Path is the dotted path of the value or the missing key from the root, such as
	// resources[0].with[1].count, cut at 128 bytes; "" for the root, and where
	// the text is no JSON. A key that is not a plain word is quoted.
	Path string
	// Offset is where the value is, or the object that lacks the key, from 0, or NoOffset.
	Offset int
	// Err is the cause. It keeps no reference to the text.
	Err error

	from error // what Err was taken from, for errors.Is and errors.As
}

// Error returns the path, the offset and the cause.
func (f *Fault) Error() string {
	s := ""
	if f.Path != "" {
		s = f.Path + ": "
	}
	if f.Offset >= 0 {
		s += "offset " + strconv.Itoa(f.Offset) + ": "
	}
	return s + f.Err.Error()
}

// Unwrap returns the cause and the error that it was found in.
func (f *Fault) Unwrap() []error {
	if f.from == nil {
		return []error{f.Err}
	}
	return []error{f.Err, f.from}
}

// newFault returns the Fault for an error about the value at an offset, or about a key of
// it, if there is one. A Fault in that value is moved there.
func newFault(d *Doc, offset int, key string, err error) *Fault {
	f := &Fault{Path: pathTo(d, offset), Offset: offset, Err: err}
	if key != "" {
		f.Path = join(f.Path, Name(key))
	}
	var inner *Fault
	if errors.As(err, &inner) {
		f.Path, f.Err, f.from = join(f.Path, inner.Path), inner.Err, err
		if offset >= 0 {
			f.Offset += max(inner.Offset, 0)
		}
	}
	return f
}

// How much of a path and of a key in it a Fault keeps.
const (
	maxPath = 128
	maxKey  = 64
)

// pathTo returns the path of the value at an offset of a text that was checked, "" without one.
func pathTo(d *Doc, offset int) (path string) {
	if d == nil {
		return ""
	}
	at := span{from: uint32(skipSpace(d.text, 0))}
	for int(at.from) < offset && (d.text[at.from] == '{' || d.text[at.from] == '[') {
		r, i := Value{d, at}.reader(), 0
		for r.Next() && int(r.value.to) <= offset {
			i++
		}
		at = r.value
		switch {
		case at.to == 0, offset < int(at.from): // behind the last, or before one
			return path
		case r.isObject:
			path = join(path, Name(r.Key()))
		default:
			path = join(path, "["+strconv.Itoa(i)+"]")
		}
	}
	return path
}

func join(path, element string) string {
	if len(path) == maxPath { // cut before
		return path
	}
	if path != "" && element != "" && element[0] != '[' {
		path += "."
	}
	path += element
	if len(path) > maxPath {
		path = guard.Cut(path, maxPath-3)
		path += strings.Repeat(".", maxPath-len(path))
	}
	return path
}

// Name returns a key as it stands in a path: quoted unless plain, and cut at 64 bytes.
func Name[T string | []byte](key T) string {
	if len(key) > maxKey {
		return Name(key[:maxKey]) + "..."
	}
	s := string(key)
	special := func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.')
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return strconv.Quote(s)
	}
	return s
}
