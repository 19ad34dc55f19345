package auth

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestALimiterAllowsEachUserTheSame(t *testing.T) {
	l, err := NewLimiter(10, 5, 100)
	require.NoError(t, err)
	allowed := func(uid uint32, now time.Time, tries int) (n int) {
		for range tries {
			if l.Allow(uid, now) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 5, allowed(1, epoch, 10_000), "a burst")
	require.Equal(t, 5, allowed(2, epoch, 10_000), "another has its own")
	require.Equal(t, 0, allowed(1, epoch.Add(99*time.Millisecond), 10))
	require.Equal(t, 1, allowed(1, epoch.Add(100*time.Millisecond), 10))
	require.Equal(t, 5, allowed(1, epoch.Add(time.Hour), 10), "a bucket is not above full")
	require.Equal(t, 0, allowed(1, epoch, 10), "a clock that goes back gives nothing")
}

func TestALimiterRemembersNoMoreThanItsMax(t *testing.T) {
	l, err := NewLimiter(10, 5, 2)
	require.NoError(t, err)
	require.True(t, l.Allow(1, epoch))
	require.True(t, l.Allow(2, epoch))
	require.False(t, l.Allow(3, epoch), "no room")
	require.True(t, l.Allow(1, epoch), "a known user goes on")
	later := epoch.Add(499 * time.Millisecond)
	for l.Allow(1, later) {
	}
	require.False(t, l.Allow(3, later), "it looked less than half a second ago")
	later = epoch.Add(500 * time.Millisecond)
	require.True(t, l.Allow(3, later), "2 is as good as new, and forgotten")
	require.Len(t, l.buckets, 2)
	require.Contains(t, l.buckets, uint32(1), "a busy user is not")
	require.False(t, l.Allow(4, later))
}

func TestALimiterWantsLimits(t *testing.T) {
	for _, l := range []struct {
		perSecond  float64
		burst, max int
	}{{0, 1, 1}, {-1, 1, 1}, {1, 0, 1}, {1, 1, 0}} {
		_, err := NewLimiter(l.perSecond, l.burst, l.max)
		require.Error(t, err)
	}
}

// TestAFloodLeavesOthersServed sends 10 000 requests of one user, and then one of another. What
// answers works on few of the flood before it comes to the other; without a limiter on all.
func TestAFloodLeavesOthersServed(t *testing.T) {
	const flood, burst, perSecond = 10_000, 20, 50
	for _, limited := range []bool{true, false} {
		l, err := NewLimiter(perSecond, burst, 100)
		require.NoError(t, err)
		server, bad, good := strict.client(t, Reader()), strict.client(t, User(1)), strict.client(t, User(10))
		worked := 0 // until the other is served
		s := server.listen(inst.Subject("req", "*", "reader.history"))
		answer := good.listen(good.NewInbox())

		start := time.Now()
		for range flood {
			require.NoError(t, bad.PublishMsg(&nats.Msg{Subject: inst.Subject("req", 1, "reader.history"), Reply: "_INBOX.1.x"}))
		}
		require.NoError(t, bad.flush())
		good.send(inst.Subject("req", 10, "reader.history"), answer.Subject, "")
		for {
			m := server.hear(s)
			uid := uint32(1)
			if m.Reply != "_INBOX.1.x" {
				uid = 10
			}
			if limited && !l.Allow(uid, time.Now()) {
				continue
			}
			if uid == 10 {
				require.NoError(t, m.Respond(nil))
				break
			}
			worked++
		}
		took := time.Since(start)
		require.NotNil(t, good.hear(answer))
		if limited {
			require.LessOrEqual(t, worked, burst+int(took.Seconds()*perSecond)+1)
		} else {
			require.Equal(t, flood, worked, "the control")
		}
		t.Logf("limited %t: %d of %d in %v", limited, worked, flood, took.Round(time.Millisecond))
	}
}

// What a user is charged for has to be made up for.
func TestALimiterCharges(t *testing.T) {
	l, err := NewLimiter(10, 5, 100)
	require.NoError(t, err)
	l.Charge(1, epoch, 1000) // nobody is known
	require.True(t, l.Allow(1, epoch))
	l.Charge(1, epoch, 24) // of which four were there
	require.False(t, l.Allow(1, epoch.Add(2*time.Second)))
	require.True(t, l.Allow(1, epoch.Add(2200*time.Millisecond)))
	require.True(t, l.Allow(2, epoch))
}

func BenchmarkLimiter(b *testing.B) {
	l, err := NewLimiter(10, 5, 1000)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		l.Allow(1, epoch)
	}
}
