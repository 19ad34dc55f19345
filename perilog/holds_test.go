package perilog_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// holdsR returns an R of ranks 0 to n-1, nil if there are none.
func holdsR(t require.TestingT, n int) *rset.R {
	if n == 0 {
		return nil
	}
	ranks := new(idset.Set)
	ranks.InsertRange(0, uint32(n-1))
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: ranks, Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	return r
}

// prelude is how each job's log begins, up to the wait for resources.
const prelude = `{"timestamp":1,"name":"submit","context":{"userid":5,"urgency":16,"flags":0,"version":1}}
{"timestamp":1,"name":"validate"}
{"timestamp":1,"name":"depend"}
{"timestamp":1,"name":"priority","context":{"priority":16}}
`

// holdsStory is a Holds that is told a story, and its log.
type holdsStory struct {
	t     require.TestingT
	r     *rset.R
	named []string
	holds *perilog.Holds
	log   []byte
	now   eventlog.Timestamp
}

func newHoldsStory(t require.TestingT, ranks int, named ...string) *holdsStory {
	s := &holdsStory{t: t, r: holdsR(t, ranks), named: named, now: 1}
	s.holds = perilog.NewHolds(7, s.r, named...)
	for e, err := range eventlog.Entries([]byte(prelude)) {
		require.NoError(t, err)
		require.NoError(t, s.apply(e))
	}
	return s
}

// apply folds an entry, and checks what holds after every one.
func (s *holdsStory) apply(e eventlog.Entry) error {
	before, left := s.holds.String(), s.holds.Released().Ranks
	_, err := s.holds.Apply(e)
	require.NoError(s.t, s.holds.Check())
	require.True(s.t, s.holds.Released().Ranks.ContainsAll(left), "what has left never comes back")
	if err != nil {
		require.Equal(s.t, before, s.holds.String(), "an error changes nothing")
		return err
	}
	s.log, err = eventlog.AppendEntry(s.log, e)
	require.NoError(s.t, err)
	return nil
}

// tell folds an event.
func (s *holdsStory) tell(name, context string) error {
	s.now++
	return s.apply(entryOf(s.now, name, strings.ReplaceAll(context, "'", `"`)))
}

// entryOf is the entry of an event. Scripts write perilog-release with kind prolog as
// prolog-release, and so on.
func entryOf(at eventlog.Timestamp, name, context string) eventlog.Entry {
	e := eventlog.Entry{Timestamp: at, Name: name}
	kind, what, _ := strings.Cut(name, "-")
	if strings.HasSuffix(kind, "log") && kind != "perilog" && what != "start" && what != "finish" {
		e.Name, context = "perilog-"+what, strings.TrimSuffix(context, "}")+`,"kind":"`+kind+`"}`
	}
	if context != "" {
		e.Context = []byte(context)
	}
	return e
}

// replay returns a Holds that has read the log, as after a restart.
func (s *holdsStory) replay() *perilog.Holds {
	h := perilog.NewHolds(7, s.r, s.named...)
	for e, err := range eventlog.Entries(s.log) {
		require.NoError(s.t, err)
		_, err = h.Apply(e)
		require.NoError(s.t, err)
	}
	return h
}

// whoHolds returns who holds what, and what has left, in the form of
// testdata/brokers-holds.txt. A description that is not the job manager's follows
// its kind.
func whoHolds(h *perilog.Holds) string {
	var parts []string
	for x := range h.Holders() {
		part := x.Kind.String()
		if x.Description != "" && x.Description != "job-manager."+part {
			part += ":" + x.Description
		}
		if part += " " + x.Ranks.String(); x.Ranks.IsEmpty() {
			part += "none"
		}
		for _, name := range x.Named {
			part += " +" + name
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "-"
	}
	if left := h.Released(); !left.Ranks.IsEmpty() || len(left.Named) > 0 {
		text += "; ready " + left.Ranks.String()
		for _, name := range left.Named {
			text += " +" + name
		}
	}
	return text
}

// run tells a script: lines of an event, its context, and after "->" who holds
// what then, or "refused".
func (s *holdsStory) run(script string) {
	for i, line := range strings.Split(strings.TrimSpace(script), "\n") {
		what, want, compare := strings.Cut(strings.TrimSpace(line), " -> ")
		name, context, _ := strings.Cut(what, " ")
		err := s.tell(name, holdsContext(name, strings.TrimSpace(context)))
		if want == "refused" {
			require.Error(s.t, err, "line %d: %s", i+1, line)
			continue
		}
		require.NoError(s.t, err, "line %d: %s", i+1, line)
		if compare {
			require.Equal(s.t, want, whoHolds(s.holds), "line %d: %s", i+1, line)
		}
	}
}

// holdsContext spells out the contexts that scripts are full of. A line may give
// a description, then ranks, then a status; a finish its status; a release its
// ranks and "final"; an exception its type and severity.
func holdsContext(name, short string) string {
	if strings.HasPrefix(short, "{") {
		return short
	}
	f := strings.Fields(short)
	at := func(i int, otherwise string) string {
		if i < len(f) {
			return strings.ReplaceAll(f[i], "none", "")
		}
		return otherwise
	}
	switch name {
	case "prolog-start", "epilog-start":
		if len(f) > 1 {
			return fmt.Sprintf("{'description':'%s','ranks':'%s'}", f[0], at(1, ""))
		}
		return fmt.Sprintf("{'description':'%s'}", f[0])
	case "prolog-release", "epilog-release":
		return fmt.Sprintf("{'description':'%s','ranks':'%s','status':%s}", f[0], at(1, ""), at(2, "0"))
	case "prolog-fail", "epilog-fail":
		return fmt.Sprintf("{'description':'%s','ranks':'%s','cause':'failed','status':256,'drain':%t}", f[0], at(1, ""), at(2, "") == "drain")
	case "prolog-finish", "epilog-finish":
		return fmt.Sprintf("{'description':'%s','status':%s}", f[0], at(1, "0"))
	case "drained":
		return "{'ranks':'" + at(0, "") + "'}"
	case "finish":
		return "{'status':" + at(0, "0") + "}"
	case "release":
		return fmt.Sprintf("{'ranks':'%s','final':%s}", at(0, ""), strconv.FormatBool(at(1, "") == "final"))
	case "exception":
		return fmt.Sprintf("{'type':'%s','severity':%s,'note':''}", at(0, "cancel"), at(1, "0"))
	}
	return ""
}

var holdsStories = []struct {
	name   string
	ranks  int
	named  []string
	script string
}{
	{"A rank leaves when its epilog ends on it, whatever the others do", 4, nil, `
		alloc -> job 0-3
		start -> job 0-3, executor 0-3
		finish -> executor 0-3
		epilog-start e -> executor 0-3, epilog:e 0-3
		release all final -> epilog:e 0-3
		epilog-release e 2 -> epilog:e 0-1,3; ready 2
		epilog-release e 0-1 256 -> epilog:e 3; ready 0-2
		epilog-finish e 256 -> -; ready 0-3
		free -> -; ready 0-3
		clean -> -; ready 0-3`},
	{"Many ranks leave at once", 80, nil, `
		alloc
		start
		finish
		epilog-start e
		release 0-59 -> executor 60-79, epilog:e 0-79
		epilog-release e 20-79 -> executor 60-79, epilog:e 0-19; ready 20-59
		epilog-release e 0-69 -> executor 60-79, epilog:e none; ready 0-59`},
	{"The executor and an epilog both have to let go of a rank", 4, nil, `
		alloc
		start
		finish
		epilog-start e
		epilog-release e 0-1 -> executor 0-3, epilog:e 2-3
		release 0,2 -> executor 1,3, epilog:e 2-3; ready 0
		release 0,3 -> executor 1, epilog:e 2-3; ready 0
		release 1,7 final -> epilog:e 2-3; ready 0-1
		epilog-finish e -> -; ready 0-3`},
	{"Two epilogs hold a rank until both have ended", 2, nil, `
		alloc
		start
		finish
		epilog-start a
		epilog-start b 1
		release all final -> epilog:a 0-1, epilog:b 1
		epilog-release a 0-1 -> epilog:a none, epilog:b 1; ready 0
		epilog-finish b -> epilog:a none; ready 0-1
		epilog-finish a -> -; ready 0-1`},
	{"What nothing but the job ever held leaves with free", 2, nil, `
		alloc
		exception cancel 0 -> -
		free -> -; ready 0-1`},
	{"What a prolog held before CLEANUP waits, as an epilog may start", 2, nil, `
		alloc
		prolog-start p -> job 0-1, prolog:p 0-1
		prolog-finish p -> job 0-1
		exception cancel 0 -> -
		epilog-start e -> epilog:e 0-1
		epilog-finish e -> -; ready 0-1`},
	{"An action that starts late does not hold what has left", 3, nil, `
		alloc
		start
		finish
		release 0 -> executor 1-2; ready 0
		epilog-start e -> executor 1-2, epilog:e 1-2; ready 0
		epilog-start f 0,1,9 -> executor 1-2, epilog:e 1-2, epilog:f 1; ready 0
		epilog-release f 0 -> executor 1-2, epilog:e 1-2, epilog:f 1; ready 0
		release all final
		epilog-finish e -> epilog:f 1; ready 0,2
		epilog-finish f -> -; ready 0-2`},
	{"Two live starts of one key are two holds, and the older one ends first", 3, nil, `
		alloc
		exception cancel 0
		epilog-start e 0-1
		epilog-start e 1-2 -> epilog:e 0-1, epilog:e 1-2
		epilog-release e 1-2 -> epilog:e 0, epilog:e 1; ready 2
		epilog-release e 1-2 -> epilog:e 0, epilog:e none; ready 1-2
		epilog-finish e -> epilog:e none; ready 0-2
		epilog-finish e -> -; ready 0-2
		epilog-finish e -> -; ready 0-2`},
	{"An action is known by its kind as well as its description", 2, nil, `
		alloc
		prolog-start x
		epilog-start x
		exception cancel 0
		epilog-finish x -> prolog:x 0-1
		epilog-finish x -> prolog:x 0-1
		epilog-release x 0 -> prolog:x 0-1
		prolog-release x 0 -> prolog:x 1; ready 0
		prolog-finish x -> -; ready 0-1`},
	{"A finish ends the whole action, whatever ranks it names", 3, nil, `
		alloc
		exception cancel 0
		epilog-start e -> epilog:e 0-2
		epilog-finish {'description':'e','ranks':'0','status':0} -> -; ready 0-2`},
	{"An early release delays nothing and frees nothing before CLEANUP", 4, nil, `
		alloc
		start
		release 3 -> job 0-3, executor 0-2
		release all final -> job 0-3
		finish -> -; ready 0-3
		free`},
	{"Dropped ranks leave the job and the executor, and wait for actions", 4, nil, `
		alloc
		prolog-start p
		exception {'type':'prolog','severity':1,'note':'','ranks':'3,8','action':'drop'} -> job 0-2, prolog:p 0-3, drain 3
		prolog-release p 3 256 -> job 0-2, prolog:p 0-2, drain 3
		drained 0,3 -> job 0-2, prolog:p 0-2; ready 3
		prolog-finish p -> job 0-2; ready 3
		start -> job 0-2, executor 0-2; ready 3
		exception {'type':'node','severity':1,'note':'','ranks':'2','action':'drop'} -> job 0-1, executor 0-1, drain 2; ready 3
		drained 2 -> job 0-1, executor 0-1; ready 2-3
		exception {'type':'node','severity':1,'note':'','ranks':'2','action':'drop'} -> job 0-1, executor 0-1; ready 2-3
		finish
		epilog-start e -> executor 0-1, epilog:e 0-1; ready 2-3`},
	{"An epilog of all ranks leaves out the dropped ones, one that names them holds them", 3, nil, `
		alloc
		prolog-start p
		exception {'type':'prolog','severity':1,'note':'','ranks':'2','action':'drop'}
		drained 2 -> job 0-1, prolog:p 0-2
		epilog-start e -> job 0-1, prolog:p 0-2, epilog:e 0-1
		epilog-start clean-up 2 -> job 0-1, prolog:p 0-2, epilog:e 0-1, epilog:clean-up 2
		prolog-finish p -> job 0-1, epilog:e 0-1, epilog:clean-up 2
		epilog-finish clean-up -> job 0-1, epilog:e 0-1; ready 2`},
	{"An epilog holds the ranks that it names, or none, and all without the key", 3, nil, `
		alloc
		exception cancel 0 -> -
		epilog-start no none -> epilog:no none
		epilog-start one 1 -> epilog:no none, epilog:one 1
		epilog-start all -> epilog:no none, epilog:one 1, epilog:all 0-2
		epilog-finish all -> epilog:no none, epilog:one 1; ready 0,2
		epilog-finish one -> epilog:no none; ready 0-2`},
	{"Kept ranks stay with the job", 2, nil, `
		alloc
		exception {'type':'prolog','severity':1,'note':'','ranks':'1','action':'keep'} -> job 0-1
		exception {'type':'prolog','severity':1,'note':'','ranks':'1','action':'drop'} -> job 0, drain 1`},
	{"A drain holds a rank until it is confirmed, once", 3, nil, `
		alloc
		exception cancel 0
		epilog-start e
		epilog-fail e 1 drain -> epilog:e 0-2, drain 1
		epilog-fail e 2 -> epilog:e 0-2, drain 1
		epilog-release e 0-2 256 -> epilog:e none, drain 1; ready 0,2
		epilog-finish e 256 -> drain 1; ready 0,2
		drained 0,7 -> drain 1; ready 0,2
		drained 1 -> -; ready 0-2
		epilog-fail e 1 drain -> -; ready 0-2
		free -> -; ready 0-2`},
	{"A drain that was confirmed before the rank left does not begin again", 2, nil, `
		alloc
		prolog-start p
		prolog-fail p 1 drain -> job 0-1, prolog:p 0-1, drain 1
		drained 1 -> job 0-1, prolog:p 0-1
		prolog-fail p 1 drain -> job 0-1, prolog:p 0-1`},
	{"A job that is freed while an epilog runs is held by that epilog until it is closed", 2, nil, `
		alloc
		exception cancel 0
		epilog-start e
		free -> epilog:e 0-1
		clean -> -; ready 0-1`},
	{"A closed job holds nothing, whatever was not ended", 2, []string{"fs"}, `
		alloc -> job 0-1 +fs
		start -> job 0-1 +fs, executor 0-1 +fs
		exception {'type':'node','severity':1,'note':'','ranks':'1','action':'drop'} -> job 0 +fs, executor 0 +fs, drain 1
		exception cancel 0 -> executor 0 +fs, drain 1
		clean -> -; ready 0-1 +fs`},
	{"A named resource outlives all ranks", 2, []string{"rabbit1", "rabbit0", "rabbit1"}, `
		alloc -> job 0-1 +rabbit0 +rabbit1
		start -> job 0-1 +rabbit0 +rabbit1, executor 0-1 +rabbit0 +rabbit1
		finish
		epilog-start {'description':'move','ranks':'','resources':['rabbit1','rabbit0','rabbit9']}
		release all final -> epilog:move none +rabbit0 +rabbit1; ready 0-1
		perilog-release {'description':'move','kind':'epilog','ranks':'','status':0,'resources':['rabbit1']} -> epilog:move none +rabbit0; ready 0-1 +rabbit1
		epilog-start {'description':'late','ranks':'','resources':['rabbit1']} -> epilog:move none +rabbit0, epilog:late none; ready 0-1 +rabbit1
		epilog-finish move -> epilog:late none; ready 0-1 +rabbit0 +rabbit1
		epilog-finish late -> -; ready 0-1 +rabbit0 +rabbit1
		free -> -; ready 0-1 +rabbit0 +rabbit1`},
	{"A named resource that a prolog set up is not lost between it and the epilog", 1, []string{"fs"}, `
		alloc
		prolog-start {'description':'up','resources':['fs']}
		prolog-finish up -> job 0 +fs
		start
		finish -> executor 0 +fs
		epilog-start {'description':'down','ranks':'','resources':['fs']}
		release all final -> epilog:down none +fs; ready 0
		epilog-finish down -> -; ready 0 +fs`},
	{"Before alloc an action is active and holds no rank", 2, nil, `
		prolog-start p -> prolog:p none
		epilog-start e 0 -> prolog:p none, epilog:e none
		epilog-finish e -> prolog:p none
		alloc -> job 0-1, prolog:p 0-1
		prolog-finish p -> job 0-1`},
	{"What the job's state does not allow is refused", 1, nil, `
		start -> refused
		release all final -> refused
		alloc
		exception {'type':'x','severity':1,'ranks':'0','action':'both'} -> refused
		epilog-start {'description':'a','ranks':5} -> refused
		epilog-finish {'description':'a','status':'x'} -> refused
		clean -> refused
		memo {'a':1} -> job 0
		debug.x {'a':[1,2]} -> job 0`},
}

// PR-12.
func TestHolds(t *testing.T) {
	for _, c := range holdsStories {
		t.Run(c.name, func(t *testing.T) {
			s := newHoldsStory(t, c.ranks, c.named...)
			s.run(c.script)
			require.Equal(t, s.holds.String(), s.replay().String())
			_, err := rset.Rebuild(s.r, s.holds.Released(), c.named...)
			require.NoError(t, err)
		})
	}
}
