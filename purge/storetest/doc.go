// Package storetest tests that a store keeps what [purge.Store] promises, or at least what
// its Unlink promises.
//
//	func TestTheStoreIsAStore(t *testing.T) {
//		storetest.Run(t, func() storetest.Subject { return &subject{open(t)} })
//	}
//
// A [Subject] is the store under test, with methods that store jobs and list them.
// [Run] calls the methods of the store, and checks its contents before and after it
// is opened again. A store fails only if it breaks a promise in the comments of
// [purge.Store]. If the Subject is an [Obstructer], Run also tests a job that cannot
// be removed, and if it is a [Damager], one that cannot be read.
//
// The suite runs in the caller's goroutine. It opens fewer than 20 subjects and
// stores fewer than 2000 jobs. It does not simulate a crash in the middle of a write:
// only the store's own tests can do that.
package storetest
