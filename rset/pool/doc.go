// Package pool is the scheduler's side of resources: what there is, what of it
// is up, which job holds what, and where the next job goes.
//
// # What it is
//
// A [Pool] is made of the inventory that an instance tells its scheduler, and
// follows it with [Pool.Update], by [RFC 28]; [ParseAcquire] reads what is sent.
// A [Request] is what a jobspec asks for, with constraints of [RFC 31].
// [Pool.Alloc] gives a job what it asks for, [Pool.Adopt] tells of a job that
// has resources since before the scheduler began, [Pool.Free] takes them back in
// fragments: these are alloc, hello and free of [RFC 27]. [Pool.Feasible],
// [Pool.Earliest] and [Pool.Clone] answer what could be. [Pool.Holders] and
// [Pool.Check] tell where every resource is.
//
// It decides nothing about which job is next: queues and policies are built on
// it.
//
// # Vocabulary
//
// The inventory is all that an instance has, up or not. A rank that is up may
// be allocated; one that is down keeps what jobs hold of it. A job that has
// resources is a holder, until a free that is final, be it that it holds nothing
// any more. What a job holds of a rank that is not in the inventory is gone. A
// conflict is what two jobs hold both. A request is infeasible if the
// inventory could not meet it, were it all up and free, and busy if it can not
// be met now. Kinds, ranks and fragments are those of package rset.
//
// To cancel a request that has no resources yet concerns whoever queues it:
// there is no method for it, so that it can not free anything. A job whose
// resources are not from the scheduler is none of the pool's: it is not adopted,
// and a Free of it is an error.
//
// # Where a job goes
//
// The choice follows from the request and the state of the pool alone, not from
// how the pool came to be in that state.
//
//   - Only ranks that are up and satisfy the constraints are looked at.
//   - A job that asks for whole nodes gets idle ones, with all there is on them.
//     Others get the lowest free ids of each kind.
//   - Nodes that fit more tightly come first, so that idle nodes stay whole and
//     room for large jobs is kept: those in use before those that are idle,
//     those with fewer free cores before those with more, then those with fewer
//     free gpus, then by the other kinds in the order of their names. Among
//     equals the lowest rank comes first.
//   - Where a request leaves open how much, it gets the most that there is now:
//     of nodes first, each with the least number of slots, then of slots, of
//     which all nodes get as many.
//   - Slots that are not by node go to one node, the one that they fit most
//     tightly, if there is one that has room for the most that is asked for.
//     Else they fill node by node.
//
// # Invariants
//
// I1, I3, I6 and I7 are those of the library. Tests cite all by number.
//
//   - I1 Conservation. What is free and what is held have nothing in common and
//     are the inventory together, per rank and per kind.
//   - I3 No early free. What several jobs hold is free when the last of them has
//     freed it. Time frees nothing: a job past its expiration holds what it
//     held, and a forecast is only that.
//   - I6 Refusal is total. After an error nothing has changed, but that Adopt
//     holds what it reports: see there.
//   - I7 Determinism. Pools in the same state make the same choices and print the
//     same bytes.
//   - P1 Both ways. What ranks know of jobs is what jobs know of ranks, and no
//     job holds what it was not given.
//   - P2 Canonical. Neighbours in the same state are one range, and every index
//     has what it should and nothing else.
//
// # Concurrency and ownership
//
// One goroutine at a time may use a pool; a clone is another pool, which another
// goroutine may use. Requests and sets of resources are immutable and shared.
// What goes into a pool by a Change is copied; what comes out is the caller's.
//
// # Cost and limits
//
// A pool keeps ranges of ranks that are in the same state, in B-trees by rank and
// by what they can give. To allocate or free a range costs the logarithm of the
// ranges, and the jobs on the same node: one node of many, equal or all
// different, and one range of 16384 equal nodes alike. A request that asks for
// several kinds passes over the nodes that have the first and lack another, all
// that have the same numbers free at once; one with constraints passes over the
// ranges in between. Clone copies nothing; a change copies what it touches, once.
//
// Config limits jobs and properties; ranks, ids and bytes are limited where an R
// is read.
//
// [RFC 27]: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_27.html
// [RFC 28]: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_28.html
// [RFC 31]: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_31.html
package pool
