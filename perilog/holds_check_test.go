package perilog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/perilog"
)

func TestCheckFindsWhatIsBroken(t *testing.T) {
	for which := 0; ; which++ {
		s := newStory(t, 2, perilog.HoldsOptions{Named: []string{"fs", "ssd"}})
		s.run("alloc\nstart\nepilog-start {'description':'e','resources':['fs']}")
		if !s.holds.Break(which) {
			require.Equal(t, 15, which)
			return
		}
		require.ErrorContains(t, s.holds.Check(), "perilog: ", which)
	}
}

func TestTheTextTellsTheWholeState(t *testing.T) {
	s := newStory(t, 4, perilog.HoldsOptions{Named: []string{"fs"}, EarlyRelease: true})
	require.Equal(t, "left ", s.holds.String())
	s.run("alloc\nprolog-start p 0\nepilog-start {'description':'e\\n','ranks':'1,3','resources':['fs']}")
	s.run("exception {'type':'x','severity':1,'note':'','ranks':'2','action':'drop'}\nexception {'type':'x','severity':1,'note':'','ranks':'1','action':'keep'}")
	require.Equal(t, `job 0-1,3 "fs" @1.0; prolog "p" 0 @2.0; epilog "e\n" 1,3 "fs" @3.0; left 2; failed 1-2; dropped 2; allocated`, s.holds.String())
	s.run("prolog-finish p 1\nstart\nrelease 0\nmemo {'data-out':true}\nfinish")
	require.Equal(t, `executor 1,3 "fs" @7.0; epilog "e\n" 1,3 "fs" @3.0; left 0,2; failed 1-2; dropped 2; allocated; started; prolog failed; cleanup; finished; data out @9.0`, s.holds.String())
	s.tell("epilog-finish", `{'description':'e\n','status':0}`)
	s.run("release all final\nfree\nclean")
	require.Equal(t, `left 0-3 "fs"; failed 1-2; dropped 2; started; prolog failed; cleanup; finished; released; over; closed; data out @9.0`, s.holds.String())
	room := make([]byte, 3, 1000)
	copy(room, "abc")
	b, err := s.holds.AppendText(room)
	require.NoError(t, err)
	require.Equal(t, "abc"+s.holds.String(), string(b))
	revoked := newStory(t, 1, perilog.HoldsOptions{})
	revoked.run("alloc\nexception scheduler-restart 0")
	require.Equal(t, "left ; revoked; cleanup", revoked.holds.String())
}
