package rset

import (
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonscan"
	"github.com/joblife/joblife/rset/internal/children"
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
	// A jsonobj.Writer would allocate for each node of a text.
	key := append(make([]byte, 0, 48), '{')
	for i, k := range set.Kinds() {
		if i > 0 {
			key = append(key, ',')
		}
		key, _ = k.IDs.AppendText(append(jsonscan.AppendString(key, k.Name), `:"`...))
		key = append(key, '"')
	}
	return &node{set, string(append(key, '}'))}
}

// set returns the children, nil if there are none.
func (n *node) set() *children.Set {
	if n == nil {
		return nil
	}
	return n.children
}

// equal reports whether two nodes have the same resources.
func (n *node) equal(m *node) bool {
	return n == m || n != nil && m != nil && n.key == m.key
}

// A nodeOp makes a node of two. It returns an operand itself where the result
// equals it.
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

// appendText appends the resources as "core[0-7],gpu0".
func (n *node) appendText(dst []byte) []byte {
	for i, k := range n.set().Kinds() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = k.IDs.AppendFormat(append(dst, k.Name...), idset.FormatBrackets)
	}
	return dst
}

// text is appendText as a string.
func (n *node) text() string { return string(n.appendText(nil)) }
