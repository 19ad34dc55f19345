// Package pool is the scheduler's view of resources: which exist, which are up, which job
// holds them, and which ones the next job gets. The caller decides which job is next.
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
// A job with resources is a holder until its final free, even after its expiration. It keeps
// what it holds on a rank that goes down; what it holds on a rank that left the inventory (RFC
// 28) is gone. A planned job has resources from a later time on.
//
// # Where a job goes
//
// The choice follows from the request and the pool alone:
//
//   - Ranks must be up and satisfy the constraints (RFC 31), and not be planned for
//     others while the job runs.
//   - A job that asks for whole nodes gets idle ones, another job the lowest free ids.
//   - Fuller nodes come first, which leaves room for large jobs: nodes in use before
//     idle ones, then the nodes with fewer free cores, then with fewer gpus, then with
//     fewer of each other kind by name, then the lowest rank. [FitWorst] prefers emptier
//     nodes.
//   - A request with ranges of counts gets as many nodes as possible, then as many
//     slots as possible, the same number on each node.
//   - Slots without a number of nodes go to one node if it has room for all of them;
//     else they fill node after node.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a pool, also to ask. To allocate or free a range of ranks in
// one state takes logarithmic time; an allocation also takes a step for each property of the
// inventory. With constraints, a request for several kinds, or planned jobs, a search also
// visits the ranges that do not fit. [Config] limits jobs and properties; package rset limits
// ranks, ids and bytes.
package pool
