// Package eventlog reads and writes event logs as RFC 18 of Flux defines them:
// one event a line, each a JSON object with a timestamp, a name and perhaps a
// context. What a Flux instance wrote is written again with the same bytes.
//
//	for e, err := range eventlog.Entries(log) {
//		if err != nil {
//			return err // eventlog: line 3: offset 40: duplicate key "name"
//		}
//		fmt.Println(e.Timestamp.Time(), e.Name, string(e.Context))
//	}
//	log, err = eventlog.AppendEntry(log, eventlog.Entry{
//		Timestamp: eventlog.FromTime(now), Name: "start",
//	})
//
// [Parse] reads one line, [Entries] a log in memory, a [Decoder] a log of any
// size from a reader. Reading validates: an entry that comes out is valid.
//
// Duties of the caller:
//
//  1. Keep an entry with [Entry.Clone]: entries alias their input, and an entry
//     of a Decoder is valid until the next step.
//  2. Do not append to a torn log before it is repaired: cut it at the offset
//     that [ErrTorn] comes with.
//
// # Vocabulary
//
// A log is torn if text follows its last newline: a write did not finish. Nearly
// all lines have the usual form: timestamp, name and perhaps context, in this order,
// without white space between them. Unusual lines are legal too.
//
// # Ownership
//
// Entries alias their input; their names do not. Errors alias nothing. A
// Decoder, and an iterator while it runs, belong to one goroutine.
//
// # Cost and limits
//
// A line of the usual form is read and written in one pass, without an allocation. A
// name that RFC 21 does not know costs one, unless the log had it lately. A line has
// at most 1 MiB and 2048 levels, unless [DecoderOptions] say otherwise; the error is
// [ErrLimit]. A Decoder keeps 64 KiB, or twice the longest line if that is more.
//
// # Differences from the reference
//
//   - Text after the last newline is [ErrTorn]. The reference drops it silently, and
//     an append would glue the next event onto it.
//   - A key that appears twice is refused, in the context too.
//   - A timestamp is greater than zero, as RFC 18 says. Any order is legal.
//   - A name is not empty and holds no U+0000: C code would read another name.
//   - A carriage return before the newline is refused.
//
// RFC 18 names three keys. Others are kept and written again, as the reference
// does; DecoderOptions.StrictKeys refuses them.
//
// RFC 18: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_18.html
package eventlog
