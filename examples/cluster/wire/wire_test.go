package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// A name of a guest writes nothing but itself on the terminal of the owner.
func TestANameIsPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"a\x1b[2J\a\nb\tc": "a?[2J??b?c", "größe 1": "größe 1", "\u009b2J\u202e": "?2J?", "a" + strings.Repeat("ö", 40): "a" + strings.Repeat("ö", 31),
	} {
		spec, err := jobspec.New(jobspec.Job{Slots: 1, Cores: 1, Command: []string{"true"}, Name: name})
		require.NoError(t, err)
		require.Equal(t, want, wire.Describe(jobstate.NewJob(1), spec, nil).Name)
	}
}

// A message has each byte of a text once, or twice where the text is of JSON.
func TestAMessageIsAsLongAsItsText(t *testing.T) {
	j := wire.JobInfo{Eventlog: "<>&{\"a\":\"\\\"\"}\n\u2028"}
	text, err := wire.Marshal(wire.Archived{JobInfo: j, Jobspec: []byte(`{"a":"<"}`)})
	require.NoError(t, err)
	require.Contains(t, string(text), `"eventlog":"<>&{\"a\":\"\\\"\"}\n\u2028","jobspec":{"a":"<"}}`)
	_, err = wire.Marshal(make(chan int))
	require.Error(t, err)
}

// What AppendEvent appends, Events returns, and whatever else comes it returns in order and whole.
func FuzzEvents(f *testing.F) {
	text, err := wire.AppendEvent(nil, 7, eventlog.Entry{Timestamp: 1, Name: "submit"})
	require.NoError(f, err)
	again, err := wire.AppendEvent(text, 1<<63, eventlog.Entry{Timestamp: 2, Name: "alloc", Context: []byte(`{"a":1}`)})
	require.NoError(f, err)
	var ids []jobid.ID
	for id, line := range wire.Events(again) {
		ids = append(ids, id)
		_, err := eventlog.Parse(line)
		require.NoError(f, err)
	}
	require.Equal(f, []jobid.ID{7, 1 << 63}, ids)
	same, err := wire.AppendEvent(text, 1, eventlog.Entry{})
	require.Error(f, err)
	require.Equal(f, text, same)
	f.Add(again)
	f.Add([]byte("7 x\n8"))
	f.Add([]byte("-7 x\n8 y"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		for _, line := range wire.Events(text) {
			n += len(line)
		}
		require.LessOrEqual(t, n, len(text))
	})
}
