package engine

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

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
// in a folder of package auth; "" lets everybody do everything, for tests.
func Serve(cfg Server, keys string) (*server.Server, error) {
	o := &server.Options{JetStream: true, SyncAlways: true, NoSigs: true, MaxPayload: auth.MaxPayload}
	host, port, err := address(cfg.URL)
	if err == nil && keys != "" {
		o, err = auth.ServerOptions(keys, host)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: server: %w", err)
	}
	o.Host, o.Port = host, port
	o.ServerName, o.StoreDir, o.Routes = cfg.Name, cfg.Dir, server.RoutesFromStr(strings.Join(cfg.Routes, ","))
	if cfg.Route != "" {
		o.Cluster.Name = "joblife"
		o.Cluster.Host, o.Cluster.Port, err = address(cfg.Route)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: server: %w", err)
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("engine: server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("engine: server: it does not start at %s: is the port in use?", cfg.URL)
	}
	return s, nil
}

func address(text string) (host string, port int, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(u.Port()); err != nil {
		return "", 0, fmt.Errorf("%s: the port is missing", text)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return u.Hostname(), port, nil
}
