package rset

import (
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset/children"
)

// A node is what ranks with equal children share. It is never changed, so that
// sets of resources share it. A nil *node has no children.
type node struct {
	children *children.Set // never empty
	key      string        // the children as they are encoded: equal nodes have equal keys
}

// newNode returns the node that has children, nil if there are none.
func newNode(set *children.Set) *node {
	if set == nil {
		return nil
	}
	key := append(make([]byte, 0, 48), '{')
	for i, k := range set.Kinds() {
		if i > 0 {
			key = append(key, ',')
		}
		key = appendKind(key, k)
	}
	return &node{set, string(append(key, '}'))}
}

// appendKind appends a member of the key of a node. A jsonobj.Writer would allocate
// for each node of a text.
func appendKind(dst []byte, k children.Kind) []byte {
	dst, _ = k.IDs.AppendText(append(jsonobj.AppendString(dst, k.Name), `:"`...))
	return append(dst, '"')
}

func (n *node) set() *children.Set {
	if n == nil {
		return nil
	}
	return n.children
}

func (n *node) equal(m *node) bool {
	return n == m || n != nil && m != nil && n.key == m.key
}

// A nodeOp makes a node of two. It returns an operand itself where the result equals it.
type nodeOp func(x, y *node) *node

func unionNodes(x, y *node) *node     { return x.apply(y, (*children.Set).Union) }
func intersectNodes(x, y *node) *node { return x.apply(y, (*children.Set).Intersect) }
func subtractNodes(x, y *node) *node  { return x.apply(y, (*children.Set).Subtract) }

func (n *node) apply(m *node, op func(s, t *children.Set) *children.Set) *node {
	switch s := op(n.set(), m.set()); s {
	case n.set():
		return n
	case m.set():
		return m
	default:
		return newNode(s)
	}
}

// An interner gives nodes numbers, equal ones the same.
type interner struct {
	nodes []*node
	byKey map[string]int32 // nil while a search is as fast
	room  int              // how many nodes may come
}

// maxSearch is the number of nodes from which on an interner keeps a map.
const maxSearch = 8

func (x *interner) number(n *node) int32 {
	if i := lookup(x, n.key); i >= 0 {
		return i
	}
	return x.addNode(n)
}

// addNode is number for a node that equals no other.
func (x *interner) addNode(n *node) int32 {
	i := int32(len(x.nodes))
	x.nodes = append(x.nodes, n)
	switch {
	case x.byKey != nil:
		x.byKey[n.key] = i
	case len(x.nodes) > maxSearch:
		x.byKey = make(map[string]int32, max(x.room, 8*maxSearch))
		for i, n := range x.nodes {
			x.byKey[n.key] = int32(i)
		}
	}
	return i
}

func lookup[T string | []byte](x *interner, key T) int32 {
	if x.byKey != nil {
		if i, ok := x.byKey[string(key)]; ok {
			return i
		}
		return -1
	}
	for i, n := range x.nodes {
		if n.key == string(key) {
			return int32(i)
		}
	}
	return -1
}
