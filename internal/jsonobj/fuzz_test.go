package jsonobj_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
)

// Whatever the text is, a fault is in it, and what was kept is the same after
// writing and reading.
func FuzzRead(f *testing.F) {
	f.Add(`{"id":7,"name":"a\nb","open":true,"width":1e3,"tags":["x"],"even":"12","books":[{"title":"é","pages":3}],"k":[1,2]}`)
	f.Add(`{"id":1,"name":"n","books":[{"title":"t"},{"lent to":0}]}`)
	f.Add(nested)
	f.Add(`{"i\u0064":1,"name":"\ud83d\ude00","":0}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readRecord(text)
		if err != nil {
			fault := err.(*jsonobj.Fault)
			require.True(t, 0 <= fault.Offset && fault.Offset <= len(text))
			require.LessOrEqual(t, len(fault.Path), 128)
			require.Equal(t, fault, func() error { _, err := readRecord(text); return err }())
			return
		}
		require.NoError(t, jsonobj.Check([]byte(text), 0))
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &members))
		var name string
		require.NoError(t, json.Unmarshal(members["name"], &name))
		require.Equal(t, name, s.name)
		w := jsonobj.Write(nil, 0)
		w.Keep(s.kept)
		w.Int("id", s.id)
		w.Text("name", s.name)
		w.Texts("tags", s.tags)
		out, err := w.End()
		require.NoError(t, err)
		again, err := readRecord(string(out))
		require.NoError(t, err)
		require.Equal(t, record{id: s.id, name: s.name, tags: s.tags, kept: s.kept}, again)
	})
}
