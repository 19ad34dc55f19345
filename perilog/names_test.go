package perilog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/internal/run"
)

// TestPublicNamesMeanWhatARunMeans: values cross from one package to the other as numbers.
func TestPublicNamesMeanWhatARunMeans(t *testing.T) {
	for _, c := range []struct{ public, inner any }{
		{perilog.ReportStarted, run.ReportStarted}, {perilog.ReportExited, run.ReportExited},
		{perilog.ReportLaunchFailed, run.ReportLaunchFailed}, {perilog.ReportUnreachable, run.ReportUnreachable},
		{perilog.ReportOutput, run.ReportOutput},
		{perilog.AckApplied, run.AckApplied}, {perilog.AckRepeated, run.AckRepeated}, {perilog.AckEnded, run.AckEnded},
		{perilog.AckStale, run.AckStale}, {perilog.AckUnknown, run.AckUnknown}, {perilog.AckIgnored, run.AckIgnored},
		{perilog.ControlPrefix, run.ControlPrefix},
	} {
		require.EqualValues(t, c.inner, c.public)
	}
	var names []string
	for k := range perilog.ReportOutput + 2 {
		names = append(names, k.String())
	}
	for a := range perilog.AckIgnored + 2 {
		names = append(names, a.String())
	}
	require.Equal(t, "[ReportKind(0) started exited launch failed unreachable output ReportKind(6)"+
		" Ack(0) applied repeated ended stale unknown ignored Ack(7)]", fmt.Sprint(names))
}
