//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/metrics"
	"github.com/joblife/joblife/examples/cluster/reader"
	"github.com/joblife/joblife/examples/internal/files"
)

// readerFlags defines the flags of a reader, and returns what runs it.
func (p *program) readerFlags() func(context.Context, *program) error {
	var cfg reader.Config
	p.Uint64Var(&cfg.SnapshotMessages, "snapshot-messages", 100_000, "make a snapshot after so many messages of the log")
	p.Uint64Var(&cfg.SnapshotBytes, "snapshot-bytes", 64<<20, "make a snapshot after so many bytes of records, if the one before had fewer")
	at := p.String("http", "127.0.0.1:0", "the `address` of the web page and of /metrics, plain HTTP; empty: none")
	return func(ctx context.Context, p *program) error {
		if p.Store != "" {
			return fmt.Errorf("the records are in %s: a reader follows those in JetStream", p.Store)
		}
		e, users, end, err := p.connect(ctx, auth.Reader(), engine.Open, engine.Config{})
		if err != nil {
			return err
		}
		defer end()
		cfg := cfg
		cfg.Engine, cfg.Users, cfg.Owner, cfg.Nodes, cfg.Log, cfg.Metrics = e, users, p.Owner, p.R, p.log, p.metrics
		if *at == "" {
			return reader.Run(ctx, cfg)
		}
		if cfg.Token, err = p.token(); err != nil {
			return err
		}
		options, err := auth.Options(p.keys(), auth.User(p.Owner), p.URL)
		if err == nil {
			cfg.Client, err = client.Open(p.URL, p.Instance, p.Owner, append(options, nats.IgnoreAuthErrorAbort())...)
		}
		if err != nil {
			p.log.Warn("the page shows no nodes and active jobs: that needs the credential of the owner", "error", err)
		} else {
			defer cfg.Client.Close()
		}
		if cfg.Listener, err = net.Listen("tcp", *at); err != nil {
			return fmt.Errorf("-http: %w", err)
		}
		page := fmt.Sprintf("http://%s/?token=%s", cfg.Listener.Addr(), cfg.Token)
		_ = p.print(page, fmt.Sprintf("cluster: %s shows jobs and nodes; without the token, counts", page))
		return reader.Run(ctx, cfg)
	}
}

func runReader(p *program) func(context.Context) error {
	run := p.readerFlags()
	return func(ctx context.Context) error { return run(ctx, p) }
}

// token returns what opens the web page, made by the first reader of the folder.
func (p *program) token() (string, error) {
	path := filepath.Join(p.dir, "reader.token")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = files.Create(path, []byte(rand.Text()+"\n")); err == nil || errors.Is(err, fs.ErrExist) { // another was faster
			text, err = os.ReadFile(path)
		}
	}
	token := strings.TrimSpace(string(text))
	if err == nil && token == "" {
		err = fmt.Errorf("%s is empty: remove it, and the reader makes another", path)
	}
	return token, err
}

// serveMetrics serves /metrics, until ctx ends.
func serveMetrics(ctx context.Context, at string, set *metrics.Set) error {
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return fmt.Errorf("-http: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", set.Handler())
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() { _ = s.Serve(listener) }()
	return nil
}
