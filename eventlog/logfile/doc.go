// Package logfile keeps an event log (RFC 18) in a file: one process appends to it, any
// number of readers follow it.
//
//	done, err := logfile.Repair(name, logfile.RepairOptions{}) // done.Side: what was cut off
//	log, err := logfile.Open(name, logfile.Options{})
//	for batch := range batches {
//		err = log.Append(batch) // whole lines, durable from here on; an error leaves the log as before
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
// A batch is not a transaction. A log is torn if text follows its last newline, as after a
// crash. It is damaged if it is torn or has a line that is not an event. If the power fails
// amid Append, a file system that orders nothing can leave zeros amid the batch. Then Repair
// needs Cut: what is before the first damaged line has all that was acknowledged.
//
// # Promises
//
//   - What is durable is never overwritten or cut off.
//   - Nothing is appended to a damaged log: Open refuses it.
//   - A batch that failed is not in the log, and the batches before it are.
//   - A Reader returns each entry once, in order and as written, or an error.
//   - Repair keeps every byte, in the log or in a side file.
//
// If fsync fails in Open or Repair, restart the machine: readers may see bytes that are
// not on the disk. On Windows a failed write leaves a log that needs Repair. A log has no
// check digits, so a flipped bit that leaves valid entries goes unnoticed.
//
// # Locks, ownership and limits
//
// A second writer gets [ErrLocked] until the first process ends, even by kill -9. On
// systems without file locks, Append notices another writer by the file's size. One
// goroutine at a time may use a Log or a Reader. A batch has at most 64 MiB by default,
// and a line has the limits of package eventlog.
package logfile
