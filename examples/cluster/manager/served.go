package manager

import (
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// maxRequests is how many requests may be served at once, those that wait included, and
// maxRequested how many bytes they may have: nodes need the rest of the inbox.
const (
	maxRequests  = 1 << 16
	maxRequested = 32 << 20
)

// requests are those that are served.
type requests struct {
	mu    sync.Mutex
	last  uint64 // tag
	bytes int
	list  map[uint64]request // by tag
}

type request struct {
	msg   *nats.Msg
	verb  string
	until time.Time // the end of a wait
}

// add returns the tag of a request, or false if there is no room.
func (rs *requests) add(r request) (tag uint64, ok bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.list) >= maxRequests || rs.bytes > maxRequested {
		return 0, false
	}
	rs.last++
	rs.bytes += len(r.msg.Data)
	rs.list[rs.last] = r
	return rs.last, true
}

// end returns a request that has its answer, and false if it had one.
func (rs *requests) end(tag uint64) (request, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r, ok := rs.list[tag]
	if ok {
		rs.bytes -= len(r.msg.Data)
		delete(rs.list, tag)
	}
	return r, ok
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
