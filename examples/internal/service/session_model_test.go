package service

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// readers have what the journal told each listener of each job, without the annotations and
// volatile memos that are in no log, and how often it told that the history is over.
type readers struct {
	logs map[string]map[jobid.ID]string
	ends map[string]int
}

func newReaders() readers { return readers{make(map[string]map[jobid.ID]string), make(map[string]int)} }

// hear takes in what comes out.
func (r readers) hear(t tester, o *parcel) {
	for _, a := range o.Answers {
		name := fmt.Sprint(a.Sender, a.Matchtag)
		if a.Topic != "job-manager.events-journal" || a.Errnum != 0 {
			continue
		}
		var p struct {
			ID     int64
			Events []json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(text(t, a.Payload)), &p))
		if p.ID == -1 {
			r.ends[name]++
			continue
		}
		if r.logs[name] == nil {
			r.logs[name] = make(map[jobid.ID]string)
		}
		for _, e := range p.Events {
			if text := string(e); !strings.Contains(text, `"name":"annotations"`) && !strings.Contains(text, `"memo","context":{"volatile":`) {
				r.logs[name][jobid.ID(p.ID)] += string(e) + "\n"
			}
		}
	}
}

// check compares what a listener was told with the logs. One that did not ask for the full
// history lacks jobs that were over.
func (r readers) check(t tester, d *desk, name string, full bool) {
	require.Equal(t, 1, r.ends[name], name)
	for id, s := range d.stored {
		if got := r.logs[name][id]; got != "" || full {
			require.Equal(t, string(s.Eventlog), got, "%s: %v", name, id)
		} else {
			require.Contains(t, string(s.Eventlog), `"clean"`, "%s lacks %v", name, id)
		}
	}
}

// A peer is a scheduler and an executor that watch what they are asked.
type peer struct {
	*desk
	readers
	seed  uint64
	asked map[jobid.ID]bool // of the scheduler, since its hello
	has   map[jobid.ID]bool // has resources, as the scheduler knows
	runs  map[jobid.ID]bool // the executor was asked to start, since its hello
	hello bool              // the scheduler has got all responses to its hello
	exec  bool              // the executor has got the response to its hello
}

// watch takes in what comes out.
func (p *peer) watch(o *parcel) {
	p.hear(p.t, o)
	for _, a := range o.Answers {
		p.exec = p.exec || a.Topic == "job-manager.exec-hello"
		if a.Topic != alloc.TopicHello || a.Matchtag != 7 {
			continue
		}
		if a.Errnum != 0 {
			p.hello = true
			continue
		}
		h, err := alloc.Parse[alloc.HelloResponse](a.Payload.(json.RawMessage))
		require.NoError(p.t, err)
		p.has[h.ID] = true
	}
	for _, c := range o.Calls {
		text := c.Payload.(json.RawMessage)
		switch c.Topic {
		case alloc.TopicAlloc:
			m, err := alloc.Parse[alloc.Request](text)
			require.NoError(p.t, err)
			require.True(p.t, p.hello, "seed %d: a request before the end of the hello", p.seed)
			require.False(p.t, p.asked[m.ID], "seed %d: asked twice for %v", p.seed, m.ID)
			require.False(p.t, p.has[m.ID], "seed %d: asked for %v, which has resources", p.seed, m.ID)
			p.asked[m.ID] = true
		case alloc.TopicFree:
			m, err := alloc.Parse[alloc.Free](text)
			require.NoError(p.t, err)
			require.True(p.t, p.has[m.ID], "seed %d: %v is freed, which has nothing", p.seed, m.ID)
			delete(p.has, m.ID)
		case "job-exec.start":
			var m struct {
				ID       jobid.ID
				Reattach bool
			}
			require.NoError(p.t, json.Unmarshal(text, &m))
			require.True(p.t, p.exec, "seed %d: a start before the end of the hello", p.seed)
			require.False(p.t, p.runs[m.ID], "seed %d: %v is started twice", p.seed, m.ID)
			p.runs[m.ID] = true
		}
	}
}

// listen takes in what was sent, also while the store is busy.
func (p *peer) listen() { p.pump(func(*parcel) {}) }

// greet begins a session of the scheduler. What it knew is void.
func (p *peer) greet() {
	p.listen()
	clear(p.asked)
	clear(p.has)
	p.hello = false
	p.send("s", 7, "sched-hello", `{"partial-ok":true}`)
}

// execute begins a session of the executor. What it ran goes on.
func (p *peer) execute() {
	p.listen()
	clear(p.runs)
	p.exec = false
	p.send("x", 8, "exec-hello", `{"service":"job-exec"}`)
}

// some returns a job of a set, and false if it is empty.
func (p *peer) some(rng *rand.Rand, set map[jobid.ID]bool, last int) (jobid.ID, bool) {
	for range 8 {
		if id := jobid.ID(1 + rng.IntN(last+1)); set[id] {
			return id, true
		}
	}
	return 0, false
}

// Whatever comes while records are with the store, no scheduler is asked twice for one job,
// and no executor is told twice to start one. What was meant for a session that is over comes to
// nobody. Whenever a listener comes, it is told each event
// of each job once and in order: what the backlog has, and what comes after it.
func TestNobodyIsAskedOrToldTwice(t *testing.T) {
	ended, seeds := 0, uint64(40)
	if os.Getenv("JOBLIFE_DEEP") != "" {
		seeds = 1000
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := &peer{
			desk: newDesk(t, Config{}), readers: newReaders(), seed: seed,
			asked: map[jobid.ID]bool{}, has: map[jobid.ID]bool{}, runs: map[jobid.ID]bool{},
		}
		p.sent, p.hold = p.watch, func(o *parcel) bool { return o.Seq != 0 }
		pump := p.listen
		full := make(map[string]bool) // listeners
		last := 0
		p.greet()
		p.send("s", 8, "sched-ready", `{"mode":"unlimited"}`)
		p.execute()
		respond := func(format string, args ...any) {
			err := p.Respond(p.now, Response{Topic: alloc.TopicAlloc, Payload: json.RawMessage(fmt.Sprintf(format, args...))})
			require.NoError(t, err, "seed %d", seed)
		}
		for range 250 {
			id, asked := p.some(rng, p.asked, last)
			runs, started := p.some(rng, p.runs, last)
			any := jobid.ID(1 + rng.IntN(last+1))
			switch k := rng.IntN(15); {
			case k == 0:
				last++
				p.send("a", 1, "submit", submissionOf(jobid.ID(last), ownUser, 0, sleep))
			case k == 1 && asked:
				respond(`{"id":%d,"type":1,"annotations":{"sched":{"n":%d}}}`, id, rng.IntN(9))
			case k == 2 && asked:
				delete(p.asked, id)
				p.has[id] = true
				respond("%s", success(id, int(id)))
			case k == 3 && asked:
				delete(p.asked, id)
				respond(`{"id":%d,"type":%d}`, id, 2+rng.IntN(2))
			case k == 4:
				key := []string{"a", "volatile"}[rng.IntN(2)]
				p.send("a", 1, "memo", fmt.Sprintf(`{"id":%d,"volatile":%v,"memo":{"%s":%d}}`, any, key == "volatile", key, rng.IntN(9)))
			case k == 5:
				p.send("a", 1, "urgency", fmt.Sprintf(`{"id":%d,"urgency":%d}`, any, rng.IntN(3)*8))
			case k == 6:
				p.send("a", 1, "raise", fmt.Sprintf(`{"id":%d,"severity":0,"type":"cancel"}`, any))
			case k == 7 && started:
				delete(p.runs, runs)
				ended++
				for _, text := range []string{`"start","data":{}`, `"finish","data":{"status":0}`, `"release","data":{"ranks":"all","final":true}`} {
					// A job that was canceled does not start.
					_ = p.Respond(p.now, Response{Topic: "job-exec.start", Payload: json.RawMessage(fmt.Sprintf(`{"id":%d,"type":%s}`, runs, text))})
				}
			case k == 8 && rng.IntN(6) == 0:
				p.greet()
				p.send("s", 8, "sched-ready", `{"mode":"unlimited"}`)
			case k == 9 && rng.IntN(8) == 0:
				pump()
				p.hello = false
				if rng.IntN(2) == 0 {
					p.send("s", 0, "disconnect", ``)
				} else {
					require.NoError(t, p.Respond(p.now, Response{Topic: alloc.TopicAlloc, Errnum: 38}))
				}
				p.release()
				pump()
				p.greet()
				pump()
				p.send("s", 8, "sched-ready", `{"mode":"limited","limit":2}`)
			case k == 10 && rng.IntN(8) == 0:
				require.NoError(t, p.step(joblife.StartQueue{Start: rng.IntN(2) == 0}))
			case k == 11 && len(full) < 8:
				tag := uint32(100 + len(full))
				name := fmt.Sprint("a", tag)
				full[name] = rng.IntN(2) == 0
				p.send("a", tag, "events-journal", fmt.Sprintf(`{"full":%v}`, full[name]))
			case k == 12 && rng.IntN(8) == 0:
				pump()
				p.exec = false
				p.send("x", 0, "disconnect", ``)
				p.release()
				pump()
				p.execute()
			case k > 12:
				p.release()
			default:
				pump()
			}
		}
		for pump(); len(p.held) > 0; pump() {
			p.release()
		}
		for name, full := range full {
			p.check(t, p.desk, name, full)
		}
		require.Equal(t, p.activeJobs(), p.empties.pending)
		for v := range p.m.Jobs(jobstate.StateRun) {
			require.True(t, p.has[v.ID()], "seed %d: %v", seed, v.ID())
			require.True(t, p.runs[v.ID()], "seed %d: %v", seed, v.ID())
		}
	}
	require.Greater(t, ended, int(seeds))
}
