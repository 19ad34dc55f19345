package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/examples/internal/strict"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
)

// Flags of the calls to the KVS.
const (
	kvsReadDir    = 1
	kvsWatch      = 4
	kvsWaitCreate = 8
	kvsTreeObj    = 16
	kvsAppend     = 32
)

// The keys beside those of jobs.
const (
	keyJobs        = "job"
	keyEventlog    = ".eventlog"
	keyJobspec     = ".jobspec"
	keyR           = ".R"
	keyHousekept   = ".joblife.housekeeping"
	keyCheckpoint  = "checkpoint.job-manager"
	keyTombstones  = "checkpoint.joblife"
	keyLost        = "job-lost+found.job."
	keyInstance    = "resource.R"
	jobLevels      = 4  // of folders, from keyJobs to a job
	lookupsAtOnce  = 64 // as flux-core has it
	checkpointForm = 1  // version of the checkpoint
)

// kvs is the store of -store lines: the peer's KVS. Of a job it writes the eventlog; the
// jobspec and the R are there, since job-ingest and the scheduler have put them there. If a
// job bypasses the scheduler, it writes the R.
type kvs struct {
	memory
	p         *process
	peer      *client // who has the KVS, to the end
	watermark jobid.ID
	queues    map[string]json.RawMessage // states, by name
	tombs     []byte                     // what the KVS has of tombstones
	replace   bool                       // or what the next commit replaces it with
	most      int                        // bytes of it, before those that have expired are left out
	aside     []jobid.ID                 // moved since the KVS was read
	over      bool                       // nobody will answer
}

// A treeObj is an object of RFC 11.
type treeObj struct {
	Version int             `json:"ver"`
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`
}

// An op is a change of a key; without a Dirent it removes the key.
type op struct {
	Key    string          `json:"key"`
	Flags  int             `json:"flags"`
	Dirent json.RawMessage `json:"dirent"`
}

// value returns the object of a value.
func value(text []byte) json.RawMessage {
	return append(base64.StdEncoding.AppendEncode([]byte(`{"ver":1,"type":"val","data":"`), text), `"}`...)
}

// commitOf returns the payload of a request to change keys.
func commitOf(ops ...op) any {
	return struct {
		Namespace string `json:"namespace"`
		Flags     int    `json:"flags"`
		Ops       []op   `json:"ops"`
	}{"primary", 0, ops}
}

// commit changes keys, all or none.
func (s *kvs) commit(ops []op, then func(error)) {
	s.call(topicCommit, commitOf(ops...), false, func(m message) { then(m.failure()) })
}

// look asks for what is at a key. Nothing is nil.
func (s *kvs) look(key string, flags int, then func(*treeObj, error)) {
	topic, stream := "kvs.lookup", flags&kvsWatch != 0
	if stream {
		topic = "kvs-watch.lookup"
	}
	s.call(topic, struct {
		Namespace string `json:"namespace"`
		Key       string `json:"key"`
		Flags     int    `json:"flags"`
	}{"primary", key, flags}, stream, func(m message) {
		var answer struct {
			Value *treeObj `json:"val"`
		}
		err := m.failure()
		switch {
		case m.Errnum == errno.NoEntry:
			err = nil
		case err == nil && strict.Unmarshal(m.Payload, &answer) != nil:
			err = errors.New("the answer has no object of RFC 11")
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", key, err)
		}
		then(answer.Value, err)
	})
}

func (s *kvs) call(topic string, payload any, stream bool, then func(message)) {
	c := call{client: s.peer, topic: topic, stream: stream, then: func(m message) error { then(m); return nil }}
	if s.over {
		s.p.lost(c, errno.Unreachable, "the input ended")
	} else if !s.p.ask(c, service.Any, payload) {
		s.p.lost(c, errno.NoSys, "there is nobody to ask")
	}
}

// watch tells the service when the resources of the instance expire, and each time that it
// changes.
func (s *kvs) watch() {
	s.look(keyInstance, kvsWatch|kvsWaitCreate, func(o *treeObj, err error) {
		var failed *peerError
		switch {
		case errors.As(err, &failed) && failed.Errnum == errno.Unreachable:
			return // the end
		case err == nil && o != nil:
			var text []byte
			var r *rset.R
			if text, err = o.text(); err == nil {
				r, err = rset.Parse(text)
			}
			if err == nil {
				err = s.p.service.Expire(r.Expiration())
			}
		}
		if err != nil {
			s.p.printf(service.LevelError, "the expiration of the instance is not known: %v", err)
		}
	})
}

func (s *kvs) serve(cfg *service.Config) { cfg.Begin = s.begin }

func (s *kvs) begin(rd *joblife.Ready, done func(map[jobid.ID]error, error)) {
	commits, err := s.commits(rd)
	s.p.writing, s.p.room = true, busyRoom()
	finish := func(err error) {
		if s.p.writing, s.p.room = false, busyRoom(); err == nil {
			s.keep(rd)
		} else {
			s.p.fail(fmt.Errorf("-store: %w", err))
		}
		done(nil, err)
	}
	var next func(error)
	next = func(err error) {
		if len(commits) == 0 || err != nil {
			finish(err)
			return
		}
		ops := commits[0]
		commits = commits[1:]
		s.commit(ops, next)
	}
	next(err)
}

// maxCommit is how many bytes of records a commit has at most, beside the last record.
const maxCommit = 8 << 20

// commits returns the commits that store a Ready, one after the other: no message is longer than
// the KVS, and what is on the way to it, takes.
func (s *kvs) commits(rd *joblife.Ready) (list [][]op, err error) {
	var c batch
	if len(s.tombs) > s.most {
		if _, err := s.tombstones(s.tombs); err != nil {
			return nil, err
		}
	}
	if s.replace {
		c.ops = append(c.ops, op{Key: keyTombstones, Dirent: value(s.tombs)})
		s.replace = false
	}
	given := make(map[jobid.ID][]byte)
	for _, r := range rd.Append {
		if c.size > maxCommit {
			list = append(list, c.end(s))
			c = batch{}
		}
		switch r.Kind {
		case joblife.RecordEvent:
			c.add(r.Job.KVSPath()+keyEventlog, r.Data)
			if text := given[r.Job]; text != nil && bypasses(r.Data) {
				c.ops = append(c.ops, op{r.Job.KVSPath() + keyR, 0, value(text)})
				c.size += len(text)
			}
		case joblife.RecordR:
			given[r.Job] = r.Data
		case joblife.RecordHousekeeping:
			c.add(r.Job.KVSPath()+keyHousekept, r.Data)
		case joblife.RecordTombstone:
			text, err := joblife.AppendRecords(nil, []joblife.Record{r})
			if err != nil {
				return nil, err
			}
			c.add(keyTombstones, text)
			s.tombs = append(s.tombs, text...)
		case joblife.RecordWatermark:
			id, err := purge.ParseWatermark(r.Data)
			if err != nil {
				return nil, err
			}
			s.watermark, c.checkpoint = max(s.watermark, id), true
		case joblife.RecordQueue:
			c.checkpoint = true
			if err := s.setQueue(r.Data); err != nil {
				return nil, err
			}
		}
	}
	last := c.end(s)
	for _, id := range rd.Unlink {
		last = append(last, op{Key: id.KVSPath()})
	}
	if len(last) > 0 {
		list = append(list, last)
	}
	return list, nil
}

// A batch becomes a commit.
type batch struct {
	size       int      // of its records
	ops        []op     // those that come first
	order      []string // of the keys to append to
	lines      map[string][]byte
	checkpoint bool
}

// add appends a text to a key.
func (c *batch) add(key string, text []byte) {
	if c.lines == nil {
		c.lines = make(map[string][]byte)
	}
	if c.lines[key] == nil {
		c.order = append(c.order, key)
	}
	c.lines[key] = append(c.lines[key], text...)
	c.size += len(text)
}

// end returns the commit.
func (c *batch) end(s *kvs) []op {
	for _, key := range c.order {
		c.ops = append(c.ops, op{key, kvsAppend, value(c.lines[key])})
	}
	if c.checkpoint {
		c.ops = append(c.ops, s.checkpoint())
	}
	return c.ops
}

// bypasses reports whether an event gives a job an R that no scheduler has put there.
func bypasses(line []byte) bool {
	e, err := eventlog.Parse(line)
	if err != nil || e.Name != jobstate.EventAlloc {
		return false
	}
	var context struct{ Bypass bool }
	return json.Unmarshal(e.Context, &context) == nil && context.Bypass
}

// setQueue notes the state of a queue. The anonymous one has no name, as in flux-core.
func (s *kvs) setQueue(text []byte) error {
	var queue struct {
		Name          string `json:"name,omitempty"`
		Enable        bool   `json:"enable"`
		Start         bool   `json:"start"`
		DisableReason string `json:"disable_reason,omitempty"`
		StopReason    string `json:"stop_reason,omitempty"`
	}
	err := json.Unmarshal(text, &queue)
	if err == nil {
		s.queues[queue.Name], err = json.Marshal(queue)
	}
	return err
}

// leave stores the greatest id that there was, so that none comes again if somebody removes jobs
// before the next start. Nobody waits for it.
func (s *kvs) leave() {
	if id := s.p.service.MaxID(); id > s.watermark {
		s.watermark = id
		s.commit([]op{s.checkpoint()}, func(error) {})
	}
}

// A checkpoint is what flux-core's module stores at its end, and this one at each change too.
type checkpoint struct {
	Version int               `json:"version"`
	MaxID   jobid.ID          `json:"max_jobid"`
	Queues  []json.RawMessage `json:"queue"`
}

// checkpoint returns what stores the watermark and the queues.
func (s *kvs) checkpoint() op {
	c := checkpoint{Version: checkpointForm, MaxID: s.watermark, Queues: []json.RawMessage{}}
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		c.Queues = append(c.Queues, s.queues[name])
	}
	text, _ := json.Marshal(c) // of JSON
	return op{keyCheckpoint, 0, value(text)}
}

// putAside moves the keys of a job to where flux-core moves them without being asked. Its id is among
// those that are gone.
func (s *kvs) putAside(id jobid.ID, done func(error)) {
	s.look(id.KVSPath(), kvsTreeObj, func(o *treeObj, err error) {
		if err == nil && o == nil {
			err = fmt.Errorf("nothing is at %s", id.KVSPath())
		}
		if err != nil {
			done(err)
			return
		}
		dirent, _ := json.Marshal(o) // which was JSON
		s.watermark = max(s.watermark, id)
		s.commit([]op{s.checkpoint(), {Key: keyLost + id.String(), Dirent: dirent}, {Key: id.KVSPath()}}, func(err error) {
			if err == nil {
				s.aside = append(s.aside, id)
			}
			done(err)
		})
	})
}

// load walks the KVS.
func (s *kvs) load(f func(iter.Seq2[joblife.Record, error])) {
	s.peer = s.p.bridge()
	l := &kvsLoader{s: s, jobs: make(map[jobid.ID]*kvsJob), then: f}
	l.look(keyCheckpoint, 0, l.checkpoint)
	l.look(keyTombstones, 0, func(o *treeObj) error {
		var err error
		l.tombs, err = o.text()
		return err
	})
	l.look(keyJobs, kvsReadDir, func(o *treeObj) error { return l.folder(o, keyJobs, jobLevels) })
	l.next()
}

// kvsJob is what the KVS has of a job.
type kvsJob struct {
	service.Stored
	housekept []byte
}

// A kvsLoader reads all jobs.
type kvsLoader struct {
	s       *kvs
	queue   []func() // lookups to make
	open    int      // lookups that are not answered
	err     error
	jobs    map[jobid.ID]*kvsJob
	records []joblife.Record // of the checkpoint
	tombs   []byte
	then    func(iter.Seq2[joblife.Record, error])
}

// look makes a lookup, when its turn comes. do gets what there is.
func (l *kvsLoader) look(key string, flags int, do func(*treeObj) error) {
	l.queue = append(l.queue, func() {
		l.open++
		l.s.look(key, flags, func(o *treeObj, err error) {
			l.open--
			if err == nil && o != nil {
				if err = do(o); err != nil {
					err = fmt.Errorf("%s: %w", key, err)
				}
			}
			if l.err == nil {
				l.err = err
			}
			l.next()
		})
	})
}

// next makes lookups, and ends after the last.
func (l *kvsLoader) next() {
	for l.open < lookupsAtOnce && len(l.queue) > 0 && l.err == nil {
		do := l.queue[len(l.queue)-1] // depth first, so that few wait
		l.queue = l.queue[:len(l.queue)-1]
		do()
	}
	if then := l.then; then != nil && (l.err != nil || l.open == 0) {
		l.then = nil
		for _, id := range slices.Sorted(maps.Keys(l.jobs)) {
			if len(l.jobs[id].Eventlog) == 0 && l.err == nil {
				l.s.p.warnf("job %v has no eventlog: it was not submitted to its end", id)
				delete(l.jobs, id)
			}
		}
		then(l.all)
	}
}

// text returns a value.
func (o *treeObj) text() (text []byte, err error) {
	if o.Type != "val" || json.Unmarshal(o.Data, &text) != nil {
		return nil, fmt.Errorf("want a value, and not the type %.64q", o.Type)
	}
	return text, nil
}

// checkpoint reads the watermark and the queues.
func (l *kvsLoader) checkpoint(o *treeObj) error {
	text, err := o.text()
	if err != nil {
		return err
	}
	var c checkpoint
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if c.Version > checkpointForm {
		return fmt.Errorf("version %d is not known", c.Version)
	}
	if c.MaxID > 0 {
		l.s.watermark = c.MaxID
		l.records = append(l.records, joblife.Record{Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, c.MaxID)})
	}
	for _, text := range c.Queues {
		if err := l.s.setQueue(text); err != nil {
			return err
		}
		l.records = append(l.records, joblife.Record{Kind: joblife.RecordQueue, Data: text})
	}
	return nil
}

// folder looks at what is in a folder, which is so many levels above jobs.
func (l *kvsLoader) folder(o *treeObj, key string, levels int) error {
	var list map[string]treeObj
	if err := json.Unmarshal(o.Data, &list); o.Type != "dir" || err != nil {
		return fmt.Errorf("want a folder, and not the type %.64q", o.Type)
	}
	names := slices.Sorted(maps.Keys(list))
	slices.Reverse(names) // the last is looked at first
	for _, name := range names {
		if t := list[name].Type; t != "dir" && t != "dirref" {
			continue
		}
		inner := key + "." + name
		if levels > 1 {
			l.look(inner, kvsReadDir, func(o *treeObj) error { return l.folder(o, inner, levels-1) })
			continue
		}
		id, err := jobid.Parse(strings.TrimPrefix(inner, keyJobs+"."))
		if err != nil || id.KVSPath() != inner {
			l.s.p.warnf("%.256s is the key of no job", inner)
			continue
		}
		l.job(id)
	}
	return nil
}

// job looks at the keys of a job.
func (l *kvsLoader) job(id jobid.ID) {
	j := new(kvsJob)
	l.jobs[id] = j
	for _, part := range []struct {
		key  string
		text *[]byte
	}{{keyHousekept, &j.housekept}, {keyR, &j.R}, {keyJobspec, &j.Jobspec}, {keyEventlog, &j.Eventlog}} {
		l.look(id.KVSPath()+part.key, 0, func(o *treeObj) (err error) {
			*part.text, err = o.text()
			return err
		})
	}
}

// all yields what was read.
func (l *kvsLoader) all(yield func(joblife.Record, error) bool) {
	if l.err != nil {
		yield(joblife.Record{}, l.err)
		return
	}
	clear(l.s.memory) // it may be read again
	give := func(r joblife.Record) bool {
		l.s.add(r)
		return yield(r, nil)
	}
	for _, r := range l.records {
		if !give(r) {
			return
		}
	}
	tombs, err := l.s.tombstones(l.tombs)
	if err != nil {
		yield(joblife.Record{}, fmt.Errorf("%s: %w", keyTombstones, err))
		return
	}
	for _, r := range tombs {
		if !give(r) || l.jobs[r.Job] == nil && !give(joblife.Record{Job: r.Job, Kind: joblife.RecordUnlinked}) {
			return
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.jobs)) {
		j := l.jobs[id]
		if slices.Contains(l.s.aside, id) {
			continue
		}
		for line := range bytes.Lines(j.housekept) {
			if !give(joblife.Record{Job: id, Kind: joblife.RecordHousekeeping, Data: line}) {
				return
			}
		}
		if !yieldJob(id, j.Stored, func(r joblife.Record, _ error) bool { return give(r) }) {
			return
		}
	}
}

// minTombstones is how many bytes of tombstones are no reason to look for those that have expired.
const minTombstones = 64 << 10

// tombstones returns those that have not expired. If some have, the next commit leaves them out.
// It is called again when there are twice as many, so that the KVS has few that have expired, and
// each tombstone costs the same in the mean.
func (s *kvs) tombstones(text []byte) (list []joblife.Record, err error) {
	expired := make(map[jobid.ID]bool)
	for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
		if err != nil {
			return nil, err
		}
		expired[r.Job] = len(r.Data) == 0
		list = append(list, r)
	}
	n := len(list)
	list = slices.DeleteFunc(list, func(r joblife.Record) bool { return expired[r.Job] })
	if len(list) < n {
		s.replace = true
		text, err = joblife.AppendRecords([]byte{}, list)
	}
	s.tombs, s.most = text, max(minTombstones, 2*len(text))
	return list, err
}
