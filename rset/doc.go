// Package rset holds sets of resources, their algebra, and the ledger of an
// allocation.
//
// An [R] is a set of cores, gpus and other children of ranks, with the hosts of
// the ranks and the time they are valid (RFC 20, version 1). A [Ledger] takes an
// allocation and gives it back in fragments, of which exactly one, the last, is
// final.
//
//	r, err := rset.Parse(text)
//	if err != nil {
//		return err
//	}
//	held := rset.NewLedger(r)
//	for ranks := range released { // as epilogs end
//		fragment, err := held.Free(ranks)
//		if err != nil {
//			return err
//		}
//		send(fragment.R, fragment.Final) // sched.free
//	}
//
// Duties of the caller:
//
//  1. Send each fragment that is not empty, in order. The final one may have no
//     ranks.
//  2. Use a [Ledger] from one goroutine at a time, and do not copy it.
//
// # Vocabulary
//
// A rank is the number of a node. Children are the resources of a node, and a kind
// is their type, such as "core" or "gpu". A fragment is a part of an R: some of its
// ranks, or some of their children. A property is a name that some ranks have. A
// resource is held until it is freed. A named resource has no rank, such as the ssd
// of a rack.
//
// # Ownership
//
// An R is immutable; any number of goroutines may use it. Fragments share memory
// with their parent and keep it alive. Sets and lists that come out of an R are
// copies, and nothing that goes in is retained.
//
// # Cost and limits
//
// Consecutive ranks with equal children are one range: 16384 equal nodes are as
// cheap as one. Look-ups are logarithmic in the number of ranges, and operations
// linear. The time of Restrict and Free depends on the ranges that they cut out,
// not on the whole R. [Parse] lists the limits. Equal sets encode to equal bytes.
//
// # Differences from flux-core
//
// A test compares every answer with flux-core's C library. The differences on
// purpose:
//
//   - Fragments and unions keep times, slots and properties, which the library
//     can lose. They drop the scheduling key, which the library keeps.
//   - Parse refuses values of other JSON types, negative times and slots, an
//     expiration before the start, ranks without resources, one rank in two entries
//     or on two hosts, empty elements in idsets, and white space between hosts.
//   - An empty R is written without a nodelist, and an empty set of gpus is not
//     written.
package rset
