//go:build unix

package proc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/perilog"
)

// A later flag has what it names as it says, and leaves alone what it does not name.
func TestActionsReplaceWhatTheyName(t *testing.T) {
	var c perilog.Config
	parse := func(text string) perilog.Config {
		require.NoError(t, ParseActions(text, &c))
		return c
	}
	require.NoError(t, shell(&c.Prologs)("a"))
	epilogs := parse(`{"epilogs":[{"command":["b"],"timeout":"1s"},{"command":["c"],"description":"c"}],"housekeeping":{"command":["d"]},"whole-job":true}`).Epilogs
	was := parse(`{"prologs":[{"command":["e"]}]}`)
	require.Equal(t, []perilog.ActionConfig{{Command: []string{"e"}}}, was.Prologs)
	require.Equal(t, epilogs, was.Epilogs)
	require.NotNil(t, was.Housekeeping)
	require.True(t, was.WholeJob)
	require.Error(t, ParseActions(`{"prologs":[],"epilogs":[{"command":[]}]}`, &c))
	require.Equal(t, was, c)
	require.Equal(t, []perilog.ActionConfig{{Command: []string{"f"}}}, parse(`{"epilogs":[{"command":["f"]}]}`).Epilogs)
	require.Empty(t, parse(`{"prologs":[]}`).Prologs)
	require.Equal(t, []string{"b"}, epilogs[0].Command)
}
