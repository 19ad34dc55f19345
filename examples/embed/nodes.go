package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	pexec "github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// killed is the wait status of what a signal has ended.
const killed = 9

// schedule gives resources first come, first served.
func (s *site) schedule(messages []alloc.Message) {
	for _, msg := range messages {
		switch msg := msg.(type) {
		case alloc.Request:
			s.waiting = append(s.waiting, msg)
		case alloc.Cancel:
			s.waiting = slices.DeleteFunc(s.waiting, func(r alloc.Request) bool { return r.ID == msg.ID })
			s.say(joblife.SchedResponse{ID: msg.ID, Type: alloc.ResponseCancel})
		case alloc.Free:
			s.pool.Free(msg.ID, msg.R, msg.Final)
		}
	}
	for len(s.waiting) > 0 {
		id := s.waiting[0].ID
		spec, err := jobspec.Parse(s.waiting[0].Jobspec)
		var request *pool.Request
		if err == nil {
			request, err = pool.NewRequest(spec)
		}
		r := alloc.Response{ID: id, Type: alloc.ResponseSuccess}
		if err == nil {
			r.R, err = s.pool.Alloc(id, request, eventlog.FromTime(time.Now()))
		}
		if errors.Is(err, pool.ErrBusy) {
			return
		}
		if err != nil {
			r.Type, r.Note = alloc.ResponseDeny, err.Error()
		}
		s.waiting = s.waiting[1:]
		s.say(joblife.SchedResponse(r))
	}
}

// adopt makes the pool of eight nodes, and gives each job what it has already.
func (s *site) adopt(a *alloc.Announcement) error {
	inventory, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, nodes-1), Children: map[string]*idset.Set{"core": idset.Of(0)},
	}}})
	if err != nil {
		return err
	}
	if s.pool, err = pool.New(inventory, pool.Config{}); err != nil {
		return err
	}
	for _, h := range a.Responses {
		if err := s.pool.Adopt(h.ID, h.R, h.Free); err != nil {
			return err
		}
	}
	return s.pool.Update(pool.Change{Up: inventory.Ranks()})
}

// start runs a job. One that an earlier life started is lost.
func (s *site) start(msg pexec.Start) {
	say := func(r pexec.Response) {
		r.ID = msg.ID
		s.inputs <- joblife.ExecResponse(r)
	}
	status := int32(killed)
	if msg.Reattach {
		say(pexec.Response{Type: pexec.ResponseException, Exception: pexec.Exception{Type: "exec", Note: "lost with an earlier life"}})
	} else {
		say(pexec.Response{Type: pexec.ResponseStart})
		spec, _ := jobspec.Parse(msg.Jobspec) // which the manager has parsed before
		status = command(spec.Tasks()[0].Command)
	}
	say(pexec.Response{Type: pexec.ResponseFinish, Status: status})
	say(pexec.Response{Type: pexec.ResponseRelease, Final: true})
}

// launch runs a prolog or an epilog on a node.
func (s *site) launch(l joblife.Launch, rank uint32) {
	s.inputs <- joblife.Report{Job: l.Job, Report: perilog.Report{
		Action: l.Action, Attempt: l.Attempt, Rank: rank, Kind: perilog.ReportExited, Status: command(l.Command),
	}}
}

// command runs a command and returns its wait status.
func command(args []string) int32 {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		return 127 << 8
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return int32(code) << 8
	}
	return killed
}

// say passes an input from the loop itself.
func (s *site) say(in joblife.Input) { go func() { s.inputs <- in }() }

// open opens the file of records.
func (s *site) open(dir, name string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if s.log, err = logfile.Create(name, logfile.Options{}); !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := logfile.Repair(name, logfile.RepairOptions{}); err != nil {
		return err
	}
	s.log, err = logfile.Open(name, logfile.Options{})
	return err
}
