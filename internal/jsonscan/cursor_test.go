package jsonscan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// walk returns what a Cursor hands out, one member a line: offset of the key and
// key, offset of the value and value.
func walk(c Cursor) (string, error) {
	var b strings.Builder
	for c.Next() {
		if c.Key() != nil {
			fmt.Fprintf(&b, "%d %q ", c.KeyOffset(), c.Key())
		}
		fmt.Fprintf(&b, "%d %s\n", c.Offset(), c.Raw())
	}
	return b.String(), c.Err()
}

func TestAnObjectIsWalkedInOrder(t *testing.T) {
	got, err := walk(Object([]byte(" {\"a\" : 1 ,\t\"b\":[1, {\"c\":2}],\"\":\"x\" , \"\\u00e9\\n\" : null,\"long enough a key\":{} }\n")))
	require.NoError(t, err)
	require.Equal(t, `2 "a" 8 1
12 "b" 16 [1, {"c":2}]
29 "" 32 "x"
38 "é\n" 51 null
56 "long enough a key" 76 {}
`, got)
}

func TestAnArrayIsWalkedInOrder(t *testing.T) {
	got, err := walk(Array([]byte(`[1,[2 , 3] , "x"]`)))
	require.NoError(t, err)
	require.Equal(t, "1 1\n3 [2 , 3]\n13 \"x\"\n", got)
	c := Array([]byte(`[1]`))
	require.True(t, c.Next())
	require.Nil(t, c.Key())
}

func TestEmptyContainersHaveNoMembers(t *testing.T) {
	for _, c := range []Cursor{Object([]byte(`{}`)), Object([]byte(" { \n} ")), Array([]byte(`[]`)), Array([]byte("\t[ ]"))} {
		got, err := walk(c)
		require.NoError(t, err)
		require.Empty(t, got)
	}
}

func TestACursorHandsOutWhatComesBeforeAnError(t *testing.T) {
	for _, tt := range []struct{ in, members, err string }{
		{``, ``, `offset 0: unexpected end`},
		{` `, ``, `offset 1: unexpected end`},
		{`[]`, ``, `offset 0: unexpected kind of value: want an object, not array`},
		{` 1`, ``, `offset 1: unexpected kind of value: want an object, not number`},
		{`x`, ``, `offset 0: unexpected byte "x"`},
		{"\uFEFF{}", ``, `offset 0: byte order mark`},
		{`{`, ``, `offset 1: unexpected end`},
		{`{"a"`, ``, `offset 4: unexpected end`},
		{`{"a" 1}`, ``, `offset 5: unexpected byte "1"`},
		{`{"a":`, ``, `offset 5: unexpected end`},
		{`{"a":}`, ``, `offset 5: unexpected byte "}"`},
		{`{"a":1`, "1 \"a\" 5 1\n", `offset 6: unexpected end`},
		{`{"a":1 "b":2}`, "1 \"a\" 5 1\n", `offset 7: unexpected byte "\""`},
		{`{"a":1]`, "1 \"a\" 5 1\n", `offset 6: unexpected byte "]"`},
		{`{"a":1,}`, "1 \"a\" 5 1\n", `offset 7: unexpected byte "}"`},
		{`{"a":1,`, "1 \"a\" 5 1\n", `offset 7: unexpected end`},
		{`{"a":1,b:2}`, "1 \"a\" 5 1\n", `offset 7: unexpected byte "b"`},
		{`{"a":1,"b`, "1 \"a\" 5 1\n", `offset 9: unexpected end`},
		{`{"a":1,"\u0000":2}`, "1 \"a\" 5 1\n", `offset 7: U+0000 in a key`},
		{`{"a":1,"b":[2}}`, "1 \"a\" 5 1\n", `offset 13: unexpected byte "}"`},
		{`{"a":1,"b":2,"\u0061":3}`, "1 \"a\" 5 1\n7 \"b\" 11 2\n", `offset 13: duplicate key "a"`},
		{`{"a":1} x`, "1 \"a\" 5 1\n", `offset 8: text after the value: byte "x"`},
		{`{"a":1}{}`, "1 \"a\" 5 1\n", `offset 7: text after the value: byte "{"`},
	} {
		got, err := walk(Object([]byte(tt.in)))
		require.EqualError(t, err, "jsonscan: "+tt.err, tt.in)
		require.ErrorIs(t, err, ErrSyntax)
		require.Equal(t, tt.members, got, tt.in)
	}
	_, err := walk(Array([]byte(`{}`)))
	require.EqualError(t, err, "jsonscan: offset 0: unexpected kind of value: want an array, not object")
	require.ErrorIs(t, err, ErrKind)
	got, err := walk(Array([]byte(`[1,]`)))
	require.EqualError(t, err, `jsonscan: offset 3: unexpected byte "]"`)
	require.Equal(t, "1 1\n", got)
}

func TestAFinishedCursorStaysSo(t *testing.T) {
	for _, in := range []string{`{"a":1}`, `{"a":1`} {
		c := Object([]byte(in))
		require.NoError(t, c.Err())
		require.True(t, c.Next())
		require.NoError(t, c.Err())
		require.False(t, c.Next())
		err := c.Err()
		require.False(t, c.Next())
		require.Equal(t, err, c.Err())
		require.Nil(t, c.Key())
		require.Empty(t, c.Raw())
	}
}

func TestTheZeroCursorIsAnError(t *testing.T) {
	var c Cursor
	require.Empty(t, c.Raw())
	require.False(t, c.Next())
	require.ErrorIs(t, c.Err(), ErrSyntax)
}

func TestACursorFindsDuplicatesAmongAnyNumberOfKeys(t *testing.T) {
	for name, key := range keyNames {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 7, 8, 9, 10, 15, 16, 17, 18, 32, 33, 100} {
				in, _ := objectOf(n, -1, key)
				_, err := walk(Object(in))
				require.NoError(t, err)
				for at := range n - 1 {
					in, off := objectOf(n, at, key)
					got, err := walk(Object(in))
					require.ErrorIs(t, err, ErrDuplicate)
					require.Equal(t, off, err.(*SyntaxError).Offset)
					if n <= linearKeys {
						require.Equal(t, n-1, strings.Count(got, "\n"))
					}
				}
			}
		})
	}
}

func TestACursorLimitsDepthAsCheckDoes(t *testing.T) {
	for _, in := range []string{`{}`, `{"a":1}`, `{"a":{}}`, `{"a":{"b":1}}`, `[]`, `[1]`, `[[]]`, `[[1]]`} {
		for depth := 1; depth <= 4; depth++ {
			l := Limits{Depth: depth}
			c := l.Object([]byte(in))
			if in[0] == '[' {
				c = l.Array([]byte(in))
			}
			_, err := walk(c)
			require.Equal(t, Check([]byte(in), l), err, "%s at %d", in, depth)
		}
	}
	_, err := walk(Object([]byte(`{"a":` + strings.Repeat(`[`, 2048) + strings.Repeat(`]`, 2048) + `}`)))
	require.ErrorIs(t, err, ErrDepth)
}

func TestWhatACursorHandsOutCannotGrowIntoTheText(t *testing.T) {
	in := []byte(`{"a":1,"b":2}`)
	c := Object(in)
	require.True(t, c.Next())
	_ = append(c.Raw(), 'x')
	_ = append(c.Key(), 'x')
	require.Equal(t, `{"a":1,"b":2}`, string(in))
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
