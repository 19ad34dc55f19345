package joblifetest

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
)

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// Rs generates resource sets of 1 to the given number of nodes, with 1 to 4 cores each;
// some have gpus.
func Rs(nodes int) *rapid.Generator[*rset.R] {
	return rapid.Custom(func(t *rapid.T) *rset.R {
		n := rapid.IntRange(1, nodes).Draw(t, "nodes")
		children := map[string]*idset.Set{"core": idset.Range(0, uint32(rapid.IntRange(0, 3).Draw(t, "last core")))}
		if rapid.IntRange(0, 3).Draw(t, "gpus") == 3 {
			children["gpu"] = idset.Of(0)
		}
		r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, uint32(n-1)), Children: children}}})
		must(t, err)
		return r
	})
}

// Jobspecs generates jobspecs for a machine with the given number of nodes. A few ask for
// more than it has.
func Jobspecs(nodes int) *rapid.Generator[*jobspec.Spec] {
	return rapid.Custom(func(t *rapid.T) *jobspec.Spec {
		j := jobspec.Job{
			Nodes: int64(rapid.IntRange(0, nodes+1).Draw(t, "nodes")), Slots: int64(rapid.IntRange(0, 2).Draw(t, "slots")),
			Cores:    int64(rapid.IntRange(0, 2).Draw(t, "cores")),
			Duration: time.Duration(rapid.IntRange(0, 120).Draw(t, "duration")) * time.Second,
			Command:  []string{rapid.SampledFrom([]string{"true", "hostname", "sleep"}).Draw(t, "command")},
		}
		if rapid.IntRange(0, 5).Draw(t, "gpus") == 5 {
			j.GPUs = 1
		}
		j.Exclusive = j.Nodes > 0 && rapid.Bool().Draw(t, "exclusive")
		spec, err := jobspec.New(j)
		must(t, err)
		return spec
	})
}

// An Arrival is a job of a workload. It is submitted After the job before it, and Runs
// for a time if it gets resources.
type Arrival struct {
	After  time.Duration
	Submit joblife.Submit
	Runs   time.Duration
	Status int32 // a wait status
	// Cancel is the time from submission to cancel; 0 is never.
	Cancel time.Duration
}

// GoString returns a readable text, which rapid prints when a test fails.
func (a Arrival) GoString() string {
	s := fmt.Sprintf("{after %v, runs %v with status %d, urgency %d", a.After, a.Runs, a.Status, a.Submit.Urgency)
	if a.Submit.By.UserID > 0 {
		s += fmt.Sprintf(", user %d", a.Submit.By.UserID)
	}
	if a.Cancel > 0 {
		s += fmt.Sprintf(", canceled after %v", a.Cancel)
	}
	return s + ": " + asked(a.Submit) + "}"
}

// asked returns in words what a job asks for, or its jobspec.
func asked(in joblife.Submit) string {
	spec, err := in.Spec, error(nil)
	if spec == nil {
		spec, err = jobspec.Parse(in.Jobspec)
	}
	if err != nil {
		return string(in.Jobspec)
	}
	q, err := pool.NewRequest(spec)
	if err != nil {
		return string(in.Jobspec)
	}
	s := q.String()
	if d := spec.Duration(); d > 0 {
		s += fmt.Sprintf(" for %v", d)
	}
	if c := spec.Constraints(); c != nil {
		s += fmt.Sprintf(" with the constraints %s", c)
	}
	for d := range spec.Dependencies() {
		s += fmt.Sprintf(" after %s %s", d.Scheme, d.Value)
	}
	return s
}

// Workloads generates workloads of 1 to the given number of jobs, for a machine with the
// given number of nodes, submitted by up to three users.
func Workloads(jobs, nodes int) *rapid.Generator[[]Arrival] {
	seconds := func(t *rapid.T, most int, label string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Second
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Arrival {
		text, err := Jobspecs(nodes).Draw(t, "jobspec").MarshalJSON()
		must(t, err)
		a := Arrival{
			After: seconds(t, 10, "after"), Runs: seconds(t, 60, "runs"),
			Submit: joblife.Submit{Jobspec: text, Urgency: rapid.IntRange(1, jobstate.UrgencyExpedite).Draw(t, "urgency")},
		}
		a.Submit.By.UserID = uint32(rapid.IntRange(0, 2).Draw(t, "user"))
		if rapid.IntRange(0, 4).Draw(t, "canceled") == 4 {
			a.Cancel = time.Second + seconds(t, 60, "cancel")
		}
		if rapid.IntRange(0, 4).Draw(t, "fails") == 4 {
			a.Status = 256
		}
		return a
	}), 1, jobs)
}

// Reports generates what the nodes of a launch may report until it has ended on each of its
// ranks, in any order; some reports come again later. Most commands succeed; others fail,
// cannot be launched, or run on a node that is out of reach.
func Reports(l joblife.Launch) *rapid.Generator[[]joblife.Report] {
	return rapid.Custom(func(t *rapid.T) []joblife.Report {
		var reports []joblife.Report
		ranks := slices.Collect(l.Ranks.All())
		started := make(map[uint32]bool)
		for len(ranks) > 0 {
			i := 0
			if len(ranks) > 1 {
				i = rapid.IntRange(0, len(ranks)-1).Draw(t, "rank")
			}
			r := joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Rank: ranks[i]}}
			switch n := rapid.IntRange(0, 19).Draw(t, "report"); {
			case n >= 15 && !started[r.Rank]:
				r.Kind, started[r.Rank] = perilog.ReportStarted, true
			case n == 14 && !started[r.Rank]:
				r.Kind, r.Status = perilog.ReportLaunchFailed, 127<<8
			case n == 13:
				r.Kind = perilog.ReportUnreachable
			case n == 12:
				r.Kind, r.Status = perilog.ReportExited, 1<<8
			case n == 11 && len(reports) > 0:
				r = reports[rapid.IntRange(0, len(reports)-1).Draw(t, "again")]
			default:
				r.Kind = perilog.ReportExited
			}
			reports = append(reports, r)
			if r.Kind != perilog.ReportStarted && r.Rank == ranks[i] {
				ranks = slices.Delete(ranks, i, i+1)
			}
		}
		return reports
	})
}

// prologsAndEpilogs draws at most one of each.
func prologsAndEpilogs(t *rapid.T) perilog.Config {
	one := []perilog.ActionConfig{{PerRank: true}}
	return perilog.Config{Prologs: one[:rapid.IntRange(0, 1).Draw(t, "prologs")], Epilogs: one[:rapid.IntRange(0, 1).Draw(t, "epilogs")]}
}

// Logs generates complete eventlogs as a Manager writes them, with prologs and epilogs
// that succeed or fail, exceptions and partial releases.
func Logs() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		r := newRunner(t, prologsAndEpilogs(t), Rs(4).Draw(t, "nodes"))
		must(t, r.play(Workloads(1, 4).Draw(t, "workload")))
		for _, log := range r.logs { // of one job
			return log
		}
		return nil
	})
}
