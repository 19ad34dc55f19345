package joblife

import (
	"errors"
	"fmt"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
)

// What the executor says (RFC 32).
type (
	// ExecHello begins a session of an executor. The executor gets a Start of each job that it
	// has to run, even of one that it runs already. Start.Reattach is set if the job has
	// started, is being stopped, or has prologs that did not run; Raised has what stops it.
	// Messages of an earlier session, and those of a Ready that is outstanding, are void.
	ExecHello struct{}
	// ExecResponse responds to a Start. An executor that goes on with a job may repeat what
	// it said before; a repetition logs no event.
	ExecResponse exec.Response
	// ExecRefused reports that the executor does not have a job, has not run it and will
	// not. The job ends with an exception, and with its epilogs if a prolog ran. But if the
	// executor was only asked whether it has the job (Reattach before the start), the job
	// goes on. An executor that has run a job must respond with start, finish and release
	// instead, even if the job is over: without a start, epilogs may not run.
	ExecRefused struct {
		ID   jobid.ID
		Note string
	}
	// ExecLost ends the session. Jobs may run on.
	ExecLost struct{}
)

// eventStartRequest is an event of a job with the flag debug.
const eventStartRequest = "debug.start-request"

// startJob asks the executor to start a job, now or when it says hello.
func (m *machine) startJob(j *job) {
	switch {
	case m.exec && j.start == startAsk: // its response decides
	case m.exec:
		m.sendStart(j)
	case j.start == startNone:
		j.start = startWanted
	case j.start == startAsk:
		j.start = startSent // it may start
	}
}

// sendStart asks the executor to start a job or to go on with it, perhaps once more.
func (m *machine) sendStart(j *job) {
	reattach := j.job().Started() || j.state == jobstate.StateCleanup || j.start == startAsk
	if j.start != startAsk {
		j.start = startSent
	}
	m.out.Exec = append(m.out.Exec, exec.Start{
		ID: j.id, UserID: j.job().UserID(), Jobspec: j.request(), R: j.current(), Reattach: reattach,
	})
	if !reattach {
		m.debug(j, eventStartRequest)
	}
}

func (ExecHello) dispatch(m *machine) error {
	m.execLost()
	m.exec = true
	for _, j := range m.sorted(jobstate.StateRunning) {
		if j.start == startNone || j.job().Released() {
			continue
		}
		m.sendStart(j)
		if cause, ok := j.job().Cause(); ok {
			m.out.Raised = append(m.out.Raised, Raised{Job: j.id, ExceptionContext: jobstate.ExceptionContext{
				Type: cause.Type, Note: cause.Note, UserID: cause.UserID, WaitStatus: cause.WaitStatus,
			}})
		}
	}
	return nil
}

func (ExecLost) dispatch(m *machine) error {
	m.execLost()
	return nil
}

// execLost takes back what was not handed out.
func (m *machine) execLost() {
	m.exec = false
	for _, msg := range m.out.Exec {
		s, ok := msg.(exec.Start)
		if j := m.jobs[s.ID]; ok && !s.Reattach && j != nil && j.start == startSent {
			j.start = startWanted
		}
	}
	m.out.Exec = clearTo(m.out.Exec)
}

// errOffline is returned for a message of an executor that has not said hello.
var errOffline = errors.New("joblife: not connected")

// running returns a job that the executor was asked to start.
func (m *machine) running(id jobid.ID) (*job, error) {
	j := m.jobs[id]
	switch {
	case !m.exec:
		return nil, fmt.Errorf("%w: no executor", errOffline)
	case j == nil:
		return nil, fmt.Errorf("%w: %v", ErrUnknown, id)
	case j.start != startSent && j.start != startAsk:
		return nil, fmt.Errorf("%w: the executor was not asked to start %v", ErrInvalid, id)
	}
	return j, nil
}

func (in ExecResponse) dispatch(m *machine) error {
	j, err := m.running(in.ID)
	if err != nil {
		return err
	}
	switch s := j.job(); in.Type {
	case exec.ResponseStart, exec.ResponseReattached:
		if s.Started() {
			return nil
		}
		return m.applyEntry(j, eventlog.Entry{Timestamp: m.now, Name: jobstate.EventStart})
	case exec.ResponseRelease:
		if s.Released() {
			return nil
		}
		ranks := jobstate.Ranks{All: in.Ranks == nil}
		if !ranks.All {
			if ranks.Set = j.unreleased(in.Ranks); ranks.Set.IsEmpty() && !in.Final {
				return nil
			}
		}
		return m.apply(j, &jobstate.ReleaseContext{Ranks: ranks, Final: in.Final})
	case exec.ResponseException:
		err := m.request(Cred{}, j, &jobstate.ExceptionContext{
			Type: sanitizeNote(in.Exception.Type), Severity: in.Exception.Severity, Note: sanitizeNote(in.Exception.Note),
			UserID: jobstate.Some(m.cfg.Owner),
		})
		if errors.Is(err, ErrLimit) { // not the executor's fault, so its session goes on
			m.fault("", j.id, err)
			return nil
		}
		return err
	case exec.ResponseFinish:
		if s.Finished() {
			return nil
		}
		return m.apply(j, &jobstate.FinishContext{Status: in.Status})
	}
	return fmt.Errorf("%w: response type %d", ErrInvalid, in.Type)
}

// unreleased returns the ranks of a set that the executor has not released before.
func (j *job) unreleased(ranks *idset.Set) *idset.Set {
	for h := range j.life.Holds().Holders() {
		if h.Kind == perilog.HolderExecutor {
			return idset.Intersect(ranks, h.Ranks)
		}
	}
	return ranks
}

func (in ExecRefused) dispatch(m *machine) error {
	j, err := m.running(in.ID)
	switch {
	case err != nil:
		return err
	case j.job().Started():
		return fmt.Errorf("%w: %v has started", ErrInvalid, in.ID)
	}
	asked := j.start == startAsk
	j.start = startNone
	j.life.NotStarted(m.now)
	if j.state == jobstate.StateRun && !asked {
		m.end(j, "exec", in.Note)
	}
	m.touch(j)
	return nil
}
