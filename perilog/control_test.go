package perilog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
)

func TestAControlLineIsRead(t *testing.T) {
	long := `perilog-control:{"version":1,"note":"` + strings.Repeat("x", maxControl)
	long = long[:maxControl-2] + `"}`
	for _, c := range []struct{ line, failed, released, note string }{
		{`perilog-control:{"version":1}`, "none", "none", ""},
		{"perilog-control: {\"version\":1,\"failed\":\"3\",\"note\":\"gpu 2 is gone\"}\n", "3", "none", "gpu 2 is gone"},
		{"perilog-control:\t{ \"failed\" : \"0-2,16777216\" , \"version\" : 1 } \r\n", "0-2,16777216", "none", ""},
		{`perilog-control:{"version":1,"released":"[1-2]","other":[{"x":null}]}`, "none", "1-2", ""},
		{`perilog-control:{"released":"7","failed":"8","version":1,"note":"a\nb"}`, "8", "7", "a\nb"},
		{`perilog-control:{"version":1,"failed":true}`, "self", "none", ""},
		{`perilog-control:{"version":1,"failed":false,"note":""}`, "none", "none", ""},
		{`perilog-control:{"version":1,"Failed":"x","progress":0.5}`, "none", "none", ""},
		{long, "none", "none", long[len(`perilog-control:{"version":1,"note":"`) : maxControl-2]},
	} {
		got, ok, err := parseControl([]byte(c.line))
		require.NoError(t, err, c.line)
		require.True(t, ok)
		failed, released := "none", "none"
		if got.Self {
			failed = "self"
		}
		if got.Failed != nil {
			failed = got.Failed.String()
		}
		if got.Released != nil {
			released = got.Released.String()
		}
		require.Equal(t, []string{c.failed, c.released, c.note}, []string{failed, released, got.Note}, c.line)
	}
}

func TestALineThatIsNotAControlLineIsPlainOutput(t *testing.T) {
	for _, line := range []string{
		"", "\n", "hello", " perilog-control:{\"version\":1}", "perilog-contro", "Perilog-control:{\"version\":1}",
		`x perilog-control:{"version":1}`, strings.Repeat("x", 2*maxControl),
	} {
		got, ok, err := parseControl([]byte(line))
		require.NoError(t, err)
		require.False(t, ok)
		require.Zero(t, got)
	}
}

func TestAControlLineThatIsNotUnderstoodSaysWhere(t *testing.T) {
	for line, text := range map[string]string{
		``:                                  "offset 16: unexpected end",
		`{}`:                                "version: offset 16: key is missing",
		`{"failed":"1"}`:                    "version: offset 16: key is missing",
		`[1]`:                               "offset 16: must be an object",
		`{"version":2}`:                     "version: offset 27: must be 1",
		`{"version":1.0}`:                   "version: offset 27: must be 1",
		`{"version":"1"}`:                   "version: offset 27: must be 1",
		`{"version":0,"failed":3}`:          "version: offset 27: must be 1",
		`{"version":1,"version":1}`:         `offset 29: duplicate key "version"`,
		`{"version":1,"failed":""}`:         "failed: offset 38: must not be empty",
		`{"version":1,"failed":"[]"}`:       "failed: offset 38: must not be empty",
		`{"version":1,"failed":3}`:          "failed: offset 38: must be true, false or an idset of ranks",
		`{"version":1,"failed":null}`:       "failed: offset 38: must be true, false or an idset of ranks",
		`{"version":1,"failed":"3,1"}`:      `failed: offset 38: idset: syntax error: offset 2: not above the ids before it in "1"`,
		`{"version":1,"failed":"16777217"}`: `failed: offset 38: idset: id out of range: offset 0: "16777217" is above 16777216`,
		`{"version":1,"released":true}`:     "released: offset 40: must be a string",
		`{"version":1,"released":""}`:       "released: offset 40: must not be empty",
		`{"version":1,"note":null}`:         "note: offset 36: must be a string",
		`{"version":1} x`:                   `offset 30: text after the value: byte "x"`,
		`{"version":1,"note":"` + strings.Repeat("x", maxControl) + `"}`: "longer than 4096 bytes",
	} {
		got, ok, err := parseControl([]byte(ControlPrefix + line))
		require.True(t, ok, "it has the prefix")
		require.Zero(t, got)
		require.ErrorIs(t, err, errControl)
		require.EqualError(t, err, "bad control line: "+text, line)
	}
}

// FuzzParseControl: no panic, a line with the prefix is understood or refused
// with a place in it, and what is read reads back when it is written.
func FuzzParseControl(f *testing.F) {
	for _, seed := range []string{
		`{"version":1,"failed":"3-5","note":"gpu 2 is gone"}`, `{"version":1,"failed":true}`, `{"version":1,"released":"0-7"}`,
		`{"version":2,"failed":""}`, `{"version":1,"progress":1e308}`, " {\"version\":1}\r\n", `{"version":1`, `{"note":"\ud800","version":1}`,
	} {
		f.Add([]byte(ControlPrefix + seed))
	}
	f.Add([]byte("plain"))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, ok, err := parseControl(line)
		require.Equal(t, strings.HasPrefix(string(line), ControlPrefix), ok)
		if err != nil {
			require.ErrorIs(t, err, errControl)
			require.LessOrEqual(t, len(err.Error()), 512)
			require.Zero(t, c)
			return
		}
		if !ok {
			require.Zero(t, c)
			return
		}
		require.LessOrEqual(t, len(line), maxControl)
		require.False(t, c.Self && c.Failed != nil)
		out := []byte(ControlPrefix + `{"version":1`)
		if c.Self {
			out = append(out, `,"failed":true`...)
		}
		if c.Failed != nil {
			require.False(t, c.Failed.IsEmpty())
			out = append(out, `,"failed":"`+c.Failed.String()+`"`...)
		}
		if c.Released != nil {
			require.False(t, c.Released.IsEmpty())
			out = append(out, `,"released":"`+c.Released.String()+`"`...)
		}
		out = append(jsonobj.AppendString(append(out, `,"note":`...), c.Note), '}')
		if len(out) > maxControl {
			return // the canonical text can be longer
		}
		again, ok, err := parseControl(out)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, c.Note, again.Note)
		require.Equal(t, c.Self, again.Self)
		require.Equal(t, c.Failed == nil, again.Failed == nil)
		require.True(t, c.Failed == nil || c.Failed.Equal(again.Failed))
		require.Equal(t, c.Released == nil, again.Released == nil)
		require.True(t, c.Released == nil || c.Released.Equal(again.Released))
	})
}
