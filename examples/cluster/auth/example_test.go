package auth_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/wire"
)

// A reader answers the request of a user.
func Example() {
	if err := example(); err != nil {
		fmt.Println(err)
	}
	// Output: no jobs
}

func example() error {
	tmp, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "keys")
	instance := wire.Instance("main")
	if err := auth.Init(dir, auth.Config{Instance: instance}); err != nil {
		return err
	}
	if err := auth.Add(dir, auth.User(1001), 24*time.Hour); err != nil {
		return err
	}

	o, err := auth.ServerOptions(dir, "127.0.0.1")
	if err != nil {
		return err
	}
	o.Port, o.StoreDir, o.NoLog = server.RANDOM_PORT, filepath.Join(tmp, "store"), true
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("no server")
	}
	connect := func(id auth.ID) (*nats.Conn, error) {
		options, err := auth.Options(dir, id, s.ClientURL())
		if err != nil {
			return nil, err
		}
		return nats.Connect(s.ClientURL(), options...)
	}

	reader, err := connect(auth.Reader())
	if err != nil {
		return err
	}
	defer reader.Close()
	limiter, err := auth.NewLimiter(50, 20, 10_000)
	if err != nil {
		return err
	}
	if _, err := reader.Subscribe(instance.Subject("req", "*", wire.ReaderVerb, "history"), func(m *nats.Msg) {
		var uid uint32
		if _, err := fmt.Sscanf(m.Subject, instance.Subject("req.%d.reader"), &uid); err != nil {
			return
		}
		if wire.Reply(uid, m.Reply) && limiter.Allow(uid, time.Now()) {
			_ = m.Respond([]byte("no jobs"))
		}
	}); err != nil {
		return err
	}
	if err := reader.Flush(); err != nil {
		return err
	}

	user, err := connect(auth.User(1001))
	if err != nil {
		return err
	}
	defer user.Close()
	m, err := user.Request(instance.Subject("req", 1001, wire.ReaderVerb, "history"), nil, 10*time.Second)
	if err != nil {
		return err
	}
	fmt.Println(string(m.Data))
	return nil
}
