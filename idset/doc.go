// Package idset holds sets of ids: ranks, task ids, cores, indices.
//
// # What it is
//
// A [Set] is a set of numbers from 0 to [MaxID] whose cost follows its ranges,
// not its ids: 0-2147483647 is read, counted and printed as fast as 0-3. Its
// text is the idset string of [RFC 22], read strictly and printed in one
// canonical form. [Set.UnionWith], [Set.IntersectWith] and [Set.SubtractWith]
// change a set; [Union], [Intersect] and [Difference] return a new one. An
// [Allocator] hands out the ids of a set and takes them back.
//
// # Vocabulary
//
// A range is two ids and all between them, both included. A run is a maximal
// range of a set: the ids beside it are absent. A run list is the runs of a set
// in ascending order. A container is where a bitmap keeps up to 65536 ids of
// equal upper bits.
//
// A set of up to eight runs is a run list in the Set itself, a larger one a run
// list or a roaring bitmap on the heap, whichever is estimated to be in
// proportion: a bitmap if it has more than 256 runs that lie close enough for
// at most 64 bytes each. A set changes from one to the other and back as it
// changes. Nothing but time and memory tells them apart.
//
// # Invariants
//
// Tests cite them by number.
//
//   - I1 The runs of a list ascend, neighbours have an absent id between them,
//     and no id is above MaxID.
//   - I2 A set has exactly one representation. A bitmap is never empty, and a
//     list on the heap has more than four runs.
//   - I3 Two sets share no storage, whatever made them.
//   - I4 Spare places of a run list are zero.
//   - I5 A set takes memory in proportion to its runs: after an operation over
//     the whole set at most 128 bytes a run and 16 KiB, and never more than
//     what its changes since then could add.
//   - I6 After an error a set or allocator is as before.
//   - I7 The text is canonical: equal sets have equal texts, and Parse of a
//     set's text is an equal set.
//   - I8 The free ids of an allocator are among its ids.
//
// # Concurrency and ownership
//
// Methods that do not change a set do not write to it, so that any number of
// goroutines may read one set, Clone it, or pass it as an operand. A goroutine
// that changes a set must be alone with it. A Set must not be copied: use Clone,
// which is deep. Operands are read, never kept; results and errors share
// nothing with inputs. A nil *Set reads as the empty set everywhere.
//
// A set may change in the middle of an iteration over it. [Set.All],
// [Set.Backward] and [Set.Ranges] then go on from where they are, with what is
// in the set at that moment: no id is yielded twice or out of order, and ids
// that came or went ahead are seen as they are.
//
// # Cost and limits
//
// With r runs, and c containers of a bitmap:
//
//   - Contains, Next, Prev, Min, Max: log r, or log c. They never allocate, nor
//     does a loop over All, Backward or Ranges, nor AppendText with room.
//   - Insert, Remove and their range forms: log r to find the place, and moving
//     the runs behind it; with a bitmap, one container.
//   - Len, union, intersection, difference, comparison, clone, text: r or c.
//     An operand of up to eight runs costs that many single changes.
//   - All, Backward, Slice and the [List] format cost by ids.
//
// [Parse] takes text of up to [MaxText] bytes, a [Parser] what it is told, and at
// most 128 bytes of memory for each byte, whatever the ids are. [Set.Slice] takes
// the largest number of ids that the caller is ready for. [ErrLimit] tells that
// either was exceeded. Ids above MaxID are refused with [ErrRange] where they come
// from text, and are a bug of the caller, with a panic, where they come from code.
//
// # Differences from the reference
//
// The C library of flux-core takes texts that RFC 22 does not allow, with empty
// elements ("1,,2", "1,", ",1"), and cuts ids above 2^32 to 32 bits, so that
// 4294967296 is 0. Here both are errors. On all else its answers are those of
// this package, which a test compares.
//
// [RFC 22]: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_22.html
package idset
