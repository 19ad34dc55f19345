// Package bomb makes hostile inputs of 1 MiB, and fails a test if work with one takes
// more than 64 MiB of memory or one second of the processors. Its own test has a row for
// each decoder of the library; the programs have tests of their own.
//
// Memory is what is live at a time. Time is the time of the process, so that a busy machine
// fails no test; with the race detector it is not judged.
//
// Only tests import this package.
package bomb
