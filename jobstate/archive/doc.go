// Package archive reads jobs from the dump archives that a Flux instance writes (flux
// dump, RFC 16). A damaged job does not prevent reading the others.
//
//	a, err := archive.Walk(file, archive.Limits{}, func(j archive.Job) error {
//		return load(j.ID, j.Eventlog, j.Jobspec, j.R)
//	})
//	for _, f := range a.Failures {
//		fmt.Println(f) // archive: job ƒCowHCK: "job/0000/0001/ce00/0000": no jobspec
//	}
//	return err // the jobs before the damage were loaded
//
// The caller's duties:
//
//  1. After loading an archive, give out only ids above [Archive.MaxID].
//  2. Read Failures even if there is no error: each job of the archive was given or is in
//     Failures. One that was given may be there too, if its keys are not together.
//
// A failure concerns one job or key. An error concerns the archive, and ends reading.
//
// [Walk] gives eventlog, jobspec, R and guest/exec/eventlog of each job. It skips what
// else is below job/ and its id, and all other keys but the job manager's checkpoint. The
// same bytes give the same jobs and failures, whatever the sizes of the reads.
//
// # Cost and limits
//
// Walk has one job at a time in memory, and the ids of those before. [Limits] bounds the
// bytes read, unpacked and kept, each key, and how many jobs and failures there are.
package archive
