//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/alloc"
)

// An answer of a stream of events in short: the job, and names of events with their times.
func events(id int, list ...string) []byte {
	var words []string
	for _, e := range list {
		name, time, _ := strings.Cut(e, "@")
		words = append(words, fmt.Sprintf(`{"timestamp":%s,"name":%q}`, time, name))
	}
	return fmt.Appendf(nil, `{"id":%d,"events":[%s]}`, id, strings.Join(words, ","))
}

const historyEnd = `{"id":-1,"events":[]}`

// toldOf has a stream tell an answer, and returns what comes of it.
func toldOf(t *testing.T, s told, text []byte) string {
	t.Helper()
	text = s.tell(text)
	if text == nil {
		return ""
	}
	var a struct {
		ID     int
		Events []struct {
			Name      string
			Timestamp float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &a))
	out := fmt.Sprint(a.ID, ":")
	for _, e := range a.Events {
		out += fmt.Sprintf(" %s@%v", e.Name, e.Timestamp)
	}
	return out
}

func TestAStreamOfEventsGoesOn(t *testing.T) {
	s := newJournalled(100, nil)
	all := func(id int, list ...string) {
		t.Helper()
		require.Equal(t, fmt.Sprint(id, ": ", strings.Join(list, " ")), toldOf(t, s, events(id, list...)))
	}
	nothing := func(id int, list ...string) { t.Helper(); require.Empty(t, toldOf(t, s, events(id, list...))) }
	rest := func(want string, id int, list ...string) {
		t.Helper()
		require.Equal(t, fmt.Sprint(id, ": ", want), toldOf(t, s, events(id, list...)))
	}
	all(1, "submit@10", "validate@90", "alloc@95") // active at the request
	require.Equal(t, "-1:", toldOf(t, s, []byte(historyEnd)))
	all(2, "submit@20")
	all(2, "validate@101")
	all(2, "depend@101.5")
	all(1, "annotations@101")
	all(3, "submit@30")
	all(1, "clean@102")
	all(4, "submit@40")
	all(4, "validate@102")

	// Two workers are killed, the first one before it has told all.
	require.JSONEq(t, `{"allow":{"x":1},"full":true}`, strings.TrimSuffix(string(s.again(flux.Text(`{"allow":{"x":1}}`))), "\x00"))
	nothing(9, "submit@5", "clean@50") // over before the request
	rest("priority@103", 2, "submit@20", "validate@101", "depend@101.5", "priority@103")
	s.again(flux.Text(`{}`))
	nothing(9, "submit@5", "clean@50")
	nothing(1, "submit@10", "validate@90", "alloc@95", "clean@102")
	nothing(2, "submit@20", "validate@101", "depend@101.5", "priority@103")
	rest("validate@102 depend@102.5", 3, "submit@30", "validate@102", "depend@102.5")
	rest("depend@102.5 clean@104", 4, "submit@40", "validate@102", "depend@102.5", "clean@104")
	all(5, "submit@50", "validate@102", "depend@102.5") // nothing of it was told, though later events of others were
	all(6, "submit@60", "validate@103", "clean@103")
	require.Empty(t, toldOf(t, s, []byte(historyEnd)))
	all(2, "alloc@105")

	s.again(flux.Text(`{}`))
	nothing(6, "submit@60", "validate@103", "clean@103")
	nothing(4, "submit@40", "validate@102", "depend@102.5", "clean@104")
	rest("start@106", 2, "submit@20", "validate@101", "depend@101.5", "priority@103", "alloc@105", "start@106")
}

// A worker is killed in the middle of the first history.
func TestAHistoryInParts(t *testing.T) {
	s := newJournalled(100, nil)
	require.Equal(t, "{}\x00", string(s.again(flux.Text(`{}`))), "nothing was told")
	require.Equal(t, "1: submit@10 alloc@99", toldOf(t, s, events(1, "submit@10", "alloc@99")))
	s.again(flux.Text(`{}`))
	require.Equal(t, "1: start@101", toldOf(t, s, events(1, "submit@10", "alloc@99", "start@101")))
	require.Equal(t, "2: submit@11 alloc@98", toldOf(t, s, events(2, "submit@11", "alloc@98")))
	require.Equal(t, "-1:", toldOf(t, s, []byte(historyEnd)))
}

// Two jobs of one request are submitted. What the first one has is told, and is ahead of the clock.
func TestAStreamLosesNoEventsOfAnotherJob(t *testing.T) {
	s := newJournalled(100, nil)
	s.tell([]byte(historyEnd))
	require.NotEmpty(t, toldOf(t, s, events(1, "submit@99", "validate@101", "depend@101.000001", "priority@101.000002")))
	s.again(flux.Text(`{}`))
	require.Empty(t, toldOf(t, s, events(1, "submit@99", "validate@101", "depend@101.000001", "priority@101.000002")))
	require.Contains(t, toldOf(t, s, events(2, "submit@99", "validate@101", "depend@101.000001", "priority@101.000002")), "2: submit@99 ")
}

// The clock was set back before the request, and the manager's was not.
func TestAStreamBeginsWithTheRequestWhateverTheClock(t *testing.T) {
	s := newJournalled(1000, nil)
	s.tell([]byte(historyEnd))
	s.tell(events(1, "start@5000"))
	s.again(flux.Text(`{}`))
	require.Empty(t, toldOf(t, s, events(2, "finish@2000", "clean@2001")))
}

// A memo that is in no log hides no event.
func TestAVolatileMemoHidesNothing(t *testing.T) {
	s := newJournalled(100, nil)
	s.tell([]byte(historyEnd))
	s.tell(events(1, "submit@99", "validate@101"))
	s.tell(events(1, "memo@102"))
	s.again(flux.Text(`{}`))
	require.Equal(t, "1: depend@103", toldOf(t, s, events(1, "submit@99", "validate@101", "depend@103")))
}

// A stream that leaves events out keeps nothing of jobs that are over.
// A worker was killed when the alloc of a job was stored, and before the stream was told of it. The
// history has no event annotations, which job-list takes them from.
func TestAnAllocInTheGapTellsItsAnnotations(t *testing.T) {
	for filter, want := range map[string]string{``: "annotations alloc", `{"allow":{"alloc":1}}`: "alloc", `{"deny":{"annotations":1}}`: "alloc", `{"allow":{"annotations":1,"alloc":1}}`: "annotations alloc"} {
		s := newJournalled(100, flux.Text(filter))
		told := func(text string) string { return string(s.tell([]byte(text))) }
		const alloc = `{"timestamp":%d,"name":"alloc","context":{"annotations":{"sched":"x"}}}`
		first := fmt.Sprintf(`{"id":1,"events":[`+alloc+`]}`, 90)
		require.Equal(t, first, told(first), "a history as flux-core has it")
		told(historyEnd)
		told(`{"id":2,"events":[{"timestamp":101,"name":"submit"}]}`)
		told(`{"id":2,"events":[{"timestamp":102,"name":"validate"}]}`)
		s.again(flux.Text(`{}`))
		require.Empty(t, told(first))
		for id, history := range map[int]string{2: `{"timestamp":101,"name":"submit"},{"timestamp":102,"name":"validate"},`, 3: ``} {
			var a journal
			require.NoError(t, json.Unmarshal([]byte(told(fmt.Sprintf(`{"id":%d,"events":[%s`+alloc+`],"jobspec":{},"R":{}}`, id, history, 103))), &a))
			require.Equal(t, id == 3, a.Jobspec != nil, "of the job that is new")
			require.NotNil(t, a.R)
			var names []string
			for _, text := range a.Events {
				e, err := eventlog.Parse(text)
				require.NoError(t, err)
				require.JSONEq(t, `{"annotations":{"sched":"x"}}`, string(e.Context))
				names = append(names, e.Name)
			}
			require.Equal(t, want, strings.Join(names, " "), filter)
		}
		told(historyEnd)
		s.again(flux.Text(`{}`))
		rest := told(fmt.Sprintf(`{"id":3,"events":[`+alloc+`,{"timestamp":104,"name":"start"}],"jobspec":{},"R":{}}`, 103))
		require.JSONEq(t, `{"id":3,"events":[{"timestamp":104,"name":"start"}]}`, rest)
	}
}

func TestAStreamOfEventsKeepsLittle(t *testing.T) {
	s := newJournalled(0, nil)
	s.tell([]byte(historyEnd))
	for id := range 10000 {
		s.tell(events(id+1, fmt.Sprint("start@", id+1)))
	}
	require.Less(t, len(s.last)+len(s.before)+len(s.alone)+len(s.events), 10)
}

// What cancels a stream comes again, too: among raises that come again it is no news.
// Nothing is kept beside the matchtag, nor for a request that is no stream.
func TestACancelIsToldAgain(t *testing.T) {
	q, other := &request{Message: flux.NewRequest(topicJournal, nil)}, &request{Message: flux.NewRequest(serviceName+".drain", nil)}
	k := &keeper{open: bySender[*request]{"s": {7: q, 8: other}}}
	for tag := range k.open["s"] {
		k.cancel("s", flux.NewRequest(topicJournal+"-cancel", flux.Text(fmt.Sprintf(`{"matchtag":%d,"x":"%01000d"}`, tag, 0))))
	}
	require.True(t, q.cancel.Flags.Has(flagAgain))
	require.Equal(t, `{"matchtag":7}`, string(textOf(q.cancel)))
	require.Nil(t, other.cancel)
}

func TestAHelloIsToldAgain(t *testing.T) {
	g := make(greeted)
	require.NotNil(t, g.tell([]byte(`{"id":1}`)))
	require.Nil(t, g.tell([]byte(`{"id":1}`)))
	require.NotNil(t, g.tell([]byte(`{"id":2}`)))
	require.Equal(t, []byte("x"), g.again([]byte("x")))
}

// The scheduler gets back what a worker did not live to give back, and nothing twice.
func TestWhatNoWorkerGivesBack(t *testing.T) {
	in := newInstance(t)
	require.NoError(t, in.conn.Register(t.Context(), "sched"))
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go io.Copy(io.Discard, theirs)
	k := &keeper{broker: in.dial(), own: make(map[asked]func(answer)), started: make(map[jobid.ID]*startedJob)}
	w := &worker{conn: flux.New(ours, flux.Config{})}
	defer w.conn.Close()
	k.sched.reset()
	k.sched.sender = "s"
	r := func(ranks string) string {
		return fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":%q,"children":{"core":"0"}}],"starttime":1.0,"expiration":0.0,"nodelist":["n[%s]"]}}`, ranks, ranks)
	}
	for id := 1; id <= 3; id++ {
		k.answered(&flux.Message{Topic: alloc.TopicAlloc, Payload: flux.Text(fmt.Sprintf(`{"id":%d,"type":0,"R":%s}`, id, r("0-3")))})
		k.asks(&flux.Message{Topic: alloc.TopicFree, Payload: flux.Text(fmt.Sprintf(`{"id":%d,"R":%s,"final":false}`, id, r("1")))})
	}
	require.NoError(t, k.resume(w))
	hello := k.own[asked{"s", tagHello}]
	hello(answer{text: fmt.Appendf(nil, `{"id":1,"priority":16,"userid":1,"t_submit":1.0,"R":%s,"free":"1"}`, r("0-3"))})
	hello(answer{text: fmt.Appendf(nil, `{"id":2,"priority":16,"userid":1,"t_submit":1.0,"R":%s,"free":"1-2"}`, r("0-3"))})
	hello(answer{errnum: errno.NoData})
	got := []string{in.hear("sched.free"), in.hear("sched.free")}
	slices.Sort(got)
	require.Regexp(t, `"id":2,.*"rank":"2",.*"final":false`, got[0])
	require.Regexp(t, `"id":3,.*"rank":"0,2-3".*"final":true`, got[1])
	require.Len(t, k.sched.has, 2)
}

// A priority that changes while a request waits for the end of the one before comes with it.
func TestAPriorityChangesAfterTheCrash(t *testing.T) {
	in := newInstance(t)
	require.NoError(t, in.conn.Register(t.Context(), "sched"))
	k := &keeper{broker: in.dial()}
	k.sched.reset()
	k.sched.stale[7] = nil
	require.False(t, k.asks(&flux.Message{Type: flux.TypeRequest, Topic: alloc.TopicAlloc, Payload: flux.Text(`{"id":7,"priority":16}`)}))
	require.True(t, k.asks(&flux.Message{Topic: alloc.TopicPrioritize, Payload: flux.Text(`{"jobs":[[6,5],[7,31]]}`)}))
	require.False(t, k.answered(&flux.Message{Topic: alloc.TopicAlloc, Payload: flux.Text(`{"id":7,"type":3}`)}))
	require.JSONEq(t, `{"id":7,"priority":16}`, in.hear(alloc.TopicAlloc))
	require.JSONEq(t, `{"jobs":[[7,31]]}`, in.hear(alloc.TopicPrioritize))
}

// What is free of a job may be parts of nodes, and come in any order. It is not copied
// for each of them.
func TestWhatAJobHolds(t *testing.T) {
	part := func(ranks, cores string) json.RawMessage {
		return fmt.Appendf(nil, `{"version":1,"execution":{"R_lite":[{"rank":%q,"children":{"core":%q}}],"starttime":1.0,"expiration":0.0,"nodelist":["n[%[1]s]"]}}`, ranks, cores)
	}
	g := &given{r: part("0-5", "0-3"), ranks: "5", freed: []json.RawMessage{part("3", "0-3"), part("1", "2"), part("0", "0-3"), part("1", "0"), part("3", "1")}}
	r, err := g.left()
	require.NoError(t, err)
	require.Equal(t, "rank1/core[1,3] rank[2,4]/core[0-3]", r.String())

	bytes := func(n int) uint64 {
		g := &given{r: part(fmt.Sprint("0-", n-1), "0-3")}
		for k := 0; k < n; k += 2 {
			g.freed = append(g.freed, part(fmt.Sprint(k), "0-3"))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := g.left()
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, bytes(4000), 8*bytes(1000))
}
