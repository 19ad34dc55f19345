// Package idset holds sets of ids: ranks, task ids, cores.
//
// A [Set] holds numbers from 0 to [MaxID]. Memory and time grow with the number
// of ranges, not of ids: 0-2147483647 is read and printed as fast as 0-3. The
// text of a Set is the idset string of RFC 22, read strictly and printed in one
// canonical form.
//
//	held := idset.Range(0, 15)
//	done, err := idset.Parse("3,8-11")
//	if err != nil {
//		return err
//	}
//	held.SubtractWith(done) // a method changes its set,
//	both := idset.Union(held, done) // a function returns a new one
//	for first, last := range held.Ranges() {
//		fmt.Println(first, last) // 0 2, 4 7, 12 15
//	}
//
// Duties of the caller:
//
//  1. Do not copy a Set: use [Set.Clone], which is deep. go vet reports copies.
//  2. While one goroutine changes a set, no other may use it. Any number of
//     goroutines may read one set at once.
//
// # Ownership
//
// Sets share no storage. Methods read their operands and never keep them. A nil
// *Set reads as the empty set. After an error a set is unchanged.
//
// A set may change during an iteration. [Set.All] and [Set.Ranges] continue from
// the last id with what is then in the set. No id is yielded twice or out of order.
//
// # Cost and limits
//
// A range is two ids and all ids between them. A set of up to eight ranges is
// stored in the Set itself, a larger one in a list of ranges or a roaring bitmap.
// It takes at most 128 bytes for each range plus 16 KiB. With r ranges, or r
// containers of a bitmap:
//
//   - Contains, Next, Min and Max take log r steps. They do not allocate, nor does
//     a loop over Ranges, nor AppendText if dst has room. A loop over All allocates
//     at most once.
//   - Insert, Remove and their range forms take log r steps, and move the
//     ranges behind the place.
//   - Len, Union, Intersect, Difference, Equal, Clone and the text take r
//     steps.
//   - All and Slice take a step for each id.
//
// [Parse] reads up to 4 MiB. For an id above MaxID, Parse returns [ErrRange],
// and other calls panic.
//
// # Differences from flux-core
//
// The C library of flux-core accepts texts that RFC 22 does not allow, with
// empty elements ("1,,2", "1,"). It cuts ids to 32 bits, so that 4294967296 is
// 0. Here both are errors.
package idset
