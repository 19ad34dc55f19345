package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
)

var start = time.Unix(1700000000, 0)

const sleep = `{"version":1,"resources":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}],` +
	`"tasks":[{"command":["sleep"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":60}}}`

const ownUser = 100

// submissionOf is a request for a job with some flags, and submission1 one for a job of a user
// without.
func submissionOf(id jobid.ID, user, flags int, spec string) string {
	return fmt.Sprintf(`{"jobs":[{"id":%d,"urgency":16,"userid":%d,"t_submit":1.5,"flags":%d,"jobspec":%s}]}`, id, user, flags, spec)
}

func submission1(id jobid.ID, user int) string { return submissionOf(id, user, 0, sleep) }

// owner is a request of the instance's owner, and by one of a user with a rolemask.
func owner(topic, payload string) Request { return by(ownUser, roleOwner, topic, payload) }

func by(user, rolemask uint32, topic, payload string) Request {
	return Request{
		Topic: "job-manager." + topic, Sender: "a", Matchtag: 1, UserID: user, Rolemask: rolemask, Payload: json.RawMessage(payload),
	}
}

// text returns a payload.
func text(t tester, payload any) string {
	if payload == nil {
		return "-"
	}
	b, err := json.Marshal(payload)
	require.NoError(t, err)
	return string(b)
}

// A tester is *testing.T or *rapid.T.
type tester interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// A parcel is an Out, or what is with the store.
type parcel struct {
	Out
	Seq    uint64
	Unlink []jobid.ID
}

// A desk is a service with a store in memory, and a transcript of what it sends.
type desk struct {
	t tester
	*Service
	now     time.Time
	last    time.Time // of the Loop
	next    []parcel  // what came out
	done    func(map[jobid.ID]error, error)
	room    []func() // of together
	records []joblife.Record
	stored  map[jobid.ID]*Stored
	sent    func(*parcel)      // gets each parcel that is stored; nil: nobody
	hold    func(*parcel) bool // keeps a parcel with the store; nil: none
	held    []parcel
}

// newDesk returns a service without jobs. An owner and a Lookup that are not set are the desk's.
func newDesk(t tester, cfg Config) *desk {
	t.Helper()
	d := &desk{t: t, now: start, stored: make(map[jobid.ID]*Stored)}
	if cfg.Manager.Owner == 0 {
		cfg.Manager.Owner = ownUser
	}
	if cfg.Lookup == nil {
		cfg.Lookup = d.lookup
	}
	d.begin(cfg)
	return d
}

// begin gives the desk a service with what is durable.
func (d *desk) begin(cfg Config) {
	d.t.Helper()
	d.next, d.done, d.last = nil, nil, d.now
	cfg.Begin = func(rd *joblife.Ready, done func(map[jobid.ID]error, error)) {
		d.done = done
		d.next = append(d.next, parcel{Out: Out{Append: rd.Append}, Seq: rd.Seq, Unlink: rd.Unlink})
	}
	cfg.Send = func(o *Out) {
		if o.Append == nil { // or it was stored
			d.next = append(d.next, parcel{Out: *o})
		}
	}
	s, _, err := Restore(d.now, cfg, func(yield func(joblife.Record, error) bool) {
		for _, r := range d.records {
			if !yield(r, nil) {
				return
			}
		}
	})
	require.NoError(d.t, err)
	d.Service = s
}

// restart is begin with the configuration that there is.
func (d *desk) restart() {
	d.t.Helper()
	d.begin(d.cfg)
	d.flush()
}

func (d *desk) lookup(id jobid.ID) (Stored, error) {
	if s := d.stored[id]; s != nil {
		return *s, nil
	}
	return Stored{}, nil
}

// advance has the Loop do what can be done.
func (d *desk) advance() {
	d.t.Helper()
	if d.now.After(d.last) {
		d.last = d.now
	}
	require.NoError(d.t, d.Loop.Advance(d.last))
}

// call calls f as the process around a service does.
func (d *desk) call(f func()) {
	d.t.Helper()
	if d.room != nil {
		d.room = append(d.room, f)
		return
	}
	require.NoError(d.t, d.Do(f))
	d.advance()
}

// together has the service do at once what f says: nothing is stored in between.
func (d *desk) together(f func()) {
	d.t.Helper()
	d.room = []func(){func() {}}
	f()
	list := d.room
	d.room = nil
	d.call(func() {
		for _, do := range list {
			do()
		}
	})
}

func (d *desk) at(now time.Time) *desk {
	if now.After(d.now) {
		d.now = now
	}
	return d
}

func (d *desk) Request(now time.Time, r Request) {
	d.t.Helper()
	d.at(now).call(func() { d.Service.Request(r) })
}

func (d *desk) Respond(now time.Time, r Response) (err error) {
	d.t.Helper()
	d.at(now).call(func() { err = d.Service.Respond(r) })
	return err
}

func (d *desk) step(in joblife.Input) (err error) {
	d.t.Helper()
	d.call(func() { err = d.Service.step(in) })
	return err
}

func (d *desk) Stop(now time.Time) { d.at(now).call(d.Service.Stop) }

func (d *desk) Tick(now time.Time) error {
	d.at(now).call(func() {})
	return nil
}

// Next fills in what came out, and reports whether there is anything.
func (d *desk) Next(o *parcel) bool {
	d.t.Helper()
	if d.call(func() {}); len(d.next) == 0 {
		return false
	}
	*o, d.next = d.next[0], d.next[1:]
	return true
}

// Done says that a parcel was stored and sent.
func (d *desk) Done(now time.Time, o *parcel, failed map[jobid.ID]error) error {
	d.t.Helper()
	if d.at(now); o.Seq > 0 {
		d.done(failed, nil)
	}
	d.advance()
	return nil
}

// pump does what the service wants until nothing follows, and calls each for what comes out.
func (d *desk) pump(each func(*parcel)) {
	d.t.Helper()
	for o := (parcel{}); d.Next(&o); {
		if d.hold != nil && d.hold(&o) {
			d.held = append(d.held, o)
			continue
		}
		each(&o)
		d.commit(&o)
	}
}

// commit stores and sends an Out.
func (d *desk) commit(o *parcel) {
	d.t.Helper()
	require.False(d.t, o.Seq != 0 && len(o.Answers)+len(o.Calls)+len(o.Events) > 0, "records and messages at once")
	d.store(o)
	if d.sent != nil {
		d.sent(o)
	}
	require.NoError(d.t, d.Done(d.now, o, nil))
}

// storing returns the next Out, which has records and is with the store until its commit.
func (d *desk) storing() *parcel {
	d.t.Helper()
	o := new(parcel)
	require.True(d.t, d.Next(o))
	require.NotEmpty(d.t, o.Append)
	return o
}

// release lets the store finish what it holds. What comes then is held as before.
func (d *desk) release() {
	d.t.Helper()
	held := d.held
	d.held = nil
	for _, o := range held {
		d.commit(&o)
	}
}

// drive gives the service requests, and returns all that comes out.
func (d *desk) drive(list ...Request) Out {
	d.t.Helper()
	for _, r := range list {
		d.Request(d.now, r)
	}
	return d.collect()
}

// do gives the Manager an input, and returns all that comes out.
func (d *desk) do(in joblife.Input) Out {
	d.t.Helper()
	require.NoError(d.t, d.step(in))
	return d.collect()
}

// collect is pump, and returns all that came out as one.
func (d *desk) collect() (all Out) {
	d.t.Helper()
	before := len(d.records)
	d.pump(func(o *parcel) {
		all.Answers, all.Calls = append(all.Answers, o.Answers...), append(all.Calls, o.Calls...)
		all.Events, all.Log = append(all.Events, o.Events...), append(all.Log, o.Log...)
	})
	all.Append = d.records[before:]
	return all
}

// send gives the service a request of the instance's owner, and nothing comes out yet.
func (d *desk) send(sender string, tag uint32, topic, payload string) {
	d.now = d.now.Add(time.Second)
	r := owner(topic, payload)
	r.Sender, r.Matchtag = sender, tag
	d.Request(d.now, r)
}

// ask is send from the sender "a", and returns what came out.
func (d *desk) ask(tag uint32, topic, payload string) string {
	d.t.Helper()
	d.send("a", tag, topic, payload)
	return d.flush()
}

// respond responds to a request without a matchtag, and returns what came out.
func (d *desk) respond(topic, payload string) string {
	d.t.Helper()
	d.now = d.now.Add(time.Second)
	require.NoError(d.t, d.Respond(d.now, Response{Topic: topic, Payload: json.RawMessage(payload)}))
	return d.flush()
}

// store stores an Out.
func (d *desk) store(o *parcel) {
	for _, r := range o.Append {
		r = r.Clone()
		d.records = append(d.records, r)
		if r.Job == 0 { // of a queue
			continue
		}
		s := d.stored[r.Job]
		if s == nil {
			s = new(Stored)
			d.stored[r.Job] = s
		}
		switch r.Kind {
		case joblife.RecordEvent:
			s.Eventlog = append(s.Eventlog, r.Data...)
		case joblife.RecordJobspec:
			s.Jobspec = r.Data
		case joblife.RecordR:
			s.R = r.Data
		}
	}
}

// flush is pump, and returns the lines of what came out.
func (d *desk) flush() string {
	d.t.Helper()
	var lines []string
	d.pump(func(o *parcel) { lines = append(lines, d.print(o)...) })
	return strings.Join(lines, "\n")
}

func texts(list []LogLine) (out []string) {
	for _, l := range list {
		out = append(out, l.Text)
	}
	return out
}

func levels(list []LogLine) (out []Level) {
	for _, l := range list {
		out = append(out, l.Level)
	}
	return out
}

// print returns the lines of an Out.
func (d *desk) print(o *parcel) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, a := range o.Answers {
		name := strings.TrimPrefix(a.Topic, "job-manager.")
		if a.Errnum != 0 {
			require.Nil(d.t, a.Payload)
			line("%s %s%d: errnum %d %s", name, a.Sender, a.Matchtag, a.Errnum, a.Errstr)
			continue
		}
		line("%s %s%d: %s", name, a.Sender, a.Matchtag, text(d.t, a.Payload))
	}
	for _, c := range o.Calls {
		line("> %s %s", c.Topic, text(d.t, c.Payload))
	}
	for _, e := range o.Events {
		require.True(d.t, e.Private)
		line("event %s %s", e.Topic, text(d.t, e.Payload))
	}
	for _, l := range o.Log {
		line("log %s", l.Text)
	}
	return lines
}

// idsTo returns the ids from 1 to n.
func idsTo(n int) (ids []jobid.ID) {
	for id := range jobid.ID(n) {
		ids = append(ids, id+1)
	}
	return ids
}

// submit submits jobs with some flags.
func (d *desk) submit(flags int, ids ...jobid.ID) string {
	d.t.Helper()
	var jobs []string
	for _, id := range ids {
		text := submissionOf(id, ownUser, flags, sleep)
		jobs = append(jobs, text[len(`{"jobs":[`):len(text)-len("]}")])
	}
	return d.ask(1, "submit", `{"jobs":[`+strings.Join(jobs, ",")+`]}`)
}

// online brings a scheduler and an executor, s and x, and returns what came out.
func (d *desk) online() string { return d.onlineAs("s", "x") }

func (d *desk) onlineAs(scheduler, executor string) string {
	d.t.Helper()
	d.greet(scheduler)
	d.send(executor, 1, "exec-hello", `{"service":"job-exec"}`)
	return d.flush()
}

// greet says what a scheduler says at first, and nothing comes out yet.
func (d *desk) greet(scheduler string) {
	d.t.Helper()
	d.send(scheduler, 1, "sched-hello", `{}`)
	d.send(scheduler, 2, "sched-ready", `{"mode":"unlimited"}`)
}

// success is the payload of a scheduler that gives a job a rank.
func success(id jobid.ID, rank int) string {
	return fmt.Sprintf(`{"id":%d,"type":0,"annotations":{"sched":{"resource_summary":"rank%d"}},"R":%s}`, id, rank, resources(rank))
}

func resources(rank int) string {
	return fmt.Sprintf(`{"version":1,"execution":{"R_lite":[{"rank":"%d","children":{"core":"0"}}],"starttime":0.0,"expiration":0.0,"nodelist":["n%d"]}}`, rank, rank)
}

// run takes a job from SCHED to RUN.
func (d *desk) run(id jobid.ID) {
	d.t.Helper()
	d.respond("sched.alloc", success(id, int(id)))
	d.respond("job-exec.start", fmt.Sprintf(`{"id":%d,"type":"start","data":{}}`, id))
}

// finish ends a job that runs.
func (d *desk) finish(id jobid.ID, status int) string {
	d.t.Helper()
	out := d.respond("job-exec.start", fmt.Sprintf(`{"id":%d,"type":"finish","data":{"status":%d}}`, id, status))
	return join(out, d.respond("job-exec.start", fmt.Sprintf(`{"id":%d,"type":"release","data":{"ranks":"all","final":true}}`, id)))
}

func (d *desk) cancel(id jobid.ID) string {
	d.t.Helper()
	return d.ask(9, "raise", fmt.Sprintf(`{"id":%d,"severity":0,"type":"cancel","note":"why"}`, id))
}

// view returns a job.
func (d *desk) view(id jobid.ID) joblife.View {
	v, ok := d.m.Job(id)
	require.True(d.t, ok)
	return v
}

func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

// grep returns the lines with a word.
func grep(text, word string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return !strings.Contains(s, word) }), "\n")
}
