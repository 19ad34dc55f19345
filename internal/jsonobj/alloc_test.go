package jsonobj_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/race"
)

const nested = `{"id": 12, "final": true, "t": 1.5, "list": [{"a": 1, "with": [{"a": 2, "with": []}]}], "x": {"y": 3}}`

func sum(v jsonobj.Value) (n int64) {
	for a := v.Array(); a.Next(); {
		o := a.Value().Object()
		for o.Next() {
			switch string(o.Key()) {
			case "a":
				n += o.Int(0, 9)
			case "with":
				n += sum(o.Value())
			}
		}
		o.Require("a", "with")
	}
	return n
}

func readNested(text []byte) (n int64, err error) {
	d := jsonobj.NewDoc(text)
	var list, x jsonobj.Value
	o := d.Object()
	for o.Next() {
		switch string(o.Key()) {
		case "id":
			n += o.Int(0, 99)
		case "final":
			o.Value().Bool()
		case "t":
			o.Float(0, 2)
		case "list":
			list = o.Value()
		case "x":
			x = o.Value()
		}
	}
	o.Require("id", "list")
	n += sum(list) + x.Member("y").Int(0, 9)
	return n, d.Err()
}

func TestAllocations(t *testing.T) {
	race.Skip(t)
	text, dst, kept := []byte(nested), make([]byte, 0, 256), json.RawMessage(`{"x":{"y":1}}`)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if n, err := readNested(text); n != 18 || err != nil {
			t.Fatal(n, err)
		}
	}))
	arrays := []byte("[" + strings.Repeat("[],", 22) + "[]]")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		d := jsonobj.NewDoc(arrays)
		n := 0
		for a := d.Array(); a.Next(); {
			for in := a.Value().Array(); in.Next(); {
				t.Fatal("an empty array")
			}
			n++
		}
		if n != 23 || d.Failed() {
			t.Fatal(n, d.Err())
		}
	}))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		w := jsonobj.Write(dst, 0)
		w.Int("id", 1)
		w.Bool("final", true)
		w.FloatIn("t", 1.5, 0)
		w.Text("text", "a\nb")
		w.Raw("list", []byte("[]"))
		w.Keep(kept)
		b, err := w.End()
		if err == nil {
			_, err = readNested(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}))
}

// A text of the most values that a tape has to tell of takes a few bytes for each of
// its own, and a text without takes none.
func TestATapeIsSmall(t *testing.T) {
	race.Skip(t)
	allocated := func(text []byte) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := jsonobj.NewDoc(text)
		require.False(t, d.Root().Absent())
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc-before.TotalAlloc) / len(text)
	}
	nest := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	require.Less(t, allocated([]byte("["+strings.Repeat(nest+",", 500)+"1]")), 9)
	require.Less(t, allocated([]byte("["+strings.Repeat("[],", 500_000)+"1]")), 7)
	require.Zero(t, allocated([]byte("["+strings.Repeat(`"word",`, 500_000)+"1]")))
}
