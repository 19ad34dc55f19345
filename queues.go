package joblife

import (
	"encoding/json"
	"fmt"
)

// queues are the named queues by name, or only the anonymous one, whose name is "".
type queues map[string]*queue

type queue struct {
	now  QueueStatus
	kept QueueStatus // without volatile changes: as the records have it
}

// reasonFor returns the reason for which a queue is closed, in words from outside.
func reasonFor(open bool, words string) string {
	if open {
		return ""
	}
	return sanitizeNote(words)
}

// named returns the queues of a configuration. Those that exist keep their state; new ones begin
// started if started is set. Without names that is the anonymous queue, which always does.
func (q queues) named(names []string, started bool) (list queues, added []string) {
	list = make(queues)
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		if list[name] = q[name]; list[name] == nil {
			begins := QueueStatus{Enabled: true, Started: name == "" || started}
			list[name] = &queue{begins, begins}
			added = append(added, name)
		}
	}
	return list, added
}

// admits returns an error if a queue takes no jobs, in flux-core's words.
func (q queues) admits(name string) error {
	found := q[name]
	switch {
	case found == nil:
		return noQueue(ErrRefused, name)
	case found.now.Enabled:
		return nil
	case name != "":
		name = " to " + plain(name)
	}
	return fmt.Errorf("%w: job submission%s is disabled: %s", ErrRefused, name, found.now.DisableReason)
}

func noQueue(category error, name string) error {
	if name == "" {
		return fmt.Errorf("%w: a named queue is required", category)
	}
	return fmt.Errorf("%w: '%s' is not a valid queue", category, plain(name))
}

// forOwner returns a queue to change, which only the owner may do.
func (q queues) forOwner(by Cred, name string) (*queue, error) {
	if err := owner(by); err != nil {
		return nil, err
	}
	found := q[name]
	if found == nil {
		return nil, noQueue(ErrInvalid, name)
	}
	return found, nil
}

// queueState is a queue as RecordQueue has it.
type queueState struct {
	Name string `json:"name"`
	QueueStatus
}

func (s queueState) record() Record {
	b, err := json.Marshal(s)
	must("a queue that cannot be written", err)
	return Record{Kind: RecordQueue, sound: true, Data: b}
}

func (q queues) record(name string) Record { return queueState{name, q[name].kept}.record() }
