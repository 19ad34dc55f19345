package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/time/rate"

	"github.com/joblife/joblife/examples/cluster/auth"
)

// A Server says where a server is, and those that it makes a cluster with.
type Server struct {
	Name   string   `json:"name"`            // in the cluster, the same after a restart
	URL    string   `json:"url"`             // where clients find it, such as nats://127.0.0.1:4222; port 0: a free one
	Route  string   `json:"route,omitempty"` // where the other servers find it; "": it is alone
	Routes []string `json:"-"`               // of the other servers
	Dir    string   `json:"dir,omitempty"`   // keeps the streams
}

// Serve starts a server in this process: JetStream that syncs each message. It trusts the keys
// in a folder of package auth; "" lets everybody do everything, for tests. Streams do not go over
// from a server that was alone to a cluster: it is an error if Dir has those of one.
func Serve(cfg Server, keys string) (s *server.Server, err error) {
	defer within("server", &err)
	o := &server.Options{JetStream: true, SyncAlways: true, NoSigs: true, MaxPayload: auth.MaxPayload}
	host, port, err := Address(cfg.URL)
	if err == nil && keys != "" {
		o, err = auth.ServerOptions(keys, host)
	}
	if err != nil {
		return nil, err
	}
	if l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(max(port, 0)))); errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: perhaps this instance is up; else end what has the port", err)
	} else if err != nil { // the server would be silent for 10 seconds
		return nil, err
	} else if err := l.Close(); err != nil {
		return nil, err
	}
	o.Host, o.Port, o.JetStreamMaxStore = host, port, 1<<50 // else it is what is free now, so too little when the disk was full

	o.ServerName, o.StoreDir, o.Routes = cfg.Name, cfg.Dir, server.RoutesFromStr(strings.Join(cfg.Routes, ","))
	if cfg.Route != "" {
		o.Cluster.Name = "joblife"
		o.Cluster.Host, o.Cluster.Port, err = Address(cfg.Route)
	}
	if err == nil && cfg.Route != "" && alone(cfg.Dir) {
		err = fmt.Errorf("%s has the streams of a server that was alone, and one of several would remove them: name another folder", cfg.Dir)
	}
	if err != nil {
		return nil, err
	}
	if s, err = server.NewServer(o); err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("it does not start at %s within 10 seconds", cfg.URL)
	}
	return s, nil
}

// alone reports whether a folder has streams, and nothing of a cluster that knows them.
func alone(dir string) bool {
	streams, _ := fs.Glob(os.DirFS(dir), "jetstream/*/streams/*")
	known, _ := fs.Glob(os.DirFS(dir), "jetstream/*/_js_/_meta_")
	return len(streams) > 0 && len(known) == 0
}

// Keep is Serve, until the function that it returns is called. A stream takes no message any more
// once its disk was full or broken, even when there is room: Keep starts the server again then.
func Keep(cfg Server, keys string, log *slog.Logger) (stop func(), err error) {
	s, err := Serve(cfg, keys)
	if err != nil {
		return nil, err
	}
	broken := newEar(log)
	s.SetLogger(broken, false, false)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			stopped := false
			select {
			case <-end:
				stopped = true
			case <-broken.heard:
			}
			s.Shutdown()
			s.WaitForShutdown()
			if stopped {
				return
			}
			time.Sleep(time.Second)
			log.Error("the server starts again")
			if next, err := Serve(cfg, keys); err != nil {
				log.Error(err.Error())
				broken.hear()
			} else {
				s = next
				s.SetLogger(broken, false, false)
			}
		}
	}()
	return func() { close(end); <-ended }, nil
}

// faults is how a server says that it stores no more, before anything is put in: what clients send
// is in the text, and the name of one is in its format, but there after its address.
var faults = regexp.MustCompile(`^(Filestore|RAFT) \[.*\] Critical write error: |^JetStream (out of|being) .*DISABLED`)

// connected is how a server says what is of a connection, which anybody may have.
var connected = regexp.MustCompile(`^\S+ - `)

// An ear passes on a part of what a server says, apart from strangers what it says of itself, and
// hears whether it stores no more.
type ear struct {
	log            *slog.Logger
	heard          chan struct{}
	own, strangers *rate.Limiter
	leftOut        atomic.Int64
}

func newEar(log *slog.Logger) *ear {
	return &ear{log: log, heard: make(chan struct{}, 1), own: rate.NewLimiter(1, 100), strangers: rate.NewLimiter(1, 100)}
}

// maxSaid is how many bytes of what a server says are passed on.
const maxSaid = 512

// Errorf is one of server.Logger, as the others are.
func (e *ear) Errorf(format string, v ...any) {
	fault, some := faults.MatchString(format), e.own
	if connected.MatchString(format) {
		some = e.strangers
	}
	if !fault && !some.Allow() {
		e.leftOut.Add(1)
		return
	}
	text, log := fmt.Sprintf(format, v...), e.log
	if n := e.leftOut.Swap(0); n > 0 {
		log = log.With("left out before", n)
	}
	log.Error(text[:min(len(text), maxSaid)])
	if fault {
		e.hear()
	}
}

func (e *ear) hear() {
	select {
	case e.heard <- struct{}{}:
	default:
	}
}

// Fatalf ends nothing: Serve sees that the server does not start.
func (e *ear) Fatalf(format string, v ...any) { e.Errorf(format, v...) }

// Warnf and the rest say nothing that anybody waits for.
func (*ear) Warnf(string, ...any)   {}
func (*ear) Noticef(string, ...any) {}
func (*ear) Debugf(string, ...any)  {}
func (*ear) Tracef(string, ...any)  {}

// Address returns the host and the port in the URL of a server; -1 is any port that is free.
func Address(text string) (host string, port int, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%s: the port is missing", text)
	}
	return u.Hostname(), cmp.Or(int(n), server.RANDOM_PORT), nil
}
