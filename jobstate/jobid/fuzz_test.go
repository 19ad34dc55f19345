package jobid_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/stretchr/testify/require"
)

// A second parser, made of regular expressions and big numbers: what FuzzParse
// compares Parse with.
var (
	naiveDec    = regexp.MustCompile(`^[0-9]+$`)
	naiveHex    = regexp.MustCompile(`^0x[0-9a-fA-F]+$`)
	naiveDotHex = regexp.MustCompile(`^([0-9a-fA-F]{1,4})\.([0-9a-fA-F]{1,4})\.([0-9a-fA-F]{1,4})\.([0-9a-fA-F]{1,4})$`)
	naiveF58    = regexp.MustCompile(`^(?:ƒ|f)([1-9A-HJ-NP-Za-km-z]{1,12})$`)
	naiveWords  = regexp.MustCompile(`(?s)^[^.]*[a-zA-Z][^.]*$`)
)

const naiveAlphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// naiveParse returns the number that s tells, and the category of Parse's error.
func naiveParse(s string) (number *big.Int, category string) {
	s = strings.TrimPrefix(strings.Trim(s, " \t\n\v\f\r"), "job.")
	v := new(big.Int)
	switch m := naiveF58.FindStringSubmatch(s); {
	case naiveDec.MatchString(s):
		v.SetString(s, 10)
	case naiveHex.MatchString(s):
		v.SetString(s[2:], 16)
	case naiveDotHex.MatchString(s):
		for _, group := range naiveDotHex.FindStringSubmatch(s)[1:] {
			g, _ := new(big.Int).SetString(group, 16)
			v.Or(v.Lsh(v, 16), g)
		}
	case m != nil:
		for _, c := range m[1] {
			v.Mul(v, big.NewInt(58))
			v.Add(v, big.NewInt(int64(strings.IndexRune(naiveAlphabet, c))))
		}
	case strings.Contains(s, "-") && naiveWords.MatchString(s),
		strings.HasPrefix(s, "\xf0\x9f") && !strings.ContainsAny(s, ".-"):
		return nil, unsupported
	default:
		return nil, syntaxError
	}
	if v.BitLen() > 64 {
		return nil, outOfRange
	}
	return v, ""
}

// checkParse compares Parse with naiveParse on s.
func checkParse(t fataler, s string) {
	t.Helper()
	want, wantErr := naiveParse(s)
	got, err := jobid.Parse(s)
	var id jobid.ID = 77
	textErr := id.UnmarshalText([]byte(s))
	if wantErr == "" {
		require.NoError(t, err, "%q", s)
		require.Equal(t, want.String(), got.Format(jobid.FormatDec), "%q", s)
		require.NoError(t, textErr)
		require.Equal(t, got, id)
		checkRoundTrip(t, got)
		return
	}
	require.ErrorContains(t, err, wantErr, "%q", s)
	_, at, found := strings.Cut(err.Error(), ": offset ")
	require.True(t, found, "%v", err)
	number, _, _ := strings.Cut(at, ":")
	offset, parseErr := strconv.Atoi(number)
	require.NoError(t, parseErr)
	require.True(t, 0 <= offset && offset <= len(s))
	require.True(t, strings.HasSuffix(at, fmt.Sprintf(" in %q", s[:min(len(s), 64)])), "%v", err)
	require.NotContains(t, err.Error(), "\n")
	require.Equal(t, err, textErr)
	require.Equal(t, jobid.ID(77), id, "changed by an error")
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"ƒuZZybuNNy", "fjpXCZedGfVQ", "fjpXCZedGfVR", "6731191091817518", "18446744073709551616",
		"0x17e9fb8df16c2e", "0017.e9fb.8df1.6c2e", " job.0.0.0.39\n", "a-b", "😃", "-1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkParse(t, s) })
}

func FuzzUnmarshalJSON(f *testing.F) {
	for _, s := range []string{"0", "18446744073709551615", "18446744073709551616", "01", "-1", "1.5", `"ƒzz"`, `"\u0192zz"`, `"`, "null", "null ", " 7\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// encoding/json reads the same numbers into a uint64, and the same strings.
		var number uint64
		var text string
		want := jobid.ID(0)
		wantErr := json.Unmarshal(b, &number)
		if wantErr == nil && !json.Valid(b) {
			wantErr = errors.New(syntaxError)
		}
		if want = jobid.ID(number); wantErr != nil || string(bytes.TrimSpace(b)) == "null" {
			if wantErr = json.Unmarshal(b, &text); wantErr == nil {
				want, wantErr = jobid.Parse(text)
			}
		}
		var id jobid.ID = 77
		err := json.Unmarshal(b, &id)
		require.Equal(t, wantErr == nil, err == nil, "%q: %v", b, err)
		if err != nil {
			require.Equal(t, jobid.ID(77), id)
			direct := id.UnmarshalJSON(b)
			if direct != nil {
				require.True(t, strings.Contains(direct.Error(), syntaxError) || strings.Contains(direct.Error(), outOfRange) ||
					strings.Contains(direct.Error(), unsupported))
			}
			return
		}
		require.Equal(t, want, id, "%q", b)
	})
}
