// Package eventlog reads and writes event logs (RFC 18): one event on each line, a JSON
// object. An entry that Flux wrote is written again with the same bytes.
//
//	for e, err := range eventlog.Entries(log) {
//		if err != nil {
//			return err // eventlog: line 3: offset 40: duplicate key "name"
//		}
//		fmt.Println(e.Timestamp.Time(), e.Name, string(e.Context)) // 1
//	}
//	log, err = eventlog.AppendEntry(log, eventlog.Entry{ // 2
//		Timestamp: eventlog.FromTime(now), Name: "start",
//	})
//
// [Parse] reads one line, a [Decoder] a log of any size. The caller's duties:
//
//  1. To keep an entry, call [Entry.Clone]: entries alias their input, and an entry of a
//     Decoder is valid until the next step.
//  2. Do not append to a torn log, in which text follows the last newline. Cut it first,
//     at the offset of the error that wraps [ErrTorn].
//
// One goroutine at a time may use a Decoder, or an iterator while it runs.
//
// # Cost and limits
//
// A line as Flux writes it costs one pass, and no allocation if its name is in RFC 21.
// [DecoderOptions] has the limits; beyond them the error is [ErrLimit]. A Decoder uses
// 64 KiB, or twice the longest line.
//
// # Differences from flux-core
//
//   - Text after the last newline is [ErrTorn]. flux-core drops it silently, and an
//     append would join the next event to it.
//   - A key that appears twice is refused, in the context too. StrictKeys also refuses
//     keys that RFC 18 does not name; by default they are kept, as in flux-core.
//   - Refused are a timestamp that is not positive, a name that is empty or has U+0000,
//     and a carriage return before the newline.
package eventlog
