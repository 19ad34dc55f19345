//go:build unix

// Command cluster is a resource manager for many machines, on NATS JetStream.
//
//	cluster up &                  # a server, a manager, a standby and 8 nodes on this machine
//	cluster run -N 2 hostname     # runs a job, and prints its output
//	cluster submit -N 8 sleep 60  # prints its id
//	cluster jobs
//
// [README.md] says how it is built, what is guaranteed, and how to run it on many machines.
//
// [README.md]: https://pkg.go.dev/github.com/joblife/joblife/examples/cluster
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/metrics"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/examples/internal/files"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

// A file is cluster.json: what all processes of an instance have to know.
type file struct {
	URL      string         `json:"url"`
	Instance wire.Instance  `json:"instance"`
	Owner    uint32         `json:"owner"`
	R        *rset.R        `json:"R"` // the inventory
	Actions  perilog.Config `json:"actions"`
	Store    string         `json:"store,omitempty"` // "bbolt:FILE": the records are there, and not in JetStream
	Sched    string         `json:"sched,omitempty"` // "remote": processes of "cluster sched" schedule, and no manager
	// Servers, if there are any, make a cluster, in which each stream has Replicas.
	Servers  []engine.Server `json:"servers,omitempty"`
	Replicas int             `json:"replicas,omitempty"`
}

// A program is one call of this command.
type program struct {
	*flag.FlagSet
	file
	dir  string
	json bool
	log  *slog.Logger
	name string // of this process, never used before

	metrics *metrics.Set // nil: nobody looks
}

// A command is a word after cluster.
type command struct {
	args, help string
	define     func(*program) func(context.Context) error // defines flags
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"init":       {"", "make an instance: its keys, and the file for all machines", initialize},
		"user":       {"add UID", "sign the credential of a user", user},
		"up":         {"", "start an instance on this machine", up},
		"nats":       {"[NAME]", "run a server: the one of the instance, or one of several", serveNATS},
		"manager":    {"", "run a manager: active, or standing by", runManager},
		"node":       {"RANKS", "run a node, or several", runNode},
		"sched":      {"", "run a scheduler apart from the managers: of an instance of -sched remote", runSched},
		"reader":     {"", "run a reader: archive, snapshots, history, web page and metrics", runReader},
		"submit":     {"COMMAND...", "submit a job, and print its id", submit},
		"run":        {"COMMAND...", "run a job, with its output and exit status", run},
		"jobs":       {"", "list jobs", jobs},
		"job":        {"ID", "tell of a job: why it waits, what holds its nodes, its events", job},
		"wait":       {"ID", "wait until a job is over, and exit as it did", wait},
		"watch":      {"[ID]", "print events as they come", watch},
		"log":        {"ID", "print the output of a job", output},
		"cancel":     {"ID...", "cancel jobs", cancel},
		"urgency":    {"ID N", "set the urgency of a job: 0 holds it, 16 is the default", urgency},
		"nodes":      {"", "list nodes, and what holds them", listNodes},
		"drain":      {"RANKS", "take nodes out of service", onRanks("drain", "why, for those who ask: up to 256 bytes")},
		"resume":     {"RANKS", "put nodes back into service", onRanks("resume", "")},
		"lost":       {"RANKS", "say that nothing runs on nodes that are down: they are powered off, or fenced", onRanks("lost", "how that is known, for the logs of the jobs")},
		"purge":      {"", "purge jobs that are over", purgeJobs},
		"takeover":   {"", "end the active manager in order, so that a standby takes over", takeover},
		"top":        {"", "show status, nodes and jobs again and again", top},
		"status":     {"", "tell of the active manager", status},
		"completion": {"", "print the completion for bash: source <(cluster completion)", completion},
	}
}

func main() {
	proc.Shim()
	os.Exit(exit(start(os.Args[1:])))
}

// exit tells of an error, and returns the status: 2 for a wrong command line, 1 for a fault.
func exit(err error) int {
	var code exitCode
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(os.Stderr, "cluster:", strings.TrimSpace(packages.ReplaceAllString(line, "$1")))
	}
	if errors.As(err, &wrong) {
		fmt.Fprintf(os.Stderr, "Run %s -h for the flags.\n", wrong.of)
		return 2
	}
	return 1
}

// packages are names with which errors begin, of which users know nothing.
var packages = regexp.MustCompile(`(^|refused: )((cluster|auth|boltstore|engine|joblife|manager|node|reader|schedule): )+`)

// A usageError is a wrong command line of a command.
type usageError struct{ of, text string }

func (e usageError) Error() string { return e.text }

// wrong returns an error of the command line.
func (p *program) wrong(format string, args ...any) error {
	return usageError{p.Name(), fmt.Sprintf(format, args...)}
}

// An exitCode is how this program ends when that is not an error of its own.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprint("exit status ", int(c)) }

func start(args []string) error {
	if len(args) == 0 {
		return usageError{"cluster", "name a command, such as up, submit or jobs"}
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		usage()
		return flag.ErrHelp
	}
	c, ok := commands[args[0]]
	if !ok {
		return usageError{"cluster", fmt.Sprintf("there is no command %q", args[0])}
	}
	p := &program{FlagSet: flag.NewFlagSet("cluster "+args[0], flag.ContinueOnError)}
	p.SetOutput(io.Discard)
	p.Usage = func() {}
	p.StringVar(&p.dir, "dir", cmp.Or(os.Getenv("CLUSTER_DIR"), usual()), "the `folder` of the instance, or $CLUSTER_DIR")
	p.StringVar(&p.URL, "nats", "", "the `URL` of the server; empty: that of the folder")
	p.BoolVar(&p.json, "json", false, "print JSON")
	f := c.define(p)
	switch err := p.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Printf("usage: cluster %s [flags] %s\n%s\n", args[0], c.args, c.help)
		p.SetOutput(os.Stdout)
		p.PrintDefaults()
		return err
	case err != nil:
		return p.wrong("%v", err)
	}
	if err := p.words(c.args); err != nil {
		return err
	}
	url := p.URL
	if !slices.Contains([]string{"init", "up", "completion"}, args[0]) {
		if err := p.read(); err != nil {
			return err
		}
	}
	p.URL = cmp.Or(url, p.URL)
	host, _ := os.Hostname()
	p.name = fmt.Sprintf("%s-%s-%d-%d", args[0], strings.ReplaceAll(host, ".", "-"), os.Getpid(), time.Now().UnixNano()%1e6)
	p.log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("role", args[0])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal ends the program at once
	return f(ctx)
}

// words refuses what a command would leave out: words that it does not take, and flags behind a
// word, which are not parsed. A command of a job has flags of its own.
func (p *program) words(args string) error {
	n := len(strings.Fields(args))
	for i, word := range p.Args() {
		switch {
		case args == "COMMAND...":
		case strings.HasPrefix(word, "-"):
			return p.wrong("%q is behind a word: want flags before", word)
		case i >= n && !strings.HasSuffix(args, "..."):
			return p.wrong("%q is too much: want %s", word, cmp.Or(args, "no words"))
		}
	}
	return nil
}

func usage() {
	fmt.Println("usage: cluster COMMAND [flags] [arguments]")
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		fmt.Printf("  %-10s %s\n", name, commands[name].help)
	}
	fmt.Println("cluster COMMAND -h prints the flags of a command")
}

func completion(*program) func(context.Context) error {
	return func(context.Context) error {
		_, err := fmt.Printf(completer, strings.Join(slices.Sorted(maps.Keys(commands)), " "))
		return err
	}
}

// completer completes commands and their flags, and leaves the rest to bash.
const completer = `_cluster() {
  local word=${COMP_WORDS[COMP_CWORD]} words=
  if [ "$COMP_CWORD" = 1 ]; then words=%q
  elif [[ $word == -* ]]; then words=$("${COMP_WORDS[0]}" "${COMP_WORDS[1]}" -h 2>/dev/null | sed -n 's/^  \(-[A-Za-z-]*\).*/\1/p')
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _cluster cluster
`

// usual is the folder of an instance if none is named.
func usual() string { return filepath.Join(os.TempDir(), fmt.Sprint("joblife-cluster-", os.Getuid())) }

func (p *program) path() string { return filepath.Join(p.dir, "cluster.json") }

// read reads the file of the instance. Anybody can make the usual folder first: it must be this
// user's. A folder that is named may be that of the owner of the instance.
func (p *program) read() (err error) {
	if filepath.Clean(p.dir) == usual() {
		err = files.Private(p.dir)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(p.path())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: start an instance here with cluster up, or name its folder with -dir", p.path(), fs.ErrNotExist)
	}
	if err == nil {
		err = json.Unmarshal(text, &p.file)
	}
	if err == nil && (p.file.URL == "" || p.Instance == "" || p.R == nil) {
		err = errors.New("it lacks url, instance or R: take the file that cluster init has made")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.path(), err)
	}
	return nil
}

// write writes the file of a new instance.
func (p *program) write() error {
	text, err := json.MarshalIndent(p.file, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(p.path(), append(text, '\n'))
}

// client connects as the user.
func (p *program) client() (*client.Client, error) {
	uid := uint32(os.Getuid())
	options, err := auth.Options(p.keys(), auth.User(uid), p.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: the owner of the instance makes one by cluster user add %d", err, uid)
	}
	return client.Open(p.URL, p.Instance, uid, options...)
}

// config is the Manager's. MaxLog is what an answer has room for, the owner's twice as much too.
func (p *program) config() joblife.Config {
	return joblife.Config{Owner: p.Owner, Private: true, Epoch: time.Unix(1_700_000_000, 0), Actions: p.Actions, MaxJobspec: auth.UserMaxPayload - 4<<10, MaxLog: 1 << 20}
}

// alike returns nodes that are alike.
func alike(nodes, cores int) (*rset.R, error) {
	if min(nodes, cores) < 1 || max(nodes, cores) > 1<<20 {
		return nil, fmt.Errorf("nodes and cores: want numbers from 1 to %d", 1<<20)
	}
	return rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, uint32(nodes-1)), Children: map[string]*idset.Set{"core": idset.Range(0, uint32(cores-1))},
	}}})
}
