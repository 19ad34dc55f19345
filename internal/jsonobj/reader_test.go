package jsonobj_test

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
)

// record is what the tests read: every kind of value, one of them in an array.
type record struct {
	id    int64
	name  string
	open  bool
	width float64
	tags  []string
	even  int
	books []book
	kept  json.RawMessage
}

type book struct {
	title string
	pages int64
}

var errOdd = errors.New("must be even")

func parseEven(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n%2 != 0 {
		return 0, errOdd
	}
	return n, nil
}

func readRecord(text string) (record, error) {
	var s record
	var books jsonobj.Value
	d := jsonobj.NewDoc([]byte(text))
	o := d.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "id":
			s.id = o.Int(1, 99)
		case "name":
			s.name = o.Text()
		case "open":
			s.open = o.Value().Bool()
		case "width":
			s.width = o.Float(0, math.MaxFloat64)
		case "height":
			o.Float(-1, 1.5)
		case "tags":
			for a := o.Value().Array(); a.Next(); {
				s.tags = append(s.tags, a.Text())
			}
		case "even":
			s.even = jsonobj.Parse(o.Value(), parseEven)
		case "books":
			books = o.Value()
		default:
			s.kept = o.Keep(s.kept)
		}
	}
	o.Require("id", "name")
	for a := books.Array(); a.Next(); {
		s.books = append(s.books, readBook(a.Value()))
	}
	return s, d.Err()
}

func readBook(v jsonobj.Value) (b book) {
	o := v.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "title":
			b.title = string(o.Value().TextBytes())
		case "pages":
			b.pages = o.Int(1, math.MaxInt64)
		case "lent to":
			o.Value().IsObject()
		}
	}
	o.Require("title")
	return b
}

func TestReader(t *testing.T) {
	s, err := readRecord(` {"id": 7, "n\u0061me": "a\nb", "open": true, "width": -0.0, "tags": ["x", "y"], "even": "12",
		"books": [{"title": "é", "pages": 3}, {"title": "\u00e9", "lent to": {}}], "k": [1, 2], "a\"": {"b": null}} `)
	require.NoError(t, err)
	require.False(t, math.Signbit(s.width))
	require.Equal(t, record{
		id: 7, name: "a\nb", open: true, tags: []string{"x", "y"}, even: 12,
		books: []book{{"é", 3}, {"é", 0}}, kept: json.RawMessage(`{"k":[1,2],"a\"":{"b":null}}`),
	}, s)
}

func TestFaults(t *testing.T) {
	const deep = `{"id":1,"name":"n","books":[{"title":"t"},`
	long := strings.Repeat("k", 70)
	for _, c := range []struct{ text, fault string }{
		{``, "offset 0: unexpected end"},
		{` 5`, "offset 1: must be an object"},
		{`[1]`, "offset 0: must be an object"},
		{`{}`, "id: offset 0: key is missing"},
		{` {"id":1}`, "name: offset 1: key is missing"},
		{`{"id":"1"}`, "id: offset 6: must be an integer"},
		{`{"id":1.0}`, "id: offset 6: must be an integer"},
		{`{"id":0}`, "id: offset 6: must be from 1 to 99"},
		{`{"id":100}`, "id: offset 6: must be from 1 to 99"},
		{`{"id":9223372036854775808}`, `offset 6: number out of range: "9223372036854775808"`},
		{`{"name":1}`, "name: offset 8: must be a string"},
		{`{"open":"true"}`, "open: offset 8: must be true or false"},
		{`{"width":"1"}`, "width: offset 9: must be a number"},
		{`{"width":-1}`, "width: offset 9: must be at least 0"},
		{`{"height":1.6}`, "height: offset 10: must be from -1 to 1.5"},
		{`{"tags":{}}`, "tags: offset 8: must be an array"},
		{`{"tags":["a",1]}`, "tags[1]: offset 13: must be a string"},
		{`{"even":2}`, "even: offset 8: must be a string"},
		{`{"even":"3"}`, "even: offset 8: must be even"},
		{`{"id":1,"name":"","books":1}`, "books: offset 26: must be an array"},
		{deep + `{}]}`, "books[1].title: offset 42: key is missing"},
		{deep + `3]}`, "books[1]: offset 42: must be an object"},
		{deep + `{"title":3}]}`, "books[1].title: offset 51: must be a string"},
		{deep + `{"title":"","pages":0}]}`, "books[1].pages: offset 62: must be from 1 to 9223372036854775807"},
		{deep + `{"lent to":0}]}`, `books[1]."lent to": offset 53: must be an object`},
		{`{"id":1,"id":2}`, `offset 8: duplicate key "id"`},
		{`{"x":1,}`, `offset 7: unexpected byte "}"`},
		{`{"id":1,"name":"n"} x`, `offset 20: text after the value: byte "x"`},
		{`{"` + long + `":tru}`, `offset 77: unexpected byte "}"`},
	} {
		_, err := readRecord(c.text)
		require.EqualError(t, err, c.fault, c.text)
	}
}

func TestFirstFaultStays(t *testing.T) {
	d := jsonobj.NewDoc([]byte(`{"a":[1,2],"b":2}`))
	o := d.Object()
	require.True(t, o.Next())
	a := o.Value().Array()
	require.True(t, a.Next())
	a.Value().Fail(errOdd)
	a.Value().Fail(errors.New("another"))
	d.Fail(errors.New("another"))
	require.False(t, a.Next())
	require.False(t, o.Next())
	o.Require("b")
	require.True(t, o.Find("a").Absent())
	require.ErrorIs(t, d.Err(), errOdd)
	require.Equal(t, "a[0]", d.Fault().Path)
	require.Equal(t, 6, d.Fault().Offset)
	require.True(t, d.Failed())
}

func TestAbsent(t *testing.T) {
	var v jsonobj.Value
	o, a := v.Object(), v.Array()
	require.True(t, v.Absent())
	require.False(t, o.Next() || a.Next() || v.Bool() || v.IsObject())
	o.Require("a")
	v.Fail(errOdd)
	require.Zero(t, v.Int(1, 2))
	require.Zero(t, v.Float(1, 2))
	require.Zero(t, v.Text())
	require.Zero(t, v.TextBytes())
	require.Zero(t, jsonobj.Parse(v, parseEven))
	require.Zero(t, v.Compact())
	require.Zero(t, v.Member("x"))
	require.Zero(t, v.Kind())
}

func TestMember(t *testing.T) {
	d := jsonobj.NewDoc([]byte(`{"a":{"b": [3] }}`))
	o := d.Object()
	require.True(t, o.Next())
	v := o.Value().Member("b")
	require.Equal(t, "[3]", string(v.Raw()))
	require.Equal(t, 11, v.Offset())
	require.Equal(t, jsonobj.KindArray, v.Kind())
	require.True(t, o.Value().Member("c").Absent())
	require.True(t, v.Member("c").Absent())
	v.FailKey("x y", errOdd)
	require.EqualError(t, d.Err(), `a.b."x y": offset 11: must be even`)
}

// Some errors have a position of their own, in the value that they are about.
func TestNestedFault(t *testing.T) {
	read := func(fail func(v jsonobj.Value)) error {
		d := jsonobj.NewDoc([]byte(`{"r":[0,{"id":0}]}`))
		for o := d.Object(); o.Next(); {
			for a := o.Value().Array(); a.Next(); {
				if a.Value().Kind() == jsonobj.KindObject {
					fail(a.Value())
				}
			}
		}
		return d.Err()
	}
	outer := errors.New("outer")
	err := read(func(v jsonobj.Value) {
		_, err := readRecord(string(v.Raw()))
		v.Fail(errors.Join(outer, err))
	})
	require.EqualError(t, err, "r[1].id: offset 14: must be from 1 to 99")
	require.ErrorIs(t, err, jsonobj.ErrRange)
	require.ErrorIs(t, err, outer)

	err = read(func(v jsonobj.Value) { v.Fail(jsonobj.Check([]byte(`{"é":\x}`), 0)) })
	require.EqualError(t, err, `r[1]: offset 14: unexpected byte "\\"`)
	require.ErrorIs(t, err, jsonobj.ErrSyntax)

	_, err = readRecord(`{"id":1,"name":"n","books":{}}`)
	require.ErrorIs(t, err, jsonobj.ErrKind)
	_, err = readRecord(`{}`)
	require.ErrorIs(t, err, jsonobj.ErrMissing)
}

func TestPathIsCut(t *testing.T) {
	text := []byte(strings.Repeat(`{"`+strings.Repeat("k", 100)+`":`, 20) + "1" + strings.Repeat("}", 20))
	d := jsonobj.NewDoc(text)
	var descend func(o jsonobj.Reader)
	descend = func(o jsonobj.Reader) {
		for o.Next() {
			if o.Value().Kind() == jsonobj.KindObject {
				descend(o.Value().Object())
			} else {
				o.Text()
			}
		}
	}
	descend(d.Object())
	require.Len(t, d.Fault().Path, 128)
	require.True(t, strings.HasSuffix(d.Fault().Path, "..."))
	require.Equal(t, len(text)-21, d.Fault().Offset)
}

func TestAPathIsCutBetweenCharacters(t *testing.T) {
	for n := range 8 {
		d := jsonobj.NewDoc([]byte(`{"` + strings.Repeat("k", 60+n) + `":{"` + strings.Repeat("é", 32) + `":{"a":1}}}`))
		o := d.Object()
		o.Next()
		o = o.Value().Object()
		o.Next()
		o = o.Value().Object()
		o.Next()
		o.Text()
		require.Len(t, d.Fault().Path, 128)
		require.True(t, utf8.ValidString(d.Fault().Path), "%q", d.Fault().Path)
	}
}

func TestANameIsQuotedWhereItIsNotPlain(t *testing.T) {
	for _, plain := range []string{"azAZ09_-.", strings.Repeat("k", 64)} {
		require.Equal(t, plain, jsonobj.Name(plain))
	}
	require.Equal(t, strings.Repeat("k", 64)+"...", jsonobj.Name(strings.Repeat("k", 65)))
	for _, c := range "/:@[`{~ é" {
		require.Equal(t, strconv.Quote(string(c)), jsonobj.Name(string(c)))
	}
	require.Equal(t, `"\xff"`, jsonobj.Name("\xff"))
	require.Equal(t, `""`, jsonobj.Name([]byte{}))
}

func TestRoot(t *testing.T) {
	for text, fault := range map[string]string{
		" 7\n": "", "8": "offset 0: must be from 0 to 7", " \t[1]": "offset 2: must be an integer", "": "offset 0: unexpected end",
		"7 x": `offset 2: text after the value: byte "x"`,
	} {
		d := jsonobj.NewDoc([]byte(text))
		v := d.Root()
		n := v.Int(0, 7)
		if fault == "" {
			require.NoError(t, d.Err())
			require.Equal(t, int64(7), n)
			require.Equal(t, "7", string(v.Raw()))
			require.False(t, v.Failed())
			continue
		}
		require.EqualError(t, d.Err(), fault)
		require.Zero(t, n)
		require.NotEqual(t, v.Absent(), v.Failed())
	}
}

func TestNeedReadsAKeyWhereverNextIs(t *testing.T) {
	d := jsonobj.NewDoc([]byte(` {"a":1,"b\u0062":"x"}`))
	o := d.Object()
	require.Equal(t, "x", o.Need("bb").Text())
	require.True(t, o.Next())
	require.EqualValues(t, 1, o.Need("a").Int(0, 2))
	require.Equal(t, "a", string(o.Key()))
	require.True(t, o.Need("c").Absent())
	require.EqualError(t, d.Err(), "c: offset 1: key is missing")
	require.True(t, o.Need("a").Absent(), "after a fault")
	var none jsonobj.Reader
	require.True(t, none.Need("a").Absent())
}
