package alloc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/rset/alloc"
)

// roundTrip reads a payload as one message. What is refused is refused with an
// error of this package and the zero message; what is read is
// written, and that is read and written as the same, also in a line.
func roundTrip[M alloc.Payload](t *testing.T, topic string, text []byte) {
	t.Helper()
	kept := bytes.Clone(text)
	m, err := alloc.Parse[M](text)
	if err != nil {
		require.True(t, errors.Is(err, alloc.ErrMessage) || errors.Is(err, alloc.ErrLimit), err)
		var zero M
		require.Equal(t, zero, m)
		var fault *jsonobj.Fault
		if errors.As(err, &fault) {
			require.True(t, fault.Offset >= 0 && fault.Offset <= len(text), err)
		}
		require.Less(t, len(err.Error()), 1000)
		return
	}
	require.True(t, json.Valid(text) || len(text) == 0, "what is read is JSON: %q", text)
	first, err := alloc.Append(nil, m)
	require.NoError(t, err, "what was read is written: %q", text)
	require.True(t, json.Valid(first))
	require.NotContains(t, string(first), "\n")
	clear(text)
	again, err := alloc.Append([]byte("x"), m)
	require.NoError(t, err)
	require.Equal(t, "x"+string(first), string(again), "it shares nothing with the text")
	copy(text, kept)

	second, err := alloc.Parse[M](first)
	require.NoError(t, err)
	b, err := alloc.Append(nil, second)
	require.NoError(t, err)
	require.Equal(t, string(first), string(b))

	line, err := alloc.AppendMessage(nil, topic, m)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(line, []byte("\n")))
	l, err := alloc.ParseLine(line)
	require.NoError(t, err)
	require.Equal(t, topic, l.Topic)
	require.Equal(t, string(first), string(l.Payload))
}

func FuzzHello(f *testing.F) {
	for _, text := range []string{
		``, `{"partial-ok":true}`, `{ "mode" : "limited", "limit": 2147483647 }`, `{"mode":"unlimited"}`, `{"count":4294967295}`,
		`{"id":1,"priority":4294967295,"userid":0,"t_submit":1795226094.955132,"R":` + textR + `,"free":"0-1,3"}`,
		`{"id":9223372036854775807,"priority":0,"userid":4294967295,"free":""}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		roundTrip[alloc.Hello](t, alloc.TopicHello, text)
		roundTrip[alloc.HelloResponse](t, alloc.TopicHello, text)
		roundTrip[alloc.Ready](t, alloc.TopicReady, text)
		roundTrip[alloc.ReadyResponse](t, alloc.TopicReady, text)
		if m, err := alloc.Parse[alloc.HelloResponse](text); err == nil && m.R != nil {
			held, err := m.R.Without(m.Free)
			require.NoError(t, err)
			require.Equal(t, m.R.Len()-m.Free.Len(), held.Len())
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		`{"id":1,"type":0,"annotations":{"sched":{"resource_summary":"rank0/core0","x":null}},"R":` + textR + `}`,
		`{"id":1,"type":1,"annotations":{ "a" : [1, 2.5e3, "\u0000\ud83d\ude00"] }}`,
		`{"id":1,"type":2,"note":"a\nb"}`, `{"type":3,"id":1}`,
		`{"id":1,"type":0,"R":{"version":1,"execution":{"R_lite":[{"rank":"1","children":{"core":"0"}},{"rank":"0","children":{"gpu":"1"}}]},"scheduling":{"a":1}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { roundTrip[alloc.Response](t, alloc.TopicAlloc, text) })
}

func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		`{"id":1,"priority":16,"userid":1000,"t_submit":1795226094.955132,"jobspec":` + jobspec + `}`,
		`{"id":1,"expiration":-0.0}`, `{"id":1,"expiration":1e308}`, `{"jobs":[[1,2],[3,4294967295]]}`, `{"jobs":[]}`,
		`{"id":1,"R":` + textR + `,"final":true}`, `{"id":0,"R":{"version":1,"execution":{"R_lite":[]}}}`, `{"jobspec":{"a":{}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		roundTrip[alloc.Request](t, alloc.TopicAlloc, text)
		roundTrip[alloc.Cancel](t, alloc.TopicCancel, text)
		roundTrip[alloc.Prioritize](t, alloc.TopicPrioritize, text)
		roundTrip[alloc.Expiration](t, alloc.TopicExpiration, text)
		roundTrip[alloc.Free](t, alloc.TopicFree, text)
		roundTrip[alloc.Feasibility](t, alloc.TopicFeasibility, text)
	})
}

func FuzzLine(f *testing.F) {
	for _, text := range []string{
		`{"topic":"sched.alloc","payload":{"id":1}}` + "\n", `{"topic":"job-manager.sched-hello","errnum":61}`,
		` {"errstr":"\u00e9","errnum":38,"topic":"x"} `, `{"topic":"x","errnum":0,"payload":{ "a" : 1 }}`,
	} {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"topic":"sched.free","payload":{"id":1,"R":` + textR + `}}`))
	f.Add([]byte(`{"topic":"job-manager.sched-hello","payload":{"id":1,"priority":2,"userid":3}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, parse := range []func([]byte) (alloc.Line, alloc.Message, error){alloc.ParseFromManager, alloc.ParseFromScheduler} {
			l, m, err := parse(text)
			if plain, plainErr := alloc.ParseLine(text); err == nil || plainErr != nil {
				require.Equal(t, plain, l)
				require.Equal(t, plainErr, err)
			}
			if err != nil {
				require.True(t, errors.Is(err, alloc.ErrMessage) || errors.Is(err, alloc.ErrLimit), err)
				require.Nil(t, m)
			}
			if m == nil {
				continue
			}
			line, err := alloc.AppendMessage(nil, l.Topic, m)
			require.NoError(t, err)
			_, again, err := parse(line)
			require.NoError(t, err)
			second, err := alloc.AppendMessage(nil, l.Topic, again)
			require.NoError(t, err)
			require.Equal(t, string(line), string(second))
		}
		l, err := alloc.ParseLine(text)
		if err != nil {
			require.True(t, errors.Is(err, alloc.ErrMessage) || errors.Is(err, alloc.ErrLimit), err)
			require.Equal(t, alloc.Line{}, l)
			return
		}
		require.True(t, json.Valid(text))
		require.True(t, l.Errnum == 0 || l.Payload == nil)
		first, err := l.AppendText(nil)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(first, []byte("\n")))
		again, err := alloc.ParseLine(first)
		require.NoError(t, err)
		require.Equal(t, l.Topic, again.Topic)
		require.Equal(t, l.Errnum, again.Errnum)
		require.Equal(t, l.Errstr, again.Errstr)
		second, err := again.AppendText(nil)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}
