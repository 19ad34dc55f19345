// Package fsd reads and prints durations as RFC 23, Flux Standard Duration,
// writes them: "30s", "1.5h", "infinity". It is the text that users write into
// configuration and options. A [Duration] is a time.Duration with that text.
//
//	var config struct {
//		Limit fsd.Duration `json:"limit"`
//	}
//	if err := json.Unmarshal(text, &config); err != nil {
//		return err // fsd: syntax error: offset 1: …
//	}
//	if config.Limit != 0 && config.Limit != fsd.Forever {
//		timer.Reset(time.Duration(config.Limit))
//	}
//	fmt.Println(config.Limit) // 1.5h
//
// In a configuration, zero is a limit that is not set. "infinity" is [Forever],
// which says that there is no limit. A negative number is an error.
//
// # Vocabulary
//
// A text is a number and a unit: ms, s, m, h or d for milliseconds, seconds,
// minutes, hours or days of 86400 seconds, in lower case. No unit means seconds.
// "infinity" and "inf", in either case, have no unit.
//
// # Ownership, cost and limits
//
// Functions keep nothing of what they are given. Reading takes time linear in the
// text and allocates only for an error. A number beyond float64 is [ErrRange]; a
// duration longer than Forever, 292 years, is Forever.
//
// # Differences from the reference
//
// Refused here, accepted by flux-core: a text without digits ("", "s" and "d" are
// 0 there), hexadecimal numbers, of which "0x1d" would be 29 seconds and not a
// day, and numbers too large for a float64, which are infinity there. A Duration
// holds whole nanoseconds up to 292 years, a float64 of seconds there.
//
// As in the reference, white space and a plus may come before the number, and
// nothing may follow the unit.
//
// RFC 23: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_23.html
package fsd
