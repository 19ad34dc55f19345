package flux

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
)

// live returns connections to a real broker, which have what reached them.
func live(t *testing.T) (ctx context.Context, dial func() (*Conn, chan Message)) {
	if os.Getenv("FLUX_URI") == "" {
		t.Skip("FLUX_URI is not set: run the tests inside an instance, with flux start")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx, func() (*Conn, chan Message) {
		inbox := make(chan Message, 100)
		c, err := Dial(ctx, Config{Handle: func(m Message) { inbox <- m }})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c, inbox
	}
}

func TestLiveCalls(t *testing.T) {
	ctx, dial := live(t)
	c, _ := dial()
	var attr struct{ Value string }
	require.NoError(t, c.CallJSON(ctx, "attr.get", NodeidAny, map[string]string{"name": "rank"}, &attr))
	require.NotEmpty(t, attr.Value)
	err := c.CallJSON(ctx, "attr.get", NodeidAny, map[string]string{"name": "joblife"}, nil)
	require.EqualValues(t, errno.NoEntry, Errnum(err))
	require.EqualError(t, c.CallJSON(ctx, "joblife-none.x", NodeidAny, nil, nil),
		"flux: joblife-none.x: No service matching joblife-none.x is registered (errno 38)")
}

// RFC 6: a service gets requests with a route and the user, and SERVICE.disconnect.
func TestLiveService(t *testing.T) {
	ctx, dial := live(t)
	c, inbox := dial()
	require.NoError(t, c.Register(ctx, "joblife-test"))
	require.EqualValues(t, errno.Exists, Errnum(c.Register(ctx, "joblife-test")))
	d, _ := dial()
	answers := make(chan Message, 1)
	tag, err := d.Start(NewRequest("joblife-test.x", Text("{}")), func(m Message, _ error) { answers <- m })
	require.NoError(t, err)
	q := <-inbox
	require.Equal(t, tag, q.Matchtag)
	require.EqualValues(t, os.Getuid(), q.UserID)
	require.Equal(t, RoleOwner|RoleLocal, q.Rolemask)
	require.NotEmpty(t, q.Sender())
	require.NoError(t, c.Send(q.Respond(Text(`{"a":1}`))))
	r := <-answers
	require.Equal(t, `{"a":1}`+"\x00", string(r.Payload))
	require.Empty(t, r.Route)

	require.NoError(t, d.Close())
	bye := <-inbox
	require.Equal(t, "joblife-test.disconnect", bye.Topic)
	require.Equal(t, q.Route, bye.Route)
	require.True(t, bye.Flags.Has(FlagNoResponse))
	require.NoError(t, c.Unregister(ctx, "joblife-test"))
	require.EqualValues(t, errno.NoEntry, Errnum(c.Unregister(ctx, "joblife-test")))
}

func TestLiveEvents(t *testing.T) {
	ctx, dial := live(t)
	c, inbox := dial()
	require.NoError(t, c.Subscribe(ctx, "joblife-test"))
	require.NoError(t, c.Send(NewEvent("joblife-test.x", nil)))
	e := <-inbox
	require.Equal(t, "joblife-test.x", e.Topic)
	require.NotZero(t, e.Seq)
	require.NoError(t, c.Unsubscribe(ctx, "joblife-test"))
	require.EqualValues(t, errno.NoEntry, Errnum(c.Unsubscribe(ctx, "joblife-test")))
}
