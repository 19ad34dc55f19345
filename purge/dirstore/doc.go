// Package dirstore keeps jobs in a directory of the file system, one directory for
// each, and implements [purge.Store].
//
// Use it for tests, and for tools where people read plain files. It needs 20 KB and
// five inodes for each job, and the file system takes most of the time of a purge.
// For daily use take a database: examples/boltstore keeps the same data in one file
// with 2.5 KB for each job, and lists and purges more than ten times as fast.
//
// # Usage
//
//	s, report, err := dirstore.Open(dir, dirstore.Options{}) // report: what a crash left
//	ev, damaged, err := s.Evidence()                         // damaged: jobs to look at
//	ev.Now = now
//	x, err := purge.Recover(cfg, ev)
//	r, err := purge.NewRunner(x, s, limits)
//
//	err = s.Add(dirstore.Stored{ID: id, Eventlog: log, Jobspec: spec})
//	log, repaired, err := s.OpenLog(id, logfile.SyncGroup)
//	_, err = r.Tick(ctx, now)
//
// [OpenReadOnly] works beside a process that has the store open, and on a read-only
// file system. [Repair] repairs a store that Open refuses as damaged.
//
// # Layout
//
// RFC 16 names the files of a job.
//
//	watermark-1, watermark-2              the greatest id, twice, overwritten in place
//	tombstones                            a log, as eventlog/logfile keeps it
//	lock                                  locked while the store is open
//	ballast-1 to ballast-4                room for a purge on a full disk
//	job.0017.e9fb.8df1.6c2e/eventlog      a log
//	job.0017.e9fb.8df1.6c2e/jobspec
//	job.0017.e9fb.8df1.6c2e/R             replaced whole
//	job.0017.e9fb.8df1.6c2e/crc32c        check digits of these three
//	new/job.0017.e9fb.8df1.6c2f/          a job that is being added
//	trash/job.0017.e9fb.8df1.6c2d/        a job that is being removed
//
// # Promises
//
//   - A job is stored whole or not at all, also after a crash.
//   - If a call returned nil, its change survives a crash.
//   - Ids never come back (I9): before the store removes the last trace of an id,
//     a watermark at least as great is durable. A trace is a tombstone, or a
//     directory with the name of a job.
//   - A damaged job does not hide the others, nor a damaged file the others of its
//     job; and a job that cannot be removed does not stop the others.
//   - The store removes only files that it made, and follows no symbolic link.
//   - A store on a full disk can be opened and purged: the watermark needs no new
//     space, and removing the ballast makes room for tombstones.
//
// # Check digits
//
// The watermark, the tombstones and the files of a job have check digits (CRC-32C).
// [Store.Read], [Store.Jobs] and [Store.OpenLog] return [ErrDamaged] if those of a job do
// not match. Repair the file, or remove crc32c to accept what is there. Without crc32c,
// as in a store of before, nothing of the job is checked until it is written again.
//
// Not covered is what is appended to a log that OpenLog returned, until it is opened
// again, and what a crash of the machine left of crc32c, which is not synced. A damaged
// end of the last tombstones is taken for a torn line, and Report tells it.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a Store. Opening the same directory again
// returns [logfile.ErrLocked] until the first Store is closed or its process
// ends.
//
// Open reads the names of all jobs, and all tombstones, and keeps them in memory.
// Adding a job takes four or five fsyncs, replacing its R two or three, unlinking a
// batch one to three. A listing has one job at a time in memory. On Windows a crash of the machine may
// undo the last renames.
package dirstore
