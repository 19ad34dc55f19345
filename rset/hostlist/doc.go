// Package hostlist holds lists of host names: the nodelist of a resource set.
//
// A [List] keeps hosts in order, duplicates included, and stores them as ranges:
// n[0-999999] is as cheap to parse, search and print as n7. Its text is
// the hostlist string of RFC 29, read strictly and printed in one canonical form:
//
//	l, err := hostlist.Parse("node[08-11],login")
//	if err != nil {
//		return err // names the offset
//	}
//	l.AppendList(hostlist.Of("node12"))
//	for host := range l.All() {
//		fmt.Println(host) // node08, node09, …, login, node12
//	}
//	fmt.Println(l) // node[08-11],login,node12
//
// Duties of the caller:
//
//  1. Do not copy a List: use [List.Clone]. go vet reports copies.
//  2. While one goroutine changes a list, no other may use it. Any number of
//     goroutines may read one list at once.
//
// # Vocabulary
//
// A name has 1 to 255 bytes of printable ASCII, without comma and brackets. Its
// trailing digits, at most 18, are its id; the rest is its prefix. The width of an
// id is its number of digits, zeros included, so a1 and a01 are two hosts. Commas
// separate expressions and, inside brackets, elements. A host is spelled (stored
// as a whole name) if its expression has a suffix after the brackets.
//
// # Cost and limits
//
// Memory and time grow with the number of ranges, not of hosts. Len, and Append of
// one host, take constant time, Nth takes logarithmic time, and most other methods
// are linear in ranges. [List.Uniq] sorts ranges.
// [List.All] allocates each name. A list takes at most 400 bytes for each byte of
// text, plus 50 bytes and the name for each spelled host. It copies what it keeps.
// For larger inputs the error is [ErrLimit].
//
// # Differences from flux-core
//
// A test compares every answer with flux-core's C library. The differences on
// purpose:
//
//   - Leading zeros belong to one element: [005,4] is 005 and 4. RFC 29 applies
//     the zeros of the first element to all elements, but no Flux instance
//     does.
//   - Parse refuses white space, a second pair of brackets, signs and other text
//     beside an id, "foo[1-]", bytes that are not printable ASCII, and names
//     above 255 bytes. The library accepts them.
//   - Parse accepts ranges above 2^20 hosts and more than 10240 elements. Ids of
//     2^64 and above stay exact; the library drops or changes them.
//   - Equal lists have one text. The library has several, such as f0[7-8] and
//     f[07-08].
//   - Uniq sorts hosts. The library sorts ranges, so mixed widths are misplaced
//     or crash it.
package hostlist
