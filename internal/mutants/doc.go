// Command mutants changes packages in one place after the other and runs their tests, which
// have to fail: a mutant that survives is a line that no test needs. `make mutants` runs it.
//
// It negates conditions, swaps && and ||, moves comparisons by one, turns + and -, ++ and --,
// 0 and 1, true and false, and drops statements. It leaves alone what no test can
// see: the capacity that make is passed, the text of a panic, and what a function returns beside
// an error or false.
//
// A mutant meets the tests of its own package, and where it survives those of the packages
// that depend on it, unless -own is given. All are short, with fixed seeds. A hang counts as
// killed; so does a memory limit that the caller sets.
//
// Mutants that change nothing a user can see stand in equivalent.txt, each on a line: its
// package, its function and what is changed, the text of its line, and the reason, with tabs
// between them. A listed one that is killed, or that is no more, is an error.
//
// Results go to mutants.out in the current folder as they come, with the test that failed, and
// the next run goes on from there: what was killed stays killed, and what survived is tried
// again if a file of its package has changed. Remove the file to begin anew.
package main
