// Package jobid reads, prints and makes the job ids of RFC 19, FLUID: 64 bits
// that are unique within an instance and ordered by time. It reads no clock: the
// caller passes the time, so that the same calls give the same ids.
//
//	g, err := jobid.NewGenerator(0, epoch)
//	if err != nil {
//		return err
//	}
//	g.After(watermark) // what was stored before the restart
//	id, err := g.Next(now)
//	if err != nil {
//		return err // jobid.ErrExhausted: try again in the next millisecond
//	}
//	fmt.Println(id, id.KVSPath()) // ƒuZZybuNNy job.0017.e9fb.8df1.6c2e
//	same, err := jobid.Parse("fuZZybuNNy")
//
// Duties of the caller:
//
//  1. Give each generator of an instance its own id, and all of them one epoch.
//  2. Store [Generator.Last], the watermark, durably before you remove the record
//     that proves an id used. After a restart pass it to [Generator.After]. Then no
//     id comes back (I9).
//
// # Vocabulary
//
// An id has three fields. The timestamp (40 bits) counts milliseconds from the
// epoch, a moment that the instance chooses. The generator id (14 bits)
// distinguishes generators. The sequence (10 bits) counts the ids that a
// generator makes within a millisecond. So one generator's ids are in the order
// of the calls; across generators the order holds to the millisecond.
//
// The forms of one id:
//
//	ƒuZZybuNNy               FormatF58       the main form
//	fuZZybuNNy               FormatF58Plain  the same in ASCII
//	6731191091817518         FormatDec       a number, the form inside JSON
//	0x17e9fb8df16c2e         FormatHex
//	0017.e9fb.8df1.6c2e      FormatDotHex
//	job.0017.e9fb.8df1.6c2e  KVSPath         where an instance stores the job
//
// # Ownership, cost and limits
//
// An ID is a value. One goroutine at a time may use a Generator. Reading and
// appending take time linear in the text and do not allocate. A generator makes
// 1024 ids in a millisecond, for 2^40 milliseconds, nearly 35 years.
//
// # Differences from flux-core
//
// Parse refuses the forms words and emoji. It also
// refuses what flux-core accepts: base 58 text beyond 2^64 (there it wraps to
// another job's id), signs, white space and 0x inside dotted hexadecimals, a
// sign before a decimal, white space after "job.". It accepts what RFC 19
// allows and flux-core refuses: white space after dotted hexadecimals and base
// 58.
//
// RFC 19: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_19.html
package jobid
