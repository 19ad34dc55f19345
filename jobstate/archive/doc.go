// Package archive reads jobs from the dump archives that a Flux instance writes
// (flux dump). A damaged job does not prevent reading the others.
//
//	a, err := archive.Read(file, archive.Limits{})
//	for _, j := range a.Jobs {
//		load(j.ID, j.Eventlog, j.Jobspec, j.R)
//	}
//	for _, f := range a.Failures {
//		fmt.Println(f) // archive: "job/0000/0001/ce00/0000": no jobspec
//	}
//	if err != nil {
//		return err // the jobs before the damage were loaded
//	}
//
// Duties of the caller:
//
//  1. After loading an archive, give out only ids above [Archive.MaxID] (I9).
//  2. Read Failures even if there is no error: each job of the archive is either in
//     Jobs or in Failures.
//
// # Vocabulary
//
// An archive has the keys of the instance's key-value store. A key is the path of
// a value in the store, and of a file in the archive. The keys of a job are under
// job/ and its id: job/0000/0001/ce00/0000/eventlog. [Read] keeps eventlog,
// jobspec, R and guest/exec/eventlog of a job and skips its other keys, such as
// input and output. [Archive.Key] returns keys that are not a job's, such as
// resource/R and checkpoint/job-manager. A failure concerns one job or key; an
// error concerns the archive, and ends reading.
//
// # Ownership
//
// An Archive shares nothing with its reader. Any number of goroutines may read it
// if none changes its fields. The same bytes give the same Archive, whatever the
// order of the jobs' keys and the sizes of the reads (I7).
//
// # Cost and limits
//
// Read keeps the keys of all jobs in memory, since the keys of a job need not be
// adjacent. It does not keep what it skips. [Walk] keeps one job at a time, for
// archives of which the keys of a job are adjacent, as Flux writes them: it goes
// through its store by folders, each sorted by name. [Limits] bounds the uncompressed
// bytes read, so that a small file cannot unpack forever; the bytes kept; the
// bytes of one key; and the number of jobs, failures and other keys.
//
// RFC 16: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_16.html
package archive
