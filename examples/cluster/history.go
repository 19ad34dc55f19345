//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
)

func jobs(p *program) func(context.Context) error {
	all := p.Bool("a", false, "also jobs of others, and those that are over")
	over := p.overFlags()
	return p.asks(30*time.Second, func(ctx context.Context, c *client.Client) error {
		r, err := over()
		p.Visit(func(f *flag.Flag) {
			if err == nil && !*all && strings.HasPrefix(f.Usage, withAll) {
				err = p.wrong("-%s is for -a: add that, or leave it out", f.Name)
			}
		})
		if err != nil {
			return err
		}
		q := wire.Request{All: *all, Limit: r.Limit}
		if *all {
			q.User = r.User
		}
		answer, err := c.Ask(ctx, "jobs", q)
		if err == nil && *all {
			answer.Jobs, err = history(ctx, c, r, answer.Jobs)
		}
		if err != nil {
			return err
		}
		if p.json {
			return json.NewEncoder(os.Stdout).Encode(append([]wire.JobInfo{}, answer.Jobs...)) // a list, also of none
		}
		return printJobs(answer.Jobs)
	})
}

// results are those of a job, by what flux jobs calls them.
var results = map[string]string{"CD": "COMPLETED", "F": "FAILED", "CA": "CANCELED", "TO": "TIMEOUT"}

// withAll begins the usage of flags that are for -a only.
const withAll = "with -a: "

// overFlags defines which jobs a list has, and how many that are over.
func (p *program) overFlags() func() (wire.Request, error) {
	limit := p.Int("limit", 100, withAll+"how many that are over")
	user := p.Int64("user", -1, withAll+"only those of a user; -1: of all")
	since := p.Duration("since", 0, withAll+"only those that ended within that time; 0: whenever")
	name := p.String("name", "", withAll+"only those of that name")
	result := p.String("result", "", withAll+"only those that ended so: CD, F, CA or TO")
	return func() (wire.Request, error) {
		r := wire.Request{All: true, Limit: *limit, Name: *name, Result: cmp.Or(results[*result], *result)}
		if *user >= 0 {
			uid := uint32(*user)
			r.User = &uid
		}
		if *since > 0 {
			r.Since = eventlog.FromTime(time.Now().Add(-*since))
		}
		switch {
		case *user < -1 || *user > math.MaxUint32:
			return r, p.wrong("-user %d: want a number from 0 to %d", *user, uint32(math.MaxUint32))
		case *since < 0:
			return r, p.wrong("-since %v: want a time from now back, such as 1h", *since)
		case *result != "" && !slices.Contains(slices.Collect(maps.Values(results)), r.Result):
			return r, p.wrong("-result %s: want CD, F, CA or TO", *result)
		case *limit <= 0:
			return r, p.wrong("-limit %d: want 1 or more", *limit)
		}
		return r, nil
	}
}

// history puts what a reader has of jobs that are over in place of what the manager has, and leaves
// out what r does not ask for.
func history(ctx context.Context, c *client.Client, r wire.Request, known []wire.JobInfo) ([]wire.JobInfo, error) {
	archived, err := c.History(ctx, r)
	if errors.Is(err, client.ErrNoReader) {
		fmt.Fprintf(os.Stderr, "cluster: %v; of jobs that are over, the manager knows little\n", err)
	} else if err != nil {
		return nil, err
	}
	over := make(map[jobid.ID]bool)
	for _, j := range archived {
		over[j.ID] = true
	}
	var list []wire.JobInfo
	active := r
	active.Since, active.Result = 0, "" // they may end yet
	for _, j := range known {
		switch {
		case over[j.ID] || j.Inactive == 0 && !active.Matches(&j):
		case j.Inactive == 0:
			list = append(list, j)
		case r.Matches(&j):
			archived = append(archived, j)
		}
	}
	slices.SortFunc(archived, func(a, b wire.JobInfo) int {
		return cmp.Or(cmp.Compare(b.Inactive, a.Inactive), cmp.Compare(b.ID, a.ID))
	})
	return append(list, archived[:min(len(archived), r.Limit)]...), nil
}

// whole returns what a reader has of a job that is over, of which the manager has a summary.
func whole(ctx context.Context, c *client.Client, j wire.JobInfo) wire.JobInfo {
	archived, err := c.Archived(ctx, j.ID)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v; of a job that is over, the manager knows little\n", err)
		return j
	}
	archived.Holders = j.Holders
	return archived
}

// jobOf returns a job with its log, of which the manager has none when the job is over.
func jobOf(ctx context.Context, c *client.Client, id jobid.ID) (wire.JobInfo, error) {
	j, err := c.Job(ctx, id)
	if err == nil && j.Inactive > 0 && j.Eventlog == "" {
		j = whole(ctx, c, j)
	}
	return j, err
}
