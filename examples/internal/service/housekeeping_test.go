package service

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset/alloc"
)

func TestHousekeepingKill(t *testing.T) {
	c := ran(t, actions(false, false, true), "0-1")
	c.submit(17, "2-3")
	c.run(17)
	at := func(i int) string { return fmt.Sprint(c.commands()[i].rank, " ", c.commands()[i].pid) }
	tests := []struct {
		payload string
		kills   []string
	}{
		{`{"signum":15}`, []string{at(0) + " 15", at(1) + " 15", at(2) + " 15", at(3) + " 15"}},
		{`{"signum":9,"jobid":17}`, []string{at(2) + " 9", at(3) + " 9"}},
		{`{"signum":9,"jobid":-1,"ranks":"1-2"}`, []string{at(1) + " 9", at(2) + " 9"}},
		{`{"signum":9,"jobid":16,"ranks":"1-2"}`, []string{at(1) + " 9"}},
		{`{"signum":9,"jobid":99}`, nil},
		{`{"signum":9,"ranks":""}`, nil},
		{`{"signum":0}`, nil},
	}
	for _, tt := range tests {
		c.kills = nil
		require.Equal(t, Answer{Topic: "job-manager.housekeeping-kill", Sender: "a", Matchtag: 1}, c.ask(owner("housekeeping-kill", tt.payload)))
		require.Equal(t, tt.kills, c.kills, tt.payload)
	}
	guest := owner("housekeeping-kill", `{"signum":9}`)
	guest.Rolemask = roleUser
	c.kills = nil
	require.Equal(t, errno.Perm, c.ask(guest).Errnum)
	require.Empty(t, c.kills)

	c.end(c.commands()[0], 15)
	c.ask(owner("housekeeping-kill", `{"signum":15,"ranks":"0"}`)) // it is gone
	require.Empty(t, c.kills)
	c.noKill = 1
	c.ask(owner("housekeeping-kill", `{"signum":15,"ranks":"1"}`))
	c.noKill = 3 // it is gone, and we hear of it later
	c.ask(owner("housekeeping-kill", `{"signum":15,"ranks":"1"}`))
	require.Equal(t, []string{"housekeeping: n0 (rank 0) ƒH: Terminated", "housekeeping: n1 (rank 1) ƒH: signal 15: errnum 1"}, c.logged)
	c.endAll()
	c.gone(16)
	c.gone(17)
}

// A kill may come while the launch waits for the store, and before the command has started. The
// last one counts.
func TestHousekeepingKillDuringTheCommit(t *testing.T) {
	c := newCluster(t, actions(false, false, true))
	c.submit(16, "0")
	c.hold = func(o *parcel) bool { return len(o.Append) > 0 }
	c.slow = true
	c.run(16)
	for _, signal := range []int{10, 15} {
		c.Request(c.now, owner("housekeeping-kill", fmt.Sprintf(`{"signum":%d}`, signal)))
		c.pump()
	}
	require.Empty(t, c.running, "the store is busy")
	c.release()
	require.Empty(t, c.kills)
	c.spawn(c.commands()[0])
	c.pump()
	require.Equal(t, []string{fmt.Sprint("0 ", c.commands()[0].pid, " 15")}, c.kills)
	c.endAll()
	c.gone(16)
}

func TestHousekeepingStats(t *testing.T) {
	after := fsd.Duration(90 * time.Second)
	cfg := actions(false, false, true)
	cfg.Manager.Actions.Housekeeping.ReleaseAfter = &after
	c := newCluster(t, cfg)
	runs := func(want ...string) {
		t.Helper()
		_, list, _ := strings.Cut(text(t, c.ask(owner("stats-get", ``)).Payload), `"housekeeping":`)
		require.JSONEq(t, `{"running":{`+strings.Join(want, ",")+`},"config":{"release-after":90,"command":"clean up"}}`, strings.TrimSuffix(list, "}"))
	}
	runs()
	c.submit(16, "0-3")
	c.submit(17, "5")
	c.run(16)
	runs(`"ƒH":{"pending":"0-3","allocated":"0-3","t_start":1700000000.0}`)
	c.now = c.now.Add(time.Second)
	require.NoError(t, c.Tick(c.now))
	c.run(17)
	c.end(c.commands()[0], 0)
	c.end(c.commands()[0], 0)
	const other = `"ƒJ":{"pending":"5","allocated":"5","t_start":1700000001.0}`
	runs(`"ƒH":{"pending":"2-3","allocated":"0-3","t_start":1700000000.0}`, other)
	c.wait(90 * time.Second)
	runs(`"ƒH":{"pending":"2-3","allocated":"2-3","t_start":1700000000.0}`, other)
	c.do(joblife.ForceFinish{Action: joblife.Action{Job: 16, Key: perilog.Housekeeping(), Ranks: idset.Of(2)}, Status: 1, Operator: "me"})
	runs(`"ƒH":{"pending":"3","allocated":"3","t_start":1700000000.0}`, other)
	c.endAll()
	runs()
}

// The words in the log of housekeeping are those of flux-core. What it writes is logged as it
// is.
func TestLogOfHousekeeping(t *testing.T) {
	cfg := actions(false, false, true)
	cfg.LogIgnore = []*regexp.Regexp{regexp.MustCompile("foo")}
	cfg.Manager.Actions.Housekeeping.OnFailure = jobstate.OnFailureRelease // as conf has it
	cfg.ASCII = true
	c := ran(t, cfg, "0-2")
	list := c.commands()
	c.end(list[0], 1<<8, "foo\n\n")
	c.end(list[1], 15)
	c.tell(list[2], 2, "", "error launching process: No such file or directory")
	c.pump()
	require.Equal(t, []string{
		"housekeeping: n0 (rank 0) fH: foo", "housekeeping: n0 (rank 0) fH: ",
		"housekeeping: n0 (rank 0) fH: nonzero exit code",
		"housekeeping: n1 (rank 1) fH: Terminated",
		"housekeeping: n2 (rank 2) fH: error launching process: No such file or directory",
	}, c.logged[:5])
	require.Empty(t, c.drained)
	c.gone(16)
}

func TestHousekeepingKeepsItsJob(t *testing.T) {
	c := ran(t, actions(false, false, true), "0-1")
	c.submit(17, "2-3")
	c.run(17)
	c.end(c.commands()[2], 0)
	c.end(c.commands()[2], 0)
	out := c.drive(owner("purge", limitsOf(0, 100, true)))
	require.JSONEq(t, `{"jobs":[17]}`, text(t, out.Events[0].Payload))
	require.JSONEq(t, `{"count":1}`, text(t, out.Answers[0].Payload))
	require.Contains(t, c.ask(owner("purge-id", `{"id":16,"force":1}`)).Errstr, "job is pinned by housekeeping")
}

// A scheduler that cannot be told what a job has freed takes R as it is in the store: it would
// never get back what was freed before. Housekeeping of such jobs ends, as in flux-core.
func TestHelloEndsPartialHousekeeping(t *testing.T) {
	for hello, ends := range map[string]bool{`{"partial-ok":true}`: false, `{}`: true} {
		t.Run(hello, func(t *testing.T) {
			cfg := actions(false, false, true)
			cfg.Manager.Actions.Housekeeping.ReleaseAfter = new(fsd.Duration)
			cfg.Manager.Actions.Housekeeping.OnFailure = jobstate.OnFailureRelease
			c := ran(t, cfg, "0-3")
			c.submit(17, "4-5") // nothing of it was freed
			c.run(17)
			for _, p := range c.commands()[:3] {
				c.end(p, 0)
			}
			last := c.commands()[0]
			require.Equal(t, 3, last.rank)
			frees := 0
			c.free = func(string) { frees++ }

			c.answers = nil
			c.Request(c.now, owner("sched-hello", hello))
			c.pump()
			end := len(c.answers) - 1
			require.Equal(t, errno.NoData, c.answers[end].Errnum)
			told := ""
			for _, a := range c.answers[:end] {
				h, err := alloc.Parse[alloc.HelloResponse](a.Payload.(json.RawMessage))
				require.NoError(t, err)
				told += h.ID.String()
			}
			if !ends {
				require.Equal(t, "ƒHƒJ", told)
				require.Empty(t, c.kills)
				require.Empty(t, c.logged)
				require.Equal(t, []string{"16 housekeeping 3", "17 housekeeping 4-5"}, c.holders())
				return
			}
			require.Equal(t, "ƒJ", told)
			require.Equal(t, "housekeeping: n3 (rank 3) from ƒH will be terminated because"+
				" scheduler does not support restart with partially released resources", c.logged[0])
			require.Equal(t, 15, last.signal)
			require.Len(t, c.kills, 1)
			require.Equal(t, []string{"17 housekeeping 4-5"}, c.holders())
			c.do(joblife.SchedReady{})
			c.end(last, 15)
			require.Zero(t, frees, "the scheduler does not know the job")
			require.Empty(t, c.drained)
			c.endAll()
			require.NotZero(t, frees)
			c.gone(16)
			c.gone(17)
		})
	}
}
