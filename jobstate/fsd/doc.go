// Package fsd reads and prints durations in the text form of RFC 23, Flux
// Standard Duration: "30s", "1.5h", "infinity". Users write this form in
// configuration files and options. A [Duration] is a time.Duration with that
// text.
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
// In a configuration, zero means that a limit is not set. "infinity" is
// [Forever]: there is no limit. A negative number is an error.
//
// # Vocabulary
//
// A text is a number and a unit: ms, s, m, h or d for milliseconds, seconds,
// minutes, hours or days of 86400 seconds, in lower case. No unit means seconds.
// "infinity" and "inf", in either case, have no unit.
//
// # Ownership, cost and limits
//
// Functions retain no argument. Reading takes time linear in the text and
// allocates only for an error. A number beyond float64 is an error; a duration longer
// than Forever, 292 years, is Forever.
//
// # Differences from flux-core
//
// Parse refuses what flux-core accepts: a text without digits ("", "s" and "d"
// are 0 there), hexadecimal numbers ("0x1d" is 29 seconds there, not a day), and
// numbers too large for a float64 (infinity there). A Duration has whole
// nanoseconds up to 292 years; in flux-core it is a float64 of seconds.
//
// As in flux-core, white space and a plus may come before the number, and
// nothing may follow the unit.
//
// RFC 23: https://flux-framework.readthedocs.io/projects/flux-rfc/en/latest/spec_23.html
package fsd
