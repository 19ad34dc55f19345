package jsonobj

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// accepted is text that is one value.
var accepted = []string{
	`null`, `true`, `false`, `0`, `-0`, `12`, `-1.5`, `1e3`, `1E+3`, `1e-400`, `0.0e-5`, `5e-324`,
	`9223372036854775807`, `-9223372036854775808`, `1.7976931348623157e308`, `100000000000000000000.0`,
	`""`, `"a"`, `"é漢😀"`, `"\u0000"`, `"\"\\\/\b\f\n\r\t"`, `"\ud83d\ude00"`, `"\uDBFF\uDFFF"`, `"\uFFFF"`, "\"\x7f\"", "\"\u2028\"",
	`[]`, `{}`, `[ ]`, `{ }`, "\t[1 ,\r\n2] ", `[[],[[]],{}]`, `{"a":1}`, `{"a":{"a":{"a":[]}},"b":{"a":2}}`, `{"":0}`, `{"\u0061":1,"b":2}`,
	`[{"a":1},{"a":1}]`, `{"abcdefgh":1,"abcdefgi":2,"abcdefg":3}`,
}

// refused is text that is not, with the offset and the cause.
var refused = []struct {
	in     string
	offset int
	text   string
}{
	{``, 0, "unexpected end"},
	{" \n", 2, "unexpected end"},
	{`nul`, 3, "unexpected end"},
	{`nuLl`, 2, `unexpected byte "L"`},
	{`x`, 0, `unexpected byte "x"`},
	{"\x00", 0, `unexpected byte "\x00"`},
	{"\uFEFF{}", 0, `byte order mark`},
	{"\uFEFF", 0, `byte order mark`},
	{"\xEF\xBB", 0, `unexpected byte "\xef"`},
	{" \uFEFF{}", 1, `byte order mark`},
	{`{} x`, 3, `text after the value: byte "x"`},
	{"{}\x00", 2, `text after the value: byte "\x00"`},
	{`1 2`, 2, `text after the value: byte "2"`},
	{`01`, 1, `unexpected byte "1"`},
	{`-`, 1, "unexpected end"},
	{`-a`, 1, `unexpected byte "a"`},
	{`+1`, 0, `unexpected byte "+"`},
	{`1.`, 2, "unexpected end"},
	{`1.e1`, 2, `unexpected byte "e"`},
	{`.5`, 0, `unexpected byte "."`},
	{`1e`, 2, "unexpected end"},
	{`1e+`, 3, "unexpected end"},
	{`[1e+]`, 4, `unexpected byte "]"`},
	{`0x10`, 1, `text after the value: byte "x"`},
	{`NaN`, 0, `unexpected byte "N"`},
	{`[9223372036854775808]`, 1, `number out of range: "9223372036854775808"`},
	{`-9223372036854775809`, 0, `number out of range: "-9223372036854775809"`},
	{`18446744073709551616`, 0, `number out of range: "18446744073709551616"`},
	{`1e309`, 0, `number out of range: "1e309"`},
	{`[-1.7976931348623159e308,1]`, 1, `number out of range: "-1.7976931348623159e308"`},
	{strings.Repeat("9", 310) + ".5", 0, `number out of range: "` + strings.Repeat("9", 64) + `"`},
	{`"abc`, 4, "unexpected end"},
	{`"abcdefghijklmnop`, 17, "unexpected end"},
	{"\"a\nb\"", 2, `control character "\n" in a string`},
	{"\"abcdefgh\x00\"", 9, `control character "\x00" in a string`},
	{"\"a\xffb\"", 2, `invalid UTF-8: byte "\xff" in a string`},
	{"\"a\x80 and more\"", 2, `invalid UTF-8: byte "\x80" in a string`},
	{"\"\x80\"", 1, `invalid UTF-8: byte "\x80" in a string`},
	{"\"\xc0\x80\"", 1, `invalid UTF-8: byte "\xc0" in a string`},
	{"\"\xed\xa0\xbd\xed\xb8\x80\"", 1, `invalid UTF-8: byte "\xed" in a string`},
	{"\"\xf4\x90\x80\x80\"", 1, `invalid UTF-8: byte "\xf4" in a string`},
	{"\"\xe2\x82", 1, `invalid UTF-8: byte "\xe2" in a string`},
	{`"a\q"`, 2, "unknown escape in a string"},
	{`"a\U0041"`, 2, "unknown escape in a string"},
	{`"\u12"`, 6, "unexpected end"},
	{`"\u12"  `, 1, "unknown escape in a string"},
	{`"\`, 2, "unexpected end"},
	{`"\u004G"`, 1, "unknown escape in a string"},
	{`"\ud83d"`, 1, "invalid UTF-8: escape of half a surrogate pair"},
	{`"\ud83d\u0041"`, 1, "invalid UTF-8: escape of half a surrogate pair"},
	{`"\ud83d\n12345"`, 1, "invalid UTF-8: escape of half a surrogate pair"},
	{`"\ude00\ud83d"`, 1, "invalid UTF-8: escape of half a surrogate pair"},
	{`[`, 1, "unexpected end"},
	{`[,]`, 1, `unexpected byte ","`},
	{`[1,]`, 3, `unexpected byte "]"`},
	{`[1 2]`, 3, `unexpected byte "2"`},
	{`[1}`, 2, `unexpected byte "}"`},
	{`[1`, 2, "unexpected end"},
	{`[1,`, 3, "unexpected end"},
	{`{`, 1, "unexpected end"},
	{`{]`, 1, `unexpected byte "]"`},
	{`{,}`, 1, `unexpected byte ","`},
	{`{"a"}`, 4, `unexpected byte "}"`},
	{`{"a"`, 4, "unexpected end"},
	{`{"a" 1}`, 5, `unexpected byte "1"`},
	{`{"a""b"}`, 4, `unexpected byte "\""`},
	{`{"a",1}`, 4, `unexpected byte ","`},
	{`{"a":}`, 5, `unexpected byte "}"`},
	{`{"a":`, 5, "unexpected end"},
	{`{"a":1,}`, 7, `unexpected byte "}"`},
	{`{"a":1]`, 6, `unexpected byte "]"`},
	{`{a:1}`, 1, `unexpected byte "a"`},
	{`{"a":1//c` + "\n}", 6, `unexpected byte "/"`},
	{`{"a\u0000b":1}`, 1, "U+0000 in a key"},
	{`{"a":[{"\u0000":1}]}`, 7, "U+0000 in a key"},
	{`{"a":1,"b":2,"a":3}`, 13, `duplicate key "a"`},
	{`[{"x":{"a":1,"b":2,"a":3}}]`, 19, `duplicate key "a"`},
	{`{"é":1,"\u00e9":2}`, 8, `duplicate key "é"`},
	{`{"\u00e9":1,"é":2}`, 12, `duplicate key "é"`},
	{`{"":1,"":2}`, 6, `duplicate key ""`},
	{`{"\ud83d\ude00":1,"😀":2}`, 18, `duplicate key "😀"`},
	{`{"\n":1,"\u000a":{},"x":0}`, 8, `duplicate key "\n"`},
	{`{"aaaaaaaaaaaaaaaaX":{"k":1},"b":[],"aaaaaaaaaaaaaaaaX":3}`, 36, `duplicate key "aaaaaaaaaaaaaaaaX"`},
}

func TestCheckAcceptsValidText(t *testing.T) {
	for _, in := range accepted {
		require.NoError(t, Check([]byte(in), 0), in)
	}
}

func TestCheckTellsWhereAndWhyATextIsInvalid(t *testing.T) {
	for _, tt := range refused {
		err := Check([]byte(tt.in), 0)
		require.EqualError(t, err, fmt.Sprintf("offset %d: %s", tt.offset, tt.text), "%q", tt.in)
		require.ErrorIs(t, err, ErrSyntax)
		var fault *Fault
		require.ErrorAs(t, err, &fault)
		require.Equal(t, tt.offset, fault.Offset)
	}
}

func TestDepthIsLimited(t *testing.T) {
	nest := func(n int, inner string) []byte {
		return []byte(strings.Repeat(`[`, n) + inner + strings.Repeat(`]`, n))
	}
	require.NoError(t, Check(nest(2048, ``), 0))
	require.NoError(t, Check(nest(2047, `1`), 0))
	require.NoError(t, Check(nest(2047, `{}`), 0))
	for _, in := range [][]byte{nest(2049, ``), nest(2048, `1`), nest(2048, `{}`), nest(2047, `{"a":1}`), nest(1_000_000, ``)} {
		require.ErrorIs(t, Check(in, 0), ErrDepth)
	}
	require.NoError(t, Check([]byte(`1`), 1))
	require.NoError(t, Check([]byte(`{ }`), 1))
	require.EqualError(t, Check([]byte(`{"a":1}`), 1), "offset 1: nested too deep")
	require.NoError(t, Check([]byte(`{"a":[]}`), 2))
	require.NoError(t, Check(nest(100_000, ``), 100_000))
}

// objectOf returns an object of n keys, the last of which is that of another
// place where duplicate is not negative, and the offset of the last.
func objectOf(n, duplicate int, key func(int) string) (text []byte, last int) {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		k := key(i)
		if i == n-1 && duplicate >= 0 {
			k = key(duplicate)
		}
		last = b.Len()
		fmt.Fprintf(&b, `"%s":%d`, k, i)
	}
	b.WriteByte('}')
	return []byte(b.String()), last
}

// keyNames are families of keys that differ in how they are compared.
var keyNames = map[string]func(int) string{
	"short":   func(i int) string { return fmt.Sprint(i) },
	"long":    func(i int) string { return fmt.Sprintf("attributes.system.%07d.environment", i) },
	"escaped": func(i int) string { return fmt.Sprintf(`\u0061%d`, i) },
	"mixed": func(i int) string {
		if i%3 == 0 {
			return fmt.Sprintf(`\u0061%d`, i)
		}
		return fmt.Sprintf(`a%d`, i)
	},
}

func TestDuplicatesAreFoundAmongAnyNumberOfKeys(t *testing.T) {
	for name, key := range keyNames {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 7, 8, 9, 15, 16, 17, 18, 33, 200} {
				in, _ := objectOf(n, -1, key)
				require.NoError(t, Check(in, 0))
				for at := range n - 1 {
					in, off := objectOf(n, at, key)
					require.ErrorContains(t, Check(in, 0), fmt.Sprintf("offset %d: duplicate key", off), "%s", in)
				}
			}
		})
	}
}

func TestAnErrorQuotesAtMost64BytesAndKeepsNone(t *testing.T) {
	in := []byte(`{"` + strings.Repeat("k", 100) + `":1,"` + strings.Repeat("k", 100) + `":2}`)
	err := Check(in, 0)
	want := `offset 106: duplicate key "` + strings.Repeat("k", 64) + `"`
	require.EqualError(t, err, want)
	clear(in)
	require.EqualError(t, err, want)
}

func TestEveryDefectHasACauseOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for f := defectEnd; f <= defectBOM; f++ {
		text := f.cause([]byte(`"a"`), 0).Error()
		require.NotContains(t, text, "defect ")
		require.False(t, seen[text], text)
		seen[text] = true
	}
	require.EqualError(t, defect(200).cause(nil, 0), "defect 200")
	require.True(t, errors.Is(syntaxFault(nil, 0, defectDepth), ErrDepth))
}

func TestKindIsThatOfTheFirstByte(t *testing.T) {
	for in, want := range map[string]Kind{
		`null`: KindNull, ` true`: KindBool, `false`: KindBool, "\n-1": KindNumber, `9`: KindNumber, `"x"`: KindString, "\t{": KindObject, `[]`: KindArray,
		``: KindInvalid, ` `: KindInvalid, `x`: KindInvalid, `+1`: KindInvalid,
	} {
		require.Equal(t, want, KindOf([]byte(in)), in)
	}
}

func TestValueEndIsThatOfTheFirstValue(t *testing.T) {
	for _, tt := range []struct {
		in string
		i  int
	}{{`{"a":1}x`, 7}, {`12,`, 2}, {`"a"]`, 3}, {`truex`, 4}, {`[]]`, 2}} {
		end, ok := ValueEnd([]byte(tt.in), 0, 0)
		require.True(t, ok, tt.in)
		require.Equal(t, tt.i, end, tt.in)
	}
	for _, in := range []string{`{`, ` 1`, `x`, `{"a":1,"a":2}`} {
		_, ok := ValueEnd([]byte(in), 0, 0)
		require.False(t, ok, in)
	}
	_, ok := ValueEnd([]byte(`[1]`), 0, 1)
	require.False(t, ok)
	end, ok := ValueEnd([]byte(`ab[1]`), 2, 0)
	require.True(t, ok)
	require.Equal(t, 5, end)
}
