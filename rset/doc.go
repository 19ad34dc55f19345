// Package rset holds sets of resources, their algebra, and the ledger of what
// an allocation still holds.
//
// # What it is
//
// An [R] says which cores, gpus and other children of which ranks, on which
// hosts, and from when to when. It is read and written in the form of [RFC 20],
// version 1. [Union], [Append], [Intersect], [Difference] and [Subtract] make
// new ones, [R.Restrict] and [R.Without] make fragments, [R.Rerank] and
// [R.Remap] rename ranks, [R.Verify] compares what was found with what was
// expected. A [Ledger] takes an allocation and gives it back in fragments, of
// which exactly one, the last, is final.
//
// # Vocabulary
//
// A rank is a node as an instance numbers it. Children are what is on a node;
// a kind is a type of them, as "core" or "gpu". A group is the ranks with equal
// children. A fragment is a part of an R: its ranks, or some of its children. A
// property is a name that some ranks have; one that begins with "+" means
// something in one instance only. A resource without a rank, as a rack's ssd,
// is known to a Ledger by its name. What is held has not been freed yet.
//
// # Invariants
//
// I1 and I2 are those of the library. Tests cite all by number.
//
//   - I1 Conservation. Held and freed have nothing in common and are the
//     allocation together, per rank and per kind.
//   - I2 One final. The last fragment is final, no earlier one is, none follows.
//     It may have no ranks.
//   - I3 An R is canonical: equal sets have equal bytes. Ranks with equal
//     children are one group, groups are in the order of their first ranks,
//     kinds and properties in the order of their names.
//   - I4 A rank of an R has at least one resource. Either every rank has a host
//     or none has.
//   - I5 After an error nothing has changed, in a Ledger or in an operand.
//   - I6 No operation changes what another R shares with it.
//
// # Concurrency and ownership
//
// An R is immutable and may be copied and read by any number of goroutines. A
// fragment shares children and lists of hosts with its parent and keeps them
// alive. Sets and lists that come out of an R are copies; nothing that goes in
// is retained. One goroutine at a time may use a Ledger.
//
// # Cost and limits
//
// With r the ranges of consecutive ranks with equal children: Host, HasRank and
// Children cost log r; the algebra costs r of both operands, and per pair of
// different children once; Restrict costs what it cuts out; printing costs r,
// and by hosts where the hosts are those of a fragment. So 16384 equal nodes
// cost as one, and 16384 different ones are linear. Free costs what it frees,
// whatever is held.
//
// Parse takes up to [MaxBytes] bytes, [MaxEntries] entries and [MaxHosts] hosts,
// ranks up to [MaxRank] and ids of children up to [MaxChild]; a [Parser] takes
// less. Memory is in proportion to the text, but for hosts that brackets in
// front of a suffix spell out. Ranks may be in several entries; where these
// overlap in so many ways that it would cost their square, [ErrLimit] says so.
//
// # Fragments and what goes with an R
//
// Fragments keep times, slots, unknown keys, hosts in rank order, and the
// properties of their ranks. The number of slots is that of the allocation that
// a fragment is a part of. Every operation that changes resources, ranks or
// hosts drops the scheduling key, which describes what was. Members of an entry
// of R_lite beside rank and children are not kept.
//
// # Differences from the reference
//
// The C library of flux-core loses times and slots in fragments and unions, and
// properties where both sides of a union have the rank; it keeps the scheduling
// key; it lets in values of other JSON types, negative times, an expiration not
// after the start, negative slots, ranks without resources and one rank on two
// hosts; it takes idsets with empty elements and hosts with white space between
// them; it verifies one rank only; it writes an empty list of hosts with an
// empty R, and a separate entry for an empty set of gpus. It reads resource
// configurations, which this package does not. On all else its answers are
// those of this package, which a test compares.
//
// [RFC 20]: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_20.html
package rset
