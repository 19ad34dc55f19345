package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/loop"
	"github.com/joblife/joblife/purge/boltstore"
)

const maxBody = 1 << 20

// timeout is how long a client may take to send a request, and to read a part of an answer.
var timeout = 10 * time.Second

// serve serves requests until ctx ends.
func (s *server) serve(ctx context.Context, socket string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /jobs", answer(s.list))
	mux.HandleFunc("POST /jobs", answer(s.submit))
	mux.HandleFunc("GET /jobs/{id}", answer(s.show))
	mux.HandleFunc("DELETE /jobs/{id}", answer(s.cancel))
	mux.HandleFunc("GET /jobs/{id}/log", s.follow)
	mux.HandleFunc("GET /resources", answer(s.resources))
	l, err := lines.Listen(socket) // for this user only
	if err != nil {
		return err
	}
	h := http.Server{
		Handler: http.MaxBytesHandler(mux, maxBody), ReadTimeout: timeout, WriteTimeout: timeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = h.Close() })()
	fmt.Println("httpd: requests to", socket)
	return h.Serve(l)
}

// answer is a handler that answers in JSON.
func answer(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := do(r)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		warn(json.NewEncoder(w).Encode(v))
	}
}

// refuse says why there is no answer.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, joblife.ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, joblife.ErrInactive):
		status = http.StatusConflict
	case errors.As(err, new(*http.MaxBytesError)):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, boltstore.ErrDamaged):
		status = http.StatusInternalServerError
	case errors.Is(err, loop.ErrFull), errors.Is(err, loop.ErrEnded):
		status = http.StatusServiceUnavailable
	}
	http.Error(w, err.Error(), status)
}

func (s *server) submit(r *http.Request) (any, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	job, err := s.Call(r.Context(), joblife.Submit{By: joblife.Cred{UserID: uid}, Jobspec: text, Urgency: jobstate.UrgencyDefault})
	return map[string]any{"id": job.Job.String()}, err
}

func (s *server) cancel(r *http.Request) (any, error) {
	id, err := jobid.Parse(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	_, err = s.Call(r.Context(), joblife.Raise{ID: id, Type: "cancel"})
	return map[string]any{"id": id.String()}, err
}

// list tells of the jobs that are not over.
func (s *server) list(r *http.Request) (any, error) {
	jobs := []any{}
	err := s.View(r.Context(), func(m *joblife.Manager) {
		for v := range m.Jobs(jobstate.StateNew | jobstate.StateActive) {
			jobs = append(jobs, describe(v.Job()))
		}
	})
	return jobs, err
}

// describe tells of a job.
func describe(job *jobstate.Job) map[string]any {
	v := map[string]any{"id": job.ID().String(), "state": job.State().String(), "waiting": job.Waiting()}
	if result, ok := job.Result(); ok {
		v["result"] = result.String()
	}
	return v
}

// read returns what is durable of a job, which no manager has to be asked for.
func (s *server) read(r *http.Request) (stored boltstore.Job, job *jobstate.Job, err error) {
	id, err := jobid.Parse(r.PathValue("id"))
	if err == nil {
		stored, err = s.store.Read(id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %v", joblife.ErrUnknown, id)
	}
	if err == nil {
		job, err = jobstate.Replay(id, stored.Eventlog)
	}
	return stored, job, err
}

func (s *server) show(r *http.Request) (any, error) {
	stored, job, err := s.read(r)
	if err != nil {
		return nil, err
	}
	v := describe(job)
	v["R"] = json.RawMessage(stored.R)
	return v, nil
}

// follow writes the log of a job until the job is over, or the client is gone.
func (s *server) follow(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	for sent := 0; ; {
		next := *s.events.Load() // before the read
		stored, job, err := s.read(r)
		if err != nil && sent == 0 {
			refuse(w, err)
		}
		if err != nil || control.SetWriteDeadline(time.Now().Add(timeout)) != nil {
			return
		}
		if _, err := w.Write(stored.Eventlog[sent:]); err != nil || control.Flush() != nil || job.State() == jobstate.StateInactive {
			return
		}
		sent = len(stored.Eventlog)
		select {
		case <-next:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *server) resources(r *http.Request) (v any, err error) {
	err = s.View(r.Context(), func(m *joblife.Manager) {
		p, held := s.scheduler.Pool(), []any{}
		for h := range m.Holders() {
			held = append(held, map[string]any{"job": h.Job.String(), "by": h.Kind.String() + " " + h.Description, "ranks": h.Ranks})
		}
		for id, r := range m.Allocated() {
			if _, ok := m.Job(id); !ok {
				held = append(held, map[string]any{"job": id.String(), "by": "a job that cannot be read", "ranks": r.Ranks()})
			}
		}
		v = map[string]any{"all": p.Inventory(), "down": p.Down().Ranks(), "free": p.Available(), "held": held}
	})
	return v, err
}
