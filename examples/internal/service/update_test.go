package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
)

var updateRows = []row{
	private("update", duration(pending, "30"), "guests may only update their own jobs"),
	{"update", duration(owners, "30"), want{}, want{errno.Perm, "guests may only update their own jobs"}, want{errno.Perm, "guests may only update their own jobs"}},
	{"update", duration(running, "30"), want{errno.Invalid, "requested duration places job expiration in the past"},
		want{errno.Invalid, "duration update of running job requires instance owner privileges"}, want{errno.Perm, "guests may only update their own jobs"}},
	same("update", duration(inactive, "30"), errno.Invalid, "job is inactive"),
	same("update", duration(unknown, "30"), errno.NoEntry, "unknown job id"),
	same("update", `{"id":16}`, errno.Protocol, ""),
}

// The jobs of updating: all are the guest's, and in queue debug but for the last.
const (
	waitingJob  = 16
	runningJob  = 17
	inactiveJob = 18
	boundJob    = 19 // has constraints of its own
	otherJob    = 20 // in queue other
)

// updating returns a service with jobs to update.
func updating(t *testing.T) *desk {
	t.Helper()
	s := newDesk(t, Config{
		Queues: map[string]Queue{
			"batch":  {Requires: []string{"batch"}, Limits: Limits{Duration: jobstate.Some(fsd.Duration(time.Hour))}},
			"debug":  {Requires: []string{"debug"}, Limits: Limits{Duration: jobstate.Some(fsd.Duration(time.Minute))}},
			"other":  {},
			"closed": {},
		},
	})
	s.goOnline()
	s.converse(exchange{anOwner, "queue-enable", `{"enable":false,"all":false,"name":"closed","reason":""}`, 0, ""})
	for id := jobid.ID(waitingJob); id <= otherJob; id++ {
		queue, constraints := "debug", `{"properties":["debug"]}`
		switch id {
		case boundJob:
			constraints = `{"and":[{"ranks":["0"]},{"properties":["debug"]}]}`
		case otherJob:
			queue, constraints = "other", ``
		}
		s1, err := jobspec.Parse([]byte(specOf(t, jobspec.Job{Queue: queue, Duration: time.Minute})))
		require.NoError(t, err)
		if constraints != "" {
			s1, err = s1.Update(pathConstraints, json.RawMessage(constraints))
			require.NoError(t, err)
		}
		text, err := json.Marshal(s1)
		require.NoError(t, err)
		require.Empty(t, s.submitted(id, 5, string(text)))
	}
	s.runJob(runningJob)
	s.do(joblife.Raise{ID: inactiveJob, Type: "cancel"})
	return s
}

func duration(id int, value string) string {
	return fmt.Sprintf(`{"id":%d,"updates":{"attributes.system.duration":%s}}`, id, value)
}

func queue(id int, value string) string {
	return fmt.Sprintf(`{"id":%d,"updates":{"attributes.system.queue":%s}}`, id, value)
}

// TestUpdateRefuses has what is wrong with updates, in the words of flux-core.
func TestUpdateRefuses(t *testing.T) {
	const invalid = "one or more jobspec updates are invalid"
	s := updating(t)
	s.converse(exchange{anOwner, "update", duration(boundJob, "61"), 0, ""}) // an owner of another's job
	before := s.Loop.Stats().Inputs
	s.converse(
		exchange{aGuest, "update", `{"id":16,"updates":1}`, errno.Invalid, invalid},
		exchange{aGuest, "update", `{"id":16,"updates":{}}`, 0, ""},
		exchange{aGuest, "update", `{"id":99,"updates":{"resources":[]}}`, errno.NoEntry, "unknown job id"},
		exchange{aGuest, "update", fmt.Sprintf(`{"id":%d,"updates":{}}`, boundJob), errno.Perm, "job is immutable due to previous instance owner update"},
		exchange{anOwner, "update", `{"id":16,"updates":{"resources":[]}}`, errno.Invalid, "update of resources not supported"},
		exchange{aGuest, "update", `{"id":16,"updates":{"foo":1}}`, errno.Invalid, invalid},
		exchange{aGuest, "update", `{"id":16,"updates":{"attributesx.a":1}}`, errno.Invalid, invalid},
		exchange{anOwner, "update", `{"id":16,"updates":{"attributes":1}}`, errno.Invalid, "update of attributes not supported"},
		exchange{aGuest, "update", duration(boundJob, "30"), errno.Perm, "job is immutable due to previous instance owner update"},
		exchange{aGuest, "update", `{"id":16,"updates":{"attributes.system.duration":30,"attributes.system.name":"x"}}`, errno.Invalid, "update of attributes.system.name not supported"},

		exchange{aGuest, "update", duration(waitingJob, `"foo"`), errno.Invalid, "plugin args unpack failed"},
		exchange{aGuest, "update", duration(waitingJob, `null`), errno.Invalid, "plugin args unpack failed"},
		exchange{anOwner, "update", duration(waitingJob, "1."+strings.Repeat("0", 1<<20)), errno.Invalid, "plugin args unpack failed"},
		exchange{aGuest, "update", duration(waitingJob, `-1.0`), errno.Invalid, "duration must not be negative"},
		exchange{aGuest, "update", duration(waitingJob, `61`), errno.Invalid, "requested duration (1m) exceeds policy limit of 1m for queue debug"},

		exchange{aGuest, "update", queue(waitingJob, `42`), errno.Invalid, "plugin args unpack failed"},
		exchange{aGuest, "update", queue(waitingJob, `null`), errno.Invalid, "plugin args unpack failed"},
		exchange{aGuest, "update", queue(waitingJob, `""`), errno.Invalid, "'' is not a valid queue"},
		exchange{aGuest, "update", queue(waitingJob, `"debug"`), errno.Invalid, "job queue is already set to debug"},
		exchange{aGuest, "update", queue(waitingJob, `"foo"`), errno.Invalid, "'foo' is not a valid queue"},
		exchange{aGuest, "update", queue(waitingJob, `"closed"`), errno.Invalid, "queue closed is currently disabled"},
		exchange{anOwner, "update", queue(runningJob, `"batch"`), errno.Invalid, "update of queue for running job not supported"},
		exchange{anOwner, "update", queue(boundJob, `"batch"`), errno.Invalid, "job appears to have non-queue constraints, unable to update queue to debug"},
		exchange{anOwner, "update", `{"id":20,"updates":{"attributes.system.queue":"debug","attributes.system.duration":120}}`, errno.Invalid, "requested duration (2m) exceeds policy limit of 1m for queue debug"},
	)
	require.Equal(t, before, s.Loop.Stats().Inputs, "a request that failed has changed something")
	require.Empty(t, s.calls)
}

// logged returns the events in records, with their contexts.
func logged(t *testing.T, out Out) (list []string) {
	t.Helper()
	for _, r := range out.Append {
		if r.Kind == joblife.RecordEvent {
			e, err := eventlog.Parse(r.Data)
			require.NoError(t, err)
			list = append(list, e.Name+" "+string(e.Context))
		}
	}
	return list
}

// ok requires that out has a success as its only answer.
func topics(out Out) string {
	var list []string
	for _, c := range out.Calls {
		list = append(list, c.Topic)
	}
	return strings.Join(list, " ")
}

func ok(t *testing.T, out Out) {
	t.Helper()
	require.Equal(t, []Answer{{Topic: "job-manager.update", Sender: "a", Matchtag: 1}}, out.Answers)
}

// TestUpdateOfDuration: of a job that waits, at once.
func TestUpdateOfDuration(t *testing.T) {
	s := updating(t)
	out := s.drive(from(aGuest, "update", duration(waitingJob, "30")))
	ok(t, out)
	require.Equal(t, []string{`jobspec-update {"attributes.system.duration":30}`, `priority {"priority":16}`}, logged(t, out))
	v := s.view(waitingJob)
	require.Equal(t, 30*time.Second, v.Jobspec().Duration())

	// The owner is above the limits, and the guest may not go on from there.
	out = s.drive(from(anOwner, "update", duration(waitingJob, "3600")))
	ok(t, out)
	require.Equal(t, []string{`jobspec-update {"attributes.system.duration":3600}`, `priority {"priority":16}`, `set-flags {"flags":["immutable"]}`}, logged(t, out))
	out = s.drive(from(anOwner, "update", `{"id":16,"updates":{"attributes.system.duration":5,"attributes.system.duration":7}}`))
	require.Empty(t, logged(t, out), "two updates of one key")
	require.NotZero(t, out.Answers[0].Errnum)
}

// TestUpdateOfARunningJob asks the scheduler first, and tells it once.
func TestUpdateOfARunningJob(t *testing.T) {
	for _, refused := range []Response{{}, {Errnum: errno.NoSys}, {Errnum: errno.Invalid, Errstr: "no"}} {
		s := updating(t)
		s.do(joblife.ExecHello{})
		out := s.drive(from(anOwner, "update", duration(runningJob, "120.5")))
		require.Empty(t, out.Answers)
		require.Empty(t, out.Append)
		require.Len(t, out.Calls, 1)
		require.Equal(t, "sched.expiration", out.Calls[0].Topic)
		require.JSONEq(t, `{"id":17,"expiration":1700000110.5}`, text(t, out.Calls[0].Payload))

		refused.Topic, refused.Tag = out.Calls[0].Topic, out.Calls[0].Tag
		require.NoError(t, s.Respond(start, refused))
		require.Error(t, s.Respond(start, refused), "twice")
		out = s.collect()
		if refused.Errnum == errno.Invalid {
			require.Equal(t, []Answer{{Topic: "job-manager.update", Sender: "a", Matchtag: 1, Errnum: errno.Invalid, Errstr: "scheduler refused expiration update"}}, out.Answers)
			require.Empty(t, out.Append)
			continue
		}
		ok(t, out)
		require.Equal(t, []string{
			`jobspec-update {"attributes.system.duration":120.5}`,
			`set-flags {"flags":["immutable"]}`,
			`resource-update {"expiration":1700000110.5}`,
		}, logged(t, out))
		require.Empty(t, topics(out), "the scheduler knows")

		out = s.drive(from(anOwner, "update", duration(runningJob, "0")))
		require.JSONEq(t, `{"id":17,"expiration":0}`, text(t, out.Calls[0].Payload))
	}
}

// TestUpdatesAreBounded: a guest whose updates nobody checks cannot fill the memory.
func TestUpdatesAreBounded(t *testing.T) {
	s := updating(t)
	for range maxOfUser {
		s.Request(start, from(aGuest, "update", queue(waitingJob, `"batch"`)))
	}
	s.converse(exchange{aGuest, "update", queue(waitingJob, `"batch"`), errno.Again, "too many updates are being checked"})
	require.Empty(t, s.drive(from(anOwner, "update", queue(waitingJob, `"batch"`))).Answers, "others may ask")
}

// TestHugeDurations: no duration is too long for a job of the owner.
func TestHugeDurations(t *testing.T) {
	for d, want := range map[string]string{
		"1e300": `{"expiration":1.0000000000000001e300}`, "1e10": `{"expiration":11699999990.0}`, "-0.0": `{"expiration":0.0}`,
	} {
		s := updating(t)
		for _, id := range []int{waitingJob, runningJob} {
			out := s.drive(from(anOwner, "update", duration(id, d)))
			for _, c := range out.Calls {
				if c.Topic != "sched.expiration" {
					continue
				}
				require.NoError(t, s.Respond(start, Response{Topic: c.Topic, Tag: c.Tag}))
				out = s.collect()
			}
			ok(t, out)
			if id == runningJob {
				require.Contains(t, logged(t, out), "resource-update "+want)
			}
		}
	}
}

// TestUpdateOfQueue asks whether the job can run there.
func TestUpdateOfQueue(t *testing.T) {
	cases := []struct {
		id                 int
		updates, want      string
		feasible           bool
		queue, constraints string
	}{
		{waitingJob, `{"attributes.system.queue":"batch"}`,
			`{"attributes.system.queue":"batch","attributes.system.constraints":{"properties":["batch"]}}`, true, "batch", `{"properties":["batch"]}`},
		{waitingJob, `{"attributes.system.queue":"other"}`,
			`{"attributes.system.queue":"other","attributes.system.constraints":{}}`, true, "other", `{}`},
		{otherJob, `{"attributes.system.queue":"debug","attributes.system.duration":30}`,
			`{"attributes.system.queue":"debug","attributes.system.duration":30,"attributes.system.constraints":{"properties":["debug"]}}`, true, "debug", `{"properties":["debug"]}`},
		{waitingJob, `{"attributes.system.queue":"other"}`, ``, false, "debug", `{"properties":["debug"]}`},
	}
	for _, c := range cases {
		s := updating(t)
		out := s.drive(from(aGuest, "update", fmt.Sprintf(`{"id":%d,"updates":%s}`, c.id, c.updates)))
		require.Empty(t, out.Answers)
		require.Len(t, out.Calls, 1)
		require.Equal(t, "feasibility.check", out.Calls[0].Topic)
		var asked struct{ Jobspec json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(text(t, out.Calls[0].Payload)), &asked))
		_, err := jobspec.Parse(asked.Jobspec)
		require.NoError(t, err)

		r := Response{Topic: out.Calls[0].Topic, Tag: out.Calls[0].Tag}
		if !c.feasible {
			r.Errnum, r.Errstr = errno.Invalid, "unsatisfiable request"
		}
		require.NoError(t, s.Respond(start, r))
		out = s.collect()
		if c.feasible {
			ok(t, out)
			require.Equal(t, "jobspec-update "+c.want, logged(t, out)[0])
		} else {
			require.Equal(t, "unsatisfiable request", out.Answers[0].Errstr)
			require.Empty(t, out.Append)
		}
		v := s.view(jobid.ID(c.id))
		require.Equal(t, c.queue, v.Jobspec().Queue())
		require.JSONEq(t, c.constraints, string(v.Jobspec().Constraints()))
	}
}

// TestUpdateIsCheckedAgain: the job may go on while others are asked.
func TestUpdateIsCheckedAgain(t *testing.T) {
	cases := []struct {
		meanwhile func(*desk)
		errnum    int
		text      string
	}{
		{func(s *desk) { s.runJob(waitingJob) }, errno.Invalid, "update of queue for running job not supported"},
		{func(s *desk) {
			s.do(joblife.Raise{ID: waitingJob, Type: "cancel"})
		}, errno.Invalid, "job is inactive"},
		{func(s *desk) {
			ok := exchange{anOwner, "queue-enable", `{"enable":false,"all":true,"reason":""}`, 0, ""}
			s.converse(ok)
		}, errno.Invalid, "queue batch is currently disabled"},
		{func(s *desk) {
			s.cfg.Parse = func(old Config, _ []byte) (Config, error) {
				old.Queues = maps.Clone(old.Queues)
				delete(old.Queues, "debug")
				return old, nil
			}
			s.converse(exchange{anOwner, "config-reload", `{}`, 0, ""})
		}, errno.Invalid, "'debug' is not a valid queue"},
		{func(s *desk) { s.Stop(start) }, errno.Again, "job manager is shutting down"},
	}
	for _, c := range cases {
		s := updating(t)
		out := s.drive(from(aGuest, "update", queue(waitingJob, `"batch"`)))
		c.meanwhile(s)
		require.NoError(t, s.Respond(start, Response{Topic: "feasibility.check", Tag: out.Calls[0].Tag}))
		out = s.collect()
		require.Equal(t, []Answer{{Topic: "job-manager.update", Sender: "a", Matchtag: 1, Errnum: c.errnum, Errstr: c.text}}, out.Answers)
		require.NotContains(t, logged(t, out), "jobspec-update")
	}
}

// TestUpdateInCleanup: a job that ends keeps its expiration.
func TestUpdateInCleanup(t *testing.T) {
	s := updating(t)
	s.do(joblife.ExecHello{})
	require.NoError(t, s.step(joblife.Raise{ID: runningJob, Type: "cancel"}))
	out := s.drive(from(anOwner, "update", duration(runningJob, "120")))
	v := s.view(runningJob)
	require.Equal(t, jobstate.StateCleanup, v.State())
	require.NoError(t, s.Respond(start, Response{Topic: "sched.expiration", Tag: out.Calls[0].Tag}))
	out = s.collect()
	ok(t, out)
	require.JSONEq(t, fmt.Sprintf(`{"id":17,"expiration":%.0f}`, v.R().Expiration()), text(t, out.Calls[0].Payload), "the scheduler hears so")
}

// What another agreed to while there was no scheduler is no word of the one that has come since: it
// was told the old expiration.
func TestAnAnswerFromBeforeASchedulerCameDoesNotCount(t *testing.T) {
	s := updating(t)
	s.send("s", 1, "disconnect", ``)
	out := s.drive(from(anOwner, "update", duration(runningJob, "7200")))
	require.Equal(t, "sched.expiration", topics(out))
	s.greet("s")
	require.Equal(t, grep(s.flush(), "update"), "update a1: errnum 113 scheduler refused expiration update")
	require.Error(t, s.Respond(s.now, Response{Topic: "sched.expiration", Tag: out.Calls[0].Tag, Errnum: errno.NoSys}))
	require.EqualValues(t, 1700003600, s.view(runningJob).R().Expiration())
}

// A scheduler that has not answered in time may yet set the new expiration: it hears what is so.
func TestASchedulerThatIsLateHearsWhatIsSo(t *testing.T) {
	s := updating(t)
	out := s.drive(from(anOwner, "update", duration(runningJob, "7200")))
	require.NoError(t, s.Respond(start, Response{Topic: "sched.expiration", Tag: out.Calls[0].Tag, Errnum: errno.TimedOut}))
	out = s.collect()
	require.Equal(t, errno.TimedOut, out.Answers[0].Errnum)
	require.Equal(t, "sched.expiration", topics(out))
	require.JSONEq(t, `{"id":17,"expiration":1700003600}`, text(t, out.Calls[0].Payload))
}

// A change without a scheduler does not count as known to the next one.
func TestAnExpirationWithoutASchedulerIsForgotten(t *testing.T) {
	d := newDesk(t, Config{})
	d.goOnline()
	require.Empty(t, d.submitted(16, 5, specOf(t, jobspec.Job{})))
	d.runJob(16)
	at := eventlog.FromTime(start)
	d.send("s", 1, "disconnect", ``)
	for _, x := range []eventlog.Timestamp{7200, 7300} {
		d.call(func() { require.NoError(t, d.Expire(at+x)) })
	}
	d.flush()
	d.greet("s")
	d.flush()
	require.Empty(t, d.limits.known)
	require.Contains(t, topics(d.do(joblife.SetExpiration{ID: 16, Expiration: at + 7300})), "sched.expiration")
}

// TestExpire: a change of the instance's lifetime is one of the running jobs that have no
// duration of their own. The lines are those of flux-core.
func TestExpire(t *testing.T) {
	s := newDesk(t, Config{})
	s.goOnline()
	for id, d := range []time.Duration{0, time.Minute, 0} {
		require.Empty(t, s.submitted(jobid.ID(16+id), 5, specOf(t, jobspec.Job{Duration: d})))
	}
	s.runJob(16)
	s.runJob(17)
	expires := func(at eventlog.Timestamp, event string, lines ...string) {
		t.Helper()
		s.call(func() { require.NoError(t, s.Expire(at)) })
		out := s.collect()
		require.Equal(t, event, strings.Join(logged(t, out), "\n"))
		require.Equal(t, lines, texts(out.Log))
		require.Empty(t, topics(out), "the scheduler knows")
	}
	at := eventlog.FromTime(start)
	expires(at+7200, ``, "duration-validator: updated expiration to 1700007200.00") // it was so from the start
	expires(at+7200, ``)
	expires(at+7201, `resource-update {"expiration":1700007201.0}`,
		"duration-validator: updated expiration to 1700007201.00",
		"resource expiration updated from 1700007200.00 to 1700007201.00 (+1)",
		"updated expiration of ƒH from 1700003600.00 to 1700007201.00 (+3601)")
	expires(0, `resource-update {"expiration":0.0}`,
		"duration-validator: updated expiration to 0.00",
		"resource expiration updated from 1700007201.00 to 0.00 (+inf)",
		"updated expiration of ƒH from 1700007201.00 to 0.00 (+inf)")
	expires(0, ``)
	expires(at+7200, `resource-update {"expiration":1700007200.0}`,
		"duration-validator: updated expiration to 1700007200.00",
		"resource expiration updated from 0.00 to 1700007200.00 (-inf)",
		"updated expiration of ƒH from 0.00 to 1700007200.00 (-inf)")
	expires(at-10, ``,
		"duration-validator: updated expiration to 1699999990.00",
		"resource expiration updated from 1700007200.00 to 1699999990.00 (-7210)")
	require.Equal(t, "from 0.00 to 0.00 (-inf)", change(0, 0))

	// What others set, the scheduler is told.
	require.Equal(t, "sched.expiration", topics(s.do(joblife.SetExpiration{ID: 16, Expiration: at + 7201})))
}

// A process may end with a change that is not stored. The next one makes up for it, once.
func TestExpireAfterARestart(t *testing.T) {
	d := newDesk(t, Config{})
	d.goOnline()
	for id, duration := range []time.Duration{0, time.Minute, 0} {
		require.Empty(t, d.submitted(jobid.ID(16+id), 5, specOf(t, jobspec.Job{Duration: duration})))
		d.runJob(jobid.ID(16 + id))
	}
	d.do(joblife.SetExpiration{ID: 18}) // it never expires
	at := eventlog.FromTime(start)
	d.call(func() { require.NoError(t, d.Expire(at+3600)) })
	d.call(func() { require.NoError(t, d.Expire(at+7200)) })
	for _, want := range []string{`resource-update {"expiration":1700007200.0}`, ``} {
		d.restart()
		d.call(func() { require.NoError(t, d.Expire(at+7200)) })
		out := d.collect()
		require.Equal(t, want, strings.Join(logged(t, out), "\n"))
		require.Equal(t, want != "", slices.Contains(texts(out.Log), "updated expiration of ƒH from 1700003600.00 to 1700007200.00 (+3600)"))
		require.Equal(t, at+7200, d.view(16).R().Expiration())
		require.Equal(t, at+3600, d.view(17).R().Expiration())
		require.Zero(t, d.view(18).R().Expiration())
	}
}

// A job whose log is full keeps its expiration, and the others get the new one.
func TestExpireGoesOnPastAFullLog(t *testing.T) {
	d := newDesk(t, Config{Manager: joblife.Config{MaxLog: 1000}})
	d.goOnline()
	for id := range jobid.ID(2) {
		require.Empty(t, d.submitted(16+id, 5, specOf(t, jobspec.Job{})))
		d.runJob(16 + id)
	}
	for fill, full := 1600, true; full; fill -= 10 { // as much as there is room for
		full = d.drive(owner("memo", `{"id":16,"memo":{"m":"`+strings.Repeat("x", fill)+`"}}`)).Answers[0].Errnum != 0
	}
	at := eventlog.FromTime(start)
	d.call(func() {
		require.NoError(t, d.Expire(at+7200))
		require.ErrorIs(t, d.Expire(at+7300), joblife.ErrLimit)
	})
	require.Equal(t, `resource-update {"expiration":1700007300.0}`, strings.Join(logged(t, d.collect()), "\n"))
	v, ok := d.m.Job(17)
	require.True(t, ok)
	require.Equal(t, at+7300, v.R().Expiration())
	require.Empty(t, d.limits.known)
}

// The scheduler last hears what R says, though other changes come before one is durable.
func TestTheLastExpirationIsTheLastThatTheSchedulerHears(t *testing.T) {
	at := eventlog.FromTime(start)
	for _, others := range []bool{false, true} {
		d := newDesk(t, Config{})
		d.goOnline()
		require.Empty(t, d.submitted(16, 5, specOf(t, jobspec.Job{})))
		d.runJob(16)
		d.call(func() { require.NoError(t, d.Expire(at+7200)) })
		d.collect()
		d.call(func() {
			if others {
				require.NoError(t, d.Service.step(joblife.SetExpiration{ID: 16, Expiration: at + 7300}))
			} else {
				require.NoError(t, d.Expire(at+7300))
			}
			require.NoError(t, d.Expire(at+7400))
		})
		calls := d.collect().Calls
		require.Equal(t, at+7400, d.view(16).R().Expiration())
		require.JSONEq(t, `{"id":16,"expiration":1700007400}`, text(t, calls[len(calls)-1].Payload))
		require.Empty(t, d.limits.known)
	}
}

// An update that the log has no room for changes nothing: neither the flags nor R.
func TestAnUpdateWithoutRoomChangesNothing(t *testing.T) {
	for _, running := range []bool{false, true} {
		refused := 0
		for fill := 900; fill < 1700; fill += 3 {
			d := newDesk(t, Config{Manager: joblife.Config{MaxLog: 1000}})
			d.goOnline()
			require.Empty(t, d.submitted(16, 200, sleep))
			if running {
				d.runJob(16)
			}
			d.Request(d.now, owner("memo", `{"id":16,"memo":{"m":"`+strings.Repeat("x", fill)+`"}}`))
			d.flush()
			size := len(d.records)
			out := d.drive(owner("update", duration(16, "12345678")))
			for len(out.Answers) == 0 {
				require.NoError(t, d.Respond(d.now, Response{Topic: out.Calls[0].Topic, Tag: out.Calls[0].Tag, Payload: []byte(`{}`)}))
				out = d.collect()
			}
			if out.Answers[0].Errnum != 0 {
				require.Equal(t, errno.Again, out.Answers[0].Errnum)
				require.Equal(t, size, len(d.records), "fill %d: %s", fill, out.Answers[0].Errstr)
				if running { // the scheduler has agreed to another end
					require.JSONEq(t, `{"id":16,"expiration":1700003600}`, text(t, out.Calls[0].Payload))
				}
				refused++
			}
		}
		require.Positive(t, refused)
	}
}
