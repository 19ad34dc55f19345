// Package children holds the resources of one node: ids by kind.
//
// A [Set] is immutable, so that nodes, jobs and copies share it. It is what a
// resource set and a pool compute with; neither needs the other's bookkeeping.
//
//	free := children.New(map[string]*idset.Set{"core": cores})
//	free = free.Subtract(taken)
//	_, n := free.Kind("core")
package children
