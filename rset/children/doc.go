// Package children holds the resources of one node: ids by kind.
//
// A [Set] is immutable, so that nodes, jobs and any number of goroutines share it. It is
// what resource sets, pools of them and other indexes of ranks compute with: see
// rset.R.Parts.
//
//	free := children.Of([]children.Kind{{Name: "core", IDs: cores, N: cores.Len()}})
//	free = free.Subtract(taken)
//	_, n := free.Kind("core")
package children
