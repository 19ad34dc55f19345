// Package eventlog reads and writes event logs as RFC 18 of Flux defines them:
// one event a line, each a JSON object with a timestamp, a name and perhaps a
// context.
//
// # What it is
//
// [Parse] reads one line, [Entries] a whole log in memory, a [Decoder] a log of
// any size from a reader, and [AppendEntry] writes a line. What a Flux instance
// wrote comes out of AppendEntry with the same bytes. Reading validates: no
// half-valid entry leaves this package, and errors tell line and byte.
//
// https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_18.html
//
// # Vocabulary
//
// A log is the bytes of one or more events; an entry is one of them decoded, a
// line its text up to the newline. A log is torn if text follows its last
// newline: a write did not finish. The usual form of a line is what every writer
// puts: timestamp, name and perhaps context, in this order and without white
// space between them. Other lines are unusual, and as legal.
//
// Where the reference implementation and this package differ, and why:
//
//   - Text after the last newline is [ErrTorn], where the reference drops it in
//     silence; an append would then glue the next event onto it.
//   - A key that occurs twice is refused, in the context too: readers differ on
//     which one counts.
//   - A timestamp is greater than zero, as RFC 18 has it. Any order is legal.
//   - A name is not empty, and holds no U+0000: C code would read another name.
//   - A carriage return before the newline is refused. RFC 18 ends lines with a
//     newline, so the log went through a program that rewrites text.
//   - Parse does not need the newline.
//
// Beside those, both accept the same lines: among what both refuse are empty
// lines, a byte order mark, text that is not UTF-8, NUL bytes, integers beyond
// an int64 and numbers that are not finite, and values more than 2048 deep. An empty
// log is accepted by both; RFC 18 has none created, but logs were truncated.
//
// RFC 18 names three keys and does not say whether others may occur. They are
// kept: an Entry remembers them and AppendEntry writes them again, as the
// reference does, so that a log passes unharmed through an older program.
// DecoderOptions.StrictKeys refuses them.
//
// # Invariants
//
//   - E1: a log in the usual form, with numbers as Flux prints them, is written
//     again with the same bytes; any other line that was read is written so that
//     it means the same, and writing what that reads as changes nothing more.
//   - E2: AppendEntry writes what Parse reads; whatever it can not write so, it
//     refuses and leaves dst as it was.
//   - E3: a Decoder hands out what Entries does, however its reader cuts the
//     log.
//   - E4: for every prefix of a log, the complete entries come out, and ErrTorn
//     follows if and only if the prefix does not end with a newline and is not
//     empty.
//
// # Concurrency and ownership
//
// Entries alias the log that they were read from, but for their names, which are
// strings of their own; those of a Decoder are valid until its next step.
// Entry.Clone keeps one. Errors alias nothing. A Decoder, and an iterator while it
// runs, belong to one goroutine; everything else holds no state.
//
// # Cost and limits
//
// Reading an entry in the usual form and writing it allocate nothing, and cost
// one pass over the line. An iterator remembers the last names that are not of
// RFC 21, at most 32 of at most 64 bytes; other unknown names, and all unknown
// ones in Parse, cost a string each. Allocations come with an error, with
// numbers of more than 32 bytes, and with contexts of many keys or levels (see
// internal/jsonscan), in proportion to the line.
//
// A line has at most 1 MiB and 2048 levels, unless [DecoderOptions] say
// otherwise; beyond is [ErrLimit]. A Decoder holds one line and 64 KiB or twice
// the line, whichever is more.
package eventlog
