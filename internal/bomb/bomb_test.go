package bomb_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/bomb"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/archive"
	"github.com/joblife/joblife/jobstate/fsd"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/dirstore"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/hostlist"
	"github.com/joblife/joblife/rset/pool"
)

// A row is a decoder, what is done at first with what it gives, and what is thrown at it.
type row struct {
	name  string
	work  func(text []byte)
	bombs []bomb.Bomb
}

func inJSON(places ...string) (list []bomb.Bomb) {
	for _, p := range places {
		list = append(list, bomb.JSON(p)...)
	}
	return list
}

func join(lists ...[]bomb.Bomb) (all []bomb.Bomb) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func idsets(head, tail string) []bomb.Bomb {
	return []bomb.Bomb{
		bomb.Fill("ids", head+"0", ",1#", tail),
		bomb.Fill("odd ids", head+"1", ",#1", tail),
		bomb.Fill("ids far apart", head+"1", ",1#000", tail),
		bomb.Fill("short ranges", head+"0", ",1#0-1#4", tail),
		bomb.Raw("all ids", head+"0-2147483647"+tail),
		bomb.Raw("more than all ids", head+"0-4294967295"+tail),
		bomb.Fill("one id", head+"7", ",7", tail),
		bomb.Fill("long ranges", head+"0-2147483647", ",0-2147483647", tail),
		bomb.Fill("ranges that overlap", head+"0", ",#-2147483647", tail),
		bomb.Fill("in brackets", head+"[0", ",1#", "]"+tail),
		bomb.Nest("nested brackets", head, "[", "0", "]", tail),
		bomb.Fill("zeros", head+"1", "0", tail),
		bomb.Fill("commas", head, ",", tail),
		bomb.Fill("dashes", head, "0-", tail),
	}
}

func hosts(head, tail string) []bomb.Bomb {
	return []bomb.Bomb{
		bomb.Fill("short names", head, "a,b,", tail),
		bomb.Fill("names", head, "h#x,", tail),
		bomb.Fill("odd ids", head+"h[", "#1,", "]"+tail),
		bomb.Fill("small brackets", head, "h[0-9],", tail),
		bomb.Fill("ranges of others", head, "h#x[0-99],", tail),
		bomb.Raw("as many as may be", head+"h[0-16777215]"+tail),
		bomb.Raw("more than may be", head+"h[0-99999999]"+tail),
		bomb.Fill("ids in order", head, "h#,", tail),
		bomb.Fill("one host", head, "h1,", tail),
		bomb.Fill("wide brackets", head, "h[0-16777215],", tail),
		bomb.Fill("brackets with a suffix", head, "h[0-99]-x,", tail),
		bomb.Nest("nested brackets", head, "h[", "1", "]", tail),
		bomb.Fill("two brackets", head, "h[0-9]x[0-9],", tail),
		bomb.Fill("digits", head+"h", "9", tail),
		bomb.Fill("a long name", head, "h", tail),
		bomb.Fill("widths", head, "h[#-#],h[0#-0#],", tail),
		bomb.Fill("commas", head, ",", tail),
	}
}

// The start of an R with entries, and an R up to its other keys.
const (
	entries = `{"version":1,"execution":{"R_lite":[`
	someR   = entries + `{"rank":"0-16777215","children":{"core":"0"}}]`
)

func resources() []bomb.Bomb {
	return join(
		[]bomb.Bomb{
			bomb.Fill("keys", someR+"}", `,"x#":1`, "}"),
			bomb.Fill("kinds that overlap", entries, `{"rank":"#-16777215","children":{"c#":"0"}},`, "]}}"),
			bomb.Fill("keys of execution", someR, `,"x#":1`, "}}"),
			bomb.Fill("properties", someR+`,"properties":{`, `"x#":"0-16777215",`, "}}}"),
			bomb.Fill("kinds", entries+`{"rank":"0","children":{`, `"c#":"0",`, "}}]}}"),
			bomb.Fill("entries", entries, `{"rank":"#","children":{"core":"0"}},`, "]}}"),
			bomb.Fill("entries of other cores", entries, `{"rank":"#","children":{"core":"#"}},`, "]}}"),
			bomb.Fill("entries of other kinds", entries, `{"rank":"#","children":{"c#":"0"}},`, "]}}"),
			bomb.Fill("kinds of one rank", entries, `{"rank":"0","children":{"c#":"0"}},`, "]}}"),
			bomb.Fill("parts of a list of hosts", someR+`,"nodelist":[`, `"h[#-#9]",`, "]}}"),
		},
		idsets(entries+`{"children":{"core":"0"},"rank":"`, `"}]}}`),
		idsets(entries+`{"rank":"0","children":{"core":"`, `"}}]}}`),
		idsets(someR+`,"properties":{"x":"`, `"}}}`),
		hosts(someR+`,"nodelist":["`, `"]}}`),
		inJSON("@", someR+`},"x":@}`, someR+`,"x":@}}`, someR+`},"scheduling":@}`, entries+`{"rank":"0","children":{"core":"0"},"x":@}]}}`),
	)
}

func unions(r, all *rset.R) {
	text := r.AppendJSON(nil)
	same, err := rset.Parse(text)
	if err != nil {
		panic(err)
	}
	_, _ = rset.Union(r, same)
	_, _ = rset.Union(all, r)
	_, _ = rset.UnionDisjoint(all, r)
}

func differences(r, all *rset.R) {
	_, _, _ = rset.Subtract(all, r)
	_, _, _ = rset.Subtract(r, all)
	_, _ = rset.Intersect(r, all)
}

func most(r *rset.R) *idset.Set {
	ranks := r.Ranks()
	if first, ok := ranks.Min(); ok {
		ranks.Remove(first)
	}
	return ranks
}

func fragment(r *rset.R) {
	if part, err := r.Restrict(most(r)); err == nil {
		part.AppendJSON(nil)
	}
}

func free(r *rset.R) {
	l := rset.NewLedger(r)
	_, _ = l.FreePart(most(r))
	_, _ = l.FreeRest()
}

func ranks(r *rset.R) {
	_, _ = r.Rerank(r.Nodelist())
	_ = r.String()
	for range r.Entries() {
	}
}

const (
	submit = `{"timestamp":1,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}` + "\n"
	waits  = submit + `{"timestamp":2,"name":"validate"}` + "\n" + `{"timestamp":3,"name":"depend"}` + "\n" +
		`{"timestamp":4,"name":"priority","context":{"priority":16}}` + "\n"
	begun = waits + `{"timestamp":5,"name":"alloc"}` + "\n"
)

func logs() []bomb.Bomb {
	return join([]bomb.Bomb{
		bomb.Fill("events", submit, `{"timestamp":1#,"name":"x#"}`+"\n", ""),
		bomb.Fill("memos", submit, `{"timestamp":1#,"name":"memo","context":{"k#":1}}`+"\n", ""),
		bomb.Fill("dependencies", submit, `{"timestamp":1#,"name":"dependency-add","context":{"description":"#"}}`+"\n", ""),
		bomb.Fill("prologs", begun, `{"timestamp":1#,"name":"prolog-start","context":{"description":"#"}}`+"\n", ""),
		bomb.Fill("prologs with ranks", begun, `{"timestamp":1#,"name":"prolog-start","context":{"description":"#","ranks":"0-16777215"}}`+"\n", ""),
		bomb.Fill("updates", submit, `{"timestamp":1#,"name":"jobspec-update","context":{"attributes.system.x#":1}}`+"\n", ""),
		bomb.Fill("keys of an update", submit+`{"timestamp":2,"name":"jobspec-update","context":{`, `"attributes.system.x#":1,`, "}}\n"),
		bomb.Fill("keys of a memo", submit+`{"timestamp":2,"name":"memo","context":{`, `"x#":1,`, "}}\n"),
		bomb.Fill("exceptions", begun, `{"timestamp":1#,"name":"exception","context":{"type":"x","severity":1,"userid":0,"note":"#"}}`+"\n", ""),
		bomb.Fill("failed ranks", begun, `{"timestamp":1#,"name":"exception","context":{"type":"prolog","severity":1,"userid":0,"ranks":"#","action":"keep"}}`+"\n", ""),
		bomb.Fill("releases", begun, `{"timestamp":1#,"name":"release","context":{"ranks":"#","final":false}}`+"\n", ""),
		bomb.Fill("empty lines", submit, "\n", ""),
		bomb.Fill("one entry", submit, `{"timestamp":2,"name":"x"}`+"\n", ""),
	},
		idsets(begun+`{"timestamp":6,"name":"start"}`+"\n"+`{"timestamp":7,"name":"release","context":{"final":false,"ranks":"`, `"}}`+"\n"),
		inJSON("@\n", submit+`{"timestamp":2,"name":"x","context":@}`+"\n", submit+`{"timestamp":2,"name":"memo","context":{"x":@}}`+"\n",
			submit+`{"timestamp":2,"name":"jobspec-update","context":{"attributes.system.x":@}}`+"\n", `{"timestamp":2,"name":"x","y":@}`+"\n"))
}

const spec = `{"version":1,"resources":[{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]}],"tasks":[{"command":["a"],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":1`

func specs() []bomb.Bomb {
	return join([]bomb.Bomb{
		bomb.Fill("dependencies", spec+`,"dependencies":[`, `{"scheme":"after","value":"#"},`, "]}}}"),
		bomb.Fill("attributes", spec, `,"x#":1`, "}}}"),
		bomb.Fill("vertices", `{"version":1,"resources":[`, `{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]},`, `],"tasks":[{"command":["a"],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":1}}}`),
		bomb.Nest("nested vertices", `{"version":1,"resources":[`, `{"type":"node","count":1,"with":[`, `{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]}`, "]}", `],"tasks":[],"attributes":{"system":{"duration":1}}}`),
		bomb.Fill("counts", `{"version":1,"resources":[{"type":"slot","label":"t","with":[{"type":"core","count":1}],"count":"1`, ",1#", `"}],"tasks":[{"command":["a"],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":1}}}`),
		bomb.Fill("arguments", `{"version":1,"resources":[{"type":"slot","count":1,"label":"t","with":[{"type":"core","count":1}]}],"tasks":[{"command":[`, `"",`, `],"slot":"t","count":{"per_slot":1}}],"attributes":{"system":{"duration":1}}}`),
		bomb.Fill("constraints", spec+`,"constraints":{"properties":[`, `"x#",`, "]}}}}"),
		bomb.Nest("nested constraints", spec+`,"constraints":`, `{"and":[`, `{"ranks":["0"]}`, "]}", "}}}"),
		bomb.Fill("environment", spec+`,"environment":{`, `"x#":"",`, "}}}}"),
	}, inJSON("@", spec+`,"x":@}}}`, spec+`,"constraints":@}}}`, spec+`,"dependencies":@}}}`, `{"version":1,"resources":@,"tasks":[],"attributes":{}}`))
}

const control = perilog.ControlPrefix + `{"version":1,`

func controls() []bomb.Bomb {
	return []bomb.Bomb{
		bomb.Fill("failed ranks", "", control+`"failed":"#","note":"#"}`+"\n", ""),
		bomb.Fill("ranks that the action leaves", "", control+`"released":"1#"}`+"\n", ""),
		bomb.Fill("all ranks", "", control+`"failed":"0-16777215","released":"0-16777215"}`+"\n", ""),
		bomb.Fill("lines that are not understood", "", perilog.ControlPrefix+"\n", ""),
		bomb.Fill("a long line", control+`"failed":"0`, ",1#", `"}`+"\n"),
	}
}

// recovered returns a job with many ranks and a prolog, and nil for a bad log.
func recovered(log []byte) *perilog.Job {
	r, err := rset.Parse([]byte(entries + `{"rank":"0-9999","children":{"core":"0-63"}}]}}`))
	if err != nil {
		panic(err)
	}
	cfg := &perilog.Config{Prologs: []perilog.ActionConfig{{Description: "p"}}, Tolerate: perilog.Tolerate{Count: 9000}}
	j, err := perilog.RecoverJob(1e9, cfg, perilog.JobConfig{ID: 1, R: r}, log, nil)
	if err != nil {
		return nil
	}
	j.Take(1e9)
	return j
}

// prepared returns a job whose prolog runs.
func prepared() *perilog.Job {
	j := recovered([]byte(waits))
	if _, err := j.Apply(1e9, eventlog.Entry{Timestamp: 1e9, Name: jobstate.EventAlloc}); err != nil {
		panic(err)
	}
	j.Take(1e9)
	return j
}

// say reports a line that the prolog wrote.
func say(j *perilog.Job, line []byte) perilog.Ack {
	key := jobstate.ActionKey{Kind: jobstate.ActionProlog, Description: "p"}
	return j.Report(1e9, perilog.Report{Action: key, Attempt: 1, Kind: perilog.ReportOutput, Line: line})
}

// TestARowReachesItsJob: logs do, and control lines while its prolog runs.
func TestARowReachesItsJob(t *testing.T) {
	require.NotNil(t, recovered([]byte(begun)))
	j := prepared()
	require.Equal(t, perilog.AckApplied, say(j, []byte(control+`"failed":"7"}`)))
	require.Equal(t, perilog.AckApplied, say(j, []byte(control+`"released":"8"}`)))
}

func records() []bomb.Bomb {
	return join([]bomb.Bomb{
		bomb.Fill("jobs", "", `{"timestamp":1,"name":"unlinked","context":{"job":"#"}}`+"\n", ""),
		bomb.Fill("jobs that are damaged", "", `{"timestamp":1,"name":"event","context":{"job":"#","data":{}}}`+"\n", ""),
		bomb.Fill("jobs that wait", "", `{"timestamp":1,"name":"jobspec","context":{"job":"#","data":1}}`+"\n"+`{"timestamp":1,"name":"event","context":{"job":"#","data":`+submit[:len(submit)-1]+"}}\n", ""),
		bomb.Fill("tombstones", "", `{"timestamp":1,"name":"tombstone","context":{"job":"#","data":""}}`+"\n", ""),
		bomb.Fill("queues", "", `{"timestamp":1,"name":"queue","context":{"data":{"name":"q#"}}}`+"\n", ""),
		bomb.Fill("watermarks", "", `{"timestamp":1,"name":"watermark","context":{"data":"#"}}`+"\n", ""),
		bomb.Fill("housekeeping", "", `{"timestamp":1,"name":"housekeeping","context":{"job":"#","data":{}}}`+"\n", ""),
		bomb.Fill("R", "", `{"timestamp":1,"name":"R","context":{"job":"#","data":{}}}`+"\n", ""),
	}, inJSON(`{"timestamp":1,"name":"event","context":{"job":"1","data":@}}`+"\n", `{"timestamp":1,"name":"queue","context":{"data":@}}`+"\n",
		`{"timestamp":1,"name":"R","context":{"job":"1","data":@}}`+"\n", `{"timestamp":1,"name":"x","context":{"x":@}}`+"\n"))
}

func archives() []bomb.Bomb {
	zipped := func(name, format, value string, kind byte) bomb.Bomb {
		return bomb.Bomb{Name: name, Text: func(size int) []byte { return bomb.Gzip(name, tars(format, value, kind)).Text(size) }}
	}
	return append([]bomb.Bomb{
		bomb.Gzip("zipped zeros", "\x00"),
		zipped("zipped jobs", "job/0000/0000/0000/%04x/eventlog", submit, '0'),
		{Name: "checkpoints behind noise", Text: checkpoints},
		bomb.Fill("headers", "", tarOf("job/0000/0000/0000/0001/J", "", '0'), ""),
		zipped("zipped keys", "x/%04x", "x", '0'),
		zipped("zipped directories", "job/0000/0000/0000/%04x/", "", '5'),
		zipped("zipped empty keys", "x/y/%04x", "", '0'),
		zipped("zipped bad paths", "job/x/%04x", "", '0'), bomb.Bzip2("zeros in bzip2"),
		bomb.Gzip("a zipped long key", tarOf("x", string(make([]byte, 1<<20)), '0')),
		bomb.Fill("long names", "", tarOf(strings.Repeat("x", 1<<17), "", '0'), ""),
	}, inJSON("@")...)
}

// checkpoints are those that noise, which cannot be compressed, pays for.
func checkpoints(size int) []byte {
	noise := make([]byte, size*15/16)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // it never fails
	text := "{" + strings.Repeat(`"":0,`, 3<<20) + `"max_jobid":1}`
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, tarOf("x", string(noise), '0')+strings.Repeat(tarOf("checkpoint/job-manager", text, '0'), 4))
	_ = z.Close() // a Buffer takes all
	return b.Bytes()
}

func tarOf(name, value string, kind byte) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(value)), Typeflag: kind, Mode: 0o644, Format: tar.FormatGNU}); err != nil {
		panic(err)
	}
	if _, err := w.Write([]byte(value)); err != nil {
		panic(err)
	}
	if err := w.Flush(); err != nil {
		panic(err)
	}
	return b.String()
}

func tars(format, value string, kind byte) string {
	var b strings.Builder
	for i := range 1 << 14 {
		b.WriteString(tarOf(fmt.Sprintf(format, i), value, kind))
	}
	return b.String()
}

func table(t *testing.T) []row {
	all, err := rset.Parse([]byte(entries + `{"rank":"0-16777215","children":{"core":"0-1048575","gpu":"1-2"}}]}}`))
	require.NoError(t, err)
	parsed := func(then func(r *rset.R)) func([]byte) {
		return func(text []byte) {
			if r, err := rset.Parse(text); err == nil {
				then(r)
			}
		}
	}
	pools, err := pool.New(all, pool.Config{})
	require.NoError(t, err)
	base, err := jobspec.Parse([]byte(spec + "}}}"))
	require.NoError(t, err)
	dir := t.TempDir()
	odd, err := idset.Parse("5-2000000000")
	require.NoError(t, err)
	return []row{
		{"idset", func(text []byte) {
			if s, err := idset.Parse(string(text)); err == nil {
				_ = s.String()
				idset.Union(s, odd)
				idset.Difference(odd, s)
				idset.Intersect(odd, s)
			}
		}, idsets("", "")},
		{"hostlist", func(text []byte) {
			if l, err := hostlist.Parse(string(text)); err == nil {
				_ = l.String()
				l.Find("h77777777")
			}
		}, hosts("", "")},
		{"hostlist, sorted", func(text []byte) {
			if l, err := hostlist.Parse(string(text)); err == nil {
				l.Uniq()
			}
		}, hosts("", "")},
		{"R and unions", parsed(func(r *rset.R) { unions(r, all) }), resources()},
		{"R and differences", parsed(func(r *rset.R) { differences(r, all) }), resources()},
		{"R and a fragment", parsed(fragment), resources()},
		{"R and its ledger", parsed(free), resources()},
		{"R and its ranks", parsed(ranks), resources()},
		{"jobspec", func(text []byte) {
			if s, err := jobspec.Parse(text); err == nil {
				_, _ = s.MarshalJSON()
				_, _ = s.Update("attributes.system.y", []byte("1"))
				if q, err := pool.NewRequest(s); err == nil {
					_ = pools.Feasible(q)
				}
			}
		}, specs()},
		{"jobspec-update", func(text []byte) {
			j := jobstate.NewJob(1)
			for _, e := range []eventlog.Entry{
				{Timestamp: 1, Name: jobstate.EventSubmit, Context: []byte(`{"userid":1,"urgency":16,"flags":0,"version":1}`)},
				{Timestamp: 2, Name: jobstate.EventJobspecUpdate, Context: text},
			} {
				_, _ = j.Apply(e)
			}
			_, _ = base.UpdateAll(j.Updates())
		},
			append(inJSON(`@`, `{"attributes.system.x":@}`), bomb.Fill("keys", "{", `"attributes.system.x#":1,`, "}"), bomb.Fill("paths", "{", `"attributes.user.a.b.c.x#":1,`, "}"),
				bomb.Fill("a long path", `{"attributes.user`, ".a", `":1}`), bomb.Fill("one key", "{", `"attributes.system.x":1,`, "}"))},
		{"count", func(text []byte) { _, _ = jobspec.ParseCount(string(text)) }, append(idsets("", ""), bomb.Fill("operators", "1-2", ":2:*", ""), bomb.Raw("all", "1-2147483647:1:+"))},
		{"annotations", func(text []byte) {
			if a, err := jobstate.MergeAnnotations(nil, text); err == nil {
				_, _ = jobstate.MergeAnnotations(a, text)
			}
		}, inJSON("@", `{"x":@}`)},
		{"eventlog", func(text []byte) {
			for e, err := range eventlog.Entries(text) {
				if err == nil {
					_, _ = eventlog.AppendEntry(nil, e)
				}
			}
			for range eventlog.NewDecoder(bytes.NewReader(text), eventlog.DecoderOptions{}).All() {
			}
		}, logs()},
		{"jobstate", func(text []byte) {
			_, _ = jobstate.Replay(1, text)
			_ = jobstate.Validate(text)
		}, logs()},
		{"holds", func(text []byte) {
			h := perilog.NewHolds(1, all)
			for e, err := range eventlog.Entries(text) {
				if err == nil {
					_, _ = h.Apply(e)
				}
			}
			_ = h.String()
		}, logs()},
		{"job", func(text []byte) { recovered(text) }, logs()},
		{"control lines", func(text []byte) {
			j := prepared()
			for line := range bytes.Lines(text) {
				say(j, line)
			}
			say(j, text)
			j.Take(1e9)
		}, append(controls(), inJSON(control+"@\n")...)},
		{"records", func(text []byte) {
			cfg := joblife.Config{Epoch: time.Unix(1, 0)}
			if m, _, err := joblife.Restore(time.Unix(1700000000, 0), cfg, joblife.ReadRecords(bytes.NewReader(text))); err == nil {
				var rd joblife.Ready
				for m.Ready(&rd) {
					m.Done(rd.Seq)
				}
			}
		}, records()},
		{"messages of schedulers", func(text []byte) {
			_, _ = alloc.Parse[alloc.Hello](text)
			_, _ = alloc.Parse[alloc.HelloResponse](text)
			_, _ = alloc.Parse[alloc.Ready](text)
			_, _ = alloc.Parse[alloc.Response](text)
			_, _ = alloc.Parse[alloc.Request](text)
			_, _ = alloc.Parse[alloc.Prioritize](text)
			_, _ = alloc.Parse[alloc.Free](text)
			_, _ = alloc.ParseLine(text)
		}, append(inJSON("@", `{"id":1,"type":0,"annotations":@}`, `{"id":1,"jobspec":@}`, `{"topic":"x","payload":@}`, `{"x":@}`),
			bomb.Fill("pairs", `{"jobs":[`, "[#,1],", "]}"), bomb.Fill("R", `{"id":1,"type":0,"R":`+entries, `{"rank":"#-16777215","children":{"c#":"0"}},`, "]}}}"))},
		{"messages of executors", func(text []byte) {
			_, _ = exec.Parse[exec.Hello](text)
			_, _ = exec.Parse[exec.Start](text)
			_, _ = exec.Parse[exec.Response](text)
		}, append(inJSON("@", `{"id":1,"type":"start","data":@}`, `{"id":1,"jobspec":@}`), idsets(`{"id":1,"type":"release","data":{"final":true,"ranks":"`, `"}}`)...)},
		{"constraints", func(text []byte) {
			s, err := base.Update("attributes.system.constraints", text)
			if err != nil {
				return
			}
			if q, err := pool.NewRequest(s); err == nil {
				_ = pools.Feasible(q)
			}
		},
			join(idsets(`{"ranks":["`, `"]}`), hosts(`{"hostlist":["`, `"]}`), inJSON("@", `{"properties":@}`), []bomb.Bomb{
				bomb.Fill("properties", `{"properties":[`, `"x#",`, "]}"), bomb.Nest("nots", "", `{"not":[`, "{}", "]}", ""), bomb.Nest("ors", "", `{"or":[{},`, "{}", "]}", ""),
				bomb.Fill("terms", `{"or":[`, `{"ranks":["0-16777215"]},`, "]}"), bomb.Fill("ranks", `{"ranks":[`, `"0-16777215",`, "]}"), bomb.Fill("hosts", `{"hostlist":[`, `"h[0-99]",`, "]}"),
			})},
		{"inventory", func(text []byte) {
			if a, err := pool.ParseAcquire(text); err == nil && a.Resources != nil {
				if p, err := pool.New(a.Resources, pool.Config{}); err == nil {
					_ = p.Update(a.Change)
				}
			}
		}, join(idsets(`{"resources":`+someR+`}},"up":"`, `"}`), inJSON("@", `{"resources":@}`, `{"up":"all","x":@}`), []bomb.Bomb{
			bomb.Fill("properties", `{"up":"all","resources":`+someR+`}},"property-add":{`, `"x#":"0-16777215",`, "}}"),
			bomb.Fill("entries", `{"up":"all","resources":`+entries, `{"rank":"#","children":{"core":"#"}},`, "]}}}"),
		})},
		{"small texts", func(text []byte) {
			s := string(text)
			_, _ = fsd.Parse(s)
			_, _ = jobid.Parse(s)
			_, _ = purge.ParseWatermark(text)
			_ = new(jobstate.Summary).UnmarshalText(text)
			_ = new(eventlog.Timestamp).UnmarshalText(text)
			_ = new(eventlog.Timestamp).UnmarshalJSON(text)
			_ = new(jobid.ID).UnmarshalJSON(text)
		}, []bomb.Bomb{
			bomb.Fill("ones", "", "1", ""), bomb.Fill("ones of a duration", "", "1", "s"), bomb.Fill("zeros", "0.", "0", "1d"), bomb.Fill("letters", "ƒ", "z", ""),
			bomb.Fill("a hexadecimal", "0x", "0", "1"), bomb.Fill("dotted", "", "0000.", "0000"), bomb.Fill("words", "", "a-", "a"), bomb.Fill("an exponent", "1e", "9", ""),
			bomb.Fill("a string", `"`, "1", `"`), bomb.Fill("escapes", `"`, `\u0031`, `"`), bomb.Fill("spaces", "", " ", "1"), bomb.Fill("fields", "", "1 ", ""),
		}},
		{"archives", func(text []byte) {
			_, _ = archive.Walk(bytes.NewReader(text), archive.Limits{}, func(archive.Job) error { return nil })
		}, archives()},
		{"logfile", func(text []byte) {
			name := filepath.Join(dir, "log")
			require.NoError(t, os.WriteFile(name, text, 0o600))
			if l, err := logfile.Open(name, logfile.Options{}); err == nil {
				require.NoError(t, l.Close())
			}
		}, logs()},
		{"dirstore", func(text []byte) {
			dir := filepath.Join(t.TempDir(), "store")
			s, err := dirstore.Create(dir)
			require.NoError(t, err)
			require.NoError(t, s.Add(dirstore.Stored{ID: 1}))
			for _, name := range []string{"eventlog", "crc32c", "R"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "job.0000.0000.0000.0001", name), text, 0o600))
				_, _ = s.Read(1)
				_ = s.Append(1, nil)
			}
			require.NoError(t, s.Close())
		}, logs()},
	}
}

// TestNoTextTakesFarMoreThanItsLength throws 1 MiB at each decoder (I12).
func TestNoTextTakesFarMoreThanItsLength(t *testing.T) {
	for _, r := range table(t) {
		if os.Getenv("JOBLIFE_DEEP") == "" {
			few := 1
			if r.name == "R and unions" || r.name == "archives" {
				few = 2 // both did much harm once
			}
			r.bombs = r.bombs[:few]
		}
		t.Run(r.name, func(t *testing.T) { bomb.Defuse(t, r.work, r.bombs...) })
	}
}
