package service

import (
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/fsd"
)

// A Queue is what the service knows of a named queue.
type Queue struct {
	// Requires are the properties of the queue's nodes.
	Requires []string
	// Limits override those of all jobs, each that is set.
	Limits Limits
}

// Limits say what a job may ask for. What is not set has no limit.
type Limits struct {
	Duration jobstate.Optional[fsd.Duration] // 0, fsd.Forever: no limit
	Max, Min Size
}

// A Size is the size of a job, or a part of it; -1: no limit.
type Size struct{ Nodes, Cores, GPUs jobstate.Optional[int] }
