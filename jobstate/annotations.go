package jobstate

import (
	"encoding/json"
	"fmt"

	"github.com/joblife/joblife/internal/jsonobj"
)

// MergeAnnotations returns old after an update by patch, in which a null removes a key (RFC 27).
// Both are JSON objects, or empty; another text is an error. The result is in memory of its
// own, has no nulls, and is nil if no key is left.
func MergeAnnotations(old, patch json.RawMessage) (json.RawMessage, error) {
	var d dict
	for _, text := range []json.RawMessage{old, patch} {
		if len(text) == 0 {
			continue
		}
		doc := jsonobj.NewDoc(text)
		d.merge(doc.Object())
		if doc.Failed() {
			return nil, fmt.Errorf(prefix+"%w: annotations: %w", errContext, doc.Fault())
		}
	}
	return d.text(), nil
}

// annotations are those of a job as they came, one JSON object behind the other: nobody asks for
// most. Those that outgrow their memory and mergeFrom are merged, into at most half of the new
// memory. So an update takes constant time on average, and a repeated memo no more memory.
type annotations []byte

// mergeFrom is up to how many bytes annotations are not merged.
const mergeFrom = 1 << 10

// underUser precedes a memo, which updates the annotations under the key user.
const underUser = `{"user":`

// add updates the annotations by a valid JSON object, of which it retains nothing.
func (a *annotations) add(patch []byte) {
	a.grow(len(patch))
	*a = append(*a, patch...)
}

func (a *annotations) addMemo(patch []byte) {
	a.grow(len(underUser) + len(patch) + 1)
	*a = append(append(append(*a, underUser...), patch...), '}')
}

func (a *annotations) grow(n int) {
	size := len(*a) + n
	if size <= cap(*a) {
		return
	}
	if len(*a) > 0 && size > mergeFrom {
		*a = a.merged()
		size = max(2*(len(*a)+n), mergeFrom)
	}
	*a = append(make([]byte, 0, size), *a...)
}

// clip gives back the memory that a closed log does not need.
func (a *annotations) clip() {
	if len(*a) < cap(*a) {
		*a = append(make([]byte, 0, len(*a)), *a...)
	}
}

// merged returns the annotations as one object, in memory of its own, nil if there are none.
func (a annotations) merged() []byte {
	var d dict
	for rest := []byte(a); len(rest) > 0; {
		end, ok := jsonobj.ValueEnd(rest, 0, 0)
		if !ok {
			panic("jobstate: annotations were not checked")
		}
		doc := jsonobj.NewDoc(rest[:end])
		d.merge(doc.Object())
		rest = rest[end:]
	}
	return d.text()
}

// dict is a dictionary of annotations, in the order in which its keys came.
type dict struct{ ordered[string, value] }

// value is one annotation: a dictionary, or the text of any other JSON value.
type value struct {
	dict *dict
	raw  json.RawMessage
}

// merge updates d by RFC 27, section "Alloc Annotate": a null removes the key, a dictionary is
// merged into the one that is there, anything else replaces. A dictionary that ends up empty
// is removed, as in the reference. d aliases the text of patch.
func (d *dict) merge(patch jsonobj.Reader) {
	for patch.Next() {
		key, v := string(patch.Key()), patch.Value()
		switch v.Kind() {
		case jsonobj.KindNull:
			d.del(key)
		case jsonobj.KindObject:
			sub := new(dict)
			if old := d.get(key); old != nil && old.dict != nil {
				sub = old.dict
			}
			if sub.merge(v.Object()); sub.live > 0 {
				d.put(key, value{dict: sub})
			} else {
				d.del(key)
			}
		default:
			d.put(key, value{raw: v.Raw()})
		}
	}
}

// text returns d as a JSON object, nil if it is empty.
func (d *dict) text() []byte {
	if d.live == 0 {
		return nil
	}
	return d.appendJSON(nil)
}

func (d *dict) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	for key, v := range d.all() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(jsonobj.AppendString(dst, key), ':')
		if v.dict != nil {
			dst = v.dict.appendJSON(dst)
		} else {
			dst = jsonobj.AppendCompact(dst, v.raw)
		}
	}
	return append(dst, '}')
}
