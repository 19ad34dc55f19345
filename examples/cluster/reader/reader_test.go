package reader

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/examples/cluster/auth"
	"github.com/joblife/joblife/examples/cluster/engine"
	"github.com/joblife/joblife/examples/cluster/metrics"
	"github.com/joblife/joblife/examples/cluster/wire"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/rset"
)

// life returns the records of a job that is canceled at once.
func life(id jobid.ID) (list []joblife.Record) {
	spec := `{"resources":[{"type":"slot","count":1,"label":"a","with":[{"type":"core","count":1}]}],"tasks":[{"command":["a"],"slot":"a","count":{"per_slot":1}}],"attributes":{"system":{"duration":0}},"version":1}`
	list = append(list, joblife.Record{Time: 1_700_000_000, Job: id, Kind: joblife.RecordJobspec, Data: []byte(spec)})
	for i, c := range []string{`"submit","context":{"userid":5,"urgency":16,"flags":0,"version":1}`, `"validate"`, `"exception","context":{"type":"cancel","severity":0,"note":"","userid":5}`, `"clean"`} {
		at := eventlog.Timestamp(1_700_000_000 + i)
		list = append(list, joblife.Record{Time: at, Job: id, Kind: joblife.RecordEvent, Data: fmt.Appendf(nil, "{\"timestamp\":%d.0,\"name\":%s}\n", int(at), c)})
	}
	return list
}

// messages is how many messages of the log there are.
const messages = 6

// start returns a reader that has the rights of one.
func start(t *testing.T) (context.Context, *reader) {
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, auth.Init(keys, auth.Config{Instance: "main"}))
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, keys)
	require.NoError(t, err)
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	var engines []*engine.Engine
	for _, id := range []auth.ID{auth.Manager(), auth.Reader()} {
		options, err := auth.Options(keys, id, s.ClientURL())
		require.NoError(t, err)
		connect := engine.Open
		if len(engines) == 0 {
			connect = engine.Make
		}
		e, err := connect(ctx, engine.Config{URL: s.ClientURL(), Instance: "main", Name: id.String(), Options: options})
		require.NoError(t, err)
		t.Cleanup(e.Close)
		engines = append(engines, e)
	}
	for range messages {
		_, err = engines[0].Fence(ctx)
		require.NoError(t, err)
	}
	e := engines[1]
	r := &reader{Config: Config{Engine: e, Users: e, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(), SnapshotMessages: 1, SnapshotBytes: 1 << 20}}
	r.forget()
	return ctx, r
}

// What a snapshot drops is in the archive.
func TestNoSnapshotIsMadeWhileTheArchiveIsBehind(t *testing.T) {
	ctx, r := start(t)
	for _, rec := range life(1) {
		require.NoError(t, r.add(rec))
	}
	require.Len(t, r.ended, 1)
	r.seq.Store(5)
	made := func() uint64 {
		seq, err := r.Engine.Snapshot(ctx, func(joblife.Record) error { return nil })
		require.NoError(t, err)
		return seq
	}
	require.NoError(t, r.compact(ctx))
	require.Zero(t, made())
	require.True(t, r.retry.After(time.Now()))
	require.NoError(t, r.archive(ctx))
	require.NoError(t, r.compact(ctx))
	require.Equal(t, uint64(5), made())
	j, err := r.Engine.Archived(ctx, 5, 1)
	require.NoError(t, err)
	require.Equal(t, "CANCELED", j.Result)

	require.NoError(t, r.add(joblife.Record{Time: 1_700_000_009, Job: 1, Kind: joblife.RecordUnlinked}))
	require.NoError(t, r.archive(ctx))
	_, err = r.Engine.Archived(ctx, 5, 1)
	require.ErrorIs(t, err, engine.ErrNotArchived)
	r.seq.Store(6)
	require.NoError(t, r.compact(ctx)) // which removes the one before the last
	require.Equal(t, uint64(6), made())
	r.seq.Store(messages + 1)
	require.ErrorIs(t, r.compact(ctx), engine.ErrGap, "the log is not the one that was read")
	require.Equal(t, uint64(6), made())
}

// The housekeeping of a job on many nodes is read line by line, and not from its begin for each line.
func TestALongHousekeepingIsReadOnce(t *testing.T) {
	r := new(reader)
	r.forget()
	list, began := life(1), time.Now()
	end := list[len(list)-1]
	list = list[:len(list)-1]
	for rank := range 20_000 {
		list = append(list, joblife.Record{Time: 1_700_000_009, Job: 1, Kind: joblife.RecordHousekeeping,
			Data: fmt.Appendf(nil, "{\"timestamp\":1700000009.0,\"name\":\"release\",\"context\":{\"ranks\":\"%d\"}}\n", rank)})
		if rank == 0 {
			list = append(list, end) // the job ends before its housekeeping
		}
	}
	for _, rec := range list {
		require.NoError(t, r.add(rec))
	}
	require.Less(t, time.Since(began), 3*time.Second)
}

// A job that is purged before it is archived does not come back.
func TestAJobThatIsPurgedIsNotArchived(t *testing.T) {
	ctx, r := start(t)
	for _, rec := range life(1) {
		require.NoError(t, r.add(rec))
	}
	require.NoError(t, r.add(joblife.Record{Time: 1_700_000_009, Job: 1, Kind: joblife.RecordUnlinked}))
	require.NoError(t, r.archive(ctx))
	_, err := r.Engine.Archived(ctx, 5, 1)
	require.ErrorIs(t, err, engine.ErrNotArchived)
	require.Zero(t, r.Len())
}

// A purge of many jobs leaves time for what else there is to do.
func TestAPurgeOfManyJobsIsInSteps(t *testing.T) {
	ctx, r := start(t)
	const more = 3
	for id := range jobid.ID(maxRemoved + more) {
		for _, rec := range life(id + 1) {
			require.NoError(t, r.add(rec))
		}
	}
	require.NoError(t, r.archive(ctx))
	for id := range jobid.ID(maxRemoved + more) {
		require.NoError(t, r.add(joblife.Record{Time: 1_700_000_009, Job: id + 1, Kind: joblife.RecordUnlinked}))
	}
	for _, left := range []int{more, 0, 0} {
		require.NoError(t, r.archive(ctx))
		require.Equal(t, left, r.Len())
	}
	require.Empty(t, r.purged)
}

// A job that was purged is removed from the archive though records say more of it, or only that: the
// reader has not read how it ended.
func TestAPurgedJobIsNotForgottenForItsRecords(t *testing.T) {
	r := new(reader)
	r.forget()
	for id := range jobid.ID(3) {
		r.put(wire.Archived{JobInfo: wire.JobInfo{ID: id + 1}})
	}
	for _, id := range []jobid.ID{1, 1, 2} { // the first is told again in another life of the manager
		require.NoError(t, r.add(joblife.Record{Time: 1_700_000_009, Job: id, Kind: joblife.RecordUnlinked}))
	}
	delete(r.purged, 2) // another reader, which was behind, has archived it since
	for _, rec := range life(3) {
		require.NoError(t, r.add(rec))
	}
	r.missed()
	require.Equal(t, map[jobid.ID]bool{1: true, 2: true}, r.purged)
}

// While many jobs are removed from the archive, the reader follows the log.
func TestTheLogIsReadDuringAPurge(t *testing.T) {
	s, err := engine.Serve(engine.Server{URL: "nats://127.0.0.1:0", Dir: t.TempDir()}, "")
	require.NoError(t, err)
	defer s.Shutdown()
	ctx, cancel := context.WithCancel(t.Context())
	e, err := engine.Make(ctx, engine.Config{URL: s.ClientURL(), Instance: "main"})
	require.NoError(t, err)
	defer e.Close()
	list := make([]wire.Archived, 2000) // the log has none of them, so that all are to be removed
	for i := range list {
		list[i].ID = jobid.ID(i + 1)
	}
	require.NoError(t, e.Archive(ctx, list))
	r := &reader{Config: Config{Engine: e, Users: e, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(), SnapshotMessages: 1 << 20, SnapshotBytes: 1 << 40}}
	done := make(chan error, 1)
	go func() { done <- r.once(ctx) }()
	require.Eventually(t, r.ready.Load, 10*time.Second, time.Millisecond)
	for range 100 {
		_, err := e.Fence(ctx)
		require.NoError(t, err)
	}
	last, _, err := e.Last(ctx)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.seq.Load() == last }, 20*time.Second, time.Millisecond)
	require.NotZero(t, r.Len(), "all were removed before the log was read")
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// A reader that was stopped, while another one removed a job from the archive and cut the log,
// stores it again; when it has read the log anew, it removes it.
func TestAPurgedJobDoesNotComeBack(t *testing.T) {
	ctx, slow := start(t)
	quick := &reader{Config: slow.Config}
	quick.forget()
	for id := range jobid.ID(2) {
		for _, rec := range life(id + 1) {
			require.NoError(t, slow.add(rec))
			require.NoError(t, quick.add(rec))
		}
	}
	require.NoError(t, quick.archive(ctx))
	require.NoError(t, quick.add(joblife.Record{Time: 1_700_000_009, Job: 1, Kind: joblife.RecordUnlinked}))
	require.NoError(t, quick.archive(ctx))
	quick.seq.Store(messages)
	require.NoError(t, quick.compact(ctx))
	require.NoError(t, slow.archive(ctx))

	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- slow.once(ctx) }()
	require.Eventually(t, func() bool { return slow.ready.Load() && slow.Len() == 1 }, 10*time.Second, time.Millisecond)
	_, err := slow.Engine.Archived(ctx, 5, 1)
	require.ErrorIs(t, err, engine.ErrNotArchived)
	_, err = slow.Engine.Archived(ctx, 5, 2)
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// What a reader of the role does needs no more rights than it has.
func TestAReaderRunsWithItsRights(t *testing.T) {
	ctx, r := start(t)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.once(ctx) }()
	require.Eventually(t, func() bool { return r.ready.Load() && r.seq.Load() == messages }, 10*time.Second, time.Millisecond)
	_, _, err := r.Engine.Last(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Users.Flush())
	require.NoError(t, r.Users.LastError())
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestTheIndexIsByEndAndUser(t *testing.T) {
	var x index
	x.reset()
	for i := range 6 {
		var j wire.Archived
		j.ID, j.UserID, j.Inactive, j.Name = jobid.ID(i+1), uint32(i%2), eventlog.Timestamp(100-10*(i/2)), "a name"
		x.put(j)
		x.put(j)
	}
	ids := func(r wire.Request) (list []jobid.ID) {
		x.list(&r, func(j *wire.JobInfo) bool { list = append(list, j.ID); return true })
		return list
	}
	one, two := uint32(1), uint32(2)
	require.Equal(t, []jobid.ID{2, 1, 4, 3, 6, 5}, ids(wire.Request{}))
	require.Equal(t, []jobid.ID{2, 4, 6}, ids(wire.Request{User: &one}))
	require.Empty(t, ids(wire.Request{User: &two}))
	require.Equal(t, []jobid.ID{2, 1, 4, 3}, ids(wire.Request{Since: 90}))
	x.remove(4)
	x.remove(4)
	require.Equal(t, []jobid.ID{2, 6}, ids(wire.Request{User: &one}))
	require.Equal(t, 5, x.Len())
	x.remove(2)
	x.remove(6)
	require.Len(t, x.of, 1)
}

func cores(t *testing.T, n uint32) *rset.R {
	r, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(0), Children: map[string]*idset.Set{"core": idset.Range(0, n-1)}}}})
	require.NoError(t, err)
	return r
}

func TestTheUtilizationIsThatOfTheJobs(t *testing.T) {
	_, r := start(t)
	now := time.Unix(1_700_000_000, 0)
	at := func(before time.Duration) eventlog.Timestamp { return eventlog.FromTime(now.Add(-before)) }
	r.Nodes = cores(t, 4)
	require.Equal(t, "M0 100H180V100Z", r.utilization(now, nil).Path)
	for i, ran := range [][2]time.Duration{{2 * window, window * 3 / 4}, {window / 2, window / 4}} { // the first began before
		var j wire.Archived
		j.ID, j.NCores, j.Run, j.Cleanup, j.Inactive = jobid.ID(i+1), 1, at(ran[0]), at(ran[1]), at(ran[1]-time.Second)
		r.put(j)
	}
	u := r.utilization(now, []wire.JobInfo{{ID: 9, NCores: 3, Run: at(window / 4)}})
	require.Equal(t, "M0 100H0V75H45V100H90V75H135V25H180V100Z", u.Path)
	require.Equal(t, 75, u.Now)
	require.Equal(t, 31, u.Mean)
	require.Equal(t, now.Add(-window).Format("15:04"), u.Since)
}

// The picture of a young cluster begins with its first job.
func TestTheUtilizationBeginsWithTheFirstJob(t *testing.T) {
	_, r := start(t)
	now := time.Unix(1_700_000_000, 0)
	r.Nodes = cores(t, 4)
	for ran, want := range map[time.Duration]struct {
		since time.Duration
		form  string
	}{
		time.Second: {time.Minute, "15:04:05"}, time.Minute: {time.Minute, "15:04:05"}, 61 * time.Second: {2 * time.Minute, "15:04:05"},
		9 * time.Minute: {10 * time.Minute, "15:04"}, 100 * time.Minute: {2 * time.Hour, "15:04"}, 7 * time.Hour: {window, "15:04"},
	} {
		u := r.utilization(now, []wire.JobInfo{{ID: 9, NCores: 4, Run: eventlog.FromTime(now.Add(-ran))}})
		require.Equal(t, now.Add(-want.since).Format(want.form), u.Since, ran)
		require.Equal(t, int(math.Round(100*min(1, ran.Seconds()/want.since.Seconds()))), u.Mean, ran)
	}
}

// However many look at the page, the jobs are looked at once a second: one that ends waits for that.
func TestTheUseIsComputedOnceASecond(t *testing.T) {
	r := &reader{Config: Config{Engine: new(engine.Engine), Nodes: cores(t, 4)}}
	r.reset()
	computed, began := make(map[*use]bool), time.Now()
	for range 100 {
		computed[r.overview(t.Context(), false).Use] = true
	}
	require.LessOrEqual(t, len(computed), 1+int(time.Since(began)/askEvery))
	r.used = time.Time{}
	require.False(t, computed[r.overview(t.Context(), true).Use])
}
