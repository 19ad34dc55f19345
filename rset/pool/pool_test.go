package pool_test

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
)

// How errors begin.
const (
	heldTwice  = "pool: resources are held twice"
	notInside  = "pool: resources are not in the inventory"
	notHeld    = "pool: resources are not held by the job"
	badArg     = "pool: invalid argument"
	badRequest = "pool: invalid request"
	badAcquire = "pool: invalid response to resource.acquire"
	tooMuch    = "pool: limit exceeded"
)

// requestOf returns the request of a jobspec.
func requestOf(t require.TestingT, spec string) *pool.Request {
	s, err := jobspec.Parse([]byte(spec))
	require.NoError(t, err)
	q, err := pool.NewRequest(s)
	require.NoError(t, err)
	return q
}

// byNode returns a request for nodes with so many cores on each.
func byNode(t require.TestingT, nodes, cores string) *pool.Request {
	return requestOf(t, specText(shape("node", nodes, vertex("slot", "1", vertex("core", cores))), ""))
}

// bySlot returns a request for slots of so many cores.
func bySlot(t require.TestingT, slots, cores string) *pool.Request {
	return requestOf(t, specText(shape("slot", slots, vertex("core", cores)), ""))
}

// wholeNodes returns the resource of nodes, whatever is on them.
func wholeNodes(nodes string) string { return vertex("slot", "1", whole(vertex("node", nodes))) }

func countOf(t require.TestingT, text string) jobspec.Count {
	c, err := jobspec.ParseCount(text)
	require.NoError(t, err)
	return c
}

var childText = regexp.MustCompile(`([a-z]+)(\d+|\[[^]]*\])`)

// parseR reads the one-line form of an R, and hosts after it: rank[0-1]/core[0-3] n[0-1].
func parseR(t require.TestingT, text string) *rset.R {
	var c rset.Config
	for part := range strings.FieldsSeq(text) {
		ranks, children, ok := strings.Cut(strings.TrimPrefix(part, "rank"), "/")
		if !ok {
			list, err := hostlist.Parse(part)
			require.NoError(t, err)
			c.Hosts = list
			continue
		}
		e := rset.Entry{Children: map[string]*idset.Set{}}
		var err error
		e.Ranks, err = idset.Parse(ranks)
		require.NoError(t, err)
		for _, m := range childText.FindAllStringSubmatch(children, -1) {
			e.Children[m[1]], err = idset.Parse(m[2])
			require.NoError(t, err)
		}
		c.Entries = append(c.Entries, e)
	}
	r, err := rset.New(c)
	require.NoError(t, err)
	return r
}

// newPool returns a pool, all of which is down.
func newPool(t require.TestingT, inventory string) *pool.Pool {
	p, err := pool.New(parseR(t, inventory), pool.Config{})
	require.NoError(t, err)
	return p
}

// upPool returns a pool, all of which is up.
func upPool(t require.TestingT, inventory string) *pool.Pool {
	p := newPool(t, inventory)
	require.NoError(t, p.Update(pool.Change{Up: p.Inventory().Ranks()}))
	return p
}

// alloc allocates at time 100 and checks the pool.
func alloc(t require.TestingT, p *pool.Pool, id jobid.ID, q *pool.Request) *rset.R {
	r, err := p.Alloc(id, q, 100)
	require.NoError(t, err, fmt.Sprint(q))
	require.NoError(t, p.Check())
	return r
}

// free frees what a job has of some ranks, or nothing, and checks the pool. It returns what
// else is freed.
func free(t require.TestingT, p *pool.Pool, id jobid.ID, r *rset.R, ranks string, final bool) (rest *rset.R) {
	set, err := idset.Parse(ranks)
	require.NoError(t, err)
	part, err := r.Restrict(set)
	require.NoError(t, err)
	rest, err = p.Free(id, part, final)
	require.NoError(t, err)
	require.NoError(t, p.Check())
	return rest
}
