// Package node is a node of a cluster: it runs what the active manager orders, and says what
// became of it.
//
// A session begins with a hello, which has all tasks of which the node has a record. Orders and
// statuses are numbered in it, and each side sees by a beat whether it missed one: then another
// session begins. So nothing is acknowledged, and nothing is lost: a record stays until the
// manager orders that it be forgotten, and a repeated order changes nothing. Orders of an
// earlier epoch are ignored. Tasks outlive the node's process.
package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
)

// A Config says what a node is.
type Config struct {
	Engine *engine.Engine
	Users  *engine.Engine // hears requests for output; nil: Engine does
	Rank   uint32
	Owner  uint32 // of the instance, who may read the output of all jobs
	Dir    string // keeps records of tasks, and the output of jobs
	Log    *slog.Logger
	// MaxOutput is how many bytes of the output of a job are kept; 0 means DefaultOutput, less all.
	MaxOutput int64
	// Simulate has tasks succeed at once, and runs nothing.
	Simulate bool
}

// DefaultOutput is how many bytes of the output of a job a node keeps.
const DefaultOutput = 64 << 20

// A runner runs tasks, such as a proc.Runner.
type runner interface {
	List() []exec.TaskStatus
	Last(exec.Task) (exec.TaskStatus, bool)
	Do(c exec.Command, args []string) error
}

type node struct {
	Config
	runner runner
	folder *folder       // nil: the node is simulated
	wake   chan struct{} // there is something to do
	news   chan struct{} // there is something to say

	mu sync.Mutex
	wire.Peer
	orders  []wire.Order // of the session, that wait
	changed []exec.Task  // since the last Up
	jobs    map[jobid.ID]*wire.Job
}

// Run runs a node until ctx ends. Its tasks go on.
func Run(ctx context.Context, cfg Config) error {
	n := &node{Config: cfg, wake: make(chan struct{}, 1), news: make(chan struct{}, 1), jobs: make(map[jobid.ID]*wire.Job)}
	if !cfg.Simulate {
		l, err := lock(cfg.Dir)
		if err != nil {
			return err
		}
		defer l.Close()
		n.folder, n.Epoch = l, l.epoch
	}
	if err := n.open(); err != nil {
		return err
	}
	e := cfg.Engine
	users := cmp.Or(cfg.Users, e)
	limit, err := auth.NewLimiter(outputsPerSecond, 2*outputsPerSecond, 1<<12)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		conn    *engine.Engine
		subject string
		handle  func(*nats.Msg)
	}{
		{e, e.Subject("do", cfg.Rank), n.do},
		{e, e.Subject("epoch"), n.beat},
		{users, e.Subject("req", "*", "output", cfg.Rank), func(m *nats.Msg) {
			if uid, ok := e.User(m.Subject, m.Reply); ok && limit.Allow(uid, time.Now()) {
				n.output(m, uid)
			}
		}},
	} {
		sub, err := s.conn.Subscribe(s.subject, s.handle)
		if err != nil {
			return fmt.Errorf("node: %w", err)
		}
		defer sub.Unsubscribe()
	}
	obeyed := make(chan struct{})
	go func() {
		defer close(obeyed)
		n.obey(ctx)
	}()
	tick := time.NewTicker(wire.BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			<-obeyed // before another process may have the folder
			return nil
		case <-n.news:
			n.say()
		case <-tick.C:
			n.mu.Lock()
			if n.Open() {
				n.up(wire.Up{})
			}
			n.mu.Unlock()
		}
	}
}

// open finds what runs.
func (n *node) open() error {
	n.mu.Lock() // a task may end before the first session
	defer n.mu.Unlock()
	if n.Simulate {
		n.runner = &simulated{said: n.said, tasks: make(map[exec.Task]exec.TaskStatus)}
		return nil
	}
	r, err := proc.NewRunner(n.Dir, int(n.Rank), n.said, func(err error) { n.Log.Error("record of a task", "error", err) })
	if err != nil {
		return err
	}
	n.runner, r.Prepare, r.MaxOutput = r, n.prepare, cmp.Or(n.MaxOutput, DefaultOutput)
	return n.readJobs()
}

// up sends an Up of the session.
func (n *node) up(u wire.Up) {
	if n.Says(&u); n.folder != nil {
		u.Node = n.folder.id
	}
	text, err := wire.Marshal(u)
	if err == nil {
		err = n.Engine.Publish(n.Engine.Subject("up", n.Rank), text)
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		err = fmt.Errorf("%w: %d bytes of %d tasks, and the server takes %d: raise its max_payload, or remove records of tasks while this node is down", err, len(text), len(u.Tasks), n.Engine.MaxPayload())
	}
	if err != nil { // the manager asks for another session when it misses it
		n.Log.Warn("not sent", "error", err)
	}
}

// begin begins a session: orders of the one before that wait are void, since the hello has what
// the manager has to know to repeat them.
func (n *node) begin() {
	u := n.Begin()
	n.orders = nil
	parts := split(n.runner.List(), int(n.Engine.MaxPayload())/2)
	if len(parts) > wire.MaxParts {
		n.Log.Error("there are too many tasks for a hello: remove records of tasks while this node is down", "messages", len(parts), "allowed", wire.MaxParts)
		return
	}
	for _, part := range parts {
		u.Parts, u.Tasks = len(parts), part
		n.up(u)
	}
}

// split splits tasks into parts of not much more than size bytes of JSON. There is one at least.
func split(tasks []exec.TaskStatus, size int) (parts [][]exec.TaskStatus) {
	from, left := 0, size
	for i := range tasks {
		text, _ := wire.Marshal(tasks[i])
		if left -= len(text); left < 0 && i > from {
			parts = append(parts, tasks[from:i])
			from, left = i, size-len(text)
		}
	}
	return append(parts, tasks[from:])
}

// heard follows what was heard: perhaps another session begins, when the order that goes on is
// done. A later life of the node ignores earlier epochs too.
func (n *node) heard() {
	if n.folder != nil && n.Epoch > n.folder.epoch {
		if err := n.folder.begin(n.Epoch); err != nil {
			n.Log.Error("the epoch is forgotten when this process ends", "error", err)
		}
	}
	if n.Greet {
		signal(n.wake)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// said has the next Up say what became of a task.
func (n *node) said(task exec.Task) {
	n.mu.Lock()
	n.changed = append(n.changed, task)
	n.mu.Unlock()
	signal(n.news)
}

// say says what has changed: by this time a task may be forgotten.
func (n *node) say() {
	n.mu.Lock()
	defer n.mu.Unlock()
	var tasks []exec.TaskStatus
	seen := make(map[exec.Task]bool, len(n.changed))
	for _, task := range n.changed {
		if st, ok := n.runner.Last(task); ok && !seen[task] {
			seen[task], tasks = true, append(tasks, st)
		}
	}
	if n.changed = n.changed[:0]; n.Open() && len(tasks) > 0 {
		for _, part := range split(tasks, int(n.Engine.MaxPayload())/2) {
			n.up(wire.Up{Tasks: part})
		}
	}
}

// beat hears of the active manager.
func (n *node) beat(m *nats.Msg) {
	var b wire.Beat
	if json.Unmarshal(m.Data, &b) != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Beat(b)
	n.heard()
}

func (n *node) do(m *nats.Msg) {
	var d wire.Do
	if err := json.Unmarshal(m.Data, &d); err != nil {
		n.Log.Error("order", "error", err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	next, err := n.Do(&d)
	if next && len(n.orders) > maxOrders {
		n.Restart()
		err = errors.New("too many orders wait")
	} else if next {
		n.orders = append(n.orders, d.Orders...)
		signal(n.wake)
	}
	if err != nil {
		n.Log.Warn("session", "error", err)
	}
	n.heard()
}

const maxOrders = 1 << 16

// obey does what was ordered, one after the other: a start waits for the disk.
func (n *node) obey(ctx context.Context) {
	old := time.NewTicker(time.Hour)
	defer old.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-old.C: // here, where no job is about to start
			n.clean()
		case <-n.wake:
		}
		for {
			n.mu.Lock()
			if n.Greet {
				n.begin()
			}
			if len(n.orders) == 0 || ctx.Err() != nil {
				n.mu.Unlock()
				break
			}
			o := n.orders[0]
			n.orders = n.orders[1:]
			n.mu.Unlock()
			if err := n.obeyOne(o); err != nil {
				n.Log.Warn("order", "task", o.Task, "kind", o.Kind, "error", err)
			}
		}
	}
}

func (n *node) obeyOne(o wire.Order) error {
	if _, known := n.runner.Last(o.Task); o.Kind == exec.CommandStart && o.Job != nil && !known && !n.Simulate {
		n.mu.Lock()
		n.jobs[o.Task.Job] = o.Job
		n.mu.Unlock()
	}
	if o.Kind == exec.CommandForget && o.Task.Action == (jobstate.ActionKey{}) && !n.Simulate { // the job has ended
		now := time.Now()
		_ = os.Chtimes(n.path(o.Task.Job, ".job"), now, now) // else its output is removed the sooner
	}
	return n.runner.Do(exec.Command{Kind: o.Kind, Task: o.Task, Signal: o.Signal}, o.Args)
}

// path is where the output of a job is, or what the node has to know of it.
func (n *node) path(id jobid.ID, suffix string) string {
	return filepath.Join(n.Dir, "output", id.String()+suffix)
}

// KeepOutput is how long a node keeps the output of a job that has ended.
const KeepOutput = 24 * time.Hour

// note notes what the node has to know of a job that has started: whose it is.
func (n *node) note(id jobid.ID, job *wire.Job) error {
	job = &wire.Job{UserID: job.UserID}
	text, err := json.Marshal(job)
	if err == nil {
		err = os.WriteFile(n.path(id, ".job"), text, 0o600)
	}
	n.mu.Lock()
	n.jobs[id] = job
	n.mu.Unlock()
	return err
}

// readJobs reads what an earlier life of the node has noted.
func (n *node) readJobs() error {
	if err := os.MkdirAll(filepath.Join(n.Dir, "output"), 0o700); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(n.Dir, "output", "*.job"))
	for _, name := range names {
		id, err := jobid.Parse(strings.TrimSuffix(filepath.Base(name), ".job"))
		if err != nil {
			n.Log.Warn("job", "file", name, "error", err)
			continue
		}
		text, err := os.ReadFile(name)
		job := new(wire.Job)
		if err = cmp.Or(err, json.Unmarshal(text, job)); err != nil { // a crash left nothing of it
			n.Log.Warn("job", "file", name, "error", err)
			job = &wire.Job{UserID: n.Owner}
		}
		n.jobs[id] = job
	}
	return err
}

// clean removes the output of jobs that ended long ago. Beats and orders do not wait for the disk.
func (n *node) clean() {
	n.mu.Lock()
	ids := slices.Collect(maps.Keys(n.jobs))
	n.mu.Unlock()
	for _, id := range ids {
		info, err := os.Stat(n.path(id, ".job"))
		_, runs := n.runner.Last(exec.Task{Job: id})
		if !runs && (err != nil || time.Since(info.ModTime()) > KeepOutput) {
			_, _ = os.Remove(n.path(id, ".out")), os.Remove(n.path(id, ".job"))
			n.mu.Lock()
			delete(n.jobs, id)
			n.mu.Unlock()
		}
	}
}

// prepare gives a job its output, folder, environment and user. An action runs as the node's
// user.
func (n *node) prepare(task exec.Task, cmd *osexec.Cmd) error {
	if task.Action != (jobstate.ActionKey{}) {
		return nil
	}
	n.mu.Lock()
	job := n.jobs[task.Job]
	n.mu.Unlock()
	if job == nil {
		return errors.New("it is not known whose job it is")
	}
	if err := n.note(task.Job, job); err != nil {
		return err
	}
	if me := os.Getuid(); me != 0 && me != int(job.UserID) {
		return fmt.Errorf("the node runs as user %d, so it cannot run a job of user %d", me, job.UserID)
	} else if me != int(job.UserID) {
		credential, err := lookup(job.UserID)
		if err != nil {
			return err
		}
		cmd.SysProcAttr.Credential = credential
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { // which may have secrets of root
			name, _, _ := strings.Cut(v, "=")
			return name != "PATH" && name != "LANG" && name != "TZ"
		})
	}
	cmd.Dir = job.Dir
	for k, v := range job.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Env = append(cmd.Env, "FLUX_JOB_ID="+task.Job.String(), fmt.Sprint("JOBLIFE_RANK=", n.Rank))
	f, err := os.OpenFile(n.path(task.Job, ".out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	cmd.Stdout, cmd.Stderr = f, f
	return err
}

// outputsPerSecond is how many requests for output of a user are answered.
const outputsPerSecond = 50

// output answers a user with a part of the output of a job of its own, and the owner of any.
func (n *node) output(m *nats.Msg, uid uint32) {
	out, err := n.read(uid, m.Data)
	if err != nil {
		out.Error = err.Error()
	}
	text, err := wire.Marshal(out)
	if err == nil {
		err = m.Respond(text)
	}
	if err != nil {
		n.Log.Warn("output", "error", err)
	}
}

func (n *node) read(uid uint32, text []byte) (out wire.Output, err error) {
	var r wire.OutputRequest
	if err := json.Unmarshal(text, &r); err != nil {
		return out, err
	}
	n.mu.Lock()
	job := n.jobs[r.ID]
	n.mu.Unlock()
	if job == nil || uid != job.UserID && uid != n.Owner {
		return out, fmt.Errorf("node %d has no output of a job %v of user %d", n.Rank, r.ID, uid)
	}
	last, kept := n.runner.Last(exec.Task{Job: r.ID}) // before the output is read
	f, err := os.Open(n.path(r.ID, ".out"))
	if err != nil {
		return out, err
	}
	defer f.Close()
	out.Data, err = io.ReadAll(io.NewSectionReader(f, r.Offset, wire.MaxOutput))
	out.End = err == nil && len(out.Data) == 0 && (!kept || last.State != exec.TaskRunning)
	return out, err
}
