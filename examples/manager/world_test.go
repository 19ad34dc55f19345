package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A hub connects a manager, a scheduler and an executor: the first two are processes, the
// executor is the hub's.
type hub struct {
	t       testing.TB
	rng     *rand.Rand
	store   string // the manager's argument
	sched   string // the scheduler's file
	timeout <-chan time.Time

	mu    sync.Mutex
	queue []said
	wake  chan struct{}

	processes map[string]*member
	gen       int
	running   []int        // jobs that the executor has
	asked     map[int]bool // jobs that this manager has a start request for
	over      map[int]int  // how jobs ended that it had, by their status
	starts    map[int]int  // how often it began a job

	listens  map[string]bool // who has heard the answer to its hello: what comes before is old
	last     int             // the greatest id of a job
	accepted map[int]bool    // submissions that were answered
	drained  bool
	kills    map[string]int
}

// A member is a process of the hub's.
type member struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	gen int
}

// said is a line of a child.
type said struct {
	name string
	gen  int
	text string
}

// buildSched builds examples/sched.
func buildSched(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "sched")
	out, err := exec.Command("go", "build", "-o", path, "../sched").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("there is no go command")
	}
	require.NoError(t, err, string(out))
	return path
}

func newHub(t testing.TB, store string, seed uint64) *hub {
	return &hub{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), store: store, sched: buildSched(t),
		timeout: time.After(time.Minute), wake: make(chan struct{}, 1), processes: make(map[string]*member),
		over: make(map[int]int), starts: make(map[int]int), accepted: make(map[int]bool), kills: make(map[string]int),
	}
}

// begin starts a child.
func (h *hub) begin(name, file string, env string, args ...string) {
	cmd := exec.Command(file, args...)
	cmd.Env = append(os.Environ(), env)
	in, err := cmd.StdinPipe()
	require.NoError(h.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(h.t, err)
	if testing.Verbose() {
		cmd.Stderr = os.Stderr
	}
	require.NoError(h.t, cmd.Start())
	h.gen++
	p := &member{cmd, in, bufio.NewReaderSize(out, 1<<16), h.gen}
	h.processes[name] = p
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	go func() {
		for {
			text, err := p.out.ReadString('\n')
			if err != nil {
				return // it ended
			}
			h.mu.Lock()
			h.queue = append(h.queue, said{name, p.gen, text})
			h.mu.Unlock()
			select {
			case h.wake <- struct{}{}:
			default:
			}
		}
	}()
}

// say sends lines to a child. One that was killed does not hear them.
func (h *hub) say(name, text string) {
	_, err := io.WriteString(h.processes[name].in, text)
	if err != nil && !errors.Is(err, fs.ErrClosed) && !strings.Contains(err.Error(), "broken pipe") {
		h.t.Fatal(err)
	}
}

// next returns the next line of a child that lives, or false after a while without one.
func (h *hub) next() (said, bool) {
	for {
		h.mu.Lock()
		if len(h.queue) > 0 {
			s := h.queue[0]
			h.queue = h.queue[1:]
			h.mu.Unlock()
			if h.processes[s.name].gen != s.gen {
				continue
			}
			return s, true
		}
		h.mu.Unlock()
		select {
		case <-h.wake:
		case <-time.After(2 * time.Millisecond):
			return said{}, false
		case <-h.timeout:
			require.Fail(h.t, "it takes too long", "%d accepted, %d running, %d over, kills %v", len(h.accepted), len(h.running), len(h.over), h.kills)
		}
	}
}

// connect starts the manager, and all that talks to it.
func (h *hub) connect() {
	h.begin("manager", os.Args[0], "MANAGER_RUN=1", h.store, "-owner=100")
	h.asked, h.listens = make(map[int]bool), make(map[string]bool)
	h.startSched()
	h.startExecutor()
	for first := 16; first <= h.last; first += 25 {
		var list []string
		for id := first; id < first+25 && id <= h.last; id++ {
			if !h.accepted[id] {
				list = append(list, fmt.Sprintf(`{"id":%d,"urgency":16,"userid":%d,"t_submit":1.0,"flags":0,"jobspec":%s}`, id, 100+id%3, sleep))
			}
		}
		if len(list) > 0 {
			h.say("manager", fmt.Sprintf(`{"topic":"job-manager.submit","sender":"user","matchtag":%d,"payload":{"jobs":[%s]}}`+"\n", first, strings.Join(list, ",")))
		}
	}
	h.drain()
}

func (h *hub) drain() {
	h.drained = false
	h.say("manager", `{"topic":"job-manager.drain","sender":"user","matchtag":9}`+"\n")
}

func (h *hub) startSched() {
	h.begin("sched", h.sched, "A=b")
	h.say("sched", `{"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[{"rank":"0-7","children":{"core":"0-7"}}],"nodelist":["n[0-7]"],"starttime":0,"expiration":0}},"up":"0-7"}}`+"\n")
}

func (h *hub) startExecutor() {
	h.gen++
	h.processes["executor"] = &member{gen: h.gen}
	h.say("manager", `{"topic":"job-manager.exec-hello","sender":"`+h.sender("executor")+`","payload":{"service":"exec"}}`+"\n")
}

// sender is what a member is called now.
func (h *hub) sender(name string) string { return fmt.Sprint(name, h.processes[name].gen) }

// disconnect tells the manager that a member is gone.
func (h *hub) disconnect(name string) {
	h.say("manager", `{"topic":"job-manager.disconnect","sender":"`+h.sender(name)+`","matchtag":0}`+"\n")
}

// kill kills one of the three, and starts another.
func (h *hub) kill(name string) {
	h.kills[name]++
	if name != "executor" {
		p := h.processes[name]
		require.NoError(h.t, p.Process.Kill())
		_ = p.Wait()
	}
	switch name {
	case "manager":
		p := h.processes["sched"]
		require.NoError(h.t, p.Process.Kill()) // as its module is loaded again
		_ = p.Wait()
		h.connect()
	case "sched":
		h.listens["sched"] = false
		h.disconnect("sched")
		h.startSched()
	case "executor":
		for _, id := range h.running {
			h.starts[id] = 0 // it died, and may begin again if the manager had not heard of it
		}
		h.running, h.asked, h.listens["executor"] = nil, make(map[int]bool), false
		h.disconnect("executor")
		h.startExecutor()
	}
}

// route takes a line.
func (h *hub) route(s said) {
	if s.name == "sched" {
		require.NotContains(h.t, s.text, "errnum")
		h.say("manager", strings.Replace(s.text, `{"topic"`, `{"sender":"`+h.sender("sched")+`","topic"`, 1))
		return
	}
	m, err := parseMessage([]byte(s.text))
	switch {
	case err == errNoTopic: // an event
	case err != nil:
		h.t.Fatal(s.text)
	case m.Sender != nil && *m.Sender == h.sender("sched"):
		h.listens["sched"] = true
		h.say("sched", s.text)
	case m.Sender != nil && strings.HasPrefix(*m.Sender, "sched"): // one that was killed
	case strings.HasPrefix(m.Topic, "sched."):
		if h.listens["sched"] {
			h.say("sched", s.text)
		}
	case m.Topic == "exec.start":
		if h.listens["executor"] {
			h.exec(m)
		}
	case m.Topic == "job-manager.submit":
		h.submitted(m)
	case m.Topic == "job-manager.drain":
		require.Zero(h.t, m.Errnum, s.text)
		h.drained = true
	case m.Topic == "job-manager.exec-hello":
		require.Zero(h.t, m.Errnum, s.text)
		h.listens["executor"] = *m.Sender == h.sender("executor")
	default:
		h.t.Fatal(s.text)
	}
}

// submitted takes the answer to submit.
func (h *hub) submitted(m message) {
	var answer struct{ Errors [][2]any }
	require.NoError(h.t, json.Unmarshal(m.Payload, &answer))
	for _, e := range answer.Errors { // it came to its end before the answer came
		require.Contains(h.t, e[1], "given before")
	}
	for id := int(*m.Matchtag); id < int(*m.Matchtag)+25 && id <= h.last; id++ {
		h.accepted[id] = true
	}
}

// exec takes a start request. A job that the executor does not know any more was killed
// with it.
func (h *hub) exec(m message) {
	var start struct {
		ID       int
		Reattach bool
	}
	require.NoError(h.t, json.Unmarshal(m.Payload, &start))
	h.asked[start.ID] = true
	status, over := h.over[start.ID]
	running := slices.Contains(h.running, start.ID)
	switch {
	case over:
		if !start.Reattach {
			h.tell(start.ID, "start", "{}")
		}
		h.finish(start.ID, status)
	case running && start.Reattach:
		h.tell(start.ID, "reattached", "{}")
	case running:
		h.tell(start.ID, "start", "{}")
	case start.Reattach:
		h.finish(start.ID, 9)
	default:
		h.starts[start.ID]++
		h.running = append(h.running, start.ID)
		h.tell(start.ID, "start", "{}")
	}
}

// tell sends a response of the executor.
func (h *hub) tell(id int, kind, data string) {
	h.say("manager", fmt.Sprintf(`{"topic":"exec.start","payload":{"id":%d,"type":"%s","data":%s}}`+"\n", id, kind, data))
}

// finish ends a job.
func (h *hub) finish(id, status int) {
	h.over[id] = status
	h.running = slices.DeleteFunc(h.running, func(o int) bool { return o == id })
	if !h.asked[id] {
		return // it is told when it is asked
	}
	delete(h.asked, id)
	h.tell(id, "finish", fmt.Sprintf(`{"status":%d}`, status))
	h.tell(id, "release", `{"ranks":"all","final":true}`)
}

// play runs jobs until all are over. Each so many jobs that are over, one of the three is
// killed.
func (h *hub) play(jobs int, kills ...string) {
	h.last = 15 + jobs
	h.connect()
	for h.kills["all"] = 0; !h.drained || len(h.accepted) < jobs; {
		s, ok := h.next()
		if ok {
			h.route(s)
		}
		for len(h.running) > 0 && (!ok || h.rng.IntN(3) == 0) {
			h.finish(h.running[h.rng.IntN(len(h.running))], h.rng.IntN(2)*256)
		}
		if len(kills) > 0 && len(h.over) >= jobs*(h.kills["all"]+1)/(len(kills)+1) {
			h.kill(kills[h.kills["all"]%len(kills)])
			if h.kills["all"]++; h.kills["all"] == len(kills) {
				kills = nil
			}
		}
		if h.drained && len(h.accepted) < jobs {
			h.drain() // some were submitted later
		}
	}
}

// check reads all logs.
func (h *hub) check(jobs int) {
	p := h.processes["manager"]
	require.NoError(h.t, p.in.Close())
	require.NoError(h.t, p.Wait())
	l := live(h.t, h.store, "-owner=100")
	for id := 16; id < 16+jobs; id++ {
		text := l.ask(fmt.Sprintf(`{"topic":"job-manager.getattr","matchtag":1,"payload":{"id":%d,"attrs":["eventlog"]}}`, id))[0]
		var answer struct {
			Payload struct{ Eventlog []json.RawMessage }
		}
		require.NoError(h.t, json.Unmarshal([]byte(text), &answer), text)
		var log []byte
		for _, e := range answer.Payload.Eventlog {
			log = append(append(log, e...), '\n')
		}
		for _, f := range jobstate.Validate(log) {
			h.t.Errorf("job %d: %v\n%s", id, f, log)
		}
		job, err := jobstate.Replay(jobid.ID(id), log)
		require.NoError(h.t, err)
		require.Equal(h.t, jobstate.StateInactive, job.State(), string(log))
		require.LessOrEqual(h.t, h.starts[id], 1, "job %d: %s", id, log)
	}
	require.NotContains(h.t, l.end(), "from before", "a job is not over")
}

// throughKills runs jobs on a store while processes are killed. Folders take their time.
func throughKills(t *testing.T, n int, kills ...string) {
	store, jobs := "bolt:", 300
	if n%4 == 1 {
		store, jobs = "dir:", 40
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed, store, kills)
	h := newHub(t, "-store="+store+filepath.Join(t.TempDir(), "jobs"), seed)
	h.play(jobs, kills...)
	h.check(jobs)
}

// A manager, a scheduler and an executor run jobs, and each is killed now and then: what the
// manager has answered is there afterwards.
func TestJobsRunThroughKillsOfEachProcess(t *testing.T) {
	for n := range 2 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel() // it waits
			throughKills(t, n, "sched", "manager", "executor", "manager", "sched", "executor")
		})
	}
}

// TestSoakKills kills in any order, for as long as JOBLIFE_SOAK says.
func TestSoakKills(t *testing.T) {
	soak, err := time.ParseDuration(os.Getenv("JOBLIFE_SOAK"))
	if err != nil {
		t.Skip("JOBLIFE_SOAK is not set")
	}
	t.Parallel()
	for n, begun := 0, time.Now(); time.Since(begun) < soak && !t.Failed(); n++ {
		var kills []string
		for range 20 {
			kills = append(kills, []string{"manager", "sched", "executor"}[rand.IntN(3)])
		}
		throughKills(t, n, kills...)
	}
}
