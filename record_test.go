package joblife_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
)

func TestARecordIsOneLineOfRFC18AndBack(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.submit(jobspec.Job{Nodes: 2})
	s.step(joblife.StartQueue{Reason: "a \"test\"\n"})
	list := slices.AppendSeq(slices.Clone(s.store), s.m.Snapshot())
	seen := make(map[joblife.RecordKind]bool)
	for _, r := range list {
		seen[r.Kind] = true
	}
	require.Subset(t, seen, map[joblife.RecordKind]bool{
		joblife.RecordEvent: true, joblife.RecordJobspec: true, joblife.RecordR: true,
		joblife.RecordInactive: true, joblife.RecordWatermark: true, joblife.RecordQueue: true,
	})
	text, err := joblife.AppendRecords(nil, list)
	require.NoError(t, err)
	require.Equal(t, len(list), bytes.Count(text, []byte("\n")))
	var read []joblife.Record
	for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
		require.NoError(t, err)
		read = append(read, r)
	}
	require.Equal(t, list, read)
	for _, err := range joblife.ReadRecords(bytes.NewReader(text[:len(text)-1])) {
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrTorn)
		}
	}

	for _, line := range []string{"x", `{"timestamp":1,"name":"event"}`, `{"timestamp":1,"name":"event","context":{"job":7,"data":"x"}}`,
		`{"timestamp":1,"name":"submit","context":{"job":"ƒ2","data":"x"}}`} {
		r, err := recordOf([]byte(line))
		require.ErrorContains(t, err, "line 1", line)
		require.Zero(t, r)
	}
}

// TestAFlippedBitOfARecordIsNoticed flips each bit of lines. What is read is what was
// written, or an error names the line.
func TestAFlippedBitOfARecordIsNoticed(t *testing.T) {
	s := newSite(t, joblife.Config{}, 8)
	s.submit(jobspec.Job{Nodes: 2})
	s.step(joblife.StartQueue{Reason: "a \"test\"\n"})
	list := append(s.store, joblife.Record{Time: 1.5, Job: 7, Kind: joblife.RecordUnlinked},
		joblife.Record{Time: 1e9 + 0.25, Job: 8, Kind: joblife.RecordTombstone, Data: []byte{}})
	told := 0
	for len(list) > 0 {
		n := min(3, len(list))
		text, err := joblife.AppendRecords(nil, list[:n])
		require.NoError(t, err)
		var want []joblife.Record
		for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
			require.NoError(t, err)
			want = append(want, r)
		}
		require.Len(t, want, n)
		for bit := range len(text) * 8 {
			text[bit/8] ^= 1 << (bit % 8)
			got := []joblife.Record{}
			var failed error
			for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
				if failed = err; err == nil {
					got = append(got, r)
				}
			}
			if failed != nil {
				told++
				require.ErrorContains(t, failed, "line ")
				require.Equal(t, want[:len(got)], got)
			} else {
				require.Equal(t, want, got, "%s", text)
			}
			text[bit/8] ^= 1 << (bit % 8)
		}
		list = list[n:]
	}
	require.Greater(t, told, 10_000)

	text, err := lineOf(joblife.Record{Time: 1.5, Job: 1, Kind: joblife.RecordTombstone})
	require.NoError(t, err)
	require.Equal(t, `{"timestamp":1.5,"name":"tombstone","context":{"job":"ƒ2","data":"","crc32c":"0c7f9876"}}`+"\n", string(text))

	repaired := `{"timestamp":1.5,"name":"tombstone","context":{"job":"ƒ2","data":""}}`
	_, err = recordOf([]byte(repaired))
	require.NoError(t, err, "without check digits")
	_, err = recordOf([]byte(strings.Replace(repaired, `""`, `"","crc32c":"00000000"`, 1)))
	require.ErrorIs(t, err, joblife.ErrInvalid)
	require.ErrorContains(t, err, "tombstone record: offset 23: ")
}

// TestARecordHasTheBytesOfAnEntry compares what AppendRecords writes with AppendEntry.
func TestARecordHasTheBytesOfAnEntry(t *testing.T) {
	deep := func(n int) []byte {
		return []byte(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n))
	}
	for _, r := range []joblife.Record{
		{Time: 1.5, Job: 7, Kind: joblife.RecordJobspec, Data: []byte(`{ "a" : [1, "ƒ\u0041"] }`)},
		{Time: 1.5, Job: 1<<63 - 1, Kind: joblife.RecordUnlinked},
		{Time: 1.5, Kind: joblife.RecordWatermark, Data: []byte("a \"b\"\n")},
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: deep(eventlog.DefaultMaxDepth - 3)},
	} {
		line, err := joblife.AppendRecords([]byte("before"), []joblife.Record{r})
		require.NoError(t, err)
		line = bytes.TrimPrefix(line, []byte("before"))
		e, err := eventlog.Parse(line)
		require.NoError(t, err)
		same, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: e.Timestamp, Name: e.Name, Context: e.Context})
		require.NoError(t, err)
		require.Equal(t, string(same), string(line))
	}
	for _, r := range []joblife.Record{
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: deep(eventlog.DefaultMaxDepth - 2)},
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: deep(eventlog.DefaultMaxDepth)},
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: []byte(`"` + strings.Repeat("x", eventlog.DefaultMaxLine) + `"`)},
		{Time: 1.5, Job: 7, Kind: joblife.RecordR, Data: []byte("{")},
		{Time: 1.5, Kind: joblife.RecordWatermark, Data: []byte("\xff")},
		{Kind: joblife.RecordWatermark, Data: []byte("a")},
	} {
		good := joblife.Record{Time: 1.5, Job: 7, Kind: joblife.RecordUnlinked}
		out, err := joblife.AppendRecords(append(make([]byte, 0, 4096), "before"...), []joblife.Record{good, r})
		require.Error(t, err)
		require.Equal(t, "before", string(out))
	}
}

func lineOf(r joblife.Record) ([]byte, error) {
	return joblife.AppendRecords(nil, []joblife.Record{r})
}

// recordOf reads one line, with or without its newline.
func recordOf(line []byte) (joblife.Record, error) {
	text := append(bytes.TrimSuffix(slices.Clone(line), []byte("\n")), '\n')
	for r, err := range joblife.ReadRecords(bytes.NewReader(text)) {
		return r, err
	}
	return joblife.Record{}, io.EOF
}

// bothTexts returns the line of a record of a Manager, and that of one that anybody has
// made, which is checked.
func bothTexts(r joblife.Record) (fast, plain []byte, err error) {
	fast, err = lineOf(r)
	plain, bad := lineOf(joblife.Record{Time: r.Time, Job: r.Job, Kind: r.Kind, Data: r.Data})
	return fast, plain, errors.Join(err, bad)
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"timestamp":1.5,"name":"event","context":{"job":"ƒ2","data":{"timestamp":1,"name":"submit"}}}`))
	f.Add([]byte(`{"timestamp":1.5,"name":"watermark","context":{"data":"watermark 0017e9fb8df16c2e"}}`))
	f.Add([]byte(`{"timestamp":1.5,"name":"watermark","context":{"data":""}}`))
	f.Add([]byte(`{"timestamp":1.5,"name":"unlinked","context":{"job":"ƒ2","data":""}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := recordOf(line)
		if err != nil {
			return
		}
		text, plain, err := bothTexts(r)
		require.NoError(t, err)
		require.Equal(t, string(plain), string(text))
		back, err := recordOf(text)
		require.NoError(t, err)
		again, err := lineOf(back)
		require.NoError(t, err)
		require.Equal(t, text, again)
	})
}

// TestLinesAreThoseOfEventlog compares the short way to write a line with the plain one.
func TestLinesAreThoseOfEventlog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SampledFrom([]eventlog.Timestamp{1600000000, 1600000000.25, 1600000000.123457, 1, 1e-3, 253402300799, 1e300})
		names := rapid.OneOf(rapid.SampledFrom([]string{"submit", "prolog-start", "debug.x", "-", "A", "x_1", "a\"b", "\\", "ä", "\x01", "\x7f"}), rapid.StringN(1, 8, -1))
		contexts := rapid.SampledFrom([]string{"", `{}`, `{"a":1}`, `{ "a" : [ 1 ] }`, "{\"a\":\n1}", " {\"a\":1}", `{"a":1} `, "{\"a\":\t\"b\\n\"}\r"})
		var list []eventlog.Entry
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			e := eventlog.Entry{Timestamp: times.Draw(t, "time"), Name: names.Draw(t, "name")}
			if c := contexts.Draw(t, "context"); c != "" {
				e.Context = []byte(c)
			}
			if _, err := eventlog.AppendEntry(nil, e); err == nil {
				list = append(list, e)
			}
		}
		fast, plain, _ := joblife.Lines(list)
		require.Equal(t, string(plain), string(fast))
	})
	_, _, same := joblife.Lines([]eventlog.Entry{{Timestamp: 1, Name: "alloc"}, {Timestamp: 1, Name: "memo", Context: []byte("{\"a\":\n1}")}})
	require.Equal(t, []bool{true, false}, same)
}

func TestARecordWithoutATimeIsNoLine(t *testing.T) {
	text, err := joblife.AppendRecords([]byte("x"), []joblife.Record{{Job: 2, Kind: joblife.RecordTombstone}})
	require.ErrorContains(t, err, "timestamp: must be greater than zero")
	require.Equal(t, "x", string(text))
}

// recorded is a job that a Flux instance ran.
type recorded struct {
	ID       uint64          `json:"id"`
	Eventlog string          `json:"eventlog"`
	Jobspec  json.RawMessage `json:"jobspec"`
	R        json.RawMessage `json:"R"`
}

// moment is an event of a recorded job.
type moment struct {
	job *recorded
	e   eventlog.Entry
	n   int // its place in the log
	nth int // how many events of its name there are up to it
}

// reality is a Manager that is told what came from outside in a recording.
type reality struct {
	*site
	restarts int            // after how many events from outside; 0: never
	told     int            // events from outside
	actions  perilog.Config // of the last Reload
}

func (r *reality) step(at eventlog.Timestamp, in joblife.Input) error {
	r.pass(at)
	err := r.m.Step(r.now, in)
	r.act()
	for _, c := range sent[alloc.Cancel](r.site) { // the recording does not have the responses
		require.NoError(r.t, r.m.Step(r.now, joblife.SchedResponse{ID: c.ID, Type: alloc.ResponseCancel}))
		r.act()
	}
	return err
}

func (r *reality) pass(at eventlog.Timestamp) {
	if now := at.Time(); now.After(r.now) {
		r.now = now
	}
}

// restart makes another Manager of what was stored.
func (r *reality) restart(at eventlog.Timestamp) {
	r.pass(at)
	r.cfg = r.config(r.actions)
	if r.restarts == 0 {
		r.cfg.Actions = perilog.Config{}
	}
	r.restore(r.store)
	require.Empty(r.t, r.rec.Quarantined)
	if r.restarts > 0 { // so that the next restart is cheap
		r.store = slices.Collect(r.m.Snapshot())
	}
	r.hello()
}

func (r *reality) config(actions perilog.Config) joblife.Config {
	return joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies(), fluxRestarts()}, Actions: actions}
}

// repeat tells a Manager what came from outside, and compares recorded logs with the
// repeated ones by the names of their events, of which clean may leave out some.
func repeat(t *testing.T, jobs []recorded, restarts int, clean func(names string) string) {
	var moments []moment
	for i := range jobs {
		n, seen := 0, make(map[string]int)
		for e, err := range eventlog.Entries([]byte(jobs[i].Eventlog)) {
			require.NoError(t, err)
			seen[e.Name]++
			moments = append(moments, moment{&jobs[i], e, n, seen[e.Name]})
			n++
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.e.Timestamp, b.e.Timestamp) })
	r := &reality{restarts: restarts, site: &site{t: t, hold: map[string]bool{"sched": true, "exec": true, "action": true, "pool": true}}}
	r.now = moments[0].e.Timestamp.Time().Add(-time.Second)
	m, err := joblife.New(r.config(r.actions))
	require.NoError(t, err)
	r.m = m
	r.hello()
	restarted := eventlog.Timestamp(0)
	for _, m := range moments {
		if m.e.Name == jobstate.EventFluxRestart {
			if m.e.Timestamp-restarted > 1 {
				r.restart(m.e.Timestamp)
				restarted = m.e.Timestamp
			}
			continue
		}
		if err := r.outside(m); err != nil {
			t.Errorf("job %v: event %d %s: %v", jobid.ID(m.job.ID), m.n+1, m.e.Name, err)
		}
		if r.told++; r.restarts > 0 && r.told%r.restarts == 0 {
			r.restart(m.e.Timestamp)
		}
	}
	require.NoError(t, r.step(moments[len(moments)-1].e.Timestamp, joblife.Tick{}))
	require.Empty(t, r.faults())
	logs := make(map[jobid.ID][]byte)
	for _, e := range r.jour {
		if !e.Volatile {
			logs[e.Job] = append(logs[e.Job], line(t, e.Entry)...)
		}
	}
	for _, j := range jobs {
		skip := ""
		if len(jobstate.Validate([]byte(j.Eventlog))) > 0 {
			skip = jobstate.EventEpilogFinish // the reference frees before it
		}
		log := logs[jobid.ID(j.ID)]
		if restarts == 0 {
			require.Equal(t, contexts(t, []byte(j.Eventlog), skip), contexts(t, log, skip), "job %v", j.ID)
		}
		if want, got := clean(names(t, []byte(j.Eventlog), skip)), clean(names(t, log, skip)); want != got {
			t.Errorf("job %v:\n%s\nrepeated:\n%s\n%s", jobid.ID(j.ID), want, got, j.Eventlog)
		}
	}
}

// outside feeds one event, if it came from outside.
func (r *reality) outside(m moment) error {
	id, at := jobid.ID(m.job.ID), m.e.Timestamp
	var ev jobstate.Event
	require.NoError(r.t, ev.Decode(m.e))
	switch c := ev.Context().(type) {
	case *jobstate.SubmitContext:
		return r.step(at, joblife.Submit{
			By: joblife.Cred{UserID: c.UserID}, ID: id, Jobspec: m.job.Jobspec, Urgency: int(c.Urgency), Flags: c.Flags,
		})
	case *jobstate.UrgencyContext:
		return r.step(at, joblife.SetUrgency{By: joblife.Cred{UserID: c.UserID}, ID: id, Urgency: int(c.Urgency)})
	case *jobstate.MemoContext:
		return r.step(at, joblife.Memo{ID: id, Values: c.Values})
	case *jobstate.JobspecUpdateContext:
		return r.step(at, joblife.UpdateJobspec{ID: id, Updates: c.Updates})
	case *jobstate.ResourceUpdateContext:
		return r.step(at, joblife.SetExpiration{ID: id, Expiration: c.Expiration})
	case *jobstate.ExceptionContext:
		switch {
		case c.Type == "prolog" || c.Type == "epilog" || c.Type == "dependency":
			return nil // the manager's own
		case c.Type == "alloc":
			return r.step(at, joblife.SchedResponse{ID: id, Type: alloc.ResponseDeny, Note: c.Note})
		}
		return r.step(at, joblife.Raise{
			By: joblife.Cred{UserID: c.UserID.Value}, ID: id, Type: c.Type, Severity: int(c.Severity), Note: c.Note, WaitStatus: c.WaitStatus,
		})
	case *jobstate.AllocContext:
		cfg := r.config(perilog.Config{}) // of the instance when the job ran
		if strings.Contains(m.job.Eventlog, ownProlog) {
			cfg.Actions.Prologs = []perilog.ActionConfig{{PerRank: true}}
		}
		if strings.Contains(m.job.Eventlog, ownEpilog) {
			cfg.Actions.Epilogs = []perilog.ActionConfig{{PerRank: true}}
		}
		r.actions = cfg.Actions
		if err := r.step(at, joblife.Reload{Config: cfg}); err != nil {
			return err
		}
		r1 := m.job.R
		if r1[0] == '"' {
			var s string
			require.NoError(r.t, json.Unmarshal(r1, &s))
			r1 = json.RawMessage(s)
		}
		set, err := rset.Parse(r1)
		require.NoError(r.t, err)
		return r.step(at, joblife.SchedResponse{ID: id, Type: alloc.ResponseSuccess, R: set, Annotations: c.Annotations})
	case *jobstate.FinishContext:
		return r.step(at, joblife.ExecResponse{ID: id, Type: exec.ResponseFinish, Status: c.Status})
	case *jobstate.ReleaseContext:
		return r.step(at, joblife.ExecResponse{ID: id, Type: exec.ResponseRelease, Ranks: c.Ranks.Set, Final: c.Final})
	case *jobstate.ActionStartContext:
		if !isOwn(c.Description) { // a plugin's
			return r.step(at, joblife.Post{ID: id, Name: m.e.Name, Context: m.e.Context})
		}
		return nil
	case *jobstate.ActionFinishContext:
		if !isOwn(c.Description) {
			return r.step(at, joblife.Post{ID: id, Name: m.e.Name, Context: m.e.Context})
		}
		return r.end(id, at, c.Status)
	case *jobstate.SetFlagsContext:
		return r.step(at, joblife.SetFlags{ID: id, Flags: c.Flags})
	case *jobstate.DependencyAddContext:
		if !isScheme(c.Description) { // a plugin's
			return r.step(at, joblife.DependencyAdd{ID: id, Description: c.Description})
		}
		return nil
	case *jobstate.DependencyRemoveContext:
		if !isScheme(c.Description) {
			return r.step(at, joblife.DependencyRemove{ID: id, Description: c.Description})
		}
		return r.step(at, joblife.Tick{})
	case *jobstate.PriorityContext:
		if r.count(id, m.e.Name) < m.nth { // a plugin's, while the job waits
			return r.step(at, joblife.SetPriority{ID: id, Priority: c.Priority})
		}
		return nil
	}
	switch m.e.Name {
	case jobstate.EventStart:
		return r.step(at, joblife.ExecResponse{ID: id, Type: exec.ResponseStart})
	case jobstate.EventFree: // where the reference lost an epilog
		v, ok := r.m.Job(id)
		if ok && v.State() != jobstate.StateInactive && strings.HasPrefix(v.Job().Waiting(), "epilog") {
			return r.end(id, at, 0)
		}
	case jobstate.EventValidate, jobstate.EventDepend, jobstate.EventClean, jobstate.EventFluxRestart:
	default: // a plugin's, or an administrator's
		if ev.Context() == nil && !strings.HasPrefix(m.e.Name, "debug.") {
			return r.step(at, joblife.Post{ID: id, Name: m.e.Name, Context: m.e.Context})
		}
	}
	return nil
}

// What flux-core's own plugins write.
const (
	ownProlog = `"description":"job-manager.prolog"`
	ownEpilog = `"description":"job-manager.epilog"`
)

func isOwn(description string) bool { return strings.HasPrefix(description, "job-manager.") }

func isScheme(description string) bool {
	return strings.HasPrefix(description, "after-") || strings.HasPrefix(description, "begin-time=") || description == "singleton"
}

// count returns how many events of a name a job has.
func (r *reality) count(id jobid.ID, name string) (n int) {
	for _, e := range r.jour {
		if e.Job == id && e.Entry.Name == name {
			n++
		}
	}
	return n
}

// end ends the action that a job runs, with a status on its first rank.
func (r *reality) end(id jobid.ID, at eventlog.Timestamp, status int32) error {
	var l joblife.Launch // the last one
	for _, run := range r.runs {
		if run.Job == id {
			l = run
		}
	}
	for rank := range l.Ranks.All() {
		in := exited(l, rank).(joblife.Report)
		in.Status, status = status, 0
		if err := r.step(at, in); err != nil {
			return err
		}
	}
	return nil
}

// names returns the events of a log that RFC 21 knows, and those for debugging.
func names(t *testing.T, log []byte, skip string) string {
	var out []string
	for e, err := range eventlog.Entries(log) {
		require.NoError(t, err)
		switch e.Name {
		case "perilog-fail", "perilog-release", "perilog-launch",
			jobstate.EventDrained, skip:
		default:
			out = append(out, e.Name)
		}
	}
	return strings.Join(out, " ")
}

// contexts returns the events of a log with their contexts, keys in order. Of what it tells of
// prologs and epilogs it returns no more than the names, and nothing that flux-core does not
// tell. It leaves out events of the name skip.
func contexts(t *testing.T, log []byte, skip string) string {
	var list []string
	for e, err := range eventlog.Entries(log) {
		require.NoError(t, err)
		var context map[string]any
		if len(e.Context) > 0 {
			require.NoError(t, json.Unmarshal(e.Context, &context))
		}
		action, _, _ := strings.Cut(e.Name, "-")
		switch {
		case e.Name == skip || action == "perilog" || e.Name == jobstate.EventDrained:
			continue
		case action == "prolog" || action == "epilog":
			context = map[string]any{"description": context["description"]}
		case context["type"] == "prolog" || context["type"] == "epilog":
			delete(context, "note") // which rank, and when it was
		}
		text := e.Name
		if context != nil {
			b, err := json.Marshal(context)
			require.NoError(t, err)
			text += " " + string(b)
		}
		list = append(list, text)
	}
	return strings.Join(list, "\n")
}

func TestRealityRepeatsItself(t *testing.T) {
	sources := map[string]int{
		"recorded/brokers.jsonl.gz": 33, "recorded/mixed.jsonl.gz": 380,
		"recorded/restart-pending.jsonl.gz": 8, "recorded/restart-done.jsonl.gz": 8,
	}
	files := make(map[string][]recorded)
	for name, n := range sources {
		files[name] = refdata.Lines[recorded](t, name, n)
	}
	for _, name := range strings.FieldsFunc(os.Getenv("JOBLIFE_RECORDED"), func(c rune) bool { return c == ':' }) {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		if bytes.HasPrefix(b, []byte("\x1f\x8b")) {
			z, err := gzip.NewReader(bytes.NewReader(b))
			require.NoError(t, err)
			b, err = io.ReadAll(z)
			require.NoError(t, err)
		}
		for line := range strings.Lines(string(b)) {
			var j recorded
			require.NoError(t, json.Unmarshal([]byte(line), &j))
			files[name] = append(files[name], j)
		}
	}
	for name, list := range files {
		t.Run(name, func(t *testing.T) {
			repeat(t, list, 0, func(names string) string { return names })
		})
	}
}

// The record of a queue that the configuration lacks was read more liberally than a line is, and
// must not keep a snapshot from being written.
func TestASnapshotOfAnOddQueueRecordCanBeRead(t *testing.T) {
	for data, name := range map[string]string{`{"name":"a"}`: "a", "{\"name\":\"\xff\"}": "\uFFFD", `{"name":"a","name":"b"}`: "b"} {
		f := new(joblife.Follower)
		require.NoError(t, f.Add(joblife.Record{Kind: joblife.RecordQueue, Data: []byte(data)}))
		standby := slices.Collect(f.Snapshot())
		m, _, err := f.Restore(time.Unix(1_600_000_000, 0), joblife.Config{})
		require.NoError(t, err)
		for _, snapshot := range [][]joblife.Record{standby, slices.Collect(m.Snapshot())} {
			text, err := joblife.AppendRecords(nil, snapshot)
			require.NoError(t, err, data)
			cfg := joblife.Config{Queues: []string{name}}
			m, _, err := joblife.Restore(time.Unix(1_600_000_000, 0), cfg, joblife.ReadRecords(bytes.NewReader(text)))
			require.NoError(t, err)
			q, ok := m.Queue(name)
			require.True(t, ok)
			require.Equal(t, joblife.QueueStatus{}, q, "as the record has it")
		}
	}
}

// EL-4, SM-5: what an instance has dumped goes on, or is listed.
func TestAManagerTakesOverTheDumpsOfFlux(t *testing.T) {
	const good, bad = 7, 5
	names, err := filepath.Glob(filepath.Join(filepath.Dir(refdata.Path(t, "dumps/dump-0-40-0.tar.bz2")), "dump-*.tar.bz2"))
	require.NoError(t, err)
	require.Len(t, names, good+bad)
	jobs, failures := 0, 0
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := os.Open(name)
			require.NoError(t, err)
			defer f.Close()
			s := newSite(t, joblife.Config{Queues: []string{"batch", "debug"}}, 8)
			s.now = time.Unix(1_800_000_000, 0)
			records, a, err := recordsOf(f)
			require.NoError(t, err)
			s.store = append(s.store, records...)
			s.restart()
			require.Empty(t, s.rec.Quarantined)
			found := s.inactive()
			jobs, failures = jobs+found, failures+len(a.Failures)
			id := s.submit(jobspec.Job{Nodes: 1, Queue: "debug"})
			last, _ := a.MaxID()
			require.Greater(t, id, last, "I9")
			require.Equal(t, jobstate.StateInactive, s.state(id))
			s.restore(slices.Collect(s.m.Snapshot()))
			require.Equal(t, found+1, s.inactive())
			s.step(joblife.Purge{Limits: purge.PurgeAll(), Force: true})
			require.Zero(t, s.inactive())
		})
	}
	require.Equal(t, []int{good, bad}, []int{jobs, failures})
}
