package jsonobj_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
)

func TestWriter(t *testing.T) {
	w := jsonobj.Write([]byte("before "), 0)
	w.Int("i", -3)
	w.FloatIn("f", math.Copysign(0, -1), 0)
	w.Bool("b", true)
	w.Text(`t"`, "a\nb")
	w.Texts("l", []string{"x", ""})
	w.Texts("none", nil)
	w.Raw("r", []byte(` [1, {"a": 2}] `))
	w.Open("o")
	w.Int("x", 1)
	w.Open("empty")
	w.Close()
	w.Close()
	w.Key("own")
	w.Out = append(w.Out, "null"...)
	w.Keep(json.RawMessage(`{"k": [1, 2], "é": 1.50}`))
	out, err := w.End()
	require.NoError(t, err)
	require.Equal(t, `before {"i":-3,"f":0.0,"b":true,"t\"":"a\nb","l":["x",""],"none":[],"r":[1,{"a":2}],`+
		`"o":{"x":1,"empty":{}},"own":null,"k":[1,2],"é":1.50}`, string(out))

	w = jsonobj.Write(nil, 0)
	w.Keep(nil)
	out, err = w.End()
	require.NoError(t, err)
	require.Equal(t, "{}", string(out))
}

func TestWriterFaults(t *testing.T) {
	for fault, write := range map[string]func(w *jsonobj.Writer){
		`t: text is not valid UTF-8`:      func(w *jsonobj.Writer) { w.Text("t", "\xff") },
		`l: text is not valid UTF-8`:      func(w *jsonobj.Writer) { w.Texts("l", []string{"", "\xff"}) },
		`"\xff": text is not valid UTF-8`: func(w *jsonobj.Writer) { w.Int("\xff", 1) },
		`f: must be a finite number`:      func(w *jsonobj.Writer) { w.FloatIn("f", math.Inf(1), 0) },
		`n: must be a finite number`:      func(w *jsonobj.Writer) { w.FloatIn("n", math.NaN(), 0) },
		`i: value out of range`:           func(w *jsonobj.Writer) { w.IntIn("i", 7, 7, 8); w.IntIn("i", 8, 7, 8); w.IntIn("i", 9, 7, 8) },
		`j: value out of range`:           func(w *jsonobj.Writer) { w.IntIn("j", 6, 7, 8) },
		`g: value out of range`:           func(w *jsonobj.Writer) { w.FloatIn("f", 7, 7); w.FloatIn("g", math.Inf(-1), 7) },
		`h: must be a finite number`:      func(w *jsonobj.Writer) { w.FloatIn("h", math.NaN(), 7) },
		`r: unexpected byte "x"`:          func(w *jsonobj.Writer) { w.Raw("r", []byte("x")) },
		`r: unexpected end`:               func(w *jsonobj.Writer) { w.Raw("r", nil) },
		`deep: nested too deep`:           func(w *jsonobj.Writer) { w.Open("o"); w.Raw("deep", []byte(`[[1]]`)) },
		`nested too deep`:                 func(w *jsonobj.Writer) { w.Keep(json.RawMessage(`{"a":[[[1]]]}`)) },
		`must be an object`:               func(w *jsonobj.Writer) { w.Keep(json.RawMessage(`[]`)) },
		`must be even`:                    func(w *jsonobj.Writer) { w.Fail("", errOdd) },
	} {
		w := jsonobj.Write([]byte("before"), 3)
		write(&w)
		w.Fail("later", errors.New("later"))
		out, err := w.End()
		require.EqualError(t, err, fault)
		require.Equal(t, "before", string(out))
	}
}
