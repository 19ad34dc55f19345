package perilog

import (
	"fmt"
	"strings"

	"github.com/joblife/joblife/idset"
)

// DescribeRank writes all that tells a rank of a job from another and can
// matter still.
func DescribeRank(j *Job, rank uint32, b *strings.Builder) {
	for x := range j.holds.HoldersOf(rank) {
		fmt.Fprintf(b, " %v", x.Kind)
	}
	h := j.holds
	fmt.Fprint(b, " left ", h.left.Contains(rank), h.failed.Contains(rank), h.dropped.Contains(rank))
	for _, a := range j.actions {
		if a.stage == stageFinished {
			continue // what became of it is in the log, and has no effect any more
		}
		fmt.Fprintf(b, " %v %v %v", a.ended.Contains(rank), a.draining.Contains(rank), a.unclaimed.Contains(rank))
		if a.run != nil {
			end := a.run.EndOf(rank)
			fmt.Fprintf(b, " %v %v %v", end.Cause != 0, end.Cause.OK(), a.run.Active().Contains(rank))
		}
	}
}

// ActiveRanks returns where a job takes an action to run.
func ActiveRanks(j *Job, key Key) *idset.Set {
	if a := j.action(key); a != nil && a.run != nil {
		return a.run.Active()
	}
	return new(idset.Set)
}

// DescribeStages returns all of a job that is not about single ranks.
func DescribeStages(j *Job) string {
	var b strings.Builder
	h := j.holds
	fmt.Fprint(&b, h.allocated, h.started, h.finished, h.cleanup, h.finalRelease, h.prologFailed, h.over)
	for _, a := range j.actions {
		fmt.Fprint(&b, " ", a.stage, a.lost, a.forced.set, a.raise != nil, a.worst != 0, a.earlier != 0, a.raisedEarlier)
		if a.run != nil && a.stage != stageFinished {
			fmt.Fprint(&b, a.run.State(), a.run.fatal, a.run.canceled)
		}
	}
	return b.String()
}
