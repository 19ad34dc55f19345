//go:build unix

package flux_test

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
)

// loaded returns the broker's end of the connection of a module, which the environment names.
func loaded(t *testing.T) net.Conn {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fds[0]), "broker")
	conn, err := net.FileConn(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	t.Setenv(flux.ModuleURI, fmt.Sprintf("fd://%d", fds[1]))
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

func greet(t *testing.T, broker net.Conn, topic, payload string) {
	m := flux.NewRequest(topic, flux.Text(payload))
	b, err := flux.AppendFrame([]byte{0}, &m)
	require.NoError(t, err)
	_, err = broker.Write(b)
	require.NoError(t, err)
}

// RFC 5: a loader gets the path of the module as its argument, the welcome, and then messages.
func TestTheLifeOfAModule(t *testing.T) {
	broker := loaded(t)
	greet(t, broker, "welcome", `{"name":"sched-x","args":["-policy","easy"],"uuid":"u","attrs":{},"conf":{}}`)
	args, err := flux.Arguments([]string{"/x/sched", "/x/sched"})
	require.NoError(t, err)
	require.Equal(t, []string{"sched-x", "-flux", "-policy", "easy"}, args)

	c, err := flux.Dial(limited(t), flux.Config{URI: os.Getenv(flux.ModuleURI)})
	require.NoError(t, err)
	require.NoError(t, c.Running())
	go c.Leave(fmt.Errorf("why: %w", &flux.Error{Errnum: errno.Exists}))
	r := flux.NewReader(broker, 0)
	for _, want := range []string{`{"status":1,"errnum":0}`, `{"status":2,"errnum":0}`, `{"status":3,"errnum":17}`} {
		m, err := r.Read()
		require.NoError(t, err)
		require.Equal(t, "module.status", m.Topic)
		require.Equal(t, want+"\x00", string(m.Payload))
		if !m.Flags.Has(flux.FlagNoResponse) {
			answer := m.Respond(nil)
			b, err := flux.AppendFrame(nil, &answer)
			require.NoError(t, err)
			_, err = broker.Write(b)
			require.NoError(t, err)
		}
	}
	require.NoError(t, c.Close())
}

// A program that another loader has started gets its arguments from that.
func TestArgumentsThatAreNoneOfALoader(t *testing.T) {
	for _, args := range [][]string{{"sched"}, {"sched", "-flux"}, {"sched", "-flux", "-v"}} {
		got, err := flux.Arguments(args)
		require.NoError(t, err)
		require.Equal(t, args, got)
	}
	broker := loaded(t)
	got, err := flux.Arguments([]string{"sched", "-flux"})
	require.NoError(t, err)
	require.Equal(t, []string{"sched", "-flux"}, got)
	greet(t, broker, "hello", "{}")
	_, err = flux.Arguments([]string{"sched", "sched"})
	require.ErrorContains(t, err, "hello in place of a welcome")
	t.Setenv(flux.ModuleURI, "local:///tmp")
	_, err = flux.Arguments([]string{"sched", "sched"})
	require.ErrorIs(t, err, flux.ErrURI)
}
