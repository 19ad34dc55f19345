// Package storetest tests that a store keeps what [purge.Store] promises.
//
// # What it is
//
// [Run] takes a function that opens an empty store, puts jobs into it through a
// [Subject], calls the methods of the store, and looks at what is there after the
// store was opened again.
//
// # Vocabulary
//
// A subject is the store under test, with what the suite needs to put jobs into it
// and to look at it.
//
// # Invariants
//
//   - The suite fails a store only for what the comments of [purge.Store] say.
//   - What it tests is looked at twice: before and after the store is opened again.
//
// # Concurrency and ownership
//
// Everything happens in the goroutine of the caller. A subject is used until the
// next one is opened.
//
// # Cost and limits
//
// The suite opens less than 20 subjects and stores less than 2000 jobs. It does not
// pull the plug: what a store makes of half a write is for its own tests, as only
// they can break it in the middle.
package storetest
