// Package logfile keeps an event log of RFC 18 in a file: one process appends,
// any number of readers follow.
//
// # What it is
//
// [Create] and [Open] give a [Log], to which batches of lines are appended; what
// [Log.Durable] covers survives a crash. [Repair] makes a log that a crash left
// torn one that can be appended to, and keeps what it cuts off. [OpenReader]
// gives a [Reader], which hands out entries one by one, says where the history
// ends, and goes on when the log has grown. This is one of the two packages of
// the library that do I/O; [FS] is all of it. What an entry is, eventlog says.
//
// # Vocabulary
//
// A batch is lines that are appended together. A log is torn if text follows its
// last newline; it is damaged if it is torn or has a line that is no event. A
// log stands up to an offset if the bytes before it are what was appended. The
// durable part is what a crash of the machine leaves; acknowledged is another
// word for it. A side file holds what Repair cut off: its name is the log's with
// ".torn-1" after it, or a greater number. The history is what was complete when
// a Reader was opened.
//
// # Invariants
//
//   - L1: what is durable stays, byte for byte. No call overwrites or cuts off
//     what Durable covers, whatever fails.
//   - L2: nothing is appended to a damaged log. Open refuses it.
//   - L3: a batch that was refused or whose write failed is not in the log, and
//     the ones before it are.
//   - L4: an error of the file system is returned once, by the call that met it.
//     A Log that can not go on says [ErrFailed] from then on. Sync returns nil
//     only when all batches before it are durable.
//   - L5: a Reader hands out each entry once and in order, whole, or ends with a
//     typed error.
//   - L6: Repair keeps every byte: the log and its new side file together are
//     the log as it was.
//
// A batch is not a transaction. A crash before it is durable may leave its first
// lines and not the others; RFC 18 has no mark for what belongs together. A
// Reader without a Limit may hand out lines of a batch that a failing writer then
// takes back; it ends with [ErrChanged] when it looks again. One whose Limit is
// Log.Durable sees nothing that is ever taken back.
//
// # Concurrency and ownership
//
// One goroutine at a time may use a Log or a Reader. Nothing here starts a
// goroutine, waits or reads a clock: who follows a log calls Next when it has
// reason to.
//
// A file may be open in one Log at a time, and not while it is repaired. There is
// no lock: a lock that holds between processes is not to be had portably, and one
// that a killed process leaves behind stops the next. Sync notices another writer
// by the size of the file, after the fact. Each writes at the end of the
// file, so that neither overwrites the other.
//
// No byte slice is retained. An entry of a Reader is valid until its next call of
// Next.
//
// # Cost and limits
//
// Open reads the log once, and calls fsync for the file and its directory, Create
// for the directory. Append costs a pass over the batch and one write, and
// allocates nothing where the names of events are those of RFC 21; Sync costs
// one fsync and a stat, which allocates. Reading costs what a Decoder costs and
// one more copy. A Next that finds nothing costs a read and a stat. A Reader
// holds its own buffer and that of a Decoder: 64 KiB each, or a few times the
// longest line where that is more.
//
// A batch has [DefaultMaxBatch] bytes at most unless Options say otherwise, a line
// the limits of eventlog. A log has none: its owner asks Size.
//
// What fsync promises is what the disk keeps. If it fails when a log is opened or
// repaired, or if cutting off fails as well after it failed in Sync, the
// operating system may show bytes that are not on the disk, and a later Open can
// not tell: then the machine should restart, or the log be restored from
// elsewhere. A system whose files opened for appending can not be truncated, as
// Windows, loses no entry by it, but each failed write is ErrFailed there, and
// leaves a log to repair. A name that is not absolute must denote the same file
// as long as the Log or Reader is open.
package logfile
