package joblife_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/internal/race"
	"github.com/joblife/joblife/internal/refdata"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/rset"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
)

// mill runs jobs of one node through a Manager as fast as it goes.
type mill struct {
	tb   testing.TB
	m    *joblife.Manager
	pool *pool.Pool
	req  *pool.Request
	text []byte
	now  time.Time
	id   jobid.ID
	rd   joblife.Ready
	in   []joblife.Input
	mute bool    // nobody answers
	lazy bool    // jobs start and do not end
	own  bool    // each job gets a node of its own
	r    *rset.R // what each job gets; nil: what the pool gives it

	store func([]joblife.Record) // nil: forgets the records

	inputs, events int // what the Manager got and decided
}

func newMill(tb testing.TB, cfg joblife.Config) *mill { return newMillOf(tb, cfg, 128) }

// newMillOf returns a mill with a pool of some nodes.
func newMillOf(tb testing.TB, cfg joblife.Config, nodes int) *mill {
	m, err := joblife.New(cfg)
	require.NoError(tb, err)
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Range(0, uint32(nodes-1)), Children: map[string]*idset.Set{"core": idset.Range(0, 3)},
	}}})
	require.NoError(tb, err)
	p, err := pool.New(r, pool.Config{})
	require.NoError(tb, err)
	require.NoError(tb, p.Update(pool.Change{Up: r.Ranks()}))
	spec := jobspec.Job{Nodes: 1, Command: []string{"true"}}
	text := text(tb, spec)
	parsed, err := jobspec.Parse(text)
	require.NoError(tb, err)
	req, err := pool.NewRequest(parsed)
	require.NoError(tb, err)
	w := &mill{tb: tb, m: m, pool: p, req: req, text: text, now: time.Unix(1_600_000_000, 0)}
	w.step(joblife.SchedHello{})
	w.step(joblife.SchedReady{})
	w.step(joblife.ExecHello{})
	return w
}

func (w *mill) step(in joblife.Input) {
	if err := w.m.Step(w.now, in); err != nil {
		w.tb.Fatal(err)
	}
	w.run()
}

// run does what there is to do, and passes on what comes back.
func (w *mill) run() {
	for w.m.Ready(&w.rd) {
		w.events += len(w.rd.Journal)
		if w.store != nil {
			w.store(w.rd.Append)
		}
		for _, msg := range w.rd.Sched {
			if w.mute {
				break
			}
			switch msg := msg.(type) {
			case alloc.Request:
				r := w.r
				if w.own {
					r = node(w.tb, uint32(2*msg.ID))
				} else if r == nil {
					var err error
					if r, err = w.pool.Alloc(msg.ID, w.req, eventlog.FromTime(w.now)); err != nil {
						w.tb.Fatal(err)
					}
				}
				w.in = append(w.in, joblife.SchedResponse{ID: msg.ID, Type: alloc.ResponseSuccess, R: r})
			case alloc.Free:
				if w.r != nil || w.own {
					break
				}
				if _, err := w.pool.Free(msg.ID, msg.R, msg.Final); err != nil {
					w.tb.Fatal(err)
				}
			}
		}
		for _, msg := range w.rd.Exec {
			if msg, ok := msg.(exec.Start); ok && !w.mute {
				if w.in = append(w.in, joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseStart}); w.lazy {
					continue
				}
				w.in = append(w.in,
					joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseFinish},
					joblife.ExecResponse{ID: msg.ID, Type: exec.ResponseRelease, Final: true})
			}
		}
		if err := w.m.Done(w.rd.Seq); err != nil {
			w.tb.Fatal(err)
		}
		w.inputs += len(w.in)
		for _, in := range w.in {
			if err := w.m.Step(w.now, in); err != nil {
				w.tb.Fatal(err)
			}
		}
		w.in = w.in[:0]
	}
}

// node returns an R of one node.
func node(tb testing.TB, rank uint32) *rset.R {
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{
		Ranks: idset.Of(rank), Children: map[string]*idset.Set{"core": idset.Of(1)},
	}}})
	require.NoError(tb, err)
	return r
}

// life runs a job from submit to clean.
func (w *mill) life() { w.lives(1) }

// lives runs jobs that share their Readys.
func (w *mill) lives(n int) {
	for range n {
		w.id++
		w.inputs++
		w.now = w.now.Add(time.Millisecond)
		if err := w.m.Step(w.now, joblife.Submit{ID: w.id, Jobspec: w.text, Urgency: jobstate.UrgencyDefault}); err != nil {
			w.tb.Fatal(err)
		}
	}
	w.run()
}

// BenchmarkLife runs jobs with a pool, and with an R that is the same for all: what
// the Manager alone takes. With records it encodes the log of each job, and with lines each
// record as a line for a store too. An input is one allocation of the benchmark's, which
// allocs/event lacks.
func BenchmarkLife(b *testing.B) {
	for _, log := range []string{"none", "records", "lines"} {
		for _, pool := range []bool{false, true} {
			b.Run(fmt.Sprintf("log=%s/pool=%v", log, pool), func(b *testing.B) {
				w := newMill(b, joblife.Config{Volatile: log == "none"})
				if !pool {
					w.r = node(b, 1)
				}
				var lines []byte
				if log == "lines" {
					w.store = func(list []joblife.Record) {
						var err error
						if lines, err = joblife.AppendRecords(lines[:0], list); err != nil {
							b.Fatal(err)
						}
					}
				}
				for range 1000 {
					w.life()
				}
				w.inputs, w.events = 0, 0
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				b.ReportAllocs()
				for b.Loop() {
					w.life()
				}
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lives/s")
				b.ReportMetric(float64(w.events)/float64(b.N), "events/op")
				b.ReportMetric(float64(int(after.Mallocs-before.Mallocs)-w.inputs)/float64(w.events), "allocs/event")
				runtime.KeepAlive(w)
			})
		}
	}
}

// weigh returns how many bytes a job takes, its log included and its R not, by how far it is.
// The jobspec is that of all jobs.
func weigh(tb testing.TB, far string, n int) float64 {
	var before, after runtime.MemStats
	nodes := make([]*rset.R, n)
	for i := range nodes {
		nodes[i] = node(tb, uint32(2*i))
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	m, err := joblife.New(joblife.Config{})
	require.NoError(tb, err)
	w := &mill{tb: tb, m: m, text: text(tb, jobspec.Job{Nodes: 1, Command: []string{"true"}}), now: time.Unix(1_600_000_000, 0), mute: true}
	w.step(joblife.SchedHello{})
	w.step(joblife.SchedReady{})
	w.step(joblife.ExecHello{})
	for _, r := range nodes {
		w.life()
		if far == "pending" {
			continue
		}
		w.step(joblife.SchedResponse{ID: w.id, R: r})
		w.step(joblife.ExecResponse{ID: w.id, Type: exec.ResponseStart})
		if far == "running" {
			continue
		}
		w.step(joblife.ExecResponse{ID: w.id, Type: exec.ResponseFinish})
		w.step(joblife.ExecResponse{ID: w.id, Type: exec.ResponseRelease, Final: true})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(w)
	runtime.KeepAlive(nodes)
	return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / float64(n)
}

// BenchmarkMemory reports what a job takes.
func BenchmarkMemory(b *testing.B) {
	for _, far := range []string{"pending", "running", "inactive"} {
		b.Run(far, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(weigh(b, far, 20_000), "bytes/job")
			}
		})
	}
}

// TestJobspecIsReadAgain tells that a job that waits for long keeps its jobspec as text alone.
func TestJobspecIsReadAgain(t *testing.T) {
	m, err := joblife.New(joblife.Config{})
	require.NoError(t, err)
	w := &mill{tb: t, m: m, text: text(t, jobspec.Job{Nodes: 1, Command: []string{"true"}}), now: time.Unix(1_600_000_000, 0), mute: true}
	w.step(joblife.SchedHello{})
	w.life()
	v, _ := m.Job(1)
	require.True(t, v.HasJobspec(), "it is new")
	others := func() {
		lives := 0
		for ; v.HasJobspec(); lives++ {
			w.life()
			v, _ = m.Job(1)
		}
		require.InDelta(t, 1<<10, lives, 1<<10, "others")
	}
	others()
	first := v.Jobspec()
	require.NotNil(t, first)
	require.Same(t, first, v.Jobspec())
	others()

	w.step(joblife.UpdateJobspec{ID: 1, Updates: []jobstate.Update{{Path: "attributes.system.duration", Value: []byte("7")}}})
	w.life()
	v, _ = m.Job(1)
	require.True(t, v.HasJobspec(), "one with updates stays")
	require.Equal(t, 7*time.Second, v.Jobspec().Duration())
}

// BenchmarkDurable runs jobs with a log on a disk: in the folder that JOBLIFE_BENCH_DIR
// names, or a temporary one. Several jobs share each Ready, and so one sync.
func BenchmarkDurable(b *testing.B) {
	for _, group := range []int{1, 16, 128, 1024} {
		b.Run(fmt.Sprintf("group=%d", group), func(b *testing.B) {
			dir, err := os.MkdirTemp(cmp.Or(os.Getenv("JOBLIFE_BENCH_DIR"), b.TempDir()), "joblife")
			require.NoError(b, err)
			defer os.RemoveAll(dir)
			log, err := logfile.Create(filepath.Join(dir, "log"), logfile.Options{})
			require.NoError(b, err)
			defer log.Close()
			w := newMillOf(b, joblife.Config{}, max(128, group))
			var batch []byte
			syncs := 0
			w.store = func(records []joblife.Record) {
				var err error
				if batch, err = joblife.AppendRecords(batch[:0], records); err != nil {
					b.Fatal(err)
				}
				if err := log.Append(batch); err != nil {
					b.Fatal(err)
				}
				syncs++
			}
			n := 0
			for b.Loop() {
				w.lives(group)
				n += group
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "lives/s")
			b.ReportMetric(float64(syncs)/float64(n), "syncs/job")
			b.ReportMetric(float64(log.Size())/float64(n), "bytes/job")
		})
	}
}

// records returns the records of n jobs, which run, or are inactive.
func records(tb testing.TB, n int, inactive bool) []joblife.Record {
	w := newMill(tb, joblife.Config{})
	w.own = true
	w.text = text(tb, jobspec.Job{Nodes: 1, Command: []string{"true"}})
	w.lazy = !inactive
	var list []joblife.Record
	w.store = func(records []joblife.Record) {
		for _, r := range records {
			list = append(list, r.Clone())
		}
	}
	for range n / 100 {
		w.lives(100)
	}
	return list
}

// What a lifecycle of ten events allocates. Five are the inputs of the mill, and two the
// jobspec that is read.
func TestALifecycleAllocatesLittle(t *testing.T) {
	race.Skip(t)
	for _, c := range []struct {
		name     string
		volatile bool
		pool     bool
		most     float64
	}{
		{"the Manager alone, with records", false, false, 17},
		{"the Manager alone, without records", true, false, 15},
		{"with the pool", false, true, 22},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newMill(t, joblife.Config{Volatile: c.volatile})
			if !c.pool {
				w.r = node(t, 1)
			}
			for range 200 {
				w.life()
			}
			require.LessOrEqual(t, testing.AllocsPerRun(500, w.life), c.most)
		})
	}
}

// What a job takes in memory.
func TestAJobIsSmall(t *testing.T) {
	race.Skip(t)
	for far, bytes := range map[string]float64{"pending": 1250, "running": 1800, "inactive": 150} {
		require.LessOrEqual(t, weigh(t, far, 10_000), bytes, far)
	}
}

// A record is written into memory at hand.
func TestARecordIsWrittenWithoutAllocations(t *testing.T) {
	race.Skip(t)
	list := records(t, 100, true)
	var dst []byte
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
		dst = dst[:0]
		dst, _ = joblife.AppendRecords(dst, list)
	})/float64(len(list)), 0.1)
}

// BenchmarkReplay makes recorded jobs out of their logs, jobspecs and Rs.
func BenchmarkReplay(b *testing.B) {
	var logs, specs, resources [][]byte
	events := 0
	for _, job := range refdata.Lines[struct {
		Eventlog   string
		Jobspec, R json.RawMessage
	}](b, "recorded/mixed.jsonl.gz", refdata.Of(39, 380)) {
		if len(job.R) > 0 && string(job.R) != "null" {
			logs = append(logs, []byte(job.Eventlog))
			specs, resources = append(specs, job.Jobspec), append(resources, job.R)
			events += bytes.Count(logs[len(logs)-1], []byte("\n"))
		}
	}
	check := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	log := func(i int) {
		_, err := jobstate.Replay(1, logs[i])
		check(err)
	}
	spec := func(i int) {
		_, err := jobspec.Parse(specs[i])
		check(err)
	}
	r := func(i int) {
		_, err := rset.Parse(resources[i])
		check(err)
	}
	for _, part := range []struct {
		name string
		do   func(i int)
	}{{"log", log}, {"jobspec", spec}, {"R", r}, {"all", func(i int) { log(i); spec(i); r(i) }}} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % len(logs) {
				part.do(i)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(events)/float64(len(logs)), "events/job")
		})
	}
}
