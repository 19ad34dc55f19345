package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Serve starts a server in this process: JetStream that syncs each message. Options may have
// what is needed beside that: credentials, TLS, a cluster.
func Serve(dir, host string, port int, options *server.Options) (*server.Server, error) {
	o := &server.Options{}
	if options != nil {
		o = options.Clone()
	}
	o.Host, o.Port, o.StoreDir = host, port, dir
	o.JetStream, o.SyncAlways, o.NoSigs = true, true, true
	o.MaxPayload, o.MaxPending = 8<<20, 256<<20
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("engine: server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, errors.New("engine: server: it does not start: is the port in use?")
	}
	return s, nil
}
