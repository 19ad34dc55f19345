// Package dirstore keeps jobs in a directory of the file system, one directory for
// each, and implements [purge.Store].
//
// Use it for tests, and for tools where people read plain files. It needs 16 KB and
// four inodes a job. For daily use take a database: examples/boltstore keeps the same
// in one file of 2.5 KB a job, and lists and purges more than ten times as fast. Most
// of a purge here is the file system, which removes four inodes a job.
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
// file system. [Repair] mends what Open calls damaged.
//
// # Layout
//
// RFC 16 names the files of a job. The watermark and the tombstones have check
// digits (CRC-32C).
//
//	watermark-1, watermark-2              the greatest id, twice, overwritten in place
//	tombstones                            a log, as eventlog/logfile keeps it
//	lock                                  locked while the store is open
//	ballast-1 to ballast-4                room for a purge on a full disk
//	job.0017.e9fb.8df1.6c2e/eventlog      a log
//	job.0017.e9fb.8df1.6c2e/jobspec       replaced whole
//	job.0017.e9fb.8df1.6c2e/R             replaced whole
//	new/job.0017.e9fb.8df1.6c2f/          a job that is being added
//	trash/job.0017.e9fb.8df1.6c2d/        a job that is being removed
//
// # Promises
//
//   - A job is there whole or not at all, also after a crash.
//   - What a call that returned nil changed is there after a crash.
//   - Ids never come back (I9): no evidence of an id is removed before a watermark
//     as great is durable. Evidence is the watermark, a tombstone, and a directory
//     with the name of a job.
//   - One damaged job hides no other, and one that cannot be removed stops no other.
//   - The store removes only what it made, and follows no symbolic link.
//   - A full disk can be opened and purged: the watermark needs no space, and the
//     ballast has room for tombstones.
//
// # Ownership, cost and limits
//
// One goroutine at a time uses a Store. A second Store of the same directory is
// logfile.ErrLocked until the first is closed or its process ends.
//
// Open reads the names of all jobs and all tombstones, and a Store holds them in
// memory. Adding a job takes four or five fsyncs, unlinking a batch one to three.
// Listing holds one job at a time. On Windows a crash of the machine may take back
// the last renames.
package dirstore
