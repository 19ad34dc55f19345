package jobspec

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/joblife/joblife/internal/jsonobj"
)

// Update returns a Spec with one value set, as an event jobspec-update of RFC 21 sets
// it. The path is attributes, resources or tasks, or a dotted path below one, as
// flux-core allows (flux-core#5419). Update creates missing objects on the path, sets
// a null like any other value, and checks the result as [Parse] does. The Spec itself
// does not change. [Spec.Original] of both is the same.
//
// It is an error if the path is another or leads through a value that is not an object; if
// the value is not JSON; and what Parse returns for the result.
func (s *Spec) Update(path string, v json.RawMessage) (*Spec, error) {
	return s.UpdateAll(func(yield func(string, json.RawMessage) bool) { yield(path, v) })
}

// UpdateAll is Update for the updates of one event or of a whole log. It sets them in order and
// checks the result once: they may be right only together. Without updates it returns s.
func (s *Spec) UpdateAll(updates iter.Seq2[string, json.RawMessage]) (*Spec, error) {
	var root map[string]any
	for path, v := range updates {
		if root == nil {
			root = decode(s.raw).(map[string]any)
		}
		d := jsonobj.NewDoc(v)
		if d.Root(); !d.Failed() {
			if err := set(root, path, v); err != nil {
				d.Fail(err)
			}
		}
		if fault := d.Fault(); fault != nil {
			if path != "" {
				fault.Path = jsonobj.Name(path)
			}
			return nil, refuse(fault)
		}
	}
	if root == nil {
		return s, nil
	}
	return made(encode(root), s.Original())
}

// set sets the value at a path of the tree, or returns why it cannot.
func set(root map[string]any, path string, v []byte) error {
	switch top, _, _ := strings.Cut(path, "."); {
	case top != "attributes" && top != "resources" && top != "tasks":
		return errPath
	case !utf8.ValidString(path) || strings.IndexByte(path, 0) >= 0:
		return errNoText
	case strings.Count(path, ".") >= jsonobj.DefaultDepth:
		return errDepth
	}
	at := root
	for {
		key, rest, more := strings.Cut(path, ".")
		if key == "" {
			return errElement
		}
		if !more {
			at[key] = decode(v)
			return nil
		}
		next, found := at[key]
		if !found {
			next = map[string]any{}
			at[key] = next
		}
		object, ok := next.(map[string]any)
		if !ok {
			return errThrough
		}
		at, path = object, rest
	}
}

// decode returns a value that was checked as encoding/json decodes it, numbers as their text.
func decode(b []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic("jobspec: encoding/json refuses checked JSON: " + err.Error())
	}
	return v
}

// encode prints what decode returns in canonical form.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what decode returns can always be printed
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// MarshalJSON returns the jobspec, updates applied, in canonical form: the keys of each
// object sorted by bytes, no white space, numbers as they were. The zero Spec is an error.
func (s *Spec) MarshalJSON() ([]byte, error) {
	if s.raw == nil {
		return nil, errors.New("jobspec: the zero Spec is no jobspec: use New or Parse")
	}
	return encode(decode(s.raw)), nil
}
