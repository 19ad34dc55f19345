// Package tidy holds the house rules that a program can check, as tests: which
// packages there are, which may import which, and what a library package does
// not do. It has no code of its own.
//
// The table in tidy_test.go is law. A new package or arrow is a new entry
// there: say in the commit why it is worth it. The rules read the text that gofmt
// prints, and proof_test.go shows of each that it can fail. They do not run under
// the race detector: there is one goroutine, and it takes ten times as long.
package tidy
