package rset

import "github.com/joblife/joblife/rset/children"

// An interner gives nodes numbers, equal ones the same. A node is children that ranks share.
type interner struct {
	nodes  []*children.Set  // none of them empty
	byText map[string]int32 // nil while a search is as fast
	room   int              // how many nodes may come
}

// maxSearch is the number of nodes from which on an interner keeps a map.
const maxSearch = 8

func (x *interner) number(n *children.Set) int32 {
	if i := lookup(x, n.Text()); i >= 0 {
		return i
	}
	i := int32(len(x.nodes))
	x.nodes = append(x.nodes, n)
	switch {
	case x.byText != nil:
		x.byText[n.Text()] = i
	case len(x.nodes) > maxSearch:
		x.byText = make(map[string]int32, max(x.room, 8*maxSearch))
		for i, n := range x.nodes {
			x.byText[n.Text()] = int32(i)
		}
	}
	return i
}

// lookup returns the number of the node with a text, -1 if there is none.
func lookup[T string | []byte](x *interner, text T) int32 {
	if x.byText != nil {
		if i, ok := x.byText[string(text)]; ok {
			return i
		}
		return -1
	}
	for i, n := range x.nodes {
		if n.Text() == string(text) {
			return int32(i)
		}
	}
	return -1
}
