package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/examples/internal/service/conf"
	"github.com/joblife/joblife/jobstate/jobid"
)

// options is what the command line says.
type options struct {
	lines.Options
	store  string // memory, lines, bolt:FILE or dir:PATH
	owner  uint32 // user id of the instance's owner
	aside  []jobid.ID
	config service.Config
	file   string // of the configuration; "": none
	text   []byte // of it, as JSON
	ready  bool   // tell clients when requests are served
}

// program returns the program with these options, which its flags set.
func (o *options) program() *lines.Program {
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
	f.BoolVar(&o.ready, "ready", false, "write a line to each client when requests are served")
	f.Func("put-aside", "the `ID` of a job that cannot be read: it goes to lost+found, and its nodes are free.\nWithout this it stays, and each start tells of it", func(s string) error {
		id, err := jobid.Parse(s)
		if err != nil {
			return errors.New("want the id of a job, such as ƒuZZybuNNy")
		}
		o.aside = append(o.aside, id)
		return nil
	})
	program := &lines.Program{
		Name: "manager", About: about, Later: "the lines", Flags: f, Options: &o.Options, Complete: o.configure,
		Sample: sample, Serve: o.serve, Accept: o.accept,
		Begin: func(out, stderr io.Writer) (lines.Peer, error) {
			p, err := newProcess(*o, stderr)
			if err != nil {
				return nil, err
			}
			p.only(out)
			p.start()
			return p, nil
		},
	}
	program.Attaches("attach to a running Flux: its job manager is this program, and -store lines its KVS", o.attach)
	return program
}

// configure completes the configuration.
func (o *options) configure() error {
	o.config.Manager.Owner = o.owner
	o.config.Parse = conf.Parse
	if o.Now == 0 {
		o.config.Environ = slices.DeleteFunc(os.Environ(), func(v string) bool { // as the broker has it
			return strings.HasPrefix(v, workerVariable+"=") || strings.HasPrefix(v, flux.ModuleURI+"=")
		})
		o.config.ASCII = flux.ASCII(os.LookupEnv)
	}
	if o.file == "" || os.Getenv(workerVariable) != "" { // a keeper has read it
		return nil
	}
	text, err := readConfig(o.file)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		var tables map[string]any
		bad := new(toml.DecodeError)
		if err = toml.Unmarshal(text, &tables); err == nil {
			text, err = json.Marshal(tables)
		} else if errors.As(err, &bad) {
			line, column := bad.Position()
			err = fmt.Errorf("line %d, column %d: %s", line, column, strings.TrimPrefix(err.Error(), "toml: "))
		}
	}
	if err == nil {
		o.config, err = conf.Parse(o.config, text)
	}
	if err != nil {
		return fmt.Errorf("-config: %s: %w", o.file, err)
	}
	o.text = text
	return nil
}

// about tells how to use the command, with the beginning of a conversation.
const about = `A job manager that answers the requests of a Flux instance, one JSON object on each line,
on standard input and output. It ends when its input does. For example, with > what it
reads and < what it writes:

  > {"topic":"job-manager.raise","matchtag":7,"userid":5588,"rolemask":2,"payload":{"id":16,"severity":0,"type":"cancel"}}
  < {"topic":"job-manager.raise","matchtag":7,"errnum":2,"errstr":"unknown job id"}
`

//go:embed testdata/sample.txt
var sample string

// Take takes a line of a transcript.
func (p *process) Take(l lines.Line) error {
	p.handle(p.clients[0], l)
	return p.failed
}

// End ends the transcript.
func (p *process) End() error {
	p.stop()
	p.hangUp()
	return p.end()
}

// maxConfig is how long a configuration may be. A text of TOML is read in time and memory
// that follow the square of its length.
const maxConfig = 64 << 10

// readConfig reads a file with a configuration.
func readConfig(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = fmt.Errorf("%s: more than %d KiB, which no configuration has", name, maxConfig>>10)
	}
	return text, err
}
