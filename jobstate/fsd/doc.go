// Package fsd reads and prints durations in the text form of RFC 23, Flux Standard
// Duration: "30s", "1.5h", "infinity". A [Duration] is a time.Duration with that text.
//
//	var config struct {
//		Limit fsd.Duration `json:"limit"`
//	}
//	err := json.Unmarshal(text, &config) // fsd: syntax error: offset 1: …
//	if config.Limit != 0 && config.Limit != fsd.Forever {
//		timer.Reset(time.Duration(config.Limit))
//	}
//	fmt.Println(config.Limit) // 1.5h
//
// A text is a number, which may have white space and a plus before it, and a unit: ms, s, m, h or
// d, in lower case. No unit means seconds; a day has 86400. "infinity" and "inf", in either case,
// are [Forever], and so is what is longer, 292 years. A number that is negative or beyond float64
// is an error. In a configuration, zero means that a limit is not set.
//
// Reading takes time linear in the text and allocates only for an error.
//
// # Differences from flux-core
//
// Parse refuses what flux-core accepts: a text without digits ("", "s" and "d" are 0
// there), hexadecimal numbers ("0x1d" is 29 seconds there, not a day), and numbers too
// large for a float64 (infinity there). A Duration has whole nanoseconds up to 292 years;
// in flux-core it is a float64 of seconds.
package fsd
