package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/wire"
)

const inst wire.Instance = "main"

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// strict has the permissions of Init, open lets everybody do all: an attack that fails there too
// proves nothing.
var strict, open *cluster

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "auth")
	if err == nil {
		strict, err = newCluster(filepath.Join(dir, "strict"), permissions)
	}
	if err == nil {
		open, err = newCluster(filepath.Join(dir, "open"), openPermissions)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	for _, c := range []*cluster{strict, open} {
		if c != nil {
			c.server.Shutdown()
			c.server.WaitForShutdown()
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func openPermissions(i wire.Instance, r role) jwt.UserPermissionLimits {
	p := permissions(i, r)
	p.Permissions = jwt.Permissions{}
	p.NatsLimits = jwt.NatsLimits{Subs: jwt.NoLimit, Data: jwt.NoLimit, Payload: jwt.NoLimit}
	return p
}

// A cluster is a server on loopback with the streams of an instance.
type cluster struct {
	dir, url string
	server   *server.Server
	manager  jetstream.JetStream
}

func newCluster(dir string, allow func(wire.Instance, role) jwt.UserPermissionLimits) (*cluster, error) {
	if err := initDir(dir, Config{Instance: inst}, allow); err != nil {
		return nil, err
	}
	for _, id := range []ID{Node(1), Node(2), User(1), User(10)} {
		if err := Add(dir, id, time.Hour); err != nil {
			return nil, err
		}
	}
	o, err := ServerOptions(dir, "127.0.0.1")
	if err != nil {
		return nil, err
	}
	o.Port, o.StoreDir, o.NoLog = -1, dir+"-store", true
	o.SyncAlways = false // no test loses power
	s, err := start(o)
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, url: s.ClientURL(), server: s}
	nc, err := c.dial(Manager())
	if err != nil {
		return nil, err
	}
	c.manager, err = jetstream.New(nc)
	return c, err
}

func start(o *server.Options) (*server.Server, error) {
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		s.Shutdown()
		return nil, errors.New("server is not ready")
	}
	return s, nil
}

func (c *cluster) dial(id ID, more ...nats.Option) (*nats.Conn, error) {
	options, err := Options(c.dir, id, c.url)
	if err != nil {
		return nil, err
	}
	return nats.Connect(c.url, append(options, more...)...)
}

// A client is a connection of one test, with the errors that the server told it.
type client struct {
	*nats.Conn
	t      *testing.T
	id     ID
	tcp    net.Conn // beneath, for what nats.go refuses to send
	target string   // what the server's refusal of the attack names

	mu sync.Mutex
	e  []error
}

// Dial makes client a nats.CustomDialer.
func (k *client) Dial(network, address string) (net.Conn, error) {
	var err error
	k.tcp, err = net.DialTimeout(network, address, patience)
	return k.tcp, err
}

func (c *cluster) client(t *testing.T, id ID) *client {
	t.Helper()
	k := &client{t: t, id: id}
	note := func(err error) {
		if err != nil {
			k.mu.Lock()
			k.e = append(k.e, err)
			k.mu.Unlock()
		}
	}
	nc, err := c.dial(id, nats.NoReconnect(), nats.SetCustomDialer(k),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { note(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { note(err) }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	k.Conn = nc
	return k
}

// refusals are what the server refused, in its words.
func (k *client) refusals() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fmt.Sprint(k.e)
}

// send publishes, and returns when the server has seen it.
func (k *client) send(subject, reply, text string) {
	k.t.Helper()
	require.NoError(k.t, k.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(text)}))
	require.NoError(k.t, k.flush())
}

// listen subscribes, and returns when the server knows.
func (k *client) listen(subject string) *nats.Subscription {
	k.t.Helper()
	s, err := k.SubscribeSync(subject)
	require.NoError(k.t, err)
	require.NoError(k.t, k.flush())
	return s
}

// flush fails only if the connection lives.
func (k *client) flush() error {
	if err := k.FlushTimeout(patience); err != nil && !k.IsClosed() {
		return err
	}
	return nil
}

// got is the condition that a message came.
func got(s *nats.Subscription) func() bool {
	return func() bool { n, _, _ := s.Pending(); return n > 0 }
}

// within waits for one of the conditions and returns which, or -1.
func within(d time.Duration, conditions ...func() bool) int {
	for end := time.Now().Add(d); ; time.Sleep(time.Millisecond) {
		for i, c := range conditions {
			if c() {
				return i
			}
		}
		if time.Now().After(end) {
			return -1
		}
	}
}

// last is the last sequence of a stream.
func (c *cluster) last(t *testing.T, stream string) uint64 {
	t.Helper()
	s, err := c.manager.Stream(t.Context(), stream)
	require.NoError(t, err)
	return s.CachedInfo().State.LastSeq
}

// restore makes the streams, with a message each, and the lease, if they are not there.
func (c *cluster) restore(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, s := range []jetstream.StreamConfig{
		{Name: inst.Log(), Subjects: []string{inst.Subject("log.>")}, AllowDirect: true},
		{Name: inst.Snapshots(), Subjects: []string{inst.Subject("snap.*")}, AllowDirect: true},
		{Name: inst.Archive(), Subjects: []string{inst.Subject("archive.*.*")}, AllowDirect: true},
	} {
		_, err := c.manager.CreateOrUpdateStream(ctx, s)
		require.NoError(t, err)
	}
	if c == open {
		if err := c.manager.DeleteStream(ctx, "spy"); !errors.Is(err, jetstream.ErrStreamNotFound) {
			require.NoError(t, err)
		}
	}
	kv, err := c.manager.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: inst.Bucket()})
	require.NoError(t, err)
	_, err = kv.PutString(ctx, "active", "manager-a")
	require.NoError(t, err)
	_, err = c.manager.Publish(ctx, inst.Subject("log.rec"), []byte("record"))
	require.NoError(t, err)
	reader := c.client(t, Reader())
	js, err := jetstream.New(reader.Conn)
	require.NoError(t, err)
	for _, subject := range []string{inst.Subject("snap", 1), inst.Subject("archive", 1, "f1"), inst.Subject("archive", 10, "f2")} {
		_, err = js.Publish(ctx, subject, []byte(`{"subject":"`+subject+`"}`))
		require.NoError(t, err)
	}
}
