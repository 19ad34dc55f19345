package joblife

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// queues are the named queues, or the anonymous one, by name.
type queues map[string]*queue

// A queue is one of them.
type queue struct {
	enable, start gate
	kept          gate // start, as the records have it
}

// A gate is open, or closed for a reason.
type gate struct {
	open   bool
	reason string
}

// set opens or closes a gate for a reason in words from outside.
func (g *gate) set(open bool, reason string) {
	if *g = (gate{open, sanitizeNote(reason)}); open {
		g.reason = ""
	}
}

// named returns the queues of a configuration: those there were, and new ones, which are
// started or not. Without names it is the anonymous one, which is always started.
func (q queues) named(names []string, started bool) (list queues, added []string) {
	list = make(queues)
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if list[name] = q[name]; list[name] == nil {
			start := gate{open: name == "" || started}
			list[name] = &queue{gate{open: true}, start, start}
			added = append(added, name)
		}
	}
	return list, added
}

// admits returns why a queue takes no jobs, in flux-core's words.
func (q queues) admits(name string) error {
	found := q[name]
	switch {
	case found == nil:
		return noQueue(ErrRefused, name)
	case found.enable.open:
		return nil
	case name != "":
		name = " to " + plain(name)
	}
	return fmt.Errorf("%w: job submission%s is disabled: %s", ErrRefused, name, found.enable.reason)
}

// starts reports whether the jobs of a queue go to the scheduler.
func (q queues) starts(name string) bool {
	found := q[name]
	return found != nil && found.start.open
}

// noQueue returns an error about a queue that the configuration does not have.
func noQueue(category error, name string) error {
	if name == "" {
		return fmt.Errorf("%w: a named queue is required", category)
	}
	return fmt.Errorf("%w: '%s' is not a valid queue", category, plain(name))
}

// owned returns a queue that by may change.
func (q queues) owned(by Cred, name string) (*queue, error) {
	if err := owner(by); err != nil {
		return nil, err
	}
	found := q[name]
	if found == nil {
		return nil, noQueue(ErrInvalid, name)
	}
	return found, nil
}

// A QueueStatus is the state of a queue.
type QueueStatus struct {
	Enabled       bool   `json:"enable"`
	Started       bool   `json:"start"`
	DisableReason string `json:"disable_reason,omitempty"`
	StopReason    string `json:"stop_reason,omitempty"`
}

// queueState is a queue as RecordQueue has it.
type queueState struct {
	Name string `json:"name"`
	QueueStatus
}

// record returns the record of a queue.
func (q queues) record(name string) Record {
	found := q[name]
	b, err := json.Marshal(queueState{name, QueueStatus{found.enable.open, found.kept.open, found.enable.reason, found.kept.reason}})
	if err != nil {
		panic("joblife: a queue that cannot be written: " + err.Error())
	}
	return Record{Kind: RecordQueue, Data: b}
}

// records returns the records of all queues, by name.
func (q queues) records() []Record {
	var list []Record
	for _, name := range slices.Sorted(maps.Keys(q)) {
		list = append(list, q.record(name))
	}
	return list
}

// restore reads a record. One of a queue that the configuration does not have is ignored.
func (q queues) restore(data []byte) error {
	var state queueState
	if err := json.Unmarshal(data, &state); err != nil {
		return fmt.Errorf("joblife: queue record: %w", err)
	}
	if found := q[state.Name]; found != nil {
		start := gate{state.Started, state.StopReason}
		*found = queue{gate{state.Enabled, state.DisableReason}, start, start}
	}
	return nil
}
