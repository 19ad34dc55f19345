package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

const waitable = int(jobstate.FlagWaitable)

func TestWait(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(waitable, 1, 2, 3)
	d.submit(0, 4)
	const canceled = `"success":false,"errstr":"Fatal exception type=cancel why"}`

	// One that ended before is told at once, and once.
	require.Equal(t, "raise a9: -\nevent job-exception {\"id\":1,\"type\":\"cancel\",\"severity\":0}", d.cancel(1))
	require.Equal(t, `wait a2: {"id":1,`+canceled, d.ask(2, "wait", `{"id":1}`))
	require.Equal(t, "wait a2: errnum 10 invalid job id, or job may be inactive and not waitable", d.ask(2, "wait", `{"id":1}`))

	// Until then it is listed.
	d.submit(waitable, 9)
	d.cancel(9)
	require.Contains(t, d.ask(2, "list", `{"max_entries":0}`), `{"id":9,"userid":100,"urgency":16,"priority":16,"t_submit":1.5,"state":64}]}`)
	require.NotContains(t, d.ask(2, "list", `{"max_entries":3}`), `{"id":9,`)
	require.Contains(t, d.ask(2, "wait", `{"id":-1}`), `wait a2: {"id":9,`)
	require.NotContains(t, d.ask(2, "list", `{"max_entries":0}`), `{"id":9,`)

	// Who waits for one job goes before those who wait for any.
	require.Empty(t, d.ask(2, "wait", `{"id":-1}`))
	require.Empty(t, d.ask(3, "wait", `{"id":2}`))
	require.Contains(t, d.cancel(2), `wait a3: {"id":2,`+canceled)
	require.Contains(t, d.cancel(3), `wait a2: {"id":3,`+canceled)
	require.Equal(t, "wait a2: errnum 10 there are no more waitable jobs", d.ask(2, "wait", `{"id":-1}`))
	d.cancel(4)
	require.Empty(t, d.waits.ended)
}

func TestWaitErrors(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(waitable, 1)
	require.Empty(t, d.ask(3, "wait", `{"id":-1}`))
	require.Equal(t, "wait a4: errnum 10 there are no more waitable jobs", d.ask(4, "wait", `{"id":-1}`))
	// The one who waits for any has no job left when another waits for that one.
	require.Equal(t, "wait a3: errnum 10 there are no more waitable jobs", d.ask(5, "wait", `{"id":1}`))
	require.Equal(t, "wait a6: errnum 10 job id already has a waiter", d.ask(6, "wait", `{"id":1}`))
}

func TestWaitTellsHowAJobEnded(t *testing.T) {
	for status, want := range map[int]string{
		0:               `"success":true,"errstr":""}`,
		3 << 8:          `"success":false,"errstr":"task(s) exited with exit code 3"}`,
		(128 + 15) << 8: `"success":false,"errstr":"task(s) Terminated"}`,
		(128 + 34) << 8: `"success":false,"errstr":"task(s) Real-time signal 0"}`,
		(128 + 99) << 8: `"success":false,"errstr":"task(s) Unknown signal 99"}`,
		9:               `"success":false,"errstr":"job shell Killed"}`,
		31:              `"success":false,"errstr":"job shell Bad system call"}`,
		11 | 0x80:       `"success":false,"errstr":"job shell Segmentation fault"}`,
		0x7f:            `"success":false,"errstr":"unexpected wait(2) status 127"}`,
		-1:              `"success":false,"errstr":"unexpected wait(2) status -1"}`,
	} {
		d := newDesk(t, Config{})
		d.online()
		d.submit(waitable, 1)
		d.run(1)
		d.finish(1, status)
		require.Equal(t, `wait a2: {"id":1,`+want, d.ask(2, "wait", `{"id":1}`), status)
	}
	d := newDesk(t, Config{})
	d.online()
	d.submit(waitable, 1, 2)
	d.run(1)
	d.run(2)
	d.cancel(1) // before the finish, which it causes
	d.finish(1, 15)
	require.Contains(t, d.ask(2, "wait", `{"id":1}`), `"errstr":"Fatal exception type=cancel why"`)
	d.respond("job-exec.start", `{"id":2,"type":"finish","data":{"status":256}}`)
	d.cancel(2) // after it
	d.respond("job-exec.start", `{"id":2,"type":"release","data":{"ranks":"all","final":true}}`)
	require.Contains(t, d.ask(2, "wait", `{"id":2}`), `"errstr":"task(s) exited with exit code 1"`)
}

// A job may become one to wait for after its submission, and twice; it counts once.
func TestWaitForAJobThatWasFlaggedLater(t *testing.T) {
	const flag = `{"id":1,"name":"set-flags","context":{"flags":["waitable"]}}`
	for _, restarts := range []bool{false, true} {
		d := newDesk(t, Config{})
		d.submit(0, 1)
		require.Equal(t, "wait a2: errnum 10 there are no more waitable jobs", d.ask(2, "wait", `{"id":-1}`))
		for range 2 {
			require.Equal(t, "post-event.post a3: -", d.ask(3, "post-event.post", flag))
		}
		if restarts {
			d.restart()
		}
		require.Len(t, d.waits.active, 1)
		require.Empty(t, d.ask(4, "wait", `{"id":-1}`))
		require.Contains(t, d.cancel(1), `wait a4: {"id":1,`)
		require.Empty(t, d.waits.active)
	}
}

// A restart forgets the ends, and knows the jobs that go on.
func TestWaitAfterRestart(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(waitable, 1, 2)
	d.cancel(1)
	d.restart()
	require.Equal(t, "wait a2: errnum 10 invalid job id, or job may be inactive and not waitable", d.ask(2, "wait", `{"id":1}`))
	require.Empty(t, d.ask(2, "wait", `{"id":-1}`))
	require.Equal(t, "wait a3: errnum 10 there are no more waitable jobs", d.ask(3, "wait", `{"id":-1}`))
	require.Contains(t, d.cancel(2), `wait a2: {"id":2,`)
}

// Whatever is asked and ends, no more wait than jobs will end, and each end is told once.
func TestWaitsAgreeWithANaiveCount(t *testing.T) {
	const n = 40
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := newDesk(t, Config{})
		d.submit(waitable, idsTo(n)...)
		told, ended := make(map[string]int), 0
		for tag := uint32(10); ended < n || len(d.waits.ended) > 0; tag++ {
			out := ""
			switch k := rng.IntN(3); {
			case k == 0:
				out = d.ask(tag, "wait", `{"id":-1}`)
			case k == 1:
				out = d.ask(tag, "wait", fmt.Sprintf(`{"id":%d}`, 1+rng.IntN(n)))
			case ended < n:
				ended++
				out = d.cancel(jobid.ID(ended))
			}
			for line := range strings.Lines(grep(out, `"success"`)) {
				told[strings.SplitN(line, ": ", 2)[1]]++
			}
			require.LessOrEqual(t, len(d.waits.any)+len(d.waits.one), len(d.waits.active), "seed %d", seed)
			require.Len(t, d.waits.active, n-ended)
			require.LessOrEqual(t, len(d.waits.order), 17+2*len(d.waits.ended))
		}
		require.Zero(t, len(d.waits.any)+len(d.waits.one), "seed %d", seed)
		for line, times := range told {
			require.Equal(t, 1, times, "seed %d: %s", seed, line)
		}
		require.Len(t, told, n, "seed %d", seed)
	}
}

// A sender that is gone costs no sort of what others wait for. The order is that of the ids.
func TestWaitsOfOthersCostNoSort(t *testing.T) {
	d := newDesk(t, Config{})
	for id := range jobid.ID(1000) {
		d.waits.one[id] = &Request{Sender: fmt.Sprint(uint64(id % 10)), Matchtag: uint32(id)}
	}
	gone := func(sender string) []*Request {
		return d.waits.remove(func(r *Request) bool { return r.Sender == sender })
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { gone("x") }))
	list := gone("7")
	require.Len(t, list, 100)
	require.True(t, slices.IsSortedFunc(list, func(a, b *Request) int { return cmp.Compare(a.Matchtag, b.Matchtag) }))
	require.Len(t, d.waits.one, 900)
}

func TestDrainAndIdle(t *testing.T) {
	d := newDesk(t, Config{})
	require.Equal(t, "drain a2: -", d.ask(2, "drain", ``))
	require.Equal(t, `idle a3: {"pending":0}`, d.ask(3, "idle", ``))
	d.online()
	d.submit(0, 1, 2)
	require.Empty(t, d.ask(2, "drain", ``))
	require.Empty(t, d.ask(3, "idle", ``), "the scheduler has requests")
	d.run(1)
	require.NoError(t, d.step(joblife.SetUrgency{ID: 2, Urgency: 0}))
	require.Equal(t, `> sched.cancel {"id":2}`, d.flush())
	require.Regexp(t, `^> sched.free .*$`, d.finish(1, 0), "the scheduler has not taken back job 2")
	require.Equal(t, `idle a3: {"pending":1}`, d.respond("sched.alloc", `{"id":2,"type":3}`))
	require.Contains(t, d.cancel(2), "drain a2: -")
	require.Empty(t, d.empties.list)
}

// What a drain or an idle tells is durable when it is told.
func TestDrainWaitsForTheStore(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(0, 1)
	require.Equal(t, `idle a3: {"pending":1}`, d.ask(3, "idle", ``))
	require.Empty(t, d.ask(2, "drain", ``))
	d.send("a", 9, "raise", `{"id":1,"severity":0,"type":"cancel"}`)
	o := d.storing()
	require.Empty(t, o.Answers)
	require.False(t, d.Next(new(parcel)))
	d.send("b", 4, "drain", ``)
	require.False(t, d.Next(new(parcel)))
	d.commit(o)
	require.Equal(t, join("raise a9: -", "drain a2: -", `event job-exception {"id":1,"type":"cancel","severity":0}`, "drain b4: -"), d.flush())
}

// I4: idle counts no job whose submission is with the store.
func TestIdleCountsWhatIsDurable(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1)
	require.Empty(t, d.ask(3, "idle", ``))
	d.run(1)
	d.respond("job-exec.start", `{"id":1,"type":"finish","data":{"status":0}}`)
	require.NoError(t, d.Respond(d.now, Response{Topic: "job-exec.start", Payload: json.RawMessage(`{"id":1,"type":"release","data":{"ranks":"all","final":true}}`)}))
	o := d.storing()
	d.send("b", 1, "submit", strings.Replace(submission1(2, ownUser), `"urgency":16`, `"urgency":0`, 1))
	d.commit(o)
	require.Contains(t, d.flush(), `idle a3: {"pending":0}`)
	require.Equal(t, 1, d.empties.pending)
}

// A Tick may end a job while the store is busy with what came before.
func TestTheEndOfAJobWaitsForTheStore(t *testing.T) {
	d := newDesk(t, Config{})
	d.submit(waitable, 1)
	require.Empty(t, d.ask(4, "wait", `{"id":1}`))
	d.send("a", 9, "memo", `{"id":1,"memo":{"a":1}}`)
	o := d.storing()
	d.waits.waited(zombie{end: waitResult{ID: 1}}) // as a hook does
	require.NoError(t, d.Done(d.now, o, nil))
	require.Len(t, d.next, 2)
	require.Equal(t, "job-manager.memo", d.next[0].Answers[0].Topic)
	require.Len(t, d.next[0].Answers, 1)
	require.Equal(t, "job-manager.wait", d.next[1].Answers[0].Topic)
}

func TestDrainAfterRestart(t *testing.T) {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1, 2)
	d.run(1)
	d.restart()
	require.Empty(t, d.ask(2, "drain", ``))
	require.Empty(t, d.ask(3, "idle", ``))
	d.ask(4, "exec-hello", `{"service":"job-exec"}`)
	require.Equal(t, `idle a3: {"pending":1}`, d.finish(1, 0))
	require.Contains(t, d.cancel(2), "drain a2: -")
}

// Ten times the waiters may take some ten times the work, and not a hundred times.
func TestManyWaitersAreNotQuadratic(t *testing.T) {
	allocs := func(n int) float64 {
		return testing.AllocsPerRun(1, func() {
			s := newDesk(t, Config{Manager: joblife.Config{Owner: ownUser}})
			w := &s.waits
			for i := range n {
				w.active[jobid.ID(i)] = struct{}{}
			}
			for i := range n {
				r := owner("wait", `{"id":-1}`)
				r.Matchtag = uint32(i + 1)
				s.Request(start, r)
			}
			require.Len(t, w.any, n)
			for i := range n {
				delete(w.active, jobid.ID(i))
				w.waited(zombie{end: waitResult{ID: jobid.ID(i)}})
			}
			require.Empty(t, w.any)
			for i := range n {
				w.waited(zombie{end: waitResult{ID: jobid.ID(i)}})
			}
			for range n {
				s.Request(start, owner("wait", `{"id":-1}`))
			}
			require.Empty(t, w.ended)
			require.Less(t, len(w.order), 20)
			answers := 0
			for _, p := range s.next {
				answers += len(p.Answers)
			}
			require.Equal(t, 2*n, answers)
		})
	}
	few, many := allocs(1000), allocs(10000)
	require.Less(t, many, 20*few)
}
