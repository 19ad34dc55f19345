package perilog

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
)

// cloneRun copies a run of which all that came out was fetched.
func cloneRun(r *Run) *Run {
	return &Run{
		spec: r.spec, state: r.state, now: r.now, start: r.start, end: r.end, deadline: r.deadline,
		spans: r.spans, slots: slices.Clone(r.slots), lead: r.lead,
		alive: r.alive, open: r.open, bad: r.bad, spare: r.spare, worst: r.worst,
		canceled: r.canceled, fatal: r.fatal, head: -1, tail: -1,
	}
}

// runKey is all of a run on three ranks that its future depends on. Ranks are
// interchangeable, since there is every input for each, and so are in order.
type runKey struct {
	slots           [3]uint64
	lead            slot
	state           RunState
	fatal, canceled bool
	left            fsd.Duration
}

func runKeyOf(r *Run) runKey {
	k := runKey{lead: r.lead, state: r.state, fatal: r.fatal, canceled: r.canceled, left: r.Remaining(r.now)}
	for i, s := range r.slots {
		k.slots[i] = uint64(s.cause)<<40 | uint64(s.status)<<8
		for bit, set := range []bool{s.launched, s.started, s.reported, s.drained} {
			if set {
				k.slots[i] |= 1 << bit
			}
		}
	}
	slices.Sort(k.slots[:])
	return k
}

// everyInput returns one of each input that makes a difference, for ranks 0 to
// 2 and a stranger.
func everyInput() []runInput {
	inputs := []runInput{
		{op: "exception"}, {op: "exception", severity: 1}, {op: "cancel"},
		{op: "force"}, {op: "tick"}, {op: "start"},
		{op: "report", report: Report{Kind: ReportExited, Rank: 3}},
	}
	for rank := range uint32(3) {
		inputs = append(inputs, runInput{op: "force", ranks: idset.Of(rank)})
		for _, rep := range []Report{
			{Kind: ReportStarted}, {Kind: ReportExited}, {Kind: ReportExited, Status: 256}, {Kind: ReportExited, Status: 9},
			{Kind: ReportLaunchFailed}, {Kind: ReportUnreachable},
			{Kind: ReportOutput, Line: []byte(`perilog-control:{"version":1}`)},
			{Kind: ReportOutput, Line: []byte(`perilog-control:{"version":1,"failed":"0-2"}`)},
		} {
			rep.Rank = rank
			inputs = append(inputs, runInput{op: "report", report: rep})
		}
	}
	return inputs
}

// Every state that a run on three ranks can be in, and every input in each:
// I10, every rank ends once, with whatever comes, and the run is done when all
// have. The number of states is asserted, so that a state that comes or goes is
// noticed.
func TestEveryInputInEveryStateOfThreeRanks(t *testing.T) {
	require.Equal(t, 22, reflect.TypeFor[Run]().NumField(), "cloneRun copies each, but what was fetched or told")
	for _, c := range []struct {
		name   string
		change func(*Spec)
		states int
	}{
		{"a prolog", func(*Spec) {}, 32674},
		{"an epilog that tolerates a rank, another being offline", func(s *Spec) {
			s.Kind, s.Tolerate.Count, s.Offline = RunEpilog, 1, idset.Of(2)
		}, 2594},
		{"one command for three ranks", func(s *Spec) { s.PerRank = false }, 222},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := Spec{Kind: RunProlog, Ranks: idset.Of(0, 1, 2), PerRank: true, Timeout: 10 * fsd.Second, KillTimeout: fsd.Second}
			c.change(&spec)
			states := exploreRun(t, spec)
			t.Logf("%d states", states)
			require.Equal(t, c.states, states)
		})
	}
}

// exploreRun gives every input in every state, breadth first, and returns the
// number of states.
func exploreRun(t *testing.T, spec Spec) int {
	first, err := NewRun(spec)
	require.NoError(t, err)
	inputs := everyInput()
	seen := map[runKey]bool{runKeyOf(first): true}
	queue := []*Run{first}
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		for _, in := range inputs {
			next := cloneRun(r)
			in.now = float64(max(r.now, t0))
			if in.op == "tick" && r.deadline != 0 {
				in.now = float64(r.deadline)
			}
			in.apply(next)
			checkStep(t, r, next, in)
			if key := runKeyOf(next); !seen[key] {
				seen[key] = true
				queue = append(queue, next)
			}
		}
	}
	return len(seen)
}

// checkStep checks what one input made of a run, and fetches what came out.
func checkStep(t *testing.T, r, next *Run, in runInput) {
	fail := func(what string) {
		t.Helper()
		require.Fail(t, what, "%s\n%s\n%s", r, in, next)
	}
	told := next.AppendEnded(nil)
	ended := 0
	for i := range r.slots {
		was, is := &r.slots[i], &next.slots[i]
		switch {
		case was.cause != 0 && (was.cause != is.cause || was.status != is.status):
			fail("an end changed")
		case was.cause == 0 && is.cause != 0:
			ended++
		}
		if is.cause != 0 && is.launched {
			fail("an ended rank is running")
		}
		if is.cause != 0 && is.cause.OK() != (is.status == 0) {
			fail("the status does not fit")
		}
	}
	if len(told) != ended {
		fail("an end was not told once")
	}
	open := slices.ContainsFunc(next.slots, func(s slot) bool { return s.cause == 0 })
	if next.Done() == open {
		fail("done is when all have ended")
	}
	if next.State() != RunReady && open && next.alive == 0 {
		fail("nothing runs and a rank has not ended")
	}
	if in.op == "tick" && r.state != RunReady && r.state != RunDone {
		if r.state != RunRunning && !next.Done() {
			fail("past its kill timeout")
		}
		if r.state == RunRunning && next.state != RunTimingOut {
			fail("past its timeout")
		}
	}
	for _, q := range next.Requests() {
		if q.Kind == RequestRaise {
			if !next.Done() || r.Done() {
				fail("raised, but not at the end")
			}
			continue
		}
		if q.Ranks.IsEmpty() {
			fail("a request for no rank")
		}
		if q.Kind == RequestSignal && !r.Active().ContainsAll(q.Ranks) {
			fail("a signal to what has ended")
		}
		for rank := range q.Ranks.All() {
			if q.Kind == RequestDrain && r.slots[rank].drained {
				fail("drained twice")
			}
		}
	}
	if next.Done() && next.canceled && next.verdict().OK() {
		fail("canceled and a success")
	}
}
