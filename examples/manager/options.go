package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/examples/internal/service/conf"
)

// options is what the command line says.
type options struct {
	store   string // memory, lines, bolt:FILE or dir:PATH
	owner   uint32 // user id of the instance's owner
	config  service.Config
	file    string             // of the configuration; "": none
	socket  string             // path; "": standard input and output
	now     eventlog.Timestamp // 0: the time of the day
	sample  bool
	verbose bool
}

// flags returns the flags that set o.
func (o *options) flags() *flag.FlagSet {
	*o = options{store: "memory", owner: uint32(max(0, os.Getuid()))}
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	f.Func("store", "where jobs are kept: memory, lines, `bolt:FILE` or dir:PATH (default memory)", func(s string) error {
		kind, path, ok := strings.Cut(s, ":")
		switch {
		case !ok && (kind == "memory" || kind == "lines"), path != "" && (kind == "bolt" || kind == "dir"):
			o.store = s
			return nil
		}
		return errors.New("want memory, lines, bolt:FILE or dir:PATH")
	})
	f.StringVar(&o.file, "config", "", "the configuration of the instance, a `FILE` in TOML or JSON; a config-reload replaces it")
	f.Func("owner", "the user `ID` of the instance's owner (default: of the process)", func(s string) error {
		v, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return errors.New("want a user id, such as 1000")
		}
		o.owner = uint32(v)
		return nil
	})
	f.Func("lost", "what becomes of a prolog, an epilog or housekeeping that ran when an earlier process ended:\nfinish, rerun or hold `HOW` (default finish: it has failed, and its nodes are drained)", func(s string) error {
		switch o.config.Lost = service.Lost(s); o.config.Lost {
		case service.LostFinish, service.LostRerun, service.LostHold:
			return nil
		}
		return errors.New("want finish, rerun or hold")
	})
	f.Func("listen", "serve on a socket, `unix:PATH`, instead of standard input and output", func(s string) error {
		path, ok := strings.CutPrefix(s, "unix:")
		if !ok || path == "" {
			return errors.New("want unix:PATH, such as unix:/tmp/manager.sock")
		}
		o.socket = path
		return nil
	})
	f.Func("now", "begin at `SECONDS` since 1970 and take later times from the lines (default: the clock)", func(s string) error {
		t, err := strconv.ParseFloat(s, 64)
		if err != nil || !(t > 0) || math.IsInf(t, 0) {
			return errors.New("want seconds since 1970, such as 1700000000 or 1700000000.5")
		}
		o.now = eventlog.Timestamp(t)
		return nil
	})
	f.BoolVar(&o.sample, "sample", false, "play a recorded conversation, without input; combines with other flags")
	f.BoolVar(&o.verbose, "v", false, "print on standard error what happens to each job")
	return f
}

// parse reads the command line. If there is nothing to do it returns the exit
// status and false.
func (o *options) parse(args []string, stdout, stderr io.Writer) (int, bool) {
	f := o.flags()
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(stdout)
		return exitOK, false
	case err == nil && f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: requests come on standard input, as in: manager < %[1]s", f.Arg(0))
	case err == nil && o.sample && o.socket != "":
		err = errors.New("give either -sample or -listen, not both")
	}
	if err == nil {
		err = o.configure()
	}
	if err != nil {
		fmt.Fprintf(stderr, "manager: %v\nRun manager -h for the flags.\n", err)
		return exitUsage, false
	}
	return exitOK, true
}

// configure completes the configuration.
func (o *options) configure() error {
	o.config.Manager.Owner = o.owner
	o.config.Parse = conf.Parse
	if o.now == 0 {
		o.config.Environ = os.Environ()
	}
	if o.file == "" {
		return nil
	}
	text, err := os.ReadFile(o.file)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		var tables map[string]any
		if err := toml.Unmarshal(text, &tables); err != nil {
			return fmt.Errorf("-config: %s: %w", o.file, err)
		}
		if text, err = json.Marshal(tables); err != nil {
			return fmt.Errorf("-config: %s: %w", o.file, err)
		}
	}
	if o.config, err = conf.Parse(o.config, text); err != nil {
		return fmt.Errorf("-config: %s: %w", o.file, err)
	}
	return nil
}

// usage prints how to use the command, with the beginning of a conversation.
func usage(w io.Writer) {
	fmt.Fprint(w, `usage: manager [flags]

A job manager that answers the requests of a Flux instance, one JSON object on each line,
on standard input and output. It ends when its input does. For example, with > what it
reads and < what it writes:

  > {"topic":"job-manager.raise","matchtag":7,"userid":5588,"rolemask":2,"payload":{"id":16,"severity":0,"type":"cancel"}}
  < {"topic":"job-manager.raise","matchtag":7,"errnum":2,"errstr":"unknown job id"}

Play a whole one with:  manager -sample
Put one in with:        manager < FILE

`)
	var o options
	f := o.flags()
	f.SetOutput(w)
	f.PrintDefaults()
}
