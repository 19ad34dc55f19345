package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/boltstore"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/service"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/purge"
)

// stores returns the arguments that name a store of each kind on disk.
func stores(t *testing.T) []string {
	dir := t.TempDir()
	return []string{"-store=bolt:" + filepath.Join(dir, "jobs.db"), "-store=dir:" + filepath.Join(dir, "jobs")}
}

// eventlogOf asks for the log of a job.
func eventlogOf(tag, id int) string {
	return fmt.Sprintf(`{"topic":"job-manager.getattr","matchtag":%d,"payload":{"id":%d,"attrs":["eventlog","jobspec"]}}`+"\n", tag, id)
}

// names returns the events of a log in the answer to getattr.
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

// A life is a process that a test asks, one line after the other.
type life struct {
	t      testing.TB
	p      *process
	c      *client
	out    strings.Builder
	stderr strings.Builder
	lines  int
}

// live begins a process.
func live(t testing.TB, args ...string) *life {
	t.Helper()
	l := &life{t: t}
	var o options
	_, ok := o.program().Parse(args, &l.stderr, &l.stderr)
	require.True(t, ok, l.stderr.String())
	var err error
	l.p, err = newProcess(o, &l.stderr)
	require.NoError(t, err)
	l.c = l.p.only(&l.out)
	l.p.start()
	l.p.await()
	return l
}

// ask gives lines to the process, and returns what it writes to each.
func (l *life) ask(texts ...string) (answers []string) {
	l.t.Helper()
	for _, text := range texts {
		l.lines++
		l.p.handle(l.c, lines.Line{Number: l.lines, Text: []byte(text)})
		l.p.await()
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

const purgeOne = `{"topic":"job-manager.purge-id","matchtag":8,"payload":{"id":18,"force":1}}` + "\n"

func TestJobsOutliveTheProcess(t *testing.T) {
	for _, arg := range stores(t) {
		l := live(t, arg, "-now=1000")
		for _, a := range l.ask(submit(1, 16), submit(2, 17), submit(3, 18), raise(4, 17), raise(5, 18)) {
			require.NotContains(t, a, "errnum")
		}
		require.Contains(t, l.end(), "3 jobs submitted, 2 over, 5 commits")

		l = live(t, arg, "-now=2000")
		require.Contains(t, l.ask(purgeOne)[0], `{"topic":"job-manager.purge-id","matchtag":8,"payload":{"count":1}}`+"\n")
		l.end()

		for range 2 {
			l = live(t, arg, "-now=3000")
			answers := l.ask(eventlogOf(1, 16), eventlogOf(2, 17), eventlogOf(3, 18), submit(4, 18))
			require.Regexp(t, "^submit validate depend priority flux-restart", names(t, answers[0]))
			require.Contains(t, answers[0], `"jobspec":{`)
			require.Equal(t, "submit validate depend priority exception clean", names(t, answers[1]))
			require.Contains(t, answers[1], `"jobspec":{`)
			require.Contains(t, answers[2], `"errnum":22,"errstr":"unknown job"`)
			require.Contains(t, answers[3], `given before`, "ids never come back")
			require.Contains(t, l.end(), "manager: 1 job from before, 0 running")
		}
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

// restarts are those of a store with job 17 that cannot be read, one after the other.
var restarts = []restart{
	{"-put-aside=16", "stays until -put-aside: "}, // another one, which can be read
	{"-put-aside=16", "stays until -put-aside: "},
	{"-put-aside=ƒJ", "is put aside: "},
	{"-put-aside=ƒJ", ""},
}

// A restart has a flag, and says something of job 17.
type restart struct{ flag, says string }

func (c restart) check(t *testing.T, stderr string) {
	t.Helper()
	id, _ := strings.CutPrefix(c.flag, "-put-aside=")
	if id == "16" {
		id = "ƒH"
	}
	ignored := !strings.HasPrefix(c.says, "is put aside")
	require.Equal(t, ignored, strings.Contains(stderr, "-put-aside: job "+id+" is not damaged, or not there: nothing is moved\n"), stderr)
	require.Contains(t, stderr, c.says)
	require.Equal(t, c.says != "", strings.Contains(stderr, "job ƒJ cannot be read, and "+c.says), stderr)
}

func TestAJobThatCannotBeReadStaysUntilItIsPutAside(t *testing.T) {
	args := stores(t)
	for _, arg := range args {
		_, _, stderr := prog.Run(strings.NewReader(submit(1, 16)+submit(2, 17)), arg, "-now=1000")
		require.Contains(t, stderr, "2 jobs submitted")
	}
	bolt, err := boltstore.Open(strings.TrimPrefix(args[0], "-store=bolt:"))
	require.NoError(t, err)
	require.NoError(t, bolt.Commit([]joblife.Record{{Job: 17, Kind: joblife.RecordEvent, Data: []byte("{\n")}}))
	require.NoError(t, bolt.Close())
	dir := strings.TrimPrefix(args[1], "-store=dir:")
	log := filepath.Join(dir, "jobs", jobid.ID(17).KVSPath(), "eventlog")
	require.NoError(t, os.WriteFile(log, []byte("{\n"), 0o600))
	for _, arg := range args {
		for _, c := range restarts {
			l := live(t, arg, "-now=2000", c.flag)
			answers := l.ask(eventlogOf(1, 16), eventlogOf(2, 17), submit(3, 17))
			require.Contains(t, names(t, answers[0]), "submit")
			require.Contains(t, answers[1], `"errstr":"unknown job"`)
			require.Contains(t, answers[2], `given before`)
			c.check(t, l.end())
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "lost+found", jobid.ID(17).KVSPath(), "eventlog"))
	require.NoError(t, err)
	require.Equal(t, "{\n", string(b))
}

// A bit of the log of a job is flipped while it holds a node. What it holds is whole, and
// stays its own (PR-10) at each restart, until an operator has put the job aside.
func TestADamagedJobKeepsItsNodes(t *testing.T) {
	for _, arg := range stores(t) {
		const hello, ready = `{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}`, `{"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}`
		l := live(t, arg, "-now=1000")
		answers := l.ask(hello, ready, submit(1, 16), "{"+gives(16, 0)+"}", eventlogOf(2, 16))
		require.Regexp(t, "alloc$", names(t, answers[4]))
		l.end()

		_, path, _ := strings.Cut(arg, ":")
		if strings.HasPrefix(arg, "-store=dir:") {
			path = filepath.Join(path, "jobs", jobid.ID(16).KVSPath(), "eventlog")
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for at := range text { // pages of bolt that are free may have older copies
			if strings.HasPrefix(string(text[at:min(at+16, len(text))]), `"name":"submit"`) {
				text[at+8] ^= 1
			}
		}
		require.NoError(t, os.WriteFile(path, text, 0o600))

		for id := 17; id < 20; id++ {
			l = live(t, arg, "-now=2000")
			answers = l.ask(hello, ready, submit(1, id), "{"+gives(id, 0)+"}", eventlogOf(2, id))
			require.Contains(t, answers[0], `{"id":16,`, "hello tells what it holds")
			require.Contains(t, answers[3], "errnum", "the node is not given again")
			require.NotContains(t, names(t, answers[4]), "alloc")
			stderr := l.end()
			require.Contains(t, stderr, "job ƒH cannot be read, and stays until -put-aside: ")
			require.Contains(t, stderr, "job ƒH keeps rank0/core0: look after its nodes first")
		}
		l = live(t, arg, "-now=2000", "-put-aside=16")
		answers = l.ask(hello, ready, submit(1, 20), "{"+gives(20, 0)+"}", eventlogOf(2, 20))
		require.NotContains(t, answers[0], `{"id":16,`)
		require.Regexp(t, "alloc$", names(t, answers[4]))
		require.Contains(t, l.end(), "job ƒH cannot be read, and is put aside: ")
	}
}

// Nobody else can know what a job holds whose R is damaged (PR-10).
func TestAStartSaysThatItDoesNotKnowWhatADamagedJobHolds(t *testing.T) {
	arg := stores(t)[1]
	l := live(t, arg, "-now=1000")
	answers := l.ask(schedHello, schedReady, submit(1, 16), "{"+gives(16, 0)+"}", eventlogOf(2, 16))
	require.Regexp(t, "alloc$", names(t, answers[4]))
	l.end()
	path := filepath.Join(strings.TrimPrefix(arg, "-store=dir:"), "jobs", jobid.ID(16).KVSPath(), "R")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(path, text, 0o600))
	l = live(t, arg, "-now=2000")
	l.ask(schedHello)
	stderr := l.end()
	require.Contains(t, stderr, "job ƒH cannot be read, and stays until -put-aside: ")
	require.Contains(t, stderr, "manager: what job ƒH holds is not known: look after its nodes before a scheduler comes\n")
	require.NotContains(t, stderr, `offset 0: ""`, "it says nothing")
}

// To put a job aside the store is read twice.
func TestAStartWarnsOnce(t *testing.T) {
	arg := stores(t)[1]
	_, _, stderr := prog.Run(strings.NewReader(submit(1, 16)+submit(2, 17)), arg, "-now=1000")
	require.Contains(t, stderr, "2 jobs submitted")
	for id := jobid.ID(16); id < 18; id++ {
		path := filepath.Join(strings.TrimPrefix(arg, "-store=dir:"), "jobs", id.KVSPath(), "jobspec")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		text[len(text)/2] ^= 1
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	stderr = live(t, arg, "-now=2000", "-put-aside=16").end()
	require.Contains(t, stderr, "manager: job ƒH cannot be read, and is put aside: ")
	require.Contains(t, stderr, "manager: job ƒJ cannot be read, and stays until -put-aside: ")
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

func (d *stuck) Commit([]joblife.Record) error {
	d.commits++
	<-d.wait
	return d.fail
}

func (*stuck) Unlink(context.Context, []jobid.ID) (map[jobid.ID]error, error) { return nil, nil }
func (*stuck) Read(jobid.ID) (service.Stored, error)                          { return service.Stored{}, os.ErrNotExist }
func (*stuck) PutAside(jobid.ID) error                                        { return nil }
func (*stuck) Close() error                                                   { return nil }

// on returns a process with a disk, and what it wrote.
func on(t *testing.T, d disk) (p *process, c *client, out *strings.Builder) {
	p, err := newProcess(options{Options: lines.Options{Now: 1000}, store: "memory"}, io.Discard)
	require.NoError(t, err)
	p.store = &local{disk: d, results: p.results}
	out = new(strings.Builder)
	c = p.only(out)
	p.start()
	return p, c, out
}

func TestNothingIsAnsweredThatIsNotDurable(t *testing.T) {
	d := &stuck{fail: errors.New("disk on fire"), wait: make(chan struct{})}
	p, c, out := on(t, d)
	p.handle(c, lines.Line{Number: 1, Text: []byte(submit(1, 16))})
	p.handle(c, lines.Line{Number: 2, Text: []byte(submit(2, 17))})
	p.handle(c, lines.Line{Number: 3, Text: []byte(raise(3, 18))})
	require.Equal(t, `{"topic":"job-manager.raise","matchtag":3,"errnum":2,"errstr":"unknown job id"}`+"\n", out.String())
	close(d.wait)
	require.EqualError(t, p.run(context.Background(), nil), "-store: disk on fire")
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.Equal(t, 1, d.commits)
}

// While the store is busy, requests wait for the next commit together.
func TestRequestsShareACommit(t *testing.T) {
	d := &stuck{wait: make(chan struct{})}
	p, c, out := on(t, d)
	for i := range 100 {
		p.handle(c, lines.Line{Number: i + 1, Text: []byte(submit(i+1, i+16))})
	}
	require.Empty(t, out.String())
	close(d.wait)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, p.run(ctx, nil))
	require.Equal(t, 100, strings.Count(out.String(), `"errors":[]`))
	require.Equal(t, 2, d.commits)
	require.Equal(t, 2, p.stats.commits)
}

// A child is the command in a process of its own.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// spawn starts the command.
func spawn(t *testing.T, args ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "MANAGER_RUN=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	if testing.Verbose() {
		cmd.Args = append(cmd.Args, "-v")
	} else {
		cmd.Stderr = nil
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &child{cmd, in, bufio.NewReader(out)}
}

// The process is killed at any time, between commits and in one. Whatever it has answered
// is there afterwards.
func TestWhatWasAnsweredOutlivesKill9(t *testing.T) {
	for i, arg := range stores(t) {
		jobs := []int{100, 20}[i] // folders take their time
		seed := time.Now().UnixNano()
		t.Log("seed", seed)
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		submitted, canceled := make(map[int]bool), make(map[int]bool)
		id := 16
		for range 3 {
			c := spawn(t, arg)
			go func(first int) {
				for id := first; id < first+jobs; id++ {
					text := submit(2*id, id)
					if id > first+5 {
						text += raise(2*(id-5)+1, id-5)
					}
					if _, err := io.WriteString(c.in, strings.ReplaceAll(text, `"t_submit":1000.0`, `"t_submit":1.0`)); err != nil {
						return // it was killed
					}
				}
			}(id)
			for n := rng.IntN(jobs); n >= 0; {
				text, err := c.out.ReadString('\n')
				require.NoError(t, err)
				var a struct {
					Matchtag int
					Errnum   int
				}
				require.NoError(t, json.Unmarshal([]byte(text), &a))
				switch {
				case a.Errnum != 0 || a.Matchtag == 0: // of an event
				case a.Matchtag%2 == 0:
					submitted[a.Matchtag/2] = true
					n--
				default:
					canceled[a.Matchtag/2] = true
				}
			}
			require.NoError(t, c.Process.Kill())
			_ = c.Wait()
			id += jobs
		}
		l := live(t, arg)
		for id := range submitted {
			events := names(t, l.ask(eventlogOf(id, id))[0])
			require.Regexp(t, "^submit validate", events)
			if canceled[id] {
				require.Regexp(t, "exception clean$", events)
			}
		}
		require.NotContains(t, l.end(), "cannot be read")
	}
}

// A folder does not keep what has expired.
func TestAFolderDropsExpiredTombstones(t *testing.T) {
	warn := func(format string, args ...any) { t.Errorf(format, args...) }
	path := t.TempDir()
	d, err := openDir(path, warn)
	require.NoError(t, err)
	require.NoError(t, d.Commit([]joblife.Record{
		{Time: 1, Job: 2, Kind: joblife.RecordTombstone, Data: []byte("x")}, {Time: 1, Job: 2, Kind: joblife.RecordUnlinked},
		{Time: 1, Job: 3, Kind: joblife.RecordTombstone, Data: []byte("y")}, {Time: 1, Job: 2, Kind: joblife.RecordTombstone},
	}))
	require.NoError(t, d.Close())
	d, err = openDir(path, warn)
	require.NoError(t, err)
	var jobs []jobid.ID
	for r, err := range d.Records() {
		require.NoError(t, err)
		jobs = append(jobs, r.Job)
	}
	require.Equal(t, []jobid.ID{3}, jobs)
	require.NoError(t, d.Close())
}

func TestAFolderKeepsTheGreatestWatermark(t *testing.T) {
	path := t.TempDir()
	open := func() *dirDisk {
		d, err := openDir(path, t.Errorf)
		require.NoError(t, err)
		return d
	}
	d := open()
	for _, id := range []jobid.ID{3, 1 << 40, 20} { // an operator puts an old job aside
		mark := joblife.Record{Time: 1, Kind: joblife.RecordWatermark, Data: purge.AppendWatermark(nil, id)}
		require.NoError(t, d.Commit([]joblife.Record{mark}))
	}
	require.NoError(t, d.Close())
	d = open()
	defer d.Close()
	var marks []string
	for r, err := range d.Records() {
		require.NoError(t, err)
		marks = append(marks, string(r.Data))
	}
	require.Equal(t, []string{string(purge.AppendWatermark(nil, 1<<40))}, marks)
}

// TestDamageOnTheDiskIsTold flips a bit of a job in each store. The next process says so, and
// goes on with the others.
func TestDamageOnTheDiskIsTold(t *testing.T) {
	for _, arg := range stores(t) {
		l := live(t, arg, "-now=1000")
		l.ask(submit(1, 16), submit(2, 17))
		l.end()
		_, path, _ := strings.Cut(arg, ":")
		where := `(?s)\x00{7}\x11e\x00{4}[^\n]*"urgency":16` // bbolt has a value behind its key
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path, where = filepath.Join(path, jobsName, jobid.ID(17).KVSPath(), "eventlog"), `"urgency":16`
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		found := regexp.MustCompile(where).FindAllIndex(text, -1)
		require.NotEmpty(t, found)
		for _, at := range found { // pages that are free have older copies
			text[at[1]-1] ^= 1
		}
		require.NoError(t, os.WriteFile(path, text, 0o600))

		l = live(t, arg, "-now=2000")
		answers := l.ask(eventlogOf(1, 16), eventlogOf(2, 17))
		require.Regexp(t, "^submit validate depend priority", names(t, answers[0]))
		require.Contains(t, answers[1], `"errnum":22,"errstr":"unknown job"`)
		require.Contains(t, l.end(), "check digits")
	}
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
	list := stores(t)
	if os.Getenv("JOBLIFE_DEEP") == "" {
		list = list[:1]
	}
	for _, arg := range list {
		l := live(t, arg, "-now=1000")
		l.ask(submit(1, 16))
		memo := fmt.Sprintf(`{"topic":"job-manager.memo","matchtag":2,%s,"payload":{"id":16,"memo":{"a":"%s"}}}`+"\n", guest, strings.Repeat("x", 1_000_000))
		raise := fmt.Sprintf(`{"topic":"job-manager.raise","matchtag":3,%s,"payload":{"id":16,"severity":%%d,"type":"x","note":"%s"}}`+"\n", guest, strings.Repeat("n", 1_000_000))
		for n := range 10 {
			answer := l.ask(memo)[0]
			require.Equal(t, n >= 8, strings.Contains(answer, `"errnum":11`), "memo %d: %s", n, answer)
			require.NotContains(t, l.ask(fmt.Sprintf(raise, 3))[0], `"errnum":1,`)
		}
		l.end()
		l = live(t, arg, "-now=2000")
		require.Contains(t, l.ask(memo)[0], `"errnum":11`, "after a restart, too")
		require.NotContains(t, l.ask(fmt.Sprintf(raise, 0))[0], "errnum")
		require.True(t, strings.HasSuffix(names(t, l.ask(eventlogOf(4, 16))[0]), "exception clean"))
		l.end()
	}
}
