package perilog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
)

// Check finds what this package would have to do wrong.
func TestCheckFindsWhatIsBrokenInHousekeeping(t *testing.T) {
	for want, fault := range map[string]func(*Housekeeping){
		"perilog: I1: a rank of housekeeping is in two states":        func(h *Housekeeping) { h.held.Insert(0) },
		"perilog: I1: the ranks of housekeeping are not those held":   func(h *Housekeeping) { h.ready.Remove(1) },
		"perilog: I10: an unresolved rank was not started":            func(h *Housekeeping) { h.unresolved.Insert(1) },
		"perilog: I10: a rank of housekeeping ended twice":            func(h *Housekeeping) { h.ends[CauseFailed].Insert(1) },
		"perilog: I10: a rank of housekeeping went on without an end": func(h *Housekeeping) { h.ends[CauseOK].Remove(1) },
	} {
		h, err := NewHousekeeping(t0, HousekeepingJob{Job: 1, R: flukes(t, "0-2")}, HousekeepingOptions{})
		require.NoError(t, err)
		_, err = h.Start(t0, Spec{Ranks: idset.Of(0, 1)})
		require.NoError(t, err)
		require.Equal(t, AnswerApplied, h.Report(t0, Report{Kind: ReportExited, Rank: 1}))
		require.NoError(t, h.Check())
		fault(h)
		require.ErrorContains(t, h.Check(), want)
	}
}

func TestDecisionsHaveNames(t *testing.T) {
	for d, want := range map[Decision]string{
		0: "Decision(0)", DecisionRelease: "release", DecisionHold: "hold", DecisionDrain: "drain", 77: "Decision(77)",
	} {
		require.Equal(t, want, d.String())
	}
}
