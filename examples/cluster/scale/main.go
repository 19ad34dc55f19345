// Program scale simulates many instances of a cluster on a virtual clock. Each is joblife's own
// Manager, with its Loop and a Scheduler; made up are the jobs, the nodes, and the network. It
// compares how submissions find an instance, what becomes of them while a manager is down, and
// what users get if instances exchange usage. The page ../SCALE.md has its figures.
//
//	go run ./scale
//
// The same flags print the same.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"
)

const each10, down30 = 10 * time.Second, 30 * time.Second

// rows are the simulations. All with one Load have the same jobs.
var rows = []config{
	{Group: "routing", Name: "to the instance of the user", Load: 0.85, Route: "home"},
	{Group: "routing", Name: "to any", Load: 0.85, Route: "any"},
	{Group: "routing", Name: "to the least loaded, reports each 10 s", Load: 0.85, Route: "least", Report: each10},
	{Group: "routing", Name: "to the better of two, reports each 10 s", Load: 0.85, Route: "two", Report: each10},
	{Group: "routing", Name: "to the better of two, reports each 60 s", Load: 0.85, Route: "two", Report: time.Minute},
	{Group: "no answer", Name: "repeated elsewhere, with a key", Load: 0.85, Route: "two", Report: each10, Down: down30, Repeat: "elsewhere"},
	{Group: "no answer", Name: "repeated there, without a key", Load: 0.85, Route: "two", Report: each10, Down: down30, Repeat: "keyless"},
	{Group: "no answer", Name: "repeated there, with a key", Load: 0.85, Route: "two", Report: each10, Down: down30, Repeat: "same"},
	{Group: "no answer", Name: "the same, down for 0.25 s, not for 30", Load: 0.85, Route: "two", Report: each10, Down: time.Second / 4, Repeat: "same"},
	{Group: "no answer", Name: "repeated elsewhere, with a claim", Load: 0.85, Route: "two", Report: each10, Down: down30, Repeat: "claim"},
	{Group: "fair share", Name: "instance of the user, none", Load: 2, Route: "home"},
	{Group: "fair share", Name: "instance of the user, all usage", Load: 2, Route: "home", Share: "all"},
	{Group: "fair share", Name: "better of two, none", Load: 2, Route: "two", Report: each10},
	{Group: "fair share", Name: "better of two, local usage", Load: 2, Route: "two", Report: each10, Share: "local"},
	{Group: "fair share", Name: "better of two, all usage", Load: 2, Route: "two", Report: each10, Share: "all"},
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	var s size
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.IntVar(&s.Instances, "instances", 100, "instances, 2 to 1000")
	flags.IntVar(&s.Nodes, "nodes", 32, "nodes of each, 8 at least")
	flags.IntVar(&s.Jobs, "jobs", 20_000, "jobs of each simulation, 100 at least")
	flags.IntVar(&s.Users, "users", 240, "users, a multiple of 4; each fourth submits three times as much")
	flags.Uint64Var(&s.Seed, "seed", 1, "of all that is random")
	asJSON := flags.Bool("json", false, "print JSON, a line for each simulation")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.Instances < 2 || s.Instances > 1000 || s.Nodes < 8 || s.Jobs < 100 || s.Users < 4 || s.Users%4 != 0 || flags.NArg() > 0 {
		return errors.New("wrong arguments: see -help")
	}
	table, group := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), ""
	for _, c := range rows {
		c.size = s
		r := simulate(c).result()
		if *asJSON {
			if err := json.NewEncoder(out).Encode(r); err != nil {
				return err
			}
			continue
		}
		if r.Group != group {
			group = r.Group
			fmt.Fprintf(table, "%s\twait\tp95\tbusy\tJain\tlost\ttwice\tno answer\tfor\tmax\tmessages\tinputs\n", group)
		}
		fmt.Fprintf(table, "  %s\t%.0f\t%.0f\t%.1f%%\t%.3f\t%d\t%d\t%d\t%.1f\t%.1f\t%.2f\t%.2f\n", r.Name, r.WaitMean, r.Wait95, 100*r.Busy, r.Jain,
			r.Lost, r.Twice, r.NoAnswer, r.AnswerMean, r.AnswerMax, r.Messages, r.Inputs)
	}
	return table.Flush()
}
