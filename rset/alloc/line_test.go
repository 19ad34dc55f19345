package alloc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset/alloc"
)

func TestLinesAreReadAndWritten(t *testing.T) {
	for _, c := range []struct {
		text      string
		want      alloc.Line
		canonical string
	}{
		{
			`{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}` + "\n",
			alloc.Line{Topic: alloc.TopicHello, Payload: json.RawMessage(`{"partial-ok":true}`)}, "",
		},
		{`{"topic":"job-manager.sched-hello","errnum":61}`, alloc.Line{Topic: alloc.TopicHello, Errnum: alloc.NoData}, ""},
		{
			` { "errstr" : "no\u00e9" , "errnum":38, "topic":"sched.alloc", "more":1 } `,
			alloc.Line{Topic: alloc.TopicAlloc, Errnum: 38, Errstr: "noé"}, `{"topic":"sched.alloc","errnum":38,"errstr":"noé"}`,
		},
		{`{"topic":"sched.expiration"}`, alloc.Line{Topic: alloc.TopicExpiration}, ""},
		{
			`{"topic":"sched.expiration","errnum":0,"payload":{ }}` + "\r\n",
			alloc.Line{Topic: alloc.TopicExpiration, Payload: json.RawMessage(`{ }`)}, `{"topic":"sched.expiration","payload":{}}`,
		},
		{`{"topic":"` + strings.Repeat("a", 256) + `"}`, alloc.Line{Topic: strings.Repeat("a", 256)}, ""},
		{`{"topic":"a","errnum":1,"errstr":""}`, alloc.Line{Topic: "a", Errnum: 1}, `{"topic":"a","errnum":1}`},
	} {
		l, err := alloc.ParseLine([]byte(c.text))
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, l)
		want := c.canonical
		if want == "" {
			want = strings.TrimSpace(c.text)
		}
		b, err := l.AppendText([]byte("x"))
		require.NoError(t, err)
		require.Equal(t, "x"+want+"\n", string(b))
	}
}

func TestRefusedLinesNameKeyAndOffset(t *testing.T) {
	for _, c := range []struct{ key, want, text string }{
		{"", "unexpected end", `^`},
		{"", "must be an object", `^"sched.alloc"`},
		{"", "duplicate key", `{"topic":"a",^"topic":"b"}`},
		{"", "", `{"topic":"a"}^{"topic":"a"}`},
		{"topic", "is missing", `^{"payload":{}}`},
		{"topic", "must be a", `{"topic":^7}`},
		{"topic", "must have 1 to 256 bytes", `{"topic":^""}`},
		{"topic", "must have 1 to 256 bytes", `{"topic":^"` + strings.Repeat("a", 257) + `"}`},
		{"payload", "must be a", `{"topic":"a","payload":^null}`},
		{"payload", "must be a", `{"topic":"a","payload":^[]}`},
		{"payload", "must not come with errnum", `{"topic":"a","payload":^{},"errnum":1}`},
		{"errnum", "must be from 0 to", `{"topic":"a","errnum":^-1}`},
		{"errnum", "must be from 0 to", `{"topic":"a","errnum":^2147483648}`},
		{"errnum", "must be a", `{"topic":"a","errnum":^"1"}`},
		{"errstr", "must be a", `{"topic":"a","errnum":1,"errstr":^1}`},
		{"errstr", "must come with errnum", `{"topic":"a","errstr":^"x"}`},
		{"errstr", "must come with errnum", `{"topic":"a","errstr":^"x","errnum":0}`},
	} {
		l, err := alloc.ParseLine([]byte(strings.Replace(c.text, "^", "", 1)))
		require.Equal(t, alloc.Line{}, l)
		var fault *jsonobj.Fault
		require.ErrorAs(t, err, &fault, c.text)
		require.Equal(t, c.key, fault.Path, c.text)
		require.Equal(t, strings.IndexByte(c.text, '^'), fault.Offset, c.text)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "alloc: invalid message: line: ")
	}
}

func TestLinesThatCannotBeReadAreNotWritten(t *testing.T) {
	payload := json.RawMessage(`{}`)
	for key, lines := range map[string][]alloc.Line{
		"topic":   {{}, {Topic: strings.Repeat("a", 257)}, {Topic: "\xff"}},
		"payload": {{Topic: "a", Payload: payload, Errnum: 1}, {Topic: "a", Payload: json.RawMessage(`[]`)}, {Topic: "a", Payload: json.RawMessage(`{`)}},
		"errnum":  {{Topic: "a", Errnum: -1}},
		"errstr":  {{Topic: "a", Errstr: "x"}, {Topic: "a", Errnum: 1, Errstr: "\xff"}},
	} {
		for _, l := range lines {
			b, err := l.AppendText([]byte("x"))
			require.Equal(t, "x", string(b))
			require.ErrorIs(t, err, alloc.ErrMessage)
			require.ErrorContains(t, err, "alloc: invalid message: line: "+key+": ")
		}
	}
	b, err := alloc.AppendMessage([]byte("x"), "", alloc.Hello{})
	require.ErrorIs(t, err, alloc.ErrMessage)
	require.Equal(t, "x", string(b))
	l := alloc.Line{Topic: "a", Payload: json.RawMessage(`{"a":"` + strings.Repeat("a", maxBytes-16) + `"}`)}
	_, err = l.AppendText(nil)
	require.ErrorIs(t, err, alloc.ErrLimit, "the payload fits, the line does not")
}

func TestThePayloadOfALineAliasesTheText(t *testing.T) {
	text := []byte(`{"topic":"a","payload":{"b":1}}`)
	l, err := alloc.ParseLine(text)
	require.NoError(t, err)
	text[len(text)-3] = '2'
	require.Equal(t, `{"b":2}`, string(l.Payload))
	require.Equal(t, "a", l.Topic)
}
