package eventlog_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
)

// EL-1.
func TestAnEntryIsWrittenAsOneCompactLine(t *testing.T) {
	for _, tt := range []struct {
		entry eventlog.Entry
		want  string
	}{
		{eventlog.Entry{Timestamp: 42, Name: "x"}, `{"timestamp":42.0,"name":"x"}`},
		{eventlog.Entry{Timestamp: 1552593348.0881419, Name: "x", Context: []byte(`{}`)}, `{"timestamp":1552593348.0881419,"name":"x","context":{}}`},
		{eventlog.Entry{Timestamp: 0.1, Name: "é\"\n\x1f/", Context: []byte(`{"a": 1}`)}, `{"timestamp":0.10000000000000001,"name":"é\"\n\u001F/","context":{"a": 1}}`},
		{eventlog.Entry{Timestamp: 1e22, Name: "x", Context: []byte(" \t{\"a\":\r\"\\n\"} ")}, `{"timestamp":1e22,"name":"x","context":{"a":` + "\r" + `"\n"}}`},
		{eventlog.Entry{Timestamp: 1, Name: "x", Context: []byte("\n{ \"a\" : \"b c\" }")}, `{"timestamp":1.0,"name":"x","context":{"a":"b c"}}`},
		{eventlog.Entry{Timestamp: 1, Name: "x", Context: []byte(" {}")}, `{"timestamp":1.0,"name":"x","context":{}}`},
		{eventlog.Entry{Timestamp: 1, Name: "x", Context: []byte("{}\r")}, `{"timestamp":1.0,"name":"x","context":{}}`},
		{eventlog.Entry{Timestamp: 1, Name: "x", Context: []byte{}}, `{"timestamp":1.0,"name":"x"}`},
	} {
		line, err := eventlog.AppendEntry([]byte("#"), tt.entry)
		require.NoError(t, err)
		require.Equal(t, "#"+tt.want+"\n", string(line))
		e, err := eventlog.Parse(line[1:])
		require.NoError(t, err)
		require.Equal(t, tt.entry.Timestamp, e.Timestamp)
		require.Equal(t, tt.entry.Name, e.Name)
	}
}

func TestAnInvalidEntryIsRefusedAndNothingAppended(t *testing.T) {
	context := func(s string) eventlog.Entry {
		return eventlog.Entry{Timestamp: 1, Name: "x", Context: json.RawMessage(s)}
	}
	for _, tt := range []struct {
		entry    eventlog.Entry
		text     string
		category error
	}{
		{eventlog.Entry{}, "timestamp: must be greater than zero", eventlog.ErrEntry},
		{eventlog.Entry{Timestamp: -1, Name: "x"}, "timestamp: must be greater than zero", eventlog.ErrEntry},
		{eventlog.Entry{Timestamp: eventlog.Timestamp(math.NaN()), Name: "x"}, "timestamp: must be a finite number", eventlog.ErrEntry},
		{eventlog.Entry{Timestamp: eventlog.Timestamp(math.Inf(1)), Name: "x"}, "timestamp: must be a finite number", eventlog.ErrEntry},
		{eventlog.Entry{Timestamp: eventlog.Timestamp(math.Inf(-1)), Name: "x"}, "timestamp: must be a finite number", eventlog.ErrEntry},
		{eventlog.Entry{Timestamp: 1}, "name: must not be empty", eventlog.ErrEntry},
		{eventlog.Entry{Timestamp: 1, Name: "a\x00"}, "name: must not contain U+0000", eventlog.ErrEntry},
		{eventlog.Entry{Timestamp: 1, Name: "a\xff"}, "name: invalid UTF-8", eventlog.ErrEntry},
		{eventlog.Entry{Timestamp: 1, Name: "a\x80"}, "name: invalid UTF-8", eventlog.ErrEntry},
		{context("{"), "context: offset 1: unexpected end", eventlog.ErrEntry},
		{context("{{}"), `context: offset 1: unexpected byte "{"`, eventlog.ErrEntry},
		{context("{}}"), `context: offset 2: text after the value: byte "}"`, eventlog.ErrEntry},
		{context(" "), "context: offset 1: unexpected end", eventlog.ErrEntry},
		{context("[]"), "context: must be an object", eventlog.ErrEntry},
		{context("null"), "context: must be an object", eventlog.ErrEntry},
		{context(`"x"`), "context: must be an object", eventlog.ErrEntry},
		{context(`{"a":1,"a":2}`), `context: offset 7: duplicate key "a"`, eventlog.ErrEntry},
		{context("{\"a\":\"\n\"}"), `context: offset 6: control character "\n" in a string`, eventlog.ErrEntry},
		{context("{\"a\":\"\xff\"}"), `context: offset 6: invalid UTF-8: byte "\xff" in a string`, eventlog.ErrEntry},
		{context(`{"a":` + strings.Repeat("[", 2047) + strings.Repeat("]", 2047) + `}`), "context: offset 2051: nested too deep", eventlog.ErrLimit},
		{eventlog.Entry{Timestamp: 1, Name: strings.Repeat("x", 1<<20)}, "entry: line longer than 1048576 bytes", eventlog.ErrLimit},
	} {
		dst := []byte("before")
		out, err := eventlog.AppendEntry(dst, tt.entry)
		require.EqualError(t, err, "eventlog: "+tt.text)
		require.Equal(t, "before", string(out))
		for _, c := range []error{eventlog.ErrSyntax, eventlog.ErrEntry, eventlog.ErrTorn, eventlog.ErrLimit} {
			require.Equal(t, c == tt.category, errors.Is(err, c))
		}
	}
}

func TestTheLongestLineIsWrittenAndRead(t *testing.T) {
	e := eventlog.Entry{Timestamp: 1, Name: strings.Repeat("x", eventlog.DefaultMaxLine-27)}
	text, err := eventlog.AppendEntry([]byte("before"), e)
	require.NoError(t, err)
	line := strings.TrimPrefix(string(text), "before")
	require.Len(t, line, eventlog.DefaultMaxLine+1)
	require.Equal(t, e.Name, parse(t, line).Name)
	e.Name += "x"
	_, err = eventlog.AppendEntry(nil, e)
	require.ErrorIs(t, err, eventlog.ErrLimit)
}

// parse returns the entry of a line that is fine.
func parse(t *testing.T, line string) eventlog.Entry {
	e, err := eventlog.Parse([]byte(line))
	require.NoError(t, err)
	return e
}

func requireWritten(t *testing.T, want string, e eventlog.Entry) {
	t.Helper()
	line, err := eventlog.AppendEntry(nil, e)
	require.NoError(t, err)
	require.Equal(t, want+"\n", string(line))
}

func TestWhatWasReadIsWrittenInItsForm(t *testing.T) {
	for _, line := range []string{
		`{"timestamp":42,"name":"x"}`,
		`{"timestamp":42.0,"name":"x"}`,
		`{"timestamp":9007199254740993,"name":"x"}`,
		`{"timestamp":9223372036854775807,"name":"x","context":{}}`,
		`{"name":"x","timestamp":42}`,
		`{"context":{"a": [1,  2]},"name":"x","timestamp":42.5}`,
		`{"foo":{"a": [1]},"timestamp":1.0,"name":"x"}`,
		`{"timestamp":1.0,"name":"x","":0,"context":{},"é\"":null}`,
		`{"timestamp":1.0,"context":{},"name":"x"}`,
	} {
		requireWritten(t, line, parse(t, line))
		requireWritten(t, line, parse(t, line).Clone())
	}
	for line, want := range map[string]string{
		`{"timestamp":-0.1e2,"name":"x"}`:                      "",
		`{ "timestamp": 1e3, "name": "x" }`:                    `{"timestamp":1000.0,"name":"x"}`,
		`{"na\u006de":"\u0078","timestamp":1, "o\u0074": [ ]}`: `{"name":"x","timestamp":1,"ot":[ ]}`,
	} {
		if want == "" {
			_, err := eventlog.Parse([]byte(line))
			require.Error(t, err)
			continue
		}
		requireWritten(t, want, parse(t, line))
	}
}

func TestAFieldThatWasSetIsWritten(t *testing.T) {
	const line = `{"other":[1],"name":"x","timestamp":42}`
	e := parse(t, line)
	e.Timestamp = 43
	requireWritten(t, `{"other":[1],"name":"x","timestamp":43.0}`, e)
	e.Timestamp = 42
	requireWritten(t, line, e)
	e.Name = "y\n"
	requireWritten(t, `{"other":[1],"name":"y\n","timestamp":42}`, e)
	e.Context = []byte("{\n}")
	requireWritten(t, `{"other":[1],"name":"y\n","timestamp":42,"context":{}}`, e)

	e = parse(t, `{"context":{"a":1},"name":"x","timestamp":42,"other":1}`)
	e.Context = []byte(`{"b":2}`)
	requireWritten(t, `{"context":{"b":2},"name":"x","timestamp":42,"other":1}`, e)
	e.Context = nil
	requireWritten(t, `{"name":"x","timestamp":42,"other":1}`, e)
	e.Name = ""
	_, err := eventlog.AppendEntry(nil, e)
	require.EqualError(t, err, "eventlog: name: must not be empty")

	built := eventlog.Entry{Timestamp: 42, Name: "x", Context: []byte(`{"b":2}`)}
	requireWritten(t, `{"timestamp":42.0,"name":"x","context":{"b":2}}`, built)
}

func TestAnEntryWhoseLineWasOverwrittenIsRefused(t *testing.T) {
	for _, now := range []string{`#{"other":1,"name":"x","timestamp":1}`, `{"other":1,"name":"x","timestamp":1`, `{"other":1,"nume":"x","timestamp":1}`, `{"other":1,"name":"x","timestomp":1}`} {
		line := []byte(`{"other":1,"name":"x","timestamp":1}`)
		e, err := eventlog.Parse(line)
		require.NoError(t, err)
		for i := range line {
			line[i] = ' '
		}
		copy(line, now)
		out, err := eventlog.AppendEntry([]byte("#"), e)
		require.ErrorIs(t, err, eventlog.ErrEntry)
		require.Equal(t, "#", string(out))
	}
}

// TestACloneSharesNoMemory sets every field by reflection, so that a field that
// is added later is not forgotten.
func TestACloneSharesNoMemory(t *testing.T) {
	var e eventlog.Entry
	v := reflect.ValueOf(&e).Elem()
	for i := range v.NumField() {
		f := reflect.NewAt(v.Field(i).Type(), unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem()
		switch f.Kind() {
		case reflect.Float64:
			f.SetFloat(1.5)
		case reflect.Int64:
			f.SetInt(7)
		case reflect.String:
			f.SetString("x")
		case reflect.Slice:
			f.SetBytes([]byte("abc"))
		default:
			t.Fatalf("what to do with field %s?", v.Type().Field(i).Name)
		}
	}
	c := e.Clone()
	require.Equal(t, e, c)
	cv := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Slice {
			require.NotEqual(t, v.Field(i).Pointer(), cv.Field(i).Pointer(), v.Type().Field(i).Name)
		}
	}
	require.Equal(t, eventlog.Entry{}, eventlog.Entry{}.Clone())
}
