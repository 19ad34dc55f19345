// Package eventlog reads and writes event logs as RFC 18 of Flux defines them:
// one event on each line, a JSON object with a timestamp, a name and perhaps a
// context. An entry that a Flux instance wrote is written again with the same
// bytes.
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
// size from a reader. All of them validate: every entry that they return is
// valid.
//
// Duties of the caller:
//
//  1. To keep an entry, call [Entry.Clone]: entries alias their input, and an
//     entry of a Decoder is valid until the next step.
//  2. Do not append to a torn log before you repair it: cut it at the offset of
//     the error, which wraps [ErrTorn].
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
// name that is not in RFC 21 needs one allocation, unless it occurred shortly
// before. A line has at most 1 MiB and 2048 levels, unless [DecoderOptions] say
// otherwise; the error is [ErrLimit]. A Decoder uses 64 KiB, or twice the longest
// line if that is more.
//
// # Differences from flux-core
//
//   - Text after the last newline is [ErrTorn]. flux-core drops it silently, and an
//     append would join the next event to it.
//   - A key that appears twice is refused, in the context too.
//   - A timestamp is greater than zero, as RFC 18 says. Any order is legal.
//   - A name is not empty and has no U+0000, where C code would cut the name.
//   - A carriage return before the newline is refused.
//
// RFC 18 names three keys. Other keys are kept and written again, as in
// flux-core; with DecoderOptions.StrictKeys they are refused.
//
// RFC 18: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_18.html
package eventlog
