package jsonobj_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
)

// A naive reader scans each object and array anew, and tells the path of each value as
// it comes to it.
type naive struct {
	seen []string // the values met, as tell writes them
	fail int      // the number of the value to fail at
	err  string
}

func tell(key, raw []byte, offset int) string { return fmt.Sprintf("%q %d %s", key, offset, raw) }

// read walks a whole text.
func (n *naive) read(t require.TestingT, text []byte, depth int) {
	if err := jsonobj.Check(text, depth); err != nil {
		n.err = err.Error()
		return
	}
	if k := jsonobj.KindOf(text); k != jsonobj.KindObject && k != jsonobj.KindArray {
		n.err = "must be an object"
		return
	}
	n.walk(t, text, len(text)-len(bytes.TrimLeft(text, " \n\t\r")), "")
}

// walk walks the object or array of a valid text that begins at an offset, and reports
// whether to go on.
func (n *naive) walk(t require.TestingT, text []byte, from int, path string) bool {
	array := text[from] == '['
	skip := func(i int) int { return len(text) - len(bytes.TrimLeft(text[i:], " \n\t\r,:")) }
	for i, at := 0, skip(from+1); text[at] != ']' && text[at] != '}'; i++ {
		element, key := path+fmt.Sprintf("[%d]", i), []byte(nil)
		if !array {
			end, ok := jsonobj.ValueEnd(text, at, 0)
			require.True(t, ok)
			name, _ := jsonobj.String(text[at:end])
			key = []byte(name)
			if element = path; path != "" {
				element += "."
			}
			element += jsonobj.Name(name)
			at = skip(end)
		}
		end, ok := jsonobj.ValueEnd(text, at, 0)
		require.True(t, ok)
		n.seen = append(n.seen, tell(key, text[at:end], at))
		if len(n.seen) == n.fail {
			n.err = fmt.Sprintf("%s: offset %d: must be even", element, at)
			return false
		}
		if (text[at] == '{' || text[at] == '[') && !n.walk(t, text, at, element) {
			return false
		}
		at = skip(end)
	}
	return true
}

// tape is the same with Readers.
type tape struct {
	doc  *jsonobj.Doc
	seen []string
	fail int
}

func (n *tape) walk(o *jsonobj.Reader, array bool) {
	var keys []string
	for o.Next() {
		v := o.Value()
		key := o.Key()
		if array {
			key = nil
		} else {
			keys = append(keys, string(key))
		}
		n.seen = append(n.seen, tell(key, v.Raw(), v.Offset()))
		if len(n.seen) == n.fail {
			v.Fail(errOdd)
		}
		switch v.Kind() {
		case jsonobj.KindObject:
			r := v.Object()
			n.walk(&r, false)
		case jsonobj.KindArray:
			r := v.Array()
			n.walk(&r, true)
		}
	}
	if !array && !n.doc.Failed() {
		slices.Reverse(keys)
		for _, key := range append(keys, "no such key") {
			got, want := o.Find(key), o.Value().Member(key)
			if string(got.Raw()) != string(want.Raw()) || got.Offset() != want.Offset() || want.Kind() >= jsonobj.KindObject && got != want {
				panic(fmt.Sprintf("key %q: found %s, want %s", key, got.Raw(), want.Raw()))
			}
		}
		o.Require(keys...)
		again := jsonobj.NewDoc(o.Value().Raw())
		r := again.Object()
		for r.Next() {
		}
		r.Require(append(keys[:len(keys)/2], "no such key")...)
		if f := again.Fault(); f == nil || f.Path != jsonobj.Name("no such key") || !errors.Is(f, jsonobj.ErrMissing) {
			panic(fmt.Sprintf("keys %q: %v", keys, f))
		}
	}
}

// requireSame requires that Readers find in a text what the naive one does, up to the
// value at which they shall fail, and tell the same error.
func requireSame(t require.TestingT, text []byte, depth int, fail int) {
	want := naive{fail: fail}
	want.read(t, text, depth)
	d := jsonobj.NewDoc(text)
	d.Depth = depth
	got := tape{doc: &d, fail: fail}
	if v := d.Root(); v.Kind() == jsonobj.KindArray {
		r := v.Array()
		got.walk(&r, true)
	} else {
		r := v.Object()
		got.walk(&r, false)
	}
	require.Equal(t, want.seen, got.seen)
	switch {
	case want.err == "":
		require.NoError(t, d.Err())
	case want.err == "must be an object":
		require.ErrorIs(t, d.Err(), jsonobj.ErrKind)
	case len(want.err) < 100: // a path is not cut
		require.EqualError(t, d.Err(), want.err)
	default:
		require.Equal(t, want.err[strings.LastIndex(want.err, "offset"):], d.Err().Error()[strings.LastIndex(d.Err().Error(), "offset"):])
	}
}

func TestReadersFindWhatANaiveReaderFinds(t *testing.T) {
	for _, text := range []string{
		nested, ` [ ] `, `{}`, ` {"a" : [ 1 , {"b":-1.5e3} ,"x\"]" ] , "c\n":{"d\u0022":{},"":[[]]} }`, `5`, ``, `{"a":{"b":[1,]}}`,
		`{"a":{"b":1},"c":{"d":2,"d":3}}`, `[{"a":{"b":[true,null,false]}}`,
		`[` + strings.Repeat(`{"k":[0,{"l":"m"}]},`, 40) + `[]]`,
		`{"x":{` + strings.Repeat(`"a":{"a":`, 9) + `1` + strings.Repeat(`}`, 9) + `}}`,
		strings.Repeat(`{"a":`, 30) + `[7]` + strings.Repeat(`}`, 30),
	} {
		for fail := range 30 {
			requireSame(t, []byte(text), 0, fail)
			requireSame(t, []byte(text), 3, fail)
		}
	}
}

func FuzzReadersFindWhatANaiveReaderFinds(f *testing.F) {
	f.Add([]byte(nested), uint8(0), uint8(9))
	f.Add([]byte(`[`+strings.Repeat(`{"k":[0,{"l":"m"}]},`, 20)+`[]]`), uint8(7), uint8(50))
	f.Add([]byte(` {"a" : [ 1 , {"b":-1.5e3} ,"x\"]" ] , "c\n":{"d\u0022":{},"":[[]]} }`), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, text []byte, depth, fail uint8) {
		requireSame(t, text, int(depth), int(fail))
	})
}

// A fault in a Value that was kept is told where it is, though the walk went on.
func TestAValueOutlivesTheWalk(t *testing.T) {
	d := jsonobj.NewDoc([]byte(`{"a":[[1],{"b":[2,3]}],"c":{"d":[4]}}`))
	var kept []jsonobj.Value
	for o := d.Object(); o.Next(); {
		kept = append(kept, o.Value())
	}
	second := func(v jsonobj.Value) jsonobj.Value {
		a := v.Array()
		require.True(t, a.Next())
		require.True(t, a.Next())
		return a.Value()
	}
	b := second(kept[0]).Member("b")
	require.Equal(t, "[4]", string(kept[1].Member("d").Raw()))
	second(b).Fail(errOdd)
	require.EqualError(t, d.Err(), "a[1].b[1]: offset 18: must be even")
}
