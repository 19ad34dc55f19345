package flux_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/flux"
	"github.com/joblife/joblife/examples/internal/fluxtest"
)

// A dialer returns a connection that ends with the test, and what reaches it.
type dialer func() (*flux.Conn, <-chan flux.Message)

func dialerOf(t *testing.T, ctx context.Context, uri string) dialer {
	return func() (*flux.Conn, <-chan flux.Message) {
		inbox := make(chan flux.Message, 100)
		c, err := flux.Dial(ctx, flux.Config{URI: uri, Handle: func(m flux.Message) { inbox <- m }})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c, inbox
	}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// both runs a test with the broker of fluxtest, and with a real one that must not differ.
func both(t *testing.T, test func(t *testing.T, ctx context.Context, dial dialer)) {
	t.Run("fake", func(t *testing.T) {
		ctx := limited(t)
		test(t, ctx, dialerOf(t, ctx, fluxtest.Start(t).URI()))
	})
	t.Run("real", func(t *testing.T) {
		if os.Getenv("FLUX_URI") == "" {
			t.Skip("FLUX_URI is not set: run the tests inside an instance, with flux start")
		}
		ctx := limited(t)
		test(t, ctx, dialerOf(t, ctx, ""))
	})
}

func TestWhatABrokerTells(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, dial dialer) {
		c, _ := dial()
		for _, name := range []string{"rank", "size", "hostlist", "security.owner"} {
			value, err := c.Attr(ctx, name)
			require.NoError(t, err)
			require.NotEmpty(t, value, name)
		}
		_, err := c.Attr(ctx, "joblife")
		require.EqualError(t, err, "flux: attr.get: errno 2")
		require.EqualError(t, c.CallJSON(ctx, "joblife-none.x", flux.NodeidAny, nil, nil),
			"flux: joblife-none.x: No service matching joblife-none.x is registered (errno 38)")
		err = c.CallJSON(ctx, "attr.get", 1<<20, nil, nil)
		require.EqualValues(t, errno.Unreachable, flux.Errnum(err))

		conf := map[string]any{}
		require.NoError(t, c.GetConfig(ctx, &conf))
		texts := make(chan string, 1)
		_, err = c.FollowConfig(func(text []byte, err error) { texts <- string(text) })
		require.NoError(t, err)
		require.Equal(t, byte('{'), (<-texts)[0])
		states := make(chan flux.State, 10)
		tag, err := c.FollowState(func(s flux.State, _ error) { states <- s })
		require.NoError(t, err)
		require.Equal(t, flux.StateRun, <-states)
		c.Forget(tag)
	})
}

// RFC 6: a service gets requests with a route and the user, and a request disconnect.
func TestAService(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, dial dialer) {
		c, inbox := dial()
		require.EqualValues(t, errno.Invalid, flux.Errnum(c.Register(ctx, "joblife.test")))
		require.NoError(t, c.Register(ctx, "joblife-test"))
		require.EqualValues(t, errno.Exists, flux.Errnum(c.Register(ctx, "joblife-test")))
		d, _ := dial()
		answers := make(chan flux.Message, 1)
		tag, err := d.Start(flux.NewRequest("joblife-test.x.y", flux.Text("{}")), func(m flux.Message, _ error) { answers <- m })
		require.NoError(t, err)
		q := <-inbox
		require.Equal(t, tag, q.Matchtag)
		require.EqualValues(t, os.Getuid(), q.UserID)
		require.Equal(t, flux.RoleOwner|flux.RoleLocal, q.Rolemask)
		require.NotEmpty(t, q.Sender())
		text, err := q.JSON()
		require.NoError(t, err)
		require.Equal(t, "{}", string(text))
		require.NoError(t, c.Send(q.Respond(flux.Text(`{"a":1}`))))
		r := <-answers
		require.Equal(t, `{"a":1}`+"\x00", string(r.Payload))
		require.Empty(t, r.Route)

		// The owner can say who sent it. A request that wants no answer makes no disconnect.
		guest := flux.NewRequest("joblife-test.z", nil)
		guest.Flags |= flux.FlagNoResponse
		guest.UserID, guest.Rolemask = 1234, flux.RoleUser
		guest.Route = []string{"forged"}
		require.NoError(t, d.Send(guest))
		m := <-inbox
		require.Equal(t, [2]uint32{1234, flux.RoleUser}, [2]uint32{m.UserID, m.Rolemask})
		require.Equal(t, append([]string{"forged"}, q.Route...), m.Route)
		require.Nil(t, m.Payload)

		require.NoError(t, d.Close())
		bye := <-inbox
		require.Equal(t, "joblife-test.x.disconnect", bye.Topic)
		require.Equal(t, q.Route, bye.Route)
		require.True(t, bye.Flags.Has(flux.FlagNoResponse))
		require.Equal(t, tag, bye.Matchtag)
		require.Empty(t, inbox)
	})
}

// RFC 6: many answers, of which an error is the last.
func TestAStream(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, dial dialer) {
		c, inbox := dial()
		require.NoError(t, c.Register(ctx, "joblife-stream"))
		d, strays := dial()
		q := flux.NewRequest("joblife-stream.x", nil)
		q.Flags |= flux.FlagStreaming
		got := make(chan error, 10)
		follow := func(m flux.Message, err error) {
			if err == nil {
				err = &flux.Error{Topic: string(m.Payload)}
			}
			got <- err
		}
		one, err := d.Start(q, follow)
		require.NoError(t, err)
		q = <-inbox
		for _, text := range []string{"a", "b"} {
			require.NoError(t, c.Send(q.Respond([]byte(text))))
		}
		require.NoError(t, c.Send(q.RespondError(errno.NoData, "")))
		require.Equal(t, "a", (<-got).(*flux.Error).Topic)
		require.Equal(t, "b", (<-got).(*flux.Error).Topic)
		require.EqualValues(t, errno.NoData, flux.Errnum(<-got))

		// What comes after the end is for Handle, and so is an answer without a matchtag.
		require.NoError(t, c.Send(q.Respond([]byte("late"))))
		require.Equal(t, "late", string((<-strays).Payload))
		require.NoError(t, d.Send(flux.NewRequest("joblife-stream.y", nil)))
		q = <-inbox
		require.Zero(t, q.Matchtag)
		require.NoError(t, c.Send(q.Respond(nil)))
		require.Equal(t, "joblife-stream.y", (<-strays).Topic)

		// Nobody hears of a stream that is forgotten.
		q = flux.NewRequest("joblife-stream.x", nil)
		q.Flags |= flux.FlagStreaming
		two, err := d.Start(q, follow)
		require.NoError(t, err)
		require.NotEqual(t, one, two)
		q = <-inbox
		d.Forget(two)
		require.NoError(t, c.Send(q.Respond([]byte("a"))))
		require.NoError(t, c.Send(q.RespondError(errno.NoData, "")))
		_, err = d.Attr(ctx, "rank")
		require.NoError(t, err)
		require.Empty(t, got)
		require.Empty(t, strays)
	})
}

// Guests can send responses, too: none of theirs answers a call, whatever matchtag it guesses.
func TestAGuestAnswersNoCall(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, dial dialer) {
		c, inbox := dial()
		require.NoError(t, c.Register(ctx, "joblife-called"))
		d, strays := dial()
		answers := make(chan flux.Message, 1)
		_, err := d.Start(flux.NewRequest("joblife-called.x", nil), func(m flux.Message, _ error) { answers <- m })
		require.NoError(t, err)
		q := <-inbox
		forged := q.Respond(flux.Text(`{"a":1}`))
		forged.UserID, forged.Rolemask = 1234, flux.RoleUser
		require.NoError(t, c.Send(forged))
		forged.Payload = make([]byte, 2*flux.Max) // it is skipped, and tells nobody
		require.NoError(t, c.Send(forged))
		require.NoError(t, c.Send(q.Respond(flux.Text(`{"b":2}`))))
		require.Equal(t, `{"b":2}`+"\x00", string((<-answers).Payload))
		require.Equal(t, `{"a":1}`+"\x00", string((<-strays).Payload))
		require.Empty(t, strays)
	})
}

func TestEvents(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, dial dialer) {
		c, inbox := dial()
		require.NoError(t, c.Subscribe(ctx, "joblife-test"))
		require.NoError(t, c.Send(flux.NewEvent("joblife-test.x", nil)))
		e := <-inbox
		require.Equal(t, "joblife-test.x", e.Topic)
		require.Equal(t, flux.TypeEvent, e.Type)
		require.Nil(t, e.Payload)
		first, private := e.Seq, flux.NewEvent("joblife-tested", flux.Text(`{"a":1}`))
		private.Flags |= flux.FlagPrivate
		require.NoError(t, c.Send(private))
		e = <-inbox
		require.Equal(t, "joblife-tested", e.Topic)
		require.Greater(t, e.Seq, first)
		require.EqualValues(t, os.Getuid(), e.UserID)
		require.True(t, e.Flags.Has(flux.FlagPrivate))
		require.Equal(t, `{"a":1}`+"\x00", string(e.Payload))

		// One that fits two subscriptions comes once, and one that fits none does not come.
		require.NoError(t, c.Subscribe(ctx, "joblife-test.y"))
		require.NoError(t, c.Send(flux.NewEvent("joblife-other", nil)))
		require.NoError(t, c.Send(flux.NewEvent("joblife-test.y", nil)))
		require.Equal(t, "joblife-test.y", (<-inbox).Topic)
		_, err := c.Attr(ctx, "rank")
		require.NoError(t, err)
		require.Empty(t, inbox)
	})
}
