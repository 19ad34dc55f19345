package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/internal/bomb"
)

// TestNoLineTakesFarMoreThanItsLength reads hostile lines from standard input.
func TestNoLineTakesFarMoreThanItsLength(t *testing.T) {
	const (
		session   = `{"topic":"job-manager.sched-hello","errnum":61}` + "\n" + `{"topic":"job-manager.sched-ready","payload":{"count":0}}` + "\n"
		inventory = `{"topic":"resource.acquire","payload":{"up":"all","resources":{"version":1,"execution":{"R_lite":[`
		some      = inventory + `{"rank":"0-999","children":{"core":"0-7"}}]`
	)
	bombs := []bomb.Bomb{
		bomb.Fill("inventory of kinds that overlap", session+inventory, `{"rank":"#-16777215","children":{"c#":"0"}},`, "]}}}}\n"),
		bomb.Fill("properties of an inventory", session+some+`,"properties":{`, `"x#":"0-999",`, "}}}}}\n"),
		bomb.Fill("requests", session+some+"}}}}\n", `{"topic":"sched.alloc","payload":{"id":#,"priority":16,"userid":1,"t_submit":1,"jobspec":{"version":1,"resources":[{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]}],"tasks":[{"command":["a"],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":1}}}}}`+"\n", ""),
		bomb.Fill("entries of an inventory", session+inventory, `{"rank":"#","children":{"core":"#"}},`, "]}}}}\n"),
		bomb.Fill("ranks that go up", session+some+"}}}}\n", `{"topic":"resource.acquire","payload":{"up":"#"}}`+"\n", ""),
		bomb.Fill("lines", session, "\n", ""),
	}
	few := 3
	if os.Getenv("JOBLIFE_DEEP") != "" {
		few = 0
	}
	bomb.DefuseProgram(t, func(text []byte) {
		lines.Run(context.Background(), program, []string{"-now=1"}, bytes.NewReader(text), io.Discard, io.Discard)
	}, few, bombs,
		"@\n", `{"topic":"sched.alloc","payload":@}`+"\n", `{"topic":"sched.alloc","payload":{"id":1,"jobspec":@}}`+"\n",
		session+`{"topic":"resource.acquire","payload":{"resources":@}}`+"\n", session+some+`},"x":@}}}`+"\n")
}
