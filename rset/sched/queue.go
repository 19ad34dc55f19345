package sched

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset/pool"
)

// A key is what the queue is sorted by: priority, greatest first, then id.
type key struct {
	priority uint32
	id       jobid.ID
}

func (k key) compare(l key) int {
	return cmp.Or(cmp.Compare(l.priority, k.priority), cmp.Compare(k.id, l.id))
}

// A need is the least that a job needs.
type need struct {
	nodes   int64              // that are idle
	cores   int64              // that are free
	takes   eventlog.Timestamp // how long, in seconds; never: it has no limit
	request *pool.Request      // nil: of several jobs that do not ask for the same
}

func needOf(q *pool.Request) need {
	n := need{takes: never, request: q}
	n.nodes, n.cores, _ = q.Least()
	if d := q.Duration(); d > 0 {
		n.takes = eventlog.Timestamp(d.Seconds())
	}
	return n
}

// least returns the least of two needs in each respect.
func (n need) least(m need) need {
	if n.request != m.request {
		n.request = nil
	}
	return need{min(n.nodes, m.nodes), min(n.cores, m.cores), min(n.takes, m.takes), n.request}
}

// never is after all times.
const never = eventlog.Timestamp(math.MaxFloat64)

// A sieve holds back jobs that cannot start. Not all that pass it can.
type sieve struct {
	nodes, cores int64              // that there are
	spare        int64              // nodes of these that are not reserved for the head
	now, until   eventlog.Timestamp // a job that ends by then may have nodes that are reserved
	busy         map[*pool.Request]bool
}

func (s *sieve) passes(n need) bool {
	return n.nodes <= s.nodes && n.cores <= s.cores && (n.nodes <= s.spare || s.now+n.takes <= s.until) && !s.busy[n.request]
}

// An entry is a job in the queue. It has what a scan looks at.
type entry struct {
	key
	need
	job *job
}

// chunkLen is the most that a chunk has. To scan it costs little more than to go to the next.
const chunkLen = 128

// A queue is jobs in order, in chunks that know what the least of their jobs needs. A
// search passes over chunks without a job that may start. The zero queue is empty.
type queue struct {
	chunks []*chunk // none is empty
	n      int
	spare  *chunk // an empty one, for the next; nil: none
}

type chunk struct {
	entries []entry
	least   need // of any entry
}

func (c *chunk) measure() {
	c.least = c.entries[0].need
	for i := range c.entries {
		c.least = c.least.least(c.entries[i].need)
	}
}

// find returns where a key is or would be: in which chunk, perhaps behind all, and where there.
func (q *queue) find(k key) (c, i int) {
	c = sort.Search(len(q.chunks), func(c int) bool {
		e := q.chunks[c].entries
		return e[len(e)-1].compare(k) >= 0
	})
	if c == len(q.chunks) {
		return c, 0
	}
	e := q.chunks[c].entries
	return c, sort.Search(len(e), func(i int) bool { return e[i].compare(k) >= 0 })
}

func (q *queue) insert(e entry) {
	c, i := q.find(e.key)
	if c == len(q.chunks) && c > 0 { // at the end
		c--
		i = len(q.chunks[c].entries)
	}
	switch {
	case c == len(q.chunks), i == chunkLen: // most jobs come at the end, so chunks stay full
		at := q.spare
		if at == nil {
			at = &chunk{entries: make([]entry, 0, chunkLen)}
		}
		q.spare, at.least = nil, e.need
		q.chunks = append(q.chunks, at)
		c, i = len(q.chunks)-1, 0
	case len(q.chunks[c].entries) == chunkLen:
		q.split(c)
		if half := len(q.chunks[c].entries); i > half {
			c, i = c+1, i-half
		}
	}
	at := q.chunks[c]
	at.entries = slices.Insert(at.entries, i, e)
	at.least = at.least.least(e.need)
	q.n++
}

// split makes two chunks of one.
func (q *queue) split(c int) {
	at := q.chunks[c]
	half := len(at.entries) / 2
	rest := &chunk{entries: append(make([]entry, 0, chunkLen), at.entries[half:]...)}
	clear(at.entries[half:])
	at.entries = at.entries[:half]
	at.measure()
	rest.measure()
	q.chunks = slices.Insert(q.chunks, c+1, rest)
}

func (q *queue) remove(k key) {
	c, i := q.find(k)
	at := q.chunks[c]
	was := at.entries[i].need
	at.entries = slices.Delete(at.entries, i, i+1)
	q.n--
	if len(at.entries) == 0 {
		q.spare, q.chunks = at, slices.Delete(q.chunks, c, c+1)
		return
	}
	if q.join(c) || c > 0 && q.join(c-1) {
		return
	}
	if was.nodes == at.least.nodes || was.cores == at.least.cores || was.takes == at.least.takes || at.least.request == nil {
		at.measure()
	}
}

// join makes one chunk of two that would fill a half, and reports whether it did.
func (q *queue) join(c int) bool {
	if c+1 == len(q.chunks) {
		return false
	}
	at, next := q.chunks[c], q.chunks[c+1]
	if len(at.entries)+len(next.entries) > chunkLen/2 {
		return false
	}
	at.entries = append(at.entries, next.entries...)
	q.chunks = slices.Delete(q.chunks, c+1, c+2)
	at.measure()
	return true
}

// first returns the first job that passes a sieve, nil if there is none. All pass a nil sieve.
func (q *queue) first(s *sieve) *job { return q.scan(0, 0, s) }

// after is first behind a place, in which there need not be a job.
func (q *queue) after(k key, s *sieve) *job {
	c, i := q.find(k)
	if c < len(q.chunks) && q.chunks[c].entries[i].key == k {
		i++
	}
	return q.scan(c, i, s)
}

func (q *queue) scan(c, i int, s *sieve) *job {
	for ; c < len(q.chunks); c, i = c+1, 0 {
		at := q.chunks[c]
		if s != nil && !s.passes(at.least) {
			continue
		}
		for ; i < len(at.entries); i++ {
			if s == nil || s.passes(at.entries[i].need) {
				return at.entries[i].job
			}
		}
	}
	return nil
}

// beyond reports whether more than n jobs come before a key, and looks no further than n.
func (q *queue) beyond(k key, n int) bool {
	if n >= q.n {
		return false
	}
	c, i := q.find(k)
	for _, at := range q.chunks[:c] {
		if n -= len(at.entries); n < 0 {
			return true
		}
	}
	return i > n
}
