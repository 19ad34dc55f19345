// Package jobid reads, prints and makes the job ids of RFC 19, FLUID: 64 bits that are
// unique within an instance and ordered by time.
//
//	g, err := jobid.NewGenerator(0, epoch) // 1
//	g.After(watermark) // 2
//	id, err := g.Next(now) // no id left in this millisecond: try again in the next
//	fmt.Println(id, id.KVSPath()) // ƒuZZybuNNy job.0017.e9fb.8df1.6c2e
//	same, err := jobid.Parse("fuZZybuNNy")
//
// The caller's duties:
//
//  1. Give each generator of an instance its own id, and all of them one epoch.
//  2. Store [Generator.Last], the watermark, durably before you remove the record that
//     proves an id used. After a restart pass it to [Generator.After].
//
// An id has three fields: 40 bits of milliseconds since the epoch, 14 bits of the
// generator's id, and 10 bits that count the ids of a millisecond. So the ids of one
// generator are in the order of the calls; across generators the order holds to the
// millisecond. A generator makes 1024 ids in a millisecond, for nearly 35 years.
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
// One goroutine at a time may use a Generator. Reading and appending do not allocate.
//
// # Differences from flux-core
//
// Parse refuses words and emoji, base 58 beyond 2^64 (there it wraps to another job's id),
// signs, 0x and white space in dotted hexadecimals, and white space after "job.". It accepts
// white space after dotted hexadecimals and base 58, as RFC 19 does.
package jobid
