package joblife_test

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/joblife/joblife"
)

// takeOver returns the Manager that a fresh process makes, or a standby that has followed. They
// are the same.
func (p *play) takeOver(clock time.Time) (*joblife.Manager, joblife.Recovered) {
	m, rec, err := joblife.Restore(clock, p.cfg, all(p.sorted(p.store)))
	p.Must(err)
	if len(p.removed) == 0 { // else the standby does not know yet what the store has removed
		cfg := p.cfg
		cfg.Hooks = p.hooks()
		warm, warmRec, err := p.standby.Restore(clock, cfg)
		p.Must(err)
		a, b := rec, warmRec
		if a.Time, b.Time = 0, 0; fmt.Sprint(a) != fmt.Sprint(b) {
			p.Fail("I5: a standby recovers otherwise: %v and %v", a, b)
		}
		// Only one of them may have a snapshot, or a record that the store has dropped.
		if a, b := joblife.DescribeAll(m), joblife.DescribeAll(warm); a != b && m.Now().Equal(warm.Now()) {
			p.Fail("I5: a standby takes over otherwise:\n%s", diff(a, b))
		}
		if p.P(0.5) {
			m, rec = warm, warmRec
		}
	}
	clear(p.removed)
	p.follow(p.sorted(p.store))
	return m, rec
}

// follow has a new standby read records.
func (p *play) follow(records []joblife.Record) {
	p.standby = new(joblife.Follower)
	for _, r := range records {
		p.Must(p.standby.Add(r))
	}
}

// compact returns the snapshot of the standby, which a standby reads as itself.
func (p *play) compact() []joblife.Record {
	snap := slices.Collect(p.standby.Snapshot())
	text, err := joblife.AppendRecords(nil, snap)
	p.Must(err)
	p.follow(snap)
	if again, err := joblife.AppendRecords(nil, slices.Collect(p.standby.Snapshot())); err != nil || !bytes.Equal(again, text) {
		p.Fail("a snapshot of a snapshot is another: %v\n%s", err, diff(string(text), string(again)))
	}
	return snap
}
