package boltstore_test

import (
	"context"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/jobstate/jobid"
	"github.com/joblife/joblife/perilog"
	"github.com/joblife/joblife/perilog/exec"
	"github.com/joblife/joblife/purge/boltstore"
	"github.com/joblife/joblife/rset"
)

const spec = `{"version":1,"resources":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}],` +
	`"tasks":[{"command":["sleep"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":60}}}`

// all yields records.
func all(list []joblife.Record) iter.Seq2[joblife.Record, error] {
	return func(yield func(joblife.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// restored returns the snapshot of what a restart makes of records.
func restored(t *testing.T, now time.Time, cfg joblife.Config, records iter.Seq2[joblife.Record, error]) []joblife.Record {
	m, left, err := joblife.Restore(now, cfg, records)
	require.NoError(t, err)
	require.Empty(t, left.Quarantined)
	return slices.Collect(m.Snapshot())
}

// Whatever the Manager stores, a restart from the file is one from the records in their
// order.
func TestARestartFromTheFileIsOneFromTheRecords(t *testing.T) {
	s, path := open(t)
	cfg := joblife.Config{Hooks: []joblife.Hooks{joblife.Dependencies()}}
	cfg.Actions.Epilogs = []perilog.ActionConfig{{PerRank: true}}
	m, err := joblife.New(cfg)
	require.NoError(t, err)
	now := time.Unix(1000, 0)
	var records []joblife.Record
	var rd joblife.Ready
	kinds := make(map[joblife.RecordKind]int)
	step := func(in joblife.Input) {
		t.Helper()
		now = now.Add(time.Second)
		require.NoError(t, m.Step(now, in))
		for m.Ready(&rd) {
			require.NoError(t, s.Append(rd.Append))
			for _, r := range rd.Append {
				records = append(records, r.Clone())
				kinds[r.Kind]++
			}
			ids := slices.Clone(rd.Unlink)
			require.NoError(t, m.Done(rd.Seq))
			require.Equal(t, restored(t, now, cfg, all(records)), restored(t, now, cfg, s.Records()))
			if len(ids) > 0 {
				_, err := s.Unlink(context.Background(), ids)
				require.NoError(t, err)
				require.NoError(t, m.Step(now, joblife.Unlinked{IDs: ids}))
			}
		}
	}
	r, err := rset.Parse([]byte(`{"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0"}}],"nodelist":["n[0-1]"],"starttime":1,"expiration":0}}`))
	require.NoError(t, err)
	step(joblife.StartQueue{Reason: "test"})
	step(joblife.StartQueue{Start: true})
	step(joblife.SchedHello{PartialOK: true})
	step(joblife.SchedReady{})
	step(joblife.ExecHello{})
	for id := jobid.ID(1); id <= 5; id++ {
		step(joblife.Submit{ID: id, Jobspec: []byte(spec), Urgency: 16})
	}
	step(joblife.SchedResponse{ID: 1, R: r})
	step(joblife.ExecResponse{ID: 1, Type: exec.ResponseStart})
	step(joblife.ExecResponse{ID: 1, Type: exec.ResponseFinish})
	step(joblife.ExecResponse{ID: 1, Type: exec.ResponseRelease, Ranks: r.Ranks(), Final: true})
	step(joblife.Raise{ID: 2, Type: "cancel"})
	step(joblife.Raise{ID: 4, Type: "cancel"})
	step(joblife.PurgeIDs{IDs: []jobid.ID{2}, Force: true})
	step(joblife.EnableQueue{Reason: "full"})
	step(joblife.EnableQueue{Enable: true})
	for _, kind := range []joblife.RecordKind{
		joblife.RecordEvent, joblife.RecordJobspec, joblife.RecordR, joblife.RecordTombstone,
		joblife.RecordUnlinked, joblife.RecordQueue,
	} {
		require.NotZero(t, kinds[kind], kind)
	}
	_, err = s.Read(2)
	require.ErrorIs(t, err, fs.ErrNotExist)
	j, err := s.Read(4)
	require.NoError(t, err)
	require.Equal(t, spec, string(j.Jobspec))
	require.Equal(t, 6, strings.Count(string(j.Eventlog), "\n"), string(j.Eventlog))

	require.NoError(t, s.Close())
	s, err = boltstore.Open(path)
	require.NoError(t, err)
	require.Equal(t, restored(t, now, cfg, all(records)), restored(t, now, cfg, s.Records()))

	require.NoError(t, s.PutAside(5))
	_, err = s.Read(5)
	require.ErrorIs(t, err, fs.ErrNotExist)
	m, _, err = joblife.Restore(now, cfg, s.Records())
	require.NoError(t, err)
	require.Error(t, m.Step(now, joblife.Submit{ID: 5, Jobspec: []byte(spec), Urgency: 16}), "its id does not come back")
	require.NoError(t, m.Step(now, joblife.Submit{ID: 6, Jobspec: []byte(spec), Urgency: 16}))

	ev, _, err := s.Snapshot()
	require.NoError(t, err)
	require.Len(t, ev.Tombstones, 1)
	require.NoError(t, s.Append([]joblife.Record{{Job: ev.Tombstones[0].ID, Kind: joblife.RecordTombstone}}), "it expired")
	ev, _, err = s.Snapshot()
	require.NoError(t, err)
	require.Empty(t, ev.Tombstones)
	require.NoError(t, s.Close())
}

// A transaction is stored whole, or not at all.
func TestAnAppendThatFailsStoresNothing(t *testing.T) {
	s, _ := open(t)
	good := joblife.Record{Job: 1, Kind: joblife.RecordEvent, Data: clean(t)}
	for _, bad := range []joblife.Record{
		{Job: 1, Kind: joblife.RecordInactive, Data: []byte("x")},
		{Kind: joblife.RecordWatermark, Data: []byte("x")},
		{Kind: joblife.RecordQueue, Data: []byte("x")},
	} {
		require.ErrorContains(t, s.Append([]joblife.Record{good, bad}), bad.Kind.String()+" record")
		for range s.Records() {
			t.Fatal("there is a record")
		}
	}
	require.NoError(t, s.Append([]joblife.Record{good, {Job: 1, Kind: joblife.RecordHousekeeping, Data: clean(t)}}))
	require.NoError(t, s.Append([]joblife.Record{good, good, {Job: 1, Kind: joblife.RecordHousekeeping, Data: clean(t)}}))
	var kinds []joblife.RecordKind
	for r, err := range s.Records() {
		require.NoError(t, err)
		require.Equal(t, string(clean(t)), string(r.Data))
		kinds = append(kinds, r.Kind)
	}
	require.Equal(t, []joblife.RecordKind{
		joblife.RecordHousekeeping, joblife.RecordHousekeeping,
		joblife.RecordEvent, joblife.RecordEvent, joblife.RecordEvent,
	}, kinds)
}

func TestATombstoneThatCannotBeReadIsNamed(t *testing.T) {
	s, _ := open(t)
	require.NoError(t, s.Append([]joblife.Record{{Job: 7, Kind: joblife.RecordTombstone, Data: []byte("no")}}))
	_, _, err := s.Snapshot()
	require.ErrorContains(t, err, "boltstore: tombstone ƒ8: ")
}
