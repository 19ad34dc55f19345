// Package tidy holds the house rules that a program can check, as tests: which
// packages there are, which may import which, what library code does not do, and that each
// exported name has a user.
//
// The table in tidy_test.go is law. A new package or arrow is a new entry there:
// say in the commit why it is worth it. proof_test.go shows that each rule can fail.
package tidy
