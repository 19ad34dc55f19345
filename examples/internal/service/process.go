package service

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
)

// A place is where an attempt of an action runs.
type place struct {
	job     jobid.ID
	action  perilog.Key
	attempt uint32
	rank    uint32
}

// A process is a command at a place, from its launch until the stream of rexec.exec ends.
type process struct {
	place
	at     eventlog.Timestamp // of the launch
	pid    int32              // 0: it has not started
	signal int                // is sent when it has started; 0: none
	exited bool               // its output may still come
	status int32              // if it exited
	line   []byte             // of its output, which has not ended yet
}

// maxLine is how much of a line of output is kept: a control line is shorter.
const maxLine = 8 << 10

// launch asks each rank to run a command, with the next Out.
func (s *Service) launch(l joblife.Launch) {
	const stdout, stderr = 1, 2
	type command struct {
		Cmdline  []string          `json:"cmdline"`
		Env      map[string]string `json:"env"`
		Opts     struct{}          `json:"opts"`
		Channels []string          `json:"channels"`
	}
	payload := struct {
		Cmd   command `json:"cmd"`
		Flags int     `json:"flags"`
	}{
		command{Cmdline: append([]string{}, l.Command...), Env: s.environ(l), Channels: []string{}}, stdout | stderr,
	}
	for rank := range l.Ranks.All() {
		p := &process{place: place{l.Job, l.Action, l.Attempt, rank}, at: eventlog.FromTime(s.now)}
		s.processes[p.place] = p
		s.send(&s.open, Call{Topic: "rexec.exec", Nodeid: int(rank), Payload: payload, Stream: true}, func(r Response) error {
			return s.heard(p, r)
		})
	}
}

// environ returns the environment of a command. The broker that runs it adds FLUX_URI.
func (s *Service) environ(l joblife.Launch) map[string]string {
	env := make(map[string]string, len(s.cfg.Environ)+3)
	for _, e := range s.cfg.Environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		}
	}
	env["FLUX_JOB_ID"] = l.Job.String()
	ranks := l.Ranks
	if l.Action == perilog.Housekeeping() { // decimal, as in flux-core
		env["FLUX_JOB_ID"] = strconv.FormatUint(uint64(l.Job), 10)
	}
	if v, ok := s.m.Job(l.Job); ok {
		env["FLUX_JOB_USERID"] = strconv.FormatUint(uint64(v.UserID()), 10)
		if r := v.R(); r != nil {
			ranks = r.Ranks()
		}
	}
	env["FLUX_JOB_RANKS"] = ranks.String()
	return env
}

// killProcess sends a signal to a process that runs, or when it has started. A process that has
// exited gets none: its pid may be of another one.
func (s *Service) killProcess(out *Out, p *process, signal int) {
	if p.pid == 0 {
		p.signal = signal
	}
	if p.pid == 0 || p.exited {
		return
	}
	payload := struct {
		PID    int32 `json:"pid"`
		Signal int   `json:"signum"`
	}{p.pid, signal}
	// A refusal tells that the process is gone: its stream says so, too.
	s.send(out, Call{Topic: "rexec.kill", Nodeid: int(p.rank), Payload: payload}, func(Response) error { return nil })
}

// heard takes in a response of rexec.exec (RFC 42).
func (s *Service) heard(p *process, r Response) error {
	if r.Errnum != 0 {
		return s.ended(p, r)
	}
	var m struct {
		Type   string
		PID    int32
		Status *int32
		IO     struct {
			Stream, Data, Encoding string
			EOF                    bool
		}
	}
	if err := json.Unmarshal(r.Payload, &m); err != nil {
		return fmt.Errorf("rexec.exec: %w", err)
	}
	switch {
	case m.Type == "started" && m.PID > 0 && p.pid == 0:
		p.pid = m.PID
		if p.signal != 0 {
			s.killProcess(&s.quick, p, p.signal)
		}
		return s.report(p, perilog.Report{Kind: perilog.ReportStarted})
	case m.Type == "finished" && m.Status != nil && p.pid != 0 && !p.exited:
		p.exited, p.status = true, *m.Status
	case m.Type == "output" && m.IO.Stream == "stdout":
		data := []byte(m.IO.Data)
		if m.IO.Encoding == "base64" {
			var err error
			if data, err = base64.StdEncoding.DecodeString(m.IO.Data); err != nil {
				return fmt.Errorf("rexec.exec: output: %w", err)
			}
		}
		return s.output(p, data, m.IO.EOF)
	case m.Type == "output" && m.IO.Stream != "", m.Type == "stopped", m.Type == "add-credit":
	default:
		return fmt.Errorf("rexec.exec: response %.64q is out of place", r.Payload)
	}
	return nil
}

// output reports the control lines of what a process wrote. At the end a line may lack its
// newline.
func (s *Service) output(p *process, data []byte, eof bool) error {
	for len(data) > 0 || eof && len(p.line) > 0 {
		part, rest, ended := bytes.Cut(data, []byte("\n"))
		p.line = append(p.line, part[:min(len(part), maxLine-len(p.line))]...)
		data = rest
		if !ended && !eof {
			break
		}
		line := p.line
		p.line = nil
		if !bytes.HasPrefix(line, []byte(perilog.ControlPrefix)) {
			continue
		}
		if err := s.report(p, perilog.Report{Kind: perilog.ReportOutput, Line: line}); err != nil {
			return err
		}
	}
	return nil
}

// Error numbers of rexec.exec.
const (
	eacces       = 13
	ehostunreach = 113
)

// ended takes in the end of the stream: the process has exited and all its output came, or
// contact with it was lost, or it could not be launched.
func (s *Service) ended(p *process, r Response) error {
	delete(s.processes, p.place)
	if err := s.output(p, nil, true); err != nil {
		return err
	}
	rep := perilog.Report{Kind: perilog.ReportExited, Status: p.status}
	if !p.exited {
		rep.Kind, rep.Status = perilog.ReportLaunchFailed, 1<<8
		rep.Detail = cmp.Or(r.Errstr, "errnum "+strconv.Itoa(r.Errnum))
		switch {
		case p.pid != 0, r.Errnum == ehostunreach:
			rep.Kind = perilog.ReportUnreachable
		case r.Errnum == eperm, r.Errnum == eacces:
			rep.Status = 126 << 8
		case r.Errnum == enoent:
			rep.Status = 127 << 8
		case r.Errnum == enodata:
			rep.Detail = "the stream ended before the process"
		}
	}
	return s.report(p, rep)
}

// report tells the Manager of a process.
func (s *Service) report(p *process, r perilog.Report) error {
	r.Action, r.Attempt, r.Rank = p.action, p.attempt, p.rank
	return s.step(joblife.Report{Job: p.job, Report: r})
}

// housekeepers returns the processes of housekeeping, by job and rank.
func (s *Service) housekeepers() []*process {
	var list []*process
	for at, p := range s.processes {
		if at.action.Kind == jobstate.ActionHousekeeping {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *process) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.rank, b.rank), cmp.Compare(a.attempt, b.attempt))
	})
	return list
}
