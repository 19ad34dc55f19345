package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/internal/errno"
	"github.com/joblife/joblife/examples/internal/lines"
	"github.com/joblife/joblife/examples/internal/linestest"
	"github.com/joblife/joblife/rset/alloc"
	"github.com/joblife/joblife/rset/pool"
	"github.com/joblife/joblife/rset/sched"
)

func TestWithNothingToReadItTellsHowToUseIt(t *testing.T) {
	prog.Help(t, "-policy", "-fit", "-queue-depth", "-backfill-depth", "-forecast-period")
}

func TestStreamsThatEndOtherwise(t *testing.T) { prog.Streams(t, "sched", "") }

func TestEmptyInputIsASession(t *testing.T) {
	status, stdout, stderr := prog.Run(strings.NewReader("\n \n"), "-now=1")
	require.Equal(t, lines.ExitOK, status)
	require.Equal(t, `{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}`+"\n", stdout)
	require.Contains(t, stderr, "0 jobs allocated, 0 denied, 0 canceled, 0 lines refused")
	require.NotContains(t, stderr, "line ")
}

// What RFC 27 and 28 let end a scheduler ends the session.
func TestAFailureOfThePeerEndsTheSession(t *testing.T) {
	for _, topic := range []string{alloc.TopicHello, alloc.TopicReady, pool.TopicAcquire} {
		input := "\n" + `{"topic":"` + topic + `","errnum":5,"errstr":"no luck\u001b"}` + "\n" + `{"topic":"sched.nosuch"}`
		status, stdout, stderr := prog.Run(strings.NewReader(input))
		require.Equal(t, lines.ExitFault, status)
		require.Equal(t, 1, strings.Count(stdout, "\n"))
		require.Contains(t, stderr, "sched: line 2: "+topic+" failed: errnum 5: no luck\\x1b\n")
		require.Contains(t, stderr, "0 jobs allocated")
	}
	_, _, stderr := prog.Run(strings.NewReader(`{"topic":"resource.acquire","errnum":5}`))
	require.Contains(t, stderr, "sched: line 1: resource.acquire failed: errnum 5\n", "without a reason")
	status, stdout, _ := prog.Run(strings.NewReader(`{"topic":"sched.alloc","errnum":5}`))
	require.Equal(t, lines.ExitFault, status, "a request cannot fail")
	require.Contains(t, stdout, `"errnum":22`)
}

// Neither can the failure that ends the session, on standard input or on a socket.
func TestAFailureThatATerminalWouldObey(t *testing.T) {
	const input = `{"topic":"job-manager.\u001b[2J\nsched: all is well\u009b","errnum":5}` + "\n"
	_, _, piped := prog.Run(strings.NewReader(input))
	path := linestest.SocketPath(t)
	stop := prog.Start(t, path)
	conn, _, read := linestest.Dial(t, path)
	require.Contains(t, read(), "sched-hello")
	_, err := io.WriteString(conn, input)
	require.NoError(t, err)
	require.Empty(t, read())
	_, socket := stop()
	for _, stderr := range []string{piped, socket} {
		require.Contains(t, stderr, `line 1: job-manager.\x1b[2J\nsched: all is well\u009b failed: errnum 5`)
		require.NotContains(t, stderr, "\x1b")
	}
}

// A machine of a core, a job that needs it, and one that has it.
const (
	inventory = `{"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}]}},"up":"0"}}` + "\n"
	helloDone = `{"topic":"job-manager.sched-hello","errnum":61}` + "\n"
	request   = `{"topic":"sched.alloc","payload":{"id":2,"priority":16,"userid":1,"jobspec":` + oneCore + `}}` + "\n"
	holding1  = `{"topic":"job-manager.sched-hello","payload":{"id":1,"priority":16,"userid":1,"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}]}}}}` + "\n"
	badHello  = `{"topic":"job-manager.sched-hello","payload":{}}` + "\n" // does not tell of which job
	oneCore   = `{"version":1,"resources":[{"type":"slot","count":1,"label":"a","with":[{"type":"core","count":1}]}],"tasks":[{"command":["a"],"slot":"a","count":{"per_slot":1}}],"attributes":{"system":{"duration":10}}}`
)

// threeCores is a job that needs three cores.
var threeCores = strings.Replace(oneCore, `"count":1`, `"count":3`, 1)

func TestTheTimeOfTheDay(t *testing.T) {
	request := `{"topic":"sched.alloc","payload":{"id":1,"priority":1,"userid":1,"t_submit":9e9,"jobspec":` + oneCore + `}}`
	before := eventlog.FromTime(time.Now())
	status, stdout, stderr := prog.Run(strings.NewReader(inventory + helloDone + request))
	after := eventlog.FromTime(time.Now())
	require.Equal(t, lines.ExitOK, status)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	m, err := alloc.ParseLine([]byte(lines[len(lines)-1]))
	require.NoError(t, err)
	a, err := alloc.Parse[alloc.Response](m.Payload)
	require.NoError(t, err)
	require.GreaterOrEqual(t, a.R.Start(), before)
	require.LessOrEqual(t, a.R.Start(), after, "t_submit in the future is no time to start")
	require.Equal(t, a.R.Start()+10, a.R.Expiration())
	require.NotContains(t, stderr, "longest wait")
}

// The time of the day may be set back, and the input of an earlier session went further.
func TestTimeDoesNotGoBack(t *testing.T) {
	s := session{clock: (&lines.Options{Now: 5}).NewClock(), now: 7}
	s.tick()
	require.Equal(t, eventlog.Timestamp(7), s.now)
	s.clock.Advance(8)
	s.tick()
	require.Equal(t, eventlog.Timestamp(8), s.now)
}

// What a manager refuses, the scheduler must not believe: its session ends, and says why.
func TestARefusalOfTheManagerEndsTheSession(t *testing.T) {
	for text, want := range map[string]string{
		`{"topic":"job-manager.error","errnum":22,"errstr":"sched.alloc: double booking"}`: "line 3: job-manager.error failed: errnum 22: sched.alloc: double booking",
		`{"topic":"job-manager.sched-ready","errnum":71}`:                                  "line 3: job-manager.sched-ready failed: errnum 71",
	} {
		status, stdout, stderr := prog.Run(strings.NewReader(inventory + helloDone + text + "\n"))
		require.Equal(t, lines.ExitFault, status)
		require.NotContains(t, stdout, "job-manager.error", "an error is not answered")
		require.Contains(t, stderr, want)
	}
}

// The errnums are those that the documentation of the command lists.
func TestEveryErrnumIsListed(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	doc, _, _ := strings.Cut(string(source), "package main")
	doc = strings.ReplaceAll(doc, "\n//", "")
	require.Equal(t, errno.NoMemory, errnumOf(sched.ErrLimit))
	for errnum, what := range map[int]string{
		errno.NoEntry: "unknown job", errno.Again: "not ready", errno.NoMemory: "too many jobs",
		errno.Busy: "busy with another session", errno.Exists: "duplicate job", errno.Invalid: "refused",
		errno.NoSys: "unknown topic", errno.Protocol: "malformed", errno.Overflow: "unsatisfiable", errno.Size: "too long",
	} {
		number, err := json.Marshal(errnum)
		require.NoError(t, err)
		require.Contains(t, doc, " "+string(number)+" "+what)
	}
}

// What a line tells that cannot be read, nobody knows: if it was of a job that
// holds resources, those would be given to another.
func TestNothingStartsAfterAHelloThatCannotBeRead(t *testing.T) {
	for what, text := range map[string]string{
		"no id":    strings.Replace(holding1, `"id"`, `"jobid"`, 1),
		"no JSON":  holding1[:len(holding1)-3] + "\n",
		"too long": holding1[:len(holding1)-2] + strings.Repeat(" ", lines.Max) + "}\n",
	} {
		_, stdout, stderr := prog.Run(strings.NewReader(inventory+text+helloDone+request), "-now=1")
		require.NotContains(t, stdout, `"type":0`, what)
		require.NotContains(t, stdout, alloc.TopicReady, what)
		require.Contains(t, stderr, "not ready: the resources of 1 job are unknown", what)

		_, stdout, _ = prog.Run(strings.NewReader(inventory+text+helloDone+holding1+helloDone+request), "-now=1")
		require.Contains(t, stdout, alloc.TopicReady, what+", and then good")
		require.NotContains(t, stdout, `"type":0`, what+", and then good: job 1 has the core")
	}
	// Once it is known what is held, a line that cannot be read changes nothing.
	_, stdout, _ := prog.Run(strings.NewReader(inventory+helloDone+"{\n"+request), "-now=1")
	require.Contains(t, stdout, `"type":0`)
	// But for a hello, which begins another series.
	_, stdout, _ = prog.Run(strings.NewReader(inventory+helloDone+badHello+request), "-now=1")
	require.NotContains(t, stdout, `"type":0`)
}

// A manager tells its events to each client, also before it has read the hello of one.
func TestAnEventIsNotForAScheduler(t *testing.T) {
	event := `{"event":"job-exception","private":true,"payload":{"id":1,"type":"cancel","severity":0}}` + "\n"
	for _, input := range []string{event + inventory + helloDone + request, inventory + event + helloDone + event + request} {
		status, stdout, stderr := prog.Run(strings.NewReader(input), "-now=1")
		require.Equal(t, lines.ExitOK, status, stderr)
		require.Contains(t, stdout, alloc.TopicReady)
		require.Contains(t, stdout, `"id":2,"type":0`)
		require.NotContains(t, stdout, "errnum")
	}
	status, _, _ := prog.Run(strings.NewReader(`{"event":"a","event":"b"}`), "-now=1")
	require.Equal(t, lines.ExitFault, status, "this is no event")
}

// Before the hello has its answer, the manager asks for nothing: what comes was for another.
func TestWhatComesBeforeTheAnswerToTheHelloIsOfAnotherSession(t *testing.T) {
	old := `{"topic":"sched.alloc","payload":{"id":1,"priority":16,"userid":1,"jobspec":` + oneCore + `}}
{"topic":"sched.cancel","payload":{"id":1}}
{"topic":"sched.prioritize","payload":{"jobs":[[1,20]]}}
{"topic":"sched.free","payload":{"id":7,"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}]}},"final":true}}
{"topic":"sched.expiration","payload":{"id":7,"expiration":9}}
`
	status, stdout, stderr := prog.Run(strings.NewReader(old+inventory+old+helloDone), "-now=1")
	require.Equal(t, lines.ExitOK, status, stderr)
	require.Equal(t, `{"topic":"job-manager.sched-hello","payload":{"partial-ok":true}}
{"topic":"job-manager.sched-ready","payload":{"mode":"unlimited"}}
`, stdout)
}

// A session does not wait for ever.
func TestASessionThatIsNotReadyEnds(t *testing.T) {
	for _, text := range []string{"", inventory, inventory + badHello + helloDone, inventory + helloDone + badHello} {
		in, feed := io.Pipe()
		go func() { _, _ = io.WriteString(feed, text) }()
		o := options{policy: "fifo", patience: 20 * time.Millisecond}
		err := o.serve(context.Background(), in, io.Discard, io.Discard)
		require.EqualError(t, err, "the hello has not ended well within 20ms")
		require.NoError(t, in.Close())
	}
	here, there := net.Pipe() // it does not read
	_, err := (&patient{here, 20 * time.Millisecond}).Write([]byte("x"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, there.Close())
}

// An instance whose nodes are all excluded starts all the same, and a job that holds one of
// them is known.
func TestAnEmptyInventoryIsAnInventory(t *testing.T) {
	const (
		none = `{"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0,"nodelist":[""]}},"up":""}}` + "\n"
		free = `{"topic":"sched.free","payload":{"id":1,"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}]}},"final":true}}` + "\n"
	)
	status, stdout, stderr := prog.Run(strings.NewReader(none+holding1+helloDone+request+free), "-now=1")
	require.Equal(t, lines.ExitFault, status, "the hello is reported")
	require.Contains(t, stdout, alloc.TopicReady)
	require.Contains(t, stdout, `{"topic":"sched.alloc","payload":{"id":2,"type":2,`)
	require.Contains(t, stderr, "1 adopted, 1 done, 0 running")
}

// Between hello and ready, flux-core takes back ranks and tells nobody. It frees the other
// ranks later, the last of them as final. The scheduler goes on and has all ranks again.
func TestAFragmentFreedBetweenHelloAndReadyIsNeverTold(t *testing.T) {
	nodes := strings.NewReplacer(`"rank":"0"`, `"rank":"0-2"`, `"up":"0"`, `"up":"all"`).Replace(inventory)
	hello := strings.Replace(holding1, `"rank":"0"`, `"rank":"0-2"`, 1)
	free := `{"topic":"sched.free","payload":{"id":1,"R":{"version":1,"execution":{"R_lite":[{"rank":"1-2","children":{"core":"0"}}]}},"final":true}}` + "\n"
	three := strings.Replace(request, oneCore, threeCores, 1)
	status, stdout, stderr := prog.Run(strings.NewReader(nodes+hello+helloDone+three+free), "-now=1", "-v")
	require.Equal(t, lines.ExitOK, status, stderr)
	require.Contains(t, stdout, `"resource_summary":"rank[0-2]/core0"`, "job 2 has what job 1 had")
	require.Contains(t, stderr, "the fragments left out rank", "an operator is told")
	require.Contains(t, stderr, "1 adopted, 1 done, 1 running")
}

// Users look for these words, and tests of flux-core too.
func TestWhatCanNeverBeMetIsAnUnsatisfiableRequest(t *testing.T) {
	answers := func(jobspec string) (deny, check string) {
		_, stdout, _ := prog.Run(strings.NewReader(inventory+helloDone+
			`{"topic":"sched.alloc","payload":{"id":2,"priority":16,"userid":1,"jobspec":`+jobspec+`}}`+"\n"+
			`{"topic":"feasibility.check","payload":{"jobspec":`+jobspec+`}}`+"\n"), "-now=1")
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		return lines[len(lines)-2], lines[len(lines)-1]
	}
	deny, check := answers(threeCores)
	const text = `"unsatisfiable request for 3 slots of 1 core: room for 1"}`
	require.Equal(t, `{"topic":"sched.alloc","payload":{"id":2,"type":2,"note":`+text+`}`, deny)
	require.Equal(t, `{"topic":"feasibility.check","errnum":75,"errstr":`+text, check)

	// A jobspec that is none is something else, and says so once.
	for broken, text := range map[string]string{
		strings.Replace(oneCore, `"count":1,"label"`, `"count":0,"label"`, 1): `"jobspec: resources[0].count: `,
		strings.Replace(oneCore, `"core"`, `"socket"`, 1):                     `"resources[0]: a slot needs cores`,
	} {
		deny, check := answers(broken)
		require.Contains(t, deny, `"note":`+text)
		require.Contains(t, check, `"errnum":22,"errstr":`+text)
	}
}

func TestFitBestPacksAndFitWorstSpreads(t *testing.T) {
	nodes := strings.NewReplacer(`"rank":"0"`, `"rank":"0-1"`, `"core":"0"`, `"core":"0-1"`, `"up":"0"`, `"up":"all"`).Replace(inventory)
	for args, want := range map[string]string{"-now=1": "rank0/core1", "-fit=best": "rank0/core1", "-fit=worst": "rank1/core0"} {
		_, stdout, _ := prog.Run(strings.NewReader(nodes+helloDone+strings.Replace(request, `"id":2`, `"id":1`, 1)+request), args)
		require.Contains(t, stdout, `{"id":1,"type":0,"annotations":{"sched":{"resource_summary":"rank0/core0"`)
		require.Contains(t, stdout, `{"id":2,"type":0,"annotations":{"sched":{"resource_summary":"`+want)
	}
}

// By the time of the day, a clock makes it.
func TestTheClockMakesAForecast(t *testing.T) {
	in, feed := io.Pipe()
	out, w := io.Pipe()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	status := make(chan int, 1)
	go func() {
		status <- lines.Run(ctx, program, []string{"-forecast-period=0.02"}, in, w, io.Discard)
		_ = w.Close()
	}()
	input := inventory + helloDone
	for _, id := range []string{"1", "2", "3"} { // the last one within the period, or not
		input += `{"topic":"sched.alloc","payload":{"id":` + id + `,"priority":1,"userid":1,"jobspec":` + oneCore + "}}\n"
	}
	go func() { _, _ = io.WriteString(feed, input) }()
	for lines := bufio.NewScanner(out); ; {
		require.True(t, lines.Scan(), "not told")
		if strings.HasPrefix(lines.Text(), `{"topic":"sched.alloc","payload":{"id":3,"type":1,`) {
			break
		}
	}
	require.NoError(t, feed.Close())
	require.Equal(t, lines.ExitOK, <-status)
}

// A failure names the job of the message, if there is one, in one form.
func TestAFailureHasTheIDOfTheJob(t *testing.T) {
	const (
		held = `{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}]}}`
		more = `{"version":1,"execution":{"R_lite":[{"rank":"1","children":{"core":"0"}}]}}`
	)
	start := inventory + helloDone + `{"topic":"sched.alloc","payload":{"id":9,"priority":1,"userid":1,"jobspec":` + oneCore + "}}\n"
	for text, want := range map[string]string{
		`{"topic":"sched.alloc","payload":{"id":9,"priority":1,"userid":1,"jobspec":` + oneCore + `}}`: `{"topic":"sched.alloc","errnum":17,"errstr":"job ƒA has resources already","id":9}`,
		`{"topic":"sched.alloc","payload":{"id":9,"priority":-1}}`:                                     `"errnum":71,"errstr":"invalid message: alloc request: priority: offset 19: must be from 0 to 4294967295","id":9}`,
		`{"topic":"sched.free","payload":{"id":8,"R":` + held + `}}`:                                   `"errnum":2,"errstr":"pool: job has no resources: ƒ9","id":8}`,
		`{"topic":"sched.free","payload":{"id":9,"R":` + more + `}}`:                                   `"errnum":22,"errstr":"pool: resources are not held by the job: job ƒA: rank1/core0","id":9}`,
		`{"topic":"sched.expiration","payload":{"id":8,"expiration":1.0}}`:                             `"errnum":2,"errstr":"pool: job has no resources: ƒ9","id":8}`,
		`{"topic":"job-manager.sched-hello","payload":{"id":8,"priority":1,"userid":1}}`:               `"errnum":2,"errstr":"job ƒ9 has no R, and there is no store to look it up in","id":8}`,
		`{"topic":"sched.nosuch","payload":{"id":8}}`:                                                  `"errnum":38,"errstr":"no such topic","id":8}`,
		`{"topic":"sched.nosuch","payload":{"id":-1}}`:                                                 `"errnum":38,"errstr":"no such topic"}`,
		`{"topic":"sched.nosuch","payload":{"id":"ƒ9"}}`:                                               `"errnum":38,"errstr":"no such topic"}`,
		`{"topic":"sched.nosuch"}`:                                                                     `"errnum":38,"errstr":"no such topic"}`,
	} {
		_, stdout, _ := prog.Run(strings.NewReader(start+text), "-now=1")
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		require.Contains(t, lines[len(lines)-1], want)
		_, err := alloc.ParseLine([]byte(lines[len(lines)-1]))
		require.NoError(t, err)
	}
}

func TestWhatPeopleAsk(t *testing.T) {
	const (
		nodes = `{"topic":"resource.acquire","payload":{"resources":{"version":1,"execution":{"R_lite":[{"rank":"0-2","children":{"core":"0-1"}}],"nodelist":["n[0-2]"]}},"up":"0-1"}}` + "\n"
		hello = `{"topic":"job-manager.sched-hello","payload":{"id":1,"priority":16,"userid":1,"R":{"version":1,"execution":{"R_lite":[{"rank":"1-3","children":{"core":"0-1"}}],"nodelist":["n[1-3]"],"starttime":5,"expiration":50}},"free":"1"}}` + "\n"
		ask   = `{"topic":"sched.resource-status"}` + "\n" + `{"topic":"sched.holders"}` + "\n"
	)
	_, stdout, _ := prog.Run(strings.NewReader(nodes+hello+helloDone+request+ask), "-now=10")
	_, answers, _ := strings.Cut(stdout, `{"topic":"sched.resource-status"`)
	require.Equal(t, `,"payload":{`+
		`"all":{"version":1,"execution":{"R_lite":[{"rank":"0-2","children":{"core":"0-1"}}],"starttime":0.0,"expiration":0.0,"nodelist":["n[0-2]"]}},`+
		`"allocated":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}},{"rank":"2","children":{"core":"0-1"}}],"starttime":0.0,"expiration":0.0,"nodelist":["n[0,2]"]}},`+
		`"down":{"version":1,"execution":{"R_lite":[{"rank":"2","children":{"core":"0-1"}}],"starttime":0.0,"expiration":0.0,"nodelist":["n2"]}}}}
{"topic":"sched.holders","payload":{"id":1,"starttime":5.0,"expiration":50.0,"R":{"version":1,"execution":{"R_lite":[{"rank":"2","children":{"core":"0-1"}}],"starttime":0.0,"expiration":0.0}},"gone":{"version":1,"execution":{"R_lite":[{"rank":"3","children":{"core":"0-1"}}],"starttime":0.0,"expiration":0.0}}}}
{"topic":"sched.holders","payload":{"id":2,"starttime":10.0,"expiration":20.0,"R":{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"starttime":10.0,"expiration":20.0,"nslots":1,"nodelist":["n0"]}},"gone":{"version":1,"execution":{"R_lite":[],"starttime":0.0,"expiration":0.0}}}}
{"topic":"sched.holders","errnum":61}
`, answers)

	_, stdout, _ = prog.Run(strings.NewReader(ask), "-now=10")
	require.Contains(t, stdout, `{"topic":"sched.resource-status","errnum":11,`)
	require.Contains(t, stdout, `{"topic":"sched.holders","errnum":11,`)
}
