package manager

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/idset"
)

// drains are the nodes out of service, by rank: the value of a key of the bucket, so that the
// next manager knows them.
type drains struct {
	Ranks map[uint32]Drained `json:"ranks"`

	revision uint64
}

// A Drained says why a node is out of service.
type Drained struct {
	Reason string    `json:"reason"`
	UserID uint32    `json:"userid"`
	Since  time.Time `json:"since"`
}

const drainKey = "drain"

func (d drains) ranks() *idset.Set {
	set := new(idset.Set)
	for rank := range d.Ranks {
		set.Insert(rank)
	}
	return set
}

func (a *manager) openDrains(ctx context.Context) error {
	text, revision, err := a.keys.Get(ctx, drainKey)
	if err == nil && text != nil {
		err = json.Unmarshal(text, &a.drain)
	}
	a.drain.revision = revision
	return err
}

// drained takes nodes out of service, durably.
func (a *manager) drained(set *idset.Set, reason string, by uint32) error {
	return a.write(func(d map[uint32]Drained) {
		for rank := range set.All() {
			if _, ok := d[rank]; !ok && a.Nodes.Ranks().Contains(rank) {
				d[rank] = Drained{reason, by, time.Now().UTC().Truncate(time.Second)}
			}
		}
	})
}

// resumed puts nodes back into service, durably.
func (a *manager) resumed(set *idset.Set) error {
	return a.write(func(d map[uint32]Drained) {
		for rank := range set.All() {
			delete(d, rank)
		}
	})
}

// write changes the drains, one change after the other, while others read those before. Another
// manager that has changed them is active: this one ends.
func (a *manager) write(change func(map[uint32]Drained)) error {
	a.draining.Lock()
	defer a.draining.Unlock()
	next := drains{Ranks: maps.Clone(a.drain.Ranks)}
	if next.Ranks == nil {
		next.Ranks = make(map[uint32]Drained)
	}
	change(next.Ranks)
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	next.revision, err = a.keys.Update(ctx, drainKey, text, a.drain.revision)
	if errors.Is(err, engine.ErrLost) {
		a.end(err)
	}
	if err == nil {
		a.mu.Lock()
		a.drain = next
		a.mu.Unlock()
	}
	return err
}
