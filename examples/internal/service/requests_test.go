package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

// The jobs of a newWorld. All but owners are jobs of ownGuest.
const (
	pending  = 16 // in SCHED
	running  = 17 // in RUN
	inactive = 18 // canceled while it was pending
	owners   = 19 // in SCHED, a job of the instance's owner
	unknown  = 99
)

const (
	ownGuest   = 200
	otherGuest = 300
)

// newWorld returns a desk with the jobs above.
func newWorld(t *testing.T, cfg joblife.Config) *desk {
	t.Helper()
	d := newDesk(t, Config{Manager: cfg})
	for id, user := range map[jobid.ID]int{pending: ownGuest, running: ownGuest, inactive: ownGuest, owners: ownUser} {
		require.Empty(t, d.submitted(id, user, sleep))
	}
	d.do(joblife.Raise{ID: inactive, Type: "cancel", Note: "<no>"})
	r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],` +
		`"nodelist":["n[0-1]"],"starttime":1.0,"expiration":2.0},"scheduling":{}}`))
	require.NoError(t, err)
	d.do(joblife.SchedHello{})
	d.do(joblife.SchedReady{})
	d.do(joblife.SchedResponse{ID: running, Type: alloc.ResponseSuccess, R: r})
	d.do(joblife.SchedLost{}) // the requests of the others are void
	return d
}

// A want is how a request is answered: 0 is success.
type want struct {
	errnum int
	text   string
}

// A row says how a request is answered to the instance's owner, to the guest whose the
// jobs are, and to another guest. Guests get no other answer than noOwner from a handler
// that takes no requests of them; without a role everybody is refused.
type row struct {
	topic, payload         string
	owner, guest, stranger want
}

// same is a row with one answer for all.
func same(topic, payload string, errnum int, text string) row {
	w := want{errnum, text}
	return row{topic, payload, w, w, w}
}

// private is a row of a request that succeeds for all but a stranger, and fails one of a request
// that fails for them.
func private(topic, payload, text string) row { return fails(topic, payload, 0, "", text) }

func fails(topic, payload string, errnum int, why, text string) row {
	w := want{errnum, why}
	return row{topic, payload, w, w, want{errno.Perm, text}}
}

var (
	noOwner = want{errno.Perm, "Request requires owner credentials"}
	noRole  = want{errno.Perm, "Request rejected due to insufficient privilege"}
)

// silent is the want of a request that is answered later, or not at all.
var silent = want{errnum: -1}

// rows has a slice for each area. Each handler has at least one row.
var rows = [][]row{submitRows, raiseRows, killRows, changeRows, listRows, purgeRows, statsRows, queueRows, sessionRows, updateRows, actionRows, otherRows, keyRows}

var actionRows = []row{
	same("housekeeping-kill", `{"signum":15}`, 0, ""),
	same("housekeeping-kill", `{"signum":15,"jobid":99,"ranks":"0-1"}`, 0, ""),
	same("housekeeping-kill", `{"signum":15,"ranks":"1-0"}`, errno.Invalid, "idset: syntax error: offset 2: range does not ascend in \"1-0\""),
	same("housekeeping-kill", `{"signum":9,"ranks":7}`, errno.Protocol, ""),
	same("housekeeping-kill", `{"signum":9,"jobid":"x"}`, errno.Protocol, ""),
	same("housekeeping-kill", `{"signum":"x"}`, errno.Protocol, ""),
	same("housekeeping-kill", `{"signum":4294967311}`, errno.Protocol, ""),
	same("housekeeping-kill", `{}`, errno.Protocol, ""),
	same("housekeeping-kill", ``, errno.Protocol, ""),
	same("broker-shutdown", ``, 0, ""),
}

var otherRows = []row{
	same("jobtap", `{}`, 0, ""),
	same("jobtap", `{"query_only":true}`, 0, ""),
	same("jobtap", `{"load":".begin-time"}`, 0, ""),
	same("jobtap", `{"load":"/usr/lib/perilog.so","conf":{},"remove":"all"}`, 0, ""),
	same("jobtap", `{"remove":"perilog.so"}`, errno.NoEntry, "Failed to find plugin to remove"),
	same("jobtap", `{"remove":".b*"}`, errno.NoSys, ".begin-time is built in and cannot be removed"),
	same("jobtap", `{"load":7}`, errno.Protocol, ""),
	same("jobtap-query", `{"name":".history"}`, 0, ""),
	same("jobtap-query", `{"name":"perilog.so"}`, errno.Invalid, "perilog.so: plugin not found"),
	same("jobtap-query", `{}`, errno.Protocol, ""),
	same("nosuch", `{}`, errno.NoSys, "Unknown service method 'job-manager.nosuch'"),
	same("", `{}`, errno.NoSys, "Unknown service method 'job-manager.'"),
}

// A key of a payload is what it is, and one that comes twice, or says nothing, is refused.
var keyRows = []row{
	same("raise", `{"id":19,"id":16,"severity":0,"type":"cancel"}`, errno.Protocol, ""),
	same("raise", `{"ID":16,"severity":0,"type":"cancel"}`, errno.Protocol, ""),
	same("raise", `{"id":99,"ID":16,"severity":0,"type":"cancel"}`, errno.NoEntry, "unknown job id"),
	same("raise", `{"id":16,"severity":0,"type":"cancel","note":null}`, errno.Protocol, ""),
	same("raiseall", `{"dry_run":false,"userid":null,"states":255,"severity":0,"type":"cancel"}`, errno.Protocol, ""),
	same("submit", `{"jobs":[{"id":30,"urgency":16,"userid":200,"userid":100,"t_submit":1.5,"flags":0,"jobspec":{}}]}`, errno.Protocol, ""),
	same("submit", `{"jobs":[{"id":30,"urgency":16,"userid":null,"t_submit":1.5,"flags":0,"jobspec":{}}]}`, errno.Protocol, ""),
}

func TestEveryRequestAnswersByRole(t *testing.T) {
	handlers, tried := newWorld(t, joblife.Config{}).handlers, make(map[string]bool)
	for _, r := range slices.Concat(rows...) {
		h, known := handlers[r.topic]
		tried[r.topic] = true
		if known && !h.guests {
			r.guest, r.stranger = noOwner, noOwner
		}
		nobody := noRole
		switch {
		case !known:
			nobody = r.owner
		case !h.guests:
			nobody = noOwner
		}
		for _, who := range []struct {
			name           string
			user, rolemask uint32
			want           want
		}{
			{"owner", ownUser, roleOwner, r.owner},
			{"owner with both roles", ownUser, roleOwner | roleUser, r.owner},
			{"guest", ownGuest, roleUser, r.guest},
			{"other guest", otherGuest, roleUser, r.stranger},
			{"owner without a role", ownUser, 0, nobody},
			{"guest without a role", ownGuest, 4, nobody},
		} {
			t.Run(fmt.Sprintf("%s %.60s by %s", r.topic, r.payload, who.name), func(t *testing.T) {
				w := newWorld(t, joblife.Config{})
				out := w.drive(by(who.user, who.rolemask, r.topic, r.payload))
				if who.want == silent {
					require.Empty(t, out.Answers)
					return
				}
				if who.want.errnum == errno.NoData { // the end of a stream
					out.Answers = out.Answers[len(out.Answers)-1:]
				}
				require.Len(t, out.Answers, 1)
				a := out.Answers[0]
				require.Equal(t, who.want, want{a.Errnum, a.Errstr})
				require.Equal(t, "job-manager."+r.topic, a.Topic)
				if a.Errnum != 0 {
					require.Nil(t, a.Payload)
					require.Empty(t, out.Append, "a request that failed has changed something")
					require.Empty(t, out.Events)
				}
			})
		}
	}
	for topic := range handlers {
		require.True(t, tried[topic], "no row for %q", topic)
	}
	require.NotContains(t, tried, strings.ToUpper("raise"))
}

// In a private instance a guest learns nothing of the jobs of others, not even whether there are
// some. Who has the role of an administrator does, and still sees none of them.
func TestAPrivateInstance(t *testing.T) {
	w := newWorld(t, joblife.Config{Private: true})
	ask := func(user, rolemask uint32, topic, payload string) want {
		a := w.drive(by(user, rolemask, topic, payload)).Answers[0]
		return want{a.Errnum, a.Errstr}
	}
	const own, other, none = `{"id":16,"attrs":["jobspec"]}`, `{"id":19,"attrs":["jobspec"]}`, `{"id":99,"attrs":["jobspec"]}`
	good, hidden := want{}, want{errno.Perm, ""}
	for _, r := range []struct {
		topic, payload      string
		owner, guest, admin want
	}{
		{"getinfo", ``, good, hidden, good},
		{"stats-get", ``, good, hidden, good},
		{"getattr", own, good, good, good},
		{"getattr", other, good, hidden, hidden},
		{"getattr", none, want{errno.Invalid, "unknown job"}, hidden, want{errno.Invalid, "unknown job"}},
	} {
		require.Equal(t, r.owner, ask(ownUser, roleOwner, r.topic, r.payload), r.topic+r.payload)
		require.Equal(t, r.guest, ask(ownGuest, roleUser, r.topic, r.payload), r.topic+r.payload)
		require.Equal(t, r.admin, ask(ownGuest, roleUser|roleAdmin, r.topic, r.payload), r.topic+r.payload)
	}
}

// Nor does a guest learn by requests to change a job whether it is there, or over.
func TestAPrivateInstanceAnswersAsIfThereWereNoJob(t *testing.T) {
	w := newWorld(t, joblife.Config{Private: true})
	for topic, payload := range map[string]string{
		"raise":   `{"id":%d,"severity":0,"type":"cancel"}`,
		"kill":    `{"id":%d,"signum":9}`,
		"urgency": `{"id":%d,"urgency":3}`,
		"memo":    `{"id":%d,"memo":{}}`,
		"update":  `{"id":%d,"updates":{"attributes.system.duration":5}}`,
	} {
		ask := func(rolemask uint32, id jobid.ID) want {
			a := w.drive(by(300, rolemask, topic, fmt.Sprintf(payload, id))).Answers[0]
			return want{a.Errnum, a.Errstr}
		}
		none := ask(roleUser, 99)
		require.NotEqual(t, errno.Perm, none.errnum)
		for _, id := range []jobid.ID{pending, running, inactive, owners} {
			require.Equal(t, none, ask(roleUser, id), topic)
		}
		require.Equal(t, errno.Perm, ask(roleUser|roleAdmin, running).errnum, "as flux-core answers an administrator: "+topic)
	}
}

// A stranger that names itself as a user is no more than a guest; nor is nobody.
func TestNobodyOwnsNothing(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	require.Empty(t, w.submitted(30, -1, sleep))
	for topic, payload := range map[string]string{
		"raise":    `{"id":30,"severity":0,"type":"cancel"}`,
		"raiseall": `{"dry_run":false,"userid":-1,"states":255,"severity":0,"type":"cancel"}`,
		"killall":  `{"dry_run":false,"userid":4294967295,"signum":15}`,
		"urgency":  `{"id":30,"urgency":3}`,
	} {
		out := w.drive(by(anyUser, roleUser, topic, payload))
		require.Equal(t, errno.Perm, out.Answers[0].Errnum, topic)
		require.Empty(t, out.Append)
	}
	require.Equal(t, jobstate.StateSched, w.view(30).State())
}

var statsRows = []row{
	same("getinfo", ``, 0, ""),
	same("getinfo", `{}`, 0, ""),
	same("stats-get", ``, 0, ""),
	same("stats-get", `{}`, 0, ""),
	same("set-batch-timeout", `{"timeout":1}`, 0, ""),
	same("set-batch-timeout", `{"timeout":"1"}`, errno.Protocol, ""),
}

func TestGetinfoSeedsTheGenerator(t *testing.T) {
	w := graveyard(t, joblife.Config{}, 3)
	out := w.drive(owner("purge", limitsOf(0, 100, true)), owner("getinfo", ``))
	require.ElementsMatch(t, []string{`{"count":3}`, `{"max_jobid":3}`}, outcomes(t, out.Answers), "a job that was purged had an id, too")
}

func TestStats(t *testing.T) {
	w := newWorld(t, joblife.Config{})
	var answer map[string]any
	require.NoError(t, json.Unmarshal([]byte(text(t, w.drive(owner("stats-get", ``)).Answers[0].Payload)), &answer))
	events := answer["journal"].(map[string]any)
	require.Positive(t, events["events"])
	delete(events, "events")
	require.Equal(t, map[string]any{
		"journal": map[string]any{"listeners": 0.0}, "active_jobs": 3.0, "inactive_jobs": 1.0, "max_jobid": 19.0,
		"housekeeping": map[string]any{
			"running": map[string]any{}, "config": map[string]any{"release-after": -1.0, "command": ""},
		},
	}, answer)
}

// No request makes the service panic, and one that fails changes nothing.
func FuzzRequest(f *testing.F) {
	for _, r := range slices.Concat(rows...) {
		f.Add(r.topic, r.payload, uint32(ownGuest), uint32(roleUser))
		f.Add(r.topic, r.payload, uint32(ownUser), uint32(roleOwner))
	}
	f.Fuzz(func(t *testing.T, topic, payload string, user, rolemask uint32) {
		w := newWorld(t, joblife.Config{})
		out := w.drive(by(user, rolemask, topic, payload))
		for _, a := range out.Answers {
			_, err := json.Marshal(a.Payload)
			require.NoError(t, err)
			if a.Errnum != 0 {
				require.Nil(t, a.Payload)
				require.Empty(t, out.Append)
				require.Empty(t, out.Events)
			}
		}
		if rolemask&(roleOwner|roleUser) == 0 {
			require.NotZero(t, out.Answers[0].Errnum)
		}
	})
}
