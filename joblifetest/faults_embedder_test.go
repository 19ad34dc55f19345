package joblifetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/perilog/exec"
)

// badLoop is an embedder with a fault.
type badLoop struct {
	loop
	fault string
}

func newBadLoop(fault string, lives *int) func(*Site) (Embedder, error) {
	return func(s *Site) (Embedder, error) {
		*lives++
		b := &badLoop{loop: loop{site: s}, fault: fault}
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
		now := s.Now
		if fault == "starts with a clock that is behind" {
			now = now.Add(-time.Hour)
		}
		var err error
		b.m, _, err = joblife.Restore(now, s.Config, kept)
		if fault == "loses reports at a restart" && *lives > 1 {
			b.fault = "loses reports"
		}
		return b, err
	}
}

func (b *badLoop) Take(now time.Time, connection int, in joblife.Input) error {
	_, answer := in.(joblife.SchedResponse)
	switch msg := in.(type) {
	case joblife.SchedHello:
		b.sched = connection
	case joblife.ExecHello:
		b.exec = connection
	case joblife.ExecResponse:
		if b.fault == "tells another result" && msg.Type == exec.ResponseFinish {
			msg.Status = 9
			in = msg
		}
	case joblife.Report:
		if b.fault == "loses reports" {
			return nil
		}
	case joblife.Drained:
		if b.fault == "does not confirm drains" {
			return nil
		}
	}
	if connection != 0 && connection != b.sched && connection != b.exec && !(answer && b.fault == "takes late answers") {
		return nil
	}
	switch b.fault {
	case "steps the clock back":
		now = now.Add(-time.Second * time.Duration(connection))
	case "has a clock that is ahead":
		now = now.Add(time.Second)
	}
	if err := b.m.Step(now, in); err != nil {
		return err
	}
	if _, ready := in.(joblife.SchedReady); ready && b.fault == "forgets Ready" {
		return nil
	}
	for rd := new(joblife.Ready); b.m.Ready(rd); {
		list, effects := rd.Append, *rd
		switch b.fault {
		case "acts first":
			if err := b.site.Do(rd); err != nil {
				return err
			}
			effects = joblife.Ready{}
		case "drops a record", "drops a record and does not show it":
			if len(list) > 1 {
				list = list[:len(list)-1]
			}
			if b.fault != "drops a record" {
				effects.Append = nil
			}
		}
		if b.fault == "loses launches" {
			effects.Launch = nil
		}
		err := b.site.Append(list)
		if err != nil && b.fault != "goes on when the store fails" {
			return err
		}
		if effects.Seq > 0 {
			if err := b.site.Do(&effects); err != nil {
				return err
			}
		}
		if b.fault == "acts twice" {
			if err := b.site.Do(&effects); err != nil {
				return err
			}
		}
		for _, d := range rd.Drain {
			if b.fault == "confirms drains itself" {
				defer func() { _ = b.Take(now, 0, joblife.Drained{Ranks: d.Ranks.Clone()}) }()
			}
		}
		if b.fault == "forgets Done" {
			return nil
		}
		if err := b.m.Done(rd.Seq); err != nil {
			return err
		}
	}
	return nil
}

func TestAGoodEmbedderPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { RunEmbedder(t, newLoop) })
}

func TestABadEmbedderIsFound(t *testing.T) {
	for fault, want := range map[string]string{
		"acts first":                          "I4: the embedder acts, and this record of Ready .* is not durable",
		"drops a record":                      "I4: the embedder acts, and this record of Ready .* is not durable",
		"drops a record and does not show it": "I5: its log is",
		"goes on when the store fails":        "acts, and its store has failed before",
		"forgets Ready":                       "takes .* and does not ask for a Ready",
		"acts twice":                          "carries out Ready .* again",
		"loses launches":                      "is left in|final fragment did not come|did not run there",
		"forgets Done":                        "does not call Done for Ready",
		"takes late answers":                  "the embedder takes the scheduler's response .* on connection .*, which has ended",
		"tells another result":                "its log says that it ended with status 9, and the executor said",
		"confirms drains itself":              "I10: its log says that rank .* is drained, and nobody has confirmed it",
		"does not confirm drains":             "is left in|is over|final fragment did not come",
		"loses reports":                       "loses an input: there is no answer to the report of rank",
		"loses reports at a restart":          "loses an input: there is no answer to the report of rank",
		"restores without some records":       "I5: it is in the store, and the embedder has forgotten it",
		"steps the clock back":                "clock steps back|clock stepped",
		"has a clock that is ahead":           "clock steps back or ahead",
		"starts with a clock that is behind":  "clock steps back",
	} {
		t.Run(fault, func(t *testing.T) {
			found := find(t, func(t *rapid.T) error { return runEmbedder(t, newBadLoop(fault, new(int))) })
			require.Regexp(t, `(?s)^[^\n]*(`+want+`)`, found.Error())
		})
	}
}
