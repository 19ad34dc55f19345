// Package hostlist holds lists of host names: the nodelist of a resource set.
//
// # What it is
//
// A [List] is an ordered list of host names, each as often as it was put in,
// that is kept as ranges: n[0-999999] is read, counted, searched and printed as
// fast as n7. Its text is the hostlist string of [RFC 29], read strictly and
// printed in one canonical form. An [Index] tells where hosts are in a list,
// for many look-ups.
//
// # Vocabulary
//
// A name is what one host is called: 1 to [MaxName] bytes of printable ASCII
// other than comma and brackets. The digits that it ends in, at most the last
// 18 of them, are its id, and what stands before is its prefix. The width of an
// id is the number of its digits, zeros on the left included, so that a1 and
// a01 are two hosts. A range is hosts of one prefix with consecutive ids, each
// printed with zeros on the left up to one width, as 09, 10 and 100 are in
// [09-100]. An expression is what stands between two commas outside of
// brackets, and an element what stands between two commas inside. A host is
// spelled if its expression has a suffix behind the brackets.
//
// # Invariants
//
// Tests cite them by number.
//
//   - I1 A range has a width equal to the length of its first id, and its
//     prefix does not end in a digit, unless the id has 18 digits. A name
//     without an id is a range by itself.
//   - I2 Each range knows the index of its first host.
//   - I3 No range goes on where the one before ends.
//   - I4 The text is canonical: lists of the same hosts in the same order have
//     the same ranges and the same text, and Parse of that text, with limits
//     that let it in, is an equal list.
//   - I5 After an error a list is as before.
//   - I6 Two lists share no storage but the bytes of prefixes, which nothing
//     changes.
//
// # Concurrency and ownership
//
// Methods that do not change a list do not write to it, so that any number of
// goroutines may read one list, clone it, or pass it as an operand. A goroutine
// that changes a list must be alone with it. A List must not be copied: use
// Clone. A list copies what it keeps of a text or a name, and an error keeps
// short copies; prefixes of a parsed list keep one copy of the whole text alive.
// A nil *List reads as the empty list everywhere. A loop over a list that
// changes meanwhile yields what was in it when the loop began.
//
// # Cost and limits
//
// With r ranges:
//
//   - Len: nothing. Nth: log r. Find and Contains: r. Index.Find: log r.
//   - Append, amortized: nothing. AppendList, Clone, Equal, text: r.
//   - Delete, Uniq, NewIndex: r log r, and Delete more where ranges overlap, as
//     it says.
//   - Sort: r log r, and by hosts where ranges overlap; at most [MaxRanges].
//   - All and Slice: by hosts, a string each.
//
// Find, Equal, Ranges, AppendText with room and Index.Find do not allocate.
//
// Parse lets in [MaxText] bytes, [MaxHosts] hosts and [MaxSpelled] hosts in
// brackets with a suffix; a [Parser] can be told others. A spelled host takes
// about 50 bytes of memory and those of its name; without such hosts memory is
// at most 400 bytes for each byte of text, and 48 for each range. What is too
// large is an [ErrLimit].
//
// # What the zeros of an idlist mean
//
// RFC 29 gives the zeros of an idlist's first element to all of its elements,
// so that [005,4] would be 005 and 004. No Flux instance reads or writes it so:
// there, each element has its own zeros. This package does as they do, and reads
// 005 and 4, because what an instance wrote must name the hosts that it meant.
// The zeros of a range's last id say nothing: [8-010] is [8-10].
//
// # Differences from the reference
//
// On all else the answers are those of flux-core's C library, which a test
// compares. Parse refuses what RFC 29 does not have and the library lets in:
// white space between expressions; brackets behind the first pair; signs,
// spaces and other text beside an id, and "foo[1-]"; bytes that are not
// printable ASCII; names above MaxName. It lets in ranges of more than 2^20
// hosts and more than 10240 elements. Ids of 2^64 and above, which the library
// drops or changes, stay as they are.
//
// The library keeps digits before a bracket apart from the id, and those at the
// end of a suffix too, so that one list has several texts: f0[7-8] and f[07-08].
// Here the hosts alone decide: a text is what the library prints of the same
// names written out one by one. Ranges that come to lie side by side after
// Delete are joined.
//
// The library sorts ranges, and so puts hosts of mixed widths in an order that
// depends on how they were grouped, or crashes. Sort here orders hosts.
//
// [RFC 29]: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_29.html
package hostlist
