package logline_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/logline"
)

func TestCutTakesTheUsualFormApart(t *testing.T) {
	for line, want := range map[string]logline.Line{
		`{"timestamp":1.5,"name":"start"}`:                          {Time: 1.5, Name: []byte("start")},
		`{"timestamp":15,"name":""}`:                                {Time: 15, Integer: 15, Name: []byte{}},
		`{"timestamp":-1e3,"name":"a","context":{}}`:                {Time: -1000, Name: []byte("a"), Context: []byte("{}")},
		`{"timestamp":1.5,"name":"\u0041","context":{"a":1} }`:      {Time: 1.5, Name: []byte(`\u0041`), Context: []byte(`{"a":1} `)},
		`{"timestamp":1.5,"name":"a","context":{}`:                  {Time: 1.5, Name: []byte("a"), Context: []byte("{")},
		`{"timestamp":1.5,"name":"a","context":{},"context":{"b"}}`: {Time: 1.5, Name: []byte("a"), Context: []byte(`{},"context":{"b"}`)},
	} {
		got, ok := logline.Cut([]byte(line))
		require.True(t, ok, line)
		require.Equal(t, want, got)
	}
	for _, line := range []string{
		``, `{}`, `{"timestamp":`, `{"timestamp":1.5`, `{"timestamp":1.5}`, `{"timestamp":1.5,"name":"`, `{"timestamp":1.5,"name":"a"`, ` {"timestamp":1.5,"name":"a"}`,
		`{"timestamp":1.5,"name":"a"} `, `{"timestamp":1.5,"name":"a"},`, `{"timestamp":01,"name":"a"}`, `{"timestamp":"1","name":"a"}`, `{"timestamp":1e999,"name":"a"}`,
		`{"timestamp":99999999999999999999,"name":"a"}`, `{"timestamp":1.5,"name":1}`, `{"name":"a","timestamp":1.5}`, `{"timestamp": 1.5,"name":"a"}`,
		`{"timestamp":1.5,"name":"a","context":{`, `{"timestamp":1.5,"name":"a","context":}`, `{"timestamp":1.5,"name":"a","context":[]}`, `{"timestamp":1.5,"name":"a","context": {}}`,
	} {
		_, ok := logline.Cut([]byte(line))
		require.False(t, ok, line)
	}
}

func TestNameIsPlainASCII(t *testing.T) {
	for name, plain := range map[string]bool{"a": true, "a b~": true, "": false, `a\n`: false, "a\x1f": false, "é": false, "\x7f": true, `a"`: false} {
		require.Equal(t, plain, logline.IsPlain(name), "%q", name)
		require.Equal(t, plain, logline.IsPlain([]byte(name)), "%q", name)
	}
}

// compact returns a value without white space, and nothing without a value.
func compact(t *testing.T, value []byte) string {
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, append(append([]byte{'['}, value...), ']')))
	return b.String()
}

// FuzzCut: a line that was taken apart is one JSON object of these values, if its name
// and its context are what the caller checks.
func FuzzCut(f *testing.F) {
	f.Add([]byte(`{"timestamp":1.5,"name":"start"}`))
	f.Add([]byte(`{"timestamp":1600000000,"name":"finish","context":{"status":0} }`))
	f.Add([]byte(`{"timestamp":1.5,"name":"a","context":{"k":1E800} }`)) // no float64
	f.Fuzz(func(t *testing.T, line []byte) {
		l, ok := logline.Cut(line)
		if !ok || !logline.IsPlain(l.Name) || l.Context != nil && !json.Valid(l.Context) {
			return
		}
		var got struct {
			Timestamp float64
			Name      string
			Context   json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &got), "%q", line)
		require.Equal(t, string(l.Name), got.Name)
		require.Equal(t, math.Float64bits(l.Time), math.Float64bits(got.Timestamp))
		require.Equal(t, compact(t, l.Context), compact(t, got.Context))
		require.LessOrEqual(t, len(got.Context), len(l.Context))
	})
}

func TestNamesAreFoundAtTheirPlaces(t *testing.T) {
	list := []string{"", "submit", "a", "b", "c", "axa", "aya"}
	for _, more := range []string{"start", "prolog-start", "epilog-start", "x\xff"} {
		for i := range 20 {
			list = append(list, more+string(rune('a'+i)))
		}
	}
	x := logline.NewNames(list...)
	for place, name := range list[1:] {
		same, at, ok := logline.Find(&x, []byte(name))
		require.True(t, ok)
		require.Equal(t, name, same)
		require.Equal(t, place+1, at)
	}
	for _, name := range []string{"", "submi", "submitt", "Submit", "axb"} {
		_, at, ok := logline.Find(&x, name)
		require.False(t, ok)
		require.Zero(t, at)
	}
}
