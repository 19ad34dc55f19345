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
)

func TestActionsRunThroughRexec(t *testing.T) {
	c := newCluster(t, actions(true, true, true))
	c.submit(16, "0-3")
	require.Len(t, c.commands(), 4)
	for rank, p := range c.commands() {
		require.Equal(t, rank, p.rank)
		require.JSONEq(t, `{"cmd":{"cmdline":["prolog","-v"],"env":{"PATH":"/bin","EMPTY":"","FLUX_JOB_ID":"ƒH",`+
			`"FLUX_JOB_USERID":"100","FLUX_JOB_RANKS":"0-3"},"opts":{},"channels":[]},"flags":3}`, p.payload)
	}
	require.NotContains(t, c.log(16), "prolog-finish")
	c.endAll()
	require.Contains(t, c.log(16), "prolog-finish")
	c.run(16)
	require.Len(t, c.commands(), 4)
	require.Equal(t, []string{"epilog"}, c.commands()[3].Cmd.Cmdline)
	require.Equal(t, "ƒH", c.commands()[3].Cmd.Env["FLUX_JOB_ID"])
	for _, p := range c.commands() {
		c.end(p, 0)
	}
	require.Equal(t, "clean", c.log(16)[len(c.log(16))-1])
	require.Len(t, c.commands(), 4)
	require.Equal(t, "16", c.commands()[0].Cmd.Env["FLUX_JOB_ID"]) // as flux-core has it
	require.Equal(t, "100", c.commands()[0].Cmd.Env["FLUX_JOB_USERID"])
	require.Equal(t, "0-3", c.commands()[0].Cmd.Env["FLUX_JOB_RANKS"])
	c.endAll()
	c.gone(16)
	require.Empty(t, c.drained)
	require.Empty(t, c.kills)
}

// Where Flux writes f for the ƒ of ids, drains and what commands get have it too.
func TestIDsInASCII(t *testing.T) {
	cfg := actions(true, false, false)
	cfg.ASCII = true
	c := newCluster(t, cfg)
	c.submit(16, "3")
	require.Equal(t, "fH", c.commands()[0].Cmd.Env["FLUX_JOB_ID"])
	c.end(c.commands()[0], 2<<8, "x\n")
	require.Equal(t, []string{"3: prolog failed for job fH"}, c.drained)
}

// flux-core#5892: the broker cancels what runs when it ends, and waits for no epilog.
func TestNoEpilogBeginsWhenTheBrokerShutsDown(t *testing.T) {
	cfg := actions(false, true, true)
	cfg.Parse = func(old Config, _ []byte) (Config, error) { return old, nil }
	c := newCluster(t, cfg)
	c.submit(16, "0")
	c.submit(17, "1")
	c.run(16)
	require.Len(t, c.commands(), 1)
	require.Equal(t, errno.Perm, c.ask(by(7, roleUser, "broker-shutdown", "")).Errnum)
	require.Zero(t, c.ask(owner("broker-shutdown", "")).Errnum)
	require.Zero(t, c.ask(owner("config-reload", `{}`)).Errnum)
	c.run(17)
	require.NotContains(t, c.log(17), "epilog-start")
	require.Len(t, c.commands(), 2, "housekeeping runs")
	require.NotContains(t, c.log(16), "epilog-finish", "one that runs may end")
	c.endAll()
	require.Contains(t, c.log(16), "epilog-finish")
	c.gone(16)
	c.gone(17)
}

func TestASingleCommandServesAllRanks(t *testing.T) {
	cfg := actions(true, false, false)
	cfg.Manager.Actions.Prologs[0].PerRank = false
	c := newCluster(t, cfg)
	c.submit(16, "2-3")
	require.Len(t, c.commands(), 1)
	require.Equal(t, 0, c.commands()[0].rank)
	require.Equal(t, "2-3", c.commands()[0].Cmd.Env["FLUX_JOB_RANKS"])
	c.endAll()
	c.run(16)
	c.gone(16)
}

func TestAnActionFails(t *testing.T) {
	tests := []struct {
		name   string
		fail   func(c *cluster, p *command)
		status string
		cause  string
	}{
		{"with an exit code", func(c *cluster, p *command) { c.end(p, 2<<8) }, `"status":512`, "failed"},
		{"by a signal", func(c *cluster, p *command) { c.end(p, 9) }, `"status":9`, "failed"},
		{"not found", func(c *cluster, p *command) { c.tell(p, 2, "", "no such file") }, `"status":32512`, "failed"},
		{"not allowed", func(c *cluster, p *command) { c.tell(p, 1, "", "") }, `"status":32256`, "failed"},
		{"not executable", func(c *cluster, p *command) { c.tell(p, 13, "", "") }, `"status":32256`, "failed"},
		{"no service", func(c *cluster, p *command) { c.tell(p, 38, "", "") }, `"status":256`, "failed"},
		{"an end without a process", func(c *cluster, p *command) { c.tell(p, 61, "", "") }, `"status":256`, "failed"},
		{"unreachable", func(c *cluster, p *command) { c.tell(p, 113, "", "") }, ``, "lost contact"},
		{"unreachable later", func(c *cluster, p *command) { c.spawn(p); c.tell(p, 113, "", "") }, ``, "lost contact"},
		{"an end without an exit", func(c *cluster, p *command) { c.spawn(p); c.tell(p, 61, "", "") }, ``, "lost contact"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t, actions(true, true, false))
			c.slow = true
			c.submit(16, "0-3")
			list := c.commands()
			for _, p := range list[:3] {
				c.spawn(p)
				c.end(p, 0)
			}
			if strings.HasPrefix(tt.name, "with") || strings.HasPrefix(tt.name, "by") {
				c.spawn(list[3])
			}
			c.slow = false
			tt.fail(c, list[3])
			c.pump()
			require.Equal(t, []string{"3: prolog " + tt.cause + " for job ƒH"}, c.drained)
			var text strings.Builder
			for _, r := range c.records {
				text.Write(r.Data)
			}
			require.Contains(t, text.String(), tt.status)
			require.Contains(t, c.log(16), "exception")
			require.NotContains(t, c.log(16), "start")
			c.endAll() // the epilog
			c.gone(16)
		})
	}
}

func TestOutputIsLogged(t *testing.T) {
	c := newCluster(t, actions(true, false, false))
	c.slow = true
	c.submit(16, "0-1")
	a, b := c.commands()[0], c.commands()[1]
	c.spawn(a)
	for _, io := range []string{
		`{"stream":"stdout","data":"one\ntw"}`, `{"stream":"stderr","data":"oops\n\n"}`, `{"stream":"x","data":"no\n"}`,
		`{"stream":"stdout","data":"o\nthree"}`, `{"stream":"stdout","eof":true}`, `{"stream":"stderr","data":"late"}`,
	} {
		c.tell(a, 0, `{"type":"output","io":`+io+`}`, "")
	}
	c.tell(b, 2, "", "error launching process: no such file")
	c.end(a, 0)
	require.Equal(t, []string{
		"ƒH: prolog: n0 (rank 0): stdout: one", "ƒH: prolog: n0 (rank 0): stderr: oops", // and no empty line
		"ƒH: prolog: n0 (rank 0): stdout: two", "ƒH: prolog: n0 (rank 0): stdout: three",
		"ƒH: prolog: n1 (rank 1): error launching process: no such file", "ƒH: prolog: n0 (rank 0): stderr: late",
	}, c.logged[:6])
	require.Equal(t, []Level{LevelInfo, LevelError, LevelInfo, LevelInfo, LevelError, LevelError}, c.levels[:6])
}

// TestLogIgnore: lines of prologs and epilogs that match a pattern are not logged, nor are
// those with nothing in them. The control lines among them still count.
func TestLogIgnore(t *testing.T) {
	cfg := actions(true, true, false)
	cfg.LogIgnore = []*regexp.Regexp{regexp.MustCompile("^foo:.*"), regexp.MustCompile("^bar:"), regexp.MustCompile(perilog.ControlPrefix)}
	c := newCluster(t, cfg)
	c.submit(16, "0-1")
	c.end(c.commands()[0], 0, "foo: whee!\nbar: woo!\nbaz: important!\n \t\n", "a bar: too\n")
	c.end(c.commands()[0], 0, perilog.ControlPrefix+" failed")
	require.Equal(t, []string{
		"ƒH: prolog: n0 (rank 0): stdout: baz: important!",
		"ƒH: prolog: n0 (rank 0): stdout: a bar: too",
	}, c.logged[:2])
	require.NotContains(t, c.logged, "ƒH: prolog: n1 (rank 1): stdout: "+perilog.ControlPrefix+" failed")
	c.logged = nil
	c.end(c.commands()[0], 0, "foo: whee!\n")
	require.Empty(t, c.logged)
}

// One epilog hangs, and the other sixty-three ranks are released meanwhile.
func TestAStraggler(t *testing.T) {
	cfg := actions(false, true, false)
	cfg.Manager.Actions.Epilogs[0].Timeout = fsd.Duration(time.Hour)
	c := ran(t, cfg, "0-63")
	list := c.commands()
	require.Len(t, list, 64)
	for _, p := range list[:63] {
		c.end(p, 0)
	}
	require.Equal(t, []string{"16 epilog 63"}, c.holders())
	c.wait(time.Hour + time.Millisecond) // from the start of the epilog, whose time is distinct
	require.Equal(t, []string{fmt.Sprint("63 ", list[63].pid, " 15")}, c.kills)
	c.wait(time.Minute)
	require.Equal(t, []string{"63: epilog timed out for job ƒH"}, c.drained)
	require.Empty(t, c.holders())
	v, _ := c.m.Job(16)
	require.Equal(t, jobstate.StateInactive, v.State())
	c.end(list[63], 15) // nobody waits for it
	c.gone(16)
}

// A fatal exception cancels a prolog. The signal goes out when the command has started, and
// not when it has ended.
func TestACancelWaitsForTheStart(t *testing.T) {
	c := newCluster(t, actions(true, false, false))
	c.slow = true
	c.submit(16, "0-2")
	list := c.commands()
	c.spawn(list[0])
	c.spawn(list[1])
	c.tell(list[1], 0, `{"type":"finished","status":0}`, "") // its output may follow
	require.Zero(t, c.ask(owner("raise", `{"id":16,"severity":0,"type":"cancel"}`)).Errnum)
	require.Equal(t, []string{fmt.Sprint("0 ", list[0].pid, " 15")}, c.kills)
	c.spawn(list[2])
	c.pump()
	require.Equal(t, fmt.Sprint("2 ", list[2].pid, " 15"), c.kills[1])
	require.Len(t, c.kills, 2)
	c.tell(list[1], 61, "", "")
	c.end(list[0], 15)
	c.end(list[2], 15)
	c.gone(16)
	require.Empty(t, c.drained)
}

// A signal goes out when what leads to it is durable.
func TestACancelWaitsForTheStore(t *testing.T) {
	c := newCluster(t, actions(true, false, false))
	c.submit(16, "0-1")
	c.hold = func(o *parcel) bool { return len(o.Append) > 0 }
	c.Request(c.now, owner("raise", `{"id":16,"severity":0,"type":"cancel"}`))
	c.pump()
	require.Empty(t, c.kills)
	c.release()
	require.Len(t, c.kills, 2)
	c.endAll()
	c.gone(16)
}

// A drain that is refused holds the ranks, and is sent again.
func TestADrainIsRefused(t *testing.T) {
	cfg := actions(false, false, true)
	cfg.Manager.Actions.Housekeeping.Timeout = fsd.Duration(time.Hour)
	c := ran(t, cfg, "0-1")
	c.submit(17, "5") // has its own deadline
	c.run(17)
	c.noDrain = 38
	c.end(c.commands()[1], 1<<8)
	c.end(c.commands()[0], 0)
	require.Len(t, c.drained, 1)
	require.Contains(t, c.logged, "resource.drain of 1: errnum 38: it is tried again in 1m0s")
	require.NotEmpty(t, c.holders())
	c.wait(59 * time.Second)
	require.Len(t, c.drained, 1)
	c.wait(time.Second)
	require.Len(t, c.drained, 2)
	c.noDrain = 0
	c.wait(time.Minute)
	require.Len(t, c.drained, 3)
	require.Equal(t, c.drained[0], c.drained[2])
	require.Equal(t, []string{"17 housekeeping 5"}, c.holders())
	c.endAll()
	c.gone(16)
	_, ok := c.Deadline()
	require.False(t, ok)
}

// Control lines come in pieces, after the exit, in base64, or without a newline.
func TestControlLines(t *testing.T) {
	const line = `perilog-control: {"version":1,"failed":true,"note":"disk"}`
	tests := []struct {
		name   string
		chunks []string
		fails  bool
	}{
		{"plain", []string{"hello\n", "perilog-control\n", "x" + line + "\n", "\n"}, false},
		{"whole", []string{"hello\n" + line + "\nbye\n"}, true},
		{"in pieces", []string{"hello\nperi", "log-control", line[len("perilog-control"):], "\n"}, true},
		{"without a newline", []string{line}, true},
		{"invalid", []string{"perilog-control: {}\n"}, true},
		{"too long", []string{"perilog-control: " + strings.Repeat(" ", 20000), line}, true},
		{"long, but plain", []string{strings.Repeat("x", 20000), line}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := ran(t, actions(false, true, false), "0-1")
			for _, p := range c.commands() {
				require.NoError(t, c.Respond(c.now, Response{Tag: p.tag, Payload: json.RawMessage(
					`{"type":"output","io":{"stream":"stderr","rank":"0","data":"` + strings.ReplaceAll(line, `"`, `\"`) + `\n"}}`)}))
			}
			c.end(c.commands()[1], 0, tt.chunks...)
			c.endAll()
			require.Equal(t, tt.fails, len(c.drained) == 1)
			c.gone(16)
		})
	}
	c := ran(t, actions(false, true, false), "0")
	c.tell(c.commands()[0], 0, `{"type":"output","io":{"stream":"stdout","encoding":"base64",`+
		`"data":"cGVyaWxvZy1jb250cm9sOiB7fQo="}}`, "")
	c.endAll()
	require.Len(t, c.drained, 1)
}

func TestAResponseIsOutOfPlace(t *testing.T) {
	c := newCluster(t, actions(false, true, false))
	c.slow = true
	c.submit(16, "0")
	c.run(16)
	p := c.commands()[0]
	refuse := func(list ...string) {
		t.Helper()
		for _, text := range list {
			require.Error(t, c.Respond(c.now, Response{Tag: p.tag, Payload: json.RawMessage(text)}), text)
			require.False(t, c.Next(&parcel{}))
		}
	}
	bad := []string{
		``, `null`, `7`, `{}`, `{"type":"x"}`, `{"type":"output"}`, `{"type":7}`, `{"type":"started"}`, `{"type":"finished"}`,
		`{"type":"started","pid":0}`, `{"type":"started","pid":-1}`, `{"type":"started","pid":4294967297}`,
		`{"type":"output","io":{"stream":"stdout","encoding":"base64","data":"*"}}`, `{"type":"output","io":7}`,
	}
	refuse(bad...)
	refuse(`{"type":"finished","status":0}`)
	c.spawn(p)
	refuse(bad...)
	refuse(`{"type":"started","pid":7}`)
	c.tell(p, 0, `{"type":"add-credit","channels":{"stdin":4096}}`, "")
	c.tell(p, 0, `{"type":"stopped"}`, "")
	c.tell(p, 0, `{"type":"finished","status":0}`, "")
	refuse(bad...)
	refuse(`{"type":"finished","status":1}`, `{"type":"started","pid":7}`)
	c.tell(p, 61, "", "")
	c.pump()
	c.gone(16)
}

func TestARestartLosesActions(t *testing.T) {
	kinds := []string{"prolog", "epilog", "housekeeping"}
	for i, kind := range kinds {
		for _, policy := range []Lost{"", LostFinish, LostRerun, LostHold} {
			for _, whole := range []bool{false, true} {
				if whole && kind == "housekeeping" {
					continue
				}
				t.Run(fmt.Sprint(kind, " ", policy, whole), func(t *testing.T) {
					cfg := actions(i == 0, i == 1, i == 2)
					for _, list := range [][]perilog.ActionConfig{cfg.Manager.Actions.Prologs, cfg.Manager.Actions.Epilogs} {
						for i := range list {
							list[i].PerRank = !whole
						}
					}
					cfg.Lost = policy
					c := newCluster(t, cfg)
					c.submit(16, "0-1")
					if kind != "prolog" {
						c.run(16)
					}
					if !whole {
						c.end(c.commands()[0], 0)
					}
					require.Len(t, c.commands(), 1)
					ranks := fmt.Sprint(c.commands()[0].rank)
					if kind == "prolog" && !whole {
						ranks = "0-1" // its log does not tell where it has succeeded
					}
					c.crash()
					c.hello()
					switch policy {
					case LostHold:
						require.Empty(t, c.running)
						require.Empty(t, c.drained)
						require.NotEmpty(t, c.holders())
						key := perilog.Housekeeping()
						if kind != "housekeeping" {
							key = jobstate.ActionKey{Kind: jobstate.ActionKind(i + 1), Description: "job-manager." + kind}
						}
						c.do(joblife.ForceFinish{Action: joblife.Action{Job: 16, Key: key}, Status: 1, Operator: "me"})
						c.pump()
					case LostRerun:
						require.Empty(t, c.drained)
						again := idset.Of()
						for _, p := range c.commands() {
							again.Insert(uint32(p.rank))
						}
						require.Equal(t, ranks, again.String())
						c.endAll()
						if kind == "prolog" {
							require.Contains(t, c.log(16), "prolog-finish")
							require.NotContains(t, c.log(16), "exception")
							c.run(16)
						}
					default:
						require.Empty(t, c.running)
						require.Equal(t, []string{ranks + ": " + kind + " was lost for job ƒH"}, c.drained)
					}
					if kind == "prolog" && policy != LostRerun {
						require.Contains(t, c.log(16), "exception")
					}
					c.gone(16)
					drained := len(c.drained)
					c.crash() // nothing is left to resolve
					c.pump()
					c.gone(16)
					require.Len(t, c.drained, drained)
				})
			}
		}
	}
}

func TestLostIsChecked(t *testing.T) {
	_, _, err := Restore(start, Config{Lost: "x"}, func(func(joblife.Record, error) bool) {})
	require.ErrorContains(t, err, `lost: "x" is not`)
}

// What housekeeping holds because it failed is not lost.
func TestARestartLeavesWhatIsHeld(t *testing.T) {
	cfg := actions(false, false, true)
	cfg.Manager.Actions.Housekeeping.OnFailure = jobstate.OnFailureHold
	c := ran(t, cfg, "0-2")
	c.end(c.commands()[0], 1<<8)
	c.end(c.commands()[1], 1<<8)
	c.crash()
	c.hello()
	require.Equal(t, []string{"1: housekeeping was lost for job ƒH"}, c.drained)
	left := idset.Of()
	for u := range c.m.Unresolved() {
		require.Equal(t, perilog.ReasonHeld, u.Reason)
		left.UnionWith(u.Ranks)
	}
	require.Equal(t, "0,2", left.String())
}

// Ranks whose drain is refused after a restart stay with their action. An operator may finish
// it meanwhile, or some of it.
func TestARestartDrainsFirst(t *testing.T) {
	epilog := jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
	for _, finish := range [][]joblife.Action{nil, {{Job: 16, Key: epilog}, {Job: 17, Key: epilog, Ranks: idset.Of(2)}}} {
		c := ran(t, actions(false, true, false), "0-1")
		c.submit(17, "2-3")
		c.run(17)
		c.crash()
		c.noDrain = 38
		c.hello()
		require.Equal(t, []string{"16 epilog 0-1", "17 epilog 2-3"}, c.holders())
		for _, a := range finish {
			c.do(joblife.ForceFinish{Action: a, Status: 1, Operator: "me"})
		}
		c.noDrain = 0
		c.wait(time.Minute)
		c.gone(16)
		c.gone(17)
	}
}

// An action that was lost in several attempts is finished on the ranks of all of them.
func TestARestartLosesSeveralAttempts(t *testing.T) {
	c := ran(t, actions(false, true, false), "0-1")
	c.next.Lost = LostHold
	c.crash()
	c.hello()
	epilog := jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}
	c.do(joblife.Rerun{Action: joblife.Action{Job: 16, Key: epilog, Ranks: idset.Of(1)}})
	c.next.Lost = LostFinish
	c.crash()
	c.hello()
	require.Equal(t, []string{"0: epilog was lost for job ƒH", "1: epilog was lost for job ƒH"}, c.drained)
	c.gone(16)
}

// What cannot run again is finished: the configuration has no such action any more.
func TestARestartCannotRerun(t *testing.T) {
	c := ran(t, actions(false, true, false), "0-1")
	c.next = actions(false, false, false)
	c.next.Lost = LostRerun
	c.crash()
	c.hello()
	require.Equal(t, []string{"0-1: epilog was lost for job ƒH"}, c.drained)
	c.gone(16)
}

// No response breaks the service. One that is refused changes nothing.
func FuzzRexecResponse(f *testing.F) {
	for _, text := range []string{
		`{"type":"started","pid":7}`, `{"type":"finished","status":256}`, `{"type":"stopped"}`, `{`,
		`{"type":"output","io":{"stream":"stdout","data":"perilog-control: {}\n","eof":true}}`,
		`{"type":"output","io":{"stream":"stderr","encoding":"base64","data":"AAAA"}}`,
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, begun bool) {
		c := newCluster(t, actions(false, true, false))
		c.slow = true
		c.submit(16, "0")
		c.run(16)
		p := c.commands()[0]
		if begun {
			c.spawn(p)
			c.pump()
		}
		of := c.processes.running[place{16, jobstate.ActionKey{Kind: jobstate.ActionEpilog, Description: "job-manager.epilog"}, 1, 0}]
		before := *of
		if c.Respond(c.now, Response{Tag: p.tag, Payload: text}) != nil {
			require.Equal(t, before, *of)
			require.False(t, c.Next(&parcel{}))
		}
		require.LessOrEqual(t, len(of.lines["stdout"]), maxLine)
		c.pump()
		c.tell(p, 61, "", "")
		c.pump()
		require.Empty(t, c.processes.running)
	})
}
