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
	n     int64
	known bool
}

// Known returns the Quantity with the number n. If n is negative or above
// MaxQuantity, the Quantity is not known.
func Known(n int64) Quantity {
	if n < 0 || n > MaxQuantity {
		return Quantity{}
	}
	return Quantity{n, true}
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

// times returns the product, known if both factors are, and whether it is within MaxQuantity.
func (q Quantity) times(r Quantity) (Quantity, bool) {
	if !q.known || !r.known {
		return Quantity{}, true
	}
	hi, lo := bits.Mul64(uint64(q.n), uint64(r.n))
	if hi != 0 || lo > MaxQuantity {
		return Quantity{}, false
	}
	return Quantity{int64(lo), true}, true
}

// plus returns the sum, by the rules of times.
func (q Quantity) plus(r Quantity) (Quantity, bool) {
	if !q.known || !r.known {
		return Quantity{}, true
	}
	sum := q.n + r.n
	if sum > MaxQuantity {
		return Quantity{}, false
	}
	return Quantity{sum, true}, true
}
