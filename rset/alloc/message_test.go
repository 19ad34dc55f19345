package alloc_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// maxBytes is the largest number of bytes of a line or a payload.
const maxBytes = 64 << 20

// decoders parses each message from a payload, and tells whether it is the zero one.
func decoders() map[string]func(text string) (zero bool, err error) {
	out := map[string]func(string) (bool, error){}
	out["hello"] = try[alloc.Hello]()
	out["hellojob"] = try[alloc.HelloResponse]()
	out["ready"] = try[alloc.Ready]()
	out["readyanswer"] = try[alloc.ReadyResponse]()
	out["request"] = try[alloc.Request]()
	out["answer"] = try[alloc.Response]()
	out["cancel"] = try[alloc.Cancel]()
	out["prioritize"] = try[alloc.Prioritize]()
	out["expiration"] = try[alloc.Expiration]()
	out["free"] = try[alloc.Free]()
	out["feasibility"] = try[alloc.Feasibility]()
	return out
}

func try[M alloc.Payload]() func(string) (bool, error) {
	return func(text string) (bool, error) {
		m, err := reads[M](text)
		return reflect.ValueOf(m).IsZero(), err
	}
}

// Each line: the message, what is wrong, where, and the payload with ^ in front
// of the place.
func TestRefusedPayloadsNameKeyAndOffset(t *testing.T) {
	const r = `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}]}}`
	for _, c := range []struct{ message, key, want, text string }{
		{"hello", "partial-ok", "must be true or false", `{"partial-ok":^1}`},
		{"hello", "partial-ok", "must be true or false", `{"partial-ok": ^null }`},
		{"hello", "", "must be an object", `^null`},
		{"hello", "", "must be an object", ` ^[]`},
		{"hello", "", "duplicate key", `{"partial-ok":true,^"partial-ok":true}`},
		{"hello", "", "", `{"partial-ok":true}^x`},
		{"hello", "", "", `{"partial-ok":true^`},
		{"hellojob", "", "must be an object", `^[]`},
		{"hellojob", "id", "is missing", `^{"priority":1,"userid":1}`},
		{"hellojob", "priority", "is missing", `^{"id":1,"userid":1}`},
		{"hellojob", "userid", "is missing", `^{"id":1,"priority":1}`},
		{"hellojob", "id", "must be a", `{"priority":1,"userid":1,"id":^"1"}`},
		{"hellojob", "id", "must be a", `{"priority":1,"userid":1,"id":^1.0}`},
		{"hellojob", "id", "must be a", `{"priority":1,"userid":1,"id":^1e3}`},
		{"hellojob", "id", "must be a", `{"priority":1,"userid":1,"id":^null}`},
		{"hellojob", "id", "must be ", `{"priority":1,"userid":1,"id":^-1}`},
		{"hellojob", "", "number out of range", `{"priority":1,"userid":1,"id":^9223372036854775808}`},
		{"hellojob", "priority", "must be ", `{"id":1,"priority":^4294967296,"userid":1}`},
		{"hellojob", "priority", "must be ", `{"id":1,"priority":^-1,"userid":1}`},
		{"hellojob", "priority", "must be a", `{"id":1,"priority":^16.0,"userid":1}`},
		{"hellojob", "userid", "must be ", `{"id":1,"priority":1,"userid":^4294967296}`},
		{"hellojob", "t_submit", "must be ", `{"id":1,"priority":1,"userid":1,"t_submit":^-1.5}`},
		{"hellojob", "t_submit", "must be a", `{"id":1,"priority":1,"userid":1,"t_submit":^"5"}`},
		{"hellojob", "R", "must be a", `{"id":1,"priority":1,"userid":1,"R":^null}`},
		{"hellojob", "R.execution", "is missing", `{"id":1,"priority":1,"userid":1,"R":^{"version":1}}`},
		{"hellojob", "R", "names no resource", `{"id":1,"priority":1,"userid":1,"R":^{"version":1,"execution":{"R_lite":[]}}}`},
		{"hellojob", "free", "must be a", `{"id":1,"priority":1,"userid":1,"free":^7}`},
		{"hellojob", "free", `offset 2: unexpected byte in "0-x"`, `{"id":1,"priority":1,"userid":1,"free":^"0-x"}`},
		{"hellojob", "free", `offset 0: "16777217" is above 16777216`, `{"id":1,"priority":1,"userid":1,"free":^"16777217"}`},
		{"hellojob", "free", "names ranks that R does not have", `{"id":1,"priority":1,"userid":1,"free":^"1","R":` + r + `}`},
		{"ready", "", "must be an object", `^[]`},
		{"ready", "mode", "is missing", `^{"limit":1}`},
		{"ready", "mode", "must be a", `{"mode":^1}`},
		{"ready", "mode", `must be "unlimited" or "limited"`, `{"mode":^"Limited","limit":1}`},
		{"ready", "mode", `must be "unlimited" or "limited"`, `{"mode":^""}`},
		{"ready", "limit", "is missing", `^{"mode":"limited"}`},
		{"ready", "limit", "must be ", `{"mode":"limited","limit":^0}`},
		{"ready", "limit", "must be ", `{"mode":"limited","limit":^-1}`},
		{"ready", "limit", "must be ", `{"mode":"limited","limit":^2147483648}`},
		{"readyanswer", "count", "is missing", `^{}`},
		{"readyanswer", "count", "must be ", `{"count":^-1}`},
		{"request", "id", "is missing", `^{"priority":1,"userid":1,"jobspec":{}}`},
		{"request", "priority", "is missing", `^{"id":1,"userid":1,"jobspec":{}}`},
		{"request", "userid", "is missing", `^{"id":1,"priority":1,"jobspec":{}}`},
		{"request", "t_submit", "must be ", `{"id":1,"priority":1,"userid":1,"t_submit":^-1e-9,"jobspec":{}}`},
		{"request", "jobspec", "is missing", `^{"id":1,"priority":1,"userid":1,"t_submit":5}`},
		{"request", "jobspec", "must be a", `{"id":1,"priority":1,"userid":1,"jobspec":^"{}"}`},
		{"answer", "id", "is missing", `^{"type":3}`},
		{"answer", "type", "is missing", `^{"id":1}`},
		{"answer", "type", "must be a", `{"id":1,"type":^"0"}`},
		{"answer", "R", "is missing", `^{"id":1,"type":0}`},
		{"answer", "R", "names no resource", `{"id":1,"type":0,"R":^{"version":1,"execution":{"R_lite":[]}}}`},
		{"answer", "annotations", "must be a", `{"id":1,"type":0,"R":` + r + `,"annotations":^null}`},
		{"answer", "note", "does not belong to this type of response", `{"id":1,"type":0,"R":` + r + `,"note":^""}`},
		{"answer", "annotations", "is missing", `^{"id":1,"type":1}`},
		{"answer", "annotations", "must be a", `{"id":1,"type":1,"annotations":^[]}`},
		{"answer", "R", "does not belong to this type of response", `{"id":1,"type":1,"annotations":{},"R":^` + r + `}`},
		{"answer", "note", "must be a", `{"id":1,"type":2,"note":^null}`},
		{"answer", "annotations", "does not belong to this type of response", `{"id":1,"type":2,"annotations":^{}}`},
		{"cancel", "id", "is missing", `^{"ID":1}`},
		{"prioritize", "jobs", "is missing", `^{}`},
		{"prioritize", "jobs", "must be a", `{"jobs":^{}}`},
		{"prioritize", "jobs[0]", "must be a", `{"jobs":[^1]}`},
		{"prioritize", "jobs[1]", "must be an id and a priority", `{"jobs":[[1,2],^[1]]}`},
		{"prioritize", "jobs[0]", "must be an id and a priority", `{"jobs":[^[1,2,3]]}`},
		{"prioritize", "jobs[0][0]", "must be a", `{"jobs":[[^"1",2]]}`},
		{"prioritize", "jobs[0][1]", "must be ", `{"jobs":[[1, ^4294967296]]}`},
		{"prioritize", "jobs[0][0]", "must be ", `{"jobs":[[^-1,2]]}`},
		{"expiration", "id", "is missing", `^{"expiration":1}`},
		{"expiration", "expiration", "is missing", `^{"id":1}`},
		{"expiration", "expiration", "must be ", `{"id":1,"expiration":^-1}`},
		{"free", "id", "is missing", `^{"R":` + r + `}`},
		{"free", "R", "is missing", `^{"id":1,"final":true}`},
		{"free", "R.version", "must be 1", `{"id":1,"R":{"version":^2,"execution":{"R_lite":[]}}}`},
		{"free", "final", "must be true or false", `{"id":1,"R":` + r + `,"final":^1}`},
		{"feasibility", "jobspec", "is missing", `^{}`},
		{"feasibility", "jobspec", "must be a", `{"jobspec":^[]}`},
	} {
		t.Run(c.message+"_"+c.text, func(t *testing.T) {
			offset := strings.IndexByte(c.text, '^')
			zero, err := decoders()[c.message](strings.Replace(c.text, "^", "", 1))
			require.ErrorIs(t, err, alloc.ErrMessage)
			var fault *jsonobj.Fault
			require.ErrorAs(t, err, &fault)
			require.Equal(t, c.key, fault.Path)
			require.Equal(t, offset, fault.Offset)
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "alloc: invalid message: "), err)
			require.NotContains(t, err.Error(), "rset:")
			require.True(t, zero, "an error comes with the zero message")
		})
	}
}

// And a key that occurs twice is refused even if it is unknown, and so is
// every text that ends too early.
func TestUnknownKeysAreIgnoredInEveryMessage(t *testing.T) {
	for name, text := range map[string]string{
		"hello":       `{"partial-ok":false,`,
		"hellojob":    `{"id":1,"priority":1,"userid":1,`,
		"ready":       `{"mode":"unlimited",`,
		"readyanswer": `{"count":1,`,
		"request":     `{"id":1,"priority":1,"userid":1,"jobspec":{},`,
		"answer":      `{"id":1,"type":3,`,
		"cancel":      `{"id":1,`,
		"prioritize":  `{"jobs":[],`,
		"expiration":  `{"id":1,"expiration":1,`,
		"free":        `{"id":1,"R":` + textR + `,`,
		"feasibility": `{"jobspec":{},`,
	} {
		_, err := decoders()[name](text + `"Id":"x","":null,"more":[1,{"id":"y"}]}`)
		require.NoError(t, err, name)
		_, err = decoders()[name](text + `"more":1,"more":2}`)
		require.ErrorIs(t, err, alloc.ErrMessage, name)
		for i := range text[:len(text)-1] {
			zero, err := decoders()[name](text[:i])
			if i > 0 || name != "hello" {
				require.ErrorIs(t, err, alloc.ErrMessage, "%s cut at %d", name, i)
				require.True(t, zero)
			}
		}
	}
}

func TestTextsThatAreTooLongAreRefused(t *testing.T) {
	text := `{"id":1` + strings.Repeat(" ", maxBytes) + `}`
	for name, decode := range decoders() {
		zero, err := decode(text)
		require.ErrorIs(t, err, alloc.ErrLimit, name)
		require.True(t, zero)
	}
	_, err := alloc.ParseLine([]byte(text))
	require.EqualError(t, err, "alloc: limit exceeded: 67108872 bytes, at most 67108864 are allowed")
	b, err := alloc.Append([]byte("x"), alloc.Feasibility{Jobspec: json.RawMessage(`{"a":"` + text[7:len(text)-1] + `"}`)})
	require.ErrorIs(t, err, alloc.ErrLimit)
	require.Equal(t, "x", string(b))
	b, err = alloc.Append([]byte("x"), alloc.Response{Type: alloc.ResponseDeny, Note: text})
	require.ErrorIs(t, err, alloc.ErrLimit)
	require.Equal(t, "x", string(b))
}

// What is written is read again: whatever would not be is refused.
func TestValuesThatCannotBeReadAreNotWritten(t *testing.T) {
	r, empty, spec := parseR(t, textR), new(rset.R), json.RawMessage(`{}`)
	nan, inf := eventlog.Timestamp(math.NaN()), eventlog.Timestamp(math.Inf(1))
	deep := func(n int) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1))
	}
	for _, c := range []struct {
		key string
		m   alloc.Message
	}{
		{"id", alloc.Cancel{ID: 1 << 63}},
		{"id", alloc.HelloResponse{JobInfo: alloc.JobInfo{ID: 1 << 63}}},
		{"id", alloc.Expiration{ID: 1 << 63}},
		{"id", alloc.Free{ID: 1 << 63}},
		{"id", alloc.Response{ID: 1 << 63, Type: alloc.ResponseDeny}},
		{"id", alloc.Request{JobInfo: alloc.JobInfo{ID: 1 << 63}, Jobspec: spec}},
		{"jobs[1][0]", alloc.Prioritize{Jobs: []alloc.Priority{{1, 1}, {1 << 63, 1}}}},
		{"t_submit", alloc.Request{JobInfo: alloc.JobInfo{Submit: -1}, Jobspec: spec}},
		{"t_submit", alloc.HelloResponse{JobInfo: alloc.JobInfo{Submit: nan}}},
		{"expiration", alloc.Expiration{Expiration: inf}},
		{"expiration", alloc.Expiration{Expiration: -1}},
		{"jobspec", alloc.Request{}},
		{"jobspec", alloc.Request{Jobspec: json.RawMessage(`[]`)}},
		{"jobspec", alloc.Feasibility{Jobspec: json.RawMessage(`{"a":1,"a":1}`)}},
		{"jobspec", alloc.Feasibility{Jobspec: deep(2047)}},
		{"limit", alloc.Ready{Limit: -1}},
		{"type", alloc.Response{Type: 4}},
		{"R", alloc.Response{Type: alloc.ResponseSuccess}},
		{"R", alloc.Response{Type: alloc.ResponseSuccess, R: empty}},
		{"R", alloc.Response{Type: alloc.ResponseDeny, R: r}},
		{"note", alloc.Response{Type: alloc.ResponseSuccess, R: r, Note: "x"}},
		{"note", alloc.Response{Type: alloc.ResponseDeny, Note: "\xff"}},
		{"annotations", alloc.Response{Type: alloc.ResponseAnnotate}},
		{"annotations", alloc.Response{Type: alloc.ResponseCancel, Annotations: spec}},
		{"annotations", alloc.Response{Type: alloc.ResponseAnnotate, Annotations: json.RawMessage(`1`)}},
		{"R", alloc.HelloResponse{R: empty}},
		{"free", alloc.HelloResponse{R: r, Free: idset.Of(4)}},
		{"free", alloc.HelloResponse{Free: idset.Of(rset.MaxRank + 1)}},
	} {
		b, err := alloc.Append([]byte("x"), c.m)
		require.ErrorIs(t, err, alloc.ErrMessage, "%#v", c.m)
		require.Equal(t, "x", string(b))
		var fault *jsonobj.Fault
		require.ErrorAs(t, err, &fault)
		require.Equal(t, c.key, fault.Path)
		require.NotContains(t, err.Error(), "offset")
		b, err = alloc.AppendMessage([]byte("x"), alloc.TopicAlloc, c.m)
		require.ErrorIs(t, err, alloc.ErrMessage)
		require.Equal(t, "x", string(b))
	}
	line, err := alloc.AppendMessage(nil, alloc.TopicFeasibility, alloc.Feasibility{Jobspec: deep(2046)})
	require.NoError(t, err, "as deep as a line allows")
	l, err := alloc.ParseLine(line)
	require.NoError(t, err)
	_, err = reads[alloc.Feasibility](string(l.Payload))
	require.NoError(t, err)
	_, err = reads[alloc.Feasibility](`{"jobspec":` + string(deep(2047)) + `}`)
	require.ErrorContains(t, err, "nested too deep")
}

// A jobspec, annotations or an R with line breaks are written on one line.
func TestWhatIsWrittenHasNoLineBreaks(t *testing.T) {
	m, err := reads[alloc.Request]("{\"id\":1,\"priority\":1,\"userid\":1,\"jobspec\":{\n\t\"a\" : [ 1 , 2 ]\r\n}}")
	require.NoError(t, err)
	require.Equal(t, `{"a":[1,2]}`, string(m.Jobspec))
	b, err := alloc.Append(nil, alloc.Feasibility{Jobspec: json.RawMessage("{\n}")})
	require.NoError(t, err)
	require.Equal(t, `{"jobspec":{}}`, string(b))
}

// R keeps keys that it does not know, as deep as its own limit: deeper than
// what a line can carry.
func TestAnRThatIsTooDeepForALineIsNotWritten(t *testing.T) {
	withDepth := func(n int) *rset.R {
		deep := strings.Repeat("[", n-1) + strings.Repeat("]", n-1)
		return parseR(t, strings.Replace(textR, `"version":1`, `"version":1,"more":`+deep, 1))
	}
	_, err := alloc.Append(nil, alloc.Free{R: withDepth(2047)})
	require.ErrorContains(t, err, "alloc: invalid message: free request: R: ")
	b, err := alloc.Append(nil, alloc.Free{R: withDepth(2046)})
	require.NoError(t, err)
	_, err = reads[alloc.Free](string(b))
	require.NoError(t, err)
}
