package exec_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

const textR = `{"version":1,"execution":{"R_lite":[{"rank":"0-3","children":{"core":"0-7"}}],"starttime":100.0,"expiration":200.0,"nodelist":["n[0-3]"]}}`

func parseR(t testing.TB, text string) *rset.R {
	t.Helper()
	r, err := rset.Parse([]byte(text))
	require.NoError(t, err)
	return r
}

// same reads a payload, and requires what it means and what it is written as.
func same[M payload](t *testing.T, text string, want M, canonical string) {
	t.Helper()
	m, err := exec.Parse[M]([]byte(text))
	require.NoError(t, err, text)
	require.Equal(t, want, m)
	b, err := exec.Append([]byte("before "), m)
	require.NoError(t, err)
	require.Equal(t, "before "+canonical, string(b))
	again, err := exec.Parse[M]([]byte(canonical))
	require.NoError(t, err)
	require.Equal(t, want, again)
}

// RFC 32, Hello. The topics are those of flux-core.
func TestHelloNamesTheService(t *testing.T) {
	hello := exec.Hello{Service: "job-exec"}
	same(t, ` { "service" : "job-exec", "more": [1] } `, hello, `{"service":"job-exec"}`)
	require.Equal(t, "job-exec.start", hello.StartTopic())
	require.Equal(t, "job-exec.expiration", hello.ExpirationTopic())

	long := exec.Hello{Service: strings.Repeat("s", 245)}
	_, err := alloc.Line{Topic: long.ExpirationTopic()}.AppendText(nil)
	require.NoError(t, err, "the longest name leaves room for a topic")
}

// RFC 32, Start Request, with the R that flux-core adds.
func TestStartRequestsHaveTheKeysInTheOrderOfFlux(t *testing.T) {
	same(t, `{"id":1552593348,"userid":5588,"jobspec":{ },"reattach":false}`,
		exec.Start{ID: 1552593348, UserID: 5588, Jobspec: json.RawMessage(`{}`)},
		`{"id":1552593348,"userid":5588,"jobspec":{},"reattach":false}`)
	text := `{"id":9223372036854775807,"userid":4294967295,"jobspec":{"version":1},"reattach":true,"R":` + textR + `}`
	same(t, text, exec.Start{
		ID: math.MaxInt64, UserID: math.MaxUint32, Jobspec: json.RawMessage(`{"version":1}`), Reattach: true, Started: true, R: parseR(t, textR),
	}, text)
}

func TestExpirationsHaveATime(t *testing.T) {
	same(t, `{"expiration":1795226094.5,"id":7}`, exec.Expiration{ID: 7, Expiration: 1795226094.5},
		`{"id":7,"expiration":1795226094.5}`)
	same(t, `{"id":7,"expiration":0}`, exec.Expiration{ID: 7}, `{"id":7,"expiration":0.0}`)
}

// RFC 32, Start Response: the examples, and what flux-core adds.
func TestResponsesHaveTheDataOfTheirType(t *testing.T) {
	for text, want := range map[string]exec.Response{
		`{"id":1552593348,"type":"start","data":{}}`:                               {ID: 1552593348, Type: exec.ResponseStart},
		`{"id":1552593348,"type":"reattached","data":{}}`:                          {ID: 1552593348, Type: exec.ResponseReattached},
		`{"id":1552593348,"type":"release","data":{"ranks":"0-2","final":true}}`:   {ID: 1552593348, Type: exec.ResponseRelease, Ranks: idset.Of(0, 1, 2), Final: true},
		`{"id":1552593348,"type":"release","data":{"ranks":"all","final":true}}`:   {ID: 1552593348, Type: exec.ResponseRelease, Final: true},
		`{"id":1552593348,"type":"release","data":{"ranks":"","final":false}}`:     {ID: 1552593348, Type: exec.ResponseRelease, Ranks: new(idset.Set)},
		`{"id":1,"type":"release","data":{"ranks":"16777216","final":true}}`:       {ID: 1, Type: exec.ResponseRelease, Ranks: idset.Of(rset.MaxRank), Final: true},
		`{"id":1552593348,"type":"exception","data":{"severity":7,"type":"exec"}}`: {ID: 1552593348, Type: exec.ResponseException, Exception: exec.Exception{Type: "exec", Severity: 7}},
		`{"id":1552593348,"type":"exception","data":{"severity":0,"type":"timeout","note":"resource allocation expired"}}`: {
			ID: 1552593348, Type: exec.ResponseException, Exception: exec.Exception{Type: "timeout", Note: "resource allocation expired"},
		},
		`{"id":1552593348,"type":"finish","data":{"status":143}}`:         {ID: 1552593348, Type: exec.ResponseFinish, Status: 143},
		`{"id":1552593348,"type":"finish","data":{"status":-2147483648}}`: {ID: 1552593348, Type: exec.ResponseFinish, Status: math.MinInt32},
	} {
		m, err := exec.Parse[exec.Response]([]byte(text))
		require.NoError(t, err, text)
		if want.Ranks != nil {
			require.True(t, want.Ranks.Equal(m.Ranks), text)
			m.Ranks = want.Ranks
		}
		require.Equal(t, want, m)
		b, err := exec.Append(nil, m)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
	m, err := exec.Parse[exec.Response]([]byte(`{"data":{"status":3,"final":1},"type":"start","id":1,"more":0}`))
	require.NoError(t, err, "keys of other types are unknown keys")
	require.Equal(t, exec.Response{ID: 1, Type: exec.ResponseStart}, m)
	require.Equal(t, "release", exec.ResponseRelease.String())
	require.Equal(t, "ResponseType(0)", exec.ResponseType(0).String())
	require.Equal(t, "ResponseType(6)", exec.ResponseType(6).String())
}

// A fault names the message, the key and the offset, marked ^ here.
func TestRefusedMessagesNameKeyAndOffset(t *testing.T) {
	hello, start := parseError(exec.Parse[exec.Hello]), parseError(exec.Parse[exec.Start])
	response, expiration := parseError(exec.Parse[exec.Response]), parseError(exec.Parse[exec.Expiration])
	for _, c := range []struct {
		parse           func([]byte) error
		key, want, text string
	}{
		{hello, "service", "is missing", `^{}`},
		{hello, "service", "must be a string", `{"service":^1}`},
		{hello, "service", "must have 1 to 245 bytes", `{"service":^""}`},
		{hello, "service", "must have 1 to 245 bytes", `{"service":^"` + strings.Repeat("s", 246) + `"}`},
		{hello, "", "must be an object", `^[]`},
		{start, "", "must be an object", `^[]`},
		{start, "id", "is missing", `^{"userid":1,"jobspec":{},"reattach":false}`},
		{start, "jobspec", "is missing", `^{"id":1,"userid":1,"reattach":false}`},
		{start, "userid", "is missing", `^{"id":1,"jobspec":{},"reattach":false}`},
		{start, "reattach", "is missing", `^{"id":1,"userid":1,"jobspec":{}}`},
		{start, "id", "must be from 0", `{"id":^-1}`},
		{start, "", "out of range", `{"id":^9223372036854775808}`},
		{start, "userid", "must be from 0", `{"userid":^4294967296}`},
		{start, "jobspec", "must be an object", `{"jobspec":^null}`},
		{start, "reattach", "must be true or false", `{"reattach":^0}`},
		{start, "R", "names no resource", `{"R":^{"version":1,"execution":{"R_lite":[]}}}`},
		{start, "R.version", "", `{"R":{"version":^2,"execution":{"R_lite":[]}}}`},
		{start, "", "duplicate key", `{"id":1,^"id":1}`},
		{response, "", "must be an object", `^[]`},
		{response, "id", "is missing", `^{"type":"start","data":{}}`},
		{response, "type", "is missing", `^{"id":1,"data":{}}`},
		{response, "data", "is missing", `^{"id":1,"type":"start"}`},
		{response, "data", "must be an object", `{"id":1,"type":"start","data":^null}`},
		{response, "type", `must be "start"`, `{"id":1,"type":^"Start","data":{}}`},
		{response, "type", `must be "start"`, `{"id":1,"type":^"","data":{}}`},
		{response, "data.ranks", "is missing", `{"id":1,"type":"release","data":^{"final":true}}`},
		{response, "data.severity", "is missing", `{"id":1,"type":"exception","data":^{"type":"x"}}`},
		{response, "data.status", "is missing", `{"id":1,"type":"finish","data":^{}}`},
		{response, "data.final", "is missing", `{"id":1,"type":"release","data":^{"ranks":"0"}}`},
		{response, "data.ranks", "idset", `{"id":1,"type":"release","data":{"ranks":^"1-0","final":true}}`},
		{response, "data.ranks", "idset", `{"id":1,"type":"release","data":{"ranks":^"16777217","final":true}}`},
		{response, "data.final", "must be true or false", `{"id":1,"type":"release","data":{"ranks":"0","final":^1}}`},
		{response, "data.severity", "must be from 0 to 7", `{"id":1,"type":"exception","data":{"severity":^8,"type":"x"}}`},
		{response, "data.type", "is missing", `{"id":1,"type":"exception","data":^{"severity":0}}`},
		{response, "data.note", "must be a string", `{"id":1,"type":"exception","data":{"severity":0,"type":"x","note":^null}}`},
		{response, "data.status", "must be an integer", `{"id":1,"type":"finish","data":{"status":^1.5}}`},
		{response, "data.status", "must be from", `{"id":1,"type":"finish","data":{"status":^2147483648}}`},
		{expiration, "expiration", "must be at least 0", `{"id":1,"expiration":^-1}`},
		{expiration, "expiration", "is missing", `^{"id":1}`},
	} {
		offset := strings.IndexByte(c.text, '^')
		err := c.parse([]byte(strings.Replace(c.text, "^", "", 1)))
		require.ErrorContains(t, err, badMessage, c.text)
		require.ErrorContains(t, err, c.want)
		var fault *jsonobj.Fault
		require.ErrorAs(t, err, &fault)
		require.Equal(t, c.key, fault.Path, "%s: %v", c.text, err)
		if c.want != "" && c.want != "idset" {
			require.Equal(t, offset, fault.Offset, "%s: %v", c.text, err)
		}
	}
}

// parseError is a parser that returns only the error.
func parseError[M any](parse func([]byte) (M, error)) func([]byte) error {
	return func(b []byte) error { _, err := parse(b); return err }
}

func TestWhatIsNotReadIsNotWritten(t *testing.T) {
	for _, m := range []exec.Message{
		exec.Hello{}, exec.Hello{Service: strings.Repeat("s", 246)}, exec.Hello{Service: "\xff"},
		exec.Start{}, exec.Start{ID: math.MaxInt64 + 1, Jobspec: json.RawMessage(`{}`)}, exec.Start{Jobspec: json.RawMessage(`[]`)},
		exec.Start{Jobspec: json.RawMessage(`{`)}, exec.Start{Jobspec: json.RawMessage(`{}`), R: new(rset.R)},
		exec.Response{}, exec.Response{Type: 6}, exec.Response{Type: exec.ResponseStart, ID: math.MaxInt64 + 1},
		exec.Response{Type: exec.ResponseStart, Status: 1}, exec.Response{Type: exec.ResponseFinish, Final: true},
		exec.Response{Type: exec.ResponseFinish, Ranks: idset.Of(1)}, exec.Response{Type: exec.ResponseRelease, Exception: exec.Exception{Type: "x"}},
		exec.Response{Type: exec.ResponseRelease, Ranks: idset.Of(rset.MaxRank + 1)},
		exec.Response{Type: exec.ResponseException, Exception: exec.Exception{Severity: 8}},
		exec.Response{Type: exec.ResponseException, Exception: exec.Exception{Note: "\xff"}},
		exec.Expiration{Expiration: -1}, exec.Expiration{ID: math.MaxInt64 + 1}, exec.Expiration{Expiration: eventlog.Timestamp(math.Inf(1))},
	} {
		b, err := exec.Append([]byte("before"), m)
		require.ErrorContains(t, err, badMessage, "%+v", m)
		require.Equal(t, "before", string(b))
	}
}

func TestATextThatIsTooLongIsALimit(t *testing.T) {
	long := []byte(`{"service":"` + strings.Repeat("s", 64<<20) + `"}`)
	_, err := exec.Parse[exec.Hello](long)
	require.ErrorContains(t, err, tooMuch)
	b, err := exec.Append([]byte("before"), exec.Start{Jobspec: long})
	require.ErrorContains(t, err, tooMuch)
	require.Equal(t, "before", string(b))
}
