package jobspec

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Update returns a Spec with one value set, as an event jobspec-update of
// RFC 21 sets it. The path is attributes, resources or tasks, or a dotted path
// below one, as flux-core allows (flux-core#5419); objects that it names and
// that are not there are made. The result is checked as
// Parse checks it. The Spec itself stays as it is; Original of the result is
// the Original of it.
//
// The error is an *[Error]: of category ErrUpdate for the path, ErrSyntax for
// the value, or what Parse returns for the result. A null is set like any other
// value. It costs as much as Parse, and some memory for each value of the
// jobspec.
func (s *Spec) Update(path string, v json.RawMessage) (*Spec, error) {
	if err := s.limits.check(v); err != nil {
		return nil, err.in(path)
	}
	root, err := s.tree()
	if err != nil {
		return nil, err
	}
	if err := s.set(root, path, value{v, 0}); err != nil {
		return nil, err.in(path)
	}
	return s.updated(root)
}

// Apply returns a Spec with all updates of one event jobspec-update set,
// whose context is given: an object of dotted paths and values, at least one. It
// is Update for each of them in turn, and an error if any of them is, but that
// only the result is checked.
func (s *Spec) Apply(context json.RawMessage) (*Spec, error) {
	if err := s.limits.check(context); err != nil {
		return nil, err
	}
	root, err := s.tree()
	if err != nil {
		return nil, err
	}
	n := 0
	err = value{context, 0}.members(func(key []byte, m value) *Error {
		n++
		return s.set(root, string(key), m)
	})
	if err == nil && n == 0 {
		err = fail(0, "", ErrUpdate, errNoUpdate)
	}
	if err != nil {
		return nil, err
	}
	return s.updated(root)
}

// set sets the value at a path of the tree. The path of its error is empty.
func (s *Spec) set(root map[string]any, path string, v value) *Error {
	switch top, _, _ := strings.Cut(path, "."); top {
	case "attributes", "resources", "tasks":
	default:
		return fail(v.offset, "", ErrUpdate, errPath)
	}
	if !utf8.ValidString(path) || strings.IndexByte(path, 0) >= 0 {
		return fail(v.offset, "", ErrUpdate, errNoText)
	}
	if strings.Count(path, ".") >= s.limits.Depth {
		return fail(v.offset, "", ErrLimit, errDepth)
	}
	decoded, err := decode(v.raw)
	if err != nil {
		return syntax(err, v.offset)
	}
	at := root
	for {
		key, rest, more := strings.Cut(path, ".")
		if key == "" {
			return fail(v.offset, "", ErrUpdate, errElement)
		}
		if !more {
			at[key] = decoded
			return nil
		}
		next, found := at[key]
		if !found {
			next = map[string]any{}
			at[key] = next
		}
		object, ok := next.(map[string]any)
		if !ok {
			return fail(v.offset, "", ErrUpdate, errThrough)
		}
		at, path = object, rest
	}
}

// updated returns the Spec whose text is the tree.
func (s *Spec) updated(root map[string]any) (*Spec, error) {
	next := &Spec{limits: s.limits, original: s.Original(), raw: encode(root)}
	err := next.limits.size(next.raw)
	if err == nil {
		err = next.read()
	}
	if err != nil {
		err.Offset = noOffset
		return nil, err
	}
	return next, nil
}

// tree returns the text of s as encoding/json decodes it, numbers as their
// text.
func (s *Spec) tree() (map[string]any, *Error) {
	v, err := decode(s.raw)
	if err != nil {
		return nil, syntax(err, 0)
	}
	// read would not have let anything else in.
	return v.(map[string]any), nil
}

// decode decodes one value that was checked before, numbers as their text.
func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// encode prints what decode returns: keys sorted, no white space, numbers and
// strings as they were.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// What decode returns can be printed, always.
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// MarshalJSON returns the jobspec, updates applied, in canonical form: the keys
// of each object sorted by their bytes, no white space, numbers as they were
// written, every key kept that was there. Two Specs that hold the same give the
// same bytes, a number written in two ways apart.
func (s *Spec) MarshalJSON() ([]byte, error) {
	v, err := decode(s.raw)
	if err != nil {
		return nil, syntax(err, 0)
	}
	return encode(v), nil
}
