package auth

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// ServerOptions are those of a server that listens on host and trusts the keys in dir. The
// caller adds the port, the StoreDir, and the routes of a cluster; it keeps the rest. Clients
// must use TLS unless host is a loopback address; other servers must always, with the
// certificate of dir, for a server believes another whatever it says.
func ServerOptions(dir, host string) (_ *server.Options, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("auth: options of server: %w", err)
		}
	}()
	token, err := os.ReadFile(filepath.Join(dir, operatorFile))
	if err != nil {
		return nil, err
	}
	operator, err := jwt.DecodeOperatorClaims(string(token))
	if err != nil {
		return nil, err
	}
	resolver := &server.MemAccResolver{}
	for _, file := range []string{accountFile, systemFile} {
		token, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		account, err := jwt.DecodeAccountClaims(string(token))
		if err != nil {
			return nil, err
		}
		if err := resolver.Store(account.Subject, string(token)); err != nil {
			return nil, err
		}
	}
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, certKeyFile))
	if err != nil {
		return nil, err
	}
	pool, err := readCA(dir)
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		Host:             host,
		MaxPayload:       MaxPayload,
		TrustedOperators: []*jwt.OperatorClaims{operator},
		SystemAccount:    operator.SystemAccount,
		AccountResolver:  resolver,
		JetStream:        true,
		SyncAlways:       true,
		NoSigs:           true, // they are the program's
	}
	o.Cluster.TLSConfig = &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	if !loopback(host) {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}
	}
	return o, nil
}

// Options are those of a client that connects as id to urls, which are separated by commas, with
// its credential and ca.pem of dir. They refuse a server without TLS unless all of urls are
// loopback addresses. Nothing is sent later than it was published: what is published without a
// connection fails. All but users wait for a server that is not there yet, and try again where one
// refuses them: another may not, or that one later. A connection of a user is closed then.
func Options(dir string, id ID, urls string) ([]nats.Option, error) {
	creds := filepath.Join(dir, id.String()+".creds")
	if _, err := os.Stat(creds); err != nil {
		return nil, fmt.Errorf("auth: credential: %w", err)
	}
	pool, err := readCA(dir)
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	secure := false
	for u := range strings.SplitSeq(urls, ",") {
		if u = strings.TrimSpace(u); !strings.Contains(u, "://") {
			u = "nats://" + u
		}
		parsed, err := url.Parse(u)
		if err != nil {
			return nil, fmt.Errorf("auth: address of server: %w", err)
		}
		secure = secure || !loopback(parsed.Hostname())
	}
	return []nats.Option{
		nats.Name(id.String()),
		nats.UserCredentials(creds),
		nats.CustomInboxPrefix(id.inbox()),
		nats.RetryOnFailedConnect(id.role != roleUser),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		func(o *nats.Options) error {
			o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}
			o.Secure = secure
			o.IgnoreAuthErrorAbort = id.role != roleUser
			return nil
		},
	}, nil
}

func readCA(dir string) (*x509.CertPool, error) {
	data, err := os.ReadFile(filepath.Join(dir, caFile))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s has no certificate", caFile)
	}
	return pool, nil
}

// loopback reports if only this machine can be host. The empty host is every address.
func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
