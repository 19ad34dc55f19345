package jsonobj

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/internal/refdata"
)

// requireSamePrint prints all that was printed by the reference again: each
// string and each number of a text.
func requireSamePrint(t *testing.T, text []byte) (reals, strings int) {
	for i := 0; i < len(text); {
		switch KindOf(text[i:]) {
		case KindString:
			end, _, f := scanString(text, i)
			require.Equal(t, noDefect, f)
			s, ok := String(text[i:end])
			require.True(t, ok)
			require.Equal(t, string(text[i:end]), string(AppendString(nil, s)))
			strings++
			i = end
		case KindNumber:
			f, integer, end, ok := FloatAt(text, i)
			require.True(t, ok)
			if !integer {
				require.Equal(t, string(text[i:end]), string(AppendFloat(nil, f)))
				reals++
			}
			i = end
		default:
			i++
		}
	}
	return reals, strings
}

func TestWhatTheReferencePrintedIsPrintedTheSame(t *testing.T) {
	type vector struct {
		Roundtrip string  `json:"roundtrip"`
		Log       string  `json:"eventlog"`
		Exec      *string `json:"exec_eventlog"`
	}
	var reals, strings int
	for name, n := range map[string]int{
		"vectors/eventlog.jsonl.gz": 527, "vectors/eventlog_entry.jsonl.gz": 1101,
		"recorded/brokers.jsonl.gz": 33, "recorded/mixed.jsonl.gz": 380, "recorded/restart-done.jsonl.gz": 8, "recorded/restart-pending.jsonl.gz": 8,
	} {
		for _, v := range refdata.Lines[vector](t, name, n) {
			texts := []string{v.Roundtrip, v.Log}
			if v.Exec != nil {
				texts = append(texts, *v.Exec)
			}
			for _, text := range texts {
				r, s := requireSamePrint(t, []byte(text))
				reals, strings = reals+r, strings+s
			}
		}
	}
	require.GreaterOrEqual(t, reals, 7000)
	require.GreaterOrEqual(t, strings, 30000)
	t.Logf("%d reals, %d strings", reals, strings)
}
