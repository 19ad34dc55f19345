package perilog_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
)

// FuzzHousekeepingLog replays any text: what it tells is sound, is the same when
// told again, and goes on to one final fragment in a log that can be replayed.
func FuzzHousekeepingLog(f *testing.F) {
	// A start is long and easily broken: with begun, one stands before the text.
	start := strings.Replace(hkParted(1), `"parts":1`, `"release-after":"9s","resources":["ssd"],"R":{"version":1,`+
		`"execution":{"R_lite":[{"rank":"0-5","children":{"core":"0"}}],"starttime":0,"expiration":0}}`, 1)
	lines := hkLines(f)
	for i := range lines {
		f.Add([]byte(strings.Join(lines[:i+1], "")), false)
		f.Add([]byte(strings.Join(lines[1:i+1], "")), true)
	}
	f.Add([]byte(start+lines[1]), false)
	f.Add([]byte(hkParted(2)+`{"timestamp":1.0,"name":"part","context":{"R":"{}"}}`+"\n"), false)
	f.Add([]byte(hkParted(1)+`{"timestamp":1.0,"name":"part","context":{"R":"{\"version\":1,\"execution\":`+
		`{\"R_lite\":[{\"rank\":\"0\",\"children\":{\"core\":\"0\"}}],\"starttime\":0,\"expiration\":0}}"}}`+"\n"), false)
	f.Fuzz(func(t *testing.T, log []byte, begun bool) {
		if begun {
			log = slices.Concat([]byte(start), log)
		}
		kept := bytes.Clone(log)
		h, err := perilog.ReplayHousekeeping(log, perilog.HousekeepingOptions{})
		require.Equal(t, kept, log)
		if h == nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, h.Check())
		var torn *eventlog.SyntaxError
		var bad *perilog.HousekeepingLogError
		switch {
		case errors.As(err, &torn):
			log = log[:bytes.LastIndexByte(log[:torn.Offset], '\n')+1]
		case errors.As(err, &bad):
			log = bytes.Join(bytes.SplitAfter(log, []byte("\n"))[:bad.Line-1], nil)
		default:
			require.NoError(t, err)
		}
		again, err := perilog.ReplayHousekeeping(log, perilog.HousekeepingOptions{})
		require.NoError(t, err)
		require.Equal(t, h.String(), again.String())

		was := h.Done()
		all := idset.Union(h.Status(0).Allocated, h.Status(0).Free)
		if waiting := h.Status(0).Waiting; !waiting.IsEmpty() {
			_, err = h.Start(0, perilog.Spec{Timeout: 1})
			require.NoError(t, err)
			first, _ := waiting.Min()
			require.Equal(t, perilog.AnswerApplied, h.Report(0, perilog.Report{Kind: perilog.ReportExited, Rank: first, Status: 1 << 8}))
		}
		require.NoError(t, h.Check())
		_, err = h.ForceFinish(0, all, "root")
		require.NoError(t, err)
		h.Tick(0)
		require.True(t, h.Done())
		require.NoError(t, h.Check())
		e := h.Take()
		finals := 0
		for _, part := range e.Free {
			if part.Final {
				finals++
			}
		}
		require.Equal(t, !was, finals == 1)
		again, err = perilog.ReplayHousekeeping(slices.Concat(log, e.Log), perilog.HousekeepingOptions{})
		require.NoError(t, err)
		require.Equal(t, h.String(), again.String())
	})
}
