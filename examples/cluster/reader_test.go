package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/client"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/reader"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/rset"
)

const guest = 424242

func (w *world) reader(cfg reader.Config) func() {
	return w.start("reader", func(ctx context.Context, e *engine.Engine, log *slog.Logger) error {
		cfg.Engine, cfg.Owner, cfg.Log = e, w.cfg.Owner, log
		return reader.Run(ctx, cfg)
	})
}

// nodes starts a manager and all nodes.
func (w *world) nodes() (stop func()) {
	stop = w.manager()
	for rank := range w.n {
		w.node(rank)
	}
	return stop
}

// waiting returns a command that ends with the test.
func (w *world) waiting() string {
	end := filepath.Join(w.dir, "end")
	w.Cleanup(func() { require.NoError(w, os.WriteFile(end, nil, 0o600)) })
	return "while test -d " + w.dir + " && ! test -e " + end + "; do sleep 0.02; done"
}

// eventually waits until f reports true.
func (w *world) eventually(f func() bool, what string, args ...any) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(w, "never came true", append([]any{what}, args...)...)
		}
	}
}

// history waits until a reader has n jobs that are over.
func (w *world) history(ctx context.Context, n int) (list []wire.JobInfo) {
	w.Helper()
	w.eventually(func() bool {
		var err error
		list, err = w.History(ctx, wire.Request{})
		return err == nil && len(list) == n
	}, "not %d jobs", n)
	return list
}

func (w *world) stream(ctx context.Context, name string) jetstream.StreamState {
	conn := w.connect()
	js, err := jetstream.New(conn)
	require.NoError(w, err)
	stream, err := js.Stream(ctx, name)
	require.NoError(w, err)
	return stream.CachedInfo().State
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

var allActions = perilog.Config{
	Prologs:      []perilog.ActionConfig{{Command: []string{"true"}, PerRank: true}},
	Epilogs:      []perilog.ActionConfig{{Description: "clean-up", Command: []string{"true"}, PerRank: true}},
	Housekeeping: &perilog.HousekeepingConfig{Command: []string{"true"}},
}

func TestTheArchiveHasEachJobThatEndedUntilItIsPurged(t *testing.T) {
	t.Parallel()
	w, ctx := begin(t, 2, allActions), within(t, 3*time.Minute)
	w.nodes()
	stop := w.reader(reader.Config{})
	var ids []jobid.ID
	for i := range 6 {
		ids = append(ids, w.submit(ctx, fmt.Sprint(i), 1+int64(i%2), fmt.Sprintf("exit %d", i%3)))
	}
	for _, id := range ids {
		w.over(ctx, id)
	}
	list := w.history(ctx, len(ids))
	for _, id := range ids {
		j, err := w.Archived(ctx, id)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(j.Eventlog, `"name":"submit"`))
		require.Equal(t, 1, strings.Count(j.Eventlog, `"name":"clean"`))
		require.True(t, strings.HasSuffix(strings.TrimSpace(j.Eventlog), `"name":"clean"}`), j.Eventlog)
		require.Equal(t, j.NNodes, uint64(j.NCores)/2)
	}
	_, err := w.Job(ctx, ids[0])
	require.NoError(t, err)

	before := w.stream(ctx, "JLARCHIVE_main")
	require.Equal(t, uint64(len(ids)), before.LastSeq, "some job was archived twice")
	stop()
	_, err = w.History(ctx, wire.Request{}) // the server may not have seen the end yet
	require.Error(t, err)
	began := time.Now()
	_, err = w.Archived(ctx, ids[0])
	require.ErrorIs(t, err, client.ErrNoReader)
	require.Less(t, time.Since(began), time.Second)

	w.reader(reader.Config{})
	require.Equal(t, list, w.history(ctx, len(ids)))
	last := w.submit(ctx, "last", 1, "true") // and all before it is read
	w.over(ctx, last)
	require.Equal(t, last, w.history(ctx, len(ids)+1)[0].ID)
	require.Equal(t, uint64(len(ids)+1), w.stream(ctx, "JLARCHIVE_main").LastSeq, "some job was archived again")

	count := 1
	w.asks(ctx, "purge", wire.Request{MaxCount: &count, Force: true})
	require.Equal(t, last, w.history(ctx, 1)[0].ID)
	require.Equal(t, uint64(1), w.stream(ctx, "JLARCHIVE_main").Msgs)
}

// A snapshot and what comes after it are as good as the whole log, which is cut meanwhile.
func TestASnapshotAndTheRestAreTheWholeLog(t *testing.T) {
	w, ctx := begin(t, 2, allActions), within(t, 3*time.Minute)
	e, err := engine.Open(ctx, engine.Config{URL: w.url, Instance: "main", Name: "test"})
	require.NoError(t, err)
	defer e.Close()
	var mu sync.Mutex
	var whole []joblife.Record
	seen := uint64(0)
	batches := make(chan engine.Batch)
	following, end := context.WithCancel(ctx)
	defer end()
	go func() { _ = e.Follow(following, 0, batches) }()
	go func() {
		for {
			select {
			case <-following.Done():
				return
			case b := <-batches:
				mu.Lock()
				whole, seen = append(whole, b.Records...), b.Seq
				mu.Unlock()
			}
		}
	}()
	stop := w.nodes()
	w.reader(reader.Config{SnapshotMessages: 10})
	w.reader(reader.Config{SnapshotMessages: 10})
	for i := range 12 {
		id := w.submit(ctx, fmt.Sprint(i), 1, "true")
		w.over(ctx, id)
		if i == 7 {
			w.history(ctx, 8) // housekeeping is done
			keep := 3
			w.asks(ctx, "purge", wire.Request{MaxCount: &keep, Force: true})
		}
	}
	runs := w.submit(ctx, "runs", 1, w.waiting())
	waits := w.submit(ctx, "waits", 2, "true")
	w.starts(ctx, runs)
	w.eventually(func() bool { return w.stream(ctx, "JL_main").FirstSeq > 1 }, "the log is not cut")
	w.history(ctx, 7) // housekeeping is done
	stop()
	state := w.stream(ctx, "JL_main")
	w.eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen == state.LastSeq
	}, "not all was followed")

	restore := func(f *joblife.Follower) string {
		m, left, err := f.Restore(time.Unix(4e9, 0), w.cfg)
		require.NoError(t, err)
		require.Empty(t, left.Quarantined)
		require.Len(t, left.Jobs, 2)
		for _, id := range []jobid.ID{runs, waits} {
			_, ok := m.Job(id)
			require.True(t, ok)
		}
		for rd := new(joblife.Ready); m.Ready(rd); {
			require.NoError(t, m.Done(rd.Seq))
		}
		var text []byte
		for r := range m.Snapshot() {
			text, err = joblife.AppendRecords(text, []joblife.Record{r})
			require.NoError(t, err)
		}
		return string(text)
	}
	var all, rest joblife.Follower
	for _, r := range whole {
		require.NoError(t, all.Add(r))
	}
	seq, err := e.Snapshot(ctx, rest.Add)
	require.NoError(t, err)
	require.Greater(t, seq, uint64(10))
	read, done := context.WithCancel(ctx)
	defer done()
	go func() { _ = e.Follow(read, seq, batches) }()
	end()
	for seq < state.LastSeq {
		b := <-batches
		for _, r := range b.Records {
			require.NoError(t, rest.Add(r))
		}
		seq = b.Seq
	}
	require.Equal(t, restore(&all), restore(&rest))
	for _, j := range w.history(ctx, 7) { // 3 of the 8 first, and 4
		_, err := w.Archived(ctx, j.ID)
		require.NoError(t, err)
	}
}

func TestAGuestSeesItsOwnJobsThatAreOver(t *testing.T) {
	t.Parallel()
	w, ctx := begin(t, 2, perilog.Config{}), within(t, 3*time.Minute)
	w.nodes()
	w.reader(reader.Config{})
	other := w.open(guest)
	mine := w.submit(ctx, "a", 1, "true")
	w.over(ctx, mine)
	between := time.Now()
	owner := w.Client
	w.Client = other
	its := w.submit(ctx, "b", 1, "true")
	w.Client = owner
	_, err := w.Ask(ctx, "cancel", wire.Request{ID: its}) // it may not run here
	require.NoError(t, err)
	w.over(ctx, its)
	list := w.history(ctx, 2)
	require.Equal(t, []jobid.ID{its, mine}, []jobid.ID{list[0].ID, list[1].ID})
	_, err = w.Archived(ctx, its)
	require.NoError(t, err)

	list, err = other.History(ctx, wire.Request{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, its, list[0].ID)
	_, err = other.Archived(ctx, its)
	require.NoError(t, err)
	_, err = other.Archived(ctx, mine)
	require.ErrorContains(t, err, "is not known")
	uid := w.cfg.Owner
	_, err = other.History(ctx, wire.Request{User: &uid})
	require.ErrorIs(t, err, client.ErrRefused)

	for what, c := range map[string]struct {
		r    wire.Request
		want []jobid.ID
	}{
		"limit":   {wire.Request{Limit: 1}, []jobid.ID{its}},
		"user":    {wire.Request{User: &uid}, []jobid.ID{mine}},
		"since":   {wire.Request{Since: eventlog.FromTime(between)}, []jobid.ID{its}},
		"result":  {wire.Request{Result: "COMPLETED"}, []jobid.ID{mine}},
		"name":    {wire.Request{Name: "other"}, nil},
		"nothing": {wire.Request{Since: eventlog.FromTime(time.Now())}, nil},
	} {
		list, err := w.History(ctx, c.r)
		require.NoError(t, err)
		var got []jobid.ID
		for _, j := range list {
			got = append(got, j.ID)
		}
		require.Equal(t, c.want, got, what)
	}
}

// A manager keeps a summary of a job that is over, and so do those after it.
func TestAReaderKnowsWhatTheNextManagerDoesNot(t *testing.T) {
	w, ctx := begin(t, 2, perilog.Config{}), within(t, 3*time.Minute)
	stop := w.nodes()
	id := w.submit(ctx, "a", 2, "echo $JOBLIFE_RANK; exit 7")
	w.over(ctx, id)
	stop()
	w.manager()
	summary := w.over(ctx, id)
	require.Nil(t, summary.Status)

	all := wire.Request{All: true, Limit: 10}
	list, err := history(ctx, w.Client, all, []wire.JobInfo{summary})
	require.NoError(t, err)
	require.Equal(t, []wire.JobInfo{summary}, list, "no reader runs")
	w.reader(reader.Config{})
	w.history(ctx, 1)
	_, err = ended(ctx, w.Client, id)
	require.Equal(t, exitCode(7), err)
	j, err := jobOf(ctx, w.Client, id)
	require.NoError(t, err)
	require.Equal(t, "0-1", j.Ranks.String())
	require.Contains(t, j.Eventlog, `"name":"clean"`)

	active, soon := wire.JobInfo{ID: 9}, wire.JobInfo{ID: 8, Inactive: eventlog.FromTime(time.Now()), Result: "CANCELED"}
	known := []wire.JobInfo{summary, active, soon, {ID: id}} // the last one as it was before
	list, err = history(ctx, w.Client, all, known)
	require.NoError(t, err)
	j.Eventlog = ""
	require.Equal(t, []wire.JobInfo{active, soon, j}, list)
	all.Limit = 1
	list, err = history(ctx, w.Client, all, known)
	require.NoError(t, err)
	require.Equal(t, []wire.JobInfo{active, soon}, list)
	all.Result = "FAILED"
	list, err = history(ctx, w.Client, all, known)
	require.NoError(t, err)
	require.Equal(t, []wire.JobInfo{active, j}, list)
}

// page starts a reader with a web page, and returns its address.
func (w *world) page(ctx context.Context) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w, err)
	set, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Range(0, w.n-1), Children: map[string]*idset.Set{"core": idset.Range(0, 1)}}}})
	require.NoError(w, err)
	w.reader(reader.Config{Listener: listener, Client: w.Client, Token: "secret", Nodes: set, Metrics: w.metrics})
	at := "http://" + listener.Addr().String()
	w.eventually(func() bool { code, _ := get(http.DefaultClient, at); return code == http.StatusOK }, "no page")
	return at
}

func get(c *http.Client, url string) (code int, text string) {
	answer, err := c.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

func TestThePageShowsAStrangerCounts(t *testing.T) {
	w, ctx := begin(t, 2, allActions), within(t, 3*time.Minute)
	w.nodes()
	at := w.page(ctx)
	over := w.submit(ctx, "a", 1, "true")
	w.over(ctx, over)
	runs := w.submit(ctx, "b", 1, w.waiting())
	w.starts(ctx, runs)
	w.history(ctx, 1)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	owner := &http.Client{Jar: jar}
	code, text := get(owner, at+"/?token=wrong")
	require.Equal(t, http.StatusOK, code)
	require.NotContains(t, text, over.String())
	code, _ = get(owner, at+"/job/"+over.String())
	require.Equal(t, http.StatusForbidden, code)
	_, err = owner.Get(at + "/?token=secret")
	require.NoError(t, err)
	w.eventually(func() bool { // what the manager said before is good for a second
		code, text = get(owner, at)
		return code == http.StatusOK && strings.Count(text, runs.String()+"</a>") > 1 // as active, and as what holds a node
	}, "the page")
	require.Contains(t, text, over.String())
	for id, words := range map[jobid.ID][]string{over: {"COMPLETED", "clean-up", "epilog"}, runs: {"RUN", "held by"}} {
		code, text = get(owner, at+"/job/"+id.String())
		require.Equal(t, http.StatusOK, code, text)
		for _, word := range words {
			require.Contains(t, text, word)
		}
	}
	code, _ = get(owner, at+"/job/f2")
	require.Equal(t, http.StatusNotFound, code)

	w.eventually(func() bool {
		code, text = get(http.DefaultClient, at)
		return code == http.StatusOK && strings.Contains(text, "<dt>RUN</dt><dd>1</dd>")
	}, "the page")
	for _, secret := range []string{over.String(), runs.String(), "rank", "sleep", "manager-", fmt.Sprint(w.cfg.Owner) + "</td>"} {
		require.NotContains(t, text, secret)
	}
}

func TestMetricsSayWhatHappened(t *testing.T) {
	w, ctx := begin(t, 2, perilog.Config{}), within(t, 3*time.Minute)
	w.nodes()
	id := w.submit(ctx, "a", 2, "true") // manager-1 is active
	w.manager()
	at := w.page(ctx)
	w.over(ctx, id)
	var text string
	for _, line := range []string{
		`joblife_active{manager="manager-1"} 1`, `joblife_lease_epoch{manager="manager-1"} 1`, `joblife_archived_total 1`, `joblife_archive_jobs 1`,
		`joblife_jobs{state="INACTIVE"} 1`, `joblife_nodes{state="up"} 2`, `joblife_fenced_appends_total{manager="manager-1"} 0`, `joblife_epoch{manager="manager-1"} 1`,
	} {
		w.eventually(func() bool {
			_, text = get(http.DefaultClient, at+"/metrics")
			return strings.Contains(text, line+"\n")
		}, "%s is not said", line)
	}
	value := func(name string) (v float64) {
		if _, rest, ok := strings.Cut(text, "\n"+name+" "); ok {
			_, err := fmt.Sscan(rest, &v)
			require.NoError(t, err)
		}
		return v
	}
	w.eventually(func() bool {
		_, text = get(http.DefaultClient, at+"/metrics")
		last := value("joblife_log_sequence")
		return last > 1 && value("joblife_reader_sequence") == last && value(`joblife_standby_sequence{manager="manager-4"}`) == last
	}, "who follows the log does not come to its end")
	require.Less(t, value("joblife_lease_age_seconds"), 60.0)
	require.Positive(t, value(`joblife_append_seconds_count{manager="manager-1"}`))
	require.Greater(t, value(`joblife_append_records_sum{manager="manager-1"}`), 5.0)
}
