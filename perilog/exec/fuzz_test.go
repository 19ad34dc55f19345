package exec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/perilog/exec"
)

// How errors begin.
const (
	badMessage = "exec: invalid message"
	tooMuch    = "exec: limit exceeded"
)

// roundTrip reads a payload as one message. What is refused is refused with an error
// of this package; what is read is written, and that is read and written as the same.
func roundTrip[M payload](t *testing.T, text []byte) {
	t.Helper()
	m, err := exec.Parse[M](text)
	if err != nil {
		require.True(t, strings.Contains(err.Error(), badMessage) || strings.Contains(err.Error(), tooMuch), err)
		var zero M
		require.Equal(t, zero, m)
		var fault *jsonobj.Fault
		if errors.As(err, &fault) {
			require.True(t, fault.Offset >= 0 && fault.Offset <= len(text), err)
		}
		require.Less(t, len(err.Error()), 1000)
		return
	}
	require.True(t, json.Valid(text))
	kept := bytes.Clone(text)
	clear(text)
	first, err := exec.Append(nil, m)
	require.NoError(t, err, "what was read is written: %q", kept)
	copy(text, kept)
	second, err := exec.Parse[M](first)
	require.NoError(t, err)
	again, err := exec.Append(nil, second)
	require.NoError(t, err)
	require.Equal(t, string(first), string(again))
}

func FuzzMessage(f *testing.F) {
	for _, text := range []string{
		`{"service":"job-exec"}`, `{"id":1,"expiration":1795226094.955132}`, `{"id":1,"expiration":-0.0}`,
		`{"id":1,"userid":1000,"jobspec":{"version":1,"a":[1, 2.5e3,"\u0000\ud83d\ude00"]},"reattach":true,"R":` + textR + `}`,
		`{"id":1,"type":"start","data":{}}`, `{"type":"release","id":1,"data":{"ranks":"all","final":true}}`,
		`{"id":1,"type":"release","data":{"ranks":"0-2,7","final":false}}`, `{"id":1,"type":"finish","data":{"status":256}}`,
		`{"id":1,"type":"exception","data":{"severity":0,"type":"exec","note":"a\nb"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		roundTrip[exec.Hello](t, text)
		roundTrip[exec.Start](t, text)
		roundTrip[exec.Response](t, text)
		roundTrip[exec.Expiration](t, text)
	})
}

// A payload is what Parse parses.
type payload interface {
	exec.Message
	exec.Hello | exec.Start | exec.Response | exec.Expiration
}
