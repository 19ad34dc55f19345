// Package pool is the scheduler's view of resources: which exist, which are up, which job
// holds them, and which ones the next job gets.
//
// A [Pool] follows the inventory of an instance (RFC 28). [NewRequest] makes a [Request]
// from a jobspec, which [jobspec.New] makes from numbers. The caller decides which job is
// next.
//
//	a, err := pool.ParseAcquire(payload) // resource.acquire, the first response
//	p, err := pool.New(a.Resources, pool.Config{})
//	err = p.Update(a.Change)
//	err = p.Adopt(id, r, freed) // 1. for each job of the hello, before any Alloc
//
//	q, err := pool.NewRequest(spec)
//	r, err := p.Alloc(id, q, now)
//	switch {
//	case errors.Is(err, pool.ErrBusy): // 2. try again after a Free or an Update
//		at, err := p.Plan(id, q, now) // or reserve: no other job delays it from now on
//	case errors.Is(err, pool.ErrInfeasible): // 3. deny the job
//	}
//	freed, err := p.Free(id, fragment, final) // 4. as the manager frees fragments
//
// # Vocabulary
//
// A rank that is up can be allocated. A job keeps what it holds on a rank that goes down.
// A job with resources is a holder until its final free, even after its expiration. What
// it holds on a rank that left the inventory is gone. A conflict is a resource that two
// jobs hold. A request reserves nothing, so there is nothing to cancel.
//
// A planned job has resources from a later time on. EASY backfill plans the first job that
// must wait, conservative backfill each.
//
// # Where a job goes
//
// The choice follows from the request and the pool alone (I7):
//
//   - Ranks must be up and satisfy the constraints (RFC 31), and not be planned for
//     others while the job runs.
//   - A job that asks for whole nodes gets idle ones. Other jobs get the lowest free
//     ids of each kind.
//   - Fuller nodes come first, which leaves room for large jobs: nodes in use before
//     idle ones, then the nodes with fewer free cores, then with fewer gpus, then with
//     fewer of each other kind by name, then the lowest rank. [FitWorst] is for emptier
//     nodes first.
//   - A request with ranges of counts gets as many nodes as possible, then as many
//     slots as possible, the same number on each node.
//   - Slots without a number of nodes go to one node if it has room for all of them;
//     else they fill node after node.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a pool, also to ask. [Pool.Clone] makes an independent
// pool in constant time. Goroutines may share requests and resource sets.
//
// Allocating or freeing a range of ranks in the same state takes logarithmic time. With
// constraints, a request for several kinds, or planned jobs, a search also visits the
// ranges that do not fit. What constraints allow is found once for each inventory.
// [Config] limits jobs and properties; package rset limits ranks, ids and bytes.
package pool
