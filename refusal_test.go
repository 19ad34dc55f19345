package joblife_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
)

// Users of flux-core know its words, and its tests look for them.
func TestARefusalHasTheWordsOfFlux(t *testing.T) {
	s := silent(t, joblife.Config{Queues: []string{"a", "b"}, Hooks: []joblife.Hooks{joblife.Dependencies()}})
	s.step(joblife.EnableQueue{Queue: "b", Reason: "full"})
	submit := func(j jobspec1) joblife.Submit {
		j.Slots = 1
		return joblife.Submit{Tag: 7, Jobspec: j.text(), Urgency: 16}
	}
	job := func() jobid.ID { return s.ask(submit(jobspec1{Queue: "a"})).Job }
	active, canceled, failed, good := job(), job(), job(), job()
	s.cancel(canceled)
	for status, id := range map[int32]jobid.ID{1 << 8: failed, 0: good} {
		s.step(success(t, id, 0))
		s.finish(id, status)
	}
	other := submit(jobspec1{Queue: "a"})
	other.By.UserID = 5
	theirs := s.ask(other).Job

	for _, c := range []struct{ scheme, value, want string }{
		{"none", "x", `dependency scheme "none" not supported`},
		{"afterok", "x\n", `dependency: afterok: "x\n" is not a valid jobid`},
		{"afterok", "ƒ3", "dependency: afterok: id ƒ3: job not found"},
		{"afterany", theirs.String(), "afterany: Permission denied for job " + theirs.String()},
		{"afterstart", canceled.String(), "dependency: after: " + canceled.String() + " never started"},
		{"afterok", canceled.String(), "dependency: after: " + canceled.String() + " never started"},
		{"afterexcept", canceled.String(), "dependency: after: " + canceled.String() + " never started"},
		{"afterok", failed.String(), "dependency: afterok: job " + failed.String() + " failed or was canceled"},
		{"afternotok", good.String(), "dependency: afternotok: job " + good.String() + " succeeded"},
		{"afterexcept", good.String(), "dependency: afterexcept: job " + good.String() + ": no exception"},
		{"begin-time", "soon", "Invalid begin-time=soon"},
		{"afterok", good.String(), ""},
		{"afternotok", failed.String(), ""},
		{"afterany", canceled.String(), ""},
		{"afterok", active.String(), ""},
	} {
		err := s.try(submit(jobspec1{Queue: "a", Dependencies: []map[string]string{{"scheme": c.scheme, "value": c.value}}}))
		require.Equal(t, c.want, refusal(err), "%s %s", c.scheme, c.value)
	}
	for queue, want := range map[string]string{
		"":     "a named queue is required",
		"c":    "'c' is not a valid queue",
		"c\nd": `'c\nd' is not a valid queue`,
		"b":    "job submission to b is disabled: full",
	} {
		require.Equal(t, want, refusal(s.try(submit(jobspec1{Queue: queue}))))
	}
	require.ErrorContains(t, s.try(joblife.StartQueue{Queue: "c"}), "'c' is not a valid queue")
	require.ErrorContains(t, s.try(joblife.StartQueue{}), "a named queue is required")

	s = silent(t, joblife.Config{})
	s.step(joblife.EnableQueue{Reason: "closed"})
	require.Equal(t, "job submission is disabled: closed", refusal(s.try(submit(jobspec1{}))))
}

// refusal returns the text of an error of ErrRefused, and "" for no error.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	text, ok := strings.CutPrefix(err.Error(), joblife.ErrRefused.Error()+": ")
	if !ok {
		return "no refusal: " + text
	}
	return text
}
