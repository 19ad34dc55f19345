package jobid_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/stretchr/testify/require"
)

func TestEveryEncodingIsTheReferences(t *testing.T) {
	type line struct {
		ID        string `json:"id"`
		F58       string `json:"f58"`
		F58Plain  string `json:"f58plain"`
		Hex       string `json:"hex"`
		DotHex    string `json:"dothex"`
		KVS       string `json:"kvs"`
		Words     string `json:"words"`
		Emoji     string `json:"emoji"`
		Timestamp uint64 `json:"timestamp"`
	}
	lines := refdata.Lines[line](t, "vectors/fluid.jsonl.gz", 430)
	differences := refdata.ExpectDifferences(t, map[string]int{
		"words are not supported": len(lines),
		"emoji are not supported": len(lines),
	})
	for _, l := range lines {
		n, err := strconv.ParseUint(l.ID, 10, 64)
		require.NoError(t, err)
		id := jobid.ID(n)
		require.Equal(t, l.Timestamp, id.Timestamp(), l.ID)
		for f, text := range map[jobid.Format]string{
			jobid.FormatDec: l.ID, jobid.FormatF58: l.F58, jobid.FormatF58Plain: l.F58Plain,
			jobid.FormatHex: l.Hex, jobid.FormatDotHex: l.DotHex, jobid.FormatKVS: l.KVS,
		} {
			require.Equal(t, text, id.Format(f), "%s as %v", l.ID, f)
			require.Equal(t, id, parse(t, text), text)
		}
		if _, err := jobid.Parse(l.Words); strings.Contains(fmt.Sprint(err), unsupported) {
			differences.Note("words are not supported")
		}
		if _, err := jobid.Parse(l.Emoji); strings.Contains(fmt.Sprint(err), unsupported) {
			differences.Note("emoji are not supported")
		}
	}
}

func TestParseAgreesWithTheReference(t *testing.T) {
	type line struct {
		In    string `json:"in"`
		InHex string `json:"in_hex"`
		OK    bool   `json:"ok"`
		ID    string `json:"id"`
		Errno string `json:"errno"`
	}
	lines := refdata.Lines[line](t, "vectors/fluid_parse.jsonl.gz", 1358)
	differences := refdata.ExpectDifferences(t, map[string]int{
		"words are not supported":                         153,
		"emoji are not supported":                         145,
		"base 58 beyond 64 bits is refused, not wrapped":  7,
		"trailing white space is ignored, as RFC 19 says": 15,
		"white space after job. is refused":               3,
		"a sign inside dothex is refused":                 2,
		"white space inside dothex is refused":            1,
		"0x inside dothex is refused":                     2,
		"a sign before a decimal is refused":              1,
	})
	for _, l := range lines {
		require.Empty(t, l.InHex, "all lines are text")
		got, err := jobid.Parse(l.In)
		switch {
		case l.OK && err == nil:
			require.Equal(t, l.ID, got.Format(jobid.FormatDec), "%q", l.In)
		case !l.OK && err != nil:
			require.Equal(t, l.Errno == "ERANGE", strings.Contains(err.Error(), outOfRange), "%q: %v", l.In, err)
		default:
			differences.Note(whyDifferent(l.In, err))
		}
	}
}

// whyDifferent names the reason for which the reference differs on a text, given
// our error or nil. It looks at the text by means other than Parse's.
func whyDifferent(in string, err error) string {
	text := strings.TrimSpace(in)
	dots := strings.Count(text, ".")
	switch {
	case err == nil && strings.TrimRight(in, " \n") != in:
		return "trailing white space is ignored, as RFC 19 says"
	case strings.Contains(err.Error(), unsupported) && strings.Contains(text, "-"):
		return "words are not supported"
	case strings.Contains(err.Error(), unsupported) && strings.ContainsFunc(text, func(r rune) bool { return r > 0x1f000 }):
		return "emoji are not supported"
	case strings.Contains(err.Error(), outOfRange) && strings.HasPrefix(text, "f") && len(text) >= 12:
		return "base 58 beyond 64 bits is refused, not wrapped"
	case !strings.Contains(err.Error(), syntaxError):
		return "unknown"
	case strings.HasPrefix(text, "job. "):
		return "white space after job. is refused"
	case dots == 3 && strings.HasPrefix(text, "0x"):
		return "0x inside dothex is refused"
	case dots == 3 && strings.ContainsAny(text, "+-"):
		return "a sign inside dothex is refused"
	case dots == 3 && strings.Contains(text, " "):
		return "white space inside dothex is refused"
	case dots == 0 && strings.HasPrefix(text, "+"):
		return "a sign before a decimal is refused"
	}
	return "unknown: " + in
}
