package children

import (
	"slices"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
)

// A Kind is the children of one type, such as "core".
type Kind struct {
	Name string     // the type
	IDs  *idset.Set // never changed
	N    int        // how many
}

// A Set is kinds in the order of their names, none of them empty. It never changes. A nil *Set is
// the empty set, and the only one. Union, Subtract and Intersect return the receiver itself if
// the result equals it, so that most comparisons are comparisons of pointers.
type Set struct {
	kinds []Kind
	few   [maxFew]Kind // where few kinds are
	text  string       // as Text returns it: equal sets have equal texts
}

const (
	maxFew   = 2 // kinds in the Set itself
	maxKinds = 4 // for which an operation has room before it allocates
)

// A Part is What each of the ranks First to Last has, which is never nothing.
type Part struct {
	First, Last uint32
	What        *Set
}

// Of returns the set of kinds, each of which comes once, and with the right N. It sorts them in
// place, drops those that are empty, and retains the ids alone.
func Of(kinds []Kind) *Set {
	kinds = slices.DeleteFunc(kinds, func(k Kind) bool { return k.N == 0 })
	slices.SortFunc(kinds, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return copyOf(kinds)
}

// copyOf returns the set of kinds that are in order, none of them empty.
func copyOf(kinds []Kind) *Set {
	if len(kinds) == 0 {
		return nil
	}
	s := new(Set)
	s.kinds = append(s.few[:0], kinds...)
	text := append(make([]byte, 0, 64), '{')
	for i, k := range kinds {
		if i > 0 {
			text = append(text, ',')
		}
		// A jsonobj.Writer would allocate.
		text, _ = k.IDs.AppendText(append(jsonobj.AppendString(text, k.Name), `:"`...))
		text = append(text, '"')
	}
	s.text = string(append(text, '}'))
	return s
}

// Text returns the set as RFC 20 writes it, a JSON object; "" for the empty set.
func (s *Set) Text() string {
	if s == nil {
		return ""
	}
	return s.text
}

// Kinds returns the kinds. They must not be changed.
func (s *Set) Kinds() []Kind {
	if s == nil {
		return nil
	}
	return s.kinds
}

// Kind returns the ids of a kind and how many there are; nil and 0 if none.
func (s *Set) Kind(name string) (*idset.Set, int) {
	for _, k := range s.Kinds() {
		if k.Name == name {
			return k.IDs, k.N
		}
	}
	return nil, 0
}

// next returns the kind with a name from kinds in order, the zero Kind if there is none,
// and leaves those behind it: a walk over two sets takes as many steps as both have kinds.
func next(kinds *[]Kind, name string) (k Kind) {
	for rest := *kinds; len(rest) > 0; rest = rest[1:] {
		switch order := strings.Compare(rest[0].Name, name); {
		case order == 0:
			*kinds = rest[1:]
			return rest[0]
		case order > 0:
			*kinds = rest
			return k
		}
	}
	*kinds = nil
	return k
}

// Equal reports whether both are the same children.
func (s *Set) Equal(t *Set) bool { return s.Text() == t.Text() }

// Union returns what is in s or in t.
func (s *Set) Union(t *Set) *Set {
	switch {
	case s == nil:
		return t
	case t == nil || s == t:
		return s
	}
	var room [maxKinds]Kind
	out, same := room[:0], true
	others := t.kinds
	for _, k := range s.kinds {
		if other := next(&others, k.Name).IDs; !k.IDs.ContainsAll(other) {
			k.IDs = idset.Union(k.IDs, other)
			k.N, same = k.IDs.Len(), false
		}
		out = append(out, k)
	}
	mine := s.kinds
	for _, k := range t.kinds {
		if next(&mine, k.Name).N == 0 {
			out, same = append(out, k), false
		}
	}
	if same {
		return s
	}
	return Of(out)
}

// Subtract returns what is in s and not in t.
func (s *Set) Subtract(t *Set) *Set {
	switch {
	case s == t:
		return nil
	case t == nil:
		return s
	}
	return s.cut(t, idset.Difference, true)
}

// Intersect returns what is in both.
func (s *Set) Intersect(t *Set) *Set {
	switch {
	case s == t:
		return s
	case t == nil:
		return nil
	}
	return s.cut(t, idset.Intersect, false)
}

// cut applies an operation to the ids of every kind of s and those of t. It keeps all ids, or
// none, where t lacks the kind, and does the other where t has the same ids.
func (s *Set) cut(t *Set, op func(a, b *idset.Set) *idset.Set, keepLacking bool) *Set {
	var room [maxKinds]Kind
	out, same := room[:0], true
	others := t.Kinds()
	for _, k := range s.Kinds() {
		ids := k.IDs
		switch other := next(&others, k.Name).IDs; {
		case other != nil && other != ids:
			ids = op(ids, other)
		case (other == nil) != keepLacking:
			ids = nil
		}
		n := ids.Len()
		same = same && n == k.N
		if n > 0 {
			out = append(out, Kind{k.Name, ids, n})
		}
	}
	if same {
		return s
	}
	return copyOf(out)
}

// Len returns how many of a kind there are.
func (s *Set) Len(kind string) int {
	_, n := s.Kind(kind)
	return n
}

// Intersects reports whether both have a child in common.
func (s *Set) Intersects(t *Set) bool {
	others := t.Kinds()
	for _, k := range s.Kinds() {
		if other := next(&others, k.Name); other.N > 0 && k.IDs.Intersects(other.IDs) {
			return true
		}
	}
	return false
}

// Contains reports whether all of t is in s.
func (s *Set) Contains(t *Set) bool {
	if s == t {
		return true
	}
	others := s.Kinds()
	for _, k := range t.Kinds() {
		if have := next(&others, k.Name); have.N < k.N || !have.IDs.ContainsAll(k.IDs) {
			return false
		}
	}
	return true
}
