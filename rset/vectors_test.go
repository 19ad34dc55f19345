package rset_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/jsonobj"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/hostlist"
)

type vector struct {
	Op     string            `json:"op"`
	A      json.RawMessage   `json:"a"`
	B      json.RawMessage   `json:"b"`
	Ranks  *string           `json:"ranks"`
	Hosts  *string           `json:"hosts"`
	Config map[string]string `json:"config"`
	OK     bool              `json:"ok"`
	RC     int               `json:"rc"`
	Error  *string           `json:"error"`
	Result json.RawMessage   `json:"result"`
	Dumps  *string           `json:"dumps"`
	NNodes int               `json:"nnodes"`
	NCores int64             `json:"ncores"`
	NGPUs  int64             `json:"ngpus"`
	ROR    *string           `json:"ranks_of_result"`
}

// Where this package deliberately differs from the reference, by reason.
const (
	mistyped      = "a value of another JSON type is let in"
	laxIDs        = "empty elements of an idset are let in"
	laxHosts      = "white space between hosts is let in"
	badTimes      = "a negative time, or an expiration not after the start, is let in"
	badSlots      = "a number of slots that is negative, or above an int, is dropped"
	noResource    = "a rank without resources is let in, and lost"
	emptyKind     = "an empty set of gpus makes a separate entry"
	twoEntries    = "a rank in two entries is let in"
	twoHosts      = "a rank on two hosts is let in, or dropped"
	keepsMeta     = "times or slots of fragments and unions are lost"
	dropsGraph    = "the scheduling key stays though the resources change"
	keepsProperty = "properties are lost, or those of one side"
	emptyHasHosts = "an empty R has an empty nodelist"
)

func TestEveryOperationAnswersAsTheReference(t *testing.T) {
	differences := refdata.ExpectDifferences(t, map[string]int{
		mistyped: 17, laxIDs: 3, laxHosts: 1, badTimes: 19, badSlots: 4, noResource: 2, emptyKind: 1,
		twoHosts: 10, keepsMeta: 41, dropsGraph: 7, keepsProperty: 7, emptyHasHosts: 21, twoEntries: 35,
	})
	agree, refused, others := 0, 0, 0
	for _, v := range refdata.Lines[vector](t, "vectors/rset.jsonl.gz", 617) {
		switch v.Op {
		case "config", "verify", "remap", "hosts_to_ranks": // what this package does not do
			others++
			continue
		}
		got, err := run(v)
		found := differ(v, got, err)
		for _, d := range found {
			differences.Note(reason(v, d, err))
		}
		switch {
		case len(found) == 0 && v.OK:
			agree++
		case len(found) == 0:
			refused++
		}
	}
	require.Equal(t, 187, agree)
	require.Equal(t, 175, refused)
	require.Equal(t, 100, others)
}

// reason returns why an answer differs in some respect, or what differs where
// that is not deliberate.
func reason(v vector, what string, err error) string {
	if err != nil {
		return refusal(v, err)
	}
	var a, b wire
	_ = json.Unmarshal(v.A, &a)
	_ = json.Unmarshal(v.B, &b)
	switch what {
	case "start", "expiration":
		if v.Op != "parse" {
			return keepsMeta
		}
	case "nslots":
		if v.Op == "parse" {
			return badSlots
		}
		return keepsMeta
	case "scheduling":
		return dropsGraph
	case "properties":
		if len(a.Execution.Properties)+len(b.Execution.Properties) > 0 {
			return keepsProperty
		}
	case "R_lite":
		if strings.Contains(string(v.A), `"gpu":""`) {
			return emptyKind
		}
	case "nodelist":
		if strings.Contains(string(v.Result), `"R_lite":[]`) || strings.Contains(string(v.Result), `"R_lite": []`) {
			return emptyHasHosts
		}
	}
	return fmt.Sprintf("%s: %s: %v", v.Op, what, err)
}

// refusal returns why a line that the reference accepts is refused.
func refusal(v vector, err error) string {
	text := err.Error()
	switch {
	case strings.Contains(err.Error(), badHosts) && strings.Contains(text, "two hosts"):
		return twoHosts
	case strings.Contains(err.Error(), "idset: syntax error"):
		return laxIDs
	case strings.Contains(err.Error(), "hostlist: syntax error"):
		return laxHosts
	case !strings.Contains(err.Error(), invalidR):
	case strings.Contains(text, ".expiration: "), strings.Contains(text, ".starttime: "):
		return badTimes
	case errors.Is(err, jsonobj.ErrKind):
		return mistyped
	case strings.Contains(text, ".nslots: "):
		return badSlots
	case strings.Contains(text, " is in another entry"):
		return twoEntries
	case strings.Contains(text, "must have a resource"):
		return noResource
	}
	return fmt.Sprintf("%s: %v", v.Op, err)
}

func run(v vector) (*rset.R, error) {
	a, err := rset.Parse(v.A)
	if err != nil {
		return nil, err
	}
	var b *rset.R
	if len(v.B) > 0 && string(v.B) != "null" {
		if b, err = rset.Parse(v.B); err != nil {
			return nil, err
		}
	}
	var hosts *hostlist.List
	if v.Hosts != nil {
		if hosts, err = hostlist.Parse(*v.Hosts); err != nil {
			return nil, err
		}
	}
	var ranks *idset.Set
	if v.Ranks != nil {
		if ranks, err = idset.Parse(*v.Ranks); err != nil {
			return nil, err
		}
	}
	var r *rset.R
	switch v.Op {
	case "parse":
		r = a
	case "union", "add":
		r, err = rset.Union(a, b)
	case "append":
		r, err = rset.UnionDisjoint(a, b)
	case "diff":
		r, _, err = rset.Subtract(a, b)
	case "intersect":
		r, err = rset.Intersect(a, b)
	case "copy_ranks":
		r, err = a.Restrict(idset.Intersect(ranks, a.Ranks()))
	case "remove_ranks":
		r, err = a.Without(idset.Intersect(ranks, a.Ranks()))
	case "rerank":
		r, err = a.Rerank(hosts)
	case "assign_hosts":
		r, err = a.AssignHosts(hosts)
	}
	return r, err
}

type wire struct {
	Version   int
	Execution struct {
		Lite []struct {
			Rank     string
			Children map[string]string
		} `json:"R_lite"`
		Starttime, Expiration float64
		Nslots                int64
		Nodelist              []string
		Properties            map[string]string
	}
	Scheduling any
}

func differ(v vector, got *rset.R, err error) []string {
	if (err == nil) != v.OK {
		if err != nil {
			return []string{"refused"}
		}
		return []string{"accepted"}
	}
	if err != nil {
		return nil
	}
	var w, g wire
	if err := json.Unmarshal(v.Result, &w); err != nil {
		return []string{"result unreadable"}
	}
	if err := json.Unmarshal(got.AppendJSON(nil), &g); err != nil {
		panic(err)
	}
	var out []string
	eq := func(name string, a, b any) {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) {
			out = append(out, name)
		}
	}
	eq("R_lite", w.Execution.Lite, g.Execution.Lite)
	eq("start", w.Execution.Starttime, g.Execution.Starttime)
	eq("expiration", w.Execution.Expiration, g.Execution.Expiration)
	eq("nslots", w.Execution.Nslots, g.Execution.Nslots)
	eq("nodelist", w.Execution.Nodelist, g.Execution.Nodelist)
	eq("properties", w.Execution.Properties, g.Execution.Properties)
	eq("scheduling", w.Scheduling, g.Scheduling)
	if len(out) == 0 || out[0] != "R_lite" {
		eq("text", *v.Dumps, got.String())
	}
	eq("counts", []any{v.NNodes, v.NCores, v.NGPUs, *v.ROR}, []any{got.Len(), got.Count("core"), got.Count("gpu"), got.Ranks().String()})
	return out
}
