// Package pool is the scheduler's view of resources: which there are, which are up, which
// job holds them, and where the next job goes.
//
// A [Pool] follows the inventory of an instance (RFC 28). A [Request] comes from a jobspec
// ([NewRequest]) or from numbers ([Needs]). The caller decides which job is next.
//
//	a, err := pool.ParseAcquire(payload) // resource.acquire, the first response
//	p, err := pool.New(a.Resources, pool.Config{})
//	err = p.Update(a.Change)
//	err = p.Adopt(id, r, freed) // 1. for each job of the hello, before any Alloc
//
//	q, err := pool.Needs{Nodes: 4, Cores: 16, Duration: time.Hour}.Request()
//	r, err := p.Alloc(id, q, now)
//	switch {
//	case errors.Is(err, pool.ErrBusy): // 2. try again after a Free or an Update
//	case errors.Is(err, pool.ErrInfeasible): // 3. deny the job
//	}
//	freed, err := p.Free(id, fragment, final) // 4. as the manager frees fragments
//
// # Vocabulary
//
// A rank that is up can be allocated; jobs keep what they hold of one that is down. A job
// with resources is a holder until its final free. What it holds of a rank that has left
// the inventory is gone. A conflict is what two jobs hold. A request holds nothing, so
// there is nothing to cancel. A job past its expiration keeps what it holds.
//
// # Where a job goes
//
// The choice follows from the request and the pool alone (I7):
//
//   - Ranks must be up and satisfy the constraints (RFC 31).
//   - A job that asks for whole nodes gets idle ones. Others get the lowest free ids of
//     each kind.
//   - Tighter nodes come first, which leaves room for large jobs: nodes in use before
//     idle ones, then by fewer free cores, gpus and other kinds by name, then the lowest
//     rank.
//   - A request with a range gets the most nodes, then the most slots, as many on each
//     node.
//   - Slots that are not by node go to one node if it has room for all; else they fill
//     node by node.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a pool. A [Pool.Clone] is another pool, for forecasts
// or for another goroutine, in constant time. Requests and resource sets are shared.
//
// To allocate or free a range of ranks in the same state takes logarithmic time.
// Constraints, and requests for several kinds, pass over the ranges that do not fit.
// [Config] limits jobs and properties; package rset limits ranks, ids and bytes.
package pool
