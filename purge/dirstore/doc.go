// Package dirstore keeps jobs in a directory of the file system, one directory
// for each, and implements [purge.Store].
//
// # What it is
//
// [Create] and [Open] give a [Store]. [Store.Add] stores a job, [Store.Append],
// [Store.OpenLog] and [Store.PutR] change what is stored of it, [Store.Read] and
// [Store.Jobs] read it back. PutWatermark, PutTombstones and Unlink are what a
// purge.Runner needs; [Store.Watermark] and [Store.Tombstones] give a restart
// what it has to know. It is for tests, small tools and single machines. This is
// one of the two packages of the library that do I/O; [FS] is nearly all of it.
//
// The keys of a job are those of RFC 16:
//
//	watermark                             the greatest id, replaced whole
//	tombstones                            a log, as eventlog/logfile keeps it
//	job.0017.e9fb.8df1.6c2e/eventlog      the same
//	job.0017.e9fb.8df1.6c2e/jobspec       replaced whole
//	job.0017.e9fb.8df1.6c2e/R             replaced whole
//	new/job.0017.e9fb.8df1.6c2f/          a job that is being added
//	trash/job.0017.e9fb.8df1.6c2d/        a job that is being removed
//
// RFC 16: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_16.html
//
// # Vocabulary
//
// A job is damaged if its files are not what the package writes. It is then in
// quarantine: it is told, with its id and the cause, each time the jobs are
// listed, and can be unlinked. Evidence of an id is everything that shows that
// there was such a job: the watermark, a directory with its name, damaged or
// not, on its way in or out too, and a tombstone. What the package did not make
// is foreign. Torn is what a crash leaves of a write.
//
// # Invariants
//
// I9 is that of the library.
//
//   - D1 A job is there whole or not at all, also after a crash: it comes into
//     the store and leaves it by the renaming of one directory.
//   - D2 What a call that returned nil changed is there after a crash at any
//     later moment.
//   - D3 I9, ids never come back: nothing that is evidence of an id is removed
//     before a watermark is durable that is as great. The watermark is never
//     lowered, and a store without a readable one is not opened.
//   - D4 One damaged job hides no other and no call for one job harms another.
//   - D5 Nothing foreign is ever removed, no symbolic link is followed out of
//     the store, and names come from ids alone.
//
// # Concurrency and ownership
//
// One goroutine at a time uses a Store. A directory may be open in one Store at a
// time: there is no lock, for the reasons that eventlog/logfile gives. The logs
// that OpenLog returns belong to the caller, who closes them. Slices that are
// returned belong to the caller, slices that are passed are not kept. Nothing
// here starts a goroutine, waits or reads a clock.
//
// # Cost and limits
//
// Open costs a pass over the names of all jobs and over the log of tombstones.
// Adding a job costs four or five fsyncs, unlinking a batch one and, if the
// watermark has to rise, two more; a batch of tombstones one. Listing reads every
// job and holds one; a Store holds no jobs and no tombstones in memory, but for
// the time in which tombstones are read or their log is written anew.
//
// The log of tombstones has at most twice the size of the tombstones that stood
// in it when it was last written anew or opened, or a mebibyte if that is more,
// and one batch. The eventlog, the jobspec and the R of a job have limits, see
// [Options]. The number of jobs has none but that of the file system for one
// directory. What fsync promises is what the disk keeps; a file system must
// rename atomically, which those with a journal do. Directories are created with
// permissions 0700, files with 0600. On Windows no directory can be synced, and a
// crash of the machine may take back what was last renamed.
package dirstore
