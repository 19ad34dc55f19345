// Package archive reads the jobs out of the dump archives that a Flux instance
// writes (flux dump). One bad job does not keep the others from being read.
//
//	a, err := archive.Read(file, archive.Limits{})
//	for _, j := range a.Jobs {
//		load(j.ID, j.Eventlog, j.Jobspec, j.R)
//	}
//	for _, f := range a.Failures {
//		fmt.Println(f) // archive: "job/0000/0001/ce00/0000": no jobspec
//	}
//	if err != nil {
//		return err // what came before the damage was loaded
//	}
//
// Duties of the caller:
//
//  1. Give out no id up to [Archive.MaxID] after loading an archive (I9).
//  2. Read Failures even if there is no error: each job of the archive is either in
//     Jobs or in Failures.
//
// # Vocabulary
//
// An archive is a tree of keys, the key-value store of the instance. A key is the
// path of a value in it, and of a file in the archive. The keys of a job are under
// job/ and its id: job/0000/0001/ce00/0000/eventlog. Read keeps eventlog, jobspec,
// R and guest/exec/eventlog of a job and skips the rest, its input and output
// included. [Archive.Key] has the other keys, such as resource/R and
// checkpoint/job-manager. A failure is about one job or key; an error is about the
// archive, and ends it.
//
// # Ownership
//
// An Archive shares nothing with its reader. Any number of goroutines may read it
// if none changes its fields. The same bytes give the same Archive, whatever the
// order of the jobs' keys and the sizes of the reads (I7).
//
// # Cost and limits
//
// Read holds the keys of all jobs in memory, since the keys of a job need not be
// together. What it skips is not held. [Limits] bounds the bytes that are read
// uncompressed, so that a small file cannot unpack forever; the bytes that are
// held; the bytes of one key; and the number of jobs, failures and other keys.
//
// RFC 16: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_16.html
package archive
