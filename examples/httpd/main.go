//go:build unix

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
// the environment of httpd, and its output is that of httpd. Jobs, prologs, epilogs and
// housekeeping have the job's id in FLUX_JOB_ID and the rank of their node in JOBLIFE_RANK. It
// needs a Unix system. In -actions a duration is a text (RFC 23), such as "release-after":"0".
//
// The nodes, their executor, the loop and the restart are those of package proc, whose
// processes outlive the program.
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
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/proc"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset/sched"
)

const maxBody = 1 << 20

// timeout is how long a client may take to send a request, and to read a part of an answer.
var timeout = 10 * time.Second

func main() {
	p := proc.New("httpd") // whose tasks may be this program again
	flag.Parse()
	if flag.NArg() > 0 {
		p.Exit(2, fmt.Errorf("%q: there is no argument but flags", flag.Arg(0)))
	}
	s := &server{events: make(chan struct{})}
	p.Scheduler = sched.New(sched.Config{Policy: sched.EASY{}})
	p.Manager.Hooks = []joblife.Hooks{joblife.Dependencies()}
	p.Manager.Limits.MaxCount = jobstate.Some(100_000)
	p.Journal = func([]joblife.JournalEntry) {
		close(s.events) // wakes those who follow a log
		s.events = make(chan struct{})
	}
	p.Exit(1, p.Run(s.serve))
}

// A server is a manager, and who asks it.
type server struct {
	*proc.Cluster
	events chan struct{} // is closed when there are more; only the Loop uses it, in a View too
}

// serve serves requests until ctx ends.
func (s *server) serve(ctx context.Context, c *proc.Cluster) error {
	s.Cluster = c
	mux := http.NewServeMux()
	for pattern, do := range map[string]func(http.ResponseWriter, *http.Request) (any, error){
		"GET /jobs": s.list, "POST /jobs": s.submit, "GET /jobs/{id}": s.show, "DELETE /jobs/{id}": s.cancel,
		"GET /jobs/{id}/log": s.follow, "GET /resources": s.resources,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if v, err := do(w, r); err != nil {
				http.Error(w, err.Error(), status(err))
			} else if v != nil {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(v) // the client may be gone
			}
		})
	}
	l, err := lines.Listen(filepath.Join(c.Program.Dir, "http")) // for this user only
	if err != nil {
		return err
	}
	h := http.Server{
		Handler: http.MaxBytesHandler(mux, maxBody), ReadTimeout: timeout, WriteTimeout: timeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = h.Close() })()
	fmt.Println("httpd: requests to", l.Addr())
	err = h.Serve(l)
	return cmp.Or(ctx.Err(), err)
}

// status is how HTTP says why there is no answer.
func status(err error) int {
	switch {
	case errors.Is(err, joblife.ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, joblife.ErrInactive):
		return http.StatusConflict
	case errors.As(err, new(*http.MaxBytesError)):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, boltstore.ErrDamaged):
		return http.StatusInternalServerError
	case errors.Is(err, loop.ErrFull), errors.Is(err, loop.ErrEnded):
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

type object map[string]any

func (s *server) submit(_ http.ResponseWriter, r *http.Request) (any, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	by := joblife.Cred{UserID: s.Program.Manager.Owner}
	job, err := s.Call(r.Context(), joblife.Submit{By: by, Jobspec: text, Urgency: jobstate.UrgencyDefault})
	return object{"id": job.Job.String()}, err
}

func (s *server) cancel(_ http.ResponseWriter, r *http.Request) (any, error) {
	id, err := jobid.Parse(r.PathValue("id"))
	if err == nil {
		_, err = s.Call(r.Context(), joblife.Raise{ID: id, Type: "cancel"})
	}
	return object{"id": id.String()}, err
}

// list tells of the jobs that are not over.
func (s *server) list(_ http.ResponseWriter, r *http.Request) (any, error) {
	jobs := []object{}
	err := s.View(r.Context(), func(m *joblife.Manager) {
		for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive) {
			jobs = append(jobs, describe(v.Job()))
		}
	})
	return jobs, err
}

func describe(job *jobstate.Job) object {
	v := object{"id": job.ID().String(), "state": job.State().String(), "waiting": job.Waiting()}
	if result, ok := job.Result(); ok {
		v["result"] = result.String()
	}
	return v
}

// read returns what is durable of a job, which no manager has to be asked for.
func (s *server) read(r *http.Request) (stored boltstore.Job, job *jobstate.Job, err error) {
	id, err := jobid.Parse(r.PathValue("id"))
	if err == nil {
		stored, err = s.Store.Read(id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %v", joblife.ErrUnknown, id)
	}
	if err == nil {
		job, err = jobstate.Replay(id, stored.Eventlog)
	}
	return stored, job, err
}

func (s *server) show(_ http.ResponseWriter, r *http.Request) (any, error) {
	stored, job, err := s.read(r)
	if err != nil {
		return nil, err
	}
	v := describe(job)
	v["R"] = json.RawMessage(stored.R)
	return v, nil
}

// follow writes the log of a job until the job is over, or the client is gone.
func (s *server) follow(w http.ResponseWriter, r *http.Request) (any, error) {
	control := http.NewResponseController(w)
	for sent := 0; ; {
		var next chan struct{}
		err := s.View(r.Context(), func(*joblife.Manager) { next = s.events }) // before the read
		stored, job, unread := s.read(r)
		switch err = cmp.Or(err, unread); {
		case err != nil && sent > 0:
			panic(http.ErrAbortHandler) // the client sees that this is not the end
		case err != nil:
			return nil, err
		}
		_ = control.SetWriteDeadline(time.Now().Add(timeout)) // Flush tells what goes wrong
		_, _ = w.Write(stored.Eventlog[sent:])
		if control.Flush() != nil || job.State() == jobstate.StateInactive {
			return nil, nil
		}
		sent = len(stored.Eventlog)
		select {
		case <-next:
		case <-r.Context().Done():
		}
	}
}

func (s *server) resources(_ http.ResponseWriter, r *http.Request) (v any, err error) {
	err = s.View(r.Context(), func(m *joblife.Manager) {
		p, held := s.Program.Scheduler.Pool(), []object{}
		for h := range m.Holders() {
			held = append(held, object{"job": h.Job.String(), "by": strings.TrimSpace(h.Kind.String() + " " + h.Description), "ranks": h.Ranks})
		}
		for id, r := range m.Allocated() {
			if _, ok := m.Job(id); !ok {
				held = append(held, object{"job": id.String(), "by": "a job that cannot be read", "ranks": r.Ranks()})
			}
		}
		v = object{"all": p.Inventory(), "down": p.Down().Ranks(), "free": p.Available(), "held": held}
	})
	return v, err
}
