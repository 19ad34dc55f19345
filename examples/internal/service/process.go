package service

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// A place is where an attempt of an action runs.
type place struct {
	job     jobid.ID
	action  jobstate.ActionKey
	attempt uint32
	rank    uint32
}

// A launch is what the processes of one joblife.Launch share.
type launch struct {
	r     *rset.R // of the job, for the names of its hosts; nil: nobody has asked yet
	total int     // how many processes there are
}

// A process is a command at a place, from its launch until the stream of rexec.exec ends.
type process struct {
	place
	launch *launch
	at     eventlog.Timestamp // of the launch
	pid    int32              // 0: it has not started
	signal int                // to send when it has started; 0: none
	exited bool               // its output may still come
	status int32              // if it exited
	lines  map[string][]byte  // its output without a newline so far, by stream
}

// The processes part has the prologs, epilogs and housekeeping.
type processes struct {
	*core
	running map[place]*process
	drains  []drain // those that were refused, by time
}

// drainAgain is how long a drain that was refused waits.
const drainAgain = time.Minute

// A drain is a request to drain ranks that was refused, and is sent again.
type drain struct {
	at     time.Time
	ranks  *idset.Set
	reason string
	then   func() error
}

func (s *processes) emit(rd *joblife.Ready) {
	for _, l := range rd.Launch {
		s.launch(l)
	}
	for _, sig := range rd.Signal {
		for rank := range sig.Ranks.All() {
			if p := s.running[place{sig.Job, sig.Action, sig.Attempt, rank}]; p != nil {
				s.killProcess(&s.open, p, sig.Signal.Signal)
			}
		}
	}
	for _, d := range rd.Drain {
		ranks := d.Ranks.Clone()
		s.drainRanks(&s.open, drain{ranks: ranks, reason: d.Reason, then: func() error {
			return s.step(joblife.Drained{Ranks: ranks})
		}})
	}
}

// drainRanks drains ranks. If that is refused it tries again, since only the drain frees them.
func (s *processes) drainRanks(out *Out, d drain) {
	payload := struct {
		Targets string `json:"targets"`
		Reason  string `json:"reason"`
		Mode    string `json:"mode"`
	}{d.ranks.String(), s.plain(d.reason), "update"}
	s.send(out, Call{Topic: "resource.drain", Nodeid: 0, Payload: payload}, func(r Response) error {
		if r.Errnum == 0 {
			return d.then()
		}
		s.quick.errorf("resource.drain of %v: %s: it is tried again in %v", d.ranks, r.why(), drainAgain)
		d.at = s.now().Add(drainAgain)
		s.drains = append(s.drains, d)
		return nil
	})
}

// drainDue sends the drains that are due again.
func (s *processes) drainDue() {
	for len(s.drains) > 0 && !s.drains[0].at.After(s.now()) {
		d := s.drains[0]
		s.drains = s.drains[1:]
		s.drainRanks(&s.quick, d)
	}
}

// resolve resolves the actions that were lost in a restart.
func (s *processes) resolve(list []joblife.Unresolved) error {
	for _, u := range list {
		if u.Reason != perilog.ReasonLost && u.Reason != perilog.ReasonRemoved || s.cfg.Lost == LostHold {
			continue
		}
		action := joblife.Action{Job: u.Job, Key: u.Action, Ranks: u.Ranks}
		if s.cfg.Lost == LostRerun {
			err := s.step(joblife.Rerun{Action: action})
			if err == nil {
				continue
			}
			if !errors.Is(err, perilog.ErrAction) {
				return err
			}
		}
		reason := fmt.Sprintf("%v was lost for job %v", u.Action.Kind, u.Job)
		s.drainRanks(&s.quick, drain{ranks: u.Ranks, reason: reason, then: func() error {
			action.Ranks = idset.Of()
			for v := range s.m.Unresolved() { // some ranks may have ended in the meantime
				if v.Job == u.Job && v.Action == u.Action && v.Reason == u.Reason {
					action.Ranks.UnionWith(idset.Intersect(u.Ranks, v.Ranks)) // each attempt is one of them
				}
			}
			if action.Ranks.IsEmpty() {
				return nil
			}
			return s.step(joblife.ForceFinish{Action: action, Status: 1, Operator: "restart"})
		}})
	}
	return nil
}

// maxLine is how much of a line of output is kept: a control line is shorter.
const maxLine = 8 << 10

// launch asks each rank to run a command, with the next Out.
func (s *processes) launch(l joblife.Launch) {
	const stdout, stderr = 1, 2
	type command struct {
		Cmdline  []string          `json:"cmdline"`
		Env      map[string]string `json:"env"`
		Opts     struct{}          `json:"opts"`
		Channels []string          `json:"channels"`
	}
	var payload any = struct { // one for all ranks
		Cmd   command `json:"cmd"`
		Flags int     `json:"flags"`
	}{
		command{Cmdline: append([]string{}, l.Command...), Env: s.environ(l), Channels: []string{}}, stdout | stderr,
	}
	shared := &launch{total: l.Ranks.Len()}
	for rank := range l.Ranks.All() {
		p := &process{
			place: place{l.Job, l.Action, l.Attempt, rank}, launch: shared, at: eventlog.FromTime(s.now()), lines: make(map[string][]byte),
		}
		s.running[p.place] = p
		s.send(&s.open, Call{Topic: "rexec.exec", Nodeid: int(rank), Payload: payload, Stream: true}, func(r Response) error {
			return s.receive(p, r)
		})
	}
}

// environ returns the environment of a command. The broker that runs it adds FLUX_URI.
func (s *processes) environ(l joblife.Launch) map[string]string {
	env := make(map[string]string, len(s.cfg.Environ)+3)
	for _, e := range s.cfg.Environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		}
	}
	env["FLUX_JOB_ID"] = s.name(l.Job)
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
func (s *processes) killProcess(out *Out, p *process, signal int) {
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
	s.send(out, Call{Topic: "rexec.kill", Nodeid: int(p.rank), Payload: payload}, func(r Response) error {
		if r.Errnum != 0 && r.Errnum != errno.NoProcess { // if it is gone, its stream says so
			s.log(LevelError, p, "signal %d: %s", signal, r.why())
		}
		return nil
	})
}

// receive handles a response of rexec.exec (RFC 42).
func (s *processes) receive(p *process, r Response) error {
	if r.Errnum != 0 {
		return s.ended(p, r)
	}
	var m struct {
		Type   string `json:"type"`
		PID    int32  `json:"pid,omitempty"`
		Status *int32 `json:"status,omitempty"`
		IO     struct {
			Stream   string `json:"stream"`
			Data     string `json:"data,omitempty"`
			Encoding string `json:"encoding,omitempty"`
			EOF      bool   `json:"eof,omitempty"`
		} `json:"io,omitempty"`
	}
	if err := strict.Unmarshal(r.Payload, &m); err != nil {
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
	case m.Type == "output" && m.IO.Stream != "":
		data := []byte(m.IO.Data)
		if m.IO.Encoding == "base64" {
			var err error
			if data, err = base64.StdEncoding.DecodeString(m.IO.Data); err != nil {
				return fmt.Errorf("rexec.exec: output: %w", err)
			}
		}
		return s.output(p, m.IO.Stream, data, m.IO.EOF)
	case m.Type == "stopped", m.Type == "add-credit":
	default:
		return fmt.Errorf("rexec.exec: response %.64q is out of place", r.Payload)
	}
	return nil
}

// output logs what a process wrote, line by line, and reports the control lines on its
// standard output. At the end a line may lack its newline.
func (s *processes) output(p *process, stream string, data []byte, eof bool) error {
	if stream != "stdout" && stream != "stderr" {
		return nil
	}
	line, level := p.lines[stream], LevelInfo
	if stream == "stderr" {
		level = LevelError
	}
	for len(data) > 0 || eof && len(line) > 0 {
		part, rest, ended := bytes.Cut(data, []byte("\n"))
		line = append(line, part[:min(len(part), maxLine-len(line))]...)
		data = rest
		if !ended && !eof {
			break
		}
		switch {
		case p.action == perilog.Housekeeping():
			s.log(level, p, "%s", line)
		case !s.ignored(line):
			s.log(level, p, "%s: %s", stream, line)
		}
		if stream == "stdout" && bytes.HasPrefix(line, []byte(perilog.ControlPrefix)) {
			if err := s.report(p, perilog.Report{Kind: perilog.ReportOutput, Line: line}); err != nil {
				return err
			}
		}
		line = nil
	}
	p.lines[stream] = line
	return nil
}

func (r *Response) why() string { return cmp.Or(r.Errstr, "errnum "+strconv.Itoa(r.Errnum)) }

func (s *processes) ignored(line []byte) bool {
	return len(bytes.TrimSpace(line)) == 0 ||
		slices.ContainsFunc(s.cfg.LogIgnore, func(re *regexp.Regexp) bool { return re.Match(line) })
}

// log adds a line about a process, in the form of flux-core.
func (s *processes) log(level Level, p *process, format string, args ...any) {
	where := fmt.Sprintf("(rank %d)", p.rank)
	if host, ok := s.resources(p).Host(p.rank); ok {
		where = host + " " + where
	}
	text := fmt.Sprintf(format, args...)
	if p.action == perilog.Housekeeping() {
		s.quick.log(level, "housekeeping: %s %s: %s", where, s.name(p.job), text)
	} else {
		s.quick.log(level, "%s: %v: %s: %s", s.name(p.job), p.action.Kind, where, text)
	}
}

// resources returns the R of a process's job, as it was when a process of that launch first
// asked: few processes have something to log.
func (s *processes) resources(p *process) *rset.R {
	l := p.launch
	if l.r != nil {
		return l.r
	}
	if v, ok := s.m.Job(p.job); ok {
		l.r = v.R()
	}
	if l.r == nil { // the job is over
		l.r = s.allocated(p.job)
	}
	return l.r
}

// ended handles the end of the stream: the process has exited and all its output came, or
// contact with it was lost, or it could not be launched.
func (s *processes) ended(p *process, r Response) error {
	delete(s.running, p.place)
	for _, stream := range []string{"stdout", "stderr"} {
		if err := s.output(p, stream, nil, true); err != nil {
			return err
		}
	}
	rep := perilog.Report{Kind: perilog.ReportExited, Status: p.status}
	if !p.exited {
		rep.Kind, rep.Status = perilog.ReportLaunchFailed, 1<<8
		rep.Detail = r.why()
		switch {
		case p.pid != 0, r.Errnum == errno.Unreachable:
			rep.Kind = perilog.ReportUnreachable
		case r.Errnum == errno.Perm, r.Errnum == errno.Access:
			rep.Status = 126 << 8
		case r.Errnum == errno.NoEntry:
			rep.Status = 127 << 8
		case r.Errnum == errno.NoData:
			rep.Detail = "the stream ended before the process"
		}
		s.log(LevelError, p, "%s", rep.Detail)
	} else if p.action == perilog.Housekeeping() && p.status != 0 {
		why := "nonzero exit code"
		if signal := p.status & 0x7f; signal != 0 {
			why = signalText(int(signal))
		}
		s.log(LevelError, p, "%s", why)
	}
	return s.report(p, rep)
}

func (s *processes) report(p *process, r perilog.Report) error {
	r.Action, r.Attempt, r.Rank = p.action, p.attempt, p.rank
	return s.step(joblife.Report{Job: p.job, Report: r})
}
