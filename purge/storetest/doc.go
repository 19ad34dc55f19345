// Package storetest tests that a store keeps what [purge.Store] promises.
//
//	func TestTheStoreIsAStore(t *testing.T) {
//		storetest.Run(t, func() storetest.Subject { return &subject{open(t)} })
//	}
//
// A [Subject] is the store under test, with what the suite needs to put jobs into it
// and to look at it. [Run] calls the methods of the store, and looks at what is there
// before and after the store was opened again. It fails a store only for what the
// comments of [purge.Store] say. A subject that is an [Obstructer] is also tested
// with a job that cannot be removed.
//
// The suite runs in the caller's goroutine. It opens less than 20 subjects and stores
// less than 2000 jobs. It does not pull the plug: what a store makes of half a write
// is for its own tests, as only they can break it in the middle.
package storetest
