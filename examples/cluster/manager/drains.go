package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
)

// drains are the nodes out of service, by rank: the value of a key of the bucket, so that the
// next manager knows them.
type drains struct {
	Ranks map[uint32]Drained `json:"ranks"`
	Epoch uint64             `json:"epoch,omitempty"` // of who wrote it, so that no two managers write the same

	revision uint64
}

// A Drained says why a node is out of service.
type Drained struct {
	Reason string    `json:"reason"`
	UserID uint32    `json:"userid"`
	Since  time.Time `json:"since"`
}

const drainKey = "drain"

// maxReason is how many bytes the reason of an operator has: those of all nodes are in one message,
// which has room for 14 000 of printable text.
const maxReason = 256

func (d drains) ranks() *idset.Set {
	set := new(idset.Set)
	for rank := range d.Ranks {
		set.Insert(rank)
	}
	return set
}

// openDrains reads the drains, and writes them as they are: a manager that was active before, and
// does not know yet that it is not, can change them no more.
func (a *manager) openDrains(ctx context.Context) error {
	for {
		text, revision, err := a.keys.Get(ctx, drainKey)
		d := drains{revision: revision}
		if err == nil && text != nil {
			err = json.Unmarshal(text, &d)
		}
		if err == nil {
			err = a.store(ctx, d)
		}
		if !errors.Is(err, engine.ErrLost) {
			return err
		}
	}
}

// store stores drains in place of those of their revision.
func (a *manager) store(ctx context.Context, d drains) error {
	d.Epoch = a.epoch
	text, err := wire.Marshal(d)
	if err == nil {
		d.revision, err = a.keys.Update(ctx, drainKey, text, d.revision)
	}
	if err == nil {
		a.mu.Lock()
		a.drain = d
		a.mu.Unlock()
	}
	return err
}

// drained takes nodes out of service, durably. Of one that is already, an operator may give another
// reason.
func (a *manager) drained(set *idset.Set, reason string, by uint32) error {
	return a.write(func(d map[uint32]Drained) {
		for rank := range set.All() {
			if old, ok := d[rank]; !ok && a.Nodes.Ranks().Contains(rank) {
				d[rank] = Drained{cmp.Or(reason, "no reason was given"), by, time.Now().UTC().Truncate(time.Second)}
			} else if ok && reason != "" && reason != actionFailed {
				d[rank] = Drained{reason, by, old.Since}
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
	next := drains{Ranks: maps.Clone(a.drain.Ranks), revision: a.drain.revision}
	if next.Ranks == nil {
		next.Ranks = make(map[uint32]Drained)
	}
	change(next.Ranks)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := a.store(ctx, next)
	if errors.Is(err, engine.ErrLost) {
		a.end(err)
	}
	return err
}
