// Package jobid reads, prints and makes the job ids of RFC 19, FLUID:
// 64 bits that are unique within an instance and ordered by time.
//
// # What it is
//
// [Parse] reads an id in any form that a person or a peer may write, [ID.String]
// and [ID.AppendFormat] print it, and a [Generator] makes new ones. Nothing
// here reads a clock: the caller passes the time, so that the same calls give
// the same ids.
//
// The forms, all of one id:
//
//	ƒuZZybuNNy               F58       the main form: a prefix and base 58 digits
//	fuZZybuNNy               F58Plain  the same in ASCII
//	6731191091817518         Dec       the form inside JSON, there a number
//	0x17e9fb8df16c2e         Hex
//	0017.e9fb.8df1.6c2e      DotHex    a key's last part
//	job.0017.e9fb.8df1.6c2e  KVS       the key that a Flux instance stores the job under
//
// The forms words and emoji of the RFC are recognised and refused with
// [ErrUnsupported].
//
// RFC 19: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_19.html
//
// # Vocabulary
//
// An id has three fields. The timestamp (40 bits) counts milliseconds from the
// epoch, a moment that each instance chooses. The generator id (14 bits) tells
// apart those who make ids at the same time without talking to each other. The
// sequence (10 bits) tells apart what one generator makes within a millisecond.
//
// The watermark is the greatest id that was ever handed out. Who stores it and
// gives it to [Generator.After] at a restart never sees an id twice.
//
// # Invariants
//
//   - Every id prints in every form, and Parse of that is the id again.
//   - F58, Dec, Hex, DotHex and KVS text as AppendFormat writes it is unique: equal
//     ids give equal bytes.
//   - A generator's ids grow strictly, also past its watermark. Two generators
//     with different ids never make the same id. Across generators the order of
//     ids is the order of making only to the millisecond.
//   - After an error the generator is as before (I6), and no id that it was told
//     about comes back (I9).
//
// # Concurrency and ownership
//
// An ID is a value. One goroutine at a time uses a Generator; a copy of a
// Generator would make the same ids once more, so copies are vetted against.
// No function keeps what it is given, and no error refers to its input.
//
// # Cost and limits
//
// Reading and printing take time linear in the text and do not allocate: only
// String, Format, KVSPath and the Marshal methods return memory of their own,
// and errors do. A generator makes 1024 ids in a millisecond for 2^40
// milliseconds, nearly 35 years, and never waits: what is beyond is [ErrExhausted]
// or [ErrRange].
//
// # Where it differs from the reference
//
// Refused here, let in by flux-core: base 58 text beyond 2^64 (there it wraps to
// some other job's id), signs, white space and 0x inside dotted hexadecimals, a sign
// before a decimal, white space after "job.", and the forms words and emoji.
// Accepted here, since RFC 19 says to ignore white space on both sides, refused
// there: trailing white space after dotted hexadecimals and base 58.
package jobid
