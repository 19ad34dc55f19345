package lines

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/joblife/joblife/eventlog"
)

// Exit statuses.
const (
	ExitOK    = 0
	ExitFault = 1 // the peer or a store failed, or lines were refused
	ExitUsage = 2
)

// ErrRefused says that lines were refused, which is no reason to end. The program has told
// why.
var ErrRefused = errors.New("lines were refused")

// Options are the flags of every program.
type Options struct {
	Socket  string             // path; "": standard input and output
	Now     eventlog.Timestamp // 0: the time of the day
	Sample  bool
	Verbose bool
}

// A Program is a command that speaks in lines.
type Program struct {
	Name     string
	About    string        // what -h prints before the flags
	Later    string        // where later times come from with -now
	Flags    *flag.FlagSet // those beside Options
	Options  *Options      // to set
	Complete func() error  // reads what the flags name; nil: nothing

	Sample string // a transcript
	Begin  func(out, stderr io.Writer) (Peer, error)
	Serve  func(ctx context.Context, in io.Reader, out, stderr io.Writer) error
	// Accept serves those who connect until ctx is done, and closes the listener. It calls
	// ready when they are welcome.
	Accept func(ctx context.Context, l net.Listener, ready func(), stderr io.Writer) error
	// Attach serves a running Flux, with -flux. Nil: it does not.
	Attach func(ctx context.Context, stderr io.Writer) error
}

// Attaches defines -flux, which sets Attach.
func (p *Program) Attaches(about string, attach func(ctx context.Context, uri string, stderr io.Writer) error) {
	p.Flags.BoolFunc("flux", about+".\n-flux=`URI` names the instance (default: that of the environment)", func(uri string) error {
		if uri == "true" {
			uri = ""
		}
		p.Attach = func(ctx context.Context, stderr io.Writer) error { return attach(ctx, uri, stderr) }
		return nil
	})
}

// Main is the main function of a program. create makes one; each has its own options.
func Main(create func() *Program) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills
	os.Exit(Run(ctx, create, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Run is Main without the process around it. It returns the exit status.
func Run(ctx context.Context, create func() *Program, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := create()
	status, ok := p.Parse(args, stdout, stderr)
	if !ok {
		return status
	}
	var err error
	switch {
	case p.Options.Sample:
		err = PlaySample(create, args, stdout)
	case p.Attach != nil:
		signal.Ignore(syscall.SIGPIPE) // it goes on when nobody reads what it says
		err = p.Attach(ctx, stderr)
	case p.Options.Socket != "":
		var l net.Listener
		if l, err = Listen(p.Options.Socket); err == nil {
			ready := func() { fmt.Fprintf(stdout, "%s: listening on unix:%s\n", p.Name, p.Options.Socket) }
			err = p.Accept(ctx, l, ready, stderr)
		} else {
			err = fmt.Errorf("-listen: %w", err)
		}
	case !Piped(stdin):
		fmt.Fprint(stdout, p.help())
		p.Flags.SetOutput(stdout)
		p.Flags.PrintDefaults()
	default:
		err = p.Serve(ctx, stdin, stdout, stderr)
	}
	switch {
	case errors.Is(err, ErrRefused):
		return ExitFault
	case err != nil:
		p.tell(stderr, err)
		return ExitFault
	}
	return ExitOK
}

// Parse reads the command line. If there is nothing to do it returns the exit status and
// false.
func (p *Program) Parse(args []string, stdout, stderr io.Writer) (int, bool) {
	p.flags()
	err := ParseFlags(p.Flags, args, stdout, p.help())
	switch {
	case err != nil:
	case p.Flags.NArg() > 0 && p.Attach != nil:
		err = fmt.Errorf("unexpected argument %q: flags begin with -, and an instance is named as in -flux=URI", p.Flags.Arg(0))
	case p.Flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: requests come on standard input, as in: %s < %[1]s", p.Flags.Arg(0), p.Name)
	case p.Options.Sample && p.Options.Socket != "":
		err = errors.New("give either -sample or -listen, not both")
	case p.Attach != nil && (p.Options.Sample || p.Options.Socket != "" || p.Options.Now != 0):
		err = errors.New("-flux goes with none of -listen, -now and -sample")
	}
	if err != nil {
		return Refuse(stderr, p.Name, err), false
	}
	if p.Complete != nil {
		if err := p.Complete(); err != nil {
			p.tell(stderr, err)
			return ExitFault, false
		}
	}
	return ExitOK, true
}

// flagged begins an error of what a flag names, with the name of a package behind it.
var flagged = regexp.MustCompile(`^(-[a-z]+: )(flux|joblife|boltstore|dirstore|logfile): `)

// tell tells an error.
func (p *Program) tell(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "%s: %s\n", p.Name, Escape(flagged.ReplaceAllString(err.Error(), "$1")))
}

func (p *Program) flags() {
	o := p.Options
	p.Flags.Func("listen", "serve on a socket, `unix:PATH`, instead of standard input and output", func(s string) error {
		path, ok := strings.CutPrefix(s, "unix:")
		if !ok || path == "" {
			return errors.New("want unix:PATH, such as unix:/tmp/" + p.Name + ".sock")
		}
		o.Socket = path
		return nil
	})
	p.Flags.Func("now", "begin at `SECONDS` since 1970 and take later times from "+p.Later+" (default: the clock)", func(s string) error {
		t, err := strconv.ParseFloat(s, 64)
		if err != nil || !(t > 0) || math.IsInf(t, 0) {
			return errors.New("want seconds since 1970, such as 1700000000 or 1700000000.5")
		}
		o.Now = eventlog.Timestamp(t)
		return nil
	})
	p.Flags.BoolVar(&o.Sample, "sample", false, "play a recorded conversation, without input; combines with other flags")
	p.Flags.BoolVar(&o.Verbose, "v", false, "print on standard error what happens to each job")
}

// help says how to use the command, with the beginning of a conversation.
func (p *Program) help() string {
	return fmt.Sprintf("usage: %s [flags]\n\n%s\nPlay a whole one with:  %[1]s -sample\nPut one in with:        %[1]s < FILE\n\n", p.Name, p.About)
}

// Piped reports whether somebody feeds standard input: it is a pipe or a file,
// not a terminal, a device or nothing.
func Piped(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}
