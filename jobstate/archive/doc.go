// Package archive reads jobs from the dump archives that a Flux instance writes (flux
// dump, RFC 16). A damaged job does not prevent reading the others.
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
// The caller's duties:
//
//  1. After loading an archive, give out only ids above [Archive.MaxID] (I9).
//  2. Read Failures even if there is no error: each job of the archive is in Jobs or in
//     Failures.
//
// A failure concerns one job or key. An error concerns the archive, and ends reading.
//
// [Read] keeps eventlog, jobspec, R and guest/exec/eventlog of each job, and skips what
// else is below job/ and its id. [Archive.Key] returns keys that are not a job's, such as
// resource/R. The same bytes give the same Archive, whatever the order of the keys and the
// sizes of the reads (I7). Any number of goroutines may read an Archive that none changes.
//
// # Cost and limits
//
// Read has what it keeps of all jobs in memory, since the keys of a job need not be
// adjacent. [Walk] has one job at a time, for archives whose jobs have adjacent keys, as
// Flux writes them. [Limits] bounds the bytes read, unpacked and kept, each key, and
// how many jobs, failures and other keys there are.
package archive
