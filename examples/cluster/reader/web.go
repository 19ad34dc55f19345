package reader

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"embed"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/jobstate/jobid"
)

const (
	askTime   = 2 * time.Second // for the manager to answer
	askEvery  = time.Second     // an answer of it is good for so long, and the use of the cores
	maxLive   = 64              // pages that are live at once, and of strangers about half
	liveEvery = time.Second
	aliveFor  = 10 * time.Second // a page is fetched again that often though the log says nothing
)

var (
	//go:embed page.html page.css page.js
	files embed.FS

	pages = template.Must(template.New("").Funcs(template.FuncMap{"ago": ago, "clock": clock, "took": took}).ParseFS(files, "page.html"))
)

// web is the web page. Who does not have the token sees counts: what "cluster status" tells
// each user.
type web struct {
	live chan struct{}

	asking  sync.Mutex
	answers map[string]reply
	use     *use
	used    time.Time // when use was computed
}

type reply struct {
	wire.Answer
	err error
	at  time.Time
}

// serve serves HTTP, and returns a function that ends that.
func (r *reader) serve(ctx context.Context) (stop func()) {
	r.live, r.answers = make(chan struct{}, maxLive), make(map[string]reply)
	r.Metrics.MustRegister(seen{r})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", r.Metrics.Handler())
	mux.HandleFunc("GET /{$}", r.home)
	mux.HandleFunc("GET /job/{id}", r.job)
	mux.HandleFunc("GET /live", r.lives)
	mux.Handle("GET /page.css", http.FileServerFS(files))
	mux.Handle("GET /page.js", http.FileServerFS(files))
	s := &http.Server{
		Handler:           r.guard(mux),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(r.Listener)
	}()
	return func() { _ = s.Close(); <-done }
}

// cookie is its name: browsers keep cookies by host, not by port.
func (r *reader) cookie() string {
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	return "joblife_" + port
}

// knows reports whether somebody has the token.
func (r *reader) knows(text string) bool {
	return r.Token != "" && subtle.ConstantTimeCompare([]byte(text), []byte(r.Token)) == 1
}

func (r *reader) allowed(req *http.Request) bool {
	c, err := req.Cookie(r.cookie())
	return err == nil && r.knows(c.Value)
}

// guard sets what all answers have, and has a browser remember the token.
func (r *reader) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; style-src 'self'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if r.knows(req.URL.Query().Get("token")) {
			http.SetCookie(w, &http.Cookie{Name: r.cookie(), Value: r.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, req, req.URL.Path, http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// ask asks the manager as the owner.
func (r *reader) ask(ctx context.Context, verb string) (wire.Answer, error) {
	if r.Client == nil {
		return wire.Answer{}, fmt.Errorf("this reader does not ask the manager")
	}
	r.asking.Lock()
	defer r.asking.Unlock()
	if a, ok := r.answers[verb]; ok && time.Since(a.at) < askEvery {
		return a.Answer, a.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	var a reply
	a.Answer, a.err = r.Client.Ask(ctx, verb, wire.Request{})
	a.at = time.Now()
	r.answers[verb] = a
	return a.Answer, a.err
}

// uses returns the use of the cores, for which it looks at the jobs once in askEvery: meanwhile none
// that ends is noted.
func (r *reader) uses(active []wire.JobInfo) *use {
	r.asking.Lock()
	defer r.asking.Unlock()
	if time.Since(r.used) >= askEvery {
		r.use = r.utilization(time.Now(), active)
		r.used = time.Now()
	}
	return r.use
}

func (r *reader) home(w http.ResponseWriter, req *http.Request) {
	if !r.ready.Load() {
		http.Error(w, "the reader reads the log; come again soon", http.StatusServiceUnavailable)
		return
	}
	r.render(w, "home", r.overview(req.Context(), r.allowed(req)))
}

func (r *reader) job(w http.ResponseWriter, req *http.Request) {
	id, err := jobid.Parse(req.PathValue("id"))
	switch {
	case !r.allowed(req):
		http.Error(w, "a job is shown to who has the token of the page", http.StatusForbidden)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		p, err := r.onePage(req.Context(), id)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		r.render(w, "job", p)
	}
}

func (r *reader) render(w http.ResponseWriter, name string, data any) {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name, data); err != nil {
		r.Log.Error("page", "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes())
}

// lives tells a page when to look again: the log has grown, or some time went by.
func (r *reader) lives(w http.ResponseWriter, req *http.Request) {
	live := r.live
	if !r.allowed(req) && len(live) >= maxLive/2 {
		live = nil
	}
	select {
	case live <- struct{}{}:
		defer func() { <-r.live }()
	default:
		http.Error(w, "too many pages are live", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	seq, said := r.seq.Load(), time.Now()
	for {
		err := out.SetWriteDeadline(time.Now().Add(time.Minute))
		if err := cmp.Or(err, out.Flush()); err != nil {
			return
		}
		select {
		case <-req.Context().Done():
			return
		case <-tick.C:
		}
		if now := r.seq.Load(); now != seq || time.Since(said) > aliveFor {
			seq, said = now, time.Now()
			if _, err := fmt.Fprintf(w, "data: %d\n\n", seq); err != nil {
				return
			}
		}
	}
}
