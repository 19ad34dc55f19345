package manager

import (
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/joblife/joblife"
)

// maxRequests is how many requests may be served at once, those that wait included, and
// maxRequested how many bytes they may have: nodes need the rest of the inbox. A guest may have
// one part in perGuest.
const (
	maxRequests  = 1 << 16
	maxRequested = 32 << 20
	perGuest     = 8
)

// A share is so many requests of so many bytes.
type share struct{ n, bytes int }

// fits reports if there is room for one more in a part of it.
func (s share) fits(part int) bool { return s.n < maxRequests/part && s.bytes <= maxRequested/part }

func (s share) plus(n, bytes int) share { return share{s.n + n, s.bytes + bytes} }

// requests are those that are served. The zero value has none.
type requests struct {
	mu     sync.Mutex
	last   uint64 // tag
	all    share
	guests map[uint32]share   // those that have any
	list   map[uint64]request // by tag
}

type request struct {
	by    joblife.Cred
	sub   *nats.Subscription // by which it came, and reply is where its answer goes
	reply string
	verb  string
	bytes int       // that are kept: of a wait none
	until time.Time // the end of a wait
}

// add returns the tag of a request, or false if there is no room, or its guest has its part.
func (rs *requests) add(r request) (tag uint64, ok bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if !rs.all.fits(1) || r.by.Guest && !rs.guests[r.by.UserID].fits(perGuest) {
		return 0, false
	}
	if rs.list == nil {
		rs.list, rs.guests = make(map[uint64]request), make(map[uint32]share)
	}
	rs.last++
	rs.list[rs.last] = r
	rs.count(r, 1)
	return rs.last, true
}

// end returns a request that has its answer, and false if it had one.
func (rs *requests) end(tag uint64) (request, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r, ok := rs.list[tag]
	if ok {
		delete(rs.list, tag)
		rs.count(r, -1)
	}
	return r, ok
}

// count counts a request: n is 1 as it begins, and -1 as it ends.
func (rs *requests) count(r request, n int) {
	rs.all = rs.all.plus(n, n*r.bytes)
	if !r.by.Guest {
		return
	}
	if s := rs.guests[r.by.UserID].plus(n, n*r.bytes); s.n > 0 {
		rs.guests[r.by.UserID] = s
	} else {
		delete(rs.guests, r.by.UserID)
	}
}

// tags returns those of requests, in order.
func (rs *requests) tags(of func(request) bool) (tags []uint64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for tag, r := range rs.list {
		if of(r) {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}
