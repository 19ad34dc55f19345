package jobstate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
)

// maxFuzzed is how much of a fuzzed log is looked at: some 40 entries.
const maxFuzzed = 4 << 10

func seedLogs(f *testing.F) {
	for _, r := range committed(f) {
		f.Add([]byte(r.Eventlog))
	}
	f.Add([]byte(logOf(whole...)))
	f.Add([]byte(logOf(with(6, `prolog-start {"description":"p"}`, `jobspec-update {"attributes.a":1}`, `set-flags {"flags":["x"]}`)...)))
	f.Add([]byte(logOf(with(6, actionEvents...)...)))
	f.Add([]byte(logOf(with(9, `epilog-start {"description":"e","leader":0}`, `housekeeping-fail {}`, `perilog-launch {"description":"e","kind":"epilog","attempt":7,"ranks":""}`)...)))
	f.Add([]byte(logOf(with(6, `prolog-start {"description":"p"}`, `perilog-launch {"description":"p","kind":"prolog","attempt":1,"ranks":"0","leader":0,"timeout":60.0,"kill-timeout":5.0}`)...)))
	f.Add([]byte(logOf(with(9, `housekeeping-start {"description":"housekeeping","per-rank":true,"release-after":"30s","on-failure":"drain"}`)...)))
	f.Add([]byte(""))
	f.Add([]byte("\n"))
}

// FuzzReplay: no log panics; a refused entry leaves the job as it was; a
// replay is the fold of its entries, whatever they are; what is after the end
// is refused, unless it repeats it.
func FuzzReplay(f *testing.F) {
	seedLogs(f)
	f.Fuzz(func(t *testing.T, log []byte) {
		log = log[:min(len(log), maxFuzzed)] // the comparison below is quadratic
		live, folded := foldEntries(log, func(live *jobstate.Job, e eventlog.Entry) error {
			closed, before := live.Closed() && new(jobstate.Event).Decode(e) == nil, describe(live)
			outcome, err := live.Apply(e)
			require.NoError(t, jobstate.Check(live))
			switch {
			case closed && outcome != jobstate.IgnoredDuplicate:
				require.ErrorIs(t, err, jobstate.ErrClosed)
				fallthrough
			case err != nil, outcome.Ignored():
				require.Equal(t, before, describe(live))
			}
			_ = live.Waiting()
			return err
		})
		requireReplay(t, log, live, folded)
		var ev jobstate.Event
		with := jobstate.NewJob(1)
		_, err := jobstate.Replay(1, log)
		again := with.ReplayWith(&ev, log, func(ev *jobstate.Event) error { _, err := with.ApplyEvent(ev); return err })
		require.Equal(t, fmt.Sprint(err), fmt.Sprint(again), "the same line, offset and cause")
		require.Equal(t, describe(live), describe(with))
	})
}

// sameFault requires that Replay names the fault that the fold of the entries met.
func sameFault(t *testing.T, log []byte, folded, replayed error) {
	var want, got *jobstate.EventError
	require.ErrorAs(t, replayed, &got)
	var bad, same *eventlog.SyntaxError
	if errors.As(folded, &bad) {
		require.ErrorAs(t, replayed, &same)
		require.Equal(t, *bad, *same)
		require.Equal(t, bad.Line, got.Line)
		require.Equal(t, bad.Offset, got.Offset)
		require.Equal(t, "", got.Event)
		return
	}
	require.ErrorAs(t, folded, &want)
	require.Equal(t, want.Err, got.Err)
	require.Equal(t, want.Event, got.Event)
	require.Equal(t, want.State, got.State)
	require.Equal(t, got.Line-1, strings.Count(string(log[:got.Offset]), "\n"))
	require.True(t, got.Offset == 0 || log[got.Offset-1] == '\n', "the line begins there")
}

// foldEntries folds the entries of a log up to its error, each at its turn.
func foldEntries(log []byte, each func(j *jobstate.Job, e eventlog.Entry) error) (*jobstate.Job, error) {
	j := jobstate.NewJob(1)
	for e, err := range eventlog.Entries(log) {
		if err == nil {
			err = each(j, e)
		}
		if err != nil {
			return j, err
		}
	}
	return j, nil
}

// requireReplay requires that Replay is the fold of the entries, which it reads in another way.
func requireReplay(t *testing.T, log []byte, folded *jobstate.Job, err error) {
	replayed, replayErr := jobstate.Replay(1, log)
	require.Equal(t, err == nil, replayErr == nil, "%s", log)
	require.Equal(t, describe(folded), describe(replayed), "%s", log)
	if err != nil {
		sameFault(t, log, err, replayErr)
	}
}

// TestReplayIsTheFoldOfTheEntries, whatever byte of a log is another, missing or new.
func TestReplayIsTheFoldOfTheEntries(t *testing.T) {
	log := []byte(logOf(submit, "validate", "made-up {}", `memo {"a":1}`, "depend", `priority {"priority":1}`, "alloc", `prolog-start {"description":"p"}`))
	check := func(log []byte) {
		j, err := foldEntries(log, func(j *jobstate.Job, e eventlog.Entry) error { _, err := j.Apply(e); return err })
		requireReplay(t, log, j, err)
	}
	check(log)
	for _, line := range []string{
		`{"timestamp":-1.5,"name":"validate"}`, `{"timestamp":0,"name":"validate"}`,
		`{"timestamp":1.5,"name":"memo","context":{"a":"` + strings.Repeat("x", eventlog.DefaultMaxLine) + `"}}`,
	} {
		check([]byte(logOf(submit) + line + "\n"))
	}
	for i := range log {
		check(log[:i])
		check(slices.Concat(log[:i], log[i+1:]))
		for _, c := range []byte("\"\\ 1\r\x80") {
			check(slices.Concat(log[:i], []byte{c}, log[i+1:]))
			check(slices.Concat(log[:i], []byte{c}, log[i:]))
		}
	}
}

// FuzzValidate: no log panics, findings point into the log and are bounded,
// and a log that replays to the end has no line that is no entry.
func FuzzValidate(f *testing.F) {
	seedLogs(f)
	f.Fuzz(func(t *testing.T, log []byte) {
		findings := jobstate.Validate(log)
		require.LessOrEqual(t, len(findings), jobstate.MaxFindings)
		line := 0
		for _, found := range findings {
			require.GreaterOrEqual(t, found.Line, line, "findings come in order")
			line = found.Line
			require.LessOrEqual(t, found.Offset, int64(len(log)))
			require.Equal(t, found.Line-1, strings.Count(string(log[:found.Offset]), "\n"))
			require.NotContains(t, found.String(), "\n")
			require.Less(t, len(found.Text), 1000)
		}
		if j, err := jobstate.Replay(1, log); err == nil && j.Submitted() {
			for _, found := range findings {
				require.NotContains(t, found.Text, "not an entry")
			}
		}
	})
}

// setsNothing reports whether c is the one context that is read and not written.
func setsNothing(c jobstate.Context) bool {
	u, ok := c.(*jobstate.JobspecUpdateContext)
	return ok && len(u.Updates) == 0
}

// samePlain parses a context and requires that the fast path for plain contexts has
// changed nothing.
func samePlain(t require.TestingT, e eventlog.Entry) (jobstate.Context, error) {
	c, err := jobstate.ParseContext(e)
	want, wantErr := jobstate.ParseAny(e)
	require.Equal(t, wantErr, err, "%s %s", e.Name, e.Context)
	if err == nil && c != nil {
		text, err := jobstate.AppendContext(nil, c)
		wantText, wantErr := jobstate.AppendContext(nil, want)
		require.Equal(t, wantErr, err)
		require.Equal(t, string(wantText), string(text), "%s %s", e.Name, e.Context)
	}
	if jobstate.IsPlain(e) {
		require.NoError(t, err, "%s %s", e.Name, e.Context)
	}
	return c, err
}

// FuzzParseContext: what decodes encodes, and then decodes to the same. The fast path
// reads no context in another way.
func FuzzParseContext(f *testing.F) {
	for name, context := range samples {
		f.Add(name, []byte(context))
	}
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		e := eventlog.Entry{Timestamp: 1, Name: name, Context: raw}
		c, err := samePlain(t, e)
		if err != nil {
			require.ErrorIs(t, err, jobstate.ErrContext)
			return
		}
		if c == nil || setsNothing(c) {
			return
		}
		out, err := jobstate.AppendContext(nil, c)
		require.NoError(t, err)
		again, err := jobstate.ParseContext(eventlog.Entry{Timestamp: 1, Name: name, Context: out})
		require.NoError(t, err)
		twice, err := jobstate.AppendContext(nil, again)
		require.NoError(t, err)
		require.Equal(t, string(out), string(twice))
	})
}
