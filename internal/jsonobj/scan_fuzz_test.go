package jsonobj

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Where Check refuses what encoding/json takes for valid, the reason is found
// by means that share nothing with it.
var (
	escapedSurrogate   = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
	escapedReplacement = regexp.MustCompile(`(?i)\\ufffd`)
)

// strictReasons returns why a text that is valid to encoding/json is not to us.
// unsure is true where it can not be told.
func strictReasons(t require.TestingT, text []byte, depth int) (reasons []string, unsure bool) {
	if !utf8.Valid(text) {
		reasons = append(reasons, "invalid UTF-8")
	}
	noReplacement := !bytes.Contains(text, []byte("\ufffd")) && !escapedReplacement.Match(text)
	note := func(reason string) { reasons = append(reasons, reason) }
	str := func(s string) {
		if escapedSurrogate.Match(text) && strings.ContainsRune(s, '\ufffd') {
			if noReplacement {
				note("invalid UTF-8")
			}
			unsure = unsure || !noReplacement
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var keys []map[string]bool // of the open levels; nil for an array
	wantKey := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return reasons, unsure
		}
		require.NoError(t, err)
		if token != json.Delim('}') && token != json.Delim(']') && len(keys) >= depth {
			note("nested too deep")
		}
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				keys = append(keys, map[string]bool{})
			case '[':
				keys = append(keys, nil)
			default:
				keys = keys[:len(keys)-1]
			}
		case json.Number:
			if s := v.String(); !strings.ContainsAny(s, ".eE") {
				if _, err := strconv.ParseInt(s, 10, 64); err != nil {
					note("number out of range")
				}
			} else if _, err := strconv.ParseFloat(s, 64); err != nil {
				note("number out of range")
			}
		case string:
			str(v)
			if wantKey {
				level := keys[len(keys)-1]
				if level[v] {
					note("duplicate key")
				}
				if strings.ContainsRune(v, 0) {
					note("U+0000 in a key")
				}
				level[v] = true
			}
		}
		// A key is wanted where an object begins, and after each of its values.
		_, isString := token.(string)
		wantKey = len(keys) > 0 && keys[len(keys)-1] != nil && (!wantKey || !isString)
	}
}

func requireAgreement(t require.TestingT, text []byte, depth int) {
	err := Check(text, depth)
	if err != nil {
		require.ErrorIs(t, err, ErrSyntax)
		fault := err.(*Fault)
		require.True(t, 0 <= fault.Offset && fault.Offset <= len(text), "%v", err)
		require.Equal(t, fault.Err.Error() == "unexpected end", fault.Offset == len(text) && !errors.Is(err, ErrDepth), "%v", err)
	}
	if !json.Valid(text) {
		require.Error(t, err, "%q", text)
		return
	}
	reasons, unsure := strictReasons(t, text, depth)
	if err == nil {
		require.Empty(t, reasons, "%q", text)
		requireCompactAgrees(t, text)
		return
	}
	for _, reason := range reasons {
		if strings.Contains(err.Error(), reason) {
			return
		}
	}
	require.True(t, unsure, "%q refused: %v, reasons: %v", text, err, reasons)
}

// requireCompactAgrees checks that a compacted text means the same and stays as
// it is when compacted again.
func requireCompactAgrees(t require.TestingT, text []byte) {
	var want bytes.Buffer
	require.NoError(t, json.Compact(&want, text))
	compact := AppendCompact(nil, text)
	require.Equal(t, want.String(), string(compact))
	require.Equal(t, compact, AppendCompact(nil, compact))
}

func TestTheTablesAgreeWithEncodingJSON(t *testing.T) {
	for depth := 1; depth < 5; depth++ {
		for _, in := range accepted {
			requireAgreement(t, []byte(in), depth)
		}
		for _, tt := range refused {
			requireAgreement(t, []byte(tt.in), depth)
		}
	}
	for _, key := range keyNames {
		for _, n := range []int{3, 17, 40} {
			in, _ := objectOf(n, 1, key)
			requireAgreement(t, in, 0x100)
			requireAgreement(t, fmt.Appendf(nil, `[1,{"x":%s}]`, in), 0x100)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, in := range accepted {
		f.Add([]byte(in), uint8(9))
	}
	for _, tt := range refused {
		if len(tt.in) < 100 {
			f.Add([]byte(tt.in), uint8(3))
		}
	}
	in, _ := objectOf(20, 3, keyNames["mixed"])
	f.Add(in, uint8(2))
	f.Fuzz(func(t *testing.T, text []byte, depth uint8) {
		requireAgreement(t, text, max(int(depth), 1))
	})
}

func FuzzFloat(f *testing.F) {
	f.Add(math.Float64bits(1795226020.2783487), "1795226020.2783487")
	f.Add(math.Float64bits(1000000000.00390625), "1000000000.00390625")
	f.Add(math.Float64bits(9999999999.9999981), "9999999999.9999990")
	f.Add(math.Float64bits(1e23), "9007199254740993.0")
	f.Add(uint64(1), "1e-400")
	f.Fuzz(func(t *testing.T, bits uint64, text string) {
		if v := math.Float64frombits(bits); !math.IsNaN(v) && !math.IsInf(v, 0) {
			requireFloatReadsBack(t, v)
		}
		isNumber := json.Valid([]byte(text)) && KindOf([]byte(text)) == KindNumber && strings.TrimSpace(text) == text
		want, err := strconv.ParseFloat(text, 64)
		got, ok := Float64([]byte(text))
		require.Equal(t, isNumber && err == nil, ok, "%q", text)
		if ok {
			require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%q", text)
		}
		behind, integer, end, okBehind := FloatAt([]byte(text+`,"name":"x"`), 0)
		if ok {
			require.True(t, okBehind)
			require.Equal(t, len(text), end)
			require.Equal(t, math.Float64bits(want), math.Float64bits(behind), "%q", text)
			require.Equal(t, IsInteger([]byte(text)), integer)
		}
	})
}

func FuzzString(f *testing.F) {
	for _, in := range []string{"a", "\"\\\n\x00\x1f", "é漢😀", "a\xff", `"\ud83d\ude00"`, `"\u0000\/"`} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		requireStringReadsBack(t, in)
		if s, ok := String([]byte(in)); ok {
			var viaJSON string
			require.NoError(t, json.Unmarshal([]byte(in), &viaJSON))
			require.Equal(t, viaJSON, s)
		}
	})
}
