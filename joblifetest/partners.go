package joblifetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

func (r *runner) do(rd *joblife.Ready) error {
	r.tell(rd)
	for _, a := range rd.Answers {
		r.answered = a.Tag
	}
	for _, id := range rd.Unlink {
		delete(r.logs, id)
	}
	for _, f := range rd.Faults {
		return fmt.Errorf("joblifetest: %w", f)
	}
	effects := *rd
	effects.Sched = nil
	r.w.Do(&effects)
	if rd.Hello != nil {
		if err := r.sayHello(rd.Hello); err != nil {
			return err
		}
	}
	for _, msg := range rd.Sched {
		if err := r.send(msg); err != nil {
			return err
		}
	}
	for _, msg := range rd.Exec {
		if s, ok := msg.(exec.Start); ok {
			r.start(s)
		}
	}
	for _, l := range rd.Launch {
		r.launch(l)
	}
	for _, d := range rd.Drain {
		ranks := d.Ranks.Clone()
		r.asked.UnionWith(ranks)
		r.insist(time.Duration(r.choose(9))*time.Second, func() error {
			r.asked.SubtractWith(ranks)
			if err := r.step(0, joblife.Drained{Ranks: ranks}); err != nil {
				return err
			}
			return r.update(ranks, "drained")
		})
	}
	return r.w.Err()
}

func (r *runner) tell(rd *joblife.Ready) {
	if rd.Hello != nil {
		for _, h := range rd.Hello.Responses {
			r.note("  sched: %v holds %v, of which %q is free", h.ID, h.R, h.Free)
		}
	}
	for _, msg := range rd.Sched {
		switch msg := msg.(type) {
		case alloc.Request:
			r.note("  sched: request %v priority %d", msg.ID, msg.Priority)
		case alloc.Cancel:
			r.note("  sched: cancel %v", msg.ID)
		case alloc.Prioritize:
			r.note("  sched: prioritize %v", msg.Jobs)
		case alloc.Free:
			r.note("  sched: free %v %v final=%v", msg.ID, msg.R, msg.Final)
		case alloc.Expiration:
			r.note("  sched: %v expires at %v", msg.ID, msg.Expiration)
		}
	}
	for _, msg := range rd.Exec {
		if s, ok := msg.(exec.Start); ok {
			r.note("  exec: start %v on %v reattach=%v", s.ID, s.R, s.Reattach)
		}
	}
	for _, e := range rd.Raised {
		r.note("  raised: %v %s severity=%d", e.Job, e.Type, e.Severity)
	}
	for _, l := range rd.Launch {
		r.note("  launch: %v %v on %v attempt=%d", l.Job, l.Action, l.Ranks, l.Attempt)
	}
	for _, s := range rd.Signal {
		r.note("  signal: %v %v on %v %d", s.Job, s.Action, s.Ranks, s.Signal.Signal)
	}
	for _, d := range rd.Drain {
		r.note("  drain: %v %s", d.Ranks, d.Reason)
	}
	for _, a := range rd.Answers {
		if a.Report != 0 {
			r.note("  answer: %v", a.Report)
		} else if a.Err != nil {
			r.note("  answer: %v", a.Err)
		}
	}
	if len(rd.Unlink) > 0 {
		r.note("  unlink: %v", rd.Unlink)
	}
}

// sayHello tells the scheduler who holds what, and which nodes are down.
func (r *runner) sayHello(a *alloc.Announcement) error {
	r.met = true
	r.judge.hello(a)
	if err := r.s.Hello(*a); err != nil {
		return fmt.Errorf("joblifetest: hello: %w", err)
	}
	if !r.judge.off.IsEmpty() {
		return r.update(r.judge.off.Clone(), "down or drained")
	}
	return r.decide()
}

func (r *runner) send(msg alloc.Message) error {
	r.w.Do(&joblife.Ready{Sched: []alloc.Message{msg}})
	switch m := msg.(type) {
	case alloc.ReadyResponse:
		return nil
	case alloc.Request:
		m.Jobspec = bytes.Clone(m.Jobspec) // the Ready's is gone when that is done
		msg = m
	case alloc.Prioritize:
		m.Jobs = slices.Clone(m.Jobs)
		msg = m
	}
	if !r.met {
		return fmt.Errorf("joblifetest: a %T is sent, and the scheduler has no session", msg)
	}
	if err := r.judge.sent(msg); err != nil {
		return err
	}
	if err := r.s.Handle(msg); err != nil {
		return fmt.Errorf("joblifetest: the scheduler refuses %T: %w", msg, err)
	}
	return r.decide()
}

func (r *runner) decide() error {
	if !r.met {
		return nil
	}
	now := eventlog.FromTime(r.now)
	for _, resp := range r.s.Decide(now) {
		if resp.Type == alloc.ResponseSuccess {
			r.note("  response: %v %v %v, expires at %s", resp.Type, resp.ID, resp.R, clock(resp.R.Expiration()))
		} else {
			r.note("  response: %v %v %s", resp.Type, resp.ID, resp.Note)
		}
		if err := r.judge.response(resp, now); err != nil {
			return err
		}
		r.say(fromSched, joblife.SchedResponse(resp))
	}
	return r.judge.unanswered()
}

func (r *runner) say(from int, in joblife.Input) {
	r.todo[from] = append(r.todo[from], message{r.conns[from], in})
}

// launch runs an action on its nodes, which report until they are heard.
func (r *runner) launch(l joblife.Launch) {
	if r.began[l.Job] == 0 {
		r.began[l.Job] = r.lives
	}
	at := time.Duration(0)
	for _, report := range Reports(l).Draw(r.t, "reports") {
		at += time.Duration(r.choose(3)) * time.Second
		r.insist(at, func() error {
			report.Tag = r.newTag()
			r.note("%s", what(report))
			return r.step(0, report)
		})
	}
}

// start runs a job for its time. An executor that has it already repeats what it said.
func (r *runner) start(s exec.Start) {
	said, has := r.told[s.ID]
	switch {
	case has:
		for _, resp := range said {
			r.say(fromExec, joblife.ExecResponse(resp))
		}
		return
	case s.Reattach:
		r.say(fromExec, joblife.ExecRefused{ID: s.ID, Note: "it was never started"})
		return
	}
	tell := func(resp exec.Response) {
		resp.ID = s.ID
		r.told[s.ID] = append(r.told[s.ID], resp)
		r.note("the executor says %v of %v", resp.Type, s.ID)
		r.say(fromExec, joblife.ExecResponse(resp))
	}
	tell(exec.Response{Type: exec.ResponseStart})
	ranks := s.R.Ranks()
	a := r.jobs[s.ID]
	r.after(a.Runs, func() error {
		r.w.Ended(s.ID, nil)
		tell(exec.Response{Type: exec.ResponseFinish, Status: a.Status})
		last := time.Duration(0)
		if first, _ := ranks.Min(); ranks.Len() > 1 && r.choose(1) == 1 {
			tell(exec.Response{Type: exec.ResponseRelease, Ranks: idset.Of(first)})
			last = time.Duration(r.choose(60)) * time.Second // another rank takes its time
		}
		r.after(last, func() error {
			tell(exec.Response{Type: exec.ResponseRelease, Final: true})
			return nil
		})
		return nil
	})
}

func (r *runner) update(ranks *idset.Set, what string) error {
	c := pool.Change{Down: ranks}
	if what == "up" {
		c = pool.Change{Up: ranks}
		r.judge.off.SubtractWith(ranks)
	} else {
		r.judge.off.UnionWith(ranks)
	}
	r.note("rank %v: %s", ranks, what)
	if !r.met {
		return nil // its hello tells
	}
	if err := r.s.Update(c); err != nil {
		return fmt.Errorf("joblifetest: the scheduler refuses that rank %v is %s: %w", ranks, what, err)
	}
	return r.decide()
}
