package jobspec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/joblife/joblife/internal/jsonscan"
)

// The categories of errors that this package returns. Compare with errors.Is.
var (
	// ErrSyntax is returned when a text is not one JSON value, read strictly:
	// valid UTF-8, no key twice in an object.
	ErrSyntax = errors.New("not valid JSON")
	// ErrInvalid is returned when a key is missing, has a value of the wrong
	// type or out of range, or may not be there.
	ErrInvalid = errors.New("not a valid jobspec")
	// ErrVersion is returned when a jobspec has a version other than 1.
	ErrVersion = errors.New("unsupported version of jobspec")
	// ErrLimit is returned when a jobspec, or a count of it, is beyond a
	// limit of [Limits] or of this package.
	ErrLimit = errors.New("limit exceeded")
	// ErrUpdate is returned when the path of an update is malformed, does not
	// begin with attributes, resources or tasks, or leads through a value that
	// is no object.
	ErrUpdate = errors.New("update not allowed")
	// ErrShape is returned when a jobspec is legal, but not of RFC 25's simpler
	// form.
	ErrShape = errors.New("not of the form of RFC 25")
)

// The causes of an Error that carry no facts of their own.
var (
	errMissing   = errors.New("key is missing")
	errUnknown   = errors.New("key is not allowed here")
	errObject    = errors.New("must be an object")
	errArray     = errors.New("must be an array")
	errString    = errors.New("must be a string")
	errBool      = errors.New("must be true or false")
	errInteger   = errors.New("must be an integer of at least 1")
	errSeconds   = errors.New("must be a number of at least 0")
	errEmpty     = errors.New("must not be empty")
	errRefersTo  = errors.New("must be the label of a slot")
	errInSlot    = errors.New("must be a type of resource in the task's slot")
	errUnique    = errors.New("label occurs twice")
	errOneKey    = errors.New("must have exactly one key")
	errPath      = errors.New("path must begin with attributes, resources or tasks")
	errElement   = errors.New("path has an empty element")
	errNoText    = errors.New("path must be UTF-8 without U+0000")
	errThrough   = errors.New("path leads through a value that is no object")
	errNoUpdate  = errors.New("must have at least one key")
	errBytes     = errors.New("too many bytes")
	errDepth     = errors.New("nested too deep")
	errVertices  = errors.New("too many resource vertices")
	errTasks     = errors.New("too many tasks")
	errHuge      = errors.New("too large a number")
	errNotRead   = errors.New("only version 1 is read")
	errZeroCount = errors.New("the zero Count accepts nothing")
	errCount     = errors.New(`must be an integer of at least 1, a set ("1,4-8"), a range ("2+", "2-8:2:*") or an object with min`)
	errMin       = errors.New("min must be at least 2 where the operator is ^")
	errMax       = errors.New("max must not be less than min")
	errOperator  = errors.New(`operator must be "+", "*" or "^"`)
	errOperand   = errors.New("operand must be at least 1, and 2 where the operator is * or ^")
	errFour      = errors.New("must be slot>core, slot>(core,gpu), node>slot>core or node>slot>(core,gpu)")
	errFixed     = errors.New("count must be one integer")
	errOne       = errors.New("must be exactly one")
	errPerSlot   = errors.New("per_slot must be 1")
	errTotal     = errors.New("total must be at least the number of nodes and at most that of slots")
	errKeyRFC25  = errors.New("key is not in RFC 25")
)

// Error says what is wrong with a jobspec, a count or an update, and where. It
// unwraps to its category and its cause.
type Error struct {
	// Path is the dotted path of the key that is wrong, such as
	// resources[0].with[1].count. It is empty where the text as a whole is.
	// Keys in it are quoted where they are not plain words, and the path is cut
	// at 64 bytes.
	Path string
	// Offset is where the value is, or the object that lacks the key, in bytes
	// from the start of the text, from 0. It is -1 where no text that the
	// caller gave is wrong: from Shape, from CheckV1, and where the values of an
	// update are right alone and wrong in the jobspec.
	Offset int
	// Category is one of this package's ErrX.
	Category error
	// Err is the cause. It keeps no reference to the text.
	Err error
}

// Error returns one line.
func (e *Error) Error() string {
	where := ""
	if e.Path != "" {
		where = e.Path + ": "
	}
	if e.Offset >= 0 {
		where += fmt.Sprintf("offset %d: ", e.Offset)
	}
	return "jobspec: " + where + e.Err.Error()
}

// Unwrap returns the category and the cause.
func (e *Error) Unwrap() []error { return []error{e.Category, e.Err} }

// noOffset is the Offset of an Error that is about no text.
const noOffset = -1

// maxPathText is how many bytes of a path an Error keeps.
const maxPathText = 64

// fail returns an Error whose path ends in the given key, "" for none. Those
// who return it prefix what leads there.
func fail(offset int, key string, category, cause error) *Error {
	return (&Error{Offset: offset, Category: category, Err: cause}).in(key)
}

// in puts a key before the path of the error, and returns the error.
func (e *Error) in(key string) *Error {
	switch {
	case key == "":
		return e
	case !plain(key):
		key = strconv.Quote(clip(key))
	}
	if e.Path != "" && e.Path[0] != '[' {
		key += "."
	}
	e.Path = clip(key + e.Path)
	return e
}

// at puts an index before the path of the error, and returns the error.
func (e *Error) at(index int) *Error {
	text := "[" + strconv.Itoa(index) + "]"
	if e.Path != "" && e.Path[0] != '[' {
		text += "."
	}
	e.Path = clip(text + e.Path)
	return e
}

// plain reports whether a key can stand in a path as it is.
func plain(key string) bool {
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return len(key) <= maxPathText
}

// clip returns a copy of s of at most 64 bytes.
func clip(s string) string {
	if len(s) <= maxPathText {
		return strings.Clone(s)
	}
	return strings.TrimRight(s[:maxPathText-3], ".") + "..."
}

// syntax turns an error of the scanner into an Error.
func syntax(err error, base int) *Error {
	e := &Error{Offset: base, Category: ErrSyntax, Err: err}
	var s *jsonscan.SyntaxError
	if errors.As(err, &s) {
		e.Offset, e.Err = base+s.Offset, s.Err
	}
	if errors.Is(err, jsonscan.ErrDepth) {
		e.Category, e.Err = ErrLimit, errDepth
	}
	return e
}
