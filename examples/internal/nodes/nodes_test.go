package nodes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/nodes"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
)

// A manager that has ended kills no job at its time limit: the next one knows it better.
func TestNothingFollowsAfterTheEnd(t *testing.T) {
	for _, stop := range []bool{false, true} {
		sent := make(chan exec.CommandKind, 9)
		n := &nodes.Nodes{Put: func(...joblife.Input) {}, Warn: func(err error) { t.Error(err) }}
		n.Command = func(cmd exec.Command, _ []string, _ *jobspec.Spec) { sent <- cmd.Kind }
		at := time.Now().Add(300 * time.Millisecond)
		n.Do(func(x *exec.Executor) {
			r, err := rset.New(rset.Config{Expiration: eventlog.FromTime(at), Entries: []rset.Entry{{Ranks: idset.Of(0), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
			require.NoError(t, err)
			require.NoError(t, x.Handle(exec.Start{ID: 1, R: r, Reattach: true, Started: true}))
			_, err = x.Hello(0, []exec.TaskStatus{{Task: exec.Task{Job: 1}, State: exec.TaskRunning}})
			require.NoError(t, err)
		})
		if stop {
			n.Stop()
			time.Sleep(time.Until(at))
			n.Do(func(*exec.Executor) {})
			require.Empty(t, sent)
		} else {
			require.Equal(t, exec.CommandSignal, <-sent)
		}
	}
}
