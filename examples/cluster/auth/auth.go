package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/examples/internal/files"
)

// An ID is who connects: Manager, Reader, Sched, Node or User. The zero value is nobody, and is refused.
type ID struct {
	role role
	name string // what the server puts for {{name()}} in the permissions
}

type role string

const (
	roleManager role = "manager"
	roleReader  role = "reader"
	roleSched   role = "sched"
	roleNode    role = "node"
	roleUser    role = "user"
)

// Manager is every manager, active or standby.
func Manager() ID { return ID{roleManager, string(roleManager)} }

// Reader is every reader.
func Reader() ID { return ID{roleReader, string(roleReader)} }

// Sched is every scheduler.
func Sched() ID { return ID{roleSched, string(roleSched)} }

// Node is the node of a rank.
func Node(rank uint32) ID { return ID{roleNode, strconv.FormatUint(uint64(rank), 10)} }

// User is the user of a uid.
func User(uid uint32) ID { return ID{roleUser, strconv.FormatUint(uint64(uid), 10)} }

// String is the name of the credential's file, without ".creds", such as "user-1001".
func (id ID) String() string {
	if string(id.role) == id.name {
		return id.name
	}
	return string(id.role) + "-" + id.name
}

// inbox is what the subjects begin with on which id gets answers. Only users have theirs where
// the roles that answer may publish.
func (id ID) inbox() string {
	if id.role == roleUser {
		return inboxes + id.name
	}
	return "_INBOX_" + id.String()
}

// Config is what Init makes.
type Config struct {
	Instance wire.Instance // letters, digits and "-", at least one
	Hosts    []string      // names and addresses of the servers; empty is localhost and 127.0.0.1
}

// Init makes the folder dir with all keys of an instance, and the credentials of the manager,
// the reader and the scheduler. It fails with fs.ErrExist if dir exists, and leaves nothing if it fails.
func Init(dir string, c Config) error {
	if err := initDir(dir, c, permissions); err != nil {
		return fmt.Errorf("auth: init %s: %w", dir, err)
	}
	return nil
}

func initDir(dir string, c Config, allow func(wire.Instance, role) jwt.UserPermissionLimits) (err error) {
	const plain = "-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if i := string(c.Instance); i == "" || strings.Trim(i, plain) != "" {
		return fmt.Errorf("name of instance %.64q: want letters, digits and \"-\"", i)
	}
	for _, h := range c.Hosts { // no client would find another in the certificate
		if net.ParseIP(h) == nil && (h == "" || strings.Trim(h, plain+"_.*") != "") {
			return fmt.Errorf("host %.64q: want a name or an address of a server, without a port", h)
		}
	}
	if len(c.Hosts) == 0 {
		c.Hosts = []string{"localhost", "127.0.0.1"}
	}
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%w: its keys are in use perhaps; remove it or name another", fs.ErrExist)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".init-*")
	if bare := (*fs.PathError)(nil); errors.As(err, &bare) {
		return bare.Err // it has the name of the folder that was to be
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Mkdir(filepath.Join(tmp, "keys"), 0o700); err != nil {
		return err
	}
	if err := initTrust(tmp, c.Instance, allow); err != nil {
		return err
	}
	if err := initTLS(tmp, c.Hosts); err != nil {
		return err
	}
	for _, id := range []ID{Manager(), Reader(), Sched()} {
		if err := add(tmp, id, 0); err != nil {
			return err
		}
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(dir))
}

// initTrust makes the operator, the account and the system account. The own keys of the accounts
// are forgotten: they could sign a user without limits.
func initTrust(dir string, i wire.Instance, allow func(wire.Instance, role) jwt.UserPermissionLimits) error {
	operator, operatorPub, err := newKey(nkeys.CreateOperator)
	if err != nil {
		return err
	}
	_, accountPub, err := newKey(nkeys.CreateAccount)
	if err != nil {
		return err
	}
	_, systemPub, err := newKey(nkeys.CreateAccount)
	if err != nil {
		return err
	}

	account := jwt.NewAccountClaims(accountPub)
	account.Name = string(i)
	account.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	for _, r := range []role{roleManager, roleReader, roleSched, roleNode, roleUser} {
		key, pub, err := newKey(nkeys.CreateAccount)
		if err != nil {
			return err
		}
		scope := jwt.NewUserScope()
		scope.Key, scope.Role, scope.Template = pub, string(r), allow(i, r)
		account.SigningKeys.AddScopedSigner(scope)
		if err := writeSeed(dir, string(r), key); err != nil {
			return err
		}
	}
	system := jwt.NewAccountClaims(systemPub)
	system.Name = "SYS"
	op := jwt.NewOperatorClaims(operatorPub)
	op.Name, op.SystemAccount = string(i), systemPub

	for _, t := range []struct {
		file   string
		claims jwt.Claims
	}{{operatorFile, op}, {accountFile, account}, {systemFile, system}} {
		results := jwt.CreateValidationResults()
		t.claims.Validate(results)
		if err := errors.Join(results.Errors()...); err != nil {
			return err
		}
		token, err := t.claims.Encode(operator)
		if err != nil {
			return err
		}
		if err := files.Create(filepath.Join(dir, t.file), []byte(token)); err != nil {
			return err
		}
	}
	return writeSeed(dir, "operator", operator)
}

// Add signs a credential for id in the folder that Init made, in the file named by id.String()
// and ".creds". It needs no server. A life of 0 has no end, and nothing revokes a credential:
// give users one. It fails with fs.ErrExist if the file exists.
func Add(dir string, id ID, life time.Duration) error {
	if err := add(dir, id, life); err != nil {
		return fmt.Errorf("auth: add %s: %w", id, err)
	}
	return nil
}

func add(dir string, id ID, life time.Duration) error {
	if life < 0 {
		return fmt.Errorf("life of %v: it must not be negative", life)
	}
	account, err := readAccount(dir)
	if err != nil {
		return err
	}
	seed, err := os.ReadFile(filepath.Join(dir, "keys", string(id.role)+".nk"))
	if err != nil {
		return err
	}
	signer, err := nkeys.FromSeed(seed)
	if err != nil {
		return err
	}
	user, pub, err := newKey(nkeys.CreateUser)
	if err != nil {
		return err
	}
	token, err := jwt.IssueUserJWT(signer, account.Subject, pub, id.name, life)
	if err != nil {
		return err
	}
	userSeed, err := user.Seed()
	if err != nil {
		return err
	}
	creds, err := jwt.FormatUserConfig(token, userSeed)
	if err != nil {
		return err
	}
	return files.Create(filepath.Join(dir, id.String()+".creds"), creds)
}
