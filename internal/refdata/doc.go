// Package refdata gives tests the reference data that they compare this
// library with: what flux-core's own C libraries answered, jobs recorded from a
// running instance, and dump archives.
//
// The folder testdata holds a corpus, so that a fresh clone compares with Flux: the
// recorded jobs, and the vectors, of which the four largest files are sampled. The full
// vectors, the dump archives and the traces are not in the repository. Where the
// environment variable JOBLIFE_DATA names a folder that has them, tests read that folder
// alone, and an absent file is a failure. Without the variable, a test of a file outside
// the corpus is skipped and says so.
//
// Each reader asserts how much it read, and each listed difference how often it
// was seen, so that a comparison cannot pass by comparing nothing.
//
// Only tests import this package.
package refdata
