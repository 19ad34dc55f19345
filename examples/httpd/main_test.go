//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/examples/internal/proctest"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/jobstate/jobspec"
	"github.com/joblife/joblife/purge/boltstore"
)

func TestMain(m *testing.M) {
	proctest.Main(m, func() {
		timeout = time.Second
		main()
	})
}

// A daemon is an httpd, and its client.
type daemon struct {
	t    *testing.T
	dir  string
	args []string
	cmd  *exec.Cmd
	http.Client
}

// begin starts an httpd with 2 nodes of 2 cores. Its end is checked: nothing may be left.
func begin(t *testing.T, actions string) *daemon {
	dir, err := os.MkdirTemp("", "httpd") // t.TempDir is too long for a socket
	require.NoError(t, err)
	d := &daemon{t: t, dir: dir, args: []string{"-dir", filepath.Join(dir, "m"), "-nodes", "2", "-actions", actions}}
	d.Timeout = time.Minute / 2
	d.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "m", "http"))
	}}
	d.start()
	t.Cleanup(func() {
		d.kill()
		require.NoError(t, os.RemoveAll(dir))
	})
	return d
}

// start starts it, and waits until it answers.
func (d *daemon) start() {
	d.t.Helper()
	out := filepath.Join(d.dir, "out")
	d.cmd = proctest.Start(d.t, out, d.args...)
	ended := make(chan error, 1)
	go func() { ended <- d.cmd.Wait() }()
	for len(ended) == 0 {
		if status, _ := d.try("GET", "/resources", ""); status == http.StatusOK {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	text, _ := os.ReadFile(out)
	d.t.Fatalf("it does not start: %s", text)
}

func (d *daemon) kill() {
	_ = d.cmd.Process.Kill() // it may have ended
	d.CloseIdleConnections()
	for {
		conn, err := net.Dial("unix", filepath.Join(d.dir, "m", "http"))
		if err != nil {
			return // nobody listens
		}
		_ = conn.Close()
	}
}

func (d *daemon) try(method, path, body string) (status int, text string) {
	r, err := http.NewRequestWithContext(d.t.Context(), method, "http://httpd"+path, strings.NewReader(body))
	require.NoError(d.t, err)
	answer, err := d.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(b)
}

// ask makes a request that succeeds.
func (d *daemon) ask(method, path, body string) (v map[string]any) {
	d.t.Helper()
	status, text := d.try(method, path, body)
	require.Equal(d.t, http.StatusOK, status, text)
	require.NoError(d.t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// submit submits a shell command for whole nodes, and returns the path of the job.
func (d *daemon) submit(nodes int64, command string) string {
	d.t.Helper()
	spec, err := jobspec.New(jobspec.Job{Nodes: nodes, Exclusive: true, Command: []string{"sh", "-c", command}})
	require.NoError(d.t, err)
	text, err := spec.MarshalJSON()
	require.NoError(d.t, err)
	return fmt.Sprint("/jobs/", d.ask("POST", "/jobs", string(text))["id"])
}

// log returns a whole log: it waits until the job is over.
func (d *daemon) log(job string) string {
	d.t.Helper()
	status, text := d.try("GET", job+"/log", "")
	require.Equal(d.t, http.StatusOK, status, text)
	require.Contains(d.t, text, `"name":"clean"`)
	return text
}

// holders waits until these jobs, and no others, hold resources.
func (d *daemon) holders(jobs ...string) {
	d.t.Helper()
	var got []string
	for range 1000 {
		got = nil
		for job := range d.ask("GET", "/resources", "")["held"].(map[string]any) {
			got = append(got, "/jobs/"+job)
		}
		slices.Sort(got)
		if slices.Sort(jobs); slices.Equal(got, jobs) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	require.Equal(d.t, jobs, got)
}

func trace(t *testing.T, dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "trace"))
	require.NoError(t, err)
	return string(text)
}

// until is a shell command that waits for a file.
func (d *daemon) until(name string) string {
	return "; until test -e " + filepath.Join(d.dir, name) + "; do sleep .01; done; "
}

func (d *daemon) touch(name string) {
	require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, name), nil, 0o600))
}

// in is a shell command that writes a line to the trace.
func (d *daemon) in(what string) string {
	return "echo " + what + " >>" + filepath.Join(d.dir, "trace")
}

func TestAJobFromSubmitToItsEnd(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	job := d.submit(2, d.in("j")+"; exit 3")
	log := d.log(job)
	require.Contains(t, log, `"name":"finish","context":{"status":768}`)
	require.Contains(t, log, fmt.Sprintf(`"userid":%d,`, os.Getuid()))
	require.Equal(t, "j\nj\n", trace(t, d.dir), "once on each node")
	v := d.ask("GET", job, "")
	require.Equal(t, []any{"INACTIVE", "FAILED", "nothing"}, []any{v["state"], v["result"], v["waiting"]}, v)
	require.NotNil(t, v["R"])
	require.Equal(t, log, d.log(job), "that of an inactive job")
	d.holders()
	all := d.ask("GET", "/resources", "")
	require.Equal(t, []any{"", all["all"]}, []any{all["down"], all["free"]})
}

// An epilog on node 0 releases node 1 early. The next manager hears that line again, and it
// changes nothing.
func TestAControlLineSurvivesKill9(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	d.kill()
	epilog := `echo 'perilog-control: {"version":1,"released":"1"}'` + d.until("end-e") + d.in("e")
	d.args[len(d.args)-1] = fmt.Sprintf(`{"epilogs":[{"command":["sh","-c",%q]}]}`, epilog)
	d.start()
	job := d.submit(2, "true")
	next := d.submit(1, d.in("n")+d.until("end-n")+"true") // on node 1; its epilog is on node 0
	proctest.Await(t, filepath.Join(d.dir, "trace"), "n\n", 1)
	d.kill()
	d.start()
	d.holders(job, next)
	d.touch("end-n")
	d.touch("end-e")
	require.Equal(t, 1, strings.Count(d.log(job), `"perilog-release"`))
	require.NotContains(t, d.log(job)+d.log(next), "exception")
	d.holders()
}

// Two jobs run, and one waits for them, when the manager is killed. One ends before the next
// start, and its epilog goes on through more of them. Nothing runs twice, and no status is lost.
func TestJobsSurviveKill9(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	d.kill()
	d.args[len(d.args)-1] = fmt.Sprintf(`{"prologs":[{"command":["sh","-c",%q],"per-rank":true}],"epilogs":[{"command":["sh","-c",%q],"per-rank":true}]}`, d.in("p"), d.in("e")+d.until("end-e")+"true")
	d.start()
	ended := d.submit(1, d.in("a")+d.until("end-a")+"exit 3")
	goesOn := d.submit(1, d.in("b")+d.until("end-b")+d.in("b"))
	waits := d.submit(2, d.in("c"))
	proctest.Await(t, filepath.Join(d.dir, "trace"), "a\n", 1)
	proctest.Await(t, filepath.Join(d.dir, "trace"), "b\n", 1)
	d.holders(ended, goesOn)
	require.Equal(t, "resources", d.ask("GET", waits, "")["waiting"])
	r, err := d.Get("http://httpd" + goesOn + "/log")
	require.NoError(t, err)
	defer r.Body.Close()
	line, err := bufio.NewReader(r.Body).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"name":"submit"`)

	d.kill()
	_, err = io.Copy(io.Discard, r.Body)
	require.Error(t, err, "the stream ends before the job")
	d.touch("end-a")
	d.start()
	proctest.Await(t, filepath.Join(d.dir, "trace"), "e\n", 1)
	for range 3 {
		d.kill()
		d.start()
	}
	d.holders(ended, goesOn)
	d.touch("end-e")
	require.Contains(t, d.log(ended), `"status":768`)
	d.holders(goesOn)
	d.touch("end-b")
	require.Contains(t, d.log(goesOn), `"status":0`)
	require.Contains(t, d.log(waits), `"status":0`)
	for _, job := range []string{ended, goesOn, waits} {
		require.NotContains(t, d.log(job), "exception")
	}
	for what, n := range map[string]int{"p": 4, "a": 1, "b": 2, "c": 2, "e": 4} {
		require.Equal(t, n, strings.Count(trace(t, d.dir), what+"\n"), what)
	}
	require.Eventually(t, func() bool {
		left, err := filepath.Glob(filepath.Join(d.dir, "m", "node-*", "*"))
		return err == nil && len(left) == 0
	}, 10*time.Second, 5*time.Millisecond, "the nodes forget all of it")
}

// The jobspec of the documentation, and the list of jobs.
func TestAListHasTheJobsThatAreNotOver(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	text, err := os.ReadFile("jobspec.json")
	require.NoError(t, err)
	over := fmt.Sprint("/jobs/", d.ask("POST", "/jobs", string(text))["id"])
	require.Contains(t, d.log(over), `"status":0`)
	runs, waits := d.submit(2, "sleep 60"), d.submit(1, "true")
	d.holders(runs)
	var list []map[string]any
	status, answer := d.try("GET", "/jobs", "")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, json.Unmarshal([]byte(answer), &list))
	require.Len(t, list, 2, answer)
	require.Equal(t, []any{runs, "RUN", waits, "SCHED", "resources"}, []any{
		fmt.Sprint("/jobs/", list[0]["id"]), list[0]["state"], fmt.Sprint("/jobs/", list[1]["id"]), list[1]["state"], list[1]["waiting"],
	})
	require.NotNil(t, list[0]["R"])
	require.Nil(t, list[1]["R"])
	d.ask("DELETE", runs, "")
	d.log(runs)
	d.log(waits)
}

// A job that cannot be read keeps its nodes, and that shows.
func TestAJobThatCannotBeReadHoldsItsNodes(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	job := d.submit(1, d.in("j")+d.until("end")+d.in("k"))
	proctest.Await(t, filepath.Join(d.dir, "trace"), "j\n", 1)
	d.kill()
	var store *boltstore.Store
	require.Eventually(t, func() bool {
		var err error
		store, err = boltstore.Open(filepath.Join(d.dir, "m", "jobs.db"))
		return err == nil
	}, 10*time.Second, time.Millisecond, "the lock goes with the process")
	id, err := jobid.Parse(strings.TrimPrefix(job, "/jobs/"))
	require.NoError(t, err)
	require.NoError(t, store.Append([]joblife.Record{{Kind: joblife.RecordEvent, Job: id, Data: []byte(`{"timestamp":2000000000,"name":"depend"}`)}}))
	require.NoError(t, store.Close())
	d.start()
	d.holders(job)
	out, err := os.ReadFile(filepath.Join(d.dir, "out"))
	require.NoError(t, err)
	require.Contains(t, string(out), "cannot be read")
	status, text := d.try("GET", job, "")
	require.Equal(t, http.StatusServiceUnavailable, status, text)
	d.touch("end")
	proctest.Await(t, filepath.Join(d.dir, "trace"), "k\n", 1)
}

func TestAStreamTakesAsLongAsItsJob(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	began := time.Now()
	require.Contains(t, d.log(d.submit(1, "sleep 2.5")), `"status":0`)
	require.Greater(t, time.Since(began), 2*time.Second, "longer than a client has for any other answer")
}

// Who does not read the answers has no connection for long.
func TestAClientThatDoesNotReadIsLeft(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	conn, err := net.Dial("unix", filepath.Join(d.dir, "m", "http"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	for err == nil {
		_, err = conn.Write([]byte("GET /resources HTTP/1.1\r\nHost: h\r\n\r\n"))
	}
	require.ErrorIs(t, err, syscall.EPIPE)
}

// HEAD has no body to wait for: the connection is free for the next request.
func TestHeadOfALogEnds(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	job := d.submit(1, "true"+d.until("end"))
	conn, err := net.Dial("unix", filepath.Join(d.dir, "m", "http"))
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "HEAD %s/log HTTP/1.1\r\nHost: h\r\n\r\nGET /resources HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", job)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), "200 OK"), "%s", text)
	d.touch("end")
	d.log(job)
}

// The server does not see that a client is gone which sent more than a request. Such clients take
// no files without end, and keep nobody from what needs no wait.
func TestReadersOfLogsAreBounded(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	over := d.submit(1, "true")
	d.log(over)
	job := d.submit(1, "true"+d.until("end"))
	for range maxReaders {
		answer, err := d.Get("http://httpd" + job + "/log")
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	answer, err := d.Get("http://httpd" + job + "/log")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	d.log(over)
	answer, err = d.Head("http://httpd" + job + "/log")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	d.touch("end")
	require.Eventually(t, func() bool { status, _ := d.try("GET", job+"/log", ""); return status == http.StatusOK }, 10*time.Second, time.Millisecond)
}

func TestACanceledJobEnds(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, `{"epilogs":[{"command":["true"],"per-rank":true}]}`)
	job := d.submit(1, d.in("j")+"; sleep 60")
	proctest.Await(t, filepath.Join(d.dir, "trace"), "j\n", 1)
	d.ask("DELETE", job, "")
	log := d.log(job)
	require.Contains(t, log, `"type":"cancel"`)
	require.Equal(t, 2, strings.Count(log, fmt.Sprintf(`"userid":%d`, os.Getuid())), "of submit and cancel: %s", log)
	require.Equal(t, "CANCELED", d.ask("GET", job, "")["result"])
	status, text := d.try("DELETE", job, "")
	require.Equal(t, http.StatusBadRequest, status, text)
	require.Contains(t, text, "inactive")
}

func TestANodeWhoseEpilogFailedIsDrained(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, `{"epilogs":[{"command":["false"],"per-rank":true}]}`)
	d.log(d.submit(1, "true"))
	require.Eventually(t, func() bool { return d.ask("GET", "/resources", "")["down"] == "0" }, 10*time.Second, time.Millisecond)
	job := d.submit(2, "true")
	require.Eventually(t, func() bool { return d.ask("GET", job, "")["waiting"] == "resources" }, 10*time.Second, time.Millisecond)
	d.ask("DELETE", job, "")
	d.log(job)
}

// An epilog that does not end in time leaves its node to people. A restart puts the node in
// service if nothing of the epilog runs any more.
func TestANodeIsDrainedWhileAnEpilogThatWasGivenUpRuns(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	d.kill()
	d.args[len(d.args)-1] = fmt.Sprintf(`{"epilogs":[{"command":["sh","-c",%q],"per-rank":true,"timeout":"1s","kill-timeout":"0.1s"}]}`, // the shell has to come to its trap
		"trap '' TERM; "+d.in("e")+d.until("end")+"true")
	d.start()
	require.Contains(t, d.log(d.submit(1, "true")), `"cause":"timed-out"`)
	d.holders()
	for range 2 {
		d.kill()
		d.start()
		require.Equal(t, "0", d.ask("GET", "/resources", "")["down"])
	}
	d.touch("end")
	require.Eventually(t, func() bool {
		left, err := filepath.Glob(filepath.Join(d.dir, "m", "node-*", "*"))
		return err == nil && len(left) == 0
	}, 10*time.Second, 10*time.Millisecond)
	d.kill()
	d.start()
	require.Equal(t, "", d.ask("GET", "/resources", "")["down"])
	require.Equal(t, "e\n", trace(t, d.dir))
}

func TestBadRequestsChangeNothing(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/jobs", "{}", 400, "version"},
		{"POST", "/jobs", "", 400, ""},
		{"POST", "/jobs", strings.Repeat(" ", maxBody+1), 400, "which may have 1048576 bytes: http: request body too large"},
		{"PUT", "/jobs", "", 405, ""},
		{"GET", "/jobs/x", "", 400, "jobid: syntax error: offset 0"},
		{"GET", "/jobs/ƒuZZybuNNy", "", 404, "unknown job: ƒuZZybuNNy"},
		{"GET", "/jobs/ƒuZZybuNNy/log", "", 404, ""},
		{"GET", "/jobs/x/log", "", 400, "jobid: syntax error: offset 0"},
		{"DELETE", "/jobs/ƒuZZybuNNy", "", 404, "unknown"},
		{"DELETE", "/jobs/x", "", 400, "jobid: syntax error: offset 0"},
		{"GET", "/jobs/1/2/3", "", 404, ""},
	} {
		status, text := d.try(c.method, c.path, c.body)
		require.Equal(t, c.status, status, "%s %s: %s", c.method, c.path, text)
		require.Contains(t, text, c.want)
	}
	all := d.ask("GET", "/resources", "")
	require.Equal(t, all["all"], all["free"])

	conn, err := net.Dial("unix", filepath.Join(d.dir, "m", "http"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("POST /jobs HTTP/1.1\r\nHost: httpd\r\nContent-Length: 100\r\n\r\n{"))
	require.NoError(t, err)
	_, err = io.ReadAll(conn)
	require.NoError(t, err, "who sends no more is not waited for")
	for _, name := range []string{"", "http", "jobs.db"} {
		info, err := os.Stat(filepath.Join(d.dir, "m", name))
		require.NoError(t, err)
		require.Zero(t, info.Mode()&0o077, "%q is for its owner", name)
	}
}

func TestOneNodeWithOneCore(t *testing.T) {
	t.Parallel() // it waits
	d := begin(t, "{}")
	d.kill()
	d.args = append(d.args, "-nodes", "1", "-cores", "1")
	d.start()
	require.Contains(t, d.log(d.submit(1, "true")), `"status":0`)
	text, err := json.Marshal(d.ask("GET", "/resources", "")["all"])
	require.NoError(t, err)
	require.Contains(t, string(text), `"R_lite":[{"children":{"core":"0"},"rank":"0"}]`)
}
