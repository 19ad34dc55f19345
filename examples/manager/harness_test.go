package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge/boltstore"
)

// sleep is a job that wants a core.
const sleep = `{"version":1,"resources":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}],` +
	`"tasks":[{"command":["sleep"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":60}}}`

// What schedulers and executors say at first.
const (
	schedHello = `{"topic":"job-manager.sched-hello","matchtag":1,"payload":{"partial-ok":true}}`
	schedReady = `{"topic":"job-manager.sched-ready","matchtag":2,"payload":{"mode":"unlimited"}}`
	execHello  = `{"topic":"job-manager.exec-hello","matchtag":3,"payload":{"service":"my-exec"}}`
)

// submit is a request that submits a job, raise one that cancels it, purgeOf one that removes
// it, and eventlogOf one for its log.
func submit(tag, id int) string {
	return fmt.Sprintf(`{"topic":"job-manager.submit","matchtag":%d,"payload":{"jobs":[{"id":%d,"urgency":16,"userid":100,"t_submit":1000.0,"flags":0,"jobspec":%s}]}}`+"\n", tag, id, sleep)
}

func raise(tag, id int) string {
	return fmt.Sprintf(`{"topic":"job-manager.raise","matchtag":%d,"payload":{"id":%d,"severity":0,"type":"cancel"}}`+"\n", tag, id)
}

func purgeOf(id int) string {
	return fmt.Sprintf(`{"topic":"job-manager.purge-id","matchtag":8,"payload":{"id":%d,"force":1}}`+"\n", id)
}

func eventlogOf(tag, id int) string {
	return fmt.Sprintf(`{"topic":"job-manager.getattr","matchtag":%d,"payload":{"id":%d,"attrs":["eventlog","jobspec"]}}`+"\n", tag, id)
}

// names returns the events of a log in the answer to eventlogOf.
func names(t testing.TB, answer string) string {
	var m struct {
		Payload struct{ Eventlog []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &m), answer)
	var list []string
	for _, e := range m.Payload.Eventlog {
		list = append(list, e.Name)
	}
	return strings.Join(list, " ")
}

// gives is the answer of a scheduler that gives a node, and tells that of an executor.
func gives(id, rank int) string {
	return fmt.Sprintf(`"topic":"sched.alloc","payload":{"id":%d,"type":0,"R":%s}`, id, fmt.Sprintf(resources, rank))
}

func tells(id int, kind, data string) string {
	return fmt.Sprintf(`"topic":"my-exec.start","payload":{"id":%d,"type":"%s","data":%s}`, id, kind, data)
}

const resources = `{"version":1,"execution":{"R_lite":[{"rank":"%d","children":{"core":"0"}}],"nodelist":["n%[1]d"],"starttime":1,"expiration":0}}`

// A life is a process that a test asks, one line after the other.
type life struct {
	t      testing.TB
	p      *process
	c      *client
	kvs    *peer // that has its store; nil: it is local
	out    strings.Builder
	stderr strings.Builder
	lines  int
}

// begin returns a life that has neither a client nor begun.
func begin(t testing.TB, args ...string) *life {
	t.Helper()
	l := &life{t: t}
	var o options
	_, ok := o.program().Parse(args, &l.stderr, &l.stderr)
	require.True(t, ok, l.stderr.String())
	var err error
	l.p, err = newProcess(o, &l.stderr)
	require.NoError(t, err)
	return l
}

// live begins a process.
func live(t testing.TB, args ...string) *life {
	t.Helper()
	l := begin(t, args...)
	l.c = l.p.only(&l.out)
	l.p.start()
	return l
}

// ask gives lines to the process, and returns what it writes to each.
func (l *life) ask(texts ...string) (answers []string) {
	l.t.Helper()
	for _, text := range texts {
		l.lines++
		if l.kvs != nil {
			answers = append(answers, l.kvs.ask(l, text))
			continue
		}
		l.p.handle(l.c, lines.Line{Number: l.lines, Text: []byte(text)})
		require.NoError(l.t, l.p.failed)
		answers = append(answers, l.out.String())
		l.out.Reset()
	}
	return answers
}

// end ends the process, and returns standard error.
func (l *life) end() string {
	l.t.Helper()
	require.NoError(l.t, l.p.end())
	return l.stderr.String()
}

// A run is a manager on a pair of streams, which a Loop runs by the time of the day.
type run struct {
	t      testing.TB
	kvs    *peer // that has its store; nil: it is local
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
	status chan int
}

func begun(t testing.TB, k *peer, args ...string) *run {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	r := &run{t: t, kvs: k, in: say, out: bufio.NewReader(hear), status: make(chan int, 1)}
	go func() {
		r.status <- lines.Run(context.Background(), program, args, in, out, &r.stderr)
		_ = out.Close()
	}()
	return r
}

func (r *run) say(text string) {
	_, err := io.WriteString(r.in, strings.TrimSuffix(text, "\n")+"\n")
	require.NoError(r.t, err)
}

// ask gives lines to the process one after the other, and returns what it writes to each
// until it has answered a request that comes after it.
func (r *run) ask(texts ...string) (answers []string) {
	r.t.Helper()
	const last = `{"topic":"job-manager.getinfo","matchtag":4000`
	for _, text := range texts {
		if r.kvs != nil {
			r.kvs.ingest(text)
		}
		r.say(text)
		r.say(last + "}")
		want := ""
		if m, err := parseMessage([]byte(text)); err == nil && m.Matchtag != nil {
			want = fmt.Sprintf(`{"topic":"%s","matchtag":%d`, m.Topic, *m.Matchtag)
		}
		var heard strings.Builder
		for over := false; !over || !strings.Contains(heard.String(), want); {
			line, err := r.out.ReadString('\n')
			require.NoError(r.t, err, "%s%s", text, &heard)
			switch {
			case strings.HasPrefix(line, last):
				over = true
			case strings.HasPrefix(line, `{"topic":"kvs`):
				_, _ = r.kvs.Write([]byte(line))
				for len(r.kvs.queue) > 0 {
					r.say(string(r.kvs.answer()))
				}
			default:
				heard.WriteString(line)
			}
		}
		answers = append(answers, heard.String())
	}
	return answers
}

// end ends the input, and returns standard error.
func (r *run) end() string {
	r.t.Helper()
	require.NoError(r.t, r.in.Close())
	_, err := io.Copy(io.Discard, r.out)
	require.NoError(r.t, err)
	status := <-r.status
	stderr := r.stderr.String()
	require.Equal(r.t, strings.Contains(stderr, " 0 lines refused"), status == lines.ExitOK, stderr)
	return stderr
}

// A home is where jobs are from one run to the next.
type home struct {
	run      func(flags ...string) *run
	spoil    func(id jobid.ID)        // overwrites the log of a job, or adds what is no event
	flip     func(id jobid.ID)        // changes a bit of the log
	log      func(id jobid.ID) string // nil for bolt, which only programs read
	putAside func(id jobid.ID) string // the log of a job that was
}

// flip changes a bit of the last byte of each match in a file.
func flip(t *testing.T, path, where string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	found := regexp.MustCompile(where).FindAllIndex(text, -1)
	require.NotEmpty(t, found)
	for _, at := range found {
		text[at[1]-1] ^= 1
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

// homes returns one for each kind of store that outlives the process.
func homes(t *testing.T) map[string]home {
	dir, k := t.TempDir(), newPeer(t)
	db, folder := filepath.Join(dir, "jobs.db"), filepath.Join(dir, "jobs")
	logOf := func(id jobid.ID) string { return filepath.Join(folder, jobsName, id.KVSPath(), "eventlog") }
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	return map[string]home{
		"bolt": {
			run: func(flags ...string) *run { return begun(t, nil, append(flags, "-store=bolt:"+db)...) },
			spoil: func(id jobid.ID) {
				s, err := boltstore.Open(db)
				require.NoError(t, err)
				require.NoError(t, s.Append([]joblife.Record{{Job: id, Kind: joblife.RecordEvent, Data: []byte("{\n")}}))
				require.NoError(t, s.Close())
			},
			flip: func(id jobid.ID) { // bbolt has a value behind its key, and older copies in pages that are free
				flip(t, db, fmt.Sprintf(`(?s)\x00{7}\x%02xe\x00{4}[^\n]*"urgency":16`, uint64(id)))
			},
		},
		"dir": {
			run:      func(flags ...string) *run { return begun(t, nil, append(flags, "-store=dir:"+folder)...) },
			spoil:    func(id jobid.ID) { require.NoError(t, os.WriteFile(logOf(id), []byte("{\n"), 0o600)) },
			flip:     func(id jobid.ID) { flip(t, logOf(id), `"urgency":16`) },
			log:      func(id jobid.ID) string { return read(logOf(id)) },
			putAside: func(id jobid.ID) string { return read(filepath.Join(folder, asideName, id.KVSPath(), "eventlog")) },
		},
		"lines": {
			run:      func(flags ...string) *run { return begun(t, k, append(flags, "-store=lines")...) },
			spoil:    func(id jobid.ID) { k.keys[id.KVSPath()+keyEventlog] = "{\n" },
			flip:     func(id jobid.ID) { k.flip(id) },
			log:      func(id jobid.ID) string { return k.keys[id.KVSPath()+keyEventlog] },
			putAside: func(id jobid.ID) string { return k.keys[keyLost+id.String()+keyEventlog] },
		},
	}
}

// A socket is a process with clients, without the socket.
type socket struct {
	*life
	clients []*client
	heard   []*strings.Builder
	closed  map[int]bool // by the process
}

func newSocket(t testing.TB, clients int, args ...string) *socket {
	s := &socket{life: begin(t, append([]string{"-now=1000"}, args...)...), closed: make(map[int]bool)}
	for range clients {
		s.connect(nil)
	}
	if s.p.o.store != "lines" && clients > 0 {
		s.say(0, `{"topic":"job-manager.getinfo","matchtag":1}`)
	}
	return s
}

// connect adds a client, which writes to out or else to what it has heard, and returns its
// number.
func (s *socket) connect(out io.Writer) int {
	heard, id := new(strings.Builder), len(s.clients)
	if out == nil {
		out = heard
	}
	c := &client{id: id + 1, out: out, close: func() { s.closed[id] = true }}
	s.clients, s.heard = append(s.clients, c), append(s.heard, heard)
	s.p.take(input{client: c})
	return id
}

// say lets a client say something, and returns what it hears of it.
func (s *socket) say(client int, text string) string {
	s.t.Helper()
	s.takes(client, lines.Line{Number: 1, Text: []byte(text)})
	require.NoError(s.t, s.p.failed)
	return s.hears(client)
}

// takes is say for any line. The process may fail.
func (s *socket) takes(client int, l lines.Line) {
	for _, heard := range s.heard {
		heard.Reset()
	}
	s.p.take(input{client: s.clients[client], line: l})
}

func (s *socket) hears(client int) string { return s.heard[client].String() }

func (s *socket) leave(client int) { s.takes(client, lines.Line{Err: io.EOF}) }

// scheduler has a client say what a scheduler says at first, with or without a sender.
func (s *socket) scheduler(client int, sender string) {
	s.t.Helper()
	named := func(text string) string { return strings.Replace(text, "{", "{"+sender, 1) }
	require.Contains(s.t, s.say(client, named(schedHello)), `"errnum":61`)
	require.Contains(s.t, s.say(client, named(schedReady)), `"count":`)
}

func (s *socket) executor(client int) {
	s.t.Helper()
	require.NotContains(s.t, s.say(client, execHello), "errnum")
}

// state returns the last event of a job, as the first client sees it.
func (s *socket) state(id int) string { return s.stateFor(0, id) }

func (s *socket) stateFor(client, id int) string {
	s.t.Helper()
	list := strings.Fields(names(s.t, s.say(client, eventlogOf(99, id))))
	return list[len(list)-1]
}

// staffed returns a socket with the clients of newSocket: 1 is a scheduler, 2 an executor, and
// 3 has submitted job 16, which has node 0.
func staffed(t *testing.T, clients int, args ...string) *socket {
	t.Helper()
	s := newSocket(t, clients, args...)
	s.scheduler(1, "")
	s.executor(2)
	s.say(3, submit(1, 16))
	s.say(1, "{"+gives(16, 0)+"}")
	require.Contains(t, s.hears(2), `"topic":"my-exec.start",`)
	return s
}
