package perilog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
)

// early returns a job in SCHED without an R, and its log.
func early(t require.TestingT, c *perilog.Config) *lifeLog {
	l := &lifeLog{t: t, now: 10}
	spec := fuzzSpec(t)
	spec.R, spec.Named = nil, nil
	var err error
	l.job, err = perilog.NewJob(c, spec)
	require.NoError(t, err)
	for e, err := range eventlog.Entries([]byte(prelude)) {
		require.NoError(t, err)
		if e.Name != jobstate.EventAlloc {
			_, err = l.job.Apply(l.now, e)
			require.NoError(t, err)
		}
	}
	return l
}

// apply applies an event, and reports whether it was accepted.
func (l *lifeLog) apply(name, context string) bool {
	l.now++
	_, err := l.job.Apply(l.now, entryOf(l.now, name, context))
	require.NoError(l.t, l.job.Check())
	return err == nil
}

// sameAsItsLog stores what is to be posted, and compares the job with what its log
// tells.
func (l *lifeLog) sameAsItsLog(c *perilog.Config) {
	l.store(l.t, l.job.Take(l.now).Post)
	again, err := perilog.RecoverJob(l.now, c, fuzzSpec(l.t), l.log, l.hk)
	require.NoError(l.t, err, "%s", l.log)
	require.Equal(l.t, again.Holds().String(), l.job.Holds().String(), "I5:\n%s", l.log)
	require.Equal(l.t, again.Told(), l.job.Told(), "I5:\n%s", l.log)
}

func TestAForeignActionHoldsFromAllocOn(t *testing.T) {
	for name, c := range map[string]*perilog.Config{
		"alone": {}, "with housekeeping": {Housekeeping: &perilog.HousekeepingConfig{}}, "beside an epilog": {Epilogs: []perilog.ActionConfig{perRank()}},
	} {
		t.Run(name, func(t *testing.T) {
			l := early(t, c)
			l.apply("epilog-start", `{"description":"dws"}`)
			l.apply("epilog-start", `{"description":"rabbit","ranks":"0-1","resources":["fs"]}`)
			l.apply("perilog-release", `{"description":"rabbit","kind":"epilog","ranks":"1","status":0}`)
			require.NoError(t, l.job.SetR(fuzzSpec(t).R, "fs"))
			require.True(t, l.apply("alloc", ""))
			l.sameAsItsLog(c)
			l.job.NotStarted(l.now)
			require.True(t, l.apply("exception", cancel))
			l.sameAsItsLog(c)
			require.True(t, l.job.Freed().IsEmpty(), "I3")
			l.apply("epilog-finish", `{"description":"dws","status":0}`)
			l.sameAsItsLog(c)
			require.False(t, l.job.Holds().Released().Ranks.Contains(0), "I3: rabbit holds it")
			require.Equal(t, "1-3", l.job.Holds().Released().Ranks.String())
			l.apply("epilog-finish", `{"description":"rabbit","status":0}`)
			l.sameAsItsLog(c)
			require.Equal(t, jobstate.StateInactive, l.job.State().State())
		})
	}
}

func TestADrainFromBeforeTheAllocationIsAskedFor(t *testing.T) {
	l := early(t, &perilog.Config{})
	l.apply("prolog-start", `{"description":"dws"}`)
	l.apply("perilog-fail", `{"description":"dws","kind":"prolog","ranks":"2","cause":"failed","status":256,"drain":true}`)
	l.apply("prolog-finish", `{"description":"dws","status":0}`)
	require.Empty(t, l.job.Take(l.now).Drain)
	require.NoError(t, l.job.SetR(fuzzSpec(t).R))
	l.apply("alloc", "")
	drain := l.job.Take(l.now).Drain
	require.Len(t, drain, 1)
	require.Equal(t, "2", drain[0].Ranks.String())
}

// Whatever services post before a job has its R, it is then what its log tells (I5).
func TestWhatComesBeforeRIsFoldedWhenRComes(t *testing.T) { rapid.Check(t, driveEarly) }

func FuzzEarly(f *testing.F) { f.Fuzz(rapid.MakeFuzz(driveEarly)) }

func driveEarly(t *rapid.T) {
	c := fuzzConfig(rapid.Byte().Draw(t, "configuration"))
	l := early(t, c)
	events := func(n int) {
		for range rapid.IntRange(0, n).Draw(t, "events") {
			o := drawHoldsOp(t, 4, []string{"fs"})
			switch o.name {
			case "start", "finish", "free", "clean", "release", "alloc":
				continue
			}
			if o.fatal && o.name == "exception" && l.job.State().State() == jobstate.StateSched {
				continue
			}
			text := o.context()
			if o.name == "epilog-start" && rapid.IntRange(0, 4).Draw(t, "owned") == 0 {
				text = text[:len(text)-1] + `,"per-rank":true,"attempt":1}`
			}
			l.apply(o.name, text)
		}
	}
	events(8)
	if rapid.Bool().Draw(t, "restart") {
		l.store(t, l.job.Take(l.now).Post)
		spec := fuzzSpec(t)
		spec.R, spec.Named = nil, nil
		var err error
		l.job, err = perilog.RecoverJob(l.now, c, spec, l.log, nil)
		require.NoError(t, err)
		events(8)
	}
	if rapid.Bool().Draw(t, "reload") {
		c = fuzzConfig(rapid.Byte().Draw(t, "another configuration"))
		require.NoError(t, l.job.SetConfig(c))
	}
	require.NoError(t, l.job.SetR(fuzzSpec(t).R, fuzzSpec(t).Named...))
	l.apply("alloc", "")
	l.sameAsItsLog(c)
	events(6)
	l.sameAsItsLog(c)
}

// A life that gets R after a restart is what one is that has R from its log's first line on.
func TestRAfterARestartMakesRealWhatTheLogHas(t *testing.T) {
	for name, lines := range map[string][]string{
		"a drain that was confirmed": {
			`{"timestamp":5,"name":"prolog-start","context":{"description":"dws"}}`,
			`{"timestamp":6,"name":"perilog-fail","context":{"description":"dws","kind":"prolog","ranks":"2","cause":"failed","status":256,"drain":true}}`,
			`{"timestamp":7,"name":"drained","context":{"ranks":"2"}}`,
		},
		"a foreign start of what the configuration has by now": {
			`{"timestamp":5,"name":"prolog-start","context":{"description":"job-manager.prolog"}}`,
		},
		"as many actions of ours as a job adopts": slices.Collect(func(yield func(string) bool) {
			for n := range 64 {
				yield(fmt.Sprintf(`{"timestamp":5,"name":"prolog-start","context":{"description":"p%d","per-rank":true}}`, n))
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			log := []byte(prelude + strings.Join(lines, "\n") + "\n")
			c := &perilog.Config{Prologs: []perilog.ActionConfig{perRank()}}
			spec := fuzzSpec(t)
			want, err := perilog.RecoverJob(10, c, spec, log, nil)
			require.NoError(t, err)
			spec.R = nil
			job, err := perilog.RecoverJob(10, c, spec, log, nil)
			require.NoError(t, err)
			require.Empty(t, job.Take(10).Post)
			require.NoError(t, job.SetR(fuzzSpec(t).R, spec.Named...))
			require.Equal(t, want.Holds().String(), job.Holds().String())
			require.Equal(t, want.Told(), job.Told())
		})
	}
}

// Before R, an action that another writer started is foreign until it ends, whatever the
// configuration has. What is admitted does not depend on a reload of the same configuration.
func TestAnActionThatOthersHaveFinishedBeforeRIsOursAgain(t *testing.T) {
	const start = `{"timestamp":5,"name":"prolog-start","context":{"description":"job-manager.prolog"}}` + "\n"
	c := &perilog.Config{Prologs: []perilog.ActionConfig{perRank()}}
	spec := fuzzSpec(t)
	spec.R = nil
	for _, reload := range []bool{false, true} {
		job, err := perilog.RecoverJob(10, c, spec, []byte(prelude+start), nil)
		require.NoError(t, err)
		if reload {
			require.NoError(t, job.SetConfig(c))
		}
		for _, event := range []struct {
			name, context string
			want          error
		}{
			{"prolog-finish", `{"description":"job-manager.prolog","status":0}`, nil},
			{"prolog-start", `{"description":"job-manager.prolog"}`, perilog.ErrPosted},
		} {
			_, err = job.Apply(11, eventlog.Entry{Timestamp: 11, Name: event.name, Context: []byte(event.context)})
			require.ErrorIs(t, err, event.want, "%s, reload: %v", event.name, reload)
		}
	}
}
