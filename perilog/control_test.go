package perilog

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAControlLineNamesFailedRanks(t *testing.T) {
	long := `perilog-control:{"version":1,"note":"` + strings.Repeat("x", MaxControl)
	long = long[:MaxControl-2] + `"}`
	for _, c := range []struct{ line, ranks, note string }{
		{`perilog-control:{"version":1}`, "", ""},
		{"perilog-control: {\"version\":1,\"failed\":\"3\",\"note\":\"gpu 2 is gone\"}\n", "3", "gpu 2 is gone"},
		{"perilog-control:\t{ \"failed\" : \"0-2,16777216\" , \"version\" : 1 } \r\n", "0-2,16777216", ""},
		{`perilog-control:{"version":1,"failed":"[1-2]","other":[{"x":null}]}`, "1-2", ""},
		{`perilog-control:{"version":1,"note":""}`, "", ""},
		{long, "", long[len(`perilog-control:{"version":1,"note":"`) : MaxControl-2]},
	} {
		got, ok, err := ParseControl([]byte(c.line))
		require.NoError(t, err, c.line)
		require.True(t, ok)
		require.Equal(t, c.note, got.Note)
		require.Equal(t, c.ranks, got.Ranks.String())
		require.Equal(t, c.ranks == "", got.Ranks == nil)
	}
}

func TestALineThatIsNoControlLineIsPlainOutput(t *testing.T) {
	for _, line := range []string{
		"", "\n", "hello", " perilog-control:{\"version\":1}", "perilog-contro", "Perilog-control:{\"version\":1}",
		`x perilog-control:{"version":1}`,
	} {
		got, ok, err := ParseControl([]byte(line))
		require.NoError(t, err)
		require.False(t, ok)
		require.Zero(t, got)
	}
}

func TestAMalformedControlLineIsPlainOutputWithAReason(t *testing.T) {
	for _, c := range []struct {
		line   string
		offset int
		err    string
	}{
		{`perilog-control:`, 16, "perilog: control line: offset 16: unexpected end"},
		{`perilog-control:{}`, 16, "perilog: control line: offset 16: version is not 1"},
		{`perilog-control:[1]`, 16, "perilog: control line: offset 16: unexpected kind of value: want an object, not array"},
		{`perilog-control:{"version":2}`, 27, "perilog: control line: offset 27: version is not 1"},
		{`perilog-control:{"version":1.0}`, 27, "perilog: control line: offset 27: version is not 1"},
		{`perilog-control:{"version":"1"}`, 27, "perilog: control line: offset 27: version is not 1"},
		{`perilog-control:{"version":1,"version":1}`, 29, `perilog: control line: offset 29: duplicate key "version"`},
		{`perilog-control:{"version":1,"failed":""}`, 38, "perilog: control line: offset 38: failed is not an idset of ranks"},
		{`perilog-control:{"version":1,"failed":3}`, 38, "perilog: control line: offset 38: failed is not an idset of ranks"},
		{`perilog-control:{"version":1,"failed":"3,1"}`, 38, "perilog: control line: offset 38: failed is not an idset of ranks"},
		{`perilog-control:{"version":1,"failed":"16777217"}`, 38, "perilog: control line: offset 38: failed is not an idset of ranks"},
		{`perilog-control:{"version":1,"note":null}`, 36, "perilog: control line: offset 36: note is not a string"},
		{`perilog-control:{"version":1} x`, 30, `perilog: control line: offset 30: text after the value: byte "x"`},
		{`perilog-control:{"version":1,"note":"` + strings.Repeat("x", MaxControl) + `"}`, MaxControl,
			"perilog: control line: offset 4096: the line is too long"},
	} {
		got, ok, err := ParseControl([]byte(c.line))
		require.False(t, ok)
		require.Zero(t, got)
		require.ErrorIs(t, err, ErrControl)
		var e *ControlError
		require.True(t, errors.As(err, &e))
		require.Equal(t, c.offset, e.Offset, c.line)
		require.EqualError(t, err, c.err)
	}
}

// FuzzControl: no panic, a line is one or the other, and what is read is within
// limits and written again reads back.
func FuzzControl(f *testing.F) {
	f.Add([]byte(`perilog-control: {"version":1,"failed":"3-5","note":"gpu 2 is gone"}`))
	f.Add([]byte(`perilog-control:{"version":1}`))
	f.Add([]byte(`perilog-control:{"version":2,"failed":""}`))
	f.Add([]byte("plain"))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, ok, err := ParseControl(line)
		if strings.HasPrefix(string(line), ControlPrefix) != (ok || err != nil) {
			t.Fatalf("%q: %v %v", line, ok, err)
		}
		if !ok {
			require.Zero(t, c)
			if err != nil {
				var e *ControlError
				require.ErrorAs(t, err, &e)
				require.ErrorIs(t, err, ErrControl)
				require.LessOrEqual(t, e.Offset, len(line))
				require.GreaterOrEqual(t, e.Offset, len(ControlPrefix))
			}
			return
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(line), MaxControl)
		var w members
		w.out = append(w.out, `{"version":1`...)
		if c.Ranks != nil {
			require.False(t, c.Ranks.IsEmpty())
			w.text("failed", c.Ranks.String())
		}
		w.text("note", c.Note)
		again, ok, err := ParseControl(append([]byte(ControlPrefix), append(w.out, '}')...))
		if len(ControlPrefix)+len(w.out)+1 > MaxControl {
			return // the canonical text can be longer
		}
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, c.Note, again.Note)
		require.True(t, c.Ranks.Equal(again.Ranks))
		require.Equal(t, c.Ranks == nil, again.Ranks == nil)
	})
}
