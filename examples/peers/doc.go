// Package peers compares joblife with what a Go user would pick instead. Each benchmark does the
// same work on all sides, and a test wants the same answer of all:
//
//	go test -bench . -count 10 | benchstat -col /side -
//
// It is a module of its own, so that joblife does not depend on its peers.
package peers
