package main

import (
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
)

// sizes returns the counts of a resource set that a listing needs.
func sizes(r *rset.R) jobspec.Resources {
	return jobspec.Resources{Nodes: int64(r.Len()), Cores: r.Count("core"), GPUs: r.Count("gpu"), Slots: r.Slots()}
}
