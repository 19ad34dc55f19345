package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/boltstore"
)

func TestJobsOutliveTheProcess(t *testing.T) {
	for kind, h := range homes(t) {
		t.Run(kind, func(t *testing.T) {
			l := h.run()
			for _, a := range l.ask(submit(1, 16), submit(2, 17), submit(3, 18), raise(4, 17), raise(5, 18)) {
				require.NotContains(t, a, "errnum")
			}
			require.Contains(t, l.end(), "3 jobs submitted, 2 over, ")

			l = h.run()
			require.Contains(t, l.ask(purgeOf(18))[0], `{"topic":"job-manager.purge-id","matchtag":8,"payload":{"count":1}}`+"\n")
			l.end()

			for range 2 {
				l = h.run()
				answers := l.ask(eventlogOf(1, 16), eventlogOf(2, 17), eventlogOf(3, 18), submit(4, 18))
				require.Regexp(t, "^submit validate depend priority flux-restart", names(t, answers[0]))
				require.Contains(t, answers[0], `"jobspec":{`)
				require.Equal(t, "submit validate depend priority exception clean", names(t, answers[1]))
				require.Contains(t, answers[1], `"jobspec":{`)
				require.Contains(t, answers[2], `"errnum":22,"errstr":"unknown job"`)
				require.Contains(t, answers[3], `given before`, "ids never come back")
				require.Contains(t, l.end(), "manager: 1 job from before, 0 running")
			}
		})
	}
}

func TestAStoreThatCannotBeOpenedIsAFault(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	for _, arg := range []string{"-store=bolt:" + dir, "-store=dir:" + file, "-store=bolt:" + file} {
		status, stdout, stderr := prog.Run(strings.NewReader(submit(1, 16)), arg)
		require.Equal(t, lines.ExitFault, status)
		require.Empty(t, stdout)
		require.NotEmpty(t, stderr)
	}
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))
}

// A process that was killed may hold the lock for a moment, or its child that has not begun its
// program yet.
func TestAStoreThatIsLockedForAMoment(t *testing.T) {
	for kind, hold := range map[string]func(path string) (io.Closer, error){
		"bolt": func(path string) (io.Closer, error) { return boltstore.Open(path) },
		"dir":  func(path string) (io.Closer, error) { return openDir(path, t.Errorf) },
	} {
		path := filepath.Join(t.TempDir(), "jobs")
		held, err := hold(path)
		require.NoError(t, err)
		time.AfterFunc(100*time.Millisecond, func() { _ = held.Close() })
		status, _, stderr := prog.Run(strings.NewReader(submit(1, 16)), "-store="+kind+":"+path)
		require.Equal(t, lines.ExitOK, status, stderr)
	}
}

func TestAStoreThatIsInUseIsLeftAlone(t *testing.T) {
	t.Parallel() // it waits
	path := filepath.Join(t.TempDir(), "jobs")
	held, err := boltstore.Open(path)
	require.NoError(t, err)
	status, stdout, stderr := prog.Run(strings.NewReader(submit(1, 16)), "-store=bolt:"+path)
	require.Equal(t, lines.ExitFault, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "in use")
	require.NoError(t, held.Close())
}

func TestAJobThatCannotBeReadStaysUntilItIsPutAside(t *testing.T) {
	for kind, h := range homes(t) {
		t.Run(kind, func(t *testing.T) {
			l := h.run()
			l.ask(submit(1, 16), submit(2, 17), raise(3, 16)) // what is inactive is looked up in the store
			require.Contains(t, l.end(), "2 jobs submitted")
			h.spoil(17)
			for _, c := range []struct{ id, ignored, says string }{
				{"16", "ƒH", "stays until -put-aside "}, // another one, which can be read
				{"16", "ƒH", "stays until -put-aside "},
				{"ƒJ", "", "is put aside\n"},
				{"ƒJ", "ƒJ", ""},
			} {
				l := h.run("-put-aside=" + c.id)
				answers := l.ask(eventlogOf(1, 16), eventlogOf(2, 17), submit(3, 17))
				log := names(t, answers[0])
				require.Regexp(t, "^submit validate", log)
				require.Equal(t, 1, strings.Count(log, "submit"))
				require.Contains(t, answers[1], `"errstr":"unknown job"`)
				require.Contains(t, answers[2], `given before`)
				text := l.end()
				ignored := "-put-aside: job " + c.ignored + " is not damaged, or not there: nothing is moved\n"
				require.Equal(t, c.ignored != "", strings.Contains(text, ignored), text)
				require.Equal(t, c.says != "", strings.Contains(text, "; it "+c.says), text)
				if h.log != nil && strings.HasPrefix(c.says, "stays") {
					require.Equal(t, "{\n", h.log(17))
				}
			}
			if h.log != nil {
				require.Equal(t, "{\n", h.putAside(17))
			}
		})
	}
}

// A bit of the log of a job is flipped while it holds a node. What it holds is whole, and
// stays its own (PR-10) at each restart, until an operator has put the job aside. Others go on.
func TestADamagedJobKeepsItsNodes(t *testing.T) {
	for kind, h := range homes(t) {
		t.Run(kind, func(t *testing.T) {
			l := h.run()
			answers := l.ask(schedHello, schedReady, submit(1, 16), "{"+gives(16, 0)+"}", eventlogOf(2, 16), submit(3, 15))
			require.Regexp(t, "alloc$", names(t, answers[4]))
			l.end()
			h.flip(16)
			for id := 17; id < 20; id++ {
				l = h.run()
				answers = l.ask(schedHello, schedReady, submit(1, id), "{"+gives(id, 0)+"}", eventlogOf(2, id), eventlogOf(3, 16), eventlogOf(4, 15))
				require.Contains(t, answers[0], `{"id":16,`, "hello tells what it holds")
				require.Contains(t, answers[3], "errnum", "the node is not given again")
				require.NotContains(t, names(t, answers[4]), "alloc")
				require.Contains(t, answers[5], `"errnum":22,"errstr":"unknown job"`)
				require.Regexp(t, "^submit validate depend priority", names(t, answers[6]))
				stderr := l.end()
				require.Regexp(t, "job ƒH not replayed: .*; it stays until -put-aside ƒH\n", stderr)
				require.Equal(t, kind != "lines", strings.Contains(stderr, "check digits"), stderr)
				require.Contains(t, stderr, "job ƒH keeps rank0/core0: look after its nodes first")
			}
			l = h.run("-put-aside=16")
			answers = l.ask(schedHello, schedReady, submit(1, 20), "{"+gives(20, 0)+"}", eventlogOf(2, 20))
			require.NotContains(t, answers[0], `{"id":16,`)
			require.Regexp(t, "alloc$", names(t, answers[4]))
			require.Regexp(t, "job ƒH not replayed: .*; it is put aside\n", l.end())
		})
	}
}

// Nobody else can know what a job holds whose R is damaged (PR-10).
func TestAStartSaysThatItDoesNotKnowWhatADamagedJobHolds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	arg := "-store=dir:" + dir
	l := live(t, arg, "-now=1000")
	answers := l.ask(schedHello, schedReady, submit(1, 16), "{"+gives(16, 0)+"}", eventlogOf(2, 16))
	require.Regexp(t, "alloc$", names(t, answers[4]))
	l.end()
	flip(t, filepath.Join(dir, jobsName, jobid.ID(16).KVSPath(), "R"), `"rank"`)
	l = live(t, arg, "-now=2000")
	l.ask(schedHello)
	stderr := l.end()
	require.Regexp(t, "job ƒH not replayed: .*; it stays until -put-aside ƒH\n", stderr)
	require.Contains(t, stderr, "manager: error: what job ƒH holds is not known: look after its nodes before a scheduler comes\n")
	require.NotContains(t, stderr, `offset 0: ""`, "it says nothing")
}

// To put a job aside the store is read twice.
func TestAStartWarnsOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	arg := "-store=dir:" + dir
	_, _, stderr := prog.Run(strings.NewReader(submit(1, 16)+submit(2, 17)), arg, "-now=1000")
	require.Contains(t, stderr, "2 jobs submitted")
	for id := jobid.ID(16); id < 18; id++ {
		flip(t, filepath.Join(dir, jobsName, id.KVSPath(), "jobspec"), `"tasks"`)
	}
	stderr = live(t, arg, "-now=2000", "-put-aside=16").end()
	require.Regexp(t, "manager: error: job ƒH not replayed: .*; it is put aside\n", stderr)
	require.Regexp(t, "manager: error: job ƒJ not replayed: .*; it stays until -put-aside ƒJ\n", stderr)
	seen := make(map[string]bool)
	for text := range strings.Lines(stderr) {
		require.False(t, seen[text], text)
		seen[text] = true
	}
}

// stuck is a disk that fails, or waits, at a commit.
type stuck struct {
	commits int
	fail    error
	wait    chan struct{}
}

func (*stuck) Records() iter.Seq2[joblife.Record, error] {
	return func(func(joblife.Record, error) bool) {}
}

func (d *stuck) Append([]joblife.Record) error {
	d.commits++
	<-d.wait
	return d.fail
}

func (*stuck) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }
func (*stuck) Read(jobid.ID) (service.Stored, error)                          { return service.Stored{}, os.ErrNotExist }
func (*stuck) PutAside(jobid.ID) error                                        { return nil }
func (*stuck) Close() error                                                   { return nil }

func TestNothingIsAnsweredThatIsNotDurable(t *testing.T) {
	d := &stuck{fail: errors.New("disk on fire"), wait: make(chan struct{})}
	p, err := newProcess(options{Options: lines.Options{Now: 1000}, store: "memory"}, io.Discard)
	require.NoError(t, err)
	p.store, p.live = local{d}, true
	var out strings.Builder
	c := p.only(&out)
	p.start()
	ended := make(chan error)
	go func() { ended <- p.run(context.Background()) }()
	for n, text := range []string{submit(1, 16), submit(2, 17), raise(3, 18)} {
		require.True(t, p.put(input{client: c, line: lines.Line{Number: n + 1, Text: []byte(text)}}))
	}
	require.True(t, p.put(input{})) // after what followed
	require.Equal(t, `{"topic":"job-manager.raise","matchtag":3,"errnum":2,"errstr":"unknown job id"}`+"\n", out.String())
	close(d.wait)
	require.EqualError(t, <-ended, "-store: disk on fire")
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.Equal(t, 1, d.commits)
}

// A folder keeps neither tombstones that have expired, nor watermarks below the greatest, nor
// what queues were, nor the housekeeping of jobs that are gone.
func TestWhatAFolderKeeps(t *testing.T) {
	tombstone := func(id jobid.ID, text string) joblife.Record {
		return joblife.Record{Time: 1, Job: id, Kind: joblife.RecordTombstone, Data: []byte(text)}
	}
	mark := func(id jobid.ID) joblife.Record {
		return joblife.Record{Time: 1, Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, id)}
	}
	queue := func(name string, n int) joblife.Record {
		return joblife.Record{Time: 1, Kind: joblife.RecordQueue, Data: fmt.Appendf(nil, `{"name":"%s","n":%d}`, name, n)}
	}
	event := []byte(`{"timestamp":1.0,"name":"x"}` + "\n")
	path := filepath.Join(t.TempDir(), "store")
	open := func() *dirDisk {
		d, err := openDir(path, t.Errorf)
		require.NoError(t, err)
		return d
	}
	d := open()
	for _, list := range [][]joblife.Record{
		{tombstone(2, "x"), {Time: 1, Job: 2, Kind: joblife.RecordUnlinked}, tombstone(3, "y"), tombstone(2, "")},
		{mark(3)}, {mark(1 << 40)}, {mark(20)}, // an operator puts an old job aside
		{queue("b", 1), queue("a", 2), queue("b", 3)},
		{{Job: 4, Kind: joblife.RecordJobspec, Data: []byte("{}")}, {Job: 4, Kind: joblife.RecordEvent, Data: event}},
		{{Time: 1, Job: 4, Kind: joblife.RecordHousekeeping, Data: event}}, {{Time: 1, Job: 5, Kind: joblife.RecordHousekeeping, Data: event}},
	} {
		require.NoError(t, d.Append(list))
	}
	require.NoError(t, d.Close())
	d = open()
	defer d.Close()
	var kept []string
	for r, err := range d.Records() {
		require.NoError(t, err)
		kept = append(kept, fmt.Sprintf("%d %s", r.Job, r.Data))
	}
	require.Equal(t, []string{
		"3 y", "4 " + string(event), `0 {"name":"a","n":2}`, `0 {"name":"b","n":3}`, "0 " + string(mark(1<<40).Data), "4 {}", "4 " + string(event),
	}, kept)

	d.path = "\x00" // of which nobody can say what is in it
	_, err := d.useful(filepath.Join(path, logName))
	require.Error(t, err, "the jobs may be there")
}

func TestAManagerFindsWhatAFolderKeeps(t *testing.T) {
	if os.Getenv("JOBLIFE_DEEP") == "" {
		t.Skip("20,000 jobs in files of their own take two minutes: set JOBLIFE_DEEP=1")
	}
	dir := t.TempDir()
	require.NoError(t, joblifetest.CheckStore(func(name string) (joblifetest.Store, error) {
		return openDir(filepath.Join(dir, name), t.Errorf)
	}))
}

func TestATornLineOfTheOtherRecordsIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	var told []string
	for range 2 {
		d, err := openDir(path, func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) })
		require.NoError(t, err)
		require.NoError(t, d.Close())
		require.NoError(t, os.WriteFile(filepath.Join(path, logName), []byte("{"), 0o600))
	}
	require.Len(t, told, 1)
	require.Contains(t, told[0], "the last line was not whole; it is in "+filepath.Join(path, logName)+".torn-1")
}

// I12: a store takes the log of a job up to a limit, and what is beyond would be its
// failure. So a request that wants more is refused before, and the job can still end.
func TestNoGuestCanEndTheManager(t *testing.T) {
	const guest = `"userid":100,"rolemask":2`
	for kind, h := range homes(t) {
		if kind != "bolt" && os.Getenv("JOBLIFE_DEEP") == "" {
			continue
		}
		l := h.run()
		l.ask(submit(1, 16))
		memo := fmt.Sprintf(`{"topic":"job-manager.memo","matchtag":2,%s,"payload":{"id":16,"memo":{"a":"%s"}}}`+"\n", guest, strings.Repeat("x", 1_000_000))
		raise := fmt.Sprintf(`{"topic":"job-manager.raise","matchtag":3,%s,"payload":{"id":16,"severity":%%d,"type":"x","note":"%s"}}`+"\n", guest, strings.Repeat("n", 1_000_000))
		for n := range 10 {
			answer := l.ask(memo)[0]
			require.Equal(t, n >= 8, strings.Contains(answer, `"errnum":11`), "memo %d: %s", n, answer)
			require.NotContains(t, l.ask(fmt.Sprintf(raise, 3))[0], `"errnum":1,`)
		}
		l.end()
		l = h.run()
		require.Contains(t, l.ask(memo)[0], `"errnum":11`, "after a restart, too")
		require.NotContains(t, l.ask(fmt.Sprintf(raise, 0))[0], "errnum")
		require.True(t, strings.HasSuffix(names(t, l.ask(eventlogOf(4, 16))[0]), "exception clean"))
		l.end()
	}
}
