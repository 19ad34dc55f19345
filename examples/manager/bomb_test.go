package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/internal/bomb"
)

// TestNoConfigurationTakesFarMoreThanItsLength reads hostile files as long as a configuration
// may be. What is longer is not read, whatever it is.
func TestNoConfigurationTakesFarMoreThanItsLength(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c.toml")
	list := []bomb.Bomb{
		bomb.Fill("keys", "", "a#=1\n", ""),
		bomb.Fill("a dotted key", "", "a.", "a=1\n"),
		bomb.Fill("tables", "", "[a#]\n", ""),
		bomb.Fill("dotted keys", "", "a.b.c.d#=1\n", ""),
		bomb.Fill("a dotted table", "[", "a.", "a]\n"),
		bomb.Fill("tables in tables", "[[a]]\n", "[[a.b]]\n", ""),
		bomb.Fill("arrays of tables", "", "[[a]]\n", ""),
		bomb.Fill("one key", "", "a=1\n", ""),
		bomb.Nest("nested arrays", "a=", "[", "", "]", "\n"),
		bomb.Nest("nested tables", "a=", "{a=", "1", "}", "\n"),
		bomb.Fill("numbers", "a=[", "1,", "]\n"),
		bomb.Fill("empty arrays", "a=[", "[],", "]\n"),
		bomb.Fill("empty tables", "a=[", "{},", "]\n"),
		bomb.Fill("a long string", `a="`, "x", "\"\n"),
		bomb.Fill("escapes", `a="`, `\u0000`, "\"\n"),
		bomb.Fill("comments", "", "#x\n", ""),
		bomb.Fill("newlines", "", "\n", ""),
	}
	if os.Getenv("JOBLIFE_DEEP") == "" {
		list = list[:2]
	}
	long := list[0]
	for i, b := range list {
		list[i] = b.Of(maxConfig)
	}
	bomb.Defuse(t, func(text []byte) {
		require.NoError(t, os.WriteFile(name, text, 0o600))
		o := options{file: name}
		_ = o.configure() // most are no configuration
	}, append(list, long)...)
}

// prolog returns what is said until the prolog of a job runs.
func prolog() string {
	return `{"topic":"job-manager.config-reload","payload":{"job-manager":{"prolog":{"command":["p"]}}}}
{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}
{"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}
{"topic":"job-manager.exec-hello","payload":{"service":"my-exec"}}
` + submit(1, 16) + "{" + gives(16, 0) + "}\n" + `{"topic":"rexec.exec","matchtag":1,"payload":{"type":"started","pid":7}}` + "\n"
}

// TestControlLinesReachTheirJob: the node that one names is drained.
func TestControlLinesReachTheirJob(t *testing.T) {
	const failed = `{"topic":"rexec.exec","matchtag":1,"payload":{"type":"output","io":{"stream":"stdout","rank":"0","data":"perilog-control:{\"version\":1,\"failed\":\"0\"}\n"}}}` + "\n"
	var out bytes.Buffer
	lines.Run(context.Background(), program, []string{"-now=1000"}, strings.NewReader(prolog()+failed), &out, io.Discard)
	require.Contains(t, out.String(), `"topic":"resource.drain"`)
}

// TestNoLineTakesFarMoreThanItsLength reads hostile lines from standard input.
func TestNoLineTakesFarMoreThanItsLength(t *testing.T) {
	const (
		reload  = `{"topic":"job-manager.config-reload","payload":{"job-manager":{"perilog":{"log-ignore":[`
		output  = `{"topic":"rexec.exec","matchtag":1,"payload":{"type":"output","io":{"stream":"stdout","rank":"0","data":"`
		control = output + `perilog-control:{\"version\":1,`
		job     = `{"topic":"job-manager.submit","payload":{"jobs":[{"id":16,"urgency":16,"userid":100,"t_submit":1000.0,"flags":0,"jobspec":`
	)
	bombs := []bomb.Bomb{
		bomb.Fill("patterns", reload, `"x#",`, "]}}}}\n"),
		bomb.Fill("a long pattern", reload+`"`, "(a{100}){10}|", `"]}}}}`+"\n"),
		bomb.Fill("memos of a job", submit(1, 16), `{"topic":"job-manager.memo","matchtag":#,"payload":{"id":16,"memo":{"k#":#}}}`+"\n", ""),
		bomb.Fill("control lines", prolog(), control+`\"failed\":\"#\"}\n"}}}`+"\n", ""),
		bomb.Nest("a nested pattern", reload+`"`, "(", "a", ")*", `"]}}}}`+"\n"),
		bomb.Fill("a pattern of ranges", reload+`"[`, "a-z", `]"]}}}}`+"\n"),
		bomb.Fill("patterns that repeat", reload, `"(((a{9}){9}){9}){1,1}",`, "]}}}}\n"),
		bomb.Fill("control lines of one output", prolog()+output, `perilog-control:{\"version\":1,\"failed\":\"#\"}\n`, `"}}}`+"\n"),
		bomb.Fill("a long control line", prolog()+control+`\"failed\":\"0`, ",1#", `\"}\n"}}}`+"\n"),
		bomb.Fill("jobs", "", submit(1, 16)[:20]+"\n", ""),
		bomb.Fill("lines", "", "\n", ""),
	}
	few := 5
	if os.Getenv("JOBLIFE_DEEP") != "" {
		few = 0
	}
	bomb.DefuseProgram(t, func(text []byte) {
		lines.Run(context.Background(), program, []string{"-now=1000"}, bytes.NewReader(text), io.Discard, io.Discard)
	}, few, bombs,
		"@\n", `{"topic":"job-manager.config-reload","payload":@}`+"\n", reload+"@]}}}}\n", job+"@}]}}\n",
		submit(1, 16)+`{"topic":"job-manager.memo","payload":{"id":16,"memo":{"x":@}}}`+"\n",
		submit(1, 16)+`{"topic":"job-manager.update","payload":{"id":16,"updates":{"attributes.system.x":@}}}`+"\n",
		`{"topic":"sched.alloc","payload":{"id":16,"type":0,"R":@}}`+"\n", `{"topic":"x","y":@}`+"\n")
}
