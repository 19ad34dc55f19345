package perilog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/fsd"
)

// naiveRun is what a run is, told the simplest way: a map of ranks, looked at
// as a whole for each question.
type naiveRun struct {
	spec     Spec // defaults filled in
	state    RunState
	now      float64
	deadline float64 // 0: none
	procs    map[uint32]*naiveProc
	ranks    map[uint32]*naiveRank
	told     []RankEnd
	asked    []naiveRequest
	fatal    bool
	canceled bool
}

type naiveProc struct{ alive, started bool }

type naiveRank struct {
	end               End
	reported, drained bool
}

// naiveRequest is a request in words, with its ranks apart.
type naiveRequest struct {
	words string
	ranks []uint32
}

// runInput is one input of a run.
type runInput struct {
	op       string
	now      float64
	report   Report
	severity uint8
	ranks    *idset.Set
	since    float64
}

func (in runInput) String() string {
	return fmt.Sprintf("%s at %v: %+v severity %d ranks %v line %q", in.op, in.now, in.report, in.severity, in.ranks, in.report.Line)
}

// apply gives an input to a run and returns what it answers, in words.
func (in runInput) apply(r *Run) string {
	now := eventlog.Timestamp(in.now)
	switch in.op {
	case "start":
		return fmt.Sprint(r.Start(now))
	case "reattach":
		return fmt.Sprint(r.Reattach(eventlog.Timestamp(in.since), now))
	case "report":
		return r.Report(now, in.report).String()
	case "exception":
		return r.Exception(now, in.severity).String()
	case "cancel":
		return r.Cancel(now).String()
	case "force":
		return r.ForceFinish(now, in.ranks, "alice").String()
	}
	return fmt.Sprint(r.Tick(now))
}

func newNaiveRun(spec Spec) *naiveRun {
	n := &naiveRun{spec: spec, state: RunReady, procs: map[uint32]*naiveProc{}, ranks: map[uint32]*naiveRank{}}
	for rank := range spec.Ranks.All() {
		n.ranks[rank] = &naiveRank{}
		if spec.PerRank {
			n.procs[rank] = &naiveProc{}
		}
	}
	if !spec.PerRank {
		n.procs[spec.Leader] = &naiveProc{}
	}
	return n
}

// apply gives an input to the model.
func (n *naiveRun) apply(in runInput) string {
	switch in.op {
	case "start":
		return n.start(in.now, in.now, true)
	case "reattach":
		answer := n.start(in.since, in.now, false)
		if answer == "<nil>" {
			n.tick()
			n.finish()
		}
		return answer
	}
	if in.now > n.now && !math.IsInf(in.now, 0) {
		n.now = in.now
	}
	answer := ""
	switch in.op {
	case "report":
		answer = n.report(in.report).String()
	case "exception":
		n.fatal = n.fatal || in.severity == 0
		if in.severity != 0 || n.spec.Cancel != CancelOnException {
			answer = "ignored"
		} else {
			answer = n.cancel().String()
		}
	case "cancel":
		answer = n.cancel().String()
	case "force":
		answer = n.force(in.ranks).String()
	default:
		answer = fmt.Sprint(n.tick())
	}
	n.finish()
	return answer
}

func (n *naiveRun) start(since, now float64, launch bool) string {
	for _, t := range []float64{since, now} {
		if math.IsNaN(t) || math.IsInf(t, 0) || t <= 0 {
			return "perilog: Spec.now: is not finite and greater than 0"
		}
	}
	if n.state != RunReady {
		return ErrStarted.Error()
	}
	n.state, n.now = RunRunning, now
	if n.spec.Timeout > 0 {
		n.deadline = min(since, now) + float64(n.spec.Timeout)
	}
	var where []uint32
	for _, rank := range slices.Sorted(maps.Keys(n.procs)) {
		if n.spec.Offline.Contains(rank) {
			n.endProc(rank, End{CauseOffline, 68 << 8})
			continue
		}
		n.procs[rank].alive = true
		where = append(where, rank)
	}
	if launch && len(where) > 0 {
		n.ask("launch "+strings.Join(n.spec.Command, " "), where)
	}
	n.finish()
	return "<nil>"
}

func (n *naiveRun) alive() []uint32 {
	var out []uint32
	for _, rank := range slices.Sorted(maps.Keys(n.procs)) {
		if n.procs[rank].alive {
			out = append(out, rank)
		}
	}
	return out
}

func (n *naiveRun) report(rep Report) Answer {
	p := n.procs[rep.Rank]
	switch {
	case p == nil:
		return AnswerStranger
	case n.state == RunReady:
		return AnswerEarly
	case !p.alive:
		return AnswerEnded
	}
	switch rep.Kind {
	case ReportStarted:
		if p.started {
			return AnswerRepeated
		}
		p.started = true
	case ReportExited:
		status := rep.Status & 0xffff
		if status&0x7f == 0x7f {
			return AnswerIgnored
		}
		if status&0x7f == 0 {
			status &^= 0xff
		}
		if status == 0 && rep.Status != 0 {
			status = 256
		}
		end := End{CauseOK, status}
		if code := status >> 8; status&0x7f != 0 || code > 128 && code <= 192 {
			end.Cause = CauseSignalled
		} else if code != 0 {
			end.Cause = CauseFailed
		}
		if c := n.stopping(); c != 0 {
			end.Cause = c
			if status == 0 {
				end.Status = 15
			}
		}
		n.endProc(rep.Rank, end)
	case ReportLaunchFailed:
		status := rep.Status & 0xffff
		if status&0x7f == 0 {
			status &^= 0xff
		}
		if status == 0 || status&0x7f == 0x7f {
			status = 256
		}
		cause := CauseLaunchFailed
		if c := n.stopping(); c != 0 {
			cause = c
		}
		n.endProc(rep.Rank, End{cause, status})
	case ReportUnreachable:
		n.orphan(rep.Rank, CauseUnreachable)
		n.endProc(rep.Rank, End{CauseUnreachable, 68 << 8})
	case ReportOutput:
		return n.output(rep)
	default:
		return AnswerIgnored
	}
	return AnswerApplied
}

// stopping returns the cause of ranks that end while the run is being stopped.
func (n *naiveRun) stopping() Cause {
	return map[RunState]Cause{RunCanceling: CauseCanceled, RunTimingOut: CauseTimedOut}[n.state]
}

func (n *naiveRun) output(rep Report) Answer {
	c, ok, err := ParseControl(rep.Line)
	if !ok || err != nil {
		return AnswerIgnored
	}
	failed := []uint32{rep.Rank}
	if c.Ranks != nil {
		failed, _ = c.Ranks.Slice(math.MaxInt32)
	}
	answer := AnswerStranger
	for _, rank := range failed {
		s, a := n.ranks[rank], AnswerApplied
		switch {
		case s == nil:
			continue
		case s.end.Cause != 0:
			a = AnswerEnded
		case s.reported:
			a = AnswerRepeated
		default:
			s.reported = true
			n.drain(rank, CauseReported)
		}
		if answer != AnswerApplied {
			answer = a
		}
	}
	return answer
}

// orphan drains the one node of a single command that may still run.
func (n *naiveRun) orphan(rank uint32, cause Cause) {
	if !n.spec.PerRank && n.ranks[rank] != nil {
		n.drain(rank, cause)
	}
}

// endProc ends the command on a rank, and its rank, or all of them.
func (n *naiveRun) endProc(rank uint32, end End) {
	n.procs[rank].alive = false
	if n.spec.PerRank {
		n.endRank(rank, end)
		return
	}
	for _, rank := range slices.Sorted(maps.Keys(n.ranks)) {
		n.endRank(rank, end)
	}
}

func (n *naiveRun) endRank(rank uint32, end End) {
	s := n.ranks[rank]
	switch end.Cause {
	case CauseUnreachable, CauseAbandoned, CauseLaunchFailed, CauseOffline:
	default:
		if s.reported {
			end.Cause = CauseReported
			if end.Status == 0 {
				end.Status = 256
			}
		}
	}
	s.end = end
	n.told = append(n.told, RankEnd{rank, end})
	switch end.Cause {
	case CauseOK, CauseCanceled, CauseOffline, CauseAbandoned:
	default:
		if n.spec.PerRank {
			n.drain(rank, end.Cause)
		}
	}
}

func (n *naiveRun) drain(rank uint32, cause Cause) {
	if n.ranks[rank].drained {
		return
	}
	n.ranks[rank].drained = true
	why, ok := map[Cause]string{CauseReported: "reported node failure", CauseTimedOut: "timed out",
		CauseCanceledTimedOut: "canceled then timed out", CauseUnreachable: "lost contact"}[cause]
	if !ok {
		why = "failed"
	}
	n.ask("drain "+n.spec.Kind.String()+" "+why+" for job "+n.spec.Job.String()+" update", []uint32{rank})
}

// ask asks for something; drains for one reason that follow each other are one.
func (n *naiveRun) ask(words string, ranks []uint32) {
	if k := len(n.asked) - 1; k >= 0 && strings.HasPrefix(words, "drain") && n.asked[k].words == words {
		n.asked[k].ranks = append(n.asked[k].ranks, ranks...)
		slices.Sort(n.asked[k].ranks)
		return
	}
	n.asked = append(n.asked, naiveRequest{words, slices.Clone(ranks)})
}

func (n *naiveRun) cancel() Answer {
	switch n.state {
	case RunReady:
		return AnswerEarly
	case RunCanceling:
		return AnswerRepeated
	case RunTimingOut:
		return AnswerIgnored
	case RunDone:
		return AnswerEnded
	}
	n.canceled = true
	n.stop(RunCanceling)
	return AnswerApplied
}

func (n *naiveRun) stop(state RunState) {
	n.state = state
	n.deadline = n.now + float64(n.spec.KillTimeout)
	n.ask("signal 15", n.alive())
}

func (n *naiveRun) tick() bool {
	due := false
	for n.deadline != 0 && n.now >= n.deadline {
		due = true
		if n.state == RunRunning {
			n.stop(RunTimingOut)
			continue
		}
		if n.spec.Kill {
			n.ask("signal 9", n.alive())
		}
		cause := map[RunState]Cause{RunCanceling: CauseCanceledTimedOut, RunTimingOut: CauseTimedOut}[n.state]
		for _, rank := range n.alive() {
			n.orphan(rank, cause)
			n.endProc(rank, End{cause, 15})
		}
		n.finish()
	}
	return due
}

func (n *naiveRun) force(ranks *idset.Set) Answer {
	switch n.state {
	case RunReady:
		return AnswerEarly
	case RunDone:
		return AnswerEnded
	}
	known, hit := ranks == nil, false
	for rank := range n.ranks {
		known = known || ranks.Contains(rank)
	}
	known = known || !n.spec.PerRank && ranks.Contains(n.spec.Leader)
	if !known {
		return AnswerStranger
	}
	for _, rank := range n.alive() {
		if ranks == nil || !n.spec.PerRank || ranks.Contains(rank) {
			n.endProc(rank, End{CauseAbandoned, 256})
			hit = true
		}
	}
	if !hit {
		return AnswerEnded
	}
	return AnswerApplied
}

// finish ends the run when all ranks have ended.
func (n *naiveRun) finish() {
	if n.state == RunReady || n.state == RunDone {
		return
	}
	for _, s := range n.ranks {
		if s.end.Cause == 0 {
			return
		}
	}
	n.state, n.deadline = RunDone, 0
	v := n.verdict()
	if v == VerdictSuccess || n.canceled && n.fatal || n.spec.Kind == RunHousekeeping {
		return
	}
	severity := 2
	if n.spec.Kind == RunProlog && v != VerdictTolerated {
		severity = 0
	}
	n.ask(fmt.Sprintf("raise %s %d", n.spec.Kind, severity), nil)
}

func (n *naiveRun) failed() (all []uint32, counted int) {
	for _, rank := range slices.Sorted(maps.Keys(n.ranks)) {
		if n.ranks[rank].end.Cause != CauseOK {
			all = append(all, rank)
			if !n.spec.Tolerate.Ranks.Contains(rank) {
				counted++
			}
		}
	}
	return all, counted
}

func (n *naiveRun) verdict() Verdict {
	failed, counted := n.failed()
	most := max(n.spec.Tolerate.Count, int(n.spec.Tolerate.Fraction*float64(len(n.ranks))+1e-9))
	switch {
	case n.canceled:
		return VerdictCanceled
	case len(failed) == 0:
		return VerdictSuccess
	case len(failed) < len(n.ranks) && counted <= most:
		return VerdictTolerated
	}
	return VerdictFailed
}

// said returns a request in words, as the model has them.
func said(r *Run, q Request) naiveRequest {
	words := q.Kind.String()
	switch q.Kind {
	case RequestLaunch:
		words += " " + strings.Join(q.Command, " ")
	case RequestSignal:
		words += fmt.Sprint(" ", q.Signal)
	case RequestDrain:
		words += " " + q.Reason + " " + q.Mode
	case RequestRaise:
		return naiveRequest{words + fmt.Sprint(" ", q.Exception.Type, " ", q.Exception.Severity), nil}
	}
	ranks, _ := q.Ranks.Slice(math.MaxInt32)
	return naiveRequest{words, ranks}
}

// compare requires that a run is what the model is, and that its own counts and
// lists are what its slots are.
func (n *naiveRun) compare(t require.TestingT, r *Run) {
	require.Equal(t, n.state, r.State())
	require.Equal(t, n.state == RunDone, r.Done())
	deadline, ok := r.Deadline()
	require.Equal(t, n.deadline, float64(deadline))
	require.Equal(t, n.deadline != 0, ok)
	active, _ := r.Active().Slice(math.MaxInt32)
	require.Equal(t, n.alive(), active)
	left := fsd.Infinity()
	if n.deadline != 0 {
		left = fsd.Duration(max(0, n.deadline-n.now))
	}
	require.Equal(t, left, r.Remaining(0))
	open, bad, spare, worst := 0, 0, 0, int32(0)
	for rank, s := range n.ranks {
		require.Equal(t, s.end, r.EndOf(rank), "rank %d", rank)
		i, _ := r.index(rank)
		require.Equal(t, s.drained, r.slots[i].drained)
		require.Equal(t, s.reported, r.slots[i].reported)
		worst = max(worst, s.end.Status)
		switch s.end.Cause {
		case 0:
			open++
		case CauseOK:
		default:
			bad++
			if n.spec.Tolerate.Ranks.Contains(rank) {
				spare++
			}
		}
	}
	require.Equal(t, []int{open, bad, spare, len(n.alive())}, []int{r.open, r.bad, r.spare, r.alive})
	require.Equal(t, worst, r.worst)
	if n.state != RunDone {
		require.Nil(t, r.Outcome())
		return
	}
	o := r.Outcome()
	failed, _ := n.failed()
	got, _ := o.Failed.Slice(math.MaxInt32)
	require.Equal(t, failed, got)
	require.Equal(t, n.verdict(), o.Verdict)
	require.Equal(t, o.Verdict.OK(), o.Status == 0)
	require.Equal(t, worst, o.Worst)
	require.Equal(t, o.Verdict == VerdictSuccess, o.Note == "")
	all := 0
	for i, g := range o.Groups {
		all += g.Ranks.Len()
		require.True(t, i == 0 || compareGroups(o.Groups[i-1], g) < 0)
		for rank := range g.Ranks.All() {
			require.Equal(t, g.Cause, n.ranks[rank].end.Cause)
		}
	}
	require.Equal(t, len(n.ranks), all)
}

// fetch compares what came out since the last time.
func (n *naiveRun) fetch(t require.TestingT, r *Run) {
	var requests []naiveRequest
	for _, q := range r.Requests() {
		requests = append(requests, said(r, q))
	}
	require.Equal(t, n.asked, requests)
	require.Equal(t, n.told, r.AppendEnded(nil))
	n.asked, n.told = nil, nil
}
