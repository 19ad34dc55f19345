// Package dirstore keeps jobs in plain files that people read, for tests and tools; for daily
// use take module purge/boltstore.
//
// Each job has a directory, and takes 20 KB and five inodes; [boltstore] keeps the same data in
// one file with 2.5 KB for each job, and lists and purges more than ten times as fast. The
// records of an instance, such as the watermark and tombstones, are for a log beside it.
//
//	s, err := dirstore.Open(dir)
//	for j, err := range s.Jobs() {                    // err: a job to look at
//		// fold j.Eventlog
//	}
//	err = s.Add(dirstore.Stored{ID: id, Eventlog: log, Jobspec: spec})
//	err = s.Append(id, lines)
//	failed, err := s.Unlink(ctx, ids)
//
// # Layout
//
// RFC 16 names the files of a job.
//
//	lock                                  locked while the store is open; has the job that was changed last
//	ballast-1 to ballast-4                room for a purge on a full disk
//	job.0017.e9fb.8df1.6c2e/eventlog      a log, as eventlog/logfile keeps it
//	job.0017.e9fb.8df1.6c2e/jobspec
//	job.0017.e9fb.8df1.6c2e/R             replaced whole
//	job.0017.e9fb.8df1.6c2e/crc32c        check digits of these three
//	new/job.0017.e9fb.8df1.6c2f/          a job that is being added
//	trash/job.0017.e9fb.8df1.6c2d/        a job that is being removed
//
// # Promises
//
//   - A job is stored whole or not at all, also after a crash.
//   - If a call returned nil, its change survives a crash, and so does what was read. A power
//     cut amid Append can leave a torn line, or a hole where a file system orders nothing: then
//     the job is damaged, behind what is durable.
//   - A damaged job does not hide the others, nor a damaged file the others of its
//     job; and a job that cannot be removed does not stop the others.
//   - The store removes only files that it made, and follows no symbolic link.
//   - A store on a full disk can be opened and purged.
//
// # Check digits
//
// [Store.Read], [Store.Jobs] and [Store.Append] return [ErrDamaged] if the check digits
// (CRC-32C) of a file do not match. Repair the file, or remove crc32c to accept what is
// there. Without crc32c nothing is checked until the job is written again.
//
// # Ownership, cost and limits
//
// One goroutine at a time may use a Store. Opening the same directory again returns
// [logfile.ErrLocked] until the first Store is closed or its process ends.
//
// Adding a job takes four or five fsyncs, replacing its R two or three, unlinking a batch
// one, opening the store one or three. On Windows a crash of the machine may undo the last
// renames.
//
// [boltstore]: https://pkg.go.dev/github.com/joblife/joblife/purge/boltstore
package dirstore
