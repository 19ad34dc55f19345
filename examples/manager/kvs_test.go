package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/jobstate/jobid"
)

// A peer is a KVS, and what submits jobs as job-ingest does.
type peer struct {
	t      *testing.T
	keys   map[string]string // values, by key
	queue  []message         // calls that are not answered
	most   int               // how many lookups waited at once
	others []string          // lines of other topics
	left   int               // commits until it answers no more; -1: never
	apply  bool              // the commit that is not answered is made
	broken map[string]string // payloads of lookups, by key

	watched uint32 // matchtag of the watch on resource.R
}

func newPeer(t *testing.T) *peer { return &peer{t: t, keys: make(map[string]string), left: -1} }

// Write takes a line of the manager's.
func (k *peer) Write(text []byte) (int, error) {
	m, err := parseMessage(text)
	if err == nil && m.Topic == "kvs-watch.lookup" {
		k.watched = *m.Matchtag
	} else if err == nil && strings.HasPrefix(m.Topic, "kvs.") {
		k.queue = append(k.queue, m)
		k.most = max(k.most, len(k.queue))
	} else {
		k.others = append(k.others, string(text))
	}
	return len(text), nil
}

// live begins a process on the KVS.
func (k *peer) live(flags ...string) *life {
	k.t.Helper()
	l := begin(k.t, append([]string{"-now=1000"}, append(flags, "-store=lines")...)...)
	l.c, l.kvs = l.p.only(k), k
	k.queue, k.others, k.most = nil, nil, 0
	l.p.start()
	return l
}

// served is live, and answers what it asks.
func (k *peer) served(flags ...string) *life {
	l := k.live(flags...)
	k.serve(l)
	return l
}

// joined returns a KVS that is the first client of a socket, before another one.
func joined(t *testing.T) (*peer, *socket) {
	k, s := newPeer(t), newSocket(t, 0, "-store=lines")
	s.c = s.clients[s.connect(k)]
	s.connect(nil)
	return k, s
}

// serve answers all calls, and those that follow.
func (k *peer) serve(l *life) {
	k.t.Helper()
	for len(k.queue) > 0 && k.left != 0 {
		if answer := k.answer(); answer != nil {
			l.p.handle(l.c, lines.Line{Number: 1, Text: answer})
		}
	}
}

// answer returns the answer to the oldest call, nil if it is not to have one.
func (k *peer) answer() []byte {
	m := k.queue[0]
	k.queue = k.queue[1:]
	o := output{Topic: m.Topic, Matchtag: *m.Matchtag}
	if m.Topic == "kvs.lookup" {
		o.Payload, o.Errnum = k.lookup(m.Payload)
		return o.line()
	}
	if k.left--; k.left != 0 || k.apply {
		k.commit(m.Payload)
	}
	if k.left == 0 {
		return nil
	}
	return o.line()
}

// ask asks a line, answers what comes of it, and returns the other lines.
func (k *peer) ask(l *life, text string) string {
	k.ingest(text)
	k.others = nil
	l.p.handle(l.c, lines.Line{Number: 1, Text: []byte(text)})
	k.serve(l)
	return strings.Join(k.others, "")
}

// ingest puts there what job-ingest puts there of a job before it is submitted, and what a
// scheduler does.
func (k *peer) ingest(text string) {
	var m struct {
		Payload struct {
			ID   jobid.ID
			R    json.RawMessage
			Jobs []struct {
				ID      jobid.ID
				Jobspec json.RawMessage
			}
		}
	}
	_ = json.Unmarshal([]byte(text), &m) // most have none of it
	for _, j := range m.Payload.Jobs {
		k.keys[j.ID.KVSPath()+keyJobspec] = string(j.Jobspec)
	}
	if m.Payload.R != nil {
		k.keys[m.Payload.ID.KVSPath()+keyR] = string(m.Payload.R)
	}
}

func (k *peer) lookup(payload json.RawMessage) (any, int) {
	var q struct {
		Namespace, Key string
		Flags          int
	}
	require.NoError(k.t, json.Unmarshal(payload, &q))
	require.Equal(k.t, "primary", q.Namespace)
	if text, ok := k.broken[q.Key]; ok && text == "gone" {
		return nil, 2
	} else if ok {
		return json.RawMessage(text), 0
	}
	names := make(map[string]json.RawMessage)
	for key, text := range k.keys {
		if key == q.Key && q.Flags == 0 {
			return map[string]any{"val": value([]byte(text))}, 0
		}
		if rest, ok := strings.CutPrefix(key, q.Key+"."); ok {
			name, _, folder := strings.Cut(rest, ".")
			names[name] = json.RawMessage(`{"ver":1,"type":"valref","data":["x"]}`)
			if folder {
				names[name] = json.RawMessage(`{"ver":1,"type":"dirref","data":["x"]}`)
			}
		}
	}
	switch {
	case len(names) == 0:
		return nil, 2
	case q.Flags == kvsReadDir:
		return map[string]any{"val": map[string]any{"ver": 1, "type": "dir", "data": names}}, 0
	case q.Flags == kvsTreeObj:
		return map[string]any{"val": map[string]any{"ver": 1, "type": "dirref", "data": []string{q.Key}}}, 0
	}
	return nil, 21 // EISDIR
}

func (k *peer) commit(payload json.RawMessage) {
	var c struct {
		Namespace string
		Flags     int
		Ops       []op
	}
	require.NoError(k.t, json.Unmarshal(payload, &c))
	require.NotEmpty(k.t, c.Ops)
	for _, o := range c.Ops {
		var obj struct {
			Type string
			Data json.RawMessage
		}
		require.NoError(k.t, json.Unmarshal(o.Dirent, &obj))
		switch obj.Type {
		case "": // null
			maps.DeleteFunc(k.keys, func(key, _ string) bool { return strings.HasPrefix(key, o.Key+".") })
		case "dirref":
			var from []string
			require.NoError(k.t, json.Unmarshal(obj.Data, &from))
			for key, text := range maps.Clone(k.keys) {
				if rest, ok := strings.CutPrefix(key, from[0]); ok {
					k.keys[o.Key+rest] = text
				}
			}
		default:
			var text []byte
			require.NoError(k.t, json.Unmarshal(obj.Data, &text))
			if o.Flags == kvsAppend {
				text = append([]byte(k.keys[o.Key]), text...)
			}
			k.keys[o.Key] = string(text)
		}
	}
}

// flip damages the log of a job.
func (k *peer) flip(id jobid.ID) {
	log := k.keys[id.KVSPath()+keyEventlog]
	require.Contains(k.t, log, `"submit"`)
	k.keys[id.KVSPath()+keyEventlog] = strings.Replace(log, `"submit"`, `"sabmit"`, 1)
}

// stopQueue stops the queue.
const stopQueue = `{"topic":"job-manager.queue-start","matchtag":9,"payload":{"start":false,"all":false,"reason":"tests"}}`

func TestTheKeysOfTheKVS(t *testing.T) {
	k := newPeer(t)
	l := k.served()
	l.ask(submit(1, 17), submit(2, 18), raise(5, 18), purgeOf(18))
	l.end()
	require.NotContains(t, k.keys, jobid.ID(17).KVSPath()+keyR)
	require.NotContains(t, k.keys, jobid.ID(18).KVSPath()+keyEventlog)
	require.Contains(t, k.keys[keyTombstones], `"tombstone"`)
	require.Regexp(t, `^{"version":1,"max_jobid":18,"queue":\[`, k.keys[keyCheckpoint])

	// The first commit after a restart leaves out what has expired.
	expired, err := joblife.AppendRecords(nil, []joblife.Record{{Time: 1, Job: 18, Kind: joblife.RecordTombstone}})
	require.NoError(t, err)
	k.keys[keyTombstones] += string(expired)
	l = k.served()
	require.Contains(t, k.ask(l, submit(4, 18)), `given before`)
	l.end()
	require.Empty(t, k.keys[keyTombstones])
}

// The KVS has few tombstones that have expired, however long the manager lives.
func TestTheKVSForgetsTombstones(t *testing.T) {
	s := &kvs{memory: make(memory), queues: make(map[string]json.RawMessage)}
	const alive, all = 1000, 20_000
	var key []byte
	size := 0
	for n := 1; n <= all; n++ {
		rd := &joblife.Ready{Append: []joblife.Record{{Time: 1, Job: jobid.ID(n), Kind: joblife.RecordTombstone, Data: []byte("x")}}}
		if n > alive {
			rd.Append = append(rd.Append, joblife.Record{Time: 1, Job: jobid.ID(n - alive), Kind: joblife.RecordTombstone})
		}
		list, err := s.commits(rd)
		require.NoError(t, err)
		for _, o := range slices.Concat(list...) {
			var object treeObj
			require.NoError(t, json.Unmarshal(o.Dirent, &object))
			text, err := object.text()
			require.NoError(t, err)
			if o.Flags != kvsAppend {
				key = nil
			}
			key = append(key, text...)
		}
		if n == alive {
			size = len(key)
		}
		require.Less(t, len(key), 3*size+(128<<10))
	}
	list, err := s.tombstones(key)
	require.NoError(t, err)
	require.Len(t, list, alive)
	require.EqualValues(t, all-alive+1, list[0].Job)
}

// No scheduler puts R there of a job that brings its own: see alloc-bypass.
func TestTheKVSGetsAnRThatNoSchedulerGave(t *testing.T) {
	k := newPeer(t)
	l := k.served("-owner=100")
	r := fmt.Sprintf(resources, 3)
	bypass := strings.Replace(submit(1, 17), `"duration":60`, `"duration":60,"alloc-bypass":{"R":`+r+`}`, 1)
	l.ask(schedHello, schedReady, bypass, submit(2, 18))
	given := k.keys[jobid.ID(17).KVSPath()+keyR]
	require.Contains(t, given, `"rank":"3"`)
	k.ask(l, "{"+gives(18, 0)+"}")
	require.JSONEq(t, fmt.Sprintf(resources, 0), k.keys[jobid.ID(18).KVSPath()+keyR], "as the scheduler put it there")
	l.end()

	l = k.served("-owner=100")
	require.Contains(t, k.ask(l, `{"topic":"job-manager.getattr","matchtag":3,"payload":{"id":17,"attrs":["R"]}}`), `"rank":"3"`)
	require.NotContains(t, l.end(), "cannot be read")
}

// What asks while the KVS is read waits, at most so many lookups are under way, and the
// order of the answers is the one of the requests.
func TestRequestsWaitForTheWalk(t *testing.T) {
	k := newPeer(t)
	l := k.served()
	for id := 16; id < 116; id++ {
		k.ask(l, submit(id, id))
	}
	l.end()
	l = k.live()
	for id := 16; id < 116; id++ {
		l.p.handle(l.c, lines.Line{Number: 1, Text: []byte(eventlogOf(id, id))})
	}
	l.p.handle(l.c, lines.Line{Number: 1, Text: []byte(`{"topic":"job-manager.nosuch","matchtag":9}`)})
	require.Empty(t, k.others)
	k.serve(l)
	require.Equal(t, lookupsAtOnce, k.most)
	require.Len(t, k.others, 101)
	require.Contains(t, k.others[0], `"errnum":38`, "a failure waits for no commit")
	for i, text := range k.others[1:] {
		require.Contains(t, text, fmt.Sprintf(`"matchtag":%d,`, i+16))
		require.Regexp(t, "^submit validate", names(t, text))
	}
	l.end()
}

// What comes while the KVS commits follows in parts, each after the one before: no message is too
// long for those who pass it on. An end between two loses only what was not answered.
func TestMuchIsCommittedInParts(t *testing.T) {
	t.Parallel()
	race.Skip(t)
	const memos, size = 14, 900_000
	for _, stop := range []int{3, 0} {
		if stop == 0 && os.Getenv("JOBLIFE_DEEP") == "" {
			continue
		}
		k := newPeer(t)
		l := k.served()
		l.ask(submit(1, 16), submit(2, 17)) // the log of one has no room for all
		commits := 0
		for n := range memos { // the first is under way
			text := fmt.Sprintf(`{"topic":"job-manager.memo","matchtag":%d,"payload":{"id":%d,"memo":{"m":"%d %s"}}}`, 10+n, 16+n%2, n, strings.Repeat("x", size))
			l.p.handle(l.c, lines.Line{Number: 1, Text: []byte(text)})
		}
		k.others, k.left = nil, stop-1
		for len(k.queue) > 0 && k.left != 0 {
			require.Len(t, k.queue, 1)
			require.Less(t, len(k.queue[0].Payload), (maxCommit+2*size)*4/3)
			require.Less(t, len(k.others), 2, "no answer before the last part")
			commits++
			l.p.handle(l.c, lines.Line{Number: 1, Text: k.answer()})
		}
		if stop == 0 {
			require.Len(t, k.others, memos)
			require.Equal(t, 3, commits)
		}
		k.left = -1
		l = k.served()
		require.NotContains(t, l.end(), "not replayed")
		stored := 0
		for job := range 2 {
			log := k.keys[jobid.ID(16+job).KVSPath()+keyEventlog]
			for n := range strings.Count(log, `"memo"`) {
				_, log, _ = strings.Cut(log, `"memo"`)
				require.True(t, strings.HasPrefix(log, fmt.Sprintf(`,"context":{"m":"%d x`, 2*n+job)), "%.80s", log)
				stored++
			}
		}
		require.GreaterOrEqual(t, stored, len(k.others))
	}
}

// The process ends at each commit in turn, before it is made or after. Whatever was answered
// is there afterwards.
func TestNoEndLosesWhatWasAnswered(t *testing.T) {
	for stop := 1; ; stop++ {
		ended := false
		for _, apply := range []bool{false, true} {
			k := newPeer(t)
			l := k.live()
			k.left, k.apply = stop, apply
			k.serve(l)
			var answered []string
			for _, text := range []string{submit(16, 16), submit(17, 17), raise(18, 17), stopQueue, purgeOf(17), submit(19, 18)} {
				answered = append(answered, k.ask(l, text))
				if k.left == 0 {
					break
				}
			}
			ended = k.left == 0
			k.left = -1
			l = k.live()
			k.serve(l)
			if answered[0] != "" {
				require.Regexp(t, "^submit validate", names(t, k.ask(l, eventlogOf(1, 16))))
			}
			if len(answered) > 2 && answered[2] != "" && (len(answered) < 5 || answered[4] == "" && !apply) {
				require.Regexp(t, "exception clean$", names(t, k.ask(l, eventlogOf(1, 17))))
			}
			if len(answered) > 4 && answered[4] != "" {
				require.Contains(t, k.ask(l, eventlogOf(1, 17)), `"errstr":"unknown job"`)
			}
			require.NotContains(t, l.end(), "cannot be read")
		}
		if !ended {
			require.Greater(t, stop, 5)
			return
		}
	}
}

// Others put keys there that are no jobs, or none yet. What is put aside keeps all its keys.
func TestWhatIsNoJobInTheKVSIsTold(t *testing.T) {
	k := newPeer(t)
	l := k.served()
	k.ask(l, submit(17, 17))
	l.end()
	path := jobid.ID(17).KVSPath()
	k.keys[path+keyEventlog] = "{\n"
	k.keys["job.0000.0000.0000.0011x.eventlog"] = "no job"
	k.keys[jobid.ID(99).KVSPath()+keyJobspec] = sleep // of job-ingest, which has not submitted it yet
	l = k.served("-put-aside=17")
	text := l.end()
	require.Contains(t, text, "job.0000.0000.0000.0011x is the key of no job")
	require.Equal(t, 1, strings.Count(text, "job ƒ2i has no eventlog"), text)
	require.NotContains(t, l.p.store.(*kvs).memory, jobid.ID(17))
	require.NotContains(t, k.keys, path+keyEventlog)
	require.Equal(t, sleep, k.keys["job-lost+found.job.ƒJ.jobspec"])
}

// damaged returns a KVS with jobs whose logs are damaged while each holds a core.
func damaged(t *testing.T, ids ...int) *peer {
	k := newPeer(t)
	l := k.served()
	l.ask(schedHello, schedReady)
	for core, id := range ids {
		l.ask(submit(id, id), "{"+gives(id, core)+"}")
		require.Contains(t, k.keys[jobid.ID(id).KVSPath()+keyEventlog], "alloc")
		k.flip(jobid.ID(id))
	}
	l.end()
	return k
}

// A job that is not moved keeps its nodes (PR-10): nobody may be told otherwise before.
func TestTheServiceBeginsWhenTheLastJobIsMoved(t *testing.T) {
	k := damaged(t, 16, 17)
	l := k.live("-put-aside=16", "-put-aside=17")
	k.left, k.apply = 2, true
	require.Empty(t, k.ask(l, schedHello))
	require.Zero(t, k.left, "two commits move two jobs")
	require.Regexp(t, "manager: error: job ƒH not replayed: .*; it is put aside\n", l.stderr.String())
	require.NotContains(t, l.stderr.String(), "job ƒJ cannot be read, and is put aside: ")
	answer := k.ask(l, `{"topic":"kvs.commit"}`)
	require.Contains(t, answer, `{"topic":"job-manager.sched-hello","matchtag":1,`)
	require.NotContains(t, answer, `"id":`)
	require.Regexp(t, "manager: error: job ƒJ not replayed: .*; it is put aside\n", l.end())
	require.Contains(t, k.keys, "job-lost+found.job.ƒH.eventlog")
	require.Contains(t, k.keys, "job-lost+found.job.ƒJ.eventlog")
}

func TestAJobThatTheKVSDoesNotMoveKeepsItsNodes(t *testing.T) {
	path := jobid.ID(16).KVSPath()
	for name, c := range map[string]struct{ folder, commit, want string }{
		"the commit fails":      {"", `{"topic":"kvs.commit","errnum":1,"errstr":"not permitted"}`, "kvs.commit failed: errnum 1: not permitted"},
		"it cannot be found":    {`{}`, "", path + ": the answer has no object of RFC 11"},
		"nothing is in its key": {"gone", "", "nothing is at " + path},
	} {
		t.Run(name, func(t *testing.T) {
			k := damaged(t, 16)
			l := k.live("-put-aside=16")
			k.left = 1
			if c.folder != "" {
				k.broken = map[string]string{path: c.folder}
			}
			require.Empty(t, k.ask(l, schedHello))
			if c.commit != "" {
				require.Empty(t, k.ask(l, c.commit))
			}
			require.EqualError(t, l.p.end(), "-store: put job ƒH aside: "+c.want)
			require.NotContains(t, l.stderr.String(), "is put aside")
			require.Empty(t, k.others)

			k.left, k.broken = -1, nil
			l = k.live()
			k.serve(l)
			require.Contains(t, k.ask(l, schedHello), `{"id":16,`)
			l.end()
		})
	}
}

func TestAKVSThatFailsEndsTheProcess(t *testing.T) {
	for _, c := range []struct{ key, answer, want string }{
		{keyCheckpoint, `{}`, "checkpoint.job-manager: the answer has no object of RFC 11"},
		{keyCheckpoint, `{"val":{"ver":1,"type":"dir","data":{}}}`, `checkpoint.job-manager: want a value, and not the type "dir"`},
		{keyCheckpoint, string(output{Payload: 1}.line()), "no object of RFC 11"},
		{keyCheckpoint, `{"val":` + string(value([]byte(`{"version":2}`))) + `}`, "version 2 is not known"},
		{keyCheckpoint, `{"val":` + string(value([]byte(`x`))) + `}`, "checkpoint.job-manager: "},
		{keyCheckpoint, `{"val":` + string(value([]byte(`{"queue":[1]}`))) + `}`, "checkpoint.job-manager: "},
		{keyTombstones, `{"val":` + string(value([]byte(`x`))) + `}`, "checkpoint.joblife: "},
		{keyJobs, `{"val":{"ver":1,"type":"val","data":""}}`, `job: want a folder, and not the type "val"`},
		{"job.0000", `{"val":{"ver":1,"type":"dir","data":[]}}`, `job.0000: want a folder`},
		{jobid.ID(16).KVSPath() + keyEventlog, `{"val":{"ver":1,"type":"val","data":7}}`, `eventlog: want a value`},
	} {
		k := newPeer(t)
		k.keys[jobid.ID(16).KVSPath()+keyJobspec] = sleep
		k.broken = map[string]string{c.key: c.answer}
		l := k.live()
		k.serve(l)
		require.ErrorContains(t, l.p.failed, "-store: ", c.want)
		require.ErrorContains(t, l.p.failed, c.want)
		require.Error(t, l.p.end())
	}
	k := newPeer(t)
	l := k.served()
	k.left = 1
	require.Empty(t, k.ask(l, submit(16, 16)))
	l.p.handle(l.c, lines.Line{Number: 1, Text: []byte(`{"topic":"kvs.commit","errnum":28,"errstr":"no space"}`)})
	require.EqualError(t, l.p.end(), "-store: kvs.commit failed: errnum 28: no space")
	require.Empty(t, k.others)
}

// The input ends while a commit is under way: nobody knows whether it was made.
func TestAnEndWithoutTheCommitIsAFault(t *testing.T) {
	none := ""
	for tag, key := range []string{keyJobs, keyTombstones, keyCheckpoint} {
		none += fmt.Sprintf(`{"topic":"kvs.lookup","matchtag":%d,"errnum":2,"errstr":"%s"}`+"\n", tag+1, key)
	}
	status, stdout, stderr := prog.Run(strings.NewReader(none+submit(1, 16)), "-store=lines", "-now=1000")
	require.Equal(t, lines.ExitFault, status)
	require.Equal(t, 5, strings.Count(stdout, "\n"), stdout)
	require.Contains(t, stderr, "manager: -store: kvs.commit failed: errnum 113: the input ended")
	status, stdout, stderr = prog.Run(strings.NewReader(submit(1, 16)), "-store=lines", "-now=1000")
	require.Equal(t, lines.ExitFault, status)
	require.Equal(t, 3, strings.Count(stdout, "\n"), stdout)
	require.Contains(t, stderr, "kvs.lookup failed: errnum 113: the input ended")
	status, stdout, _ = prog.Run(strings.NewReader(none+submit(1, 16)+`{"topic":"kvs.commit","matchtag":5}`), "-store=lines", "-now=1000")
	require.Equal(t, lines.ExitOK, status)
	require.Contains(t, stdout, `"errors":[]`)
}

// A job without a duration ends with the instance, also when that changes.
func TestTheInstanceExpires(t *testing.T) {
	k := newPeer(t)
	l := k.served()
	expire := func(payload string) string {
		return k.ask(l, fmt.Sprintf(`{"topic":"kvs-watch.lookup","matchtag":%d,%s}`, k.watched, payload))
	}
	until := func(at int) string {
		r := fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["n0"],"starttime":1000,"expiration":%d}}`, at)
		return `"payload":{"val":` + string(value([]byte(r))) + `}`
	}
	require.Empty(t, expire(until(1030)))
	require.Contains(t, k.ask(l, submit(16, 16)), "exceeds remaining instance lifetime (30s)")
	require.Empty(t, expire(until(2000)))
	require.Contains(t, k.ask(l, submit(17, 17)), `"errors":[]`)
	require.Empty(t, expire(`"payload":{"val":`+string(value([]byte(`{}`)))+`}`))
	require.Empty(t, expire(`"errnum":2`))
	require.Contains(t, l.end(), "the expiration of the instance is not known: ")
}

// The first client of a socket is the one that has the KVS.
func TestTheFirstClientHasTheKVS(t *testing.T) {
	k, s := joined(t)
	require.Len(t, k.queue, 3)
	k.serve(s.life)
	s.say(1, submit(5, 16))
	require.Len(t, k.queue, 1)
	require.Empty(t, s.hears(1))
	k.serve(s.life)
	require.Contains(t, s.hears(1), `"errors":[]`)
	s.say(1, submit(6, 17))
	s.leave(0)
	require.ErrorContains(t, s.p.end(), "kvs.commit failed: errnum 113: the client is gone")
	require.True(t, slices.ContainsFunc(s.p.clients, func(c *client) bool { return c.id == 2 }))
}

// Nobody else takes the place of the client that has the KVS: what was answered is in its KVS.
func TestNobodyInheritsTheKVS(t *testing.T) {
	for name, reads := range map[string]bool{"before the store is read": false, "when nothing is to commit": true} {
		t.Run(name, func(t *testing.T) {
			k, s := joined(t)
			s.say(1, submit(5, 16))
			if reads {
				k.serve(s.life)
				require.Contains(t, s.hears(1), `"errors":[]`)
			}
			s.leave(0)
			require.Error(t, s.p.failed)
			s.takes(1, lines.Line{Number: 2, Text: []byte(submit(6, 17))})
			require.NotContains(t, s.hears(1), "kvs.")
			require.NotContains(t, s.hears(1), `"errors":[]`)
		})
	}
}

// It stays there, too, when that client becomes a scheduler, for which another is the bridge.
func TestTheKVSStaysWithItsClient(t *testing.T) {
	k, s := joined(t)
	k.serve(s.life)
	s.say(0, schedHello)
	s.say(1, submit(5, 16))
	k.serve(s.life)
	require.Equal(t, `{"topic":"job-manager.submit","matchtag":5,"payload":{"errors":[]}}`+"\n", s.hears(1))
}
