package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

const (
	notYourJob     = "guests can only access their own jobs"
	notYourUrgency = "guests can only reprioritize their own jobs"
)

var listRows = []row{
	{topic: "list", payload: `{"max_entries":0}`},
	same("list", ``, errno.Protocol, ""),
	same("list", `{"max_entries":-1}`, errno.Protocol, ""),

	same("history.get", `{"slice":"[:]"}`, 0, ""),
	same("history.get", `{}`, errno.Protocol, ""),
	same("history.get", `{"slice":"[1]"}`, errno.Invalid, "could not parse python-style slice expression"),

	private("getattr", `{"id":16,"attrs":["jobspec","eventlog"]}`, notYourJob),
	private("getattr", `{"id":17,"attrs":["R"]}`, notYourJob),
	private("getattr", `{"id":18,"attrs":["jobspec","eventlog"]}`, notYourJob),
	private("getattr", `{"id":18,"attrs":[]}`, notYourJob),
	same("getattr", `{"id":16}`, errno.Protocol, ""),
	same("getattr", `{"id":99,"attrs":["R"]}`, errno.Invalid, "unknown job"),
	fails("getattr", `{"id":16,"attrs":"R"}`, errno.Protocol, "", notYourJob),
	fails("getattr", `{"id":16,"attrs":[1]}`, errno.Protocol, "attribute list contains non-string", notYourJob),
	fails("getattr", `{"id":16,"attrs":[null]}`, errno.Protocol, "attribute list contains non-string", notYourJob),
	fails("getattr", `{"id":18,"attrs":["eventlog","R"]}`, errno.NoEntry, "R is NULL", notYourJob),
	fails("getattr", `{"id":16,"attrs":["noexist"]}`, errno.NoEntry, "unknown attr noexist", notYourJob),
}

// Jobs that wait for resources come in the order in which they get them.
func TestListIsInTheOrderOfTheQueue(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	w.drive(owner("submit", submission1(20, ownGuest)), owner("submit", submission1(21, ownGuest)))
	w.drive(owner("urgency", `{"id":21,"urgency":31}`), owner("urgency", `{"id":16,"urgency":0}`),
		owner("memo", `{"id":21,"memo":{"a":1}}`))
	out := w.drive(owner("list", `{"max_entries":0}`))
	var answer struct{ Jobs []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(text(t, out.Answers[0].Payload)), &answer))
	order := []int{}
	for _, j := range answer.Jobs {
		order = append(order, int(j["id"].(float64)))
	}
	require.Equal(t, []int{21, 19, 20, 16, 17}, order)
	require.Equal(t, map[string]any{
		"id": 21.0, "userid": 200.0, "urgency": 31.0, "priority": 4294967295.0, "t_submit": 1.5, "state": 8.0,
		"annotations": map[string]any{"user": map[string]any{"a": 1.0}},
	}, answer.Jobs[0])

	out = w.drive(owner("list", `{"max_entries":2}`))
	require.NoError(t, json.Unmarshal([]byte(text(t, out.Answers[0].Payload)), &answer))
	require.Len(t, answer.Jobs, 2)
}

func TestListShowsDependencies(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	spec := strings.Replace(sleep, `"duration":60`, `"duration":60,"dependencies":[{"scheme":"afterany","value":"16"}]`, 1)
	require.Empty(t, w.submitted(50, ownGuest, spec))
	got := text(t, w.drive(owner("list", `{"max_entries":0}`)).Answers[0].Payload)
	require.Contains(t, got, `"state":2`)
	require.Contains(t, got, `"priority":-1`)
	require.Contains(t, got, `"dependencies":["after-finish=`)
}

func TestHistoryIsOfTheUserWhoAsks(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	for _, tt := range []struct {
		user, rolemask uint32
		slice          string
		want           string
	}{
		{ownGuest, roleUser, "[:]", ids(18, 17, 16)},
		{ownGuest, roleUser, "[:1]", ids(18)},
		{ownGuest, roleUser, "[::-1]", ids(16, 17, 18)},
		{ownGuest, roleUser, "[-1:]", ids(16)},
		{ownUser, roleOwner, "[:]", ids(19)},
		{otherGuest, roleUser, "[:]", ids()},
		{anyUser, roleUser, "[:]", ids()},
	} {
		out := w.drive(by(tt.user, tt.rolemask, "history.get", fmt.Sprintf(`{"slice":%q}`, tt.slice)))
		require.JSONEq(t, `{"jobs":`+tt.want+`}`, text(t, out.Answers[0].Payload), tt.slice)
	}
}

// What Python makes of list(range(5)), for each slice.
func TestSlicesAreThoseOfPython(t *testing.T) {
	for s, want := range map[string][]int{
		"[:]": {0, 1, 2, 3, 4}, "[::]": {0, 1, 2, 3, 4}, "[0:2]": {0, 1}, "[:9]": {0, 1, 2, 3, 4}, "[3:1]": nil,
		"[-2:]": {3, 4}, "[:-2]": {0, 1, 2}, "[-9:2]": {0, 1}, "[::2]": {0, 2, 4}, "[1::3]": {1, 4},
		"[::-1]": {4, 3, 2, 1, 0}, "[9::-2]": {4, 2, 0}, "[1::-1]": {1, 0}, "[:2:-1]": {4, 3}, "[:-9:-3]": {4, 1},
		"[-1:-3:-1]": {4, 3}, "[9:]": nil, "[1::2147483647]": {1}, "[3::-2147483648]": {3},
	} {
		got, ok := pick(s, 5)
		require.True(t, ok, s)
		require.Equal(t, want, got, s)
		got, _ = pick(s, 0)
		require.Empty(t, got, s)
	}
	for _, s := range []string{"", "[", "[]", "[1]", ":", "[:", ":]", "[a:]", "[::0]", "[1:2:3:4]", "[1.0:]", "[99999999999:]"} {
		_, ok := pick(s, 5)
		require.False(t, ok, s)
	}
}

// getattr answers for an inactive job what it answered before, from the store.
func TestGetattrOfActiveAndInactiveJobs(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	for _, u := range []joblife.Input{
		joblife.SetExpiration{ID: 17, Expiration: 3},
		joblife.UpdateJobspec{ID: 16, Updates: []jobstate.Update{
			{Path: "attributes.system.duration", Value: json.RawMessage("7")},
			{Path: "attributes.system.environment", Value: json.RawMessage(`{"A":"<b>"}`)},
		}},
	} {
		w.do(u)
	}
	get := func(id jobid.ID) (a struct {
		R, Jobspec map[string]any
		Eventlog   []struct{ Name string }
	}) {
		for _, attr := range []string{"R", "jobspec", "eventlog"} {
			out := w.drive(owner("getattr", fmt.Sprintf(`{"id":%d,"attrs":[%q]}`, id, attr)))
			if attr == "R" && id == 16 {
				require.Equal(t, "R is NULL", out.Answers[0].Errstr)
				continue
			}
			require.Zero(t, out.Answers[0].Errnum, out.Answers[0].Errstr)
			require.NoError(t, json.Unmarshal([]byte(text(t, out.Answers[0].Payload)), &a))
		}
		return a
	}
	execution := map[string]any{
		"R_lite":   []any{map[string]any{"rank": "0-1", "children": map[string]any{"core": "0"}}},
		"nodelist": []any{"n[0-1]"}, "starttime": 1.0, "expiration": 3.0,
	}
	check := func() {
		require.Equal(t, map[string]any{"version": 1.0, "execution": execution}, get(17).R)
		system := map[string]any{"duration": 7.0}
		require.Equal(t, map[string]any{"system": system}, get(16).Jobspec["attributes"])
		require.Equal(t, "submit", get(16).Eventlog[0].Name)
	}
	check()
	events := len(get(16).Eventlog)
	w.do(joblife.Raise{ID: 16, Type: "cancel"})
	w.do(joblife.Raise{ID: 17, Type: "cancel"})
	require.Equal(t, jobstate.StateInactive, w.view(16).State())
	require.Equal(t, jobstate.StateInactive, w.view(17).State())
	check()
	require.Greater(t, len(get(16).Eventlog), events)
	require.Contains(t, string(w.stored[17].R), `"scheduling"`)

	// Whatever the store has, getattr does not fail in another way.
	bad := errors.New("the disk is gone")
	w.cfg.Lookup = func(jobid.ID) (Stored, error) { return Stored{}, bad }
	out := w.drive(owner("getattr", `{"id":16,"attrs":["R"]}`))
	require.Equal(t, want{errno.Invalid, "the disk is gone"}, want{out.Answers[0].Errnum, out.Answers[0].Errstr})
	for _, stored := range []Stored{{Eventlog: []byte("x")}, {Jobspec: []byte("x")}, {R: []byte("x")}} {
		w.cfg.Lookup = func(jobid.ID) (Stored, error) { return stored, nil }
		require.Equal(t, errno.Invalid, w.drive(owner("getattr", `{"id":16,"attrs":["jobspec","R"]}`)).Answers[0].Errnum)
	}
	w.cfg.Lookup = nil
	require.Equal(t, "jobspec is NULL", w.drive(owner("getattr", `{"id":16,"attrs":["jobspec"]}`)).Answers[0].Errstr)
}

// A job ends while the store works: what is asked about it is what it had, and not what the store has
// so far, or has no more.
func TestGetattrOfAJobThatEndsMeanwhile(t *testing.T) {
	for _, purged := range []bool{false, true} {
		answer := getattrMeanwhile(t, purged)
		require.Equal(t, purged, answer.Errstr == "unknown job", "%v", answer)
		require.Equal(t, !purged, strings.Contains(text(t, answer.Payload), `"R":{"version":1,`))
		require.Equal(t, !purged, strings.Contains(text(t, answer.Payload), `"name":"clean"`))
	}
}

func getattrMeanwhile(t *testing.T, purged bool) Answer {
	d := newDesk(t, Config{})
	d.online()
	d.submit(0, 1)
	d.send("a", 1, "submit", submission1(2, ownUser))
	o := d.storing()
	require.NoError(t, d.Respond(d.now, Response{Topic: "sched.alloc", Payload: json.RawMessage(success(1, 1))}))
	d.send("a", 2, "raise", `{"id":1,"severity":0,"type":"cancel"}`)
	require.NoError(t, d.Respond(d.now, Response{Topic: "job-exec.start", Payload: json.RawMessage(`{"id":1,"type":"release","data":{"ranks":"all","final":true}}`)}))
	require.Equal(t, jobstate.StateInactive, d.view(1).State())
	d.send("a", 3, "getattr", `{"id":1,"attrs":["R","eventlog"]}`)
	if purged {
		d.send("a", 4, "purge-id", `{"id":1,"force":1}`)
	}
	d.sent = func(o *parcel) {
		for _, id := range o.Unlink {
			delete(d.stored, id)
		}
	}
	d.commit(o)
	list := d.collect().Answers
	require.Empty(t, d.ending)
	return list[slices.IndexFunc(list, func(a Answer) bool { return a.Matchtag == 3 })]
}

// A log is read and replayed only where the attributes that are asked for need it, and holds its
// length before.
func TestGetattrReadsNoMoreThanItIsAskedFor(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	w.do(joblife.Raise{ID: 17, Type: "cancel"})
	read, log := 0, w.stored[17].Eventlog
	ask := func(attrs string, stored Stored) int {
		w.cfg.Lookup = func(jobid.ID) (Stored, error) { read++; return stored, nil }
		return w.drive(owner("getattr", `{"id":17,"attrs":[`+attrs+`]}`)).Answers[0].Errnum
	}
	require.Zero(t, ask("", Stored{}))
	require.Equal(t, errno.Protocol, ask(`1`, Stored{}))
	require.Zero(t, read)
	require.Zero(t, ask(`"eventlog"`, Stored{Eventlog: []byte("no log")}), "it is not replayed")
	require.Equal(t, errno.Invalid, ask(`"eventlog"`, Stored{}), "it is being purged")
	require.Zero(t, ask(`"R"`, Stored{Eventlog: log, R: w.stored[17].R, Jobspec: []byte("no jobspec")}))
	require.NoError(t, w.core.hold(&Request{Rolemask: roleOwner}, &w.answers, w.answers.size))
	require.Equal(t, errno.Again, ask(`"R"`, Stored{Eventlog: []byte("no log")}))
}

// A long list of attributes costs no more than reading it.
func TestGetattrMakesEachAttributeOnce(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	allocs := func(n int) float64 {
		attrs := strings.Repeat(`"eventlog",`, n) + `"eventlog"`
		r := owner("getattr", `{"id":17,"attrs":[`+attrs+`]}`)
		return testing.AllocsPerRun(1, func() {
			answer, err := w.handlers["getattr"].serve(&r)
			require.NoError(t, err)
			require.Len(t, answer, 1)
		})
	}
	require.Less(t, allocs(1000)-allocs(0), 10*1000.0)
}
