package boltstore_test

import (
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/joblife/joblife"
	"github.com/joblife/joblife/joblifetest"
	"github.com/joblife/joblife/purge/boltstore"
)

const spec = `{"version":1,"resources":[{"type":"slot","count":1,"label":"task","with":[{"type":"core","count":1}]}],` +
	`"tasks":[{"command":["sleep"],"slot":"task","count":{"per_slot":1}}],"attributes":{"system":{"duration":60}}}`

func TestAManagerFindsItsRecords(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, joblifetest.CheckStore(func(name string) (joblifetest.Store, error) {
		return boltstore.Open(filepath.Join(dir, name))
	}))
}

func TestTheIDOfAJobThatWasPutAsideDoesNotComeBack(t *testing.T) {
	s, _ := open(t)
	require.NoError(t, s.Append(job(5, []byte(life), []byte(spec), nil)))
	require.NoError(t, s.PutAside(5))
	_, err := s.Read(5)
	require.ErrorIs(t, err, fs.ErrNotExist)
	now := time.Unix(1000, 0)
	m, _, err := joblife.Restore(now, joblife.Config{}, s.Records())
	require.NoError(t, err)
	require.Error(t, m.Step(now, joblife.Submit{ID: 5, Jobspec: []byte(spec), Urgency: 16}))
	require.NoError(t, m.Step(now, joblife.Submit{ID: 6, Jobspec: []byte(spec), Urgency: 16}))
}

// Else a wrong id, such as a great one, would take those of all jobs to come.
func TestWhatIsNotThereIsNotPutAside(t *testing.T) {
	s, _ := open(t)
	require.NoError(t, s.Append(job(5, []byte(life), []byte(spec), nil)))
	require.ErrorIs(t, s.PutAside(1<<64-1), fs.ErrNotExist)
	ev, _, err := s.Snapshot()
	require.NoError(t, err)
	require.Zero(t, ev.Watermark)
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
