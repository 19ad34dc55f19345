package main

import (
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// report tells what is known of a process.
func report(rank uint32, p process) perilog.Report {
	if p.running {
		return perilog.Report{Kind: perilog.ReportStarted, Rank: rank}
	}
	return perilog.Report{Kind: perilog.ReportExited, Rank: rank, Status: p.status}
}

// newDaemon returns what decides for one job.
func newDaemon(w *world, o options, r *rset.R, whole bool) (daemon, error) {
	if o.housekeeping {
		return newHousekeeping(w, o, r, whole)
	}
	d := &jobDaemon{
		world: w,
		config: perilog.Config{
			Prologs: []perilog.ActionConfig{{Kind: perilog.RunProlog, PerRank: true}},
			Epilogs: []perilog.ActionConfig{{Kind: perilog.RunEpilog, PerRank: true, Timeout: o.timeout}},
		},
		spec:  perilog.JobSpec{RunJob: perilog.RunJob{Job: 1, UserID: 5588, R: r}, WholeJob: whole},
		state: jobstate.NewJob(1), ledger: rset.NewLedger(r),
	}
	var err error
	if d.job, err = perilog.NewJob(d.config, d.spec); err != nil {
		return nil, err
	}
	for _, e := range [][2]string{
		{jobstate.EventSubmit, `{"userid":5588,"urgency":16,"flags":0,"version":1}`},
		{jobstate.EventValidate}, {jobstate.EventDepend},
		{jobstate.EventPriority, `{"priority":16}`}, {jobstate.EventAlloc},
	} {
		if err := d.event(e[0], e[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// A jobDaemon runs the prolog and the epilog of a job.
type jobDaemon struct {
	*world
	config perilog.Config
	spec   perilog.JobSpec

	log    []byte // all that survives a crash
	state  *jobstate.Job
	job    *perilog.Job
	ledger *rset.Ledger
}

// post logs an event, if it is legal, and only then lets it take effect.
func (d *jobDaemon) post(e eventlog.Entry) error {
	if _, err := d.state.Apply(e); err != nil {
		return err
	}
	var err error
	if d.log, err = eventlog.AppendEntry(d.log, e); err != nil {
		return err
	}
	_, err = d.job.Apply(d.now, e)
	return err
}

func (d *jobDaemon) event(name, context string) error {
	return d.post(eventlog.Entry{Timestamp: d.now, Name: name, Context: []byte(context)})
}

// act does what the job wants done until it wants nothing more, and then takes
// the job's next step.
func (d *jobDaemon) act() error {
	for {
		todo := d.job.Take()
		for _, e := range todo.Post {
			if err := d.post(e); err != nil {
				return err
			}
		}
		for _, q := range todo.Requests {
			d.do(q.Action, q.Request)
		}
		if f := d.job.Feed(d.ledger); !f.IsEmpty() {
			d.free(f)
		}
		if !todo.IsEmpty() {
			continue
		}
		next := ""
		switch {
		case d.job.MayStart() && d.state.MayStart():
			next = jobstate.EventStart
			d.after(jobTime, d.ended)
		case d.job.MayFree() && d.state.MayFree():
			next = jobstate.EventFree
		case d.job.MayClean() && d.state.MayClean():
			next = jobstate.EventClean
		default:
			return nil
		}
		if err := d.event(next, ""); err != nil {
			return err
		}
	}
}

// finish logs that the job has ended. The epilog starts between the two events,
// so that it holds the nodes before the executor lets them go.
func (d *jobDaemon) finish() error {
	if err := d.event(jobstate.EventFinish, `{"status":0}`); err != nil {
		return err
	}
	if err := d.act(); err != nil {
		return err
	}
	return d.event(jobstate.EventRelease, `{"ranks":"all","final":true}`)
}

func (d *jobDaemon) exited(rank uint32, p process)        { d.job.Report(d.now, p.action, report(rank, p)) }
func (d *jobDaemon) drained(ranks *idset.Set)             { d.job.Drained(d.now, ranks) }
func (d *jobDaemon) deadline() (eventlog.Timestamp, bool) { return d.job.Deadline() }
func (d *jobDaemon) tick()                                { d.job.Tick(d.now) }
func (d *jobDaemon) over() bool                           { return d.state.State() == jobstate.StateInactive }

// recover makes everything anew from the log. What has left went back: the event
// was in the log before the fragment was given out.
func (d *jobDaemon) recover() error {
	var err error
	if d.state, err = jobstate.Replay(d.state.ID(), d.log); err != nil {
		return err
	}
	if d.job, err = perilog.RecoverJob(d.now, d.config, d.spec, d.log); err != nil {
		return err
	}
	back := d.job.Holds().Ready(nil)
	d.ledger, err = rset.Rebuild(d.spec.R, rset.Released{Ranks: back, Final: !d.state.HasResources()})
	d.note("the daemon is back: its log says that %s went back", back)
	return err
}

// checkIn takes up again what runs, and hears what ended and is not in the log.
func (d *jobDaemon) checkIn(rank uint32, p process) {
	d.job.CheckIn(d.now, p.action, report(rank, p))
}

// A hkDaemon cleans the nodes after the job.
type hkDaemon struct {
	*world
	spec perilog.Spec
	log  []byte
	h    *perilog.Housekeeping
}

// newHousekeeping returns the daemon of a job that has just ended.
func newHousekeeping(w *world, o options, r *rset.R, whole bool) (daemon, error) {
	job := perilog.HousekeepingJob{Job: 1, UserID: 5588, R: r}
	if !whole {
		job.ReleaseAfter = &o.releaseAfter
	}
	h, err := perilog.NewHousekeeping(w.now, job, perilog.HousekeepingOptions{})
	d := &hkDaemon{world: w, spec: perilog.Spec{Timeout: o.timeout}, h: h}
	w.after(0, w.ended)
	return d, err
}

func (d *hkDaemon) finish() error {
	_, err := d.h.Start(d.now, d.spec)
	return err
}

// act does what the housekeeping wants done, the log first.
func (d *hkDaemon) act() error {
	todo := d.h.Take()
	d.log = append(d.log, todo.Log...)
	for _, q := range todo.Requests {
		d.do(perilog.Key{Description: "housekeeping"}, q)
	}
	for _, f := range todo.Free {
		d.free(f)
	}
	return nil
}

func (d *hkDaemon) exited(rank uint32, p process)        { d.h.Report(d.now, report(rank, p)) }
func (d *hkDaemon) checkIn(rank uint32, p process)       { d.exited(rank, p) }
func (d *hkDaemon) drained(ranks *idset.Set)             { d.h.Drained(d.now, ranks) }
func (d *hkDaemon) deadline() (eventlog.Timestamp, bool) { return d.h.Deadline() }
func (d *hkDaemon) tick()                                { d.h.Tick(d.now) }
func (d *hkDaemon) over() bool                           { return d.h.Done() }

// recover replays the log. What was started goes on; what was not is started.
func (d *hkDaemon) recover() error {
	var err error
	if d.h, err = perilog.ReplayHousekeeping(d.log, perilog.HousekeepingOptions{}); err != nil {
		return err
	}
	d.note("the daemon is back: its log says that %s went back", d.h.Status(d.now).Free)
	if !d.h.Unresolved().IsEmpty() {
		err = d.h.Reattach(d.now, d.spec)
	}
	if _, startErr := d.h.Start(d.now, d.spec); startErr != nil {
		return startErr
	}
	return err
}
