package rset

import (
	"sort"

	"github.com/joblife/joblife/rset/hostlist"
)

// hosts are the hosts of an R in rank order, as parts of lists that are never changed: a
// fragment shares the list of its parent.
type hosts []hostPart

// A hostPart is n hosts of a list.
type hostPart struct {
	list    *hostlist.List
	from, n int
	before  int // the number of hosts in the parts before
}

func (h hosts) len() int {
	if len(h) == 0 {
		return 0
	}
	last := h[len(h)-1]
	return last.before + last.n
}

// hostsOf returns hosts that are a whole list, which must not change from then on.
func hostsOf(list *hostlist.List) hosts {
	if list.IsEmpty() {
		return nil
	}
	return hosts{{list: list, n: list.Len()}}
}

// part returns where the part is that has the host at an index.
func (h hosts) part(i int) int {
	return sort.Search(len(h), func(k int) bool { return h[k].before+h[k].n > i })
}

// appendPart appends n hosts of src from an index on.
func (h hosts) appendPart(src hosts, from, n int) hosts {
	for k := src.part(from); n > 0; k++ {
		p := src[k]
		skip := from - p.before
		take := min(n, p.n-skip)
		if end := len(h) - 1; end >= 0 && h[end].list == p.list && h[end].from+h[end].n == p.from+skip {
			h[end].n += take
		} else {
			h = append(h, hostPart{p.list, p.from + skip, take, h.len()})
		}
		from, n = from+take, n-take
	}
	return h
}

// list returns the hosts as a new list, in time in proportion to ranges.
func (h hosts) list() *hostlist.List {
	out := new(hostlist.List)
	for _, p := range h {
		out.AppendPart(p.list, p.from, p.from+p.n)
	}
	return out
}

// differ returns the first of n hosts, from an index of each side on, that differs, or false,
// as if one side has no hosts.
func (h hosts) differ(g hosts, from, fromG, n int) (int, bool) {
	for done := 0; done < n && len(h) > 0 && len(g) > 0; {
		p, q := h[h.part(from+done)], g[g.part(fromG+done)]
		i, j := p.from+from+done-p.before, q.from+fromG+done-q.before
		take := min(p.from+p.n-i, q.from+q.n-j) // what is beyond n is not looked at
		if p.list != q.list {                   // in one list, a rank has one place
			x, _ := p.list.RangeAt(i)
			y, _ := q.list.RangeAt(j)
			take = int(min(uint64(take-1), x.Last-x.First, y.Last-y.First)) + 1
			if x.Prefix != y.Prefix || x.First != y.First || x.Width != y.Width {
				// The same name may be in ranges of different widths.
				take = 1
				nameX, _ := p.list.Nth(i)
				if nameY, _ := q.list.Nth(j); nameX != nameY {
					return done, true
				}
			}
		}
		done += take
	}
	return 0, false
}
