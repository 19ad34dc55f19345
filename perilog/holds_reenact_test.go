package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/perilog"
)

// What went wrong elsewhere, told again. Each test is named after the report.

// flux-core#5011: epilog-start was still queued when the job entered CLEANUP, and
// free and clean were logged before the epilog had ended.
func TestFluxCore5011EpilogStartComesAfterCleanupBegan(t *testing.T) {
	s := newStory(t, 4, perilog.HoldsOptions{})
	s.run(`
		alloc
		exception cancel 0 -> applied | -`)
	require.True(t, s.last.IsEmpty(), "entering CLEANUP frees nothing: an epilog may be queued")
	s.run(`epilog-start e -> applied | epilog:e 0-3`)
	require.False(t, s.holds.MayFree())
	require.False(t, s.holds.MayClean())
	s.run(`
		free -> something is still held | epilog:e 0-3
		clean -> something is still held | epilog:e 0-3`)
	require.True(t, s.ledger.Freed().IsEmpty())
	s.run(`epilog-finish e -> applied | -; ready 0-3`)
	require.Equal(t, 1, s.finals)
}

// flux-core#5345: a job that never got resources was closed before its epilog
// had ended.
func TestFluxCore5345AnEpilogHoldsAJobWithoutResources(t *testing.T) {
	s := newStory(t, 0, perilog.HoldsOptions{})
	s.run(`
		epilog-start e
		exception cancel 0 -> applied | epilog:e none`)
	require.False(t, s.holds.MayClean())
	require.False(t, s.holds.Idle())
	s.run(`epilog-finish e`)
	require.True(t, s.holds.MayClean())
	require.False(t, s.holds.MayFree(), "there is nothing to free")
	s.run(`clean -> applied | -`)
	require.Zero(t, s.finals)
}

// flux-core 4e8ae3433: a prolog was canceled, its kill timed out, no exception was
// raised, the job started anyway, and its epilog ran twice.
func TestFluxCore4e8ae3433AJobDoesNotStartAfterACanceledProlog(t *testing.T) {
	s := newStory(t, 2, perilog.HoldsOptions{})
	s.run(`
		alloc
		prolog-start p`)
	require.False(t, s.holds.MayStart())
	s.run(`
		epilog-start e
		prolog-finish p 15 -> applied | job 0-1, epilog:e 0-1`)
	require.False(t, s.holds.MayStart(), "it failed, exception or not")
	s.run(`
		prolog-start p
		prolog-finish p 0`)
	require.False(t, s.holds.MayStart(), "a success does not undo it")
	s.run(`
		exception prolog 0
		epilog-release e 0 -> applied | epilog:e 1; ready 0
		epilog-start e -> starts after ranks have left; past 0 | epilog:e 1, epilog:e 1; ready 0
		epilog-finish e -> applied | epilog:e 1; ready 0
		epilog-finish e -> applied | -; ready 0-1`)
}

// flux-coral2#301: a service restarted and sent the end of its prolog again,
// which raised a fatal exception on healthy jobs.
func TestFluxCoral2Issue301AFinishSentTwiceIsHarmless(t *testing.T) {
	s := newStory(t, 2, perilog.HoldsOptions{})
	s.run(`
		alloc
		prolog-start dws
		prolog-start other
		prolog-finish dws -> applied | job 0-1, prolog:other 0-1
		prolog-finish dws -> ends what is not active | job 0-1, prolog:other 0-1
		prolog-finish dws 256 -> ends what is not active | job 0-1, prolog:other 0-1
		prolog-finish other`)
	require.True(t, s.holds.MayStart(), "a failure told of what had ended well is a stranger's")
}

// flux-coral2#46: a plugin finished its epilog by the description of its prolog.
func TestFluxCoral2Issue46TheWrongDescriptionEndsNothing(t *testing.T) {
	s := newStory(t, 2, perilog.HoldsOptions{})
	s.run(`
		alloc
		prolog-start setup
		prolog-finish setup
		start
		finish
		epilog-start teardown
		release all final
		epilog-finish setup -> ends what is not active | epilog:teardown 0-1
		epilog-release setup 0 -> ends what is not active | epilog:teardown 0-1
		epilog-finish teardown -> applied | -; ready 0-1`)
}

// flux-core#6230: an epilog that moves data off a rabbit needs no compute node,
// or the first one alone.
func TestFluxCore6230AnEpilogHoldsTheRanksItNames(t *testing.T) {
	for ranks, want := range map[string]string{
		"":  "epilog:dws none; ready 0-3",
		"0": "epilog:dws 0; ready 1-3",
	} {
		s := newStory(t, 4, perilog.HoldsOptions{})
		s.run("alloc\nstart\nfinish")
		s.tell("epilog-start", "{'description':'dws','ranks':'"+ranks+"'}")
		s.run("release all final -> applied | " + want)
		require.False(t, s.holds.MayFree(), "the job is not over")
		s.run("epilog-finish dws -> applied | -; ready 0-3")
		require.True(t, s.holds.MayFree())
	}
}

// flux-core#5313: the first prolog-finish of several showed the job as starting.
func TestFluxCore5313AJobWaitsForItsLastProlog(t *testing.T) {
	s := newStory(t, 2, perilog.HoldsOptions{})
	s.run(`
		alloc
		prolog-start a 0
		prolog-start b 1
		prolog-finish a -> applied | job 0-1, prolog:b 1`)
	require.False(t, s.holds.MayStart())
	s.run(`prolog-finish b`)
	require.True(t, s.holds.MayStart())
	s.run(`start`)
	require.False(t, s.holds.MayStart(), "once is enough")
}

// The reference counts prologs and epilogs in one counter of 8 bits, whatever
// their descriptions: a prolog-finish that comes twice ends somebody's epilog.
func TestTheSharedCounterAPrologFinishTwiceEndsNoEpilog(t *testing.T) {
	s := newStory(t, 2, perilog.HoldsOptions{})
	s.run(`
		alloc
		prolog-start x
		exception cancel 0
		epilog-start x
		prolog-finish x
		prolog-finish x -> ends what is not active | epilog:x 0-1`)
	require.False(t, s.holds.MayFree())
	require.True(t, s.ledger.Freed().IsEmpty())
}

// flux-core#4108: a restart loses the process of an epilog. The log still tells
// which it was, on which ranks, and since when.
func TestFluxCore4108AfterARestartTheHolderHasAName(t *testing.T) {
	s := newStory(t, 4, perilog.HoldsOptions{})
	s.run("alloc\nstart\nfinish\nepilog-start e\nrelease all final\nepilog-release e 1-3\nflux-restart")
	for x := range s.holds.HoldersOf(0) {
		require.Equal(t, perilog.HolderEpilog, x.Kind)
		require.Equal(t, "e", x.Description)
		require.Equal(t, "0", x.Ranks.String())
		require.EqualValues(t, 4, x.Since)
	}
}
