package rset

import (
	"slices"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
)

// A kind is the resources of one type on a node.
type kind struct {
	name string
	ids  *idset.Set // never changed, never empty
}

// A node is what ranks with equal children share. It is never changed, so that
// sets of resources share it.
type node struct {
	kinds []kind // by name
	key   string // the children as they are encoded: equal nodes have equal keys
}

// newNode returns a node of the given kinds, which are in order and not empty;
// nil if there are none. It retains kinds.
func newNode(kinds []kind) *node {
	if len(kinds) == 0 {
		return nil
	}
	key := append(make([]byte, 0, 48), '{')
	for i, k := range kinds {
		if i > 0 {
			key = append(key, ',')
		}
		key = append(jsonscan.AppendString(key, k.name), `:"`...)
		key, _ = k.ids.AppendText(key)
		key = append(key, '"')
	}
	return &node{kinds: kinds, key: string(append(key, '}'))}
}

// ids returns the ids of a kind, nil if there are none. n may be nil.
func (n *node) ids(name string) *idset.Set {
	if n != nil {
		for _, k := range n.kinds {
			if k.name == name {
				return k.ids
			}
		}
	}
	return nil
}

// equal reports whether two nodes, which may be nil, have the same resources.
func (n *node) equal(m *node) bool {
	return n == m || n != nil && m != nil && n.key == m.key
}

// A nodeOp makes a node of two, either of which may be nil; nil means nothing
// is left. It returns an operand itself where the result equals it.
type nodeOp func(x, y *node) *node

func unionNodes(x, y *node) *node {
	switch {
	case x == nil || x.equal(y):
		return cmpNode(x, y)
	case y == nil:
		return x
	}
	kinds := make([]kind, 0, len(x.kinds)+len(y.kinds))
	same := true
	for i, j := 0, 0; i < len(x.kinds) || j < len(y.kinds); {
		order := 0
		switch {
		case i == len(x.kinds):
			order = 1
		case j == len(y.kinds):
			order = -1
		default:
			order = strings.Compare(x.kinds[i].name, y.kinds[j].name)
		}
		switch {
		case order < 0:
			kinds = append(kinds, x.kinds[i])
			i++
		case order > 0:
			kinds, same = append(kinds, y.kinds[j]), false
			j++
		default:
			k := x.kinds[i]
			if !k.ids.ContainsAll(y.kinds[j].ids) {
				k.ids, same = idset.Union(k.ids, y.kinds[j].ids), false
			}
			kinds = append(kinds, k)
			i, j = i+1, j+1
		}
	}
	if same {
		return x
	}
	return newNode(kinds)
}

// cmpNode returns x, or y where x is nil.
func cmpNode(x, y *node) *node {
	if x == nil {
		return y
	}
	return x
}

func intersectNodes(x, y *node) *node {
	if x == nil || y == nil {
		return nil
	}
	return x.each(y, idset.Intersect)
}

func subtractNodes(x, y *node) *node {
	switch {
	case x == nil || y == nil:
		return x
	case x.equal(y):
		return nil
	}
	return x.each(y, idset.Difference)
}

// each applies an operation to the ids of every kind of x and those of y.
func (n *node) each(y *node, op func(a, b *idset.Set) *idset.Set) *node {
	kinds := make([]kind, 0, len(n.kinds))
	same := true
	for _, k := range n.kinds {
		ids := op(k.ids, y.ids(k.name))
		if ids.IsEmpty() {
			same = false
			continue
		}
		same = same && ids.Equal(k.ids)
		kinds = append(kinds, kind{k.name, ids})
	}
	if same {
		return n
	}
	return newNode(kinds)
}

// appendText appends the resources as "core[0-7],gpu0".
func (n *node) appendText(dst []byte) []byte {
	for i, k := range n.kinds {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = k.ids.AppendFormat(append(dst, k.name...), idset.FormatBrackets)
	}
	return dst
}

// text is appendText as a string, "" for nil.
func (n *node) text() string {
	if n == nil {
		return ""
	}
	return string(n.appendText(nil))
}

// sortKinds puts kinds into the order of a node, without those that are empty.
func sortKinds(kinds []kind) []kind {
	kinds = slices.DeleteFunc(kinds, func(k kind) bool { return k.ids.IsEmpty() })
	slices.SortFunc(kinds, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	return kinds
}
