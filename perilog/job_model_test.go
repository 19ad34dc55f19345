package perilog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
)

// anyConfig draws up to three prologs and three epilogs.
var anyConfig = rapid.Custom(func(t *rapid.T) perilog.Config {
	actions := func(kind perilog.RunKind) (list []perilog.ActionConfig) {
		for i := range rapid.IntRange(0, 3).Draw(t, kind.String()+"s") {
			a := perilog.ActionConfig{Kind: kind, PerRank: rapid.IntRange(0, 3).Draw(t, "leader only") > 0, KillTimeout: 10}
			if i > 0 {
				a.Description = fmt.Sprint(kind, i)
			}
			a.Timeout = fsd.Duration(rapid.IntRange(0, 2).Draw(t, "timeout") * 60)
			a.Cancel = rapid.SampledFrom([]perilog.CancelPolicy{perilog.CancelDefault, perilog.CancelNever, perilog.CancelOnException}).Draw(t, "cancel")
			a.Tolerate = perilog.Tolerate{Count: rapid.IntRange(0, 2).Draw(t, "tolerate"), Drop: rapid.Bool().Draw(t, "drop")}
			list = append(list, a)
		}
		return list
	}
	return perilog.Config{Prologs: actions(perilog.RunProlog), Epilogs: actions(perilog.RunEpilog)}
})

// Whatever happens to a job, in whatever order, the cluster's checks hold after
// each step, and it comes to its end.
func TestAnyJobComesToItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := anyConfig.Draw(t, "config")
		ranks := rapid.IntRange(1, 40).Draw(t, "ranks")
		w := newCluster(t, ranks, config, func(s *perilog.JobSpec) { s.WholeJob = rapid.Bool().Draw(t, "whole job") })
		w.job.Offline(idset.Of(uint32(rapid.IntRange(0, 60).Draw(t, "offline"))))
		w.allocate()
		for step := 0; w.state.State() != jobstate.StateInactive; step++ {
			require.Less(t, step, 2000, "%s", w.job)
			w.now += 1e-3
			w.perturb(t, step)
			list := w.moves()
			if len(list) == 0 {
				break
			}
			// A crash and a cancel are always possible: others come first in the end.
			i := rapid.IntRange(0, len(list)-1).Draw(t, "move")
			if step > 150 {
				i = 0
			}
			w.fuse = max(0, rapid.IntRange(-10, 6).Draw(t, "steps to a crash"))
			if step > 150 {
				w.fuse = 0
			}
			list[i].do(w)
			w.fuse = 0
		}
		w.over()
		for key, n := range w.starts {
			require.LessOrEqual(t, n, 1, "I11: %s", key)
		}
		if prologs := w.started || len(w.starts) > 0; prologs && len(config.Prologs) > 0 {
			for i := range config.Epilogs {
				key := perilog.Key{Kind: jobstate.ActionEpilog, Description: config.Epilogs[i].Description}
				if i == 0 {
					key = epilogKey
				}
				require.Equal(t, 1, w.starts[key.String()], "I11: %s", key)
			}
		}
	})
}

// perturb does what must change nothing: reports of strangers, twice, too late.
func (w *cluster) perturb(t *rapid.T, step int) {
	before := w.canonical()
	switch rapid.IntRange(0, 5).Draw(t, "perturb") {
	case 0:
		answer := w.job.Report(w.now, perilog.Key{Kind: jobstate.ActionEpilog, Description: "stranger"}, perilog.Report{Kind: perilog.ReportExited})
		require.Equal(t, perilog.AnswerStranger, answer)
	case 1:
		answer := w.job.Report(0, prologKey, perilog.Report{Kind: perilog.ReportExited, Rank: 1 << 20})
		require.NotEqual(t, perilog.AnswerApplied, answer)
	case 2:
		w.job.Drained(0, idset.Of(1<<20))
	case 3:
		require.Error(t, w.job.Rerun(0, perilog.Key{Kind: jobstate.ActionProlog, Description: "stranger"}))
		require.Error(t, w.job.ForceFinish(0, prologKey, 0, "alice"))
	case 4:
		w.event("memo", fmt.Sprintf(`{"step":%d}`, step))
		return
	default:
		return
	}
	require.Equal(t, before, w.canonical())
}

// FuzzRecoverJob: whatever stands in a log, the job is told up to there, can be
// gone on with, and starts nothing twice.
func FuzzRecoverJob(f *testing.F) {
	w := newCluster(f, 3, perRank(), nil).allocate()
	f.Add(w.log)
	for rank := range uint32(3) {
		w.exit(prologKey, rank, 0)
	}
	w.begin()
	w.finish(0)
	w.exit(epilogKey, 1, 0)
	f.Add(w.log)
	f.Add([]byte(`{"timestamp":1.0,"name":"prolog-start","context":{"description":"job-manager.prolog"}}` + "\n"))
	f.Add([]byte(`{"timestamp":1.0,"name":"alloc"}` + "\n" + `{"timestamp":1.0,"name":"exception","context":{"type":"x","severity":0,"note":""}}` + "\n"))
	f.Add([]byte(`{"timestamp":1.0,"name":"alloc"}
{"timestamp":1.0,"name":"epilog-start","context":{"description":"job-manager.epilog"}}
{"timestamp":2.0,"name":"epilog-start","context":{"description":"job-manager.epilog"}}
{"timestamp":3.0,"name":"epilog-finish","context":{"description":"job-manager.epilog","status":0}}
{"timestamp":3.0,"name":"prolog-start","context":{"description":"job-manager.prolog"}}
{"timestamp":4.0,"name":"prolog-release","context":{"description":"job-manager.prolog","ranks":"0","status":256}}
`))
	r := hostsR(f, 3)
	f.Fuzz(func(t *testing.T, log []byte) {
		log = log[:min(len(log), 4<<10)]
		spec := perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, R: r}}
		job, _ := perilog.RecoverJob(1, perRank(), spec, log)
		require.NotNil(t, job)
		for range 20 {
			require.NoError(t, job.Check())
			for _, u := range job.Unresolved() {
				_ = job.ForceFinish(2, u.Action, 1, "fuzz")
			}
			effects := job.Take()
			if effects.IsEmpty() {
				break
			}
			for _, e := range effects.Post {
				_, err := eventlog.AppendEntry(nil, e)
				require.NoError(t, err)
				_, err = job.Apply(2, e.Clone())
				require.NoError(t, err)
			}
			if at, ok := job.Deadline(); ok {
				job.Tick(at)
			}
		}
	})
}
