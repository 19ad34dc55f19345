package perilog_test

import (
	"fmt"
	"math"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// hkT0 is when the housekeeping of these tests begins.
const hkT0 = eventlog.Timestamp(1795226020)

func hkRanks(text string) *idset.Set {
	s, err := idset.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// hkR returns the R of ranks on hosts n0, n1, …, with uneven cores, gpus on
// every second rank and times that fragments must keep.
func hkR(ranks string) *rset.R {
	var lite, hosts []string
	for rank := range hkRanks(ranks).All() {
		gpus := ""
		if rank%2 == 1 {
			gpus = `,"gpu":"0-1"`
		}
		lite = append(lite, fmt.Sprintf(`{"rank":"%d","children":{"core":"%s"%s}}`, rank, []string{"0", "0-1", "0-2"}[rank%3], gpus))
		hosts = append(hosts, fmt.Sprintf(`"n%d"`, rank))
	}
	r, err := rset.Parse(fmt.Appendf(nil,
		`{"version":1,"execution":{"R_lite":[%s],"starttime":1795222420.5,"expiration":1795229620.5,"nodelist":[%s]}}`,
		strings.Join(lite, ","), strings.Join(hosts, ",")))
	if err != nil {
		panic(err)
	}
	return r
}

func hkAfter(d fsd.Duration) *fsd.Duration { return &d }

// hkJob returns a job of ranks.
func hkJob(ranks string, after *fsd.Duration) perilog.HousekeepingJob {
	return perilog.HousekeepingJob{
		Job: 1 << 40, UserID: 5588, Priority: 16, Submitted: hkT0 - 7200, R: hkR(ranks), ReleaseAfter: after,
	}
}

// hkFollow drives a housekeeping and checks it after every step: its
// invariants, what was given out against what is held, and that the log tells
// all there is.
type hkFollow struct {
	t        require.TestingT
	o        perilog.HousekeepingOptions
	h        *perilog.Housekeeping
	r        *rset.R
	log      []byte
	requests []perilog.Request
	free     []rset.Fragment
	sum      *rset.R
}

func hkNew(t require.TestingT, j perilog.HousekeepingJob, o perilog.HousekeepingOptions) *hkFollow {
	h, err := perilog.NewHousekeeping(hkT0, j, o)
	require.NoError(t, err)
	f := &hkFollow{t: t, o: o, h: h, r: j.R, sum: new(rset.R)}
	f.step()
	return f
}

// step does what is asked, and returns the fragments given out since the last
// step.
func (f *hkFollow) step() []rset.Fragment {
	e := f.h.Take()
	f.log = append(f.log, e.Log...)
	f.requests = append(f.requests, e.Requests...)
	for _, part := range e.Free {
		require.Zero(f.t, f.finals(), "a fragment after the final one")
		f.free = append(f.free, part)
		var err error
		f.sum, err = rset.Append(f.sum, part.R)
		require.NoError(f.t, err, "freed twice")
		if !part.R.IsEmpty() { // which fragments lost, in the reference
			require.Equal(f.t, f.r.Start(), part.R.Start())
			require.Equal(f.t, f.r.Expiration(), part.R.Expiration())
		}
	}
	require.NoError(f.t, f.h.Check())
	held, err := f.r.Restrict(f.h.Status(0).Allocated)
	require.NoError(f.t, err)
	whole, err := rset.Append(f.sum, held)
	require.NoError(f.t, err)
	require.True(f.t, rset.SameResources(whole, f.r), "I1")
	require.Equal(f.t, f.h.Done(), f.finals() == 1, "I2")
	f.replay()
	return append([]rset.Fragment(nil), e.Free...)
}

func (f *hkFollow) finals() int {
	n := 0
	for _, part := range f.free {
		if part.Final {
			n++
		}
	}
	return n
}

// replay returns what the log tells, which is the live state.
func (f *hkFollow) replay() *perilog.Housekeeping {
	h, err := perilog.ReplayHousekeeping(f.log, f.o)
	require.NoError(f.t, err)
	require.Equal(f.t, f.h.String(), h.String(), "I5")
	require.NoError(f.t, h.Check())
	return h
}

// crash goes on with what the log tells.
func (f *hkFollow) crash() {
	f.h = f.replay()
	f.step()
}

func (f *hkFollow) start(at eventlog.Timestamp, ranks string) {
	_, err := f.h.Start(hkT0+at, perilog.Spec{Ranks: hkRanks(ranks), Command: []string{"clean"}})
	require.NoError(f.t, err)
	f.step()
}

// exit reports exits with a wait status, at a time after hkT0, and returns what
// went back.
func (f *hkFollow) exit(at eventlog.Timestamp, ranks string, status int32) []string {
	var parts []rset.Fragment
	for rank := range hkRanks(ranks).All() {
		a := f.h.Report(hkT0+at, perilog.Report{Kind: perilog.ReportExited, Rank: rank, Status: status})
		require.Equal(f.t, perilog.AnswerApplied, a)
		parts = append(parts, f.step()...)
	}
	return hkParts(parts)
}

func (f *hkFollow) tick(at eventlog.Timestamp) []string {
	f.h.Tick(hkT0 + at)
	return hkParts(f.step())
}

func hkParts(parts []rset.Fragment) []string {
	var out []string
	for _, p := range parts {
		s := p.R.Ranks().String()
		if p.Gone != nil {
			s += " gone " + p.Gone.String()
		}
		if p.Final {
			s += " final"
		}
		out = append(out, s)
	}
	return out
}

// drains returns the drains asked for since the last call.
func (f *hkFollow) drains() []string {
	var out []string
	for _, q := range f.requests {
		if q.Kind == perilog.RequestDrain {
			out = append(out, q.Ranks.String()+": "+q.Reason)
		}
	}
	f.requests = nil
	return out
}

func hkForever() fsd.Duration { return fsd.Infinity() }

func hkNoTime() eventlog.Timestamp { return eventlog.Timestamp(math.NaN()) }

func hkNever() eventlog.Timestamp { return eventlog.Timestamp(math.Inf(1)) }

func hkSeconds(t float64) eventlog.Timestamp { return eventlog.Timestamp(t) }
