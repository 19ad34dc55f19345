package jsonobj

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestStringsArePrintedAsFluxPrintsThem(t *testing.T) {
	for in, want := range map[string]string{
		"":                 `""`,
		"a":                `"a"`,
		`"\`:               `"\"\\"`,
		"\b\f\n\r\t":       `"\b\f\n\r\t"`,
		"\x00\x01\x0b\x1f": `"\u0000\u0001\u000B\u001F"`,
		"\x7f/<>&'":        "\"\x7f/<>&'\"",
		"é漢😀\u2028\ufffe":  "\"é漢😀\u2028\ufffe\"",
		"a\xffb\xc3":       "\"a\ufffdb\ufffd\"",
		"\xed\xa0\x80":     "\"\ufffd\ufffd\ufffd\"",
	} {
		require.Equal(t, "x"+want, string(AppendString([]byte("x"), in)))
	}
}

func TestStringsAreUnescaped(t *testing.T) {
	for in, want := range map[string]string{
		`""`: "", `"a"`: "a", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"x\u00e9\u00E9y"`: "xééy", `"\u0000"`: "\x00",
		`"\ud83d\ude00!"`: "😀!", `"\uDBFF\uDFFF"`: "\U0010FFFF", `"\uFFFF\ud7ff\ue000"`: "\uffff\ud7ff\ue000", `"\\u0041"`: `\u0041`,
	} {
		s, ok := String([]byte(in))
		require.True(t, ok, in)
		require.Equal(t, want, s)
		if strings.Contains(in, `\`) { // else the content is a part of the token
			want = "x" + want
		}
		require.Equal(t, want, string(unescaped([]byte("x"), []byte(in), 0)))
	}
	for _, in := range []string{``, `"`, `a`, `"a`, `"a" `, ` "a"`, `"a"b`, `"\x"`, `"\ud800"`, "\"\n\"", "\"\xff\"", `1`, `{}`} {
		s, ok := String([]byte(in))
		require.False(t, ok, in)
		require.Empty(t, s)
	}
}

// requireStringReadsBack requires that a text that is printed reads back, here and by
// encoding/json, with each byte that is no UTF-8 replaced.
func requireStringReadsBack(t require.TestingT, in string) {
	token := AppendString(nil, in)
	require.NoError(t, Check(token, 0))
	s, ok := String(token)
	require.True(t, ok)
	require.Equal(t, string([]rune(in)), s)
	var viaJSON string
	require.NoError(t, json.Unmarshal(token, &viaJSON))
	require.Equal(t, s, viaJSON)
}

func TestWhatWasPrintedReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requireStringReadsBack(t, string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		requireStringReadsBack(t, rapid.String().Draw(t, "string"))
	})
}

func TestCompactingRemovesWhiteSpaceOutsideStringsOnly(t *testing.T) {
	for in, want := range map[string]string{
		" 1 ":                               `1`,
		"{ \"a b\" :\n[1 ,\t2,\r\n{} ] }\n": `{"a b":[1,2,{}]}`,
		`" \" \\"`:                          `" \" \\"`,
		`{"a":1}`:                           `{"a":1}`,
		``:                                  ``,
	} {
		require.Equal(t, "x"+want, string(AppendCompact([]byte("x"), []byte(in))))
	}
	for _, tt := range refused { // no panic, no end
		AppendCompact(nil, []byte(tt.in))
	}
}
