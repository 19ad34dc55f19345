package service

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
)

// allocated returns how many bytes f allocates in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// remember gives jobs a memo of a mebibyte each.
func (d *desk) remember(ids ...jobid.ID) {
	d.t.Helper()
	for _, id := range ids {
		require.NotContains(d.t, d.ask(2, "memo", fmt.Sprintf(`{"id":%d,"memo":{"m":"%s"}}`, id, strings.Repeat("m", 1_000_000))), "errnum")
	}
}

// I12: one who opens streams without reading takes no memory out of proportion.
func TestStreamsAreBounded(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(0, 1)
	d.remember(1)
	var refused, streams int
	used := allocated(func() {
		for n := range 11_000 {
			d.send(fmt.Sprint("a", n/100), uint32(n+1), "events-journal", `{}`)
		}
		for o := (parcel{}); d.Next(&o); {
			size := 0
			for _, a := range o.Answers {
				text := text(t, a.Payload)
				size += len(text)
				switch {
				case a.Errnum == errno.Again:
					refused++
				case text == `{"id":-1,"events":[]}`:
					streams++
				}
			}
			require.Less(t, size, backlogBytes+2<<20, "an Out has no more than a part")
			require.NoError(t, d.Done(d.now, &o, nil))
		}
	})
	require.Equal(t, maxStreams, streams)
	require.Equal(t, 11_000-maxStreams, refused)
	require.Less(t, used, uint64(maxStreams*4*(1<<20)), "in all, and not at once")
	require.Equal(t, "events-journal a1: errnum 11 there are too many streams of events", d.ask(1, "events-journal", `{}`))

	// Those of a sender count until it goes, or ends them.
	d.send("a0", 1, "disconnect", ``)
	for n := range uint32(maxOfSender) {
		require.NotContains(t, d.ask(n+1, "events-journal", `{}`), "errnum")
	}
	require.Contains(t, d.ask(99, "events-journal", `{}`), "errnum 11")
	require.Contains(t, d.ask(99, "events-journal-cancel", `{"matchtag":1}`), "errnum 61")
	require.NotContains(t, d.ask(99, "events-journal", `{}`), "errnum")
}

// A long history comes in several Outs, and is whole.
func TestALongHistoryComesInParts(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(0, idsTo(16)...)
	d.remember(idsTo(16)...)
	d.cancel(3)
	d.send("r", 5, "events-journal", `{"full":true}`)
	r, parts := newReaders(), 0
	d.pump(func(o *parcel) {
		r.hear(t, o)
		parts++
	})
	require.Greater(t, parts, 2)
	r.check(t, d, "r5", true)
}

// What is sent to others for updates that they have to check is less than what they may be
// behind with, whoever asks.
func TestUpdatesOfLargeJobsAreBounded(t *testing.T) {
	s := updating(t)
	text := strings.Replace(specOf(t, jobspec.Job{Queue: "other", Duration: time.Minute}), `"system":{`, `"system":{"x":"`+strings.Repeat("x", 1_000_000)+`",`, 1)
	for id := jobid.ID(100); id < 112; id++ {
		require.Empty(t, s.submitted(id, int(id), text))
	}
	size, refused := 0, 0
	for id := 100; id < 112; id++ {
		r := from(aGuest, "update", queue(id, `"batch"`))
		r.UserID = uint32(id)
		out := s.drive(r)
		for _, c := range out.Calls {
			payload, err := json.Marshal(c.Payload)
			require.NoError(t, err)
			size += len(payload)
		}
		for _, a := range out.Answers {
			require.Equal(t, errno.Again, a.Errnum, a.Errstr)
			refused++
		}
	}
	require.GreaterOrEqual(t, refused, 3)
	require.Empty(t, s.drive(from(anOwner, "update", queue(111, `"batch"`))).Answers, "the owner may ask")
	require.LessOrEqual(t, size, maxChecked+1<<10)
}

// What a sender waits for takes little, and ends when it is gone.
func TestWhoWaitsIsBoundedAndForgotten(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(0, 1)
	for n := range maxEmpty {
		d.send(fmt.Sprint("7:", n), 1, "drain", `{"x":"`+strings.Repeat("x", 100)+`"}`)
	}
	require.Contains(t, d.ask(1, "idle", ``), "errnum 11")
	d.send("7", 1, "events-journal", `{}`)
	d.send("70", 1, "events-journal", `{}`)
	d.flush()
	d.call(func() {
		require.NoError(t, d.Leave(func(sender string) bool { return sender == "7" || strings.HasPrefix(sender, "7:") }))
	})
	require.Empty(t, d.empties.list)
	require.Len(t, d.journal.list, 1)
	for _, w := range d.journal.list {
		require.Nil(t, w.Payload)
	}
}

// A short request about many jobs is as much as many requests.
func TestRequestsAboutManyJobsAreBounded(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(0, idsTo(1000)...)
	d.online()
	for _, id := range idsTo(1000) {
		d.respond("sched.alloc", success(id, int(id)))
	}
	const raise, kill = `{"dry_run":false,"userid":100,"states":-1,"severity":1,"type":"x","note":"n"}`, `{"dry_run":false,"userid":100,"signum":9}`
	for range maxMany / 1000 / 2 {
		d.send("b", 1, "raiseall", raise)
		d.send("b", 1, "killall", kill)
	}
	d.send("b", 1, "raiseall", raise)
	require.Len(t, d.next, 1, "what the store has")
	d.send("b", 2, "raiseall", raise)
	d.send("b", 3, "killall", kill)
	require.Len(t, d.next, 3)
	for _, p := range d.next[1:] {
		a := p.Answers[0]
		require.Equal(t, errno.Again, a.Errnum)
		require.Equal(t, "requests about 65000 jobs wait", a.Errstr)
	}
	for o := (parcel{}); d.Next(&o); {
		require.NoError(t, d.Done(d.now, &o, nil))
	}
	d.send("b", 4, "raiseall", raise)
	require.Empty(t, d.next[0].Answers, "others go on after them")
}

// A guest with few jobs costs nothing in proportion to the jobs of others.
func TestAUserDoesNotPayForTheJobsOfOthers(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(0, idsTo(1000)...)
	require.Empty(t, d.submitted(1002, ownGuest, sleep))
	require.Empty(t, d.submitted(1001, ownGuest, sleep))
	active := jobstate.StateNew | jobstate.StateActive
	for _, user := range []userID{ownGuest, otherGuest} {
		require.Less(t, allocated(func() { d.ofUser(user, active) }), uint64(1<<10))
	}
	d.restart()
	require.Equal(t, []jobid.ID{1001, 1002}, d.ofUser(ownGuest, active))
	require.Empty(t, d.ofUser(ownGuest, jobstate.StateRunning))
	require.Empty(t, d.ofUser(otherGuest, active))
	require.Len(t, d.ofUser(ownUser, active), 1000)
	require.Len(t, d.ofUser(anyUser, active), 1002)
}

// What guests ask for, while the store works, leaves the owner its room.
func TestGuestsLeaveTheOwnerItsRoom(t *testing.T) {
	d := newDesk(t, Config{})
	require.Empty(t, d.submitted(1, ownGuest, sleep))
	require.Empty(t, d.submitted(2, ownUser, sleep))
	d.answers.size, d.touched.size = 400, 1
	d.send("a", 9, "submit", submission1(3, ownUser))
	o := d.storing()
	const raise = `,"states":-1,"severity":7,"type":"x"}`
	for _, wait := range []int{0, 1} {
		for topic, payload := range map[string]string{
			"getattr": `{"id":1,"attrs":["eventlog"]}`, "raiseall": fmt.Sprintf(`{"dry_run":false,"userid":%d`, ownGuest) + raise,
		} {
			d.Request(d.now, by(ownGuest, roleUser, topic, payload))
			require.Len(t, d.next, wait, topic)
			d.next = nil
		}
	}
	d.send("a", 1, "getattr", `{"id":2,"attrs":["eventlog"]}`)
	d.send("a", 2, "raiseall", `{"dry_run":false,"userid":-1`+raise)
	require.Empty(t, d.next)
	d.commit(o)
	require.Len(t, d.collect().Answers, 5)
	require.Zero(t, d.answers.used)
	require.Zero(t, d.touched.used)
}

// I12: while the store works, the answers that wait for it take no memory out of proportion.
func TestLargeAnswersAreBounded(t *testing.T) {
	for topic, payload := range map[string]string{
		"getattr": `{"id":1,"attrs":["eventlog"]}`, "list": `{"max_entries":0}`,
	} {
		d := newDesk(t, Config{})
		d.submit(0, 1)
		d.remember(1)
		d.send("a", 9, "submit", submission1(2, ownUser))
		o := d.storing()
		for n := range uint32(100) {
			d.send("a", n+10, topic, payload)
		}
		refused := 0
		for _, p := range d.next {
			for _, a := range p.Answers {
				require.Equal(t, errno.Again, a.Errnum)
				refused++
			}
		}
		require.InDelta(t, 100-64, refused, 4, topic)
		d.next = nil
		d.commit(o)
		require.Len(t, d.collect().Answers, 101-refused)
		require.NotContains(t, d.ask(8, topic, payload), "errnum")
		require.Zero(t, d.answers.used)
	}
}

// The text of resources counts too, of a job that runs or is over, and in statistics.
func TestAnswersWithResourcesAreBounded(t *testing.T) {
	d := newDesk(t, Config{Manager: joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{Command: []string{"hk"}}}}})
	d.online()
	d.answers.size = 1 << 20
	d.submit(0, 1, 2)
	for id := range jobid.ID(2) { // on ranks and hosts that have no short form
		var ranks, hosts []string
		for i := range 1000 {
			ranks, hosts = append(ranks, fmt.Sprint(4*i+int(id))), append(hosts, fmt.Sprintf(`"h%d"`, 7919*(4*i+int(id))%100_003))
		}
		d.respond("sched.alloc", strings.NewReplacer(`"rank":"1"`, `"rank":"`+strings.Join(ranks, ",")+`"`, `"n1"`, strings.Join(hosts, ",")).Replace(success(id+1, 1)))
		d.respond("job-exec.start", fmt.Sprintf(`{"id":%d,"type":"start","data":{}}`, id+1))
	}
	d.finish(1, 0) // its housekeeping goes on
	for _, c := range [][2]string{{"getattr", `{"id":1,"attrs":["R"]}`}, {"getattr", `{"id":2,"attrs":["R"]}`}, {"stats-get", `{}`}} {
		size := len(d.ask(8, c[0], c[1]))
		d.send("a", 9, "memo", `{"id":2,"memo":{"m":1}}`)
		o := d.storing()
		const n = 300
		for i := range uint32(n) {
			d.send("a", i+10, c[0], c[1])
		}
		refused := 0
		for ; len(d.next) > 0; d.next = d.next[1:] {
			require.Equal(t, errno.Again, d.next[0].Answers[0].Errnum)
			refused++
		}
		require.InEpsilon(t, 1<<20, (n-refused)*size, 0.1, c)
		d.commit(o)
		require.Len(t, d.collect().Answers, n+1-refused)
		require.Zero(t, d.answers.used)
	}
}
