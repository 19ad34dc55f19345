// Command httpd is a resource manager with an HTTP interface: nodes of this machine that run
// the jobs of one user, with a prolog and an epilog on each node.
//
//	httpd -dir /tmp/httpd -nodes 4 -cores 2 -actions '{"epilogs":[{"command":["sleep","1"],"per-rank":true}]}' &
//	ask() { path=$1; shift; curl --unix-socket /tmp/httpd/http "http://httpd/$path" "$@"; }
//	ask jobs -d @jobspec.json           # RFC 25, that of this folder; the answer has the id
//	ask jobs                            # those that are not over
//	ask jobs/ƒuZZybuNNy                 # its state, what it waits for, how it ended
//	ask jobs/ƒuZZybuNNy/log -N          # its eventlog, until the job is over
//	ask jobs/ƒuZZybuNNy -X DELETE       # cancel
//	ask resources                       # what there is, is down, is free, and who holds what
//
// # Who may do what
//
// Requests come through a Unix socket that only the user of httpd may use, so whoever asks
// is that user, owns all jobs, and may do all. A port of the loopback would be open to the
// other users of the machine, and to each web page in a browser. For more users let a server
// in front say who asks, and set By in each input. A body has at most 1 MiB, and a client 10
// seconds to send a request and for each part of an answer.
//
// # What lasts
//
// All that an answer says is durable. After kill -9 or an interrupt jobs, prologs and epilogs
// run on, and the next start finds them, or their status. An inactive job stays until there
// are 100 000 younger ones. A node whose prolog or epilog failed is drained until the next
// start, or longer if it still runs then.
//
// A job runs the command of its first task once on each of its nodes, in the folder and with
// the environment of httpd, and its output is that of httpd. It needs a Unix system. In
// -actions a duration is a text (RFC 23), such as "release-after":"0".
//
// This file has the restart and what follows from a Ready, http.go the requests. The executor
// and its nodes are those of package proc, whose processes outlive the program.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

// uid is who asks.
var uid = uint32(os.Getuid())

func main() {
	proc.Shim() // it is one, or goes on
	dir := flag.String("dir", filepath.Join(os.TempDir(), "joblife-httpd"), "the `folder` that keeps the jobs, and has the socket")
	nodes := flag.Int("nodes", 4, "how many nodes there are, at most 1024")
	cores := flag.Int("cores", 2, "how many cores each node has, at most 1024")
	config := joblife.Config{
		Owner: uid, Epoch: time.Unix(1_700_000_000, 0), Hooks: []joblife.Hooks{joblife.Dependencies()},
		Limits: purge.Limits{MaxCount: jobstate.Some(100_000)},
	}
	flag.Func("actions", "prologs, epilogs and housekeeping: a perilog.Config in `JSON`", func(text string) error {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		return cmp.Or(d.Decode(&config.Actions), json.Unmarshal([]byte(text), &config.Actions)) // which takes no more than one value
	})
	flag.Parse()
	if flag.NArg() > 0 {
		warn(fmt.Errorf("%q: there is no argument but flags", flag.Arg(0)))
		os.Exit(2)
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if err := run(ctx, *dir, *nodes, *cores, config); err != nil && ctx.Err() == nil {
		warn(err)
		os.Exit(1)
	}
}

func warn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "httpd:", err)
	}
}

// A server is a manager, with its scheduler and its executor.
type server struct {
	*loop.Loop
	store     *boltstore.Store
	cluster   *proc.Cluster
	scheduler *sched.Scheduler              // only the Loop uses it
	end       context.CancelCauseFunc       // ends the program
	events    atomic.Pointer[chan struct{}] // is closed when a job has another event
}

func run(ctx context.Context, dir string, nodes, cores int, config joblife.Config) error {
	if min(nodes, cores) < 1 || max(nodes, cores) > 1024 {
		return errors.New("-nodes and -cores must be 1 to 1024")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	store, err := boltstore.Open(filepath.Join(dir, "jobs.db"))
	if err != nil {
		return err
	}
	defer store.Close()
	m, left, err := joblife.Restore(time.Now(), config, store.Records())
	if err != nil {
		return err
	}
	inventory, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, uint32(nodes-1)), Children: map[string]*idset.Set{"core": idset.Range(0, uint32(cores-1))},
	}}})
	if err != nil {
		return err
	}
	s := &server{store: store, scheduler: sched.New(sched.Config{Policy: sched.EASY{}})}
	ctx, s.end = context.WithCancelCause(ctx)
	s.announce()
	if s.cluster, err = proc.NewCluster(dir, nodes, s.put, warn); err != nil {
		return err
	}
	up := idset.Difference(inventory.Ranks(), s.cluster.GivenUp(m))
	if err := s.scheduler.Acquire(pool.Acquire{Resources: inventory, Change: pool.Change{Up: up}}); err != nil {
		return err
	}
	s.cluster.Recover(left)
	if s.Loop, err = loop.New(m, loop.Config{Store: store, Scheduler: s.scheduler, Effects: s.effects, Refused: s.cluster.Refused}); err != nil {
		return err
	}
	go func() {
		err := s.cluster.Connect(ctx, s.Loop)
		if err == nil {
			err = s.serve(ctx, filepath.Join(dir, "http"))
		}
		s.end(err)
	}()
	return s.Run(ctx)
}

// put passes what the executor says. If there is no room, a restart repairs it.
func (s *server) put(inputs ...joblife.Input) {
	if err := s.Put(inputs...); err != nil {
		s.end(err)
	}
}

// effects does what follows from records that are durable.
func (s *server) effects(_ *joblife.Manager, rd *joblife.Ready) {
	s.cluster.Do(rd)
	for _, d := range rd.Drain {
		warn(fmt.Errorf("node %v is drained: %s", d.Ranks, d.Reason))
		warn(s.scheduler.Acquire(pool.Acquire{Change: pool.Change{Down: d.Ranks}}))
		s.put(joblife.Drained{Ranks: d.Ranks.Clone()})
	}
	for _, f := range rd.Faults {
		warn(f)
	}
	s.announce()
}

// announce wakes those who follow a log.
func (s *server) announce() {
	next := make(chan struct{})
	if before := s.events.Swap(&next); before != nil {
		close(*before)
	}
}
