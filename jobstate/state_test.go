package jobstate_test

import (
	"encoding"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
)

// named is what states and results have in common.
type named interface {
	fmt.Stringer
	encoding.TextMarshaler
	encoding.TextAppender
	Name(jobstate.NameFormat) string
}

func nameOf(kind string, value int) (named, bool) {
	if value < 0 || value > 255 {
		return nil, false
	}
	if kind[0] == 's' {
		return jobstate.State(value), true
	}
	return jobstate.Result(value), true
}

func TestNamesAgreeWithTheReference(t *testing.T) {
	differences := refdata.ExpectDifferences(t, map[string]int{"value outside one byte: not representable": 4})
	kinds := map[string]int{}
	// encoding/json matches keys without case; "L" and "l" need a raw map.
	for _, raw := range refdata.Lines[map[string]any](t, "vectors/job_state.jsonl.gz", 334) {
		kind := raw["kind"].(string)
		kinds[kind]++
		switch kind {
		case "state", "result":
			n, ok := nameOf(kind, int(raw["value"].(float64)))
			if !ok {
				differences.Note("value outside one byte: not representable")
				continue
			}
			for _, f := range []string{"L", "l", "S", "s"} {
				require.Equal(t, raw[f], n.Name(jobstate.NameFormat(f[0])), "%v %s", raw["value"], f)
			}
		case "state_fmt", "result_fmt":
			n, ok := nameOf(kind, int(raw["value"].(float64)))
			require.True(t, ok)
			var f jobstate.NameFormat
			if s := raw["fmt"].(string); s != "" {
				f = jobstate.NameFormat(s[0])
			}
			require.Equal(t, raw["out"], n.Name(f), "%v %q", raw["value"], raw["fmt"])
		case "parse_state":
			s, err := jobstate.ParseState(raw["in"].(string))
			requireParsed(t, raw, float64(s), err)
		case "parse_result":
			r, err := jobstate.ParseResult(raw["in"].(string))
			requireParsed(t, raw, float64(r), err)
		default:
			t.Fatalf("unknown kind %q", kind)
		}
	}
	require.Len(t, kinds, 6)
}

func requireParsed(t *testing.T, raw map[string]any, got float64, err error) {
	t.Helper()
	if raw["ok"] == true {
		require.NoError(t, err, raw["in"])
		require.Equal(t, raw["value"], got)
		return
	}
	require.Error(t, err)
	require.Zero(t, got)
}

func TestNamesRoundTripInEveryForm(t *testing.T) {
	for _, f := range []jobstate.NameFormat{jobstate.NameLongUpper, jobstate.NameLongLower, jobstate.NameShortUpper, jobstate.NameShortLower} {
		for s := range 256 {
			name := jobstate.State(s).Name(f)
			back, err := jobstate.ParseState(name)
			if name == "(unknown)" || name == "?" {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, jobstate.State(s), back)
		}
		for r := range 256 {
			name := jobstate.Result(r).Name(f)
			back, err := jobstate.ParseResult(name)
			if name == "(unknown)" || name == "?" {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, jobstate.Result(r), back)
		}
	}
}

func TestTextInterfacesOfNamesAgree(t *testing.T) {
	for v := range 256 {
		for _, n := range []named{jobstate.State(v), jobstate.Result(v)} {
			text, err := n.AppendText([]byte("x"))
			marshaled, err2 := n.MarshalText()
			require.Equal(t, err, err2)
			if err != nil {
				require.Error(t, err)
				require.Equal(t, "x", string(text), "dst is untouched")
				require.Contains(t, n.String(), fmt.Sprintf("(%d)", v))
				continue
			}
			require.Equal(t, "x"+n.String(), string(text))
			require.Equal(t, n.String(), string(marshaled))
		}
	}
	s, r := jobstate.StateRun, jobstate.ResultFailed
	require.Error(t, s.UnmarshalText([]byte("Run")))
	require.Error(t, r.UnmarshalText([]byte("nothing")))
	require.Equal(t, jobstate.StateRun, s, "an error leaves the receiver")
	require.Equal(t, jobstate.ResultFailed, r)
	require.NoError(t, s.UnmarshalText([]byte("pd")))
	require.NoError(t, r.UnmarshalText([]byte("CA")))
	require.Equal(t, jobstate.StatePending, s)
	require.Equal(t, jobstate.ResultCanceled, r)
}

func TestMasksHoldTheirStates(t *testing.T) {
	require.Equal(t, jobstate.State(14), jobstate.StatePending)
	require.Equal(t, jobstate.State(48), jobstate.StateRunning)
	require.Equal(t, jobstate.State(62), jobstate.StateActive)
	require.True(t, jobstate.StateRun.In(jobstate.StateActive))
	require.False(t, jobstate.StateNew.In(jobstate.StateActive))
	require.False(t, jobstate.State(0).In(jobstate.StateActive))
	single := 0
	for s := range 256 {
		if jobstate.IsSingle(jobstate.State(s)) {
			single++
		}
	}
	require.Equal(t, 7, single)
}

func TestErrorsOfNamesAreCutAndQuoted(t *testing.T) {
	_, err := jobstate.ParseState(string(make([]byte, 1000)))
	require.Less(t, len(err.Error()), 400)
}
