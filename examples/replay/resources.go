package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobspec"
)

// resources is what a listing shows of a resource set (RFC 20).
type resources struct {
	ranks      *idset.Set
	nodelist   string
	expiration float64
	jobspec.Resources
}

// maxCount bounds what the counts of a resource set may add up to.
const maxCount = 1 << 53

// parseR reads version 1 of a resource set as far as a listing needs it.
func parseR(b []byte) (*resources, error) {
	var doc struct {
		Version   int
		Execution struct {
			RLite []struct {
				Rank     *idset.Set
				Children map[string]*idset.Set
			} `json:"R_lite"`
			Nodelist   []string
			Expiration float64
			NSlots     int64 `json:"nslots"`
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("resource set: %w", err)
	}
	if doc.Version != 1 {
		return nil, fmt.Errorf("resource set: version %d is not supported", doc.Version)
	}
	x := &doc.Execution
	r := &resources{ranks: new(idset.Set), nodelist: strings.Join(x.Nodelist, ","), expiration: x.Expiration}
	r.Slots = x.NSlots
	for i, e := range x.RLite {
		ranks := int64(e.Rank.Len())
		if ranks == 0 || e.Rank.Intersects(r.ranks) {
			return nil, fmt.Errorf("resource set: R_lite[%d]: ranks %q are empty or stand twice", i, e.Rank)
		}
		r.ranks.UnionWith(e.Rank)
		cores, gpus := int64(e.Children["core"].Len()), int64(e.Children["gpu"].Len())
		if (cores+gpus)*ranks > maxCount {
			return nil, fmt.Errorf("resource set: R_lite[%d]: too many resources", i)
		}
		r.Cores += ranks * cores
		r.GPUs += ranks * gpus
	}
	r.Nodes = int64(r.ranks.Len())
	return r, nil
}
