package joblifetest

import (
	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
)

// startOf returns what a message to the executor starts, and false for others.
func startOf(msg exec.Message) (id jobid.ID, r *rset.R, reattach, ok bool) {
	s, ok := msg.(exec.Start)
	return s.ID, s.R, s.Reattach, ok
}

// response returns a response of the executor.
func response(id jobid.ID, kind exec.ResponseType) joblife.ExecResponse {
	return joblife.ExecResponse{ID: id, Type: kind}
}
