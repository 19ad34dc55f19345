package hostlist_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/rset/hostlist"
)

// plainParse is the parser that one would write first, for texts without an error: it
// makes a slice of names.
func plainParse(text string) []string {
	var names []string
	for text != "" {
		end := strings.IndexAny(text, ",[")
		if end < 0 {
			return append(names, text)
		}
		prefix := text[:end]
		if text[end] == ',' {
			names, text = append(names, prefix), text[end+1:]
			continue
		}
		ids, rest, _ := strings.Cut(text[end+1:], "]")
		suffix, rest, _ := strings.Cut(rest, ",")
		for _, part := range strings.Split(ids, ",") {
			low, high, isRange := strings.Cut(part, "-")
			if !isRange {
				high = low
			}
			first, _ := strconv.Atoi(low)
			last, _ := strconv.Atoi(high)
			for id := first; id <= last; id++ {
				digits := strconv.Itoa(id)
				names = append(names, prefix+strings.Repeat("0", max(0, len(low)-len(digits)))+digits+suffix)
			}
		}
		text = rest
	}
	return names
}

// BenchmarkRatio parses in turns with the plain version, and reports how many times
// faster this package is: the shortest turn of either, for on a busy host the others
// measure what else runs there.
func BenchmarkRatio(b *testing.B) {
	for _, c := range benchTexts {
		b.Run(c.name, func(b *testing.B) {
			best := [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				for i, f := range []func(){
					func() { _, _ = hostlist.Parse(c.text) },
					func() { plainParse(c.text) },
				} {
					before := b.Elapsed()
					f()
					best[i] = min(best[i], b.Elapsed()-before)
				}
			}
			b.ReportMetric(float64(best[1])/float64(best[0]), "times-plain")
			b.ReportMetric(float64(best[0])/1000, "µs")
		})
	}
}

func TestTheTextsMeasuredMeanWhatThePlainVersionReads(t *testing.T) {
	for _, c := range benchTexts {
		var names []string
		for name := range parse(t, c.text).All() {
			names = append(names, name)
		}
		require.True(t, slices.Equal(plainParse(c.text), names), c.name)
	}
}
