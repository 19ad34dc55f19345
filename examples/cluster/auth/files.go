package auth

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/joblife/joblife/examples/internal/files"
)

// The files of the folder. A server needs those of the first three lines, a client ca.pem and
// its credential; keys/ has what signs, and belongs on neither.
const (
	operatorFile, accountFile, systemFile = "operator.jwt", "account.jwt", "system.jwt"
	certFile, certKeyFile                 = "server.pem", "server-key.pem"
	caFile                                = "ca.pem"
	caKeyFile                             = "keys/ca-key.pem"
)

// certLife is how long the CA and the certificate of the servers last.
const certLife = 10 * 365 * 24 * time.Hour

func newKey(create func() (nkeys.KeyPair, error)) (key nkeys.KeyPair, pub string, err error) {
	if key, err = create(); err != nil {
		return nil, "", err
	}
	pub, err = key.PublicKey()
	return key, pub, err
}

func writeSeed(dir, name string, key nkeys.KeyPair) error {
	seed, err := key.Seed()
	if err != nil {
		return err
	}
	return files.Create(filepath.Join(dir, "keys", name+".nk"), seed)
}

func readAccount(dir string) (*jwt.AccountClaims, error) {
	token, err := os.ReadFile(filepath.Join(dir, accountFile))
	if err != nil {
		return nil, err
	}
	return jwt.DecodeAccountClaims(string(token))
}

// initTLS makes a CA and one certificate for all servers, which prove themselves with it to
// clients and to each other.
func initTLS(dir string, hosts []string) error {
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "joblife cluster CA"}, IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey, err := certify(dir, caFile, caKeyFile, ca, ca, nil)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{
		Subject: pkix.Name{CommonName: "joblife cluster server"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, h)
		}
	}
	_, err = certify(dir, certFile, certKeyFile, cert, ca, caKey)
	return err
}

// certify makes a key, and the certificate of it that parent signs: itself if parentKey is nil.
func certify(dir, file, keyFile string, cert, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	parentKey = cmp.Or(parentKey, key)
	if cert.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	cert.NotBefore = time.Now().Add(-time.Hour) // clocks differ
	cert.NotAfter = cert.NotBefore.Add(certLife)
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := files.Create(filepath.Join(dir, file), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})); err != nil {
		return nil, err
	}
	return key, files.Create(filepath.Join(dir, keyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}
