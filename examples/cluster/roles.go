//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/manager"
	"github.com/joblife/joblife/examples/cluster/metrics"
	"github.com/joblife/joblife/examples/cluster/node"
	"github.com/joblife/joblife/examples/cluster/schedule"
	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/rset/sched"
)

// up starts an instance on this machine.
func up(p *program) func(context.Context) error {
	makes := p.instance()
	fresh := make(map[string]bool) // flags that are for a new instance only
	p.VisitAll(func(f *flag.Flag) { fresh[f.Name] = f.Name != "dir" && f.Name != "json" })
	read := p.readerFlags()
	return func(ctx context.Context) error {
		err := files.Private(p.dir) // its roles run as this user
		if err == nil {
			err = p.read()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = makes()
		case err == nil:
			p.Visit(func(f *flag.Flag) {
				if fresh[f.Name] {
					err = p.wrong("-%s is for a new instance, and %s is there: leave it out, or name another folder with -dir", f.Name, p.path())
				}
			})
		}
		if err != nil {
			return err
		}
		all, ctx := errgroup.WithContext(ctx)
		stop, err := engine.Keep(engine.Server{URL: p.URL, Dir: filepath.Join(p.dir, "nats")}, p.keys(), p.log)
		if err != nil {
			return err
		}
		defer stop()
		p.metrics = metrics.New()
		managers := []string{"manager-1", "manager-2"}
		if p.Store != "" {
			managers = managers[:1]
		}
		for _, name := range managers {
			all.Go(func() error { return p.as(name).manager(ctx) })
		}
		for rank := range p.R.Ranks().All() {
			all.Go(func() error { return p.as(fmt.Sprint("node-", rank)).node(ctx, node.Config{Rank: rank}) })
		}
		if p.Sched == remote {
			all.Go(func() error { return p.as("sched").schedule(ctx) })
		}
		if p.Store == "" {
			all.Go(func() error { return read(ctx, p.as("reader")) })
		}
		_ = p.print(p.URL, fmt.Sprintf("cluster: %d nodes at %s; cluster run hostname runs a job on one", p.R.Ranks().Len(), p.URL))
		err = all.Wait()
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
}

// instance defines the flags of a new instance, and returns what makes it.
func (p *program) instance() func() error {
	n := p.Int("nodes", 8, "how many nodes there are")
	cores := p.Int("cores", 2, "how many cores each node has")
	store := p.String("store", "", "bbolt:FILE keeps the records in a file of the folder, or of an absolute path, with one manager; empty: in JetStream")
	scheduler := p.String("sched", "", "remote: processes of cluster sched schedule; empty: the active manager does")
	hosts := p.String("hosts", "", "the names and addresses of servers, with commas, for their certificate; empty: this machine")
	actions := p.String("actions", "", "prologs, epilogs and housekeeping: a perilog.Config in `JSON`")
	return func() (err error) {
		if *actions != "" {
			if err := proc.ParseActions(*actions, &p.Actions); err != nil {
				return p.wrong("-actions: %v", err)
			}
		}
		if p.R, err = alike(*n, *cores); err != nil {
			return p.wrong("-nodes %d and -cores %d: want numbers from 1 to %d", *n, *cores, 1<<20)
		}
		if *scheduler != "" && *scheduler != remote {
			return p.wrong("-sched %q: want %s, or leave it out for that of the manager", *scheduler, remote)
		}
		if _, ok := records(*store); *store != "" && !ok {
			return p.wrong("-store %q: want bbolt:FILE, or leave it out for JetStream", *store)
		}
		for text := range strings.SplitSeq(p.URL, ",") {
			if host, port, err := engine.Address(text); p.URL != "" && (err != nil || host == "" || port <= 0) {
				return p.wrong("-nats %q: want the URL of a server with its port, such as nats://127.0.0.1:4222", text)
			}
		}
		p.Instance, p.Owner, p.Store, p.Sched = "main", uint32(os.Getuid()), *store, *scheduler
		if p.URL == "" {
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer free.Close()
			p.URL = "nats://" + free.Addr().String()
		}
		return p.make(strings.FieldsFunc(*hosts, func(r rune) bool { return r == ',' }))
	}
}

// make makes the folder of an instance: its keys, the credentials of all roles, and the file.
func (p *program) make(hosts []string) error {
	if err := files.MakeDir(p.dir); err != nil {
		return err
	}
	if err := auth.Init(p.keys(), auth.Config{Instance: p.Instance, Hosts: hosts}); err != nil {
		return err
	}
	ids := []auth.ID{auth.User(p.Owner)}
	for rank := range p.R.Ranks().All() {
		ids = append(ids, auth.Node(rank))
	}
	for _, id := range ids {
		if err := auth.Add(p.keys(), id, 0); err != nil {
			return err
		}
	}
	return p.write()
}

// records returns the file of records that a store names, and whether it names one.
func records(store string) (path string, ok bool) {
	path, ok = strings.CutPrefix(store, "bbolt:")
	return path, ok && path != ""
}

// keys is the folder of keys and credentials.
func (p *program) keys() string { return filepath.Join(p.dir, "keys") }

// initialize makes an instance, and starts nothing.
func initialize(p *program) func(context.Context) error {
	makes := p.instance()
	return func(context.Context) error {
		if _, err := os.Stat(p.path()); err == nil {
			return fmt.Errorf("%s: %w: start it with cluster up, or name another folder with -dir", p.path(), fs.ErrExist)
		}
		if err := makes(); err != nil {
			return err
		}
		return p.print(p.dir, fmt.Sprintf("cluster: %s has the keys; each machine gets %s, keys/ca.pem and the credential of its role", p.dir, filepath.Base(p.path())))
	}
}

// user signs the credential of a user.
func user(p *program) func(context.Context) error {
	life := p.Duration("life", 0, "how long the credential is good; 0: for ever")
	return func(context.Context) error {
		uid, err := strconv.ParseUint(p.Arg(1), 10, 32)
		if p.NArg() != 2 || p.Arg(0) != "add" || err != nil {
			return p.wrong("want add UID, such as add 1000")
		}
		id := auth.User(uint32(uid))
		if err := auth.Add(p.keys(), id, *life); errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: remove it to make another, such as for one that has expired", err)
		} else if err != nil {
			return err
		}
		return p.print(id.String(), fmt.Sprintf("%s: give it to the user, with ca.pem beside it and %s", filepath.Join(p.keys(), id.String()+".creds"), p.path()))
	}
}

// as returns the program as another process of the instance.
func (p *program) as(role string) *program {
	q := *p
	q.name, q.log = role+"-"+p.name, slog.New(p.log.Handler()).With("role", role)
	return &q
}

func serveNATS(p *program) func(context.Context) error {
	return func(ctx context.Context) error {
		cfg := engine.Server{URL: p.URL, Dir: filepath.Join(p.dir, "nats")}
		if len(p.Servers) > 0 {
			i := slices.IndexFunc(p.Servers, func(s engine.Server) bool { return s.Name == p.Arg(0) })
			if i < 0 {
				return p.wrong("name a server of %s", p.path())
			}
			cfg = p.Servers[i]
			cfg.Dir = cmp.Or(cfg.Dir, filepath.Join(p.dir, "nats-"+cfg.Name))
			for _, other := range p.Servers {
				if other.Name != cfg.Name {
					cfg.Routes = append(cfg.Routes, other.Route)
				}
			}
		}
		stop, err := engine.Keep(cfg, p.keys(), p.log)
		if err == nil {
			<-ctx.Done()
			stop()
		}
		return err
	}
}

// idle is how many bytes a manager has that it never touches, so that they cost nothing: the
// garbage is collected when there is as much of it as of memory in use, and few jobs use little.
const idle = 64 << 20

func runManager(p *program) func(context.Context) error {
	at := p.String("http", "", "the `address` of /metrics, plain HTTP; empty: none")
	return func(ctx context.Context) error {
		defer runtime.KeepAlive(make([]byte, idle))
		if *at != "" {
			p.metrics = metrics.New()
			if err := serveMetrics(ctx, *at, p.metrics); err != nil {
				return err
			}
		}
		return p.manager(ctx)
	}
}

func (p *program) manager(ctx context.Context) (err error) {
	cfg := manager.Config{
		Manager: p.config(), Policy: sched.EASY{}, Remote: p.Sched == remote, Nodes: p.R, Log: p.log,
		NewHooks: func() []joblife.Hooks { return []joblife.Hooks{joblife.Dependencies(), quota(p.Owner, guestLoad)} },
	}
	at := engine.Config{Replicas: p.Replicas}
	if path, ok := records(p.Store); ok {
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.dir, path)
		}
		if cfg.Local, err = manager.OpenLocal(path); err != nil {
			return err
		}
		defer cfg.Local.Close()
		at.Plain = true
	} else if p.Store != "" {
		return fmt.Errorf("%s: \"store\" is %q: want bbolt:FILE, or none for JetStream", p.path(), p.Store)
	}
	var end func()
	if cfg.Engine, cfg.Users, end, err = p.connect(ctx, auth.Manager(), engine.Make, at); err != nil {
		return err
	}
	defer end()
	if p.metrics != nil {
		cfg.Metrics = p.metrics.Manager(p.name)
	}
	return manager.Run(ctx, cfg)
}

// connect connects as a role, twice: users have a connection of their own, which the server
// closes in a flood.
func (p *program) connect(ctx context.Context, id auth.ID, open func(context.Context, engine.Config) (*engine.Engine, error), at engine.Config) (e, users *engine.Engine, end func(), err error) {
	at.URL, at.Instance, at.Name = p.URL, p.Instance, p.name
	options, err := auth.Options(p.keys(), id, p.URL)
	if err != nil {
		return nil, nil, nil, err
	}
	at.Options = slices.Concat(options, p.tells())
	if e, err = open(ctx, at); err != nil && ctx.Err() != nil {
		err = exitCode(0) // it was asked to end
	}
	if err != nil {
		return nil, nil, nil, err
	}
	at.Plain, at.Options = true, options
	if users, err = engine.Open(ctx, at); err != nil {
		e.Close()
		return nil, nil, nil, err
	}
	return e, users, func() { users.Close(); e.Close() }, nil
}

// tells logs what is wrong with the connection of a role, thrice and then once a minute: it tries on.
func (p *program) tells() []nats.Option {
	some := rate.Sometimes{First: 3, Interval: time.Minute}
	tell := func(err error) {
		some.Do(func() { p.log.Warn("connection to the server", "url", p.URL, "error", err) })
	}
	return []nats.Option{
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { tell(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { tell(err) }),
	}
}

// remote is where the scheduler is if it is not in the managers.
const remote = "remote"

func runSched(p *program) func(context.Context) error {
	return func(ctx context.Context) error {
		if p.Sched != remote {
			return fmt.Errorf("%s has no \"sched\": %q: the active manager schedules", p.path(), remote)
		}
		return p.schedule(ctx)
	}
}

func (p *program) schedule(ctx context.Context) error {
	e, _, end, err := p.connect(ctx, auth.Sched(), engine.Open, engine.Config{Plain: true})
	if err != nil {
		return err
	}
	defer end()
	return schedule.Run(ctx, schedule.Config{Engine: e, Sched: sched.Config{Policy: sched.EASY{}}, Log: p.log})
}

func runNode(p *program) func(context.Context) error {
	simulate := p.Bool("simulate", false, "run nothing: each task succeeds at once")
	output := p.Int64("output", node.DefaultOutput, "how many `bytes` of the output of a job are kept here; a line says that the rest was dropped; 0: the default")
	return func(ctx context.Context) error {
		set, err := p.ranks()
		if err == nil && idset.Difference(set, p.R.Ranks()).Len() > 0 {
			err = p.wrong("there is no node of rank %v: ranks are %v", idset.Difference(set, p.R.Ranks()), p.R.Ranks())
		}
		if err == nil && *output < 0 {
			err = p.wrong("-output %d: want a number of bytes, or 0 for %d", *output, node.DefaultOutput)
		}
		if err != nil {
			return err
		}
		all, ctx := errgroup.WithContext(ctx)
		for rank := range set.All() {
			all.Go(func() error {
				return p.as(fmt.Sprint("node-", rank)).node(ctx, node.Config{Rank: rank, Simulate: *simulate, MaxOutput: *output})
			})
		}
		return all.Wait()
	}
}

func (p *program) node(ctx context.Context, cfg node.Config) error {
	e, users, end, err := p.connect(ctx, auth.Node(cfg.Rank), engine.Open, engine.Config{Plain: true})
	if err != nil {
		return err
	}
	defer end()
	cfg.Engine, cfg.Users, cfg.Owner, cfg.Dir, cfg.Log = e, users, p.Owner, filepath.Join(p.dir, fmt.Sprint("node-", cfg.Rank)), p.log
	return node.Run(ctx, cfg)
}
