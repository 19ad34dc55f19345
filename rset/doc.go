// Package rset holds sets of resources (RFC 20, version 1), their algebra, and the [Ledger]
// of an allocation, which gives it back in fragments. Exactly one of these, the last, is final.
//
//	r, err := rset.Parse(text)
//	held := rset.NewLedger(r)
//	for ranks := range released { // as epilogs end
//		fragment, err := held.Free(ranks)
//		send(fragment.R, fragment.Final) // sched.free
//	}
//
// Send each fragment that is not empty, in order; the final one may have no ranks.
//
// # Vocabulary
//
// A rank is the number of a node. Children are the resources of a node, and a kind is their
// type, such as "core". A fragment is some ranks of an R, or some of their children. A property
// is a name that some ranks have. A named resource has no rank, such as the ssd of a rack.
//
// # Ownership, cost and limits
//
// An R is immutable; any number of goroutines may use it. Fragments share memory with
// their parent and keep it alive; sets and lists that come out of an R are copies. One
// goroutine at a time may use a Ledger, which must not be copied.
//
// Consecutive ranks with equal children are one range: 16384 equal nodes are as cheap as one.
// Look-ups are logarithmic in the number of ranges, operations linear, but Restrict and Free
// take time for the ranges that they cut out alone. [Parse] lists the limits.
//
// # Differences from flux-core
//
// A test compares every answer with flux-core's C library. The differences on purpose:
//
//   - Fragments and unions keep times, slots and properties, which the library can lose.
//     They drop the scheduling key, which the library keeps.
//   - Parse refuses values of other JSON types, negative times and slots, an expiration
//     before the start, ranks without resources, one rank in two entries or on two hosts,
//     empty elements in idsets, and white space between hosts.
//   - An empty R is written without a nodelist, and an empty set of gpus is not written.
package rset
