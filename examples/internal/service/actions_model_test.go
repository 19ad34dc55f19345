package service

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
)

// A model plays with a cluster in any order: starts, exits, failures, kills, a slow store,
// refused drains and crashes. Job i has the ranks 2i and 2i+1.
type model struct {
	*cluster
	t      *rapid.T
	jobs   []int
	wants  map[string]int // which signal housekeeping has to get, by job and rank
	may    map[string]int // which it gets instead if its launch was with the store
	exited map[uint64]bool
}

// request asks without waiting for the answer.
func (m *model) request(topic, payload string) {
	m.Request(m.now, owner(topic, payload))
	m.pump()
}

// try is step for an input that may be refused.
func (m *model) try(in joblife.Input) {
	_ = m.m.Step(m.now, in)
	m.pump()
}

func (m *model) job() int {
	if len(m.jobs) == 0 {
		m.t.Skip("no job")
	}
	return rapid.SampledFrom(m.jobs).Draw(m.t, "job")
}

// command draws one of the commands that run.
func (m *model) command(ok func(*command) bool) *command {
	list := slices.DeleteFunc(m.commands(), func(p *command) bool { return !ok(p) })
	if len(list) == 0 {
		m.t.Skip("no command")
	}
	return rapid.SampledFrom(list).Draw(m.t, "command")
}

func (m *model) submit() {
	if len(m.jobs) == 5 {
		m.t.Skip("enough jobs")
	}
	id := 16 + len(m.jobs)
	m.jobs = append(m.jobs, id)
	m.request("submit", submissionOf(jobid.ID(id), ownUser, 0, sleep))
}

func (m *model) alloc(id int) {
	v, ok := m.m.Job(jobid.ID(id))
	if ok && v.State() == jobstate.StateSched && len(m.held) == 0 {
		i := id - 16
		m.try(joblife.SchedResponse{ID: jobid.ID(id), Type: alloc.ResponseSuccess, R: nodes(m.t, fmt.Sprintf("%d-%d", 2*i, 2*i+1))})
	}
}

func (m *model) play(id int) {
	for _, r := range []exec.Response{{Type: exec.ResponseStart}, {Type: exec.ResponseFinish}, {Type: exec.ResponseRelease, Final: true}} {
		r.ID = jobid.ID(id)
		m.try(joblife.ExecResponse(r))
	}
}

// cleans reports whether a command is housekeeping, and of what job and rank.
func cleans(p *command) (key string, ok bool) {
	return fmt.Sprint(p.Cmd.Env["FLUX_JOB_ID"], " ", p.rank), p.Cmd.Cmdline[0] == "clean"
}

func (m *model) kill() {
	id := rapid.SampledFrom([]int{-1, 16, 17, 18}).Draw(m.t, "id")
	ranks := idset.Of(rapid.SliceOfN(rapid.Uint32Range(0, 9), 0, 10).Draw(m.t, "ranks")...)
	signal := rapid.SampledFrom([]int{9, 10, 15}).Draw(m.t, "signal")
	exited := map[string]bool{}
	for _, p := range m.commands() {
		if key, ok := cleans(p); ok {
			exited[key] = m.exited[p.tag]
		}
	}
	for _, job := range m.jobs {
		for rank := range ranks.All() {
			if len(m.held) > 0 && (id == -1 || id == job) {
				m.may[fmt.Sprint(job, " ", rank)] = signal
			}
		}
	}
	for at := range m.processes.running {
		key := fmt.Sprint(uint64(at.job), " ", at.rank)
		house := at.action == perilog.Housekeeping()
		if house && !exited[key] && (id == -1 || id == int(at.job)) && ranks.Contains(at.rank) {
			m.wants[key] = signal
			delete(m.may, key)
		}
	}
	m.request("housekeeping-kill", fmt.Sprintf(`{"signum":%d,"jobid":%d,"ranks":%q}`, signal, id, ranks))
}

func (m *model) launch() {
	m.spawn(m.command(func(p *command) bool { return p.pid == 0 }))
	m.pump()
}

func (m *model) later() {
	if len(m.held) == 0 {
		m.wait(time.Duration(rapid.IntRange(1, 3000).Draw(m.t, "seconds")) * time.Second)
	}
}

// exit tells that a command has exited: its output may follow.
func (m *model) exit() {
	p := m.command(func(p *command) bool { return p.pid != 0 && !m.exited[p.tag] })
	m.exited[p.tag] = true
	status := rapid.SampledFrom([]int{0, 0, 0, 256, 15}).Draw(m.t, "status")
	m.tell(p, 0, fmt.Sprintf(`{"type":"finished","status":%d}`, status), "")
	m.pump()
}

func (m *model) fail() {
	p := m.command(func(p *command) bool { return !m.exited[p.tag] })
	m.tell(p, rapid.SampledFrom([]int{2, 13, 38, 61, 113}).Draw(m.t, "errnum"), "", "")
	m.pump()
}

func (m *model) over() {
	m.tell(m.command(func(p *command) bool { return m.exited[p.tag] }), 61, "", "")
	m.pump()
}

func (m *model) write() {
	p := m.command(func(p *command) bool { return p.pid != 0 })
	data := rapid.SampledFrom([]string{"x\n", "perilog-control: ", `{"version":1,"failed":true}`, "\n"}).Draw(m.t, "data")
	m.tell(p, 0, fmt.Sprintf(`{"type":"output","io":{"stream":"stdout","data":%q}}`, data), "")
	m.pump()
}

func (m *model) die() {
	m.held, m.hold = nil, nil
	m.started, m.wants, m.may, m.exited = map[int32]bool{}, map[string]int{}, map[string]int{}, map[uint64]bool{}
	m.next.Lost = rapid.SampledFrom([]Lost{LostFinish, LostRerun, LostHold}).Draw(m.t, "lost")
	m.crash()
	m.hello()
}

// check compares the signals that housekeeping got.
func (m *model) check() {
	for _, p := range m.commands() {
		if key, ok := cleans(p); ok && p.pid != 0 {
			want := m.wants[key]
			if may := m.may[key]; may == p.signal && may != 0 {
				want = may
			}
			require.Equal(m.t, want, p.signal, "of pid %d", p.pid)
		}
	}
	if len(m.held) == 0 {
		require.Len(m.t, m.processes.running, len(m.running))
	}
}

// finish lets everything end, and nothing must be left.
func (m *model) finish() {
	m.noDrain, m.slow = 0, false
	m.release()
	for range 20 {
		for _, id := range m.jobs {
			m.alloc(id)
			m.play(id)
		}
		for _, p := range m.commands() {
			switch {
			case p.pid == 0:
				m.spawn(p)
				fallthrough
			case !m.exited[p.tag]:
				m.end(p, 0)
			default:
				m.tell(p, 61, "", "")
				m.pump()
			}
		}
		for u := range m.m.Unresolved() {
			if u.Action.Kind != 0 {
				m.try(joblife.ForceFinish{Action: joblife.Action{Job: u.Job, Key: u.Action}, Status: 1, Operator: "me"})
				break
			}
		}
		m.wait(time.Minute)
	}
	for _, id := range m.jobs {
		if _, ok := m.m.Job(jobid.ID(id)); ok { // a crash may have lost it before it was stored
			m.gone(id)
		}
	}
}

func TestActionsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{cluster: newCluster(t, actions(true, true, true)), t: t, wants: map[string]int{}, may: map[string]int{}, exited: map[uint64]bool{}}
		m.slow = true
		steps := make(map[string]func(*rapid.T))
		for name, step := range map[string]func(){
			"submit":  m.submit,
			"alloc":   func() { m.alloc(m.job()) },
			"play":    func() { m.play(m.job()) },
			"begin":   m.launch,
			"exit":    m.exit,
			"over":    m.over,
			"fail":    m.fail,
			"write":   m.write,
			"kill":    m.kill,
			"cancel":  func() { m.request("raise", fmt.Sprintf(`{"id":%d,"severity":0,"type":"cancel"}`, m.job())) },
			"hold":    func() { m.hold = func(o *parcel) bool { return len(o.Append) > 0 } },
			"release": m.release,
			"refuse":  func() { m.noDrain = 38 - m.noDrain },
			"wait":    m.later,
			"crash":   m.die,
			"":        m.check,
		} {
			steps[name] = func(t *rapid.T) { m.t = t; step() }
		}
		t.Repeat(steps)
		m.t = t
		m.finish()
	})
}
