package auth

import (
	"crypto/tls"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/cluster/wire"
)

func TestInitMakesAFolderForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, Init(dir, Config{Instance: inst}))
	require.NoError(t, Add(dir, User(7), 0))
	files := map[string]fs.FileMode{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		name, _ := filepath.Rel(dir, path)
		files[name] = info.Mode()
		return err
	}))
	const own, all = fs.FileMode(0o600), fs.ModeDir | 0o700
	require.Equal(t, map[string]fs.FileMode{
		".": all, "keys": all, "keys/ca-key.pem": own, "keys/manager.nk": own, "keys/node.nk": own, "keys/operator.nk": own,
		"keys/reader.nk": own, "keys/sched.nk": own, "sched.creds": own, "keys/user.nk": own, "account.jwt": own, "ca.pem": own, "manager.creds": own, "operator.jwt": own,
		"reader.creds": own, "server-key.pem": own, "server.pem": own, "system.jwt": own, "user-7.creds": own,
	}, files)

	require.ErrorIs(t, Init(dir, Config{Instance: inst}), fs.ErrExist)
	require.ErrorIs(t, Add(dir, User(7), 0), fs.ErrExist)
	require.Error(t, Add(dir, User(8), -1))
	require.Error(t, Add(dir, ID{}, 0))
	require.ErrorIs(t, Add(t.TempDir(), User(7), 0), fs.ErrNotExist)
	left, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing but the folder is left")
}

func TestInitRefusesTheNameOfAnInstance(t *testing.T) {
	for _, name := range []string{"", "a.b", "*", ">", "a b", "a_b", "{{name()}}", "é"} {
		dir := filepath.Join(t.TempDir(), "keys")
		require.ErrorContains(t, Init(dir, Config{Instance: wire.Instance(name)}), "name of instance")
		require.NoDirExists(t, dir)
	}
}

// What is no host would be in the certificate, and no client would believe the server.
func TestInitRefusesWhatIsNoHost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	for _, host := range []string{"", " 10.0.0.2", "10.0.0.2:4222", "nats://a", "a b", "é"} {
		require.ErrorContains(t, Init(dir, Config{Instance: inst, Hosts: []string{"a", host}}), "want a name or an address")
		require.NoDirExists(t, dir)
	}
	require.NoError(t, Init(dir, Config{Instance: inst, Hosts: []string{"a-1.example.org", "10.0.0.2", "::1"}}))
}

// sign makes a credential for a name as it likes, in a copy of dir.
func sign(t *testing.T, dir, signer string, change func(*jwt.UserClaims)) (token string, user nkeys.KeyPair) {
	t.Helper()
	seed, err := os.ReadFile(filepath.Join(dir, "keys", signer+".nk"))
	require.NoError(t, err)
	key, err := nkeys.FromSeed(seed)
	require.NoError(t, err)
	account, err := readAccount(dir)
	require.NoError(t, err)
	user, pub, err := newKey(nkeys.CreateUser)
	require.NoError(t, err)
	claims := jwt.NewUserClaims(pub)
	claims.SetScoped(true)
	claims.Name, claims.IssuerAccount = "1", account.Subject
	change(claims)
	token, err = claims.Encode(key)
	require.NoError(t, err)
	return token, user
}

func login(token string, key nkeys.KeyPair) nats.Option {
	return nats.UserJWT(func() (string, error) { return token, nil }, key.Sign)
}

func TestTheServerRefusesStrangers(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, Init(foreign, Config{Instance: inst}))
	same := func(*jwt.UserClaims) {}
	good, key := sign(t, strict.dir, "user", same)
	_, otherKey := sign(t, strict.dir, "user", same)
	alien, alienKey := sign(t, foreign, "user", same)
	account, err := readAccount(strict.dir)
	require.NoError(t, err)
	posing, posingKey := sign(t, foreign, "user", func(c *jwt.UserClaims) { c.IssuerAccount = account.Subject })
	expired, expiredKey := sign(t, strict.dir, "user", func(c *jwt.UserClaims) { c.Expires = time.Now().Add(-time.Minute).Unix() })
	early, earlyKey := sign(t, strict.dir, "user", func(c *jwt.UserClaims) { c.NotBefore = time.Now().Add(time.Hour).Unix() })
	wide, wideKey := sign(t, strict.dir, "user", func(c *jwt.UserClaims) { c.Pub.Allow.Add(">") })
	bearer, _ := sign(t, strict.dir, "user", func(c *jwt.UserClaims) { c.BearerToken = true })

	for name, option := range map[string]nats.Option{
		"without a credential":                nats.Name(""),
		"with a password":                     nats.UserInfo("manager", "manager"),
		"with a token":                        nats.Token("manager"),
		"with the credential of another":      login(good, otherKey),
		"of another operator":                 login(alien, alienKey),
		"of another operator, posing as ours": login(posing, posingKey),
		"whose credential is expired":         login(expired, expiredKey),
		"whose credential is not valid yet":   login(early, earlyKey),
		"who wrote permissions of their own":  login(wide, wideKey),
		"who need no key":                     login(bearer, otherKey),
	} {
		_, err := nats.Connect(strict.url, option, nats.NoReconnect())
		require.ErrorIs(t, err, nats.ErrAuthorization, name)
	}
	nc, err := nats.Connect(strict.url, login(good, key)) // the control
	require.NoError(t, err)
	nc.Close()

	anybody, err := start(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	require.NoError(t, err)
	defer anybody.Shutdown()
	nc, err = nats.Connect(anybody.ClientURL()) // the control of the first
	require.NoError(t, err)
	nc.Close()
}

func TestACredentialEnds(t *testing.T) {
	token, key := sign(t, strict.dir, "user", func(c *jwt.UserClaims) { c.Expires = time.Now().Add(2 * time.Second).Unix() })
	closed := make(chan struct{})
	nc, err := nats.Connect(strict.url, login(token, key), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	require.NoError(t, err)
	defer nc.Close()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("the connection outlives the credential")
	}
}

// remote starts a server as it is where host is no loopback address, but on loopback.
func remote(t *testing.T, dir string, routes ...string) *server.Server {
	t.Helper()
	o, err := ServerOptions(dir, "")
	require.NoError(t, err)
	o.Host, o.Port, o.StoreDir, o.NoLog = "127.0.0.1", -1, t.TempDir(), true
	o.Cluster.Name, o.Cluster.Host, o.Cluster.Port, o.JetStream = "c", "127.0.0.1", -1, false
	o.Routes = server.RoutesFromStr(strings.Join(routes, ","))
	s, err := start(o)
	require.NoError(t, err)
	t.Cleanup(s.Shutdown)
	return s
}

func TestTLSButOnLoopback(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, Init(dir, Config{Instance: inst, Hosts: []string{"127.0.0.1", "::1", "a.example"}}))
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, Init(foreign, Config{Instance: inst}))
	s := remote(t, dir)
	address := s.Addr().String()
	options := func(dir, urls string) []nats.Option {
		o, err := Options(dir, Reader(), urls)
		require.NoError(t, err)
		return append(o, nats.RetryOnFailedConnect(false))
	}

	nc, err := nats.Connect(address, options(dir, "a.example")...)
	require.NoError(t, err)
	state, err := nc.TLSConnectionState()
	require.NoError(t, err)
	require.Equal(t, uint16(tls.VersionTLS13), state.Version)
	nc.Close()
	_, err = nats.Connect(address, options(foreign, "a.example")...)
	require.ErrorContains(t, err, "certificate", "the server's CA is another")
	_, err = nats.Connect(strict.url, options(strict.dir, "127.0.0.1,b.example:1")...)
	require.ErrorIs(t, err, nats.ErrSecureConnWanted, "a server that poses as a remote one, without TLS")
	nc, err = nats.Connect(strict.url, options(strict.dir, "127.0.0.1,nats://localhost:1, [::1]:5")...)
	require.NoError(t, err)
	nc.Close()

	plain, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.Write([]byte("CONNECT {}\r\nPING\r\n"))
	require.NoError(t, err)
	answer, _ := io.ReadAll(plain)
	require.NotContains(t, string(answer), "PONG", "a client without TLS")
}

func TestOnlyServersBecomeRoutes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, Init(dir, Config{Instance: inst}))
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, Init(foreign, Config{Instance: inst}))
	s := remote(t, dir)
	knock := func(dir string) error {
		c, err := net.Dial("tcp", s.ClusterAddr().String())
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		config := &tls.Config{InsecureSkipVerify: true}
		if dir != "" {
			cert, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, certKeyFile))
			require.NoError(t, err)
			config.Certificates = []tls.Certificate{cert}
		}
		secure := tls.Client(c, config)
		_, err = secure.Read(make([]byte, 1)) // of INFO
		return err
	}
	require.ErrorContains(t, knock(""), "certificate required")
	require.Error(t, knock(foreign))
	require.NoError(t, knock(dir), "the control")

	remote(t, dir, "nats://"+s.ClusterAddr().String())
	require.Equal(t, 0, within(patience, func() bool { return s.NumRoutes() > 0 }), "two servers of one folder meet")
}

func TestOptions(t *testing.T) {
	_, err := Options(strict.dir, User(404), strict.url)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Options(strict.dir, User(1), "nats://%zz")
	require.Error(t, err)

	for id, inbox := range map[ID]string{User(1): "_INBOX.1", Manager(): "_INBOX_manager", Node(2): "_INBOX_node-2"} {
		options, err := Options(strict.dir, id, strict.url)
		require.NoError(t, err)
		o := nats.GetDefaultOptions()
		for _, f := range options {
			require.NoError(t, f(&o))
		}
		require.Equal(t, inbox, o.InboxPrefix)
		require.Equal(t, id != User(1), o.RetryOnFailedConnect)
		require.Equal(t, id != User(1), o.IgnoreAuthErrorAbort)
		require.Equal(t, -1, o.MaxReconnect)
		require.Equal(t, -1, o.ReconnectBufSize)
		require.Equal(t, id.String(), o.Name)
	}
}

// A role comes back to its server, whatever others told it that were there meanwhile.
func TestARoleOutlivesServersThatRefuseIt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var refused atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "INFO {\"server_id\":\"x\",\"nonce\":\"abc\",\"headers\":true}\r\n")
			_, _ = c.Read(make([]byte, 1))
			_, _ = io.WriteString(c, "-ERR 'Authorization Violation'\r\n")
			refused.Add(1)
			_ = c.Close()
		}
	}()
	options, err := Options(strict.dir, Node(1), strict.url)
	require.NoError(t, err)
	nc, err := nats.Connect("nats://"+l.Addr().String(), append(options, nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))...)
	require.NoError(t, err)
	defer nc.Close()
	require.Equal(t, 0, within(patience, func() bool { return refused.Load() > 3 }))
	require.False(t, nc.IsClosed())
}

func TestServerOptions(t *testing.T) {
	for host, secure := range map[string]bool{"localhost": false, "127.0.0.1": false, "127.1.2.3": false, "::1": false, "": true, "0.0.0.0": true, "::": true, "10.0.0.1": true, "a.example": true, "localhost.example": true} {
		o, err := ServerOptions(strict.dir, host)
		require.NoError(t, err)
		require.Equal(t, secure, o.TLSConfig != nil, host)
		require.True(t, o.SyncAlways && o.JetStream && o.MaxPayload == 8<<20, host)
		require.Equal(t, host, o.Host)
	}
	_, err := ServerOptions(t.TempDir(), "localhost")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
