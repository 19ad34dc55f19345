package strict

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type inner struct {
	Name string `json:"name"`
}

type sample struct {
	ID   int             `json:"id"`
	Mask *uint32         `json:"mask,omitempty"`
	Raw  json.RawMessage `json:"raw,omitempty"`
	In   *inner          `json:"in,omitempty"`
	inner
}

func TestKeysAreWhatTheyAre(t *testing.T) {
	one := uint32(1)
	for text, want := range map[string]sample{
		`{"id":7,"name":"a"}`: {ID: 7, inner: inner{"a"}},
		` {"name":"a","Mask":1,"ID":8,"id":7,"x":[],"Id":[{"x":"}"}]} `: {ID: 7, inner: inner{"a"}},
		`{"id":7,"name":"a","mas\u006b":1,"raw":null}`:                  {ID: 7, Mask: &one, Raw: json.RawMessage("null"), inner: inner{"a"}},
		`{"id":7,"name":"a","in":{"name":"b","Name":"c"}}`:              {ID: 7, In: &inner{"b"}, inner: inner{"a"}},
	} {
		var got sample
		require.NoError(t, Unmarshal([]byte(text), &got), text)
		require.Equal(t, want, got, text)
	}
}

func TestWhatIsNoObjectOfTheseKeysIsAnError(t *testing.T) {
	var many []byte
	for n := range maxKeys {
		many = fmt.Appendf(many, `"%x":0,`, n)
	}
	for text, want := range map[string]string{
		``:                                        `offset 0: unexpected end of JSON input`,
		`{"id":7,`:                                `offset 8: unexpected end of JSON input`,
		`{"id":7} x`:                              `offset 10: invalid character 'x' after top-level value`,
		`[{"id":7}]`:                              `must be an object`,
		`null`:                                    `must be an object`,
		`{"ID":7,"name":"a"}`:                     `"id": key is missing`,
		`{"id":7}`:                                `"name": key is missing`,
		`{"id":7,"name":"a","id":7}`:              `"id": key comes twice`,
		`{"id":7,"name":"a","i\u0064":8}`:         `"id": key comes twice`,
		`{"id":7,"name":"a","x":1,"x":2}`:         `"x": key comes twice`,
		`{"id":null,"name":"a"}`:                  `"id": must not be null`,
		`{"id":"7","name":"a"}`:                   `"id": must not be string`,
		`{"id":7,"name":"a","mask":null}`:         `"mask": must not be null`,
		`{"id":7,"name":"a","mask":-1}`:           `"mask": must not be number -1`,
		`{"id":7,"name":"a","in":{}}`:             `"in": "name": key is missing`,
		`{"id":7,"name":"a","in":null}`:           `"in": must not be null`,
		`{"id":7,"name":"a","in":[]}`:             `"in": must be an object`,
		`{"id":7,` + string(many) + `"name":"a"}`: `has more than 65536 keys`,
	} {
		var got sample
		require.EqualError(t, Unmarshal([]byte(text), &got), want, "%.80s", text)
	}
	var got sample
	require.Error(t, Unmarshal([]byte(`{"id":7,"name":"a","mask":2,"mask":1}`), &got))
	require.Equal(t, sample{ID: 7, inner: inner{"a"}}, got, "the rest can be read")
}

func TestElementsAreThoseOfAnArray(t *testing.T) {
	read := func(text string) (list []string, err error) {
		err = Elements([]byte(text), func(value json.RawMessage) error {
			list = append(list, string(value))
			return nil
		})
		return list, err
	}
	list, err := read(` [ 1 , "]" ,{"a":[2]}, [ ] ] `)
	require.NoError(t, err)
	require.Equal(t, []string{"1", `"]"`, `{"a":[2]}`, "[ ]"}, list)
	for _, text := range []string{"{}", "null", "[1", "[1}", ""} {
		_, err := read(text)
		require.Error(t, err, text)
	}
}

// A text is JSON if it is for encoding/json. What that makes of a text with each key once, in its
// case, comes out here too, and nothing else is taken.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"b":[1,{"c":"}\\\""}],"":null}`, ` { "a" : "x,y" , "A" : {} } `, `{"a":1,"\u0061":2}`, `{}`, `{"a"`, "{\"\xff\":1}", `[1]`,
		``, `null`, `[]`, `{`, `{"id":1`, `{"id":1,}`, `{,}`, `{"id" 1}`, `{"id":1}}`, `{"id":1 "R":2}`, `{"x":01}`, `{"x":1.}`, `{"x":1e}`, `{"x":-}`, `{"x":+1}`,
		`{"x":tru}`, `{"x":nul`, `{"x":[1,]}`, `{"x":[1 2]}`, `{"x":{"a"}}`, `{"x":{"a":}}`, `{"x":"\x"}`, `{"x":"\u00g0"}`, `{"x":"\u00` + "\x10" + `0"}`, `{"x":"\`, `{"x":"\u00"`,
		"{\"x\":\"\x01\"}", "\ufeff{}", `-`, `[1}`, `{"a":1]`, " { \"a\\u00e9\\n\\\"\" : [ -0.5e+7 , true,false , null,{} ] }\r\n",
		strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for m := range All(text) { // also of what is no JSON
			m.Name(text)
		}
		got := make(map[string]json.RawMessage)
		err := Members(text, func(key string, value json.RawMessage) error {
			require.NotContains(t, got, key)
			got[key] = value
			return nil
		})
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			require.Error(t, err)
			return
		}
		if err == nil && strings.ToValidUTF8(string(text), "") == string(text) {
			require.Equal(t, want, got)
		}
	})
}
