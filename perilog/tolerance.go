package perilog

import (
	"math"

	"github.com/joblife/joblife/idset"
)

// Tolerate says how many ranks may fail without the run failing. The zero value
// tolerates none.
//
// The ranks of Ranks may fail in any number. Of the others, as many may fail as
// the greater of Count and Fraction allows. What is tolerated is success with a
// set of failed ranks, see [Outcome]. Whatever is allowed, a run without one
// rank that is ok has failed, and a canceled one was canceled.
type Tolerate struct {
	Count    int        // that many ranks
	Fraction float64    // that part of all ranks, from 0 to 1
	Ranks    *idset.Set // these; nil is none

	// Drop says that the job goes on without the failed ranks. Otherwise it
	// goes on with all of them, and is told which failed.
	Drop bool
}

// clone returns a copy that shares nothing with t.
func (t Tolerate) clone() Tolerate {
	if t.Ranks != nil {
		t.Ranks = t.Ranks.Clone()
	}
	return t
}

// check returns what is wrong with t, or nil.
func (t *Tolerate) check() error {
	switch {
	case t.Count < 0:
		return &SpecError{Field: "Tolerate", Reason: "the count is negative"}
	case !(t.Fraction >= 0 && t.Fraction <= 1): // NaN too
		return &SpecError{Field: "Tolerate", Reason: "the fraction is not from 0 to 1"}
	}
	return nil
}

// allows reports whether that many ranks outside of t.Ranks may fail of all.
func (t *Tolerate) allows(failed, all int) bool {
	if failed <= t.Count {
		return true
	}
	// 0.29 of 100 is 28.999999999999996: what is that close to a whole number
	// of ranks is that number.
	const slack = 1e-9
	return float64(failed) <= math.Floor(t.Fraction*float64(all)+slack)
}
