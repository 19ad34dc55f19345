// Package logfile keeps an event log of RFC 18 in a file: one process appends to
// it, and any number of readers follow it.
//
// [Create] and [Open] return a [Log], which appends batches of lines; the first
// [Log.Durable] bytes survive a crash. [OpenReader] returns a [Reader], which follows
// the log as it grows. [Repair] repairs a torn log.
//
// # Usage
//
//	done, err := logfile.Repair(name, logfile.RepairOptions{}) // done.Side: what was cut off
//	log, err := logfile.Open(name, logfile.Options{Policy: logfile.SyncGroup})
//	for batch := range batches {
//		err = log.Append(batch) // whole lines; an error leaves the log as before
//		err = log.Sync()        // durable from here on
//	}
//
//	r, err := logfile.OpenReader(name, logfile.ReaderOptions{})
//	for {
//		e, err := r.Next()
//		switch err {
//		case nil: // use e before the next call
//		case logfile.ErrEndOfHistory: // once: all that was there at the start
//		case io.EOF: // nothing now; call again later
//		}
//	}
//
// # Vocabulary
//
// A batch is lines that are appended together; it is not a transaction. A log is torn
// if text follows its last newline, as after a crash. It is damaged if it is torn or
// has a line that is not an event. A side file holds what Repair cut off; its name
// ends in ".torn-1" or a greater number.
//
// # Promises
//
//   - What is durable is never overwritten or cut off, whatever fails.
//   - Nothing is appended to a damaged log: Open refuses it.
//   - A batch that failed is not in the log, and the batches before it are.
//   - A Reader returns each entry once, in order and as written, or an error.
//   - Repair keeps every byte in a side file or in the log. By default it cuts
//     off only a torn last line.
//
// # Locks and ownership
//
// Open, Create and Repair lock the file (flock, LockFileEx): a second writer gets
// [ErrLocked]. The lock ends when its process ends, even by kill -9. On systems
// without these locks, Sync notices another writer by the file's size. One goroutine
// at a time may use a Log or a Reader.
//
// # Cost and limits
//
// Open reads the log once. Append takes one pass over the batch and one write,
// Sync an fsync and a stat. A batch has at most 64 MiB by default, and a line has
// the limits of package eventlog. The size of a log is not limited: ask
// [Log.Size].
//
// A log has no check digits: each byte is an entry's. A flipped bit that leaves entries is
// not noticed. Records of package joblife have digits in their lines, and purge/dirstore
// keeps those of its logs beside them.
//
// If fsync fails in Open or Repair, restart the machine: readers may see bytes that are
// not on the disk. On Windows a failed write leaves a log that needs Repair.
package logfile
