package joblife

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/guard"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A submitKey is the Key of a Submit, which is the user's own. RecordKey has it as JSON.
type submitKey struct {
	UserID uint32 `json:"userid"`
	Key    string `json:"key"`
}

const maxKey = 256 // bytes

func (k submitKey) check() error {
	switch {
	case len(k.Key) > maxKey:
		return fmt.Errorf("%w: a key of %d bytes, at most %d", ErrLimit, len(k.Key), maxKey)
	case k.Key == "" || !utf8.ValidString(k.Key):
		return fmt.Errorf("%w: key %s", ErrInvalid, guard.Quote(k.Key))
	}
	return nil
}

// keys finds the job that was submitted with a key, as long as the job is known.
type keys struct {
	jobs map[submitKey]jobid.ID
	of   map[jobid.ID]submitKey
}

func (k *keys) add(id jobid.ID, key submitKey) {
	k.jobs, k.of = put(k.jobs, key, id), put(k.of, id, key)
}

func (k *keys) drop(id jobid.ID) {
	if key, ok := k.of[id]; ok {
		delete(k.of, id)
		if k.jobs[key] == id {
			delete(k.jobs, key)
		}
	}
}

// inactive returns the records of an inactive job, as snapshots have them.
func (k *keys) inactive(rec jobstate.Summary) []Record {
	list := []Record{{Job: rec.ID, Kind: RecordInactive, Data: textOf(rec)}}
	if key, ok := k.of[rec.ID]; ok {
		b, err := json.Marshal(key)
		must("a key that cannot be written", err)
		list = append(list, Record{Job: rec.ID, Kind: RecordKey, sound: true, Data: b})
	}
	return list
}

// repeated answers a submission that repeats an earlier one, and reports whether it does.
func (m *machine) repeated(in Submit) (bool, error) {
	if in.Key == "" {
		return false, nil
	}
	key := submitKey{in.By.UserID, in.Key}
	if err := key.check(); err != nil {
		return false, err
	}
	id, ok := m.keys.jobs[key]
	switch {
	case !ok:
		return false, nil
	case in.ID != 0 && in.ID != id:
		return false, fmt.Errorf("%w: id %v: the job with that key is %v", ErrInvalid, in.ID, id)
	}
	m.answer(Answer{Tag: in.Tag, Job: id})
	return true, nil
}

// keyExtra returns the key as the event submit has it, beside what RFC 21 names.
func keyExtra(key string) json.RawMessage {
	if key == "" {
		return nil
	}
	b, _ := json.Marshal(map[string]string{"key": key}) // which never fails
	return b
}

// readKey reads the key from the event submit. There is none in most.
func (k *keys) readKey(id jobid.ID, line []byte) {
	if !bytes.Contains(line, []byte(`"key"`)) {
		return
	}
	var ev jobstate.Event
	e, err := eventlog.Parse(line)
	if err != nil || ev.Decode(e) != nil {
		return // the takeover tells
	}
	if c, ok := ev.Context().(*jobstate.SubmitContext); ok {
		key := submitKey{UserID: c.UserID}
		if json.Unmarshal(c.Extra, &key) == nil {
			k.put(id, submitKey{c.UserID, key.Key})
		}
	}
}

// put keeps a key for a job of the records, without finding the job by it.
func (k *keys) put(id jobid.ID, key submitKey) {
	if key.check() == nil {
		k.of = put(k.of, id, key)
	}
}

// restoreKeys takes over the keys of jobs that the Manager knows, or would know if their records
// could be read. The earlier of two jobs with the same key has it.
func (m *machine) restoreKeys(f *Follower) {
	for _, id := range slices.Sorted(maps.Keys(f.keys.of)) {
		_, over := f.over[id]
		over = over || m.quarantine.has(id)
		s, key := f.jobs[id], f.keys.of[id]
		if m.invalid[id] != nil || !over && (s == nil || len(s.log) == 0) {
			continue
		}
		if _, taken := m.keys.jobs[key]; !taken {
			m.keys.add(id, key)
		}
	}
}
