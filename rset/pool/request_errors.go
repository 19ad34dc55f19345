package pool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrRequest is returned when a jobspec asks for something that a pool can
	// not give by what it knows, or has constraints that are not of RFC 31.
	// The error that wraps it is an *InputError.
	ErrRequest = errors.New("pool: not a request that a pool understands")

	// ErrAcquire is returned when a text is no response of RFC 28. The error
	// that wraps it is an *InputError.
	ErrAcquire = errors.New("pool: not a response to resource.acquire")
)

// InputError tells what is wrong with a jobspec, with constraints or with a
// response to resource.acquire, and where. It wraps its category and its cause.
type InputError struct {
	// Path is the dotted path of the value, such as
	// "resources[0].with[1].unit", at most 128 bytes of it. It is empty where
	// the text as a whole is wrong.
	Path string
	// Offset is where the value is, or the object that lacks it, in bytes from
	// 0: from the start of the constraints, or of the response. It is -1 for
	// what is asked for in resources, of which there is no text.
	Offset   int
	Category error // ErrRequest, ErrAcquire, or ErrLimit for more than this package reads
	Err      error // why; it keeps no reference to the text
}

// Error returns one line.
func (e *InputError) Error() string {
	text := "pool: "
	if e.Path != "" {
		text += e.Path + ": "
	}
	if e.Offset >= 0 {
		text += fmt.Sprintf("offset %d: ", e.Offset)
	}
	return text + e.Err.Error()
}

// Unwrap returns the category and the cause.
func (e *InputError) Unwrap() []error { return []error{e.Category, e.Err} }

const (
	maxPath  = 128 // bytes of a path that an error keeps
	maxToken = 64  // bytes of a text from outside that an error repeats
	noOffset = -1  // the Offset of an error about no text
)

// What is wrong, where no more is to say.
var (
	errZeroSpec     = errors.New("there is no jobspec")
	errOneResource  = errors.New("a pool takes one tree of resources")
	errPlace        = errors.New("a pool knows node>slot>core, slot>node>core and slot>core, with other resources beside the cores")
	errInner        = errors.New("nothing may be inside of it")
	errUnit         = errors.New("a pool does not know units")
	errID           = errors.New("a pool does not choose by id")
	errTwice        = errors.New("is asked for twice in one slot")
	errNoCores      = errors.New("a slot needs cores, or whole nodes")
	errSpan         = errors.New("a pool takes a fixed number of nodes in a slot, of slots that are counted by one number or a range")
	errTooMany      = errors.New("too many in all")
	errObject       = errors.New("must be an object")
	errArray        = errors.New("must be an array")
	errString       = errors.New("must be a string")
	errPropertyName = errors.New("is not a property name")
	errMissing      = errors.New("is missing")
	errNoChange     = errors.New("has no key of RFC 28")
	errAll          = errors.New(`"all" says nothing without resources`)
	errTime         = errors.New("is not a finite time of 0 or later")
	errGrow         = errors.New("a response has no key for ranks that come")
)

// fail returns an InputError. Those who return it put what leads there before
// the path.
func fail(category error, path string, offset int, cause error) *InputError {
	return &InputError{Path: clip(path, maxPath), Offset: offset, Category: category, Err: cause}
}

// in puts a key before the path, and returns the error.
func (e *InputError) in(key string) *InputError {
	if e.Path != "" && e.Path[0] != '[' {
		key += "."
	}
	e.Path = clip(key+e.Path, maxPath)
	return e
}

// at puts an index before the path, and returns the error.
func (e *InputError) at(index int) *InputError {
	return e.in("[" + strconv.Itoa(index) + "]")
}

// clip returns a copy of s of at most so many bytes.
func clip(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return strings.Clone(s)
}

// named returns a name from outside as it can stand in a message: as it is if
// it is a plain word, else quoted and cut.
func named(s string) string {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return strconv.Quote(clip(s, maxToken))
		}
	}
	if s == "" || len(s) > maxToken {
		return strconv.Quote(clip(s, maxToken))
	}
	return s
}
