package fsd_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/stretchr/testify/require"
)

// seconds is a number of a vector: JSON's, or "inf", "-inf", "nan".
type seconds float64

func (s *seconds) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"inf"`:
		*s = seconds(math.Inf(1))
	case `"-inf"`:
		*s = seconds(math.Inf(-1))
	case `"nan"`:
		*s = seconds(math.NaN())
	default:
		return json.Unmarshal(b, (*float64)(s))
	}
	return nil
}

func TestParseAgreesWithTheReference(t *testing.T) {
	type line struct {
		In      *string `json:"in"`
		OK      bool    `json:"ok"`
		Seconds seconds `json:"seconds"`
	}
	lines := refdata.Lines[line](t, "vectors/fsd.jsonl.gz", 575)
	differences := refdata.ExpectDifferences(t, map[string]int{
		"a text without digits is refused":                    noDigits,
		"hexadecimal numbers are refused":                     hexadecimals,
		"a number too great is refused, not read as infinity": tooGreat,
	})
	agreed := 0
	for _, l := range lines {
		require.NotNil(t, l.In, "all lines are text")
		got, err := fsd.ParseSeconds(*l.In)
		switch {
		case l.OK && err == nil:
			// Equal, not the same bits: -0 is 0 here.
			require.True(t, float64(l.Seconds) == got, "%q: %g, want %g", *l.In, got, l.Seconds)
			checkNear(t, got, parse(t, *l.In))
			checkText(t, parse(t, *l.In))
			agreed++
		case !l.OK && err != nil:
			agreed++
		default:
			differences.Note(whyDifferent(*l.In, err))
		}
	}
	require.Equal(t, 575-noDigits-hexadecimals-tooGreat, agreed)
}

const (
	noDigits     = 6
	hexadecimals = 64
	tooGreat     = 4
)

// whyDifferent names the reason for which the reference differs on a text, given
// our error or nil. It looks at the text by means other than Parse's.
func whyDifferent(in string, err error) string {
	switch {
	case strings.Contains(err.Error(), syntaxError) && !strings.ContainsAny(in, "0123456789"):
		return "a text without digits is refused"
	case strings.Contains(err.Error(), syntaxError) && strings.HasPrefix(strings.ToLower(in), "0x"):
		return "hexadecimal numbers are refused"
	case strings.Contains(err.Error(), outOfRange) && !strings.HasPrefix(in, "-"):
		return "a number too great is refused, not read as infinity"
	}
	return "unknown: " + in
}

func TestFormatAgreesWithTheReference(t *testing.T) {
	type line struct {
		Seconds seconds `json:"seconds"`
		Prec    *int    `json:"prec"`
		Out     *string `json:"out"`
	}
	lines := refdata.Lines[line](t, "vectors/fsd_format.jsonl.gz", 327)
	differences := refdata.ExpectDifferences(t, map[string]int{
		"-0 is not printed":                 1,
		"negative infinity is not infinity": 2,
	})
	told := 0
	for _, l := range lines {
		digits := 6
		if l.Prec != nil {
			digits = *l.Prec
		}
		switch s := float64(l.Seconds); {
		case l.Out == nil:
			require.True(t, s < 0 || s != s, "%g", s)
		case s == 0 && math.Signbit(s):
			differences.Note("-0 is not printed")
		case math.IsInf(s, -1):
			differences.Note("negative infinity is not infinity")
		default:
			require.Equal(t, *l.Out, string(fsd.AppendFormat(nil, s, digits)), "%g with %d digits", s, digits)
			if d := time.Duration(s * 1e9); s < 1e9 && d.Seconds() == s { // whole nanoseconds
				require.Equal(t, *l.Out, of(d).Format(digits))
				told++
			}
		}
	}
	require.Equal(t, 125, told)
}
