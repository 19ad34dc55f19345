package loop_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

var start = time.Unix(1_700_000_000, 0)

// A disk is a Store that survives the Loop.
type disk struct {
	records []joblife.Record
	takes   time.Duration // for each call, under synctest
	appends int
	fault   func(n int) error // of the n-th Append, from 1
	stores  float64           // the share of the records that an Append stores which fails
	unlink  func([]jobid.ID) (map[jobid.ID]error, error)
	busy    bool
	apart   func(rd *joblife.Ready, done func(map[jobid.ID]error, error)) // as loop.Config.Begin; nil: it is the Store
}

func (d *disk) Append(records []joblife.Record) error {
	d.begin()
	defer d.end()
	if d.appends++; len(records) == 0 {
		panic("a sync for nothing")
	}
	var err error
	if d.fault != nil {
		if err = d.fault(d.appends); err != nil {
			records = records[:int(d.stores*float64(len(records)))]
		}
	}
	for _, r := range records {
		d.records = append(d.records, r.Clone())
	}
	return err
}

func (d *disk) Unlink(_ context.Context, ids []jobid.ID) (map[jobid.ID]error, error) {
	d.begin()
	defer d.end()
	if d.unlink != nil {
		return d.unlink(ids)
	}
	return nil, nil
}

func (d *disk) begin() {
	if d.busy {
		panic("two calls at a time")
	}
	if d.busy = true; d.takes > 0 {
		<-time.After(d.takes)
	}
}

func (d *disk) end() { d.busy = false }

// all yields what is durable.
func (d *disk) all(yield func(joblife.Record, error) bool) {
	for _, r := range d.records {
		if !yield(r, nil) {
			return
		}
	}
}

func (d *disk) text(t testing.TB) string {
	b, err := joblife.AppendRecords(nil, d.records)
	require.NoError(t, err)
	return string(b)
}

// A site is a Loop, what is around it, and what it said.
type site struct {
	t       testing.TB
	m       *joblife.Manager
	l       *loop.Loop
	disk    *disk
	node    *rset.R
	mute    bool // scheduler and executor say nothing
	hold    bool // jobs do not end
	seq     uint64
	empty   int                     // Readies of Do
	effects func(rd *joblife.Ready) // before those of the site
	did     func()                  // after those
	journal bytes.Buffer            // what was handed out
	answers []joblife.Answer
	refused []error
	refuse  func() // before an input is refused
}

var hello = []joblife.Input{joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{}}

// config has an epilog, which the site ends.
func config() joblife.Config {
	return joblife.Config{Epoch: time.Unix(900_000_000, 0), Actions: perilog.Config{Epilogs: []perilog.ActionConfig{{PerRank: true}}}}
}

// newSite restores a Manager from a disk.
func newSite(t testing.TB, now time.Time, d *disk, cfg joblife.Config, max int) *site {
	s := &site{t: t, disk: d}
	var err error
	s.node, err = rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}}]}}`))
	require.NoError(t, err)
	var left joblife.Recovered
	s.m, left, err = joblife.Restore(now, cfg, d.all)
	require.NoError(t, err)
	s.l, err = loop.New(s.m, loop.Config{
		Store: d, Effects: s.act, MaxInputs: max,
		Refused: func(_ joblife.Input, err error) {
			if s.refuse != nil {
				s.refuse()
			}
			s.refused = append(s.refused, err)
		},
	})
	require.NoError(t, err)
	for _, u := range left.Unresolved {
		s.put(joblife.Rerun{Action: joblife.Action{Job: u.Job, Key: u.Action}})
	}
	return s
}

// act is the Effects. It judges that all is durable, once and in order.
func (s *site) act(m *joblife.Manager, rd *joblife.Ready) {
	if rd.Seq == 0 && m == s.m {
		if s.empty++; s.did != nil {
			s.did()
		}
		return
	}
	if m != s.m || rd.Seq != s.seq+1 {
		s.t.Errorf("Ready %d comes after %d", rd.Seq, s.seq)
	}
	s.seq = rd.Seq
	stored := s.disk.records[max(0, len(s.disk.records)-len(rd.Append)):]
	if !slices.EqualFunc(rd.Append, stored, func(a, b joblife.Record) bool {
		return a.Kind == b.Kind && a.Job == b.Job && bytes.Equal(a.Data, b.Data)
	}) {
		s.t.Errorf("I4: Ready %d is not durable", rd.Seq)
	}
	if s.effects != nil {
		s.effects(rd)
	}
	for _, e := range rd.Journal {
		s.journal.WriteString(e.Job.Format(jobid.FormatDec) + " " + e.Entry.Name + "\n")
	}
	s.answers = append(s.answers, rd.Answers...)
	for _, msg := range rd.Sched {
		if msg, ok := msg.(alloc.Request); ok && !s.mute {
			s.put(joblife.SchedResponse{ID: msg.ID, R: s.node})
		}
	}
	for _, msg := range rd.Exec {
		msg, ok := msg.(exec.Start)
		if !ok || s.mute {
			continue
		}
		s.put(joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseStart})
		if !s.hold {
			s.put(joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseFinish},
				joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseRelease, Final: true})
		}
	}
	for _, l := range rd.Launch {
		if !s.mute {
			s.put(joblife.Report{Job: l.Job, Report: perilog.Report{Action: l.Action, Attempt: l.Attempt, Kind: perilog.ReportExited}})
		}
	}
	if s.did != nil {
		s.did()
	}
}

func (s *site) put(inputs ...joblife.Input) {
	if err := s.l.Put(inputs...); err != nil {
		s.t.Error(err)
	}
}

// run runs the Loop until the function returned is called, which returns what Run does.
func (s *site) run(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.l.Run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

var spec = func() []byte {
	s, err := jobspec.New(jobspec.Job{Command: []string{"true"}})
	if err != nil {
		panic(err)
	}
	text, err := s.MarshalJSON()
	if err != nil {
		panic(err)
	}
	return text
}()

func submit(id jobid.ID) joblife.Submit {
	return joblife.Submit{ID: id, Jobspec: spec, Urgency: jobstate.UrgencyDefault}
}

// bubble runs a test in which time passes when all goroutines wait; it fails if one is left.
func bubble(t *testing.T, f func(t *testing.T, ctx context.Context)) {
	synctest.Test(t, func(t *testing.T) { f(t, t.Context()) })
}

// panics returns what f panics with, as text; "" if it does not.
func panics(f func()) (text string) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			text = v.Error()
		case string:
			text = v
		}
	}()
	f()
	return ""
}

var errBroken = errors.New("broken")
