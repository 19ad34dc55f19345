// Package rset holds sets of resources, their algebra, and the ledger of what an
// allocation still holds.
//
// An [R] says which cores, gpus and other children of which ranks, on which hosts,
// and for what time (RFC 20, version 1). A [Ledger] takes an allocation and gives
// it back in fragments, of which exactly one, the last, is final.
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
// # Vocabulary
//
// A rank is a node as an instance numbers it. Children are what a node has; a kind
// is a type of children, such as "core" or "gpu". A fragment is a part of an R:
// some of its ranks, or some of their children. A property is a name that some
// ranks have. A resource without a rank, such as a rack's ssd, is known to a Ledger
// by name. What is held has not been freed.
//
// # Ownership
//
// An R is immutable; any number of goroutines may use it. Fragments share memory
// with their parent and keep it alive. Sets and lists that come out of an R are
// copies, and nothing that goes in is retained. One goroutine at a time may use a
// Ledger. [R.Restrict] tells what a fragment keeps.
//
// # Cost and limits
//
// Consecutive ranks with equal children are one range: 16384 equal nodes are as
// cheap as one. Look-ups are logarithmic in ranges, and operations linear. Restrict
// and Free take time for what they cut out, not for the whole. [Parse] lists the
// limits. Equal sets encode to equal bytes.
//
// # Differences from the reference
//
// A test compares every answer with flux-core's C library.
//
//   - The library loses times and slots in fragments and unions, and properties
//     if both sides of a union have the rank. It keeps the scheduling key.
//   - It accepts values of other JSON types, negative times and slots, an
//     expiration before the start, ranks without resources, one rank on two hosts,
//     empty elements in idsets, and white space between hosts.
//   - It verifies one rank only. It writes an empty nodelist for an empty R, and a
//     separate entry for an empty set of gpus.
//   - It reads resource configurations. This package does not.
package rset
