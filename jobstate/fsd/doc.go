// Package fsd reads and prints durations as RFC 23, Flux Standard Duration,
// writes them: "30s", "1.5h", "infinity".
//
// # What it is
//
// [Parse] reads the text that users write into configuration and options, such as
// a job's time limit, a grace period or an age limit. [Duration] holds seconds
// as a float64, which is what Flux stores and sends, and unlike
// time.Duration it can be infinite. [Duration.String] and the text methods print
// so that reading gives the same duration back; [Duration.Format] rounds, for people.
//
// RFC 23: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_23.html
//
// # Vocabulary
//
// A text is a number and a unit: ms, s, m, h or d for milliseconds, seconds, minutes,
// hours or days of 86400 seconds, in lower case. No unit means seconds. "infinity" and
// "inf" are a duration that never ends, and have no unit.
//
// A duration is valid if it is 0 or more, infinite included; a negative number and
// NaN are not durations.
//
// # Invariants
//
//   - What Parse returns without an error is valid, and is never -0.
//   - Text is canonical: equal durations give equal bytes, and Parse of the text is
//     the same duration, to the bit.
//   - A number too great for a float64 is an error; only the words make an infinity.
//   - After an error the receiver is as before (I6).
//
// # Concurrency and ownership
//
// A Duration is a value. No function keeps what it is given, and no error refers
// to its input.
//
// # Cost and limits
//
// Reading takes time linear in the text and does not allocate but for an error.
// Printing takes constant time, and does not allocate into a slice with room.
//
// # Where it differs from the reference
//
// Refused here, let in by flux-core: a text without digits ("", "s", "d" are 0 there),
// hexadecimal numbers, of which "0x1d" would be 29 seconds and not a day, and numbers too
// great for a float64, which are infinity there. Printed differently: -0
// is "0s" and not "-0s", and the negative infinity is no duration.
//
// As in the reference, white space and a plus may stand before the number, and
// nothing may follow the unit.
package fsd
