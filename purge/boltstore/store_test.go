package boltstore_test

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/eventlog"
	"github.com/joblife/joblife/eventlog/logfile"
	"github.com/joblife/joblife/idset"
	"github.com/joblife/joblife/jobstate"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset"
)

func clean(t testing.TB) []byte {
	line, err := eventlog.AppendEntry(nil, eventlog.Entry{Timestamp: 1_700_000_000, Name: "clean"})
	require.NoError(t, err)
	return line
}

// job returns the records of a job.
func job(id jobid.ID, log, jobspec, r []byte) (list []joblife.Record) {
	if jobspec != nil {
		list = append(list, joblife.Record{Job: id, Kind: joblife.RecordJobspec, Data: jobspec})
	}
	if r != nil {
		list = append(list, joblife.Record{Job: id, Kind: joblife.RecordR, Data: r})
	}
	return append(list, joblife.Record{Job: id, Kind: joblife.RecordEvent, Data: log})
}

func open(t testing.TB) (*boltstore.Store, string) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := boltstore.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, path
}

// life is the log of a job that failed.
const life = `{"timestamp":1.0,"name":"submit","context":{"userid":1,"urgency":16,"flags":0,"version":1}}
{"timestamp":1.0,"name":"validate"}
{"timestamp":1.0,"name":"depend"}
{"timestamp":1.0,"name":"priority","context":{"priority":16}}
{"timestamp":2.0,"name":"alloc"}
{"timestamp":3.0,"name":"start"}
{"timestamp":4.0,"name":"finish","context":{"status":256}}
{"timestamp":5.0,"name":"release","context":{"ranks":"all","final":true}}
{"timestamp":6.0,"name":"free"}
`

const cleanLine = `{"timestamp":7.0,"name":"clean"}` + "\n"

func TestAJobReadsBackAsItWasWritten(t *testing.T) {
	s, _ := open(t)
	for _, id := range []jobid.ID{0, 7, 1<<64 - 1} {
		require.NoError(t, s.Append(job(id, []byte(life), []byte("{}"), []byte("R"))))
		require.NoError(t, s.Append(job(id, []byte(cleanLine), nil, nil)))
		j, err := s.Read(id)
		require.NoError(t, err)
		require.Equal(t, boltstore.Job{ID: id, Eventlog: []byte(life + cleanLine), Jobspec: []byte("{}"), R: []byte("R")}, j)
	}
	_, err := s.Read(8)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestASnapshotIsWhatARestartNeeds(t *testing.T) {
	s, path := open(t)
	require.NoError(t, s.Append(slices.Concat(job(1, []byte(life+cleanLine), nil, nil), job(2, []byte(life), nil, nil), job(3, []byte(cleanLine), nil, nil))))
	tomb := jobstate.Summary{ID: 5, Inactive: 4, Result: jobstate.ResultCompleted, Ran: true}
	require.NoError(t, s.Prepare(t.Context(), purge.Plan{Watermark: 5, Tombstones: []jobstate.Summary{tomb}}))
	require.NoError(t, s.Close())
	s, err := boltstore.OpenReadOnly(path)
	require.NoError(t, err)
	ev, damaged, err := s.Snapshot()
	require.NoError(t, err)
	require.Len(t, damaged, 1, "a log cannot begin with clean")
	require.Equal(t, purge.Snapshot{
		Jobs:   []jobstate.Summary{{ID: 1, Inactive: 7, Result: jobstate.ResultFailed, Ran: true, UserID: 1}},
		Active: []jobid.ID{2, 3}, Tombstones: []jobstate.Summary{tomb}, Watermark: 5,
	}, ev)
	require.Error(t, s.Prepare(t.Context(), purge.Plan{Watermark: 9}))
	require.NoError(t, s.Close())
}

// The nodes of a job are not free while its housekeeping runs, and only its records say so.
func TestAJobInHousekeepingStays(t *testing.T) {
	s, _ := open(t)
	m, err := joblife.New(joblife.Config{Actions: perilog.Config{Housekeeping: &perilog.HousekeepingConfig{}}})
	require.NoError(t, err)
	var launched joblife.Launch
	step := func(in joblife.Input) {
		require.NoError(t, m.Step(time.Unix(1_700_000_000, 0), in))
		for rd := new(joblife.Ready); m.Ready(rd); {
			require.NoError(t, s.Append(rd.Append))
			if len(rd.Launch) > 0 {
				launched = rd.Launch[0]
			}
			require.NoError(t, m.Done(rd.Seq))
		}
	}
	node, err := rset.New(rset.Config{Entries: []rset.Entry{{Ranks: idset.Of(0), Children: map[string]*idset.Set{"core": idset.Of(0)}}}})
	require.NoError(t, err)
	for _, in := range []joblife.Input{
		joblife.Submit{ID: 5, Jobspec: []byte(spec), Urgency: 16}, joblife.SchedHello{}, joblife.SchedReady{}, joblife.ExecHello{},
		joblife.SchedResponse{ID: 5, R: node}, joblife.ExecResponse{ID: 5, Type: exec.ResponseStart},
		joblife.ExecResponse{ID: 5, Type: exec.ResponseFinish}, joblife.ExecResponse{ID: 5, Type: exec.ResponseRelease, Final: true},
	} {
		step(in)
	}
	require.Equal(t, 1, m.Stats().Housekeeping)
	ev, damaged, err := s.Snapshot()
	require.NoError(t, err)
	require.Empty(t, damaged)
	require.Equal(t, []jobid.ID{5}, ev.Active)
	require.Empty(t, ev.Jobs)

	step(joblife.Report{Job: 5, Report: perilog.Report{Action: launched.Action, Kind: perilog.ReportExited, Attempt: launched.Attempt}})
	require.Zero(t, m.Stats().Housekeeping)
	ev, _, err = s.Snapshot()
	require.NoError(t, err)
	require.Empty(t, ev.Active)
	require.Len(t, ev.Jobs, 1)

	step(joblife.Submit{ID: 6, Jobspec: []byte(spec), Urgency: 16})
	step(joblife.SchedResponse{ID: 6, R: node})
	step(joblife.Raise{ID: 6, Type: "scheduler-restart"}) // which takes the nodes back
	step(joblife.ExecRefused{ID: 6})
	ev, _, err = s.Snapshot()
	require.NoError(t, err)
	require.Empty(t, ev.Active)
	require.Len(t, ev.Jobs, 2)
}

// Prepare may be repeated, and lowers no watermark. What is dropped harms no other.
func TestWhatRemainsOfAPurge(t *testing.T) {
	s, _ := open(t)
	tomb := func(id jobid.ID, result jobstate.Result) jobstate.Summary {
		return jobstate.Summary{ID: id, Inactive: 4, Result: result, Ran: true}
	}
	for _, p := range []purge.Plan{
		{Watermark: 1 << 40, Tombstones: []jobstate.Summary{tomb(0, jobstate.ResultFailed), tomb(1<<64-1, jobstate.ResultFailed)}},
		{Watermark: 5, Tombstones: []jobstate.Summary{tomb(0, jobstate.ResultCompleted), tomb(7, jobstate.ResultFailed)}},
		{Watermark: 5, Tombstones: []jobstate.Summary{tomb(0, jobstate.ResultCompleted)}, Expired: []jobid.ID{7, 50}},
	} {
		for range 2 {
			require.NoError(t, s.Prepare(t.Context(), p))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Prepare(ctx, purge.Plan{Watermark: 1 << 50}), context.Canceled)
	ev, _, err := s.Snapshot()
	require.NoError(t, err)
	require.Equal(t, purge.Snapshot{
		Watermark: 1 << 40, Tombstones: []jobstate.Summary{tomb(0, jobstate.ResultCompleted), tomb(1<<64-1, jobstate.ResultFailed)},
	}, ev)
}

func TestASecondProcessIsRefused(t *testing.T) {
	s, path := open(t)
	_, err := boltstore.Open(path)
	require.ErrorIs(t, err, logfile.ErrLocked)
	if runtime.GOOS == "linux" {
		require.EqualError(t, err, fmt.Sprintf("boltstore: %s: in use by process %d", path, os.Getpid()))
	}
	_, err = boltstore.OpenReadOnly(path)
	require.ErrorIs(t, err, logfile.ErrLocked)
	_, err = boltstore.OpenReadOnly(path + "y")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Close())
	s, err = boltstore.Open(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestJobsMayBeChangedWhileTheyAreListed(t *testing.T) {
	s, _ := open(t)
	for id := range jobid.ID(210) {
		require.NoError(t, s.Append(job(id, clean(t), nil, nil)))
	}
	seen := 0
	for r, err := range s.Records() {
		require.NoError(t, err)
		_, err = s.Unlink(context.Background(), []jobid.ID{r.Job})
		require.NoError(t, err)
		seen++
	}
	require.Equal(t, 210, seen)
}

// One goroutine appends and unlinks, as a loop's store does, while others read. Each sees a
// job whole or not at all.
func TestAnyGoroutineMayRead(t *testing.T) {
	s, _ := open(t)
	over := make(chan error)
	for range 2 {
		go func() {
			for done := 0; done < 50; {
				j, err := s.Read(1)
				if err == nil && string(j.Eventlog) != life+cleanLine || err != nil && !errors.Is(err, fs.ErrNotExist) {
					over <- fmt.Errorf("%q: %w", j.Eventlog, err)
					return
				} else if err == nil {
					done++
				}
				for _, err := range s.Records() {
					if err != nil {
						over <- err
						return
					}
				}
			}
			over <- nil
		}()
	}
	for left := 2; left > 0; {
		select {
		case err := <-over:
			require.NoError(t, err)
			left--
		default:
		}
		require.NoError(t, s.Append(job(1, []byte(life+cleanLine), []byte("{}"), []byte("R"))))
		_, err := s.Unlink(t.Context(), []jobid.ID{1})
		require.NoError(t, err)
	}
}

// A program that was killed may have left a part of the ballast, which keeps no room.
func TestABallastThatIsTooShortIsWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	require.NoError(t, os.WriteFile(path+".ballast", []byte("x"), 0o600))
	s, err := boltstore.Open(path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	info, err := os.Stat(path + ".ballast")
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, info.Size())
}

// A file system may compress what it stores, or leave out zeros.
func TestTheBallastTakesItsRoom(t *testing.T) {
	_, path := open(t)
	text, err := os.ReadFile(path + ".ballast")
	require.NoError(t, err)
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	require.NoError(t, err)
	_, err = w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Greater(t, b.Len(), len(text)/2)
}

// A link whose target is not there, as where a disk is not mounted, gets no empty file as its target:
// that would be a damaged store ever after.
func TestALinkToNothingMakesNoFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "elsewhere.db")
	path := filepath.Join(dir, "jobs.db")
	if err := os.Symlink(target, path); err != nil {
		t.Skip(err)
	}
	_, err := boltstore.Open(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, target)
}
