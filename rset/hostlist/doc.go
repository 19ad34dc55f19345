// Package hostlist holds lists of host names: the nodelist of a resource set. A [List]
// keeps hosts in order, duplicates included, as ranges: n[0-999999] is as cheap as n7. Its
// text is the hostlist string of RFC 29, read strictly and printed in one canonical form.
//
//	l, err := hostlist.Parse("node[08-11],login") // an error names the offset
//	l.AppendList(hostlist.Of("node12"))
//	for host := range l.All() {
//		fmt.Println(host) // node08, node09, …, login, node12
//	}
//	fmt.Println(l) // node[08-11],login,node12
//
// Do not copy a List: use [List.Clone]. Any number of goroutines may read one list, if
// none changes it.
//
// A name has 1 to 255 bytes of printable ASCII, without comma and brackets. Its trailing
// digits, at most 18, are its id. Zeros count: a1 and a01 are two hosts. A host whose
// expression has a suffix after the brackets is stored as a whole name.
//
// # Cost and limits
//
// Memory and time grow with the number of ranges, not of hosts. Len, and Append of one host, take
// constant time, Nth logarithmic, most other methods linear time. [List.All] allocates each name.
// A list takes at most 400 bytes for each byte of text, plus 50 bytes and the name for each host
// that is stored whole. [Parser] has the limits.
//
// # Differences from flux-core
//
// A test compares every answer with flux-core's C library. The differences on purpose:
//
//   - Leading zeros belong to one element: [005,4] is 005 and 4. RFC 29 applies the zeros
//     of the first element to all elements, but no Flux instance does.
//   - Parse refuses white space, a second pair of brackets, signs and other text beside an
//     id, "foo[1-]", bytes that are not printable ASCII, and names above 255 bytes.
//   - Parse accepts ranges above 2^20 hosts and more than 10240 elements. Ids of 2^64 and
//     above stay exact; the library drops or changes them.
//   - Equal lists have one text. The library has several, such as f0[7-8] and f[07-08].
//   - Uniq sorts hosts. The library sorts ranges, so mixed widths are misplaced or crash it.
package hostlist
