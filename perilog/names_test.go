package perilog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/perilog"
)

func TestTheNamesOfKindsAndAnswers(t *testing.T) {
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
