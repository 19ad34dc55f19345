// Package idset holds sets of ids: ranks, task ids, cores. Memory and time grow with the
// number of ranges, not of ids. The text of a [Set] is the idset string of RFC 22, read
// strictly and printed in one canonical form.
//
//	held := idset.Range(0, 15)
//	done, err := idset.Parse("3,8-11")
//	held.SubtractWith(done) // a method changes its set,
//	both := idset.Union(held, done) // a function returns a new one
//	for first, last := range held.Ranges() {
//		fmt.Println(first, last) // 0 2, 4 7, 12 15
//	}
//
// An id is at most [MaxID]. For a greater one, Parse returns [ErrRange] and other calls
// panic.
//
// # Ownership
//
// Do not copy a Set: use [Set.Clone]. Sets share no storage, and a nil *Set reads as the
// empty set. Any number of goroutines may read one set, if none changes it. A set may
// change while [Set.All] and [Set.Ranges] iterate: they go on with what is then in it.
//
// # Cost and limits
//
// The Set itself stores up to eight ranges, a list or a roaring bitmap stores more, in at
// most 128 bytes a range plus 16 KiB. Look-ups take a number of steps that is logarithmic
// in the ranges, and set operations a linear one. Insert and Remove move the ranges behind
// the place. Only All and Slice take a step for each id. [Parse] reads up to 4 MiB.
//
// # Differences from flux-core
//
// flux-core's C library accepts empty elements ("1,,2", "1,"), which RFC 22 does not
// allow, and cuts ids to 32 bits, so that 4294967296 is 0. Here both are errors.
package idset
