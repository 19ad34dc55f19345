//go:build unix

// Command httpd is a resource manager with an HTTP interface: nodes of this machine that run
// the jobs of one user, with a prolog and an epilog on each node.
//
//	httpd -dir /tmp/httpd -nodes 4 -epilog 'sleep 1' &
//	ask() { path=$1; shift; curl --unix-socket /tmp/httpd/http "http://httpd/$path" "$@"; }
//	ask jobs -d @jobspec.json           # RFC 25, such as jobspec.json in this folder; the answer has the id
//	ask jobs                            # the jobs that are not over
//	ask jobs/ƒuZZybuNNy                 # its state, what it waits for, how it ended
//	ask jobs/ƒuZZybuNNy/log -N          # its eventlog, until the job is over
//	ask jobs/ƒuZZybuNNy -X DELETE       # cancel
//	ask resources                       # all resources, the free ones, the nodes that are down, what each job holds
//
// An answer is JSON, but for the log, which comes at most 0.1 seconds after the event. The
// status is 404 for an unknown job, and 503 if the manager or its store cannot answer: it has
// too much to do, ends, or found damage, or 64 logs are being read. All else that is refused
// has 400, with the reason as text.
//
// # Who may do what
//
// Requests come through a Unix socket that only the user of httpd may use, so whoever asks
// is that user, owns all jobs, and may do all. A port of the loopback would be open to the
// other users of the machine, and to each web page in a browser. For more users let a server
// in front say who asks, and set By in each input. A body has at most 1 MiB, and a client 10
// seconds to send a request.
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
// needs a Unix system. The flag -actions sets more of prologs and epilogs, and housekeeping; a
// duration is a text there (RFC 23):
//
//	-actions '{"epilogs":[{"command":["sleep","1"],"timeout":"5m","per-rank":true}]}'
//
// The nodes, their executor, the loop and the restart are those of package proc, whose
// processes outlive the program.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
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

const (
	maxBody    = 1 << 20
	maxReaders = 64 // of logs
)

var errReaders = fmt.Errorf("%d logs are being read: ask again later", maxReaders)

// timeout is how long a client may take to send a request, and to read what was written.
var timeout = 10 * time.Second

func main() {
	p := proc.New("httpd") // whose tasks may be this program again
	p.Parse("")
	p.Scheduler = sched.New(sched.Config{Policy: sched.EASY{}})
	p.Manager.Hooks = []joblife.Hooks{joblife.Dependencies()}
	p.Manager.Limits.MaxCount = jobstate.Some(100_000)
	p.Exit(1, p.Run(serve))
}

// A server answers requests.
type server struct {
	*proc.Cluster
	readers atomic.Int32 // of logs
}

// serve serves requests until ctx ends.
func serve(ctx context.Context, c *proc.Cluster) error {
	s, mux := &server{Cluster: c}, http.NewServeMux()
	mux.HandleFunc("POST /jobs", answer(s.submit))
	mux.HandleFunc("GET /jobs", answer(s.list))
	mux.HandleFunc("GET /jobs/{id}", answer(s.show))
	mux.HandleFunc("DELETE /jobs/{id}", answer(s.cancel))
	mux.HandleFunc("GET /jobs/{id}/log", s.follow)
	mux.HandleFunc("GET /resources", answer(s.resources))
	l, err := lines.Listen(filepath.Join(c.Program.Dir, "http")) // for this user only
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	h := http.Server{Handler: http.MaxBytesHandler(mux, maxBody), ReadTimeout: timeout, WriteTimeout: 2 * timeout}
	defer context.AfterFunc(ctx, func() { _ = h.Close() })()
	fmt.Println("httpd: requests to", l.Addr())
	err = h.Serve(l)
	return cmp.Or(ctx.Err(), err)
}

type object map[string]any

// answer answers requests with what f returns, as JSON.
func answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if v, err := f(r); err != nil {
			refuse(w, err)
		} else {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v) // the client may be gone
		}
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, joblife.ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, loop.ErrFull), errors.Is(err, loop.ErrEnded), errors.Is(err, boltstore.ErrDamaged), errors.Is(err, errReaders):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, strings.TrimPrefix(err.Error(), "joblife: "), status)
}

func (s *server) submit(r *http.Request) (any, error) {
	text, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the jobspec, which may have %d bytes: %w", maxBody, err)
	case len(text) == 0:
		return nil, errors.New("there is no jobspec: send one in the body")
	}
	job, err := s.Call(r.Context(), joblife.Submit{By: s.Program.User(), Jobspec: text, Urgency: jobstate.UrgencyDefault})
	return object{"id": job.Job.String()}, err
}

func (s *server) cancel(r *http.Request) (any, error) {
	id, err := jobid.Parse(r.PathValue("id"))
	if err == nil {
		_, err = s.Call(r.Context(), joblife.Raise{By: s.Program.User(), ID: id, Type: "cancel"})
	}
	return object{"id": id.String()}, err
}

// list tells of the jobs that are not over.
func (s *server) list(r *http.Request) (any, error) {
	jobs := []object{}
	err := s.View(r.Context(), func(m *joblife.Manager) {
		for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive) {
			jobs = append(jobs, describe(v.Job(), v.R()))
		}
	})
	return jobs, err
}

// describe tells of a job and of the resources that it got.
func describe(job *jobstate.Job, r any) object {
	v := object{"id": job.ID().String(), "state": job.State().String(), "waiting": job.Waiting(), "R": r}
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
	} else if err == nil {
		if job, err = jobstate.Replay(id, stored.Eventlog); err != nil {
			err = fmt.Errorf("%w: %w", boltstore.ErrDamaged, err)
		}
	}
	return stored, job, err
}

func (s *server) show(r *http.Request) (any, error) {
	stored, job, err := s.read(r)
	if err != nil {
		return nil, err
	}
	return describe(job, json.RawMessage(stored.R)), nil
}

// follow writes the log of a job until the job is over. The server does not see that a client has
// gone which sent more after its request, so there is a bound on those who wait.
func (s *server) follow(w http.ResponseWriter, r *http.Request) {
	readers, conn := s.readers.Add(1), http.NewResponseController(w)
	defer s.readers.Add(-1)
	for sent := 0; r.Context().Err() == nil; time.Sleep(time.Second / 10) {
		stored, job, err := s.read(r)
		over := err != nil || job.State() == jobstate.StateInactive || r.Method == http.MethodHead
		if !over && readers > maxReaders {
			err = errReaders
		}
		switch {
		case err != nil && sent > 0:
			panic(http.ErrAbortHandler) // the client sees that this is not the end
		case err != nil:
			refuse(w, err)
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(timeout))
		_, _ = w.Write(stored.Eventlog[sent:]) // Flush tells what goes wrong
		sent = len(stored.Eventlog)
		if conn.Flush() != nil || over {
			return
		}
	}
}

// resources tells what there is, and the part of it that each job holds.
func (s *server) resources(r *http.Request) (v any, err error) {
	err = s.View(r.Context(), func(m *joblife.Manager) {
		p := s.Program.Scheduler.Pool()
		v = object{"all": p.Inventory(), "down": p.Down().Ranks(), "free": p.Available(), "held": maps.Collect(m.Allocated())}
	})
	return v, err
}
