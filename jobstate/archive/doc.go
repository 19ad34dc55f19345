// Package archive reads the jobs out of the dump archives that a Flux instance
// writes (flux dump).
//
// # What it is
//
// [Read] takes a tar archive from an io.Reader, plain or compressed with bzip2
// or gzip whatever its name says, and gives an [Archive]: the jobs, with their
// eventlogs, jobspecs and resource sets as bytes, and what could not be read, one
// typed [Failure] for each job. One bad job never keeps the others from being
// read.
//
// The archive is a tree of keys, the key-value store of the instance: a job's
// are under job/ and its id in dotted hexadecimals, as a path:
// job/0000/0001/ce00/0000/eventlog. RFC 16 says which there are; of a job's,
// this package holds eventlog, jobspec, R and guest/exec/eventlog and skips the
// others, the job's input and output among them. The keys that are no job's,
// resource/R or checkpoint/job-manager, are had from [Archive.Key].
//
// RFC 16: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_16.html
//
// # Vocabulary
//
// A key is the path of a value in the store, and of a file in the archive. A
// failure is about one job or one key; an error is about the archive, and ends
// it.
//
// # Invariants
//
//   - Every job id of the archive is in Jobs once, or in Failures once; MaxID is
//     at least each of them (I9).
//   - A truncated or damaged archive gives the jobs before that point, and the
//     error. The job in which it happened is a failure.
//   - The same bytes give the same Archive, however the keys of the jobs are
//     ordered and however the reader cuts them (I7).
//
// # Concurrency and ownership
//
// An Archive shares nothing with its reader. Any number of goroutines may read
// it while none changes the fields. Errors refer to no value of the archive.
//
// # Cost and limits
//
// Read holds the keys of all jobs in memory until the end, since nothing says
// that the keys of a job stand together; what it skips is not held.
// [Limits] bounds the bytes that are read uncompressed, so that a small file can
// not unpack for ever; the bytes that are held; the bytes of one key; and the
// number of jobs, failures and other keys.
package archive
