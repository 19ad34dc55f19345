package jsonscan

import (
	"encoding/json"
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
	is     error
}{
	{``, 0, "unexpected end", ErrSyntax},
	{" \n", 2, "unexpected end", ErrSyntax},
	{`nul`, 3, "unexpected end", ErrSyntax},
	{`nuLl`, 2, `unexpected byte "L"`, ErrSyntax},
	{`x`, 0, `unexpected byte "x"`, ErrSyntax},
	{"\x00", 0, `unexpected byte "\x00"`, ErrSyntax},
	{"\uFEFF{}", 0, `byte order mark`, ErrSyntax},
	{"\uFEFF", 0, `byte order mark`, ErrSyntax},
	{"\xEF\xBB", 0, `unexpected byte "\xef"`, ErrSyntax},
	{" \uFEFF{}", 1, `byte order mark`, ErrSyntax},
	{`{} x`, 3, `text after the value: byte "x"`, ErrSyntax},
	{"{}\x00", 2, `text after the value: byte "\x00"`, ErrSyntax},
	{`1 2`, 2, `text after the value: byte "2"`, ErrSyntax},
	{`01`, 1, `unexpected byte "1"`, ErrSyntax},
	{`-`, 1, "unexpected end", ErrSyntax},
	{`-a`, 1, `unexpected byte "a"`, ErrSyntax},
	{`+1`, 0, `unexpected byte "+"`, ErrSyntax},
	{`1.`, 2, "unexpected end", ErrSyntax},
	{`1.e1`, 2, `unexpected byte "e"`, ErrSyntax},
	{`.5`, 0, `unexpected byte "."`, ErrSyntax},
	{`1e`, 2, "unexpected end", ErrSyntax},
	{`1e+`, 3, "unexpected end", ErrSyntax},
	{`[1e+]`, 4, `unexpected byte "]"`, ErrSyntax},
	{`0x10`, 1, `text after the value: byte "x"`, ErrSyntax},
	{`NaN`, 0, `unexpected byte "N"`, ErrSyntax},
	{`[9223372036854775808]`, 1, `number out of range: "9223372036854775808"`, ErrRange},
	{`-9223372036854775809`, 0, `number out of range: "-9223372036854775809"`, ErrRange},
	{`18446744073709551616`, 0, `number out of range: "18446744073709551616"`, ErrRange},
	{`1e309`, 0, `number out of range: "1e309"`, ErrRange},
	{`[-1.7976931348623159e308,1]`, 1, `number out of range: "-1.7976931348623159e308"`, ErrRange},
	{strings.Repeat("9", 310) + ".5", 0, `number out of range: "` + strings.Repeat("9", 64) + `"`, ErrRange},
	{`"abc`, 4, "unexpected end", ErrSyntax},
	{`"abcdefghijklmnop`, 17, "unexpected end", ErrSyntax},
	{"\"a\nb\"", 2, `control character "\n" in a string`, ErrSyntax},
	{"\"abcdefgh\x00\"", 9, `control character "\x00" in a string`, ErrSyntax},
	{"\"a\xffb\"", 2, `invalid UTF-8: byte "\xff" in a string`, ErrUTF8},
	{"\"a\x80 and more\"", 2, `invalid UTF-8: byte "\x80" in a string`, ErrUTF8},
	{"\"\x80\"", 1, `invalid UTF-8: byte "\x80" in a string`, ErrUTF8},
	{"\"\xc0\x80\"", 1, `invalid UTF-8: byte "\xc0" in a string`, ErrUTF8},
	{"\"\xed\xa0\xbd\xed\xb8\x80\"", 1, `invalid UTF-8: byte "\xed" in a string`, ErrUTF8},
	{"\"\xf4\x90\x80\x80\"", 1, `invalid UTF-8: byte "\xf4" in a string`, ErrUTF8},
	{"\"\xe2\x82", 1, `invalid UTF-8: byte "\xe2" in a string`, ErrUTF8},
	{`"a\q"`, 2, "unknown escape in a string", ErrSyntax},
	{`"a\U0041"`, 2, "unknown escape in a string", ErrSyntax},
	{`"\u12"`, 6, "unexpected end", ErrSyntax},
	{`"\u12"  `, 1, "unknown escape in a string", ErrSyntax},
	{`"\`, 2, "unexpected end", ErrSyntax},
	{`"\u004G"`, 1, "unknown escape in a string", ErrSyntax},
	{`"\ud83d"`, 1, "invalid UTF-8: escape of half a surrogate pair", ErrUTF8},
	{`"\ud83d\u0041"`, 1, "invalid UTF-8: escape of half a surrogate pair", ErrUTF8},
	{`"\ud83d\n12345"`, 1, "invalid UTF-8: escape of half a surrogate pair", ErrUTF8},
	{`"\ude00\ud83d"`, 1, "invalid UTF-8: escape of half a surrogate pair", ErrUTF8},
	{`[`, 1, "unexpected end", ErrSyntax},
	{`[,]`, 1, `unexpected byte ","`, ErrSyntax},
	{`[1,]`, 3, `unexpected byte "]"`, ErrSyntax},
	{`[1 2]`, 3, `unexpected byte "2"`, ErrSyntax},
	{`[1}`, 2, `unexpected byte "}"`, ErrSyntax},
	{`[1`, 2, "unexpected end", ErrSyntax},
	{`[1,`, 3, "unexpected end", ErrSyntax},
	{`{`, 1, "unexpected end", ErrSyntax},
	{`{]`, 1, `unexpected byte "]"`, ErrSyntax},
	{`{,}`, 1, `unexpected byte ","`, ErrSyntax},
	{`{"a"}`, 4, `unexpected byte "}"`, ErrSyntax},
	{`{"a"`, 4, "unexpected end", ErrSyntax},
	{`{"a" 1}`, 5, `unexpected byte "1"`, ErrSyntax},
	{`{"a""b"}`, 4, `unexpected byte "\""`, ErrSyntax},
	{`{"a",1}`, 4, `unexpected byte ","`, ErrSyntax},
	{`{"a":}`, 5, `unexpected byte "}"`, ErrSyntax},
	{`{"a":`, 5, "unexpected end", ErrSyntax},
	{`{"a":1,}`, 7, `unexpected byte "}"`, ErrSyntax},
	{`{"a":1]`, 6, `unexpected byte "]"`, ErrSyntax},
	{`{a:1}`, 1, `unexpected byte "a"`, ErrSyntax},
	{`{"a":1//c` + "\n}", 6, `unexpected byte "/"`, ErrSyntax},
	{`{"a\u0000b":1}`, 1, "U+0000 in a key", ErrSyntax},
	{`{"a":[{"\u0000":1}]}`, 7, "U+0000 in a key", ErrSyntax},
	{`{"a":1,"b":2,"a":3}`, 13, `duplicate key "a"`, ErrDuplicate},
	{`[{"x":{"a":1,"b":2,"a":3}}]`, 19, `duplicate key "a"`, ErrDuplicate},
	{`{"é":1,"\u00e9":2}`, 8, `duplicate key "é"`, ErrDuplicate},
	{`{"\u00e9":1,"é":2}`, 12, `duplicate key "é"`, ErrDuplicate},
	{`{"":1,"":2}`, 6, `duplicate key ""`, ErrDuplicate},
	{`{"\ud83d\ude00":1,"😀":2}`, 18, `duplicate key "😀"`, ErrDuplicate},
	{`{"\n":1,"\u000a":{},"x":0}`, 8, `duplicate key "\n"`, ErrDuplicate},
	{`{"aaaaaaaaaaaaaaaaX":{"k":1},"b":[],"aaaaaaaaaaaaaaaaX":3}`, 36, `duplicate key "aaaaaaaaaaaaaaaaX"`, ErrDuplicate},
}

func TestCheckAcceptsValidText(t *testing.T) {
	for _, in := range accepted {
		require.NoError(t, Check([]byte(in), Limits{}), in)
		require.True(t, json.Valid([]byte(in)), in)
	}
}

func TestCheckTellsWhereAndWhyATextIsInvalid(t *testing.T) {
	for _, tt := range refused {
		err := Check([]byte(tt.in), Limits{})
		require.EqualError(t, err, fmt.Sprintf("jsonscan: offset %d: %s", tt.offset, tt.text), "%q", tt.in)
		require.ErrorIs(t, err, ErrSyntax)
		require.ErrorIs(t, err, tt.is)
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax)
		require.Equal(t, tt.offset, syntax.Offset)
	}
}

func TestNoProperPrefixOfAnObjectIsAValue(t *testing.T) {
	in := `{"a":[1,-2.5e3,"x\u00e9\ud83d\ude00é",true,null],"b":{"c":{}}}`
	require.NoError(t, Check([]byte(in), Limits{}))
	for i := range len(in) {
		require.ErrorIs(t, Check([]byte(in[:i]), Limits{}), ErrSyntax, in[:i])
	}
}

func TestDepthIsLimited(t *testing.T) {
	nest := func(n int, inner string) []byte {
		return []byte(strings.Repeat(`[`, n) + inner + strings.Repeat(`]`, n))
	}
	require.NoError(t, Check(nest(2048, ``), Limits{}))
	require.NoError(t, Check(nest(2047, `1`), Limits{}))
	require.NoError(t, Check(nest(2047, `{}`), Limits{}))
	for _, in := range [][]byte{nest(2049, ``), nest(2048, `1`), nest(2048, `{}`), nest(2047, `{"a":1}`), nest(1_000_000, ``)} {
		require.ErrorIs(t, Check(in, Limits{}), ErrDepth)
	}
	require.NoError(t, Check([]byte(`1`), Limits{Depth: 1}))
	require.NoError(t, Check([]byte(`{ }`), Limits{Depth: 1}))
	require.EqualError(t, Check([]byte(`{"a":1}`), Limits{Depth: 1}), "jsonscan: offset 1: nested too deep")
	require.NoError(t, Check([]byte(`{"a":[]}`), Limits{Depth: 2}))
	require.NoError(t, Check(nest(100_000, ``), Limits{Depth: 100_000}))
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
				require.NoError(t, Check(in, Limits{}))
				for at := range n - 1 {
					in, off := objectOf(n, at, key)
					var syntax *SyntaxError
					require.ErrorAs(t, Check(in, Limits{}), &syntax, "%s", in)
					require.ErrorIs(t, syntax, ErrDuplicate)
					require.Equal(t, off, syntax.Offset)
				}
			}
		})
	}
}

func TestTheFirstOfManyDuplicatesIsNamed(t *testing.T) {
	var b strings.Builder
	for range 40 {
		for i := range 40 {
			fmt.Fprintf(&b, `"key%02d":0,`, i)
		}
	}
	in := "{" + strings.TrimSuffix(b.String(), ",") + "}"
	require.EqualError(t, Check([]byte(in), Limits{}), `jsonscan: offset 401: duplicate key "key00"`)
}

func TestAnErrorQuotesAtMost64BytesAndKeepsNone(t *testing.T) {
	in := []byte(`{"` + strings.Repeat("k", 100) + `":1,"` + strings.Repeat("k", 100) + `":2}`)
	err := Check(in, Limits{})
	want := `jsonscan: offset 106: duplicate key "` + strings.Repeat("k", 64) + `"`
	require.EqualError(t, err, want)
	clear(in)
	require.EqualError(t, err, want)
}

func TestEveryFaultHasACauseOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for f := faultEnd; f <= faultBOM; f++ {
		text := f.cause([]byte(`"a"`), 0).Error()
		require.NotContains(t, text, "fault ")
		require.False(t, seen[text], text)
		seen[text] = true
	}
	require.EqualError(t, fault(200).cause(nil, 0), "fault 200")
	require.True(t, errors.Is(newError(nil, 0, faultDepth), ErrDepth))
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
		end, ok := Limits{}.ValueEnd([]byte(tt.in), 0)
		require.True(t, ok, tt.in)
		require.Equal(t, tt.i, end, tt.in)
	}
	for _, in := range []string{`{`, ` 1`, `x`, `{"a":1,"a":2}`} {
		_, ok := Limits{}.ValueEnd([]byte(in), 0)
		require.False(t, ok, in)
	}
	_, ok := Limits{Depth: 1}.ValueEnd([]byte(`[1]`), 0)
	require.False(t, ok)
	end, ok := Limits{}.ValueEnd([]byte(`ab[1]`), 2)
	require.True(t, ok)
	require.Equal(t, 5, end)
}
