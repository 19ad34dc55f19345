package perilog_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

var stories = []struct {
	name    string
	ranks   int
	options perilog.HoldsOptions
	script  string
}{
	{
		"A rank leaves when its epilog ends on it, whatever the others do", 4, perilog.HoldsOptions{}, `
		alloc -> applied | job 0-3
		start -> applied | job 0-3, executor 0-3
		finish -> applied | executor 0-3
		epilog-start e -> applied | executor 0-3, epilog:e 0-3
		release all final -> applied | epilog:e 0-3
		epilog-release e 2 -> applied | epilog:e 0-1,3; ready 2
		epilog-release e 0-1 256 -> applied | epilog:e 3; ready 0-2
		epilog-finish e 256 -> applied | -; ready 0-3
		free -> applied | -; ready 0-3
		clean -> applied`,
	}, {
		"The executor and an epilog both have to let go of a rank", 4, perilog.HoldsOptions{}, `
		alloc
		start
		finish
		epilog-start e
		epilog-release e 0-1 -> applied | executor 0-3, epilog:e 2-3
		release 0,2 -> applied | executor 1,3, epilog:e 2-3; ready 0
		release 0,3 -> applied; past 0 | executor 1, epilog:e 2-3; ready 0
		release 1,7 final -> applied; unknown 7 | epilog:e 2-3; ready 0-1
		epilog-finish e -> applied | -; ready 0-3`,
	}, {
		"Two epilogs hold a rank until both have ended", 2, perilog.HoldsOptions{}, `
		alloc
		start
		finish
		epilog-start a
		epilog-start b 1
		release all final -> applied | epilog:a 0-1, epilog:b 1
		epilog-release a 0-1 -> applied | epilog:a none, epilog:b 1; ready 0
		epilog-finish b -> applied | epilog:a none; ready 0-1
		epilog-finish a -> applied | -; ready 0-1`,
	}, {
		"A job that nothing but itself ever held is freed with free, not with the end", 2, perilog.HoldsOptions{}, `
		alloc
		exception cancel 0 -> applied | -
		free -> applied | -; ready 0-1`,
	}, {
		"What a prolog held before CLEANUP waits for free, as an epilog may start", 2, perilog.HoldsOptions{}, `
		alloc
		prolog-start p
		prolog-finish p
		exception cancel 0 -> applied | -
		epilog-start e -> applied | epilog:e 0-1
		epilog-finish e -> applied | -; ready 0-1`,
	}, {
		"Ranks that the last action did not hold leave with it", 4, perilog.HoldsOptions{}, `
		alloc
		prolog-start p 1
		exception cancel 0 -> applied | prolog:p 1
		epilog-start e 0-1 -> applied | prolog:p 1, epilog:e 0-1
		prolog-finish p 15 -> applied | epilog:e 0-1
		epilog-release e 0 -> applied | epilog:e 1; ready 0
		epilog-finish e -> applied | -; ready 0-3`,
	}, {
		"An action that starts late does not hold what has left", 3, perilog.HoldsOptions{}, `
		alloc
		start
		finish
		release 0 -> applied | executor 1-2; ready 0
		epilog-start e -> starts after ranks have left; past 0 | executor 1-2, epilog:e 1-2; ready 0
		epilog-start f 0,1,9 -> starts after ranks have left; unknown 9; past 0 | executor 1-2, epilog:e 1-2, epilog:f 1; ready 0
		epilog-release f 0 -> was so before; past 0
		release all final
		epilog-finish e -> applied | epilog:f 1; ready 0,2
		epilog-finish f
		epilog-start g -> starts after ranks have left; past 0-2 | epilog:g none; ready 0-2
		free -> something is still held
		epilog-finish g -> applied | -; ready 0-2`,
	}, {
		"Two live starts of one description are two, and the older one ends first", 3, perilog.HoldsOptions{}, `
		alloc
		exception cancel 0
		epilog-start e 0-1
		epilog-start e 1-2 -> applied | epilog:e 0-1, epilog:e 1-2
		epilog-release e 1-2 -> applied | epilog:e 0, epilog:e 1; ready 2
		epilog-release e 1-2 -> applied; past 2 | epilog:e 0, epilog:e none; ready 1-2
		epilog-finish e -> applied | epilog:e none; ready 0-2
		epilog-finish e -> applied | -; ready 0-2
		epilog-finish e -> ends what is not active | -; ready 0-2`,
	}, {
		"An action is known by its kind as well as its description", 2, perilog.HoldsOptions{}, `
		alloc
		prolog-start x
		epilog-start x
		exception cancel 0
		epilog-finish x -> applied | prolog:x 0-1
		epilog-finish x -> ends what is not active | prolog:x 0-1
		epilog-release x 0 -> ends what is not active | prolog:x 0-1
		prolog-release x 0 -> applied | prolog:x 1; ready 0
		prolog-finish x -> applied | -; ready 0-1`,
	}, {
		"More than 255 starts are counted", 1, perilog.HoldsOptions{}, repeat("epilog-start e\n", 300) + repeat("epilog-finish e\n", 299) + `
		alloc
		exception cancel 0 -> applied | epilog:e 0
		epilog-finish e -> applied | -; ready 0
		epilog-finish e -> ends what is not active`,
	}, {
		"A finish of an epilog with ranks ends it on those, and on the last of them", 3, perilog.HoldsOptions{Named: []string{"ssd"}}, `
		alloc
		exception cancel 0
		epilog-start {'description':'e','resources':['ssd']}
		epilog-finish {'description':'e','ranks':'0','status':0} -> applied | epilog:e 1-2 +ssd; ready 0
		epilog-finish {'description':'e','ranks':'0','status':0} -> was so before; past 0 | epilog:e 1-2 +ssd; ready 0
		epilog-finish {'description':'f','ranks':'1','status':0} -> ends what is not active | epilog:e 1-2 +ssd; ready 0
		epilog-finish {'description':'e','ranks':'1-2','status':1} -> applied | epilog:e none +ssd; ready 0-2
		epilog-finish {'description':'e','resources':['ssd'],'status':1} -> applied | -; ready 0-2 +ssd`,
	}, {
		"A finish of a prolog ends it whatever ranks it names", 2, perilog.HoldsOptions{}, `
		alloc
		prolog-start p
		prolog-finish {'description':'p','ranks':'0','status':0} -> applied | job 0-1`,
	}, {
		"An early release changes nothing unless it is wanted", 4, perilog.HoldsOptions{}, `
		alloc
		start
		release 3 -> released before finish | job 0-3, executor 0-3
		exception cancel 0 -> applied | executor 0-3
		release 2 -> released before finish | executor 0-3
		finish
		release 3 -> applied | executor 0-2; ready 3
		release all final -> applied | -; ready 0-3`,
	}, {
		"An early release frees where it is wanted, and an action delays it", 4, perilog.HoldsOptions{EarlyRelease: true}, `
		alloc
		epilog-start e 2
		start
		release 2-3 -> applied | job 0-1, executor 0-1, epilog:e 2; ready 3
		epilog-release e 2 -> applied | job 0-1, executor 0-1, epilog:e none; ready 2-3
		finish
		epilog-finish e
		release all final -> applied | -; ready 0-3`,
	}, {
		"A final release before the finish ends the executor's hold, not the job's", 2, perilog.HoldsOptions{EarlyRelease: true}, `
		alloc
		start
		release all final -> applied | job 0-1
		finish -> applied | -
		release 0 -> was so before; past 0
		free -> applied | -; ready 0-1`,
	}, {
		"All ranks released early leave one final fragment behind", 2, perilog.HoldsOptions{EarlyRelease: true}, `
		alloc
		start
		release 0 -> applied | job 1, executor 1; ready 0
		release all -> applied | job none, executor none; ready 0-1
		finish
		release all final
		free -> applied | -; ready 0-1`,
	}, {
		"Dropped ranks leave the job and the executor, and wait for actions", 4, perilog.HoldsOptions{}, `
		alloc
		prolog-start p
		exception {'type':'prolog','severity':1,'note':'','ranks':'3,8','action':'drop'} -> applied; unknown 8 | job 0-2, prolog:p 0-3
		prolog-release p 3 256 -> applied | job 0-2, prolog:p 0-2; ready 3
		prolog-finish p -> applied | job 0-2; ready 3
		start -> applied | job 0-2, executor 0-2; ready 3
		exception {'type':'node','severity':1,'note':'','ranks':'2','action':'drop'} -> applied | job 0-1, executor 0-1; ready 2-3
		exception {'type':'node','severity':1,'note':'','ranks':'2','action':'drop'} -> was so before
		finish
		epilog-start e -> applied | executor 0-1, epilog:e 0-1; ready 2-3`,
	}, {
		"An epilog of all ranks leaves out the dropped ones, one that names them holds them", 3, perilog.HoldsOptions{}, `
		alloc
		prolog-start p
		exception {'type':'prolog','severity':1,'note':'','ranks':'2','action':'drop'}
		epilog-start e -> applied | job 0-1, prolog:p 0-2, epilog:e 0-1
		epilog-start clean-up 2 -> applied | job 0-1, prolog:p 0-2, epilog:e 0-1, epilog:clean-up 2
		prolog-finish p -> applied | job 0-1, epilog:e 0-1, epilog:clean-up 2
		epilog-finish clean-up -> applied | job 0-1, epilog:e 0-1; ready 2`,
	}, {
		"Kept ranks stay with the job", 2, perilog.HoldsOptions{}, `
		alloc
		exception {'type':'prolog','severity':1,'note':'','ranks':'1','action':'keep'} -> applied | job 0-1
		exception {'type':'prolog','severity':1,'note':'','ranks':'1','action':'keep'} -> was so before | job 0-1
		exception {'type':'prolog','severity':1,'note':'','ranks':'1','action':'drop'} -> applied | job 0; ready 1`,
	}, {
		"An exception that ends the job, or lacks a key, is not of the dialect", 2, perilog.HoldsOptions{}, `
		alloc
		exception {'type':'x','severity':1,'note':'','ranks':5} -> says nothing of holds | job 0-1
		exception {'type':'x','severity':1,'note':'','action':'drop'} -> says nothing of holds | job 0-1
		exception {'type':'x','severity':0,'note':'','ranks':'1','action':'drop'} -> applied | -`,
	}, {
		"A drop does not end the job, even when nothing else holds anything", 2, perilog.HoldsOptions{}, `
		alloc
		exception cancel 0
		exception {'type':'x','severity':1,'note':'','ranks':'1','action':'drop'} -> applied | -; ready 1
		epilog-start e -> applied | epilog:e 0; ready 1
		epilog-finish e -> applied | -; ready 0-1`,
	}, {
		"A named resource outlives all ranks and delays itself and the final alone", 2, perilog.HoldsOptions{Named: []string{"rabbit1", "rabbit0", "rabbit1"}}, `
		alloc -> applied | job 0-1 +rabbit0 +rabbit1
		start -> applied | job 0-1 +rabbit0 +rabbit1, executor 0-1 +rabbit0 +rabbit1
		finish
		epilog-start {'description':'move','ranks':'','resources':['rabbit1','rabbit0']}
		release all final -> applied | epilog:move none +rabbit0 +rabbit1; ready 0-1
		memo {'data-out':true} -> applied | epilog:move none +rabbit0 +rabbit1; ready 0-1
		epilog-release {'description':'move','ranks':'','status':0,'resources':['rabbit1']} -> applied | epilog:move none +rabbit0; ready 0-1 +rabbit1
		epilog-release {'description':'move','ranks':'','status':0,'resources':['rabbit1','rabbit9']} -> was so before; names ["rabbit1" "rabbit9"]
		epilog-start {'description':'late','ranks':'','resources':['rabbit1','rabbit9']} -> starts after ranks have left; names ["rabbit1" "rabbit9"]
		epilog-finish move -> applied | epilog:late none; ready 0-1 +rabbit0 +rabbit1
		epilog-finish late`,
	}, {
		"A named resource that a prolog set up is not lost between it and the epilog", 1, perilog.HoldsOptions{Named: []string{"fs"}}, `
		alloc
		prolog-start {'description':'up','resources':['fs']}
		prolog-finish up -> applied | job 0 +fs
		start
		finish -> applied | executor 0 +fs
		epilog-start {'description':'down','ranks':'','resources':['fs']}
		release all final -> applied | epilog:down none +fs; ready 0
		epilog-finish down -> applied | -; ready 0 +fs`,
	}, {
		"A named resource that no action held leaves with the last hold", 1, perilog.HoldsOptions{Named: []string{"fs"}}, `
		alloc
		start
		finish
		epilog-start e 0
		release all final -> applied | epilog:e 0
		epilog-release e 0 -> applied | epilog:e none; ready 0
		epilog-finish e -> applied | -; ready 0 +fs`,
	}, {
		"A prolog can hold a job no more that has started", 1, perilog.HoldsOptions{}, `
		alloc
		start
		prolog-start p -> the job has started | job 0, executor 0
		prolog-finish p -> ends what is not active`,
	}, {
		"What an executor that never started says ends no hold of its", 2, perilog.HoldsOptions{}, `
		alloc
		release 0 -> ends what is not active | job 0-1
		start
		start -> was so before
		alloc -> was so before
		finish
		finish 1 -> was so before | executor 0-1`,
	}, {
		"An executor that let go of all before its start holds nothing", 1, perilog.HoldsOptions{}, `
		alloc
		release all final
		start -> applied | job 0
		exception cancel 0
		free -> applied | -; ready 0`,
	}, {
		"Before alloc an action is active and holds no rank", 2, perilog.HoldsOptions{}, `
		prolog-start p -> applied | prolog:p none
		epilog-start e 0 -> applied | prolog:p none, epilog:e none
		epilog-finish e -> applied | prolog:p none
		alloc -> applied | job 0-1, prolog:p 0-1
		prolog-finish p -> applied | job 0-1`,
	}, {
		"An allocation that comes when the job is ending is held by nobody until free", 2, perilog.HoldsOptions{}, `
		exception cancel 0
		alloc -> applied | -
		epilog-start e 0 -> applied | epilog:e 0
		epilog-finish e -> applied | -; ready 0-1`,
	}, {
		"Events that say nothing of holds are let pass", 1, perilog.HoldsOptions{}, `
		submit {'userid':5} -> says nothing of holds
		flux-restart -> says nothing of holds
		debug.x {'a':[1,2]} -> says nothing of holds
		memo {'a':1} -> says nothing of holds
		exception warn 3 -> says nothing of holds`,
	},
}

func repeat(s string, n int) string {
	out := ""
	for range n {
		out += s
	}
	return out
}

func TestHolds(t *testing.T) {
	for _, c := range stories {
		t.Run(c.name, func(t *testing.T) { newStory(t, c.ranks, c.options).run(c.script) })
	}
}

// Every byte of every story is a place where a crash may cut its log.
func TestACrashAtAnyByteLosesNothing(t *testing.T) {
	for _, c := range stories {
		if len(c.script) > 2000 {
			continue // the long one says nothing new
		}
		s := newStory(t, c.ranks, c.options)
		s.run(c.script)
		lines := 0
		for n := range len(s.log) {
			if n == 0 || s.log[n-1] != '\n' {
				continue
			}
			lines++
			h := perilog.NewHolds(s.r, c.options)
			for e, err := range eventlog.Entries(s.log[:n]) {
				require.NoError(t, err)
				_, err = h.Apply(e)
				require.NoError(t, err)
			}
			require.Equal(t, s.states[lines-1], h.String(), "after %d bytes", n)
		}
		for n := range len(s.log) { // a torn line adds nothing
			h, applied := perilog.NewHolds(s.r, c.options), 0
			for e, err := range eventlog.Entries(s.log[:n]) {
				if err != nil {
					require.ErrorIs(t, err, eventlog.ErrTorn)
					break
				}
				_, err = h.Apply(e)
				require.NoError(t, err)
				applied++
			}
			if applied > 0 {
				require.Equal(t, s.states[applied-1], h.String(), "after %d bytes", n)
			}
		}
	}
}

func TestOneFragmentIsFinalEvenWithoutRanks(t *testing.T) {
	s := newStory(t, 2, perilog.HoldsOptions{Named: []string{"fs"}})
	s.run("alloc\nstart\nfinish\nepilog-start {'description':'e','ranks':'','resources':['fs']}\nrelease all final")
	require.Equal(t, "0-1", s.last.R.Ranks().String())
	require.False(t, s.last.Final)
	s.run("epilog-finish e")
	require.True(t, s.last.Final)
	require.Equal(t, []string{"fs"}, s.last.Named)
	require.True(t, s.last.R.IsEmpty())
}

func TestAllRanksDroppedAreFinalWhileTheJobGoesOn(t *testing.T) {
	s := newStory(t, 2, perilog.HoldsOptions{})
	s.run("alloc\nexception {'type':'x','severity':1,'note':'','ranks':'0-1','action':'drop'} -> applied | job none; ready 0-1")
	require.True(t, s.last.Final)
	s.run("exception cancel 0\nfree")
	require.True(t, s.last.IsEmpty())
}

func TestAnEmptyJobStillHasItsFinalFragment(t *testing.T) {
	s := newStory(t, 0, perilog.HoldsOptions{})
	s.run("alloc\nstart\nfinish")
	require.True(t, s.last.IsEmpty())
	s.run("release none final")
	require.True(t, s.last.Final)
}

func TestAfterASchedulerRestartThereIsNothingToFree(t *testing.T) { // SM-10
	s := newStory(t, 2, perilog.HoldsOptions{})
	s.run("alloc\nstart\nexception scheduler-restart 0 -> applied | executor 0-1")
	require.True(t, s.holds.Revoked())
	require.False(t, s.holds.MayClean())
	s.run("release all final -> applied | -; ready 0-1")
	require.True(t, s.ledger.Freed().IsEmpty())
	require.False(t, s.holds.MayFree())
	require.True(t, s.holds.MayClean())
	s.run("free -> was so before\nclean -> applied")
	require.Zero(t, s.finals)
}

func TestAnotherAllocationAfterARevocationIsFreed(t *testing.T) {
	h := perilog.NewHolds(holdsR(t, 2), perilog.HoldsOptions{})
	l := rset.NewLedger(holdsR(t, 2))
	for i, e := range []eventlog.Entry{
		{Name: "alloc"},
		{Name: "exception", Context: []byte(`{"type":"scheduler-restart","severity":0}`)},
		{Name: "alloc"},
		{Name: "free"},
	} {
		e.Timestamp = eventlog.Timestamp(i + 1)
		_, err := h.Apply(e)
		require.NoError(t, err)
		require.Equal(t, i == 1, h.Revoked())
		require.Equal(t, i == 3, h.Feed(l).Final)
	}
}

func TestExceptionsThatDoNotEndTheJobRevokeNothing(t *testing.T) {
	s := newStory(t, 1, perilog.HoldsOptions{})
	s.run("exception scheduler-restart 0\nalloc\nexception scheduler-restart 2")
	require.False(t, s.holds.Revoked())
}

func TestDataOutIsTrueOrNothing(t *testing.T) {
	s := newStory(t, 1, perilog.HoldsOptions{})
	_, ok := s.holds.DataOut()
	require.False(t, ok)
	s.run("memo {'a':1,'data-out':true} -> applied\nmemo {'data-out':true}\nmemo {'b':true}")
	at, ok := s.holds.DataOut()
	require.True(t, ok)
	require.Equal(t, eventlog.Timestamp(1), at, "when it was first said")
	for _, other := range []string{"null", "false", "1", "'true'", "[]"} {
		s.tell("memo", "{'data-out':true}")
		s.tell("memo", "{'data-out':"+other+"}")
		_, ok = s.holds.DataOut()
		require.False(t, ok, other)
	}
}

func TestFailedAndDroppedRanksAreKnown(t *testing.T) {
	s := newStory(t, 4, perilog.HoldsOptions{})
	s.tell("alloc", "")
	s.tell("exception", "{'type':'x','severity':1,'note':'','ranks':'1,9','action':'keep'}")
	s.tell("exception", "{'type':'x','severity':7,'note':'','ranks':'2','action':'drop','nodelist':'n2'}")
	require.Equal(t, "1-2", s.holds.Failed().String())
	require.Equal(t, "2", s.holds.Dropped().String())
	s.holds.Failed().Insert(3)
	s.holds.Dropped().Insert(3)
	s.holds.Ready(nil).Insert(3)
	s.holds.Held().Remove(0)
	for x := range s.holds.Holders() {
		x.Ranks.SubtractWith(idset.Of(0, 1))
	}
	require.Equal(t, s.states[len(s.states)-1], s.holds.String(), "what comes out is the caller's")
}

func TestHoldersOfARankComeInOrderWithTheirTimes(t *testing.T) {
	s := newStory(t, 2, perilog.HoldsOptions{Named: []string{"fs"}})
	s.run("alloc\nprolog-start p 1\nepilog-start {'description':'e','ranks':'0','resources':['fs']}\nstart")
	var got []perilog.Holder
	for x := range s.holds.HoldersOf(0) {
		got = append(got, x)
	}
	require.Equal(t, []perilog.Holder{
		{Kind: perilog.HolderJob, Since: 1, Ranks: got[0].Ranks, Named: []string{"fs"}},
		{Kind: perilog.HolderExecutor, Since: 4, Ranks: got[1].Ranks, Named: []string{"fs"}},
		{Kind: perilog.HolderEpilog, Description: "e", Since: 3, Ranks: got[2].Ranks, Named: []string{"fs"}},
	}, got)
	require.Equal(t, "0-1 0-1 0", got[0].Ranks.String()+" "+got[1].Ranks.String()+" "+got[2].Ranks.String())
	for range s.holds.HoldersOf(2) {
		t.Fatal("rank 2 is not the job's")
	}
	for x := range s.holds.Holders() { // an iteration may end anywhere
		require.Equal(t, perilog.HolderJob, x.Kind)
		break
	}
	n := 0
	for range s.holds.Holders() {
		if n++; n == 2 {
			break
		}
	}
	require.Equal(t, 2, n)
	for x := range s.holds.Holders() {
		if x.Kind == perilog.HolderProlog {
			require.Equal(t, "1", x.Ranks.String())
			break
		}
	}
}

func TestReadyCutsToTheRanksAsked(t *testing.T) {
	s := newStory(t, 4, perilog.HoldsOptions{})
	s.run("alloc\nstart\nfinish\nrelease 1-3")
	require.Equal(t, "1-2", s.holds.Ready(idset.Of(0, 1, 2)).String())
	require.Equal(t, "1-3", s.holds.Ready(nil).String())
	require.Empty(t, s.holds.Ready(new(idset.Set)).String())
}

func TestARepeatedEntryCountsOnce(t *testing.T) { // flux-core#2547
	s := newStory(t, 1, perilog.HoldsOptions{})
	s.run("alloc\nexception cancel 0\nepilog-start e")
	require.Equal(t, "repeats the entry before it", s.again("epilog-start", "{'description':'e'}"))
	require.Equal(t, "applied", s.again("epilog-start", "{'description':'e' }"), "another byte, another event")
	s.run("epilog-finish e -> applied | epilog:e 0")
	s.again("flux-restart", "")
	require.Equal(t, "applied", s.again("epilog-finish", "{'description':'e','status':0}"), "not the one before it")
	long := "{'description':'" + repeat("x", 100) + "'}"
	s.tell("prolog-start", long)
	require.Equal(t, "repeats the entry before it", s.again("prolog-start", long))
	require.Equal(t, "starts after ranks have left; past 0", s.again("prolog-start", long[:99]+"y"+long[100:]))
}

func TestMalformedEventsAreRefusedAndChangeNothing(t *testing.T) {
	s := newStory(t, 4, perilog.HoldsOptions{Named: []string{"fs"}})
	s.run("alloc\nstart\nfinish\nepilog-start e")
	for name, contexts := range map[string][]string{
		"alloc":          {`{"annotations":1}`, `[]`, `{`},
		"finish":         {``, `{}`, `{"status":"0"}`},
		"release":        {``, `{}`, `{"ranks":"0"}`, `{"final":true}`, `{"ranks":0,"final":true}`, `{"ranks":"0","final":1}`, `{"ranks":"3-0","final":true}`, `{"ranks":"0","final":true,"final":true}`},
		"exception":      {``, `{"type":"x"}`, `{"type":"x","severity":1,"ranks":1,"action":"drop"}`, `{"type":"x","severity":1,"ranks":"","action":"drop"}`, `{"type":"x","severity":1,"ranks":"0","action":"no"}`, `{"type":"x","severity":1,"ranks":"0","action":1}`, `{"type":"x","severity":1,"ranks":"0","action":"keep","nodelist":1}`},
		"memo":           {``, `1`},
		"epilog-start":   {``, `{}`, `{"description":1}`, `{"description":"e","ranks":0}`, `{"description":"e","ranks":null}`, `{"description":"e","ranks":"all"}`, `{"description":"e","ranks":"01"}`, `{"description":"e","ranks":"1,"}`, `{"description":"e","ranks":"2147483648"}`, `{"description":"e","ranks":"5,5"}`, `{"description":"e","resources":"fs"}`, `{"description":"e","resources":[1]}`, `{"description":"e","resources":[""]}`, `{"description":"e","resources":["fs","fs"]}`},
		"epilog-finish":  {``, `{"description":"e"}`, `{"description":"e","status":1.5}`, `{"description":"e","status":4294967296}`, `{"description":"e","status":0,"ranks":1}`},
		"prolog-finish":  {`{"status":0}`, `{"description":"e","status":99999999999999999999}`},
		"epilog-release": {``, `{"description":"e","status":0}`, `{"description":"e","ranks":"0"}`, `{"ranks":"0","status":0}`, `{"description":"e","ranks":"0","status":0,"resources":{}}`},
		"prolog-release": {`[]`, `x`},
	} {
		for _, context := range contexts {
			before := s.holds.String()
			_, err := s.holds.Apply(eventlog.Entry{Timestamp: 9, Name: name, Context: []byte(context)})
			var refused *perilog.EventError
			require.ErrorAs(t, err, &refused, "%s %s", name, context)
			require.Equal(t, name, refused.Event)
			require.ErrorIs(t, err, jobstate.ErrContext)
			require.Regexp(t, `^perilog: event "`, err.Error())
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, before, s.holds.String(), "%s %s", name, context)
			require.NoError(t, s.holds.Check())
		}
	}
	for _, at := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		_, err := s.holds.Apply(eventlog.Entry{Timestamp: eventlog.Timestamp(at), Name: "clean"})
		require.ErrorIs(t, err, eventlog.ErrEntry)
	}
	long := repeat("n", 100)
	_, err := s.holds.Apply(eventlog.Entry{Name: long})
	require.EqualError(t, err, `perilog: event "`+long[:64]+`": `+eventlog.ErrEntry.Error())
}

// A refused entry is not the one before the next: it is in no log.
func TestARefusedEntryIsNoEntryBefore(t *testing.T) {
	s := newStory(t, 1, perilog.HoldsOptions{})
	s.tell("alloc", "")
	_, err := s.holds.Apply(eventlog.Entry{Timestamp: 5, Name: "finish"})
	require.Error(t, err)
	require.Equal(t, "repeats the entry before it", s.again("alloc", ""))
}

func TestTheZeroHoldsIsAJobWithoutResources(t *testing.T) {
	var h perilog.Holds
	for i, name := range []string{"alloc", "start", "free", "clean"} {
		_, err := h.Apply(eventlog.Entry{Timestamp: eventlog.Timestamp(i + 1), Name: name})
		require.NoError(t, err)
		require.NoError(t, h.Check())
	}
	require.True(t, h.Held().IsEmpty())
}

func TestNamesOfKindsAreTotal(t *testing.T) {
	require.Equal(t, "NoteKind(200)", perilog.NoteKind(200).String())
	require.Equal(t, "NoteKind(0)", perilog.NoteKind(0).String())
	require.Equal(t, "HolderKind(0)", perilog.HolderKind(0).String())
	require.Equal(t, "FailedAction(9)", perilog.FailedAction(9).String())
	require.Equal(t, "job executor prolog epilog", perilog.HolderJob.String()+" "+perilog.HolderExecutor.String()+" "+
		perilog.HolderProlog.String()+" "+perilog.HolderEpilog.String())
}
