package jobid_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/stretchr/testify/require"
)

func TestParseReadsEveryFormAndNothingElse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want jobid.ID
	}{
		{"0", 0}, {"1234", 1234}, {"007", 7}, {"18446744073709551615", math.MaxUint64}, {"00000000000000000000018446744073709551615", math.MaxUint64},
		{"0x0", 0}, {"0xaBcdefABCDEF", 0xabcdefabcdef}, {"0x0000000000000000000ffffffffffffffff", math.MaxUint64}, {"ƒ1", 0}, {"f1", 0}, {"f111", 0},
		{"f111111111111", 0}, // twelve digits
		{"f1jpXCZedGfVQ", math.MaxUint64}, {"fjpXCZedGfVQ", math.MaxUint64}, {"0.0.0.0", 0}, {"0.0.0.39", 57}, {"1.2.3.4", 0x0001_0002_0003_0004},
		{"fFfF.ffff.ffff.ffff", math.MaxUint64}, {"job.1", 1}, {"job.0x10", 16}, {"job.fzz", 3363}, {"job.ƒzz", 3363}, {"job.0.0.0.39", 57},
		{" \t\n\v\f\r1 \t\n\v\f\r", 1}, {" job.1\n", 1},
	} {
		got, err := jobid.Parse(tt.in)
		require.NoError(t, err, "%q", tt.in)
		require.Equal(t, tt.want, got, "%q", tt.in)
	}
}

// How errors begin.
const (
	syntaxError = "jobid: syntax error"
	outOfRange  = "jobid: out of range"
	unsupported = "jobid: form not supported"
)

func TestParseTellsWhereAndWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		in       string
		category string
		offset   int
	}{
		// Nothing there.
		{"", syntaxError, 0}, {" \n", syntaxError, 2}, {"job.", syntaxError, 4}, {"f", syntaxError, 1}, {" ƒ ", syntaxError, 3},
		{"0x", syntaxError, 2}, {"job.0x", syntaxError, 6},
		// Decimals.
		{"12a4", syntaxError, 2}, {"+1", syntaxError, 0}, {"1 2", syntaxError, 1}, {"1\x00", syntaxError, 1},
		{"1\u00a0", syntaxError, 1}, // not white space to C
		{"F1", syntaxError, 0}, {"Ƒ1", syntaxError, 0}, {"\xc6", syntaxError, 0}, {"inf", syntaxError, 0}, {" 18446744073709551616", outOfRange, 1},
		{"18446744073709551620", outOfRange, 0}, {"99999999999999999999999", outOfRange, 0}, {"99999999999999999999999x", syntaxError, 23},
		// Hexadecimals.
		{"0X1", syntaxError, 1}, {"0x1g", syntaxError, 3}, {"0x10000000000000000", outOfRange, 2}, {"0x10000000000000000z", syntaxError, 19},
		// Dotted hexadecimals.
		{".", syntaxError, 0}, {"1.2.3", syntaxError, 5}, {"1.2.3.", syntaxError, 6}, {".1.2.3", syntaxError, 0}, {"1..2.3", syntaxError, 2},
		{"1.2.3.4.", syntaxError, 7}, {"1.2.3.4.5", syntaxError, 7}, {"00001.2.3.4", syntaxError, 4}, {"1.2.3.12345", syntaxError, 11 - 1},
		{"-1.2.3.4", syntaxError, 0}, {"1.+2.3.4", syntaxError, 2}, {"1. 2.3.4", syntaxError, 2}, {"0x1.2.3.4", syntaxError, 1},
		{"job. 1", syntaxError, 4}, {"job.job.1", syntaxError, 4}, {"Job.1", syntaxError, 0},
		// Base 58.
		{"f0", syntaxError, 1}, {"fI", syntaxError, 1}, {"fO", syntaxError, 1}, {"f1l", syntaxError, 2}, {"ff!", syntaxError, 2},
		{"f1 1", syntaxError, 2}, {"ƒ1ƒ", syntaxError, 3}, {"f1111111111111", syntaxError, 13}, {"fzzzzzzzzzzzzz", syntaxError, 13},
		{"fjpXCZedGfVR", outOfRange, 1}, {"ƒjpXCZedGfVR", outOfRange, 2}, {" job.fzzzzzzzzzzz", outOfRange, 6}, {"fzzzzzzzzzzzz", outOfRange, 1},
		// Words and emoji, and what only looks so.
		{"reform-remote-galileo--heart-package-academy", unsupported, 0}, {" job.a-b", unsupported, 5}, {"A-", unsupported, 0}, {"-", syntaxError, 0},
		{"-1", syntaxError, 0}, {" job.2024-01-01", syntaxError, 9}, {"1-[@`{\xe1", syntaxError, 1}, {"\"0a-b\" c", unsupported, 0},
		{"1-Z", unsupported, 0}, {"😃", unsupported, 0}, {" job.😃", unsupported, 5}, {"\xf0", syntaxError, 0}, {"x😃", syntaxError, 0},
		{"1😃", syntaxError, 1},
	} {
		got, err := jobid.Parse(tt.in)
		require.Zero(t, got, "%q", tt.in)
		require.ErrorContains(t, err, tt.category, "%q", tt.in)
		require.True(t, strings.HasSuffix(err.Error(), fmt.Sprintf(" in %q", tt.in)), "%v", err)
		requireOffset(t, tt.offset, err)
	}
}

func TestJSONNumbersAreUnsignedIntegers(t *testing.T) {
	var id jobid.ID
	require.NoError(t, json.Unmarshal([]byte(" 0 "), &id))
	require.Zero(t, id)
	require.NoError(t, json.Unmarshal([]byte("18446744073709551615"), &id))
	require.Equal(t, jobid.ID(math.MaxUint64), id)
	require.ErrorContains(t, json.Unmarshal([]byte("18446744073709551616"), &id), outOfRange)
	for in, offset := range map[string]int{
		"-0": 0, "-1": 0, "1.0": 1, "1e3": 1, "null": 0, "true": 0, "[1]": 0, "{}": 0,
	} {
		err := json.Unmarshal([]byte(in), &id)
		require.ErrorContains(t, err, syntaxError, in)
		requireOffset(t, offset, err)
	}
	// What encoding/json never passes on.
	for in, offset := range map[string]int{
		"": 0, "00": 1, "01": 1, " 1": 0, "1 ": 1, "0x1": 1, "f1": 0, `"`: 0, `"1`: 0, `"1"2`: 0,
	} {
		err := id.UnmarshalJSON([]byte(in))
		require.ErrorContains(t, err, syntaxError, "%q", in)
		requireOffset(t, offset, err)
	}
}

func TestJSONStringsAreReadInEveryForm(t *testing.T) {
	for _, f := range formats {
		var id jobid.ID
		require.NoError(t, json.Unmarshal([]byte(`"`+jobid.ID(6731191091817518).Format(f)+`"`), &id))
		require.Equal(t, jobid.ID(6731191091817518), id)
	}
	var id jobid.ID
	require.NoError(t, json.Unmarshal([]byte(`"\u0192zz"`), &id))
	require.Equal(t, jobid.ID(3363), id)
	err := json.Unmarshal([]byte(`" fl"`), &id)
	require.ErrorContains(t, err, syntaxError)
	requireOffset(t, 2, err)
	require.ErrorContains(t, json.Unmarshal([]byte(`"fzzzzzzzzzzz"`), &id), outOfRange)
	require.ErrorContains(t, json.Unmarshal([]byte(`"a-b"`), &id), unsupported)
	require.ErrorContains(t, json.Unmarshal([]byte(`""`), &id), syntaxError)
	require.Equal(t, jobid.ID(3363), id)
}

func requireOffset(t *testing.T, want int, err error) {
	t.Helper()
	require.ErrorContains(t, err, fmt.Sprintf(": offset %d: ", want))
}
