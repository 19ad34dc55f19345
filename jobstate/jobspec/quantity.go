package jobspec

import (
	"math/bits"
	"strconv"
)

// MaxQuantity is the largest number that a product of counts may reach.
const MaxQuantity = 1<<53 - 1

// Quantity is a number that may not be known yet, such as the cores of a job that
// asks for whole nodes. The zero Quantity is not known.
type Quantity struct {
	n           int64
	known, huge bool // huge: it is beyond MaxQuantity, which no Quantity is that a caller gets
}

// Known returns the Quantity n, one that is not known if n is negative or above MaxQuantity.
func Known(n int64) Quantity {
	if n < 0 || n > MaxQuantity {
		return Quantity{}
	}
	return Quantity{n: n, known: true}
}

// Value returns the number, and whether it is known; 0 and false if it is not.
func (q Quantity) Value() (int64, bool) { return q.n, q.known }

// String returns the number in decimal, "unknown" if it is not known.
func (q Quantity) String() string {
	if !q.known {
		return "unknown"
	}
	return strconv.FormatInt(q.n, 10)
}

// or returns q if it is known, else other.
func (q Quantity) or(other Quantity) Quantity {
	if q.known {
		return q
	}
	return other
}

// times returns the product, known if both factors are.
func (q Quantity) times(r Quantity) Quantity {
	hi, lo := bits.Mul64(uint64(q.n), uint64(r.n))
	return q.with(r, hi == 0 && lo <= MaxQuantity, int64(lo))
}

// plus returns the sum, known if both summands are.
func (q Quantity) plus(r Quantity) Quantity { return q.with(r, q.n+r.n <= MaxQuantity, q.n+r.n) }

// with returns what n is if it comes from two quantities.
func (q Quantity) with(r Quantity, fits bool, n int64) Quantity {
	switch {
	case q.huge || r.huge:
		return Quantity{huge: true}
	case !q.known || !r.known:
		return Quantity{}
	case !fits:
		return Quantity{huge: true}
	}
	return Quantity{n: n, known: true}
}
