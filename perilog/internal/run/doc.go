// Package run follows one action, the command of a prolog, an epilog or housekeeping, on
// the ranks of one job: launches, reports, timeouts, cancellation, and one outcome of all.
//
// A [Run] only decides. Its owner reports to it what was launched and what was
// reported, and asks for what follows: the ranks that failed, the ranks that
// ended, and the signals to send.
//
// Each rank ends exactly once, whatever is reported, in whatever order, twice,
// late or never. A run with a timeout ends at the latest when the timeout and
// the kill timeout have passed, if [Run.Tick] is called at each [Run.Deadline].
// A report belongs to one attempt; a report of another attempt changes nothing.
package run
