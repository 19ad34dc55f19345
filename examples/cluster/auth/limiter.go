package auth

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A Limiter bounds the requests of each user, so that a flood of one leaves others served. What
// answers requests asks Allow before it does any work. Make one with NewLimiter; any goroutine
// may use it.
type Limiter struct {
	perSecond rate.Limit
	burst     int
	max       int

	mu      sync.Mutex
	buckets map[uint32]*rate.Limiter
	swept   time.Time
}

// NewLimiter returns a Limiter that allows each user burst requests at once and perSecond in the
// long run, and remembers max users. All three must be above zero.
func NewLimiter(perSecond float64, burst, max int) (*Limiter, error) {
	if !(perSecond > 0) || burst <= 0 || max <= 0 {
		return nil, errors.New("auth: a limit of requests must be above zero")
	}
	return &Limiter{perSecond: rate.Limit(perSecond), burst: burst, max: max, buckets: map[uint32]*rate.Limiter{}}, nil
}

// Allow reports if a request of uid at now may be answered, and counts it. If max others were
// busy lately it refuses. It forgets users who are as good as new, in O(max), at most once in
// the time in which an empty bucket fills.
func (l *Limiter) Allow(uid uint32, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[uid]
	if b == nil {
		if len(l.buckets) >= l.max && !l.sweep(now) {
			return false
		}
		b = rate.NewLimiter(l.perSecond, l.burst)
		l.buckets[uid] = b
	}
	return b.AllowN(now, 1)
}

// Charge counts n requests more of uid, which Allow has allowed: what it asked for was that much
// work. Until that is made up for, Allow refuses.
func (l *Limiter) Charge(uid uint32, now time.Time, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := l.buckets[uid]; b != nil && n > 0; n -= l.burst {
		b.ReserveN(now, min(n, l.burst))
	}
}

// sweep forgets those whose bucket is full, and reports if there is room.
func (l *Limiter) sweep(now time.Time) bool {
	fill := time.Duration(float64(l.burst) / float64(l.perSecond) * float64(time.Second))
	if now.Sub(l.swept) < fill {
		return false
	}
	l.swept = now
	for uid, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.burst) {
			delete(l.buckets, uid)
		}
	}
	return len(l.buckets) < l.max
}
