package rset_test

import (
	"fmt"
	"strings"

	"github.com/joblife/joblife/idset"
)

// clusterText returns the R of n nodes with 48 cores and 8 gpus; different
// nodes each lack cores of their own.
func clusterText(n int, different bool) string {
	var b strings.Builder
	b.WriteString(`{"version":1,"execution":{"R_lite":[`)
	if different {
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"rank":"%d","children":{"core":"%s","gpu":"0-7"}}`, i, missing(i))
		}
	} else {
		ranks := new(idset.Set)
		ranks.InsertRange(0, uint32(n-1))
		fmt.Fprintf(&b, `{"rank":"%s","children":{"core":"0-47","gpu":"0-7"}}`, ranks)
	}
	hosts := fmt.Sprintf("n[0-%d]", n-1)
	if n == 1 {
		hosts = "n0"
	}
	fmt.Fprintf(&b, `],"starttime":0.0,"expiration":0.0,"nodelist":["%s"]}}`, hosts)
	return b.String()
}

// missing returns the cores of a node, another set for each below 2^15.
func missing(i int) string {
	s := new(idset.Set)
	s.InsertRange(0, 47)
	for bit := range uint32(15) {
		if i>>bit&1 == 1 {
			s.Remove(3*bit + 1)
		}
	}
	return s.String()
}
