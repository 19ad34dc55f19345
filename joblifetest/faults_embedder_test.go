package joblifetest

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// badLoop is an embedder with a fault.
type badLoop struct {
	*loop
	fault string
	drain []*idset.Set // what it confirms itself
}

var errForgets = errors.New("it forgets Done")

func newBadLoop(fault string, lives *int) func(*Site) (Embedder, error) {
	return func(s *Site) (Embedder, error) {
		*lives++
		b := &badLoop{loop: &loop{}, fault: fault}
		b.site = &badSite{Site: s, b: b}
		kept := func(yield func(joblife.Record, error) bool) {
			for rec, err := range s.Records() {
				if fault == "restores without some records" && rec.Job != 0 && *lives > 1 {
					continue
				}
				if !yield(rec, err) {
					return
				}
			}
		}
		var err error
		b.m, _, err = joblife.Restore(s.Now, s.Config, kept)
		if fault == "loses reports at a restart" && *lives > 1 {
			b.fault = "loses reports"
		}
		if fault == "loses what is submitted in its first life" && *lives == 1 {
			b.fault = "loses what is submitted"
		}
		return b, err
	}
}

func (b *badLoop) Handle(now time.Time, connection int, in joblife.Input) error {
	switch msg := in.(type) {
	case joblife.Submit:
		switch b.fault {
		case "loses what is submitted":
			return nil
		case "submits as root":
			msg.By.UserID = 0
		case "submits with another urgency":
			msg.Urgency = 31
		case "submits another jobspec":
			msg.Jobspec = bytes.Replace(msg.Jobspec, []byte(`"true"`), []byte(`"false"`), 1)
		case "cancels what is submitted":
			if err := b.loop.Handle(now, connection, in); err != nil {
				return err
			}
			return b.loop.Handle(now, 0, joblife.Raise{ID: msg.ID, Type: "cancel"})
		}
		in = msg
	case joblife.SetUrgency:
		if b.fault == "sets another urgency" {
			msg.Urgency = 1 + msg.Urgency%30
			in = msg
		}
	case joblife.SetExpiration:
		if b.fault == "sets another expiration" {
			msg.Expiration += 3600
			in = msg
		}
	case joblife.Raise:
		if b.fault == "raises another exception" {
			msg.Type = "oops"
			in = msg
		}
	case joblife.ExecResponse:
		if b.fault == "tells another result" && msg.Type == exec.ResponseFinish {
			msg.Status = 9
			in = msg
		}
	case joblife.SchedResponse:
		if b.fault == "takes late answers" || b.fault == "takes answers before a hello" && b.sched == 0 {
			connection = 0
		}
	case joblife.SchedReady:
		switch b.fault {
		case "forgets Ready":
			return b.m.Step(now, in)
		case "sends more requests than are allowed":
			in = joblife.SchedReady{}
		}
	case joblife.Report:
		switch exited := msg.Kind == perilog.ReportExited; {
		case b.fault == "loses reports":
			return nil
		case b.fault == "says that epilogs succeeded" && msg.Action.Kind == jobstate.ActionEpilog && exited:
			msg.Status = 0
		case b.fault == "says that prologs failed" && msg.Action.Kind == jobstate.ActionProlog && exited:
			msg.Status = 256
		}
		in = msg
	case joblife.Drained:
		if b.fault == "does not confirm drains" {
			return nil
		}
	}
	switch b.fault {
	case "steps the clock back":
		now = now.Add(-time.Second * time.Duration(connection))
	case "has a clock that is ahead":
		now = now.Add(time.Second)
	case "has a clock that stands still":
		now = b.site.(*badSite).Now
	}
	err := b.loop.Handle(now, connection, in)
	for len(b.drain) > 0 {
		ranks := b.drain[0]
		b.drain = b.drain[1:]
		_ = b.Handle(now, 0, joblife.Drained{Ranks: ranks})
	}
	if err == errForgets {
		return nil
	}
	return err
}

// badSite is the Site of a badLoop: what it does with records and effects.
type badSite struct {
	*Site
	b    *badLoop
	late []joblife.Record // to be written after the effects
}

func (s *badSite) Append(list []joblife.Record) error {
	switch s.b.fault {
	case "acts first":
		s.late = list
		return nil
	case "drops a record", "drops a record and does not show it":
		if len(list) > 1 {
			list = list[:len(list)-1]
		}
	case "goes on when the store fails":
		_ = s.Site.Append(list)
		return nil
	}
	return s.Site.Append(list)
}

func (s *badSite) Do(rd *joblife.Ready) error {
	effects := *rd
	switch s.b.fault {
	case "drops a record and does not show it":
		effects.Append = nil
	case "loses launches":
		effects.Launch = nil
	case "loses signals":
		effects.Signal = nil
	case "loses cancels", "loses priorities", "loses expirations":
		effects.Sched = slices.DeleteFunc(slices.Clone(rd.Sched), func(msg alloc.Message) bool {
			switch msg.(type) {
			case alloc.Cancel:
				return s.b.fault == "loses cancels"
			case alloc.Prioritize:
				return s.b.fault == "loses priorities"
			case alloc.Expiration:
				return s.b.fault == "loses expirations"
			}
			return false
		})
	case "confirms drains itself":
		for _, d := range rd.Drain {
			s.b.drain = append(s.b.drain, d.Ranks.Clone())
		}
	}
	if err := s.Site.Do(&effects); err != nil {
		return err
	}
	switch s.b.fault {
	case "acts first":
		return s.Site.Append(s.late)
	case "acts twice":
		return s.Site.Do(&effects)
	case "forgets Done":
		return errForgets
	}
	return nil
}

// A crash loses what the last node said of a prolog, which was canceled. So an operator ends it, and
// says that it failed. After that an embedder still may not lie of the epilog.
func TestAnOperatorEndsAProlog(t *testing.T) {
	nodes, one := nodes(t, 0, 1), []perilog.ActionConfig{{PerRank: true}}
	spec, err := jobspec.New(jobspec.Job{Nodes: 2, Command: []string{"true"}})
	require.NoError(t, err)
	text, err := spec.MarshalJSON()
	require.NoError(t, err)
	lie := regexp.MustCompile(`"epilog-finish".*"status":0`)
	setFlags(t, map[string]string{"rapid.checks": "800"})
	for _, fault := range []string{"", "says that epilogs succeeded"} {
		count := 0
		rapid.Check(t, func(t *rapid.T) {
			r := newRunner(t, perilog.Config{Prologs: one, Epilogs: one}, nodes)
			r.faulty, r.begins, r.newEmbedder = true, true, newBadLoop(fault, new(int))
			err := r.play([]Arrival{{Cancel: time.Second, Submit: joblife.Submit{Jobspec: text, Urgency: 16}}})
			failed := slices.ContainsFunc(r.w.Processes(), func(p Process) bool {
				return p.Action.Kind == jobstate.ActionEpilog && p.Status == 1<<8
			})
			switch ended := len(r.forced) == 1 && r.forced[forced{1000, "job-manager.prolog"}]; {
			case fault == "":
				require.NoError(t, err)
				count += len(r.forced)
			case ended && failed && lie.Match(r.logs[1000]):
				require.Error(t, err)
				count++
			}
		})
		require.Positive(t, count, fault)
	}
}

func TestABadEmbedderIsFound(t *testing.T) {
	for fault, want := range map[string]string{
		"acts first":                                "I4: the embedder acts, and this record of Ready .* is not durable",
		"drops a record":                            "I4: the embedder acts, and this record of Ready .* is not durable",
		"drops a record and does not show it":       "I5: its log is",
		"goes on when the store fails":              "acts, and its store has failed before",
		"forgets Ready":                             "takes .* and does not ask for a Ready",
		"acts twice":                                "carries out Ready .* again",
		"loses launches":                            "is left in|final fragment did not come|did not run there",
		"loses signals":                             "is canceled, and prolog job-manager.prolog is not told to end on rank",
		"forgets Done":                              "does not call Done for Ready",
		"takes late answers":                        "the embedder takes the scheduler's response .* on connection .*, which has ended",
		"tells another result":                      "its log says that it ended with status 9, and the executor said",
		"submits as root":                           "its log has what nobody asked for: .*submit",
		"submits with another urgency":              "its log has what nobody asked for: .*submit",
		"submits another jobspec":                   "its jobspec is not what was submitted",
		"cancels what is submitted":                 "its log has what nobody asked for: .*cancel",
		"sets another urgency":                      "its log has what nobody asked for: .*urgency",
		"sets another expiration":                   "its log has what nobody asked for: .*resource-update",
		"raises another exception":                  "its log has what nobody asked for: .*oops",
		"says that epilogs succeeded":               "its log says that job-manager.epilog ended with status 0, and its nodes did not",
		"says that prologs failed":                  "its log says that job-manager.prolog ended with status 256, and its nodes did not",
		"confirms drains itself":                    "I10: its log says that rank .* is drained, and nobody has confirmed it",
		"does not confirm drains":                   "is left in|is over|final fragment did not come",
		"loses what is submitted":                   "loses an input: there is no answer to joblife.Submit",
		"loses what is submitted in its first life": "loses an input: there is no answer to joblife.Submit",
		"loses reports":                             "loses an input: there is no answer to the report of rank",
		"loses reports at a restart":                "loses an input: there is no answer to the report of rank",
		"restores without some records":             "I5: it is in the store, and the embedder has forgotten it",
		"steps the clock back":                      "clock stepped",
		"has a clock that is ahead":                 "the embedder has another clock than Handle",
		"has a clock that stands still":             "the embedder has another clock than Handle",
		"takes answers before a hello":              "the embedder takes the scheduler's response .* on connection .*, which has ended",
		"sends more requests than are allowed":      "requests have no response, and SchedReady allows",
		"loses cancels":                             "waits no more, and the scheduler is not told: its request has no Cancel",
		"loses priorities":                          "has the priority .*, and the scheduler was told",
		"loses expirations":                         "expires at .*, and the scheduler was told",
	} {
		t.Run(fault, func(t *testing.T) {
			found := find(t, func(t *rapid.T) error { return runEmbedder(t, newBadLoop(fault, new(int))) })
			require.Regexp(t, `(?s)^[^\n]*(`+want+`)`, found.Error())
		})
	}
}
