package flux

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/joblife/joblife/examples/internal/errno"
)

// ModuleURI is the variable of the environment in which a broker tells a program that it has
// loaded as a module where its end of the connection is (RFC 5).
const ModuleURI = "FLUX_MODULE_URI"

// dialFD connects through a file descriptor that is open. The descriptor itself is closed.
func dialFD(number string) (net.Conn, error) {
	fd, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("fd://%s is not fd://NUMBER", quote(number))
	}
	f := os.NewFile(uintptr(fd), "fd://"+number)
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("fd://%s is no open socket", number)
	}
	return conn, nil
}

// Arguments returns the command line of a program that serves a broker. If the broker has loaded
// it as a module, with itself as the loader, it is the name of the module, -flux, and the
// arguments of the welcome, which is read. Otherwise it is args.
func Arguments(args []string) ([]string, error) {
	uri := os.Getenv(ModuleURI)
	if uri == "" || len(args) != 2 || strings.HasPrefix(args[1], "-") { // a loader gets the path of the module
		return args, nil
	}
	w, err := readWelcome(uri)
	if err != nil {
		return nil, err
	}
	return append([]string{w.Name, "-flux"}, w.Args...), nil
}

// A welcome is the first message of a broker to a module.
type welcome struct {
	Name string
	Args []string
}

func readWelcome(uri string) (welcome, error) {
	number, _ := strings.CutPrefix(uri, "fd://")
	fd, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return welcome{}, fmt.Errorf("flux: %w: %s is not fd://NUMBER", ErrURI, quote(uri))
	}
	own, err := dup(int(fd))
	if err != nil {
		return welcome{}, fmt.Errorf("flux: %w: %s: %w", ErrURI, quote(uri), err)
	}
	f := os.NewFile(uintptr(own), uri)
	defer f.Close()
	var head [1 + frameHead]byte // it lets the module in; no more than the first message is read
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return welcome{}, fmt.Errorf("flux: %w: %w", ErrLost, err)
	}
	n := binary.BigEndian.Uint32(head[5:])
	if head[0] != 0 || binary.NativeEndian.Uint32(head[1:]) != frameMagic || n > Max {
		return welcome{}, fmt.Errorf("flux: %w: it begins with %q", ErrFraming, head)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(f, b); err != nil {
		return welcome{}, fmt.Errorf("flux: %w: %w", ErrLost, err)
	}
	m, err := Parse(b)
	if err != nil {
		return welcome{}, err
	}
	if m.Topic != "welcome" {
		return welcome{}, fmt.Errorf("flux: %w: %s in place of a welcome", ErrMessage, quote(m.Topic))
	}
	var w welcome
	err = m.unmarshal(&w)
	return w, err
}

// The states of a module in module.status.
const (
	ModuleRunning    = 1
	ModuleFinalizing = 2
	ModuleExited     = 3
)

// leaveWait is how long a broker may take to let a module end.
const leaveWait = 30 * time.Second

type moduleStatus struct {
	Status int    `json:"status"`
	Errnum uint32 `json:"errnum"`
}

// Running tells the broker that this module serves: flux module load returns.
func (c *Conn) Running() error { return c.Post("module.status", moduleStatus{Status: ModuleRunning}) }

// Leave tells the broker that this module ends, and why if it was not asked to. Requests that
// come after it are answered by the broker, as those that are open.
func (c *Conn) Leave(why error) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWait)
	defer cancel()
	end := moduleStatus{Status: ModuleExited}
	if why != nil {
		if end.Errnum = Errnum(why); end.Errnum == 0 {
			end.Errnum = errno.Invalid
		}
	}
	_ = c.CallJSON(ctx, "module.status", NodeidAny, moduleStatus{Status: ModuleFinalizing}, nil) // it may be gone
	_ = c.Post("module.status", end)
}

// Post sends a request with JSON that wants no response.
func (c *Conn) Post(topic string, in any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("flux: %s: %w", quote(topic), err)
	}
	m := NewRequest(topic, Text(text))
	m.Flags |= FlagNoResponse
	return c.Send(m)
}
