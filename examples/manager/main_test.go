package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/jobstate/jobid"
)

// TestMain runs the command itself where a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("MANAGER_RUN") != "" {
		main()
		os.Exit(0)
	}
	if os.Getenv(workerVariable) != "" {
		os.Args = append([]string{"manager", "-flux"}, strings.Fields(os.Getenv("MANAGER_FLAGS"))...)
		main()
	}
	_ = os.Setenv("LC_ALL", "C.UTF-8") // in which ids have their ƒ
	_ = os.Unsetenv("FLUX_F58_FORCE_ASCII")
	os.Exit(m.Run())
}

func TestWithNothingToReadItTellsHowToUseIt(t *testing.T) {
	prog.Help(t, "-store", "-config", "-owner", "-lost", "-put-aside", "-ready")
}

func TestStreamsThatEndOtherwise(t *testing.T) { prog.Streams(t, "job-manager", raise(1, 1)) }

func TestEmptyInputIsASession(t *testing.T) {
	status, stdout, stderr := prog.Run(strings.NewReader("\n \n"))
	require.Equal(t, lines.ExitOK, status)
	require.Empty(t, stdout)
	require.Equal(t, "manager: 0 requests, 0 failed, 0 lines refused; 0 jobs submitted, 0 over, 0 commits\n", stderr)
}

func TestTheLogHasIDsInASCII(t *testing.T) {
	l := live(t)
	l.p.o.config.ASCII = true
	l.p.warnf("job %v", jobid.ID(16))
	require.Contains(t, l.end(), "job fH\n")
}

// A configuration is TOML, as files of Flux are, or JSON, as Flux sends it.
func TestTheConfigurationIsTOMLOrJSON(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	ask := strings.NewReader
	for _, text := range []string{
		"[queues.batch]\n[queues.debug]\n[policy.limits]\nduration = '1h'\n",
		` {"queues":{"batch":{},"debug":{}},"policy":{"limits":{"duration":"1h"}}}`,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		status, stdout, stderr := prog.Run(ask(`{"topic":"job-manager.queue-list","matchtag":1}
{"topic":"job-manager.config-reload","matchtag":2,"payload":{}}
{"topic":"job-manager.queue-list","matchtag":3}`), "-config="+name)
		require.Equal(t, lines.ExitOK, status, stderr)
		require.Equal(t, `{"topic":"job-manager.queue-list","matchtag":1,"payload":{"queues":["batch","debug"]}}
{"topic":"job-manager.config-reload","matchtag":2}
{"topic":"job-manager.queue-list","matchtag":3,"payload":{"queues":[]}}
`, stdout)
	}
}

// Each malformed line is answered, and the next one is read.
func TestMalformedLinesEndNothing(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{`, `"job-manager.error","errnum":71`},
		{`[]`, `"job-manager.error","errnum":71`},
		{`null`, `"job-manager.error","errnum":71`},
		{`{}`, `"job-manager.error","errnum":71,"errstr":"the line has no topic"`},
		{`{"time":5}`, `"job-manager.error","errnum":71,"errstr":"the line has no topic"`},
		{`{"topic":7}`, `"job-manager.error","errnum":71`},
		{`{"matchtag":7,"sender":"A"}`, `{"topic":"job-manager.error","sender":"A","errnum":71`},
		{`{"topic":"job-manager.raise","payload":{}} x`, `"job-manager.raise","errnum":71`},
		{"{\"topic\":\"job-manager.raise\xff\"}", `"job-manager.error","errnum":71,"errstr":"the line is not UTF-8"`},
		{`{"topic":"job-manager.raise","matchtag":3,"sender":"A","payload":{"id":}}`, `{"topic":"job-manager.raise","matchtag":3,"sender":"A","errnum":71`},
		{`{"matchtag":3,"payload":{"id":7},"sender":"A","topic":"job-manager.raise","payload":{`, `{"topic":"job-manager.raise","matchtag":3,"sender":"A","errnum":71`},
		{"{\"topic\":\"job-manager.raise\",\"matchtag\":3,\"sender\":\"A\",\"payload\":\"\xff\"}", `{"topic":"job-manager.raise","matchtag":3,"sender":"A","errnum":71`},
		{`{"topic":"job-manager.memo","matchtag":3,"sender":"A","payload":"` + strings.Repeat("x", lines.Max), `{"topic":"job-manager.memo","matchtag":3,"sender":"A","errnum":90`},
		{`{"topic":"job-manager.raise","matchtag":"x","sender":7`, `"job-manager.raise","errnum":71`},
		{`{"topic":"job-manager.raise","sender":"A","matchtag":3,"userid":-1}`, `{"topic":"job-manager.raise","matchtag":3,"sender":"A","errnum":71`},
		{`{"topic":"job-manager.raise","matchtag":4294967296}`, `"job-manager.raise","errnum":71`},
		{`{"topic":"job-manager.raise","matchtag":3,"time":-1}`, `{"topic":"job-manager.raise","matchtag":3,"errnum":71`},
		{`{"time":1e12,"topic":"job-manager.raise"}`, `"job-manager.raise","errnum":71`},
		{`{"topic":"kvs.commit","matchtag":3}`, `"job-manager.error","errnum":22,"errstr":"kvs.commit: no call of this topic to this client has matchtag 3"`},
		{`{"topic":"sched.alloc","payload":{"id":3}}`, `"job-manager.error","errnum":22,"errstr":"sched.alloc: `},
	} {
		status, stdout, stderr := prog.Run(strings.NewReader(c.line + "\n" + raise(9, 1)))
		require.Equal(t, lines.ExitFault, status, c.line)
		answers := strings.Split(stdout, "\n")
		require.Len(t, answers, 3, c.line)
		require.Contains(t, answers[0], c.want)
		require.Equal(t, `{"topic":"job-manager.raise","matchtag":9,"errnum":2,"errstr":"unknown job id"}`, answers[1])
		require.Contains(t, stderr, "manager: warning: line 1: ")
		require.Contains(t, stderr, "1 line refused")
	}
}

// Two processes that answer each other's errors would never end.
func TestAnErrorIsNotAnswered(t *testing.T) {
	status, stdout, stderr := prog.Run(strings.NewReader(`{"topic":"job-manager.error","errnum":22,"errstr":"no\u001b"}`))
	require.Equal(t, lines.ExitFault, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, `line 1: job-manager.error: errnum 22: no\x1b`)
}

func TestAnswersEchoTheSenderAndTheMatchtag(t *testing.T) {
	ask := func(head string) string { return `{"topic":"job-manager.nosuch",` + head + `"payload":{}}` + "\n" }
	status, stdout, _ := prog.Run(strings.NewReader(ask(``) + ask(`"matchtag":7,`) + ask(`"sender":"",`) + ask(`"sender":"a:b","matchtag":7,`) + ask(`"matchtag":0,`)))
	require.Equal(t, lines.ExitOK, status, "an error is an answer")
	require.Equal(t, `{"topic":"job-manager.nosuch","errnum":38,"errstr":"Unknown service method 'job-manager.nosuch'"}
{"topic":"job-manager.nosuch","matchtag":7,"errnum":38,"errstr":"Unknown service method 'job-manager.nosuch'"}
{"topic":"job-manager.nosuch","sender":"","errnum":38,"errstr":"Unknown service method 'job-manager.nosuch'"}
{"topic":"job-manager.nosuch","matchtag":7,"sender":"a:b","errnum":38,"errstr":"Unknown service method 'job-manager.nosuch'"}
`, stdout)
}

// A peer with one thread writes all that it has to say before it reads an answer.
func TestAPeerMayWriteMuchBeforeItReads(t *testing.T) {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	ended := make(chan int)
	go func() {
		ended <- lines.Run(context.Background(), program, nil, in, out, io.Discard)
		_ = out.Close()
	}()
	for range 1000 { // no pipe holds anything
		_, err := io.WriteString(say, `{"topic":"job-manager.getinfo","matchtag":1}`+"\n")
		require.NoError(t, err)
	}
	_ = say.Close()
	go func() { require.Equal(t, lines.ExitOK, <-ended) }()
	text, err := io.ReadAll(hear)
	require.NoError(t, err)
	require.Equal(t, 1000, bytes.Count(text, []byte("\n")))
}

// A guest does not become the owner by the way its line is written: a key is what it is, and
// one that comes twice, or says nothing, is refused.
func TestNobodyIsTheOwnerByTheWayALineIsWritten(t *testing.T) {
	for head, want := range map[string]string{
		`"x":1`:                          `"payload":{"errors":[]}`, // who asks is the owner by default
		`"rolemask":2`:                   `"errnum":1,"errstr":"Request requires owner credentials"`,
		`"rolemask":2,"Rolemask":1`:      `"errnum":1,`,
		`"rolemask":2,"rolemask":1`:      `"errnum":71,"errstr":"malformed line: \"rolemask\": key comes twice"`,
		`"rolemask":2,"role\u006dask":1`: `"errnum":71,"errstr":"malformed line: \"rolemask\": key comes twice"`,
		`"rolemask":4294967297`:          `"errnum":71,"errstr":"malformed line: \"rolemask\": must not be number 4294967297"`,
		`"rolemask":0`:                   `"errnum":1,`,
		`"userid":null,"rolemask":2`:     `"errnum":71,"errstr":"malformed line: \"userid\": must not be null"`,
		`"rolemask":2,"payload":{"jobs":[]},"rolemask":1,"sender":"x"`: `"sender":"x","errnum":71`,
	} {
		text := strings.Replace(submit(7, 16), `{"topic"`, "{"+head+`,"topic"`, 1)
		if strings.Contains(head, "payload") { // as a bridge may put together what a guest wrote
			text = `{"topic":"job-manager.submit","matchtag":7,` + head + "}\n"
		}
		_, stdout, stderr := prog.Run(strings.NewReader(text))
		require.Contains(t, stdout, want, head)
		require.Contains(t, stdout, `{"topic":"job-manager.submit","matchtag":7,`, head)
		require.Equal(t, head != `"x":1`, strings.Contains(stderr, "0 jobs submitted"), head)
	}
}

// What peers and commands wrote cannot move the cursor of a terminal, or pass for a line of
// the manager.
func TestALogThatATerminalWouldObey(t *testing.T) {
	status, _, stderr := prog.Run(strings.NewReader(`{"topic":"job-manager.exec-hello","payload":{"service":"exec"}}
{"topic":"exec.start","errnum":5,"errstr":"\u001b[2J\nmanager: all is well\u009b"}
`), "-now=1000")
	require.Equal(t, lines.ExitOK, status, stderr)
	require.Contains(t, stderr, `manager: error: exec.start: errnum 5: \x1b[2J\nmanager: all is well\u009b: the executor is lost`)
	require.NotContains(t, stderr, "\x1b")
	require.NotContains(t, stderr, "\nmanager: all")
}

// Neither can why the manager ends, which has the names of folders of the KVS, nor a flag.
func TestAnEndThatATerminalWouldObey(t *testing.T) {
	_, _, stderr := prog.Run(strings.NewReader(`{"topic":"kvs.lookup","matchtag":1,"payload":{"val":{"ver":1,"type":"dir","data":{"\u001b[2J\nx":{"ver":1,"type":"dirref","data":["x"]}}}}}
{"topic":"kvs.lookup","matchtag":4,"payload":{"val":{"ver":1,"type":"val","data":""}}}
`), "-store=lines", "-now=1000")
	require.Contains(t, stderr, `manager: -store: job.\x1b[2J\nx: want a folder`)
	require.NotContains(t, stderr, "\x1b")
	_, _, stderr = prog.Run(strings.NewReader(""), "-\x1b[2J")
	require.Contains(t, stderr, `defined: -\x1b[2J`)
	require.NotContains(t, stderr, "\x1b")
}

// A payload that cannot be written is an error, and still an answer.
func TestAnAnswerThatCannotBeWrittenIsAnError(t *testing.T) {
	var got output
	require.NoError(t, json.Unmarshal(output{Topic: "a", Matchtag: 7, Payload: func() {}}.line(), &got))
	require.Equal(t, output{Topic: "a", Matchtag: 7, Errnum: errno.Invalid, Errstr: got.Errstr}, got)
	require.Contains(t, got.Errstr, "unsupported type")
	require.Equal(t, `{"topic":"a","payload":{"note":"<&>"}}`+"\n", string(output{Topic: "a", Payload: map[string]string{"note": "<&>"}}.line()))
}
